#include "load/mark.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

static const struct db_column columns[] = {
    {"schema_name", "varchar(64)", true}, {"scale", "bigint", true},
    {"state", "varchar(16)", true},       {"made", "varchar(32)", true},
    {"version", "varchar(64)", true},
};

static const struct db_table table = {
    .name = MARK_TABLE,
    .columns = columns,
    .n_columns = 5,
    .primary_key = "schema_name",
};

int64_t mark_int(const struct db_value *value)
{
    switch (value->type) {
    case DB_NULL:
        return 0;
    case DB_BOOL:
        return value->b;
    case DB_INT:
        return value->i;
    case DB_DOUBLE:
        return (int64_t)nearbyint(value->d);
    case DB_TEXT:
        return strtoll(value->s, NULL, 10);
    }
    return 0;
}

// The schema's name is one of our own words: quotes in it are a bug.
static void add_where(struct str *sql, const char *schema)
{
    assert(!strpbrk(schema, "'\\"));
    str_addf(sql, " where schema_name = '%s'", schema);
}

static void take_text(struct db_session *session, int i, char *out, size_t size)
{
    struct db_value value = db_row_value(session, i);

    snprintf(out, size, "%s", value.type == DB_TEXT ? value.s : "");
}

int mark_read(struct db_session *session, const char *schema, struct mark *ret, struct err *err)
{
    struct db_result result;
    struct str sql = STR_INIT;
    char state[32];

    *ret = (struct mark){0};
    str_add(&sql, "select scale, state, made from " MARK_TABLE);
    add_where(&sql, schema);
    enum db_class class = db_query(session, sql.buf, true, &result);
    str_release(&sql);
    if (class == DB_UNDEFINED)
        return 0;
    if (class != DB_OK)
        return err_set(err, ERR_USAGE, "cannot read " MARK_TABLE ": %s", result.message);
    if (result.rows == 0)
        return 0;
    struct db_value scale = db_row_value(session, 0);
    ret->present = true;
    ret->scale = mark_int(&scale);
    take_text(session, 1, state, sizeof(state));
    take_text(session, 2, ret->made, sizeof(ret->made));
    ret->filling = strcmp(state, "complete") != 0;
    return 0;
}

static int run(struct db_session *session, const char *sql, struct err *err)
{
    struct db_result result;

    if (db_query(session, sql, false, &result) != DB_OK)
        return err_set(err, ERR_FAILED, MARK_TABLE ": %s", result.message);
    return 0;
}

int mark_begin(struct db_session *session, const char *schema, int64_t scale, struct err *err)
{
    struct db_result result;
    struct str sql = STR_INIT;

    enum db_class class = db_query(session, "select 1 from " MARK_TABLE " limit 1", false, &result);
    if (class == DB_UNDEFINED && db_create_table(session, &table, true, &result) != DB_OK)
        return err_set(err, ERR_FAILED, "cannot make the table " MARK_TABLE ": %s", result.message);
    str_add(&sql, "delete from " MARK_TABLE);
    add_where(&sql, schema);
    int rc = run(session, sql.buf, err);
    if (rc == 0) {
        str_clear(&sql);
        str_addf(&sql, "insert into " MARK_TABLE " values ('%s', %lld, 'filling', '', '%s')",
                 schema, (long long)scale, PRONY_VERSION);
        rc = run(session, sql.buf, err);
    }
    str_release(&sql);
    return rc;
}

int mark_end(struct db_session *session, const char *schema, struct err *err)
{
    struct str sql = STR_INIT;
    char now[32];

    clock_format_utc(clock_real_ns(), now, sizeof(now));
    str_addf(&sql, "update " MARK_TABLE " set state = 'complete', made = '%s'", now);
    add_where(&sql, schema);
    int rc = run(session, sql.buf, err);
    str_release(&sql);
    return rc;
}
