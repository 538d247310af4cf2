// The table prony_init in a target: which schemas prony made there, at which scale, and whether it
// came to the end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"

struct mark {
    bool there;
    bool complete;
    int64_t scale;
    char made[64];
};

// No table, or no row for the schema: there is false. Negative when the target cannot be asked.
int mark_read(struct db_session *session, const char *schema, struct mark *ret, struct err *err);

// Replaces the schema's row.
int mark_write(struct db_session *session, const char *schema, int64_t scale, bool complete,
               struct err *err);
