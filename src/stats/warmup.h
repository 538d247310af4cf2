// Where a run's warm-up ends, found from its own seconds; and whether it ever settled.
//
// Method, assumptions and references: src/stats/warmup.c and docs/statistics.md. Pure functions.
#pragma once

#include <stdbool.h>

struct warmup {
    int seconds;       // cut this many whole seconds from the start; 0: no warm-up seen
    bool settled;      // the rest has no trend and no late level shift
    bool stepped_down; // the rate fell lastingly late in the run (burst credit, cache full)
    int step_at_s;     // where, when stepped_down
    double step_ratio; // level after / level before, when stepped_down
    bool too_short;    // fewer whole seconds than the method needs; seconds is then 0
};

// tps: completed transactions in each whole second of the run, the first partial second at [0] left
// out by the caller if it was partial. n seconds.
void warmup_find(const double *tps, int n, struct warmup *ret);
