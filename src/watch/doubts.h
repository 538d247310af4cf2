// Doubts: reasons why a result may not mean what it seems to, each with a stable id and a remedy.
// A rule is a row of a table in doubts.c; docs/doubts.md explains each id.
#pragma once

#include "db/db.h"
#include "store/result.h"
#include "watch/host.h"
#include "watch/storage.h"

struct doubt_input {
    const struct db_facts *facts;
    const struct storage *data;       // NULL when the data is not on this machine or not known
    const struct storage *log;        // NULL: with the data, or not known
    const struct storage *written;    // --log-transactions or --trace; NULL: nothing is written
    struct host_sample before, after; // around the load
    double first_mhz, last_mhz;       // host_frequency_mhz early and late in the load; 0 unknown
    const char *contended;            // words for rows that every client writes; NULL none
    int64_t contended_rows;           // how many such rows there are: the scale; 0 none
    bool workload_writes;             // false: no checkpoint or flush matters
    int64_t log_write_error;          // errno of --log-transactions; 0 none
};

// Adds the warnings that apply, most important first.
void doubts_judge(struct result *result, const struct doubt_input *input);
