// Histogram of durations: log-linear, at most 1 % relative error from 1 us to 1 hour.
//
// Values are nanoseconds. A bucket is HIST_SUB (128) equal steps within each power of two, so it is
// at most 1/128 of its lower bound wide; a quantile is the middle of its bucket, hence at most 0.4
// % off. Below 128 ns buckets are exact; above HIST_MAX_NS values count in the last bucket (max
// stays exact). Two forms: `hist` is dense, for recording (no allocation, a few instructions);
// `hist_sparse` keeps only buckets in use, for one histogram per second. Both also keep count, sum,
// sum of squares, min, max. Not thread-safe: one writer; merge when the writer is done.
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
    int64_t max_ns;
    double sum_ns;
    double sum_sq; // ns squared
};

struct hist {
    struct hist_moments m;
    int low, high; // buckets in use lie in [low, high]; low > high while empty
    uint64_t counts[HIST_BUCKETS];
};

struct hist_sparse {
    struct hist_moments m;
    int n;            // entries
    uint16_t *bucket; // ascending
    uint32_t *counts; // a second never holds 2^32 of one kind; asserted
};

int hist_bucket(int64_t ns);          // of a value; negative values count as 0
int64_t hist_bucket_low(int bucket);  // smallest value in it, ns
int64_t hist_bucket_high(int bucket); // largest value in it, ns
int64_t hist_bucket_mid(int bucket);  // what a quantile in it reports, ns

void hist_init(struct hist *h);
void hist_record(struct hist *h, int64_t ns); // hot path
void hist_clear(struct hist *h);              // cheap: only the range in use
void hist_add(struct hist *to, const struct hist *from);
void hist_add_sparse(struct hist *to, const struct hist_sparse *from);

void hist_sparse_from(struct hist_sparse *to,
                      const struct hist *from); // allocates; to is overwritten
void hist_sparse_add(struct hist_sparse *to,
                     const struct hist *from); // merges into an existing one
void hist_sparse_release(struct hist_sparse *s);

// Value at quantile q in [0, 1]: the middle of the bucket that holds the ceil(q * count)-th
// smallest value, limited to [min, max]; 0 when empty.
int64_t hist_quantile(const struct hist *h, double q);
int64_t hist_sparse_quantile(const struct hist_sparse *s, double q);
double hist_mean_ns(const struct hist_moments *m);
double hist_sd_ns(const struct hist_moments *m); // sample standard deviation; 0 below two values

// Share of recorded values strictly above ns (by bucket; partial buckets count by linear
// interpolation).
double hist_share_above(const struct hist *h, int64_t ns);

// Bytes for the store: moments and (bucket delta, count) pairs as LEB128 varints, versioned by the
// first byte. decode returns negative for bytes that are not such a histogram (never crashes).
void hist_encode(const struct hist_sparse *s, struct str *out);
int hist_decode(struct hist_sparse *s, const void *bytes, int64_t n_bytes);
