// Watching: once a second while a load runs, what the machine, the devices under the data, the
// server's processes and the engine were doing (docs/watching.md). A thread of its own, under one
// per cent of a core; what cannot be had is left out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/db.h"
#include "store/result.h"
#include "watch/storage.h"

struct sampler;

struct sampler_options {
    const struct storage *data, *log; // their devices are watched; NULL: not here, or not known
    int64_t server_pid;               // the server's first process on this machine; 0: not known
    struct db_target *target;         // asked over a session of its own; NULL: it is not
};

// Before the load. What the options point to must last until the end.
struct sampler *sampler_open(const struct sampler_options *options);

// The load began at start_ns of the monotonic clock, and its clients are connected: the thread
// starts, and connects too.
void sampler_begin(struct sampler *sampler, int64_t start_ns);

// Ends the thread, whatever the server does. What was seen becomes result->watch (result NULL:
// nobody wants it). NULL allowed.
void sampler_end(struct sampler *sampler, struct result *result);
