// Verdicts: Holm's correction, intervals that agree with them, what is worse, planning, stopping.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "stats/judge.h"

// An effect as if from very many values, or from `degrees`.
static struct effect effect_at(double log_ratio, double se, double degrees)
{
    return (struct effect){.log_ratio = log_ratio,
                           .se = se,
                           .degrees = degrees,
                           .n_old = (int)degrees + 1,
                           .n_new = (int)degrees + 1,
                           .unit_var = se * se * (degrees + 1),
                           .unit_degrees = 1};
}

static void holm_adjusts_as_published(void **state)
{
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005};
    const double expected[] = {0.03, 0, 0.06, 0.06, 0.02};

    (void)state;
    judge_holm(p, 5);
    for (int i = 0; i < 5; i++)
        assert_true(i == 1 ? isnan(p[i]) : fabs(p[i] - expected[i]) < 1e-12);
    double high[] = {0.9, 0.8};
    judge_holm(high, 2);
    assert_true(high[0] == 1 && high[1] == 1);
    judge_holm(NULL, 0);
}

static void verdicts_follow_from_interval_and_margin(void **state)
{
    static const struct {
        double log_ratio, se, degrees;
        enum verdict verdict;
        bool is_same;
    } cases[] = {
        {0.08, 0.01, 11, VERDICT_HIGHER, false},  {-0.08, 0.01, 11, VERDICT_LOWER, false},
        {0.01, 0.01, 11, VERDICT_OPEN, false},    {0.001, 0.004, 11, VERDICT_SAME, true},
        {0.008, 0.001, 11, VERDICT_HIGHER, true}, {0.08, NAN, 0, VERDICT_TOO_FEW, false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct effect e = effect_at(cases[i].log_ratio, cases[i].se, cases[i].degrees);
        struct judgement j;
        judge_family(&e, 1, NULL, &j);
        assert_int_equal(j.verdict, cases[i].verdict);
        assert_int_equal(j.is_same, cases[i].is_same);
        assert_true(isnan(j.low) == (j.verdict == VERDICT_TOO_FEW));
        assert_true(fabs(j.ratio - exp(cases[i].log_ratio)) < 1e-12);
    }
}

static void more_comparisons_ask_for_clearer_ones(void **state)
{
    struct effect effects[4];
    struct judgement one, family[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        effects[i] = effect_at(0.023, 0.01, 1000); // p = 0.022
    judge_family(effects, 1, NULL, &one);
    judge_family(effects, 4, NULL, family);
    assert_int_equal(one.verdict, VERDICT_HIGHER);
    assert_int_equal(family[0].verdict, VERDICT_OPEN);
    assert_true(fabs(family[0].level - 0.9875) < 1e-12);
    // Those that cannot be judged do not count.
    for (int i = 1; i < 4; i++)
        effects[i].degrees = 0;
    judge_family(effects, 4, NULL, family);
    assert_int_equal(family[0].verdict, VERDICT_HIGHER);
    assert_true(fabs(family[0].level - 0.95) < 1e-12);
}

static void no_interval_contradicts_its_verdict(void **state)
{
    struct rng rng;
    int shown = 0;

    (void)state;
    rng_init(&rng, 3, 0, RNG_DATA);
    for (int study = 0; study < 3000; study++) {
        struct effect effects[6];
        struct judgement judged[6];
        int n = 1 + study % 6;
        for (int i = 0; i < n; i++)
            effects[i] = effect_at(0.06 * rng_double(&rng) - 0.03, 0.005 + 0.01 * rng_double(&rng),
                                   1 + (double)rng_range(&rng, 0, 20));
        judge_family(effects, n, NULL, judged);
        for (int i = 0; i < n; i++) {
            bool excludes_one = judged[i].low > 1 || judged[i].high < 1;
            bool claims = judged[i].verdict == VERDICT_HIGHER || judged[i].verdict == VERDICT_LOWER;
            assert_int_equal(excludes_one, claims);
            assert_true(!claims || (judged[i].ratio > 1) == (judged[i].verdict == VERDICT_HIGHER));
            shown += claims;
        }
    }
    assert_true(shown > 1000);
}

static void worse_is_shown_refuted_or_open(void **state)
{
    static const struct {
        double change, se;
        bool higher_is_worse;
        enum judge_worse worse;
    } cases[] = {
        {0, 0.01, false, WORSE_NO},        {0, 0.01, true, WORSE_NO},
        {0, 0.05, false, WORSE_OPEN},      {-0.10, 0.01, false, WORSE_YES},
        {-0.10, 0.01, true, WORSE_NO},     {0.10, 0.01, true, WORSE_YES},
        {0.10, 0.01, false, WORSE_NO},     {-0.06, 0.02, false, WORSE_YES},
        {-0.04, 0.015, false, WORSE_OPEN}, // slower, but whether by 5 % is not settled
        {-0.03, 0.005, false, WORSE_NO},   // slower, but by less than 5 %
        {-0.20, 0.15, false, WORSE_OPEN},  // much slower as estimated, but not shown
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct effect e = effect_at(log1p(cases[i].change), cases[i].se, 50);
        struct judgement j;
        judge_family(&e, 1, NULL, &j);
        assert_int_equal(judge_worse(&e, &j, 0.05, cases[i].higher_is_worse), cases[i].worse);
    }
    struct effect one = effect_at(-0.5, NAN, 0);
    struct judgement j;
    judge_family(&one, 1, NULL, &j);
    assert_int_equal(judge_worse(&one, &j, 0.05, false), WORSE_OPEN);
}

static void planning_agrees_with_itself_and_with_tables(void **state)
{
    // Paired, effect of half a standard deviation: 34 pairs (Cohen 1988).
    struct effect e = effect_at(0, 0.1 / sqrt(10), 9);

    (void)state;
    e.unit_var = 0.01;
    assert_int_equal(judge_needed(&e, expm1(0.05), 0.05), 34);
    assert_int_equal(judge_needed(&e, expm1(-0.05), 0.05), 34);
    // Two groups: 64 in each.
    e.unit_var = 0.02;
    e.unit_degrees = 2;
    assert_int_equal(judge_needed(&e, expm1(0.05), 0.05), 64);
    for (int n = 3; n < 60; n += 8) {
        struct effect own = effect_at(0, 0.02, n - 1);
        double change = judge_detectable(&own, 0.05);
        assert_true(fabs(judge_power(&own, change, n, 0.05) - JUDGE_POWER) < 1e-3);
        assert_in_range(judge_needed(&own, change * 1.0001, 0.05), n - 1, n);
    }
    e.unit_var = 1e9;
    assert_int_equal(judge_needed(&e, 0.01, 0.05), JUDGE_NEEDED_MAX);
    e.unit_var = e.se = 0;
    assert_int_equal(judge_needed(&e, 0.01, 0.05), 2);
    assert_true(judge_detectable(&e, 0.05) == 0);
}

static void a_study_stops_when_it_stays_narrow(void **state)
{
    struct stop_rule rule = {.width = 0.03, .min_blocks = 8, .max_blocks = 20};
    struct effect wide = effect_at(0.5, 0.05, 10), narrow = effect_at(0.5, 0.01, 10);

    (void)state;
    assert_int_equal(stop_look(&rule, &narrow, 1, 5), STOP_NOT_YET); // too soon to count
    assert_int_equal(rule.narrow, 0);
    assert_int_equal(stop_look(&rule, &narrow, 1, 6), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, &narrow, 1, 7), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, &narrow, 1, 8), STOP_NARROW);
    rule.narrow = 0;
    assert_int_equal(stop_look(&rule, &narrow, 1, 9), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, &narrow, 1, 10), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, &wide, 1, 11), STOP_NOT_YET); // begins anew
    assert_int_equal(stop_look(&rule, &narrow, 1, 12), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, &narrow, 1, 13), STOP_NOT_YET);
    struct effect both[] = {narrow, wide};
    assert_int_equal(stop_look(&rule, both, 2, 14), STOP_NOT_YET);
    assert_int_equal(stop_look(&rule, both, 2, 20), STOP_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holm_adjusts_as_published),
        cmocka_unit_test(verdicts_follow_from_interval_and_margin),
        cmocka_unit_test(more_comparisons_ask_for_clearer_ones),
        cmocka_unit_test(no_interval_contradicts_its_verdict),
        cmocka_unit_test(worse_is_shown_refuted_or_open),
        cmocka_unit_test(planning_agrees_with_itself_and_with_tables),
        cmocka_unit_test(a_study_stops_when_it_stays_narrow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
