// The open loop's schedule: one sequence of planned starts, shared by all clients of a run.
//
// A free client takes the next planned start and waits for it; when the server is slower than the
// rate, planned starts are taken late, in order, and the wait counts as latency. Nothing is
// skipped and nothing aborts. The sequence depends on seed and rate alone, not on who takes what.
//
// Planned starts are made ahead into a ring and taken by advancing its head with one
// compare-and-swap: no lock, whoever finds the ring low makes the next batch (some microseconds
// every ARRIVALS_BATCH arrivals, while others go on taking).
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "load/plan.h"

#define ARRIVALS_BATCH 128

struct arrivals_source { // the sequence, on its own
    struct rng rng;
    enum plan_arrival kind;
    double mean_ns; // 1 / rate
    double at_ns;   // poisson: sum of the gaps so far, from the start
    int64_t n;      // made so far
};

struct arrivals {
    int64_t start_ns;
    int64_t size; // of the ring, a power of two
    _Atomic int64_t *ring;
    pthread_mutex_t lock; // for the source and for advancing made
    struct arrivals_source source;
    int64_t last_ns;                   // under the lock: the latest in the ring
    _Alignas(64) _Atomic int64_t made; // planned starts put into the ring
    _Alignas(64) _Atomic int64_t head; // of them taken
};

// n_clients bounds how many may be taken ahead of their time.
void arrivals_init(struct arrivals *a, double rate_tps, enum plan_arrival kind, uint64_t seed,
                   int n_clients);
void arrivals_release(struct arrivals *a);

// Sets the time the schedule counts from; before the first arrivals_take.
void arrivals_start(struct arrivals *a, int64_t start_ns);

// The next planned start, in order; from any thread.
int64_t arrivals_take(struct arrivals *a);

// How many starts were planned before the given time, taken or not. When nobody takes any more.
int64_t arrivals_due(struct arrivals *a, int64_t before_ns);
