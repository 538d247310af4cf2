// What is there, what may be dropped, and the order of an init: mark, drop, work, mark.
#include "load/fill.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "load/fill_work.h"
#include "load/mark.h"

#define JOBS_MAX_STANDARD 8
#define CLAIM_TRIES       30 // of about a second each

// ---- looking

enum presence { MISSING, EMPTY, FILLED };

static int look_at_table(struct db_session *session, const char *table, enum presence *ret,
                         struct err *err)
{
    struct db_result result;
    struct str sql = STR_INIT;

    str_addf(&sql, "select 1 from %s limit 1", table);
    enum db_class class = db_query(session, sql.buf, false, &result);
    str_release(&sql);
    if (class == DB_UNDEFINED)
        *ret = MISSING;
    else if (class == DB_OK)
        *ret = result.rows > 0 ? FILLED : EMPTY;
    else
        return err_set(err, ERR_USAGE, "cannot look at the table %s: %s", table, result.message);
    return 0;
}

static int query_int(struct db_session *session, const char *sql, int64_t *ret, struct err *err)
{
    struct db_result result;

    if (db_query(session, sql, true, &result) != DB_OK)
        return err_set(err, ERR_FAILED, "%s: %s", sql, result.message);
    if (result.rows != 1 || result.n_columns < 1)
        return err_set(err, ERR_FAILED, "%s: not one number", sql);
    struct db_value value = db_row_value(session, 0);
    *ret = mark_int(&value);
    return 0;
}

// Tables without their rows: what an init that was interrupted, by whichever tool, leaves.
static void judge_presence(const struct schema *schema, const enum presence *presence,
                           struct fill_look *look)
{
    int n = schema->n_tables, there = 0;
    const char *missing = NULL, *empty = NULL;

    for (int i = 0; i < n; i++) {
        const char *name = schema->table(i, 1)->name;
        there += presence[i] != MISSING;
        if (presence[i] == MISSING)
            missing = name;
        else if (presence[i] == EMPTY && schema->rows(i, 1) > 0)
            empty = name;
    }
    look->state = there == 0 ? FILL_ABSENT : missing || empty ? FILL_PARTIAL : FILL_COMPLETE;
    if (there > 0 && missing)
        snprintf(look->detail, sizeof(look->detail), "%s is missing", missing);
    else if (there > 0 && empty)
        snprintf(look->detail, sizeof(look->detail), "%s is empty", empty);
}

int fill_look(struct db_session *session, const struct schema *schema, struct fill_look *ret,
              struct err *err)
{
    enum presence presence[SCHEMA_COLUMNS_MAX];
    struct mark mark;

    assert(schema->n_tables <= (int)(sizeof(presence) / sizeof(presence[0])));
    *ret = (struct fill_look){.state = FILL_ABSENT};
    for (int i = 0; i < schema->n_tables; i++)
        if (look_at_table(session, schema->table(i, 1)->name, &presence[i], err) < 0)
            return -1;
    if (mark_read(session, schema->name, &mark, err) < 0)
        return -1;
    judge_presence(schema, presence, ret);
    if (ret->state == FILL_ABSENT)
        return 0;
    ret->ours = mark.present;
    snprintf(ret->made, sizeof(ret->made), "%s", mark.made);
    if (mark.present && mark.filling) {
        ret->state = FILL_PARTIAL;
        snprintf(ret->detail, sizeof(ret->detail), "an init to scale %lld was interrupted",
                 (long long)mark.scale);
    }
    if (ret->state == FILL_PARTIAL)
        return 0;
    if (query_int(session, schema->scale_query, &ret->scale, err) < 0)
        return -1;
    // Another scale than was marked: somebody else has made the tables anew.
    if (mark.present && mark.scale != ret->scale) {
        ret->ours = false;
        ret->made[0] = '\0';
    }
    return 0;
}

int fill_check(struct db_session *session, const struct schema *schema, int64_t *balances,
               bool *ret_equal, struct err *err)
{
    *ret_equal = true;
    for (int i = 0; schema->balances[i]; i++) {
        if (query_int(session, schema->balances[i], &balances[i], err) < 0)
            return -1;
        *ret_equal = *ret_equal && balances[i] == balances[0];
    }
    return 0;
}

// ---- filling

static int may_replace(struct db_session *session, struct db_target *target,
                       const struct schema *schema, const struct fill_options *options,
                       struct err *err)
{
    struct fill_look look;

    if (db_caps(target) & DB_CAP_HOLLOW) // whatever is asked for seems to be there
        return 0;
    if (fill_look(session, schema, &look, err) < 0)
        return -1;
    if (look.state != FILL_ABSENT && !look.ours && !options->replace_foreign)
        return err_set(err, ERR_USAGE,
                       "%s has tables of %s that prony did not make: give --replace to drop them, "
                       "or name another database",
                       db_display(target), schema->name);
    return 0;
}

// An init that was killed may have left a statement that the server has yet to run.
static int claim(struct db_session *session, const struct schema *schema,
                 const struct fill_options *options, struct err *err)
{
    struct fill_tick waiting = {.table = "waiting for another init", .left_s = -1};
    struct db_result result;
    int tries = 0;

    while (db_claim(session, schema->name, &result) == DB_BUSY) {
        if (options->stop && *options->stop)
            return err_set(err, ERR_FAILED, "interrupted");
        if (++tries == CLAIM_TRIES)
            return err_set(err, ERR_USAGE, "%s: end it, or wait for it", result.message);
        waiting.elapsed_s = tries;
        if (options->tick)
            options->tick(options->arg, &waiting);
    }
    if (result.class != DB_OK)
        return err_set(err, ERR_FAILED, "cannot claim the tables: %s", result.message);
    return 0;
}

// Last table first: those that refer to others come later in a schema.
static int drop_tables(struct db_session *session, const struct schema *schema,
                       const struct fill_options *options, struct err *err)
{
    for (int i = schema->n_tables - 1; i >= 0; i--) {
        const char *name = schema->table(i, options->scale)->name;
        struct db_result result;
        struct str sql = STR_INIT;
        str_addf(&sql, "drop table if exists %s", name);
        enum db_class class = db_query(session, sql.buf, false, &result);
        str_release(&sql);
        if (class != DB_OK)
            return err_set(err, ERR_FAILED, "cannot drop the table %s: %s", name, result.message);
    }
    return 0;
}

// More sessions than processors do not load faster, nor any second one where writers wait for each
// other.
static int jobs_for(struct db_target *target, int wanted)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    if (!(db_caps(target) & (DB_CAP_ROW_LOCKS | DB_CAP_BULK_PARALLEL)))
        return 1;
    if (wanted > 0)
        return wanted;
    return cpus < 1 ? 1 : cpus > JOBS_MAX_STANDARD ? JOBS_MAX_STANDARD : (int)cpus;
}

static int fill(struct db_session *session, struct db_target *target, const struct schema *schema,
                const struct fill_options *options, struct fill_report *ret, struct err *err)
{
    struct fill_tick dropping = {.table = "dropping old tables", .left_s = -1};

    if (claim(session, schema, options, err) < 0 ||
        may_replace(session, target, schema, options, err) < 0 ||
        mark_begin(session, schema->name, options->scale, err) < 0)
        return -1;
    if (options->tick)
        options->tick(options->arg, &dropping);
    if (drop_tables(session, schema, options, err) < 0 ||
        fill_work(target, session, schema, options, jobs_for(target, options->jobs), &ret->jobs,
                  err) < 0) {
        size_t len = strlen(err->text);
        snprintf(err->text + len, sizeof(err->text) - len,
                 "; the tables are marked as unfinished, the next init makes them anew");
        return -1;
    }
    return 0;
}

int fill_tables(struct db_target *target, const struct schema *schema,
                const struct fill_options *options, struct fill_report *ret, struct err *err)
{
    int64_t start_ns = clock_now_ns(&clock_system);
    struct db_session *session = options->session;
    struct db_result result, ignored;

    assert(options->scale >= 1 && options->scale <= schema->scale_max);
    *ret = (struct fill_report){.jobs = 1};
    if (!session && db_connect(target, -1, &session, &result) != DB_OK)
        return err_set(err, ERR_USAGE, "%s: %s", db_display(target), result.message);
    db_hurry(session, true, &ignored);
    int rc = fill(session, target, schema, options, ret, err);
    if (rc == 0) {
        db_hurry(session, false, &ignored);
        rc = mark_end(session, schema->name, err);
    }
    if (session != options->session)
        db_disconnect(session);
    for (int i = 0; i < schema->n_tables; i++)
        ret->rows += schema->rows(i, options->scale);
    ret->seconds = (double)(clock_now_ns(&clock_system) - start_ns) / NS_PER_S;
    return rc;
}
