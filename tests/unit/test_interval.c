// Intervals of means: against published tables, a worked example, and a simulation of how often the
// truth lies inside.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "stats/interval.h"

static void student_is_that_of_the_tables(void **state)
{
    // Abramowitz and Stegun, table 26.10.
    static const struct {
        int degrees;
        double t;
    } cases[] = {{1, 12.706}, {2, 4.303},   {3, 3.182},      {4, 2.776},  {5, 2.571},
                 {6, 2.447},  {7, 2.365},   {8, 2.306},      {9, 2.262},  {10, 2.228},
                 {15, 2.131}, {19, 2.093},  {29, 2.045},     {30, 2.042}, {40, 2.021},
                 {60, 2.000}, {120, 1.980}, {1000000, 1.960}};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_true(fabs(interval_student_95(cases[i].degrees) - cases[i].t) < 0.0006);
}

static void a_worked_example_comes_out(void **state)
{
    // Mean 10, standard deviation 2, standard error 2 / sqrt(5), t of 4 degrees 2.776.
    static const double values[] = {8, 8, 10, 12, 12};
    struct interval interval;

    (void)state;
    interval_of_mean(values, 5, &interval);
    assert_int_equal(interval.n, 5);
    assert_true(fabs(interval.mean - 10) < 1e-12);
    assert_true(fabs(interval.low - (10 - 2.7764 * 2 / sqrt(5))) < 1e-3);
    assert_true(fabs(interval.high - (10 + 2.7764 * 2 / sqrt(5))) < 1e-3);
    assert_true(fabs(interval_relative(&interval) - 0.2483) < 1e-3);
}

static void too_few_values_have_no_interval(void **state)
{
    static const double one[] = {7};
    static const double equal[] = {7, 7, 7};
    struct interval interval;

    (void)state;
    interval_of_mean(NULL, 0, &interval);
    assert_true(isnan(interval.mean) && isnan(interval.low) && isnan(interval.high));
    interval_of_mean(one, 1, &interval);
    assert_true(interval.mean == 7 && isnan(interval.low) && isnan(interval_relative(&interval)));
    interval_of_mean(equal, 3, &interval);
    assert_true(interval.mean == 7 && interval.low == 7 && interval.high == 7);
}

// A sum of twelve uniform numbers is near enough to normal.
static double noise(struct rng *rng)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += rng_double(rng);
    return sum;
}

static void the_truth_lies_inside_as_often_as_promised(void **state)
{
    const int trials = 4000;
    struct rng rng;

    (void)state;
    rng_init(&rng, 42, 0, RNG_DATA);
    for (int n = 3; n <= 20; n += 5) {
        int inside = 0;
        for (int i = 0; i < trials; i++) {
            double values[20];
            struct interval interval;
            for (int j = 0; j < n; j++)
                values[j] = 100 + 10 * noise(&rng);
            interval_of_mean(values, n, &interval);
            inside += interval.low <= 100 && 100 <= interval.high;
        }
        double share = (double)inside / trials; // standard error 0.0034
        assert_true(share > 0.935 && share < 0.965);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(student_is_that_of_the_tables),
        cmocka_unit_test(a_worked_example_comes_out),
        cmocka_unit_test(too_few_values_have_no_interval),
        cmocka_unit_test(the_truth_lies_inside_as_often_as_promised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
