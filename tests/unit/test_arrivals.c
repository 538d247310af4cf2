// The open loop's schedule: exact, at the rate, the same whoever takes it, and complete when many
// threads take it at once.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "load/arrivals.h"

#define START (500 * NS_PER_S)

static struct arrivals *arrivals_new(double rate, enum plan_arrival kind, uint64_t seed, int n)
{
    struct arrivals *a = mem_calloc_lines(1, sizeof(*a));
    arrivals_init(a, rate, kind, seed, n);
    arrivals_start(a, START);
    return a;
}

static void arrivals_free(struct arrivals *a)
{
    arrivals_release(a);
    free(a);
}

static void even_arrivals_are_exact(void **state)
{
    (void)state;
    static const double rates[] = {1, 3, 1000, 44100, 1e6, 0.1};
    for (size_t i = 0; i < ARR_LEN(rates); i++) {
        struct arrivals *a = arrivals_new(rates[i], PLAN_EVEN, 1, 1);
        for (int k = 0; k < 50000; k++) {
            int64_t expected = START + (int64_t)nearbyint(k * (1e9 / rates[i]));
            assert_int_equal(arrivals_take(a), expected);
        }
        arrivals_free(a);
    }
}

static void a_second_of_even_arrivals_holds_the_rate(void **state)
{
    (void)state;
    struct arrivals *a = arrivals_new(1000, PLAN_EVEN, 1, 1);
    assert_int_equal(arrivals_due(a, START), 0);
    assert_int_equal(arrivals_due(a, START + 1), 1);
    assert_int_equal(arrivals_due(a, START + NS_PER_S), 1000);
    assert_int_equal(arrivals_due(a, START + 60 * NS_PER_S), 60000);
    arrivals_free(a);
}

static void poisson_gaps_are_exponential(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct arrivals *a = arrivals_new(2000, PLAN_POISSON, 7, 1);
    double mean = 0, square = 0;
    int above[4] = {0}; // longer than 0.5, 1, 2, 4 means
    int64_t before = START;
    for (int k = 0; k < N; k++) {
        int64_t at = arrivals_take(a);
        assert_true(at >= before);
        double gap = (double)(at - before) / 500000.0; // in means
        mean += gap;
        square += gap * gap;
        above[0] += gap > 0.5;
        above[1] += gap > 1;
        above[2] += gap > 2;
        above[3] += gap > 4;
        before = at;
    }
    mean /= N;
    assert_true(fabs(mean - 1) < 5 / sqrt(N));
    double variance = square / N - mean * mean;
    assert_true(fabs(variance - 1) < 5 * sqrt(8.0 / N)); // of an exponential's variance
    static const double limits[] = {0.5, 1, 2, 4};
    for (int i = 0; i < 4; i++) {
        double p = exp(-limits[i]);
        assert_true(fabs((double)above[i] / N - p) < 5 * sqrt(p * (1 - p) / N));
    }
    arrivals_free(a);
}

static void poisson_counts_by_second_vary_as_they_should(void **state)
{
    (void)state;
    enum { SECONDS = 2000, RATE = 100 };
    struct arrivals *a = arrivals_new(RATE, PLAN_POISSON, 3, 1);
    double sum = 0, square = 0;
    int64_t before = 0;
    for (int s = 1; s <= SECONDS; s++) {
        int64_t due = arrivals_due(a, START + s * NS_PER_S);
        double n = (double)(due - before);
        sum += n;
        square += n * n;
        before = due;
    }
    double mean = sum / SECONDS;
    double variance = square / SECONDS - mean * mean;
    assert_true(fabs(mean - RATE) < 5 * sqrt((double)RATE / SECONDS));
    assert_true(fabs(variance / mean - 1) < 5 * sqrt(2.0 / SECONDS)); // index of dispersion
    arrivals_free(a);
}

static void the_schedule_depends_on_the_seed_alone(void **state)
{
    (void)state;
    struct arrivals *a = arrivals_new(1000, PLAN_POISSON, 5, 1);
    struct arrivals *b = arrivals_new(1000, PLAN_POISSON, 5, 5000);
    struct arrivals *c = arrivals_new(1000, PLAN_POISSON, 6, 1);
    int differ = 0;
    for (int k = 0; k < 10000; k++) {
        int64_t at = arrivals_take(a);
        assert_int_equal(arrivals_take(b), at);
        differ += arrivals_take(c) != at;
    }
    assert_true(differ > 9900);
    arrivals_free(a);
    arrivals_free(b);
    arrivals_free(c);
}

// Whatever was taken so far, from nothing to far beyond.
static void due_counts_taken_and_untaken_alike(void **state)
{
    (void)state;
    for (int kind = PLAN_POISSON; kind <= PLAN_EVEN; kind++) {
        struct arrivals *fresh = arrivals_new(1000, kind, 9, 64);
        int64_t expected = arrivals_due(fresh, START + 3 * NS_PER_S);
        arrivals_free(fresh);
        for (int taken = 0; taken < expected + 64; taken += 97) {
            struct arrivals *a = arrivals_new(1000, kind, 9, 64);
            for (int k = 0; k < taken; k++)
                (void)arrivals_take(a);
            assert_int_equal(arrivals_due(a, START + 3 * NS_PER_S), expected);
            arrivals_free(a);
        }
    }
}

enum { TAKERS = 8, EACH = 50000 };

struct taker {
    struct arrivals *arrivals;
    int64_t *taken;
};

static void *take_many(void *arg)
{
    struct taker *t = arg;
    for (int k = 0; k < EACH; k++)
        t->taken[k] = arrivals_take(t->arrivals);
    return NULL;
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void many_threads_take_each_arrival_once(void **state)
{
    (void)state;
    struct arrivals *a = arrivals_new(1e6, PLAN_POISSON, 11, TAKERS);
    struct arrivals *alone = arrivals_new(1e6, PLAN_POISSON, 11, 1);
    int64_t *all = mem_calloc(TAKERS * EACH, sizeof(*all));
    struct taker takers[TAKERS];
    pthread_t threads[TAKERS];
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){a, all + i * EACH};
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &takers[i]), 0);
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < TAKERS; i++) // each thread's own are in order
        for (int k = 1; k < EACH; k++)
            assert_true(takers[i].taken[k - 1] <= takers[i].taken[k]);
    qsort(all, TAKERS * EACH, sizeof(*all), compare_int64);
    for (int k = 0; k < TAKERS * EACH; k++)
        assert_int_equal(all[k], arrivals_take(alone));
    free(all);
    arrivals_free(a);
    arrivals_free(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_arrivals_are_exact),
        cmocka_unit_test(a_second_of_even_arrivals_holds_the_rate),
        cmocka_unit_test(poisson_gaps_are_exponential),
        cmocka_unit_test(poisson_counts_by_second_vary_as_they_should),
        cmocka_unit_test(the_schedule_depends_on_the_seed_alone),
        cmocka_unit_test(due_counts_taken_and_untaken_alike),
        cmocka_unit_test(many_threads_take_each_arrival_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
