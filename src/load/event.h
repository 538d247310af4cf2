// What was done to the database while the load ran, as it stands on the series: the rate before,
// during and after.
#pragma once

#include "store/result.h"

#define EVENTS_MAX        16
#define EVENT_SECONDS_MAX 10 // whole seconds that before and after are taken from

struct event_span {
    double from_s, to_s; // since the load began
};

struct event_rates {
    double before_tps, during_tps, after_tps; // NaN: no whole second of the load is left for it
};

// Rates around span i of n spans, from whole seconds: during are those that it touches, before and
// after up to EVENT_SECONDS_MAX next to it, as far as no other span touches them.
void event_rates(const struct result *result, const struct event_span *spans, int n, int i,
                 struct event_rates *ret);
