// Making a built-in workload's tables (prony init) and looking at what is there (prony run).
//
// A table of prony's own, prony_init, records in the target what was made: schema, scale, state
// ("filling", "complete"), when, by which version. It is how an interrupted init is recognised, and
// how prony knows tables as its own. Tables by pgbench have no such mark and work all the same.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "workload/schema.h"

enum fill_state {
    FILL_ABSENT,  // none of the tables exists
    FILL_PARTIAL, // an init was interrupted, or only some tables exist
    FILL_COMPLETE,
};

struct fill_look {
    enum fill_state state;
    bool ours;        // the mark says that prony made them
    int64_t scale;    // of what is there; 0 unknown
    char made[64];    // "2026-11-30T14:35:00Z" from the mark; ""
    char detail[160]; // words for PARTIAL: "an init to scale 20 was interrupted"
};

// Never changes anything. Negative when the server cannot be asked (err says why).
int fill_look(struct db_session *session, const struct schema *schema, struct fill_look *ret,
              struct err *err);

struct fill_tick {
    const char *table;        // being worked on, or what else is done: "primary keys", "vacuum"
    int64_t rows, rows_total; // over all tables
    double rows_per_s;
    double left_s; // estimate; < 0 unknown
    double elapsed_s;
};
typedef void fill_tick_fn(void *arg, const struct fill_tick *tick);

struct fill_options {
    int64_t scale;
    bool replace_foreign;       // --replace: tables that prony did not make may be dropped
    int jobs;                   // parallel sessions; 0: what helps on this engine and machine
    struct db_session *session; // the first of them, and stays the caller's; NULL: one is opened
    volatile sig_atomic_t *stop;
    fill_tick_fn *tick;
    void *arg;
};

struct fill_report {
    int64_t rows;
    double seconds;
    int jobs;
};

// Drops what it may, creates, loads, keys, settles, marks complete. Interrupted or failed: what was
// made stays marked "filling", and err says so.
int fill_tables(struct db_target *target, const struct schema *schema,
                const struct fill_options *options, struct fill_report *ret, struct err *err);

// Runs the schema's balance queries. balances gets one number each; *ret_equal tells whether all
// agree.
int fill_check(struct db_session *session, const struct schema *schema, int64_t *balances,
               bool *ret_equal, struct err *err);
