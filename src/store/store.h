// The results file: an SQLite database that people may query with any tool. docs/store.md documents
// the tables; user_version tells the schema, older ones are migrated forward when opened for
// writing. A result is kept in one transaction. Not for several threads.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "store/result.h"

struct store;

enum store_mode {
    STORE_READ, // must exist; nothing is written (a version newer than known is refused with words)
    STORE_WRITE, // proven writable by a write; one that is missing is made with the first result
};

// NULL path: $PRONY_STORE, else ./prony.db. Returns the path used through store_path.
int store_open(struct store **ret, const char *path, enum store_mode mode, struct err *err);

void store_close(struct store *store);
const char *store_path(const struct store *store);

// Keeps a result whole or not at all; sets result->id. A file that was removed or replaced since it
// was opened is made again or opened anew.
int store_put(struct store *store, struct result *result, struct err *err);

// Reads one back: by id, by uuid prefix of at least 6 characters, by "last", or by label (the
// newest with it).
int store_get(struct store *store, const char *which, struct result **ret, struct err *err);

// The same by number, without series, statements, slowest, clients, outages, errors and counters:
// what comparisons of many runs need.
int store_get_brief(struct store *store, int64_t id, struct result **ret, struct err *err);

// ---- sets of runs (several.c)

// All runs that the words name, oldest first: numbers and ranges (`3,5,7-12`), a label (all runs
// with it), "baseline:NAME", or whatever store_get takes. At least one, each once, else an error.
// The caller frees *ret.
int store_select(struct store *store, const char *which, int64_t **ret, int *ret_n,
                 struct err *err);

// A baseline is a name for a set of runs. Saving replaces what had the name; *ret_replaced is the
// number of runs that had it. Names are as labels are, without ":" and ",".
int store_baseline_save(struct store *store, const char *name, const int64_t *ids, int n,
                        int *ret_replaced, struct err *err);
int store_baseline_remove(struct store *store, const char *name, struct err *err);

struct store_baseline {
    char *name;
    int64_t runs;
    int64_t first_id, last_id;
    double tps; // mean of its runs
};
// By name. The caller frees with store_baselines_free.
int store_baselines(struct store *store, struct store_baseline **ret, int *ret_n, struct err *err);
void store_baselines_free(struct store_baseline *baselines, int n);

struct store_row { // a line of `prony list`
    int64_t id;
    int64_t started_real_ns;
    char *label, *target, *engine, *workload, *status;
    int64_t clients, warnings;
    double duration_s, tps;
    double p99_us; // 0: no such number
};
// Newest first, at most limit (0: all). The caller frees with store_rows_free.
int store_list(struct store *store, int limit, struct store_row **ret, int *ret_n, struct err *err);
void store_rows_free(struct store_row *rows, int n);

// Runs one read-only statement (the authorizer refuses writes, ATTACH and pragmas that change
// anything) and hands out rows as text.
typedef void
store_row_fn(void *arg, int n, const char *const *names, const char *const *values,
             const int *types); // sqlite3 type codes; called once with values NULL for the header
int store_sql(struct store *store, const char *sql, store_row_fn *fn, void *arg, struct err *err);

// One run as a file of its own, which is itself a store; and back. Importing a run that is there
// already (same uuid) is no error and says so through *ret_known.
int store_export(struct store *store, const char *which, const char *path, struct err *err);
int store_import(struct store *store, const char *path, int64_t *ret_id, bool *ret_known,
                 struct err *err);
