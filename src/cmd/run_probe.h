// `prony run --probe`: what the storage under data and log can give, measured shortly before the
// load, so that the result can say how much of it was used.
#pragma once

#include <signal.h>

#include "cmd/setup.h"
#include "watch/storage.h"

// Probes the storage of data, and of the log where that is another, for time_ns each, and adds
// probe.data.NAME and probe.log.NAME to the environment: rates per second by the ids of a probe
// (docs/environment.md), or "unknown: REASON". Never fails; *stop ends it.
void run_probe(const struct setup *setup, const struct storage *data, const struct storage *log,
               int64_t time_ns, const volatile sig_atomic_t *stop, struct kvs *environment);
