// What one worker thread records, second by second, and hands to the main thread.
//
// The worker fills the tally of the present second. When something is completed in another second
// it pushes the full tally onto a chain and goes on with a spare one; the main thread takes the
// whole chain, merges it (load/seconds.h), and pushes the emptied tallies back. Both chains are
// "push one, take all" lists on one atomic pointer: no lock, and no ABA as nothing is ever popped.
// The worker allocates only when the main thread is late in giving tallies back.
//
// One recorder serves any number of clients of one thread.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "load/tally.h"

struct recorder {
    struct tally *tally;          // being filled
    int64_t second_ns;            // begin of its second; INT64_MAX: the late one
    int64_t start_ns;             // of the load
    const _Atomic int64_t *end;   // of the load; what is completed from then on is late
    const _Atomic int64_t *floor; // of the slowest transactions (slowest_floor_ns)
    struct tally *own_spare;      // chain
    int n_channels;
    _Alignas(64) _Atomic(struct tally *) ready; // to the main thread
    _Alignas(64) _Atomic(struct tally *) spare; // from it
};

struct recorder_statement { // one answered statement
    int index;
    int64_t ns;
    int64_t rows;
    int64_t lock_wait_ns;
    int64_t given_ns;
    bool failed;
};

// Before the load; end and floor stay the caller's. recorder_start gives the time that seconds
// count from.
void recorder_init(struct recorder *r, int n_channels, const _Atomic int64_t *end,
                   const _Atomic int64_t *floor);
void recorder_start(struct recorder *r, int64_t start_ns);
void recorder_release(struct recorder *r); // when its thread has ended

// ---- worker

struct tally *recorder_turn(struct recorder *r, int64_t at_ns);

// The tally of the second that holds at_ns (not before the start).
static inline struct tally *recorder_at(struct recorder *r, int64_t at_ns)
{
    if ((uint64_t)(at_ns - r->second_ns) < 1000000000 &&
        at_ns < atomic_load_explicit(r->end, memory_order_relaxed))
        return r->tally;
    return recorder_turn(r, at_ns);
}

void recorder_statement(struct recorder *r, int64_t at_ns, const struct recorder_statement *s);
void recorder_error(struct recorder *r, int64_t at_ns);

// A transaction is done. service_ns < 0: none is kept. slow->end_ns counts from the start.
void recorder_done(struct recorder *r, int64_t at_ns, int64_t service_ns,
                   const struct result_slow *slow);

// Hands over what is left. Also for the main thread, once the worker touches nothing any more.
void recorder_close(struct recorder *r);

// ---- main thread

struct tally *recorder_take(struct recorder *r);         // a chain, newest first; NULL
void recorder_give(struct recorder *r, struct tally *t); // one tally; it is cleared here
