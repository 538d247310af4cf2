// Sorting and medians of plain numbers.
#pragma once

void order_sort(double *values, int n); // ascending

// The middle value, or the mean of the two in the middle. n > 0. The first sorts the values.
double order_median_sort(double *values, int n);
double order_median(const double *values, int n);

// A copy; the caller frees it. n > 0.
double *order_copy(const double *values, int n);
