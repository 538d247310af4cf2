// The interval of a mean that was measured several times.
//
// Method, assumptions and references: docs/statistics.md. Pure functions.
#pragma once

struct interval {
    double mean;
    double low, high; // 95 %, around the mean; NaN when there are fewer than two values
    int n;            // values it rests on
};

// Student's interval of the mean of n independent values. NaN and infinite values are the caller's
// mistake. n 0 gives a mean of NaN.
void interval_of_mean(const double *values, int n, struct interval *ret);

// Half the width in parts of the mean: 0.03 is "plus or minus 3 %". NaN where there is none.
double interval_relative(const struct interval *interval);

// The quantile t of Student's distribution with P(|T| <= t) = 0.95. degrees >= 1.
double interval_student_95(int degrees);
