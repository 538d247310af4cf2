// What a run watches while its load goes on: the devices under its places, the server's processes,
// the engine (watch/sampler.h).
#pragma once

#include "cmd/setup.h"
#include "watch/sampler.h"

// data, log: NULL where they are not known. with_engine: ask the server over a session of its own.
struct sampler *watching_open(const struct setup *setup, const struct storage *data,
                              const struct storage *log, bool with_engine);
