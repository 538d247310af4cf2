// Histogram of durations: log-linear, at most 1 % relative error from 1 us to 1 hour.
//
// Values are nanoseconds. A bucket is one of HIST_SUB (128) equal steps within a power of two, so
// it is at most 1/128 of its lower bound wide; a quantile is the middle of its bucket, hence at
// most 0.4 % off. Below 256 ns buckets are exact; values above HIST_MAX_NS count in the last bucket
// (max stays exact). Two forms: `hist` is dense, for recording (no allocation, a few instructions);
// `hist_sparse` keeps only buckets in use, for one histogram per second. Both also keep count, sum,
// sum of squares, min, max. Not thread-safe: one writer; merge when the writer is done.
//
// Buckets in use always lie in [hist_bucket(min_ns), hist_bucket(max_ns)]: walk only those.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define HIST_SUB_BITS 7
#define HIST_SUB      (1 << HIST_SUB_BITS)
#define HIST_TOP_BIT  42 // values from 2^42 ns (73 min) on share the last bucket
#define HIST_MAX_NS   (((int64_t)1 << HIST_TOP_BIT) - 1)
#define HIST_BUCKETS  ((HIST_TOP_BIT - HIST_SUB_BITS + 1) * HIST_SUB)

struct hist_moments {
    int64_t count;
    int64_t min_ns; // INT64_MAX while empty
    int64_t max_ns; // 0 while empty
    double sum_ns;
    double sum_sq; // ns squared
};

struct hist { // 36 KiB: not for a small thread's stack
    struct hist_moments m;
    uint64_t counts[HIST_BUCKETS];
};

// Zeroed memory is an empty one. A bucket that holds more than 2^32 - 1 stands in several entries.
struct hist_sparse {
    struct hist_moments m;
    int n;            // entries
    uint16_t *bucket; // ascending
    uint32_t *counts; // each > 0
};

int64_t hist_bucket_low(int bucket);  // smallest value in it, ns
int64_t hist_bucket_high(int bucket); // largest value in it, ns
int64_t hist_bucket_mid(int bucket);  // what a quantile in it reports, ns

// Bucket of a value; negative values count as 0. In [0, HIST_BUCKETS).
static inline int hist_bucket(int64_t ns)
{
    uint64_t v = (uint64_t)(ns < 0 ? 0 : ns > HIST_MAX_NS ? HIST_MAX_NS : ns);
    // The lowest two ranges, [0, 128) and [128, 256), both have steps of 1.
    int shift = 63 - HIST_SUB_BITS - __builtin_clzll(v | HIST_SUB);
    return (shift << HIST_SUB_BITS) + (int)(v >> shift);
}

void hist_init(struct hist *h);
void hist_clear(struct hist *h); // as hist_init on a used one, but touches only the range in use
void hist_add(struct hist *to, const struct hist *from);
void hist_add_sparse(struct hist *to, const struct hist_sparse *from);

// Hot path: about 2 ns. A negative duration (clocks never go back; a caller's mistake) counts as 0.
static inline void hist_record(struct hist *h, int64_t ns)
{
    ns = ns < 0 ? 0 : ns;
    double x = (double)ns;
    h->counts[hist_bucket(ns)]++;
    h->m.count++;
    h->m.min_ns = ns < h->m.min_ns ? ns : h->m.min_ns;
    h->m.max_ns = ns > h->m.max_ns ? ns : h->m.max_ns;
    h->m.sum_ns += x;
    h->m.sum_sq += x * x;
}

// A sparse copy, allocated; `to` is overwritten without being released. Then hist_sparse_release.
void hist_sparse_from(struct hist_sparse *to, const struct hist *from);
// Merges into an existing one (possibly zeroed); allocates.
void hist_sparse_add(struct hist_sparse *to, const struct hist *from);
void hist_sparse_release(struct hist_sparse *s); // frees; s is empty and usable afterwards

// Value at quantile q in [0, 1]: the middle of the bucket that holds the ceil(q * count)-th
// smallest value, limited to [min, max]; min and max themselves where that value is the first or
// the last; 0 when empty.
int64_t hist_quantile(const struct hist *h, double q);
int64_t hist_sparse_quantile(const struct hist_sparse *s, double q);
double hist_mean_ns(const struct hist_moments *m); // exact but for rounding; 0 when empty
double hist_sd_ns(const struct hist_moments *m);   // of the sample (n - 1); 0 below two values

// Share of recorded values strictly above ns, in [0, 1]; 0 when empty. Exact for ns outside
// [min, max); the one bucket that ns divides counts by linear interpolation.
double hist_share_above(const struct hist *h, int64_t ns);

// Appends the bytes for the store: version byte, moments, pairs of (bucket delta, count) as LEB128
// varints, checksum. Some 3 bytes per bucket in use.
void hist_encode(const struct hist_sparse *s, struct str *out);
// s is overwritten without being released. Negative for bytes that are not exactly one such
// histogram (damaged, truncated, with more behind it, or inconsistent); s is then empty.
int hist_decode(struct hist_sparse *s, const void *bytes, int64_t n_bytes);
