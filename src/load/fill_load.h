// The rows of all tables, made and loaded by parallel sessions. Inside fill only.
#pragma once

#include "load/fill.h"

struct fill_sessions {
    struct db_target *target;
    const struct schema *schema;
    const struct fill_options *options;
    int jobs;          // sessions to use
    bool split_tables; // several may load one table
    int64_t start_ns;
    int64_t rows_total;
};

// Loads every row, calling options->tick from the calling thread. Negative: a session failed, or
// *stop was raised; err says which.
int fill_load(const struct fill_sessions *sessions, struct err *err);
