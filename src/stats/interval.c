#include "stats/interval.h"

#include <assert.h>
#include <math.h>

#include "stats/student.h"

double interval_student_95(int degrees)
{
    assert(degrees >= 1);
    return student_quantile(0.975, degrees);
}

void interval_of_mean(const double *values, int n, struct interval *ret)
{
    double sum = 0, sum_sq = 0;

    assert(n >= 0);
    *ret = (struct interval){.mean = NAN, .low = NAN, .high = NAN, .n = n};
    if (n == 0)
        return;
    for (int i = 0; i < n; i++) {
        assert(isfinite(values[i]));
        sum += values[i];
    }
    ret->mean = sum / n;
    if (n < 2)
        return;
    for (int i = 0; i < n; i++)
        sum_sq += (values[i] - ret->mean) * (values[i] - ret->mean);
    double half = interval_student_95(n - 1) * sqrt(sum_sq / (n - 1) / n);
    ret->low = ret->mean - half;
    ret->high = ret->mean + half;
}

double interval_relative(const struct interval *interval)
{
    return (interval->high - interval->low) / 2 / fabs(interval->mean);
}
