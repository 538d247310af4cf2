// Something that many threads wait for, with a time limit: a futex. Opening it costs one system
// call however many wait, and waiting is as exact as clock_nanosleep.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct gate { // zeroed memory is a good one
    _Atomic uint32_t turn;
};

// What gate_wait compares with: take it before looking at what the gate guards.
static inline uint32_t gate_turn(const struct gate *gate)
{
    return atomic_load_explicit(&gate->turn, memory_order_acquire);
}

// Returns when the gate was opened since turn was taken, at the time (CLOCK_MONOTONIC), or early
// for no reason (a signal).
void gate_wait(struct gate *gate, uint32_t turn, int64_t until_ns);

// Wakes all.
void gate_open(struct gate *gate);
