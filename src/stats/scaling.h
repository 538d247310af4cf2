// Throughput over the number of clients, by the Universal Scalability Law (Gunther 2007):
//
//     X(N) = rate_one N / (1 + contention (N - 1) + coherency N (N - 1))
//
// rate_one is what one client would get; contention the share of work that only one can do at a
// time (coherency 0 gives Amdahl's law); coherency what each pair of clients costs. With coherency
// the curve has a peak at sqrt((1 - contention) / coherency) clients.
//
// Fit: least squares on the logs, for noise is proportional to the level; both shares >= 0.
// Intervals: profile likelihood (Bates and Watts 1988, chapter 6): the range of each number over
// all (contention, coherency) whose residual sum of squares lies within the t bound for n - 3
// degrees, so that they need not be symmetric and may end at 0 or infinity. Pure functions.
#pragma once

#include <stdbool.h>

struct scaling_number {
    double value, low, high; // 95 %
};

struct scaling {
    struct scaling_number rate_one;
    struct scaling_number contention; // share, 0.03: 3 %
    struct scaling_number coherency;
    struct scaling_number peak_clients; // INFINITY: no peak
    struct scaling_number peak_rate;    // INFINITY: grows without bound
    bool peak_is_inside; // measured beyond the peak, as estimated; else the peak is extrapolated
    double noise;        // standard deviation of a run around the curve, in parts: 0.02
    double p_misfit; // small: runs scatter around the curve more than around their own means, so
                     // the law does not describe them; 1 when nothing was measured twice
};

#define SCALING_SIZES_MIN 4 // different numbers of clients

// clients[i] >= 1 and rate[i] > 0 of n runs. Negative when there are fewer than SCALING_SIZES_MIN
// different numbers of clients; ret is then untouched.
int scaling_fit(const double *clients, const double *rate, int n, struct scaling *ret);

// The fitted throughput at a number of clients.
double scaling_rate(const struct scaling *fit, double clients);
