// What was completed in one second: counters, and one histogram per channel (latency, service time,
// delay given by null, each statement).
//
// A dense histogram takes 36 KB; with a thread per client, thousands of clients and a channel per
// statement that is out of the question. So the buckets of all channels share one open-addressed
// hash table that holds only those in use, 8 bytes each. It grows (allocates) while the load finds
// its range, keeps its size when the tally is used again, and is bounded by channels x
// HIST_BUCKETS. Counting costs a few nanoseconds.
#pragma once

#include <assert.h>
#include <stdint.h>

#include "load/slowest.h"
#include "stats/hist.h"

enum tally_channel_index {
    TALLY_LATENCY,    // of transactions; from the planned start under a rate
    TALLY_SERVICE,    // of transactions from their real start; under a rate only
    TALLY_GIVEN,      // delays that null really gave; statements without one are not in it
    TALLY_STATEMENTS, // first of as many channels as the workload has statements
};

// The second that holds what was completed after the end: counted, never in a window.
#define TALLY_LATE INT32_MAX

struct tally_channel {
    struct hist_moments m;
    int64_t rows;   // statements only
    int64_t failed; // likewise
};

struct tally_slot { // free while count is 0
    uint32_t key;   // channel << 16 | bucket
    uint32_t count;
};

struct tally {
    struct tally *next; // in a chain between threads (load/recorder.h)
    int32_t second;     // since the load began, or TALLY_LATE
    int n_channels;
    int64_t done;
    int64_t errors; // failed tries, losses, refused connections
    int64_t lock_wait_ns;
    uint32_t n_used;
    uint32_t n_slots; // a power of two
    int shift;        // 32 - log2(n_slots)
    struct tally_slot *slots;
    struct slowest slowest;
    struct tally_channel channels[];
};

struct tally *tally_new(int n_channels);
void tally_free(struct tally *t);
void tally_clear(struct tally *t);                          // empty, second 0; keeps the memory
void tally_add(struct tally *to, const struct tally *from); // all but second and slowest
void tally_grow(struct tally *t);

// Adds count values of a bucket without touching the moments.
static inline void tally_count(struct tally *t, int channel, int bucket, uint32_t count)
{
    uint32_t key = (uint32_t)channel << 16 | (uint32_t)bucket;
    uint32_t i = key * 0x9e3779b1U >> t->shift; // the golden ratio spreads neighbouring buckets

    while (t->slots[i].count > 0 && t->slots[i].key != key)
        i = (i + 1) & (t->n_slots - 1);
    assert(count > 0 && t->slots[i].count <= UINT32_MAX - count); // 2^32 in a second: impossible
    if (t->slots[i].count == 0) {
        t->slots[i].key = key;
        t->n_used++;
    }
    t->slots[i].count += count;
    if (4 * t->n_used > 3 * t->n_slots)
        tally_grow(t);
}

// Hot path. Negative durations count as 0, as in hist_record.
static inline void tally_record(struct tally *t, int channel, int64_t ns)
{
    struct hist_moments *m = &t->channels[channel].m;

    ns = ns < 0 ? 0 : ns;
    double x = (double)ns;
    m->count++;
    m->min_ns = ns < m->min_ns ? ns : m->min_ns;
    m->max_ns = ns > m->max_ns ? ns : m->max_ns;
    m->sum_ns += x;
    m->sum_sq += x * x;
    tally_count(t, channel, hist_bucket(ns), 1);
}
