// What drives the clients, behind one contract: the ring (load/ring.h) for engines with a wire
// codec, the threads loop (load/threads.h) for all. load/run.c calls only this.
//
// All clients connect before the load, wait, and start together. The main thread watches, merges
// what they record, moves the end, and cancels what hangs. All slots are called by the main thread.
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/err.h"
#include "load/client.h"
#include "load/seconds.h"
#include "load/shared.h"
#include "load/txlog.h"

struct loop; // begins with a pointer to its ops

struct loop_ops {
    const char *name; // as recorded and as --loop takes it

    // Connects every client. Negative: none is left connected, and err is ERR_ABSENT when this loop
    // cannot be had here (the next one may), ERR_USAGE when a client was refused (the words name
    // what to change), ERR_FAILED when *stop was raised.
    int (*start)(struct loop **ret, struct shared *shared, struct seconds *seconds,
                 volatile sig_atomic_t *stop, struct err *err);

    // There will be no load after all: instead of go and what follows.
    void (*give_back)(struct loop *loop);

    // The load begins soon after this call; the return value is when. log may be NULL.
    int64_t (*go)(struct loop *loop, struct txlog *log);

    int (*running)(const struct loop *loop); // clients that have not ended

    // Waits until a client has ended, or the time has come, or a signal.
    void (*wait)(struct loop *loop, int64_t until_ns);

    // To be called after the end or the cut was moved: sleeping clients look at once.
    void (*wake)(struct loop *loop);

    // Merges what the clients have recorded so far into seconds.
    void (*collect)(struct loop *loop);

    // Cancels whatever runs at servers.
    void (*cancel)(struct loop *loop);

    // Gives up clients whose call does not return. Returns how many; then free leaves their memory.
    int (*abandon)(struct loop *loop);

    // When none runs: waits for the threads and collects for the last time.
    void (*join)(struct loop *loop);

    const struct client *(*client)(const struct loop *loop, int i);
    int (*threads)(const struct loop *loop); // how many drive the clients
    void (*free)(struct loop *loop);         // after join
};

struct loop {
    const struct loop_ops *ops;
};

// The loops to try in turn for a target: the one that --loop names ("auto": every one that the
// target's engine has, the fastest first). Of those, only what can pipeline where statements are
// sent together: the ring. NULL-terminated, at most LOOPS_MAX. Negative with ERR_ABSENT or
// ERR_USAGE when the named one is not for this engine.
#define LOOPS_MAX 4
int loop_choose(const struct db_target *target, const char *name, bool pipelines,
                const struct loop_ops *ret[LOOPS_MAX], struct err *err);

extern const struct loop_ops loop_ring_uring; // where liburing was there at build time
extern const struct loop_ops loop_ring_epoll;
extern const struct loop_ops loop_threads;
