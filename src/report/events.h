// What happened during a run by --at, as its record tells (docs/environment.md, event.*).
#pragma once

#include "store/result.h"

struct report_event {
    const char *what, *outcome;               // of the result
    double at_s;                              // as asked for
    double from_s, to_s;                      // NaN: it never began
    double before_tps, during_tps, after_tps; // NaN: unknown
};

// Fills event number i, from 0; false when there is none.
bool report_event_at(const struct result *result, int i, struct report_event *ret);
