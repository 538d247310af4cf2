// What the storage under a directory can give a database: log flushes, random and sequential
// blocks, new files; each with a 95 % interval and its latencies.
//
// A probe makes a private directory in the one it is given, lays out a file there, and measures in
// rounds: each round does every measurement once for a slice of the time, in an order drawn anew. A
// slice gives one rate; the interval rests on the slices, which lie all over the probe, so what
// drifts or comes in bursts widens it. A first, short round is not counted. The directory is
// removed at the end, and by the registry of leftovers whatever happens.
//
// Blocks of the data file go past the page cache (O_DIRECT) where the file system lets them; where
// not, or where they turn up in the page cache all the same, `through_cache` says why. A slice that
// writes ends with a flush that counts into its time, so a device's cache cannot lend more than it
// pays back.
#pragma once

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "stats/hist.h"
#include "stats/interval.h"

#define PROBE_ROUNDS 8 // counted ones

enum probe_kind {
    PROBE_FLUSH_1, // one writer: 8 KiB into a log written before, flushed each
    PROBE_FLUSH_8, // eight writers that share flushes
    PROBE_APPEND,  // one writer: 8 KiB at the end of a growing log, flushed each
    PROBE_READ_1,  // random 8 KiB, one at a time
    PROBE_READ_32, // ... 32 under way
    PROBE_WRITE_1,
    PROBE_WRITE_32,
    PROBE_READ_ALONG, // sequential, 1 MiB
    PROBE_WRITE_ALONG,
    PROBE_CREATE, // new empty files in one directory
    PROBE_KINDS,
};

struct probe_tick {
    double share;     // of the probe's time, in [0, 1]
    const char *what; // is being measured
};

struct probe_wish {
    const char *dir;
    int64_t time_ns; // for all, laying out included; at least PROBE_TIME_MIN_NS
    int64_t bytes;   // of the data file; 0: chosen from the free space
    const char *io;  // "auto", "io_uring", "threads"
    uint64_t seed;   // of places and order
    struct leftovers *leftovers;
    const volatile sig_atomic_t *stop; // not zero: end soon, with what there is
    void (*tick)(void *arg, const struct probe_tick *tick); // before each slice; may be NULL
    void *arg;
};
#define PROBE_TIME_MIN_NS (2 * 1000000000LL)

struct probe_measure {
    const char *id;      // stable, for programs: "log_flush_1"
    const char *name;    // for people: "log flush, 1 writer"
    const char *how;     // what one operation is, and what is synced when
    int64_t block_bytes; // of one operation; 0: a file
    bool by_bytes;       // its rate is better told in bytes
    bool is_block;       // of the data file: what `through_cache` is about
    int n_slices;
    double per_s[PROBE_ROUNDS]; // operations/s of each slice
    struct interval rate;       // their mean, operations/s
    int64_t operations;
    int64_t flushes; // during them, with those that end slices
    double seconds;  // in all slices
    struct hist latency;
};

struct probe_result {
    char dir[PATH_MAX]; // resolved
    int64_t started_real_ns;
    double seconds;          // all of it
    double layout_seconds;   // of these, before the first round
    int64_t asked_bytes;     // of the data file
    int64_t file_bytes;      // as laid out: less when that took half of the time
    const char *io;          // "io_uring" or "threads"
    char io_why[256];        // why it is not io_uring, unless asked for; ""
    char through_cache[256]; // why blocks do not go past the page cache; "": they do
    bool interrupted;        // fewer rounds than planned
    int rounds;
    struct probe_measure measures[PROBE_KINDS];
};

// Takes about time_ns. 0 and *ret (free with probe_free), or negative: ERR_USAGE when the directory
// cannot be used or is too small, and then nothing was made; ERR_FAILED when it went wrong or was
// stopped before two rounds were over, and what was made is removed.
int probe_run(const struct probe_wish *wish, struct probe_result **ret, struct err *err);

void probe_free(struct probe_result *result); // NULL is allowed

// ---- plan: sizes and times, pure functions

struct probe_sizes {
    int64_t data_bytes; // whole MiB
    int64_t log_bytes;  // of the log written before
    int64_t grow_bytes; // at most, of the growing log
};

// From what is free on the file system. Negative with ERR_USAGE when that is too little for what is
// wished (0: no wish: a quarter of it, 512 MiB at most).
int probe_plan_sizes(int64_t free_bytes, int64_t wished_bytes, struct probe_sizes *ret,
                     struct err *err);

// The length of each slice of the coming round, when so much time is left for so many rounds.
int64_t probe_plan_slice_ns(int64_t left_ns, double rounds_left);

// How many operations a slice may do at most, from the rate of the one before (with its flush), so
// that it and the flush at its end fit into its time. per_s 0: there was none, as many as first.
int64_t probe_plan_operations(double per_s, int64_t slice_ns, int64_t first);
