// Changes in a series of runs: found where they are, seldom where there are none.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "stats/changes.h"

enum { N_MAX = 60 };

static double normal(struct rng *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rng_double(rng);
    return sum;
}

static void plain(double *values, int n, struct rng *rng)
{
    for (int i = 0; i < n; i++)
        values[i] = 1000 * exp(0.03 * normal(rng));
}

static void plain_noise_shows_changes_in_one_series_of_a_hundred(void **state)
{
    double values[N_MAX];
    struct change changes[N_MAX];
    struct rng rng;
    int series = 0, alarms = 0;

    (void)state;
    rng_init(&rng, 1, 0, RNG_DATA);
    for (; series < 400; series++) {
        int n = 6 + series % 40;
        plain(values, n, &rng);
        for (int i = 0; i < n && series % 2; i++) // with stalls
            values[i] *= rng_double(&rng) < 0.1 ? 0.5 : 1;
        alarms += changes_find(values, n, changes) > 0;
    }
    assert_true(alarms <= 10); // 4 expected
}

static void a_step_is_found_where_it_is(void **state)
{
    static const struct {
        int n, at;
        double ratio;
    } cases[] = {{20, 10, 0.9}, {40, 30, 0.9}, {20, 3, 0.5},
                 {30, 27, 1.5}, {60, 5, 2},    {20, 3, 0.48}};
    double values[N_MAX];
    struct change changes[N_MAX];
    struct rng rng;

    (void)state;
    rng_init(&rng, 2, 0, RNG_DATA);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        int hits = 0;
        for (int series = 0; series < 40; series++) {
            plain(values, cases[i].n, &rng);
            for (int j = cases[i].at; j < cases[i].n; j++)
                values[j] *= cases[i].ratio;
            int n = changes_find(values, cases[i].n, changes);
            hits += n == 1 && abs(changes[0].at - cases[i].at) <= 1 &&
                    fabs(log(changes[0].ratio / cases[i].ratio)) < 0.07;
        }
        if (hits < 36)
            print_error("case %zu: %d of 40\n", i, hits);
        assert_true(hits >= 36);
    }
}

static void a_change_up_does_not_hide_one_down(void **state)
{
    double values[N_MAX];
    struct change changes[N_MAX];
    struct rng rng;
    int hits = 0;

    (void)state;
    rng_init(&rng, 3, 0, RNG_DATA);
    for (int series = 0; series < 40; series++) {
        plain(values, 45, &rng);
        for (int i = 20; i < 30; i++)
            values[i] *= 1.15;
        int n = changes_find(values, 45, changes);
        hits += n == 2 && abs(changes[0].at - 20) <= 1 && abs(changes[1].at - 30) <= 1 &&
                changes[0].ratio > 1.08 && changes[1].ratio < 0.93;
    }
    assert_true(hits >= 36);
}

static void one_far_run_is_no_change(void **state)
{
    double values[N_MAX];
    struct change changes[N_MAX];
    struct rng rng;
    int alarms = 0;

    (void)state;
    rng_init(&rng, 4, 0, RNG_DATA);
    for (int series = 0; series < 100; series++) {
        plain(values, 30, &rng);
        values[series % 30] *= 0.2;
        alarms += changes_find(values, 30, changes) > 0;
    }
    assert_true(alarms <= 5);
}

static void short_and_constant_series_have_none(void **state)
{
    double values[N_MAX];
    struct change changes[N_MAX];

    (void)state;
    for (int i = 0; i < N_MAX; i++)
        values[i] = i < 2 ? 1 : 1000;
    for (int n = 0; n < 2 * CHANGES_SIDE_MIN; n++)
        assert_int_equal(changes_find(values, n, changes), 0);
    assert_int_equal(changes_find(&values[2], N_MAX - 2, changes), 0);
}

static void the_same_series_always_gives_the_same_answer(void **state)
{
    double values[N_MAX];
    struct change first[N_MAX], second[N_MAX];
    struct rng rng;

    (void)state;
    rng_init(&rng, 6, 0, RNG_DATA);
    plain(values, N_MAX, &rng);
    for (int i = 30; i < N_MAX; i++)
        values[i] *= 0.9;
    int n = changes_find(values, N_MAX, first);
    assert_int_equal(changes_find(values, N_MAX, second), n);
    for (int i = 0; i < n; i++)
        assert_true(first[i].at == second[i].at && first[i].p == second[i].p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_noise_shows_changes_in_one_series_of_a_hundred),
        cmocka_unit_test(a_step_is_found_where_it_is),
        cmocka_unit_test(a_change_up_does_not_hide_one_down),
        cmocka_unit_test(one_far_run_is_no_change),
        cmocka_unit_test(short_and_constant_series_have_none),
        cmocka_unit_test(the_same_series_always_gives_the_same_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
