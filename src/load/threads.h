// The threads loop: a thread per client calls the blocking library. For engines without a wire
// codec.
//
// All clients connect before the load (a few at a time), wait at a gate, and start together. The
// main thread watches, merges what they record, moves the end, and cancels what hangs. A call into
// a library that does not return even then is abandoned: its thread stops where it comes back, and
// its memory is never freed.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "load/client.h"
#include "load/seconds.h"
#include "load/shared.h"
#include "load/txlog.h"

struct threads;

// Starts the threads and connects every client. Negative when one cannot (ERR_USAGE: the words name
// what to change), or *stop was raised: nothing is left then.
int threads_start(struct threads **ret, struct shared *shared, struct seconds *seconds,
                  volatile sig_atomic_t *stop, struct err *err);

// There will be no load after all: instead of threads_go and what follows.
void threads_give_back(struct threads *t);

// The load begins soon after this call; the return value is when. log may be NULL.
int64_t threads_go(struct threads *t, struct txlog *log);

// Clients that have not ended.
int threads_running(const struct threads *t);

// Waits until a client has ended, or the time has come, or a signal.
void threads_wait(struct threads *t, int64_t until_ns);

// To be called after the end or the cut was moved: sleeping clients look at once.
void threads_wake(struct threads *t);

// Merges what the clients have recorded so far into seconds.
void threads_collect(struct threads *t);

// Cancels whatever runs at servers.
void threads_cancel(struct threads *t);

// Gives up clients whose call does not return. Returns how many.
int threads_abandon(struct threads *t);

// When none runs: waits for the threads and collects for the last time.
void threads_join(struct threads *t);

const struct client *threads_client(const struct threads *t, int i);
void threads_free(struct threads *t); // after threads_join
