// The progress line on a terminal, and -P lines for logs; both on stderr, so that results stay
// clean.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "load/fill.h"
#include "load/run.h"
#include "volume/probe.h"

struct progress {
    bool quiet;
    int64_t every_ns; // -P: a line at each tick; 0: only the terminal's own line
    bool drawn;       // a line stands on the terminal
};

void progress_run_tick(void *progress, const struct run_tick *tick);
void progress_fill_tick(void *progress, const struct fill_tick *tick);
void progress_probe_tick(void *progress, const struct probe_tick *tick);
void progress_end(struct progress *progress); // wipes the line
