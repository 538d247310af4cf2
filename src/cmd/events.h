// --at WHEN WHAT: things that happen while the load runs. Each has a thread of its own, so that a
// long one holds up neither the load nor the next.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/setup.h"
#include "store/result.h"

struct events;

// From the option's items, "30s checkpoint". WHAT is checkpoint, restart, an event of a
// volume (volume_is_event), or a command for the shell. *ret is NULL when there are none. ERR_USAGE
// names the item.
int events_parse(struct events **ret, const struct opt_list *items, struct err *err);

// What cannot be with this target or this length (0: by transactions) is told before anything runs.
int events_check(struct events *events, const struct setup *setup, int64_t time_ns,
                 struct err *err);

// "30s checkpoint, 45s restart"; for the announcement.
void events_describe(const struct events *events, struct str *out);

// The load has begun at a time of the monotonic clock. Commands find the target's server, if it is
// prony's, in the environment: PRONY_SERVER_SOCKET (a directory for PostgreSQL), PRONY_SERVER_DATA.
void events_begin(struct events *events, int64_t start_ns);

// The load is over: what waits does not begin, a command that still runs is
// killed, a checkpoint is cancelled.
void events_end(struct events *events);

// Adds event.N.what, .at_s, .from_s, .to_s, .outcome and the rates to the environment.
void events_record(const struct events *events, struct result *result);

void events_free(struct events *events); // after events_end; NULL allowed
