// What the stub does wrong on purpose, and the record of it.
//
// Faults meet the statements of a load only, not what clients ask of a server before (sql.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/rng.h"
#include "stats/hist.h"

enum delay_kind { DELAY_NONE, DELAY_FIXED, DELAY_EXPONENTIAL, DELAY_BIMODAL };

struct delay_law {
    enum delay_kind kind;
    int64_t ns;       // fixed; the mean; or the usual one of two
    int64_t rare_ns;  // bimodal
    double rare_rate; // bimodal: share of rare_ns
};

struct error_told {
    double rate;
    char state[6]; // SQLSTATE
};

struct stall_told {
    int64_t at_ns; // from the first statement of the load on
    int64_t for_ns;
};

// Parsers of the command line; each value is as its option says (main.c).
int delay_parse(const char *text, void *law, struct err *err);
int error_parse(const char *text, void *told, struct err *err);
int stall_parse(const char *text, void *told, struct err *err);

struct faults {
    struct delay_law delay;
    struct error_told error;
    double drop;
    struct stall_told stall;
    struct rng rng;

    // What was really done.
    struct hist delays; // from noticing a statement until its answer was written
    int64_t errors, drops;
    int64_t stalled_at_ns, stalled_for_ns; // from the first statement on; 0: not (yet)
};

enum fate { FATE_ANSWER, FATE_ERROR, FATE_DROP_BEFORE, FATE_DROP_WITHIN };

// Decides about one statement: how long it takes, and how it ends.
enum fate faults_draw(struct faults *faults, bool may_fail, int64_t *ret_delay_ns);

static inline bool faults_any(const struct faults *faults)
{
    return faults->delay.kind != DELAY_NONE || faults->error.rate > 0 || faults->drop > 0;
}

// The record as JSON. statements: of the load; reads: pieces of input that came.
void faults_write(const struct faults *faults, int64_t statements, int64_t sessions, int64_t reads,
                  FILE *out);
