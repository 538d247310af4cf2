// prony_init: prony's own table in a target, one row per schema, which tells what prony made.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"

#define MARK_TABLE "prony_init"

struct mark {
    bool present; // prony made the tables, or began to
    bool filling; // it has not finished
    int64_t scale;
    char made[64]; // "2026-11-30T14:35:00Z"; "" while filling
};

// Never changes anything; a missing table is an absent mark. Negative when the server cannot be
// asked.
int mark_read(struct db_session *session, const char *schema, struct mark *ret, struct err *err);

// Writes the row of a schema, which then says "filling", making the table where it is missing.
int mark_begin(struct db_session *session, const char *schema, int64_t scale, struct err *err);

// Complete as of now; one statement. The row is there from mark_begin.
int mark_end(struct db_session *session, const char *schema, struct err *err);

// An integer out of whatever type an engine gives for it (sums come as text or double); 0 for NULL.
int64_t mark_int(const struct db_value *value);
