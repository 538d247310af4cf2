// The tables a built-in workload runs on: what init makes, what run checks, what check verifies.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/db.h"

#define SCHEMA_COLUMNS_MAX 16
#define SCHEMA_TEXT_MAX    256

struct schema {
    const char *name; // "tpcb": the argument of prony init for all workloads on it
    int version;      // of what row gives; raised when that changes, for saved states hold it
    int n_tables;

    // Definition of table i at this scale; constant, lives as long as the program.
    const struct db_table *(*table)(int i, int64_t scale);

    // Rows of table i at this scale; tables that only the load fills have none.
    int64_t (*rows)(int i, int64_t scale);

    // Makes row number `row` (from 0, in key order) of table i: table(i)->n_columns values. Text
    // lies in the caller's scratch (SCHEMA_TEXT_MAX bytes) or is constant. A pure function of its
    // arguments.
    void (*row)(int i, int64_t row, int64_t scale, struct db_value *values, char *scratch);

    // Queries of one integer each (sums of balances), NULL-terminated, and their short names. All
    // are equal after init and after any number of transactions of the workload that the schema is
    // named for; workloads that leave some tables out break some of them.
    const char *const *balances;
    const char *const *balance_names;

    // Gives the scale of existing tables, by whichever tool: "select count(*) from ...".
    const char *scale_query;
    int64_t bytes_per_scale; // rough size on disk with indexes, for --scale 12GB and progress
    int64_t scale_max;
};

// pgbench's four tables, column for column and row for row: either tool runs on the other's.
extern const struct schema schema_tpcb;
