// The run so far, second by second, merged over all workers: the main thread's side of recording.
//
// The seconds worked on lately are tallies; older ones are packed to bytes (about 3 per bucket in
// use), so that memory grows with seconds, slowly, and never with transactions or clients. A
// worker whose client waits long for an answer hands a second over late: it is unpacked again.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "load/tally.h"

#define SECONDS_OPEN 8

struct second {
    int64_t done;
    int64_t errors;
    int64_t lock_wait_ns;
    char *packed; // channels with something in them; NULL when none, or while open
    int packed_len;
};

struct seconds { // one thread
    int n_channels;
    struct second *items; // by t_s
    int n;
    int cap;
    struct tally *open[SECONDS_OPEN]; // the latest used first; NULL: free
    struct hist *recent;              // latencies merged since seconds_take_recent
    struct slowest slowest;
    _Atomic int64_t slow_floor; // for the recorders
};

void seconds_init(struct seconds *s, int n_channels);
void seconds_release(struct seconds *s);

// Merges what a recorder handed over (one tally; stays the caller's). Late ones count only among
// the slowest.
void seconds_add(struct seconds *s, const struct tally *t);

// Median and 99th percentile of what was merged since the last call; false when there was nothing.
bool seconds_take_recent(struct seconds *s, int64_t *p50_ns, int64_t *p99_ns);

// ---- when all workers are done

void seconds_pack(struct seconds *s); // call before seconds_read

// Calls fn for every channel of second t that holds something.
typedef void seconds_fn(void *arg, int channel, int64_t rows, int64_t failed,
                        const struct hist_sparse *hist);
void seconds_read(const struct seconds *s, int t, seconds_fn *fn, void *arg);

// Frees the channels of second t; its counters stay.
void seconds_forget(struct seconds *s, int t);
