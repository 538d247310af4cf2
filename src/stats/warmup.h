// Where a run's warm-up ends, found from its own seconds; and whether it ever settled.
//
// Method, assumptions and references: src/stats/warmup.c and docs/statistics.md. Pure functions.
#pragma once

#include <stdbool.h>

struct warmup {
    int seconds;       // cut this many whole seconds from the start, at most half; 0: none seen
    bool settled;      // the rest has no trend and no late level shift
    bool stepped_down; // over 10 % slower from some point in the later half to the end (burst
                       // credit, cache full); then not settled, and seconds is the warm-up before
    int step_at_s;     // where, when stepped_down
    double step_ratio; // level after / level before, in [0, 0.9), when stepped_down
    bool too_short;    // under 10 s or some 100 transactions: nothing is said, all else is 0
};

// tps: completed transactions in each whole second of the run, each >= 0; the caller leaves out
// partial seconds. n seconds. A run without a transaction, or with none in its later half, is not
// settled. About 10 ms for a day.
void warmup_find(const double *tps, int n, struct warmup *ret);
