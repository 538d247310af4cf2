// A sparse histogram as bytes:
//
//     version (1) | count min max (varints) | sum sum_sq (8 bytes each, IEEE 754, little-endian)
//     | entries (varint) | per entry: bucket minus the one before, count (varints)
//     | checksum of all before (4 bytes, little-endian)
//
// An empty histogram has min = max = 0 and no entries. The checksum (FNV-1a, 32 bits) is there
// because a flipped bit in a sum can be seen by nothing else; every single damaged byte is found,
// other damage is missed once in 2^32. What it lets through is still checked in full, so that
// whatever decode accepts keeps the invariants of hist.h.
#include "stats/hist.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

#define HIST_VERSION    1
#define HIST_MIN_BYTES  (1 + 3 + 16 + 1 + 4)
#define HIST_SUM_OFF_BY 1e-6 // relative; sums are rounded, count * min and count * max are not

_Static_assert(sizeof(double) == sizeof(uint64_t), "sums are stored as 64 bits");

static uint32_t checksum(const unsigned char *bytes, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ bytes[i]) * 16777619u;
    }
    return hash;
}

static void put_varint(struct str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        str_addc(out, (char)(value | 0x80));
    }
    str_addc(out, (char)value);
}

static void put_fixed(struct str *out, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) {
        str_addc(out, (char)(value >> (8 * i)));
    }
}

static void put_double(struct str *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_fixed(out, bits, 8);
}

void hist_encode(const struct hist_sparse *s, struct str *out)
{
    size_t start = out->len;
    bool empty = s->m.count == 0;
    assert(empty == (s->n == 0));
    str_reserve(out, HIST_MIN_BYTES + 24 + (size_t)s->n * 4);
    put_fixed(out, HIST_VERSION, 1);
    put_varint(out, (uint64_t)s->m.count);
    put_varint(out, empty ? 0 : (uint64_t)s->m.min_ns);
    put_varint(out, empty ? 0 : (uint64_t)s->m.max_ns);
    put_double(out, s->m.sum_ns);
    put_double(out, s->m.sum_sq);
    put_varint(out, (uint64_t)s->n);
    int before = 0;
    for (int i = 0; i < s->n; i++) {
        assert(s->bucket[i] >= before && s->counts[i] > 0);
        put_varint(out, (uint64_t)(s->bucket[i] - before));
        put_varint(out, s->counts[i]);
        before = s->bucket[i];
    }
    put_fixed(out, checksum((const unsigned char *)out->buf + start, out->len - start), 4);
}

struct reader {
    const unsigned char *at, *end;
};

// Negative when the bytes end first or the value is over max (below 2^63).
static int take_varint(struct reader *r, int64_t max, int64_t *ret)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        if (r->at == r->end) {
            return -1;
        }
        unsigned char byte = *r->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = (int64_t)value;
            return value > (uint64_t)max ? -1 : 0;
        }
    }
    return -1;
}

static uint64_t take_fixed(struct reader *r, int n_bytes)
{
    assert(r->end - r->at >= n_bytes);
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) {
        value |= (uint64_t)*r->at++ << (8 * i);
    }
    return value;
}

static int take_double(struct reader *r, double *ret)
{
    if (r->end - r->at < 8) {
        return -1;
    }
    uint64_t bits = take_fixed(r, 8);
    memcpy(ret, &bits, sizeof(*ret));
    return isfinite(*ret) && *ret >= 0 ? 0 : -1;
}

static int take_moments(struct reader *r, struct hist_moments *m)
{
    if (take_varint(r, INT64_MAX, &m->count) < 0 || take_varint(r, INT64_MAX, &m->min_ns) < 0 ||
        take_varint(r, INT64_MAX, &m->max_ns) < 0 || take_double(r, &m->sum_ns) < 0 ||
        take_double(r, &m->sum_sq) < 0) {
        return -1;
    }
    if (m->count == 0) {
        bool empty = m->min_ns == 0 && m->max_ns == 0 && m->sum_ns == 0 && m->sum_sq == 0;
        m->min_ns = INT64_MAX;
        return empty ? 0 : -1;
    }
    double n = (double)m->count;
    double lowest = n * (double)m->min_ns * (1 - HIST_SUM_OFF_BY);
    double highest = n * (double)m->max_ns * (1 + HIST_SUM_OFF_BY);
    bool good = m->min_ns <= m->max_ns && m->sum_ns >= lowest && m->sum_ns <= highest;
    return good ? 0 : -1;
}

// Entries into s, which has room for them; they must add up to the moments.
static int take_entries(struct reader *r, struct hist_sparse *s)
{
    int64_t total = 0;
    int64_t bucket = 0;
    for (int i = 0; i < s->n; i++) {
        int64_t delta, count;
        if (take_varint(r, HIST_BUCKETS - 1 - bucket, &delta) < 0 ||
            take_varint(r, UINT32_MAX, &count) < 0 || count == 0) {
            return -1;
        }
        // Only a full entry is continued by another one of the same bucket.
        if (i > 0 && delta == 0 && s->counts[i - 1] != UINT32_MAX) {
            return -1;
        }
        bucket += delta;
        total += count; // n entries of 32 bits: no overflow
        s->bucket[i] = (uint16_t)bucket;
        s->counts[i] = (uint32_t)count;
    }
    if (total != s->m.count) {
        return -1;
    }
    return s->n == 0 || (s->bucket[0] == hist_bucket(s->m.min_ns) &&
                         s->bucket[s->n - 1] == hist_bucket(s->m.max_ns))
               ? 0
               : -1;
}

int hist_decode(struct hist_sparse *s, const void *bytes, int64_t n_bytes)
{
    struct hist_sparse got = {0};
    *s = (struct hist_sparse){.m.min_ns = INT64_MAX};
    if (n_bytes < HIST_MIN_BYTES) {
        return -1;
    }
    const unsigned char *start = bytes;
    struct reader r = {.at = start, .end = start + n_bytes - 4};
    struct reader tail = {.at = r.end, .end = start + n_bytes};
    if (take_fixed(&tail, 4) != checksum(start, (size_t)n_bytes - 4) ||
        take_fixed(&r, 1) != HIST_VERSION || take_moments(&r, &got.m) < 0) {
        return -1;
    }
    int64_t n;
    // An entry has two bytes or more: bounds what is allocated by what was read.
    if (take_varint(&r, INT32_MAX, &n) < 0 || n > (r.end - r.at) / 2) {
        return -1;
    }
    got.n = (int)n;
    if (n > 0) {
        got.bucket = mem_calloc((size_t)n, sizeof(*got.bucket));
        got.counts = mem_calloc((size_t)n, sizeof(*got.counts));
    }
    if (take_entries(&r, &got) < 0 || r.at != r.end) {
        hist_sparse_release(&got);
        return -1;
    }
    *s = got;
    return 0;
}
