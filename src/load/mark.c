#include "load/mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

static const char create_sql[] =
    "CREATE TABLE IF NOT EXISTS prony_init (name varchar(64) NOT NULL, scale bigint NOT NULL, "
    "state varchar(16) NOT NULL, made varchar(32) NOT NULL)";

static int64_t value_int(struct db_value value)
{
    if (value.type == DB_INT)
        return value.i;
    return value.type == DB_TEXT ? strtoll(value.s, NULL, 10) : 0;
}

static void value_text(struct db_value value, char *out, size_t size)
{
    snprintf(out, size, "%s", value.type == DB_TEXT ? value.s : "");
}

int mark_read(struct db_session *session, const char *schema, struct mark *ret, struct err *err)
{
    char *sql = mem_printf("SELECT scale, state, made FROM prony_init WHERE name = '%s'", schema);
    struct db_result result;
    char state[32];

    *ret = (struct mark){0};
    enum db_class class = db_query(session, sql, true, &result);
    free(sql);
    if (class == DB_UNDEFINED || (class == DB_OK && result.rows == 0))
        return 0;
    if (class != DB_OK)
        return err_set(err, ERR_USAGE, "reading the table prony_init: %s", result.message);
    ret->there = true;
    ret->scale = value_int(db_row_value(session, 0));
    value_text(db_row_value(session, 1), state, sizeof(state));
    value_text(db_row_value(session, 2), ret->made, sizeof(ret->made));
    ret->complete = strcmp(state, "complete") == 0;
    return 0;
}

int mark_write(struct db_session *session, const char *schema, int64_t scale, bool complete,
               struct err *err)
{
    struct str remove = STR_INIT, insert = STR_INIT;
    struct db_result result;
    char now[32];
    int rc = 0;

    clock_format_utc(clock_real_ns(), now, sizeof(now));
    str_addf(&remove, "DELETE FROM prony_init WHERE name = '%s'", schema);
    str_addf(&insert, "INSERT INTO prony_init VALUES ('%s', %" PRId64 ", '%s', '%s')", schema,
             scale, complete ? "complete" : "filling", now);
    if (db_query(session, create_sql, false, &result) != DB_OK ||
        db_query(session, remove.buf, false, &result) != DB_OK ||
        db_query(session, insert.buf, false, &result) != DB_OK)
        rc = err_set(err, ERR_FAILED, "writing the table prony_init: %s", result.message);
    str_release(&remove);
    str_release(&insert);
    return rc;
}
