// Drawn frequencies against exact probabilities by the chi-square test. Everything is seeded: a
// test that passes once passes always.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "workload/distribution.h"
#include "workload/hash.h"

#define SEED     20240607
#define BINS_MAX 1000

// About one good sample in 30 000 lies beyond.
#define Z_MAX 4.0

// How many standard deviations too large the chi-square of counts is (Wilson and Hilferty's
// approximation). Neighbours are taken together until five are expected.
static double chi_square_z(const int64_t *counts, const double *probabilities, int n, int64_t draws)
{
    double sum = 0, expected = 0, counted = 0;
    int degrees = -1;

    for (int i = 0; i < n; i++) {
        expected += probabilities[i] * (double)draws;
        counted += (double)counts[i];
        if (expected >= 5) {
            sum += (counted - expected) * (counted - expected) / expected;
            degrees++;
            expected = counted = 0;
        }
    }
    if (expected > 0)
        sum += (counted - expected) * (counted - expected) / fmax(expected, 1);
    assert_true(degrees >= 1);
    double spread = 2 / (9.0 * degrees);
    return (cbrt(sum / degrees) - (1 - spread)) / sqrt(spread);
}

static double normal_cdf(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

enum kind { EXPONENTIAL, GAUSSIAN, ZIPFIAN };

// The share of values before position x of n, 0 <= x <= n: value k (from 0) is the step from k
// to k + 1.
static double cdf(enum kind kind, double param, double n, double x)
{
    if (kind == EXPONENTIAL)
        return expm1(-param * x / n) / expm1(-param);
    double reach = normal_cdf(param) - normal_cdf(-param);
    return (normal_cdf(2 * param * x / n - param) - normal_cdf(-param)) / reach;
}

static void probabilities(enum kind kind, double param, int64_t n, int bins, double *out)
{
    double total = 0;

    if (kind != ZIPFIAN) {
        for (int i = 0; i < bins; i++)
            out[i] = cdf(kind, param, (double)n, (double)(n / bins * (i + 1))) -
                     cdf(kind, param, (double)n, (double)(n / bins * i));
        return;
    }
    memset(out, 0, (size_t)bins * sizeof(*out));
    for (int64_t k = n; k >= 1; k--) {
        out[(k - 1) / (n / bins)] += pow((double)k, -param);
        total += pow((double)k, -param);
    }
    for (int i = 0; i < bins; i++)
        out[i] /= total;
}

static int64_t draw(enum kind kind, struct rng *rng, int64_t low, int64_t high, double param)
{
    return kind == EXPONENTIAL ? draw_exponential(rng, low, high, param)
           : kind == GAUSSIAN  ? draw_gaussian(rng, low, high, param)
                               : draw_zipfian(rng, low, high, param);
}

// Draws with one parameter, judged by the probabilities of another.
static double judge(enum kind kind, int64_t low, int64_t high, int bins, int draws,
                    double drawn_param, double judged_param)
{
    int64_t counts[BINS_MAX] = {0};
    double expected[BINS_MAX];
    int64_t n = high - low + 1;
    struct rng rng;

    assert_true(bins <= BINS_MAX && n % bins == 0);
    rng_init(&rng, SEED, (uint64_t)kind, RNG_SCRIPT);
    for (int i = 0; i < draws; i++) {
        int64_t value = draw(kind, &rng, low, high, drawn_param);
        assert_true(value >= low && value <= high);
        counts[(value - low) / (n / bins)]++;
    }
    probabilities(kind, judged_param, n, bins, expected);
    return chi_square_z(counts, expected, bins, draws);
}

static const struct {
    enum kind kind;
    int64_t low, high;
    int bins, draws;
    double param;
} cases[] = {
    {EXPONENTIAL, 1, 20, 20, 200000, 2.5},      {EXPONENTIAL, -7, 5, 13, 200000, 0.1},
    {EXPONENTIAL, 0, 999999, 500, 200000, 10},  {EXPONENTIAL, 1, 10, 10, 200000, 1e-17}, // flat
    {EXPONENTIAL, 1, 1000, 1000, 200000, 1000}, {GAUSSIAN, 1, 20, 20, 200000, 2.0},
    {GAUSSIAN, -100, 99, 200, 200000, 2.5},     {GAUSSIAN, 1, 3, 3, 200000, 5},
    {GAUSSIAN, 0, 9999999, 1000, 200000, 4},    {ZIPFIAN, 1, 10, 10, 200000, 1.5},
    {ZIPFIAN, -3, 96, 100, 200000, 2.5},        {ZIPFIAN, 1, 1000, 1000, 200000, 1.07},
    {ZIPFIAN, 1, 100000, 1000, 100000, 1.2},    {ZIPFIAN, 1, 2, 2, 100000, 3},
    {ZIPFIAN, 1, 10, 10, 4000, 1.001},          {ZIPFIAN, 1, 10, 10, 100000, 8},
};

static void frequencies_are_those_of_the_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        double z = judge(cases[i].kind, cases[i].low, cases[i].high, cases[i].bins, cases[i].draws,
                         cases[i].param, cases[i].param);
        if (!(z < Z_MAX))
            fail_msg("case %zu is off by %g standard deviations", i, z);
    }
}

static void another_parameter_is_noticed(void **state)
{
    (void)state;
    assert_true(judge(EXPONENTIAL, 1, 20, 20, 200000, 2.6, 2.5) > Z_MAX);
    assert_true(judge(GAUSSIAN, 1, 20, 20, 200000, 2.05, 2.0) > Z_MAX);
    assert_true(judge(ZIPFIAN, 1, 100, 100, 200000, 1.52, 1.5) > Z_MAX);
}

static void the_widest_ranges_stay_in_range(void **state)
{
    static const struct {
        int64_t low, high;
    } ranges[] = {
        {0, INT64_MAX - 1},         {INT64_MIN, -2},        {INT64_MIN / 2, INT64_MAX / 2 - 1},
        {INT64_MAX - 1, INT64_MAX}, {INT64_MIN, INT64_MIN}, {INT64_MAX, INT64_MAX},
    };
    static const double params[][3] = {
        [EXPONENTIAL] = {1e-300, 1, 1e300},
        [GAUSSIAN] = {2, 10, 1e300},
        [ZIPFIAN] = {1.1, 2, 1000},
    };
    struct rng rng;

    (void)state;
    rng_init(&rng, SEED, 9, RNG_SCRIPT);
    for (size_t i = 0; i < ARR_LEN(ranges); i++)
        for (int kind = EXPONENTIAL; kind <= ZIPFIAN; kind++)
            for (int k = 0; k < 3; k++)
                for (int draws = 0; draws < 1000; draws++) {
                    int64_t value =
                        draw((enum kind)kind, &rng, ranges[i].low, ranges[i].high, params[kind][k]);
                    assert_true(value >= ranges[i].low && value <= ranges[i].high);
                }
}

static void permutations_are_bijections(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100, 1000, 4096, 10007};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(sizes); i++) {
        for (int64_t seed = -2; seed <= 2; seed++) {
            bool *seen = mem_calloc((size_t)sizes[i], sizeof(*seen));
            for (int64_t v = 0; v < sizes[i]; v++) {
                int64_t to = hash_permute(v, sizes[i], seed);
                assert_true(to >= 0 && to < sizes[i]);
                assert_false(seen[to]);
                seen[to] = true;
                assert_int_equal(hash_permute(v + sizes[i], sizes[i], seed), to);
            }
            free(seen);
        }
    }
}

static void permutations_of_four_are_equally_likely(void **state)
{
    enum { SEEDS = 24000 };
    int64_t counts[24] = {0};
    double expected[24];

    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        int left[4] = {0, 1, 2, 3};
        int rank = 0;
        for (int v = 0; v < 4; v++) { // Lehmer's code of the permutation
            int at = 0;
            while (left[at] != hash_permute(v, 4, seed))
                at++;
            rank = rank * (4 - v) + at;
            memmove(&left[at], &left[at + 1], (size_t)(3 - at) * sizeof(left[0]));
        }
        counts[rank]++;
    }
    for (int i = 0; i < 24; i++)
        expected[i] = 1.0 / 24;
    assert_true(chi_square_z(counts, expected, 24, SEEDS) < Z_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_those_of_the_formulas),
        cmocka_unit_test(another_parameter_is_noticed),
        cmocka_unit_test(the_widest_ranges_stay_in_range),
        cmocka_unit_test(permutations_are_bijections),
        cmocka_unit_test(permutations_of_four_are_equally_likely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
