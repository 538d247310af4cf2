#include "stats/interval.h"

#include <assert.h>
#include <math.h>

// P(|T| <= t) for whole degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 (odd)
// and 26.7.4 (even), in the angle whose tangent is t / sqrt(degrees).
static double student_within(double t, int degrees)
{
    double angle = atan(t / sqrt(degrees));
    double cosine_sq = cos(angle) * cos(angle);
    double odd = degrees % 2;
    double term = odd ? cos(angle) : 1, sum = 0;

    for (int i = degrees % 2; i <= degrees - 2; i += 2) {
        sum += term;
        term *= cosine_sq * (i + 1) / (i + 2);
    }
    return odd ? 2 / M_PI * (angle + sin(angle) * sum) : sin(angle) * sum;
}

double interval_student_95(int degrees)
{
    const int normal_from = 10000; // there the difference to the normal law is in the fifth digit
    double low = 1.9, high = 12.8; // between those of infinitely many degrees and of one

    assert(degrees >= 1);
    degrees = degrees > normal_from ? normal_from : degrees;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (student_within(middle, degrees) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
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
