// Histogram of durations: merging, quantiles, and the two forms. The bytes for the store are in
// hist_code.c.
#include "stats/hist.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

_Static_assert(HIST_BUCKETS <= UINT16_MAX, "hist_sparse keeps bucket numbers in 16 bits");

static const struct hist_moments moments_empty = {.min_ns = INT64_MAX};

int64_t hist_bucket_low(int bucket)
{
    assert(bucket >= 0 && bucket < HIST_BUCKETS);
    if (bucket < 2 * HIST_SUB) {
        return bucket;
    }
    int shift = (bucket >> HIST_SUB_BITS) - 1;
    return (int64_t)(HIST_SUB + (bucket & (HIST_SUB - 1))) << shift;
}

int64_t hist_bucket_high(int bucket)
{
    return bucket == HIST_BUCKETS - 1 ? HIST_MAX_NS : hist_bucket_low(bucket + 1) - 1;
}

int64_t hist_bucket_mid(int bucket)
{
    return (hist_bucket_low(bucket) + hist_bucket_high(bucket)) / 2;
}

void hist_init(struct hist *h)
{
    memset(h, 0, sizeof(*h));
    h->m = moments_empty;
}

void hist_clear(struct hist *h)
{
    if (h->m.count == 0) {
        return;
    }
    int low = hist_bucket(h->m.min_ns);
    int high = hist_bucket(h->m.max_ns);
    assert(low <= high);
    memset(&h->counts[low], 0, (size_t)(high - low + 1) * sizeof(h->counts[0]));
    h->m = moments_empty;
}

// Also right for a zeroed `to` or `from`, whose min is not INT64_MAX.
static void moments_add(struct hist_moments *to, const struct hist_moments *from)
{
    if (from->count == 0) {
        return;
    }
    if (to->count == 0) {
        *to = *from;
        return;
    }
    to->count += from->count;
    to->min_ns = from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    to->sum_ns += from->sum_ns;
    to->sum_sq += from->sum_sq;
}

void hist_add(struct hist *to, const struct hist *from)
{
    assert(to != from);
    if (from->m.count == 0) {
        return;
    }
    int high = hist_bucket(from->m.max_ns);
    for (int b = hist_bucket(from->m.min_ns); b <= high; b++) {
        to->counts[b] += from->counts[b];
    }
    moments_add(&to->m, &from->m);
}

void hist_add_sparse(struct hist *to, const struct hist_sparse *from)
{
    for (int i = 0; i < from->n; i++) {
        assert(from->bucket[i] < HIST_BUCKETS);
        to->counts[from->bucket[i]] += from->counts[i];
    }
    moments_add(&to->m, &from->m);
}

void hist_sparse_from(struct hist_sparse *to, const struct hist *from)
{
    *to = (struct hist_sparse){.m = from->m};
    if (from->m.count == 0) {
        return;
    }
    int low = hist_bucket(from->m.min_ns);
    int high = hist_bucket(from->m.max_ns);
    size_t n = 0;
    for (int b = low; b <= high; b++) {
        n += (size_t)(from->counts[b] / UINT32_MAX + (from->counts[b] % UINT32_MAX != 0));
    }
    to->bucket = mem_calloc(n, sizeof(*to->bucket));
    to->counts = mem_calloc(n, sizeof(*to->counts));
    for (int b = low; b <= high; b++) {
        for (uint64_t left = from->counts[b]; left > 0;) {
            uint32_t part = left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
            to->bucket[to->n] = (uint16_t)b;
            to->counts[to->n++] = part;
            left -= part;
        }
    }
    assert((size_t)to->n == n && n > 0);
}

void hist_sparse_add(struct hist_sparse *to, const struct hist *from)
{
    if (from->m.count == 0) {
        return;
    }
    struct hist *both = mem_calloc(1, sizeof(*both));
    hist_init(both);
    hist_add(both, from);
    hist_add_sparse(both, to);
    hist_sparse_release(to);
    hist_sparse_from(to, both);
    free(both);
}

void hist_sparse_release(struct hist_sparse *s)
{
    free(s->bucket);
    free(s->counts);
    *s = (struct hist_sparse){.m = moments_empty};
}

// ceil(q * count) in [1, count], but a product that misses a whole number only by rounding (0.07 *
// 100 is a little over 7) is that number.
static int64_t quantile_rank(double q, int64_t count)
{
    assert(q >= 0 && q <= 1 && count > 0);
    double exact = q * (double)count;
    double whole = nearbyint(exact);
    double rank = fabs(exact - whole) <= 4 * DBL_EPSILON * exact ? whole : ceil(exact);
    // Compared as doubles: above 2^53 a rank may round to more than count.
    return rank < 1 ? 1 : rank >= (double)count ? count : (int64_t)rank;
}

static int64_t clamp_ns(int64_t ns, const struct hist_moments *m)
{
    return ns < m->min_ns ? m->min_ns : ns > m->max_ns ? m->max_ns : ns;
}

int64_t hist_quantile(const struct hist *h, double q)
{
    if (h->m.count == 0) {
        return 0;
    }
    int64_t rank = quantile_rank(q, h->m.count);
    if (rank == 1 || rank == h->m.count) {
        return rank == 1 ? h->m.min_ns : h->m.max_ns;
    }
    uint64_t seen = 0;
    int b = hist_bucket(h->m.min_ns);
    int high = hist_bucket(h->m.max_ns);
    for (; b < high; b++) {
        seen += h->counts[b];
        if (seen >= (uint64_t)rank) {
            break;
        }
    }
    return clamp_ns(hist_bucket_mid(b), &h->m);
}

int64_t hist_sparse_quantile(const struct hist_sparse *s, double q)
{
    if (s->m.count == 0) {
        return 0;
    }
    assert(s->n > 0);
    int64_t rank = quantile_rank(q, s->m.count);
    if (rank == 1 || rank == s->m.count) {
        return rank == 1 ? s->m.min_ns : s->m.max_ns;
    }
    uint64_t seen = 0;
    int i = 0;
    for (; i < s->n - 1; i++) {
        seen += s->counts[i];
        if (seen >= (uint64_t)rank) {
            break;
        }
    }
    return clamp_ns(hist_bucket_mid(s->bucket[i]), &s->m);
}

double hist_mean_ns(const struct hist_moments *m)
{
    return m->count > 0 ? m->sum_ns / (double)m->count : 0;
}

double hist_sd_ns(const struct hist_moments *m)
{
    if (m->count < 2) {
        return 0;
    }
    double n = (double)m->count;
    double var = (m->sum_sq - m->sum_ns * (m->sum_ns / n)) / (n - 1);
    // Equal values: the difference of two equal large sums may come out just below 0.
    return var > 0 && m->min_ns < m->max_ns ? sqrt(var) : 0;
}

double hist_share_above(const struct hist *h, int64_t ns)
{
    if (h->m.count == 0 || ns >= h->m.max_ns) {
        return 0;
    }
    if (ns < h->m.min_ns) {
        return 1;
    }
    int at = hist_bucket(ns);
    int high = hist_bucket(h->m.max_ns);
    uint64_t above = 0;
    for (int b = at + 1; b <= high; b++) {
        above += h->counts[b];
    }
    // Values of the divided bucket spread evenly over what can be in use of it; the last bucket has
    // no upper bound of its own.
    int64_t to = at == high ? h->m.max_ns : hist_bucket_high(at);
    int64_t from = hist_bucket_low(at);
    from = from < h->m.min_ns ? h->m.min_ns : from;
    assert(from <= ns && ns <= to);
    double part = (double)(to - ns) / (double)(to - from + 1);
    return ((double)above + part * (double)h->counts[at]) / (double)h->m.count;
}
