// Effects: against worked examples, published tables, and the properties that ratios must have.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "stats/effect.h"
#include "stats/student.h"

static void near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        print_error("got %.9g, expected %.9g\n", got, expected);
    assert_true(fabs(got - expected) <= tolerance);
}

static void power_is_that_of_published_tables(void **state)
{
    // Cohen's (1988) standard cases, to more digits by other programs: medium effect, 5 %.
    (void)state;
    near(student_power(0.5 * sqrt(32), student_quantile(0.975, 126), 126), 0.8015, 0.0002);
    near(student_power(0.5 * sqrt(34), student_quantile(0.975, 33), 33), 0.8078, 0.0002);
    // Without a shift it is the size of the test, whatever the degrees.
    for (int degrees = 1; degrees < 300; degrees += 7)
        near(student_power(0, student_quantile(0.975, degrees), degrees), 0.025, 0.0001);
}

static void tails_are_those_of_the_tables(void **state)
{
    (void)state;
    near(student_outside(2.776, 4), 0.05, 0.0001);
    near(student_outside(-2.776, 4), 0.05, 0.0001);
    near(student_above(1.96, 1e9), 0.025, 0.0001);
    near(student_f_above(3.885, 2, 12), 0.05, 0.0001);
    assert_true(student_above(INFINITY, 3) == 0 && student_above(-INFINITY, 3) == 1);
}

static void pairs_give_students_interval_of_the_log_ratio(void **state)
{
    // Log ratios 0.08, 0.10, 0.12: mean 0.1, standard error 0.02 / sqrt(3), t of 2 degrees 4.303.
    double old[] = {100, 400, 50}, new[3], low, high;
    struct effect e;

    (void)state;
    for (int i = 0; i < 3; i++)
        new[i] = old[i] * exp(0.08 + 0.02 * i);
    effect_paired(old, new, 3, &e);
    assert_int_equal(e.n_old, 3);
    near(e.log_ratio, 0.1, 1e-12);
    near(e.se, 0.02 / sqrt(3), 1e-12);
    near(e.degrees, 2, 0);
    effect_interval(&e, 0.95, &low, &high);
    near(low, exp(0.1 - 4.3027 * 0.011547), 1e-4);
    near(high, exp(0.1 + 4.3027 * 0.011547), 1e-4);
    near(effect_p(&e), 0.01307, 1e-4); // t = 8.660
}

static void what_a_block_shares_does_not_count_in_pairs(void **state)
{
    double old[] = {100, 300, 900}, new[] = {110, 330, 990};
    struct effect paired, unpaired;

    (void)state;
    effect_paired(old, new, 3, &paired);
    effect_unpaired(old, 3, new, 3, &unpaired);
    near(paired.log_ratio, log(1.1), 1e-12);
    near(unpaired.log_ratio, log(1.1), 1e-12);
    assert_true(paired.se < 1e-9 && unpaired.se > 0.8);
    assert_true(effect_p(&paired) < 1e-6 && effect_p(&unpaired) > 0.8);
}

static void welch_takes_his_degrees_of_freedom(void **state)
{
    double a[] = {exp(1), exp(2), exp(3)}, b[] = {exp(2), exp(3), exp(4)}, same[] = {7, 7, 7};
    struct effect e;

    (void)state;
    effect_unpaired(a, 3, b, 3, &e); // equal variances of 1: as many degrees as the pooled test
    near(e.log_ratio, 1, 1e-12);
    near(e.se, sqrt(2.0 / 3), 1e-12);
    near(e.degrees, 4, 1e-9);
    near(e.unit_var, 2, 1e-12);
    near(e.unit_degrees, 2, 1e-9);
    effect_unpaired(a, 3, same, 3, &e); // one side has no noise: the other's alone
    near(e.degrees, 2, 1e-9);
    near(e.unit_degrees, 1, 1e-9);
}

static void published_figures_of_file_systems_are_judged(void **state)
{
    // pgbench on three file systems, 17 runs each (2006): JFS 462 (104), XFS 425 (74), ext3 319
    // (106).
    const struct summary jfs = {462, 104, 17}, xfs = {425, 74, 17}, ext3 = {319, 106, 17};
    struct effect e;
    double low, high;

    (void)state;
    assert_int_equal(effect_published(&jfs, &xfs, &e), 0);
    near(e.log_ratio / e.se, -1.21, 0.01); // Welch's t is 1.20 on the plain scale
    near(effect_p(&e), 0.235, 0.005);
    assert_int_equal(effect_published(&jfs, &ext3, &e), 0);
    assert_true(effect_p(&e) < 0.001);
    effect_interval(&e, 0.95, &low, &high);
    near(low, 0.566, 0.002);
    near(high, 0.842, 0.002);
}

static void a_published_mean_that_is_hardly_known_has_no_ratio(void **state)
{
    const struct summary good = {100, 5, 4}, vague = {100, 41, 4}, edge = {100, 39, 4};
    struct effect e;

    (void)state;
    assert_true(effect_published(&good, &vague, &e) < 0);
    assert_true(effect_published(&vague, &good, &e) < 0);
    assert_int_equal(effect_published(&edge, &good, &e), 0);
}

static void swapping_the_sides_inverts_the_ratio(void **state)
{
    double a[] = {90, 105, 99, 120}, b[] = {110, 108, 131, 125}, low, high, low2, high2;
    struct effect ab, ba;

    (void)state;
    for (int paired = 0; paired < 2; paired++) {
        if (paired) {
            effect_paired(a, b, 4, &ab);
            effect_paired(b, a, 4, &ba);
        } else {
            effect_unpaired(a, 4, b, 4, &ab);
            effect_unpaired(b, 4, a, 4, &ba);
        }
        effect_interval(&ab, 0.9, &low, &high);
        effect_interval(&ba, 0.9, &low2, &high2);
        near(low * high2, 1, 1e-12);
        near(high * low2, 1, 1e-12);
        near(effect_p(&ab), effect_p(&ba), 1e-12);
        near(effect_p_above(&ab, 1.05), effect_p_below(&ba, 1 / 1.05), 1e-12);
        near(effect_p_same(&ab, 0.02), effect_p_same(&ba, 0.02), 1e-12);
    }
}

static void too_few_values_are_not_known(void **state)
{
    double one[] = {100}, two[] = {100, 110};
    struct effect e;

    (void)state;
    effect_paired(one, one, 1, &e);
    assert_true(!effect_is_known(&e) && e.log_ratio == 0 && isnan(e.se));
    effect_paired(NULL, NULL, 0, &e);
    assert_true(!effect_is_known(&e) && isnan(e.log_ratio));
    effect_unpaired(one, 1, two, 2, &e);
    assert_true(!effect_is_known(&e) && e.log_ratio > 0);
    effect_unpaired(two, 2, two, 2, &e);
    assert_true(effect_is_known(&e));
    near(effect_p(&e), 1, 1e-12);
}

static void sameness_needs_the_whole_interval_within_the_margin(void **state)
{
    struct effect e = {.log_ratio = 0.005, .se = 0.005, .degrees = 1e6};

    (void)state;
    assert_true(effect_p_same(&e, 0.02) < 0.05); // 3 standard errors from the upper margin
    e.log_ratio = 0.0125;                        // 1.46 from it: not enough, as 1.645 would be
    assert_true(effect_p_same(&e, 0.02) > 0.05);
    e.log_ratio = 0.0125 - 0.0015;
    assert_true(effect_p_same(&e, 0.02) < 0.05);
    e.log_ratio = -0.0125;
    assert_true(effect_p_same(&e, 0.02) > 0.05);
    e.se = 0.02; // too vague for any claim
    e.log_ratio = 0;
    assert_true(effect_p_same(&e, 0.02) > 0.05);
}

static void values_without_noise_are_taken_at_their_word(void **state)
{
    struct effect e = {.log_ratio = 0, .se = 0, .degrees = 3};

    (void)state;
    near(effect_p(&e), 1, 0);
    e.log_ratio = 0.1;
    near(effect_p(&e), 0, 0);
    near(effect_p_above(&e, 1.05), 0, 0);
    near(effect_p_below(&e, 1.05), 1, 0);
}

static void clusters_count_once_whatever_their_size(void **state)
{
    double values[] = {exp(1), exp(5), exp(3), exp(6), exp(8)};
    int cluster[] = {9, -4, 9, -4, 70};
    double means[5];

    (void)state;
    assert_int_equal(cluster_means(values, cluster, 5, means), 3);
    near(log(means[0]), 2, 1e-12);
    near(log(means[1]), 5.5, 1e-12);
    near(log(means[2]), 8, 1e-12);
    assert_int_equal(cluster_means(NULL, NULL, 0, means), 0);
}

static void clusters_that_differ_are_seen(void **state)
{
    double values[12];
    int cluster[12], seen = 0, differ = 0;
    struct rng rng;

    (void)state;
    rng_init(&rng, 11, 0, RNG_DATA);
    for (int study = 0; study < 2000; study++) {
        for (int i = 0; i < 12; i++) {
            cluster[i] = i / 3;
            values[i] = exp(0.03 * (rng_double(&rng) + rng_double(&rng) + rng_double(&rng)));
        }
        seen += cluster_p(values, cluster, 12) < 0.05;
        for (int i = 0; i < 12; i++)
            values[i] *= exp(0.05 * cluster[i]);
        differ += cluster_p(values, cluster, 12) < 0.05;
    }
    near(seen / 2000.0, 0.05, 0.015);
    assert_true(differ > 1900);
    assert_true(cluster_p(values, cluster, 3) == 1); // one cluster
    cluster[0] = 100, cluster[1] = 101, cluster[2] = 102;
    assert_true(cluster_p(values, cluster, 3) == 1); // none of two
}

static void far_values_are_marked_and_others_seldom(void **state)
{
    double stalled[] = {1000, 1010, 990, 1005, 480, 1002, 995};
    bool marks[20];
    struct rng rng;
    int marked = 0;

    (void)state;
    assert_int_equal(outliers_mark(stalled, 7, marks), 1);
    assert_true(marks[4]);
    stalled[4] = 1001;
    assert_int_equal(outliers_mark(stalled, 7, marks), 0);
    stalled[4] = 1018; // far for these, but nobody's business
    assert_int_equal(outliers_mark(stalled, 7, marks), 0);
    assert_int_equal(outliers_mark(stalled, 4, marks), 0);
    rng_init(&rng, 7, 0, RNG_DATA);
    for (int study = 0; study < 2000; study++) {
        double values[20];
        int n = 5 + study % 16;
        for (int i = 0; i < n; i++) {
            double sum = -6;
            for (int j = 0; j < 12; j++)
                sum += rng_double(&rng);
            values[i] = exp(0.05 * sum);
        }
        marked += outliers_mark(values, n, marks) > 0;
    }
    assert_true(marked < 2000 * 0.04);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_is_that_of_published_tables),
        cmocka_unit_test(tails_are_those_of_the_tables),
        cmocka_unit_test(pairs_give_students_interval_of_the_log_ratio),
        cmocka_unit_test(what_a_block_shares_does_not_count_in_pairs),
        cmocka_unit_test(welch_takes_his_degrees_of_freedom),
        cmocka_unit_test(published_figures_of_file_systems_are_judged),
        cmocka_unit_test(a_published_mean_that_is_hardly_known_has_no_ratio),
        cmocka_unit_test(swapping_the_sides_inverts_the_ratio),
        cmocka_unit_test(too_few_values_are_not_known),
        cmocka_unit_test(sameness_needs_the_whole_interval_within_the_margin),
        cmocka_unit_test(values_without_noise_are_taken_at_their_word),
        cmocka_unit_test(clusters_count_once_whatever_their_size),
        cmocka_unit_test(clusters_that_differ_are_seen),
        cmocka_unit_test(far_values_are_marked_and_others_seldom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
