// The contract between the sampler and what it asks. A source is a row of the table in sampler.c.
#pragma once

#include "watch/sampler.h"

struct watch_table;

// A value of the second that ends now. The unit is the last part of the name. A second without a
// value, or with NaN, has none.
void watch_put(struct watch_table *table, const char *subject, const char *name, double value);

struct watch_source {
    // NULL when there is nothing to ask here.
    void *(*open)(const struct sampler_options *options);
    // Optional: momentary states are looked at several times a second.
    void (*look)(void *self);
    // passed_s since the last call; 0 at the first, which has only beginnings to remember.
    void (*sample)(void *self, double passed_s, struct watch_table *table);
    // Optional: a call of look or sample that takes long is to come back; from another thread.
    void (*cancel)(void *self);
    void (*close)(void *self);
};

extern const struct watch_source watch_host, watch_devices, watch_processes, watch_engine;

// What a counter grew by, per second; NaN at the first call and when it began anew.
struct watch_counter {
    double last;
    bool known;
};
double watch_rate(struct watch_counter *counter, double now, double passed_s);
