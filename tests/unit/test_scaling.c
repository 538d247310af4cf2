// The scalability law: exact curves come back, intervals hold the truth as often as they say, and
// what is no such curve is seen.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "stats/scaling.h"

static const double sizes[] = {1, 2, 4, 8, 16, 32, 64, 128};

static double law(double rate_one, double contention, double coherency, double n)
{
    return rate_one * n / (1 + contention * (n - 1) + coherency * n * (n - 1));
}

static double normal(struct rng *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rng_double(rng);
    return sum;
}

// `repeats` runs at each of `n_sizes` sizes; returns their number.
static int make(double contention, double coherency, double noise, int n_sizes, int repeats,
                struct rng *rng, double *clients, double *rate)
{
    int n = 0;

    for (int i = 0; i < n_sizes * repeats; i++) {
        clients[n] = sizes[i % n_sizes];
        rate[n] = law(1000, contention, coherency, clients[n]) * exp(noise * normal(rng));
        n++;
    }
    return n;
}

static bool holds(const struct scaling_number *number, double truth)
{
    return number->low <= truth * (1 + 1e-9) && truth * (1 - 1e-9) <= number->high;
}

static void exact_curves_come_back(void **state)
{
    static const struct {
        double contention, coherency;
    } cases[] = {{0.03, 0.0005}, {0.3, 0.001}, {0, 0.0002}, {0.1, 0},
                 {0, 0},         {0.9, 0.01},  {0.01, 0.1}};
    double clients[8], rate[8];
    struct scaling fit;
    struct rng rng;

    (void)state;
    rng_init(&rng, 1, 0, RNG_DATA);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        double a = cases[i].contention, b = cases[i].coherency;
        int n = make(a, b, 0, 8, 1, &rng, clients, rate);
        assert_int_equal(scaling_fit(clients, rate, n, &fit), 0);
        assert_true(fabs(fit.contention.value - a) < 1e-4 && fabs(fit.coherency.value - b) < 1e-5);
        assert_true(fabs(fit.rate_one.value / 1000 - 1) < 1e-3);
        double peak = b > 0 ? fmax(1, sqrt((1 - a) / b)) : INFINITY;
        if (isinf(peak))
            assert_true(fit.peak_clients.value > 1000 && !fit.peak_is_inside);
        else
            assert_true(fabs(fit.peak_clients.value / peak - 1) < 0.02);
        assert_true(fabs(scaling_rate(&fit, 8) / law(1000, a, b, 8) - 1) < 1e-3);
    }
}

static void intervals_hold_the_truth(void **state)
{
    const int trials = 300;
    const double a = 0.04, b = 0.0006, peak = sqrt((1 - a) / b);
    int in[5] = {0};
    struct rng rng;

    (void)state;
    rng_init(&rng, 2, 0, RNG_DATA);
    for (int i = 0; i < trials; i++) {
        double clients[24], rate[24];
        struct scaling fit;
        int n = make(a, b, 0.03, 8, 3, &rng, clients, rate);
        assert_int_equal(scaling_fit(clients, rate, n, &fit), 0);
        in[0] += holds(&fit.rate_one, 1000);
        in[1] += holds(&fit.contention, a);
        in[2] += holds(&fit.coherency, b);
        in[3] += holds(&fit.peak_clients, peak);
        in[4] += holds(&fit.peak_rate, law(1000, a, b, peak));
        assert_true(fit.peak_is_inside);
        assert_true(fit.noise > 0.015 && fit.noise < 0.05);
    }
    for (int i = 0; i < 5; i++) { // 95 % with a standard error of 1.3 %
        assert_true(in[i] > trials * 0.91 && in[i] <= trials * 0.99);
    }
}

static void without_a_peak_in_sight_its_place_is_open(void **state)
{
    double clients[24], rate[24];
    struct scaling fit;
    struct rng rng;

    (void)state;
    rng_init(&rng, 3, 0, RNG_DATA);
    int n = make(0.05, 0, 0.02, 6, 4, &rng, clients, rate);
    assert_int_equal(scaling_fit(clients, rate, n, &fit), 0);
    assert_true(isinf(fit.peak_clients.high) && fit.coherency.low == 0);
    assert_true(!fit.peak_is_inside && fit.peak_clients.low > 32);
    assert_true(holds(&fit.contention, 0.05));
}

static void what_does_not_follow_the_law_is_seen(void **state)
{
    int seen = 0, wrong = 0;
    struct rng rng;

    (void)state;
    rng_init(&rng, 4, 0, RNG_DATA);
    for (int i = 0; i < 100; i++) {
        double clients[24], rate[24];
        struct scaling fit;
        int n = make(0.05, 0.0005, 0.02, 8, 3, &rng, clients, rate);
        scaling_fit(clients, rate, n, &fit);
        wrong += fit.p_misfit < 0.01;
        for (int j = 0; j < n; j++) // a limit on connections: flat from 16 on, then a cliff
            rate[j] = fmin(rate[j], clients[j] >= 64 ? 3000 : 9000);
        scaling_fit(clients, rate, n, &fit);
        seen += fit.p_misfit < 0.01;
    }
    assert_true(seen >= 98 && wrong <= 5);
}

static void too_few_sizes_are_refused(void **state)
{
    double clients[] = {1, 1, 2, 2, 4, 4}, rate[] = {1, 1, 2, 2, 3, 3};
    struct scaling fit = {.noise = 42};

    (void)state;
    assert_true(scaling_fit(clients, rate, 6, &fit) < 0);
    assert_true(fit.noise == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_curves_come_back),
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(without_a_peak_in_sight_its_place_is_open),
        cmocka_unit_test(what_does_not_follow_the_law_is_seen),
        cmocka_unit_test(too_few_sizes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
