// Sockets of one worker thread: bytes out, bytes in, and a time limit. Two implementations behind
// one contract: io_uring, which hands all sends and receives of a wake-up to the kernel in one
// call, and epoll, for kernels and containers without it.
//
// A slot is a number below the count given to create; it holds at most one descriptor, which stays
// the caller's. All calls but wake come from the worker's thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct poller;

enum poller_kind {
    POLLER_BYTES,  // received; borrowed until the callback returns
    POLLER_CLOSED, // the peer has closed, or an error (errno in error): remove the slot
    POLLER_GONE,   // a slot being removed is free now: the kernel no longer uses its memory or
                   // descriptor
};

struct poller_event {
    int slot;
    enum poller_kind kind;
    const char *bytes;
    size_t n;
    int error; // POLLER_CLOSED: errno, 0 for an orderly close
};

typedef void poller_fn(void *arg, const struct poller_event *event);

// A slot whose event is handled soon, a few events ahead: time to fetch what that will touch into
// the cache, which does not hold thousands of sessions. Of slots without an event too.
typedef void poller_soon_fn(void *arg, int slot);
#define POLLER_AHEAD 4 // events

struct poller_ops {
    const char *name; // as recorded: "ring-uring", "ring-epoll"

    // ERR_ABSENT with the reason when the kernel or a container forbids it.
    int (*create)(struct poller **ret, int n_slots, struct err *err);
    void (*destroy)(struct poller *poller); // with no slot in use

    // Begins to receive. The descriptor is non-blocking.
    int (*add)(struct poller *poller, int slot, int fd);

    // Sends after what was sent before, as soon as the kernel takes it; the bytes are copied. From
    // within a callback or between waits; leaves at the next wait at the latest.
    void (*send)(struct poller *poller, int slot, const char *bytes, size_t n);

    // Gives the slot up: nothing more is received. Returns true when it is free at once; else
    // POLLER_GONE follows, soon. The descriptor and what was sent stay as they are.
    bool (*remove)(struct poller *poller, int slot);

    // Submits what was queued, waits for events until the time (INT64_MAX: however long; a time
    // past: only looks), and calls fn for each event there is. fn may call add, send and remove.
    // Returns early after wake or a signal.
    void (*wait)(struct poller *poller, int64_t until_ns, poller_fn *fn, void *arg);

    void (*wake)(struct poller *poller); // from any thread: the present or next wait returns
};

extern const struct poller_ops poller_uring;
extern const struct poller_ops poller_epoll;

// Base of both; each begins with it.
struct poller {
    const struct poller_ops *ops;
    poller_soon_fn *soon; // may be set before the first wait; gets the arg of fn
};

static inline int poller_add(struct poller *poller, int slot, int fd)
{
    return poller->ops->add(poller, slot, fd);
}

static inline bool poller_remove(struct poller *poller, int slot)
{
    return poller->ops->remove(poller, slot);
}
