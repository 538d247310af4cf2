// How much a new set-up differs from an old one: the natural logarithm of the ratio new / old of a
// measure that is positive (throughput, a latency percentile), with its standard error.
//
// On the log scale a change by a factor is a shift, noise that is proportional to the level has one
// standard deviation, and `twice` and `half` are equally far from `the same`. Formulas:
//   paired    one value per block: d = log(new / old); mean(d), sd(d) / sqrt(n), n - 1 degrees
//             (Student 1908). What a block shares - the hour, the drift, the session - cancels.
//   unpaired  Welch (1947) on the logs: mean(log new) - mean(log old), sqrt(s1^2/n1 + s2^2/n2),
//             degrees by Satterthwaite (1946).
//   published means and standard deviations only: log of the ratio of means, by the delta method
//             (s / mean)^2 / n for the variance of the log of each mean, degrees likewise.
// Assumptions, and how well each keeps what it promises: docs/statistics.md. Pure functions.
#pragma once

#include <stdbool.h>

enum effect_design { EFFECT_PAIRED, EFFECT_UNPAIRED };

struct effect {
    enum effect_design design;
    int n_old, n_new; // values on each side; paired: both the number of pairs
    double log_ratio; // estimate; NaN when a side has no value
    double se;        // its standard error; NaN when there are too few values
    double degrees;   // of freedom of se; 0 when there are too few values
    // For planning: with n pairs, or n values on each side, the squared standard error would be
    // unit_var / n with unit_degrees * (n - 1) degrees.
    double unit_var, unit_degrees;
};

struct summary {
    double mean, sd; // sd: of single values, not of the mean
    int n;
};

// Of pairs: old[i] and new[i] belong to one block. All values positive and finite. n >= 0.
void effect_paired(const double *old, const double *new, int n, struct effect *ret);
// Of ratios new / old, one for each block, cell of a cluster, or whatever was paired.
void effect_of_ratios(const double *ratios, int n, struct effect *ret);

void effect_unpaired(const double *old, int n_old, const double *new, int n_new,
                     struct effect *ret);

// Means must be positive, sd >= 0, n >= 2. The ratio of two means is only as near to normal as the
// means are known: negative (ret untouched) when one has a standard error of over a fifth of
// itself.
int effect_published(const struct summary *old, const struct summary *new, struct effect *ret);

void effect_summary(const double *values, int n, struct summary *ret);

// Can anything be said? False for a single value on a side.
bool effect_is_known(const struct effect *effect);

// The interval of the ratio at a level such as 0.95. Only for known effects, like all below.
void effect_interval(const struct effect *effect, double level, double *ret_low, double *ret_high);

// p-values. Two-sided for "the ratio is 1".
double effect_p(const struct effect *effect);
// One-sided for "the ratio is at most / at least this": small when it is shown to be above / below.
double effect_p_above(const struct effect *effect, double ratio);
double effect_p_below(const struct effect *effect, double ratio);
// Two one-sided tests (Schuirmann 1987) for "differs by more than a factor of 1 + margin".
double effect_p_same(const struct effect *effect, double margin);

// ---- levels above the run

// Geometric mean of each cluster's values, in order of first appearance: what a volume, a boot or a
// session gave, so that statistics count these and not the runs in them (Kalibera and Jones 2013).
// cluster[i] is any number. Returns the number of clusters; means has room for n.
int cluster_means(const double *values, const int *cluster, int n, double *means);

// Do clusters differ by more than their values would by chance? p-value of the one-way analysis of
// variance on the logs; 1 where it cannot be told (one cluster, or no cluster of two).
double cluster_p(const double *values, const int *cluster, int n);

// ---- odd values

// Marks values that lie far from the rest: over 4.5 robust standard deviations (of the logs, from
// their median, by the median absolute deviation; Iglewicz and Hoaglin 1993 with a wider limit for
// few values) and over 2 % from the median. For telling, never for leaving out. Below 5 values
// none. Returns how many are marked.
int outliers_mark(const double *values, int n, bool *marks);
