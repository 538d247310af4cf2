#include "load/fill.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "load/fill_load.h"
#include "load/mark.h"

// ---- looking

// Is the table there, and does it hold a row? Returns 1, 0, or negative with err.
static int look_at_table(struct db_session *session, const char *name, bool *ret_filled,
                         struct err *err)
{
    char *sql = mem_printf("SELECT 1 FROM %s LIMIT 1", name);
    struct db_result result;
    enum db_class class = db_query(session, sql, true, &result);

    free(sql);
    *ret_filled = class == DB_OK && result.rows > 0;
    if (class == DB_OK)
        return 1;
    if (class == DB_UNDEFINED)
        return 0;
    return err_set(err, ERR_USAGE, "looking at the table %s: %s", name, result.message);
}

static int query_int(struct db_session *session, const char *sql, int64_t *ret, struct err *err)
{
    struct db_result result;

    if (db_query(session, sql, true, &result) != DB_OK)
        return err_set(err, ERR_USAGE, "%s: %s", sql, result.message);
    struct db_value value = result.rows ? db_row_value(session, 0) : (struct db_value){DB_NULL};
    *ret = value.type == DB_INT ? value.i : value.type == DB_TEXT ? strtoll(value.s, NULL, 10) : 0;
    return 0;
}

// Scale 1 is as good as any where only names are asked for.
static const char *table_name(const struct schema *schema, int i)
{
    return schema->table(i, 1)->name;
}

int fill_look(struct db_session *session, const struct schema *schema, struct fill_look *ret,
              struct err *err)
{
    const char *missing = NULL, *empty = NULL, *present = NULL;
    struct mark mark;

    *ret = (struct fill_look){0};
    if (mark_read(session, schema->name, &mark, err) < 0)
        return -1;
    for (int i = 0; i < schema->n_tables; i++) {
        bool filled;
        int there = look_at_table(session, table_name(schema, i), &filled, err);
        if (there < 0)
            return -1;
        if (!there)
            missing = table_name(schema, i);
        else
            present = table_name(schema, i);
        if (there && !filled && schema->rows(i, 1) > 0)
            empty = table_name(schema, i);
    }
    ret->ours = mark.there;
    snprintf(ret->made, sizeof(ret->made), "%s", mark.made);
    if (!present) {
        ret->state = FILL_ABSENT;
        return 0;
    }
    ret->state = FILL_PARTIAL;
    if (mark.there && !mark.complete) {
        snprintf(ret->detail, sizeof(ret->detail), "an init to scale %" PRId64 " was interrupted",
                 mark.scale);
        return 0;
    }
    if (missing || empty) {
        snprintf(ret->detail, sizeof(ret->detail), "%s %s", missing ? missing : empty,
                 missing ? "is missing" : "is empty");
        return 0;
    }
    ret->state = FILL_COMPLETE;
    if (query_int(session, schema->scale_query, &ret->scale, err) < 0)
        return -1;
    // A mark of another scale is about tables that are gone: somebody made these anew.
    if (mark.there && mark.scale != ret->scale)
        ret->ours = false;
    return 0;
}

// ---- making

struct filler {
    struct db_target *target;
    const struct schema *schema;
    const struct fill_options *options;
    struct db_session *session;
    int64_t start_ns;
    int64_t rows_total;
};

static int command(struct filler *f, const char *sql, struct err *err)
{
    struct db_result result;

    if (db_query(f->session, sql, false, &result) != DB_OK)
        return err_set(err, ERR_FAILED, "%s: %s", sql, result.message);
    return 0;
}

static bool must_stop(const struct filler *f, struct err *err)
{
    if (!f->options->stop || !*f->options->stop)
        return false;
    err_set(err, ERR_FAILED, "interrupted");
    return true;
}

// Tells of a step without rows of its own.
static void tell_step(const struct filler *f, const char *step)
{
    struct fill_tick tick = {
        .table = step,
        .rows = f->rows_total,
        .rows_total = f->rows_total,
        .left_s = -1,
        .elapsed_s = (double)(clock_now_ns(&clock_system) - f->start_ns) / 1e9,
    };

    tick.rows_per_s = tick.elapsed_s > 0 ? (double)f->rows_total / tick.elapsed_s : 0;
    if (f->options->tick)
        f->options->tick(f->options->arg, &tick);
}

static int drop_tables(struct filler *f, struct err *err)
{
    for (int i = f->schema->n_tables - 1; i >= 0; i--) {
        char *sql = mem_printf("DROP TABLE IF EXISTS %s", table_name(f->schema, i));
        int rc = command(f, sql, err);
        free(sql);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int create_tables(struct filler *f, struct err *err)
{
    bool with_key = db_caps(f->target) & DB_CAP_KEY_FIRST;
    struct db_result result;

    for (int i = 0; i < f->schema->n_tables; i++) {
        const struct db_table *table = f->schema->table(i, f->options->scale);
        if (db_create_table(f->session, table, with_key, &result) != DB_OK)
            return err_set(err, ERR_FAILED, "creating %s: %s", table->name, result.message);
    }
    return 0;
}

static int add_keys(struct filler *f, struct err *err)
{
    if (db_caps(f->target) & DB_CAP_KEY_FIRST)
        return 0;
    tell_step(f, "primary keys");
    for (int i = 0; i < f->schema->n_tables; i++) {
        const struct db_table *table = f->schema->table(i, f->options->scale);
        if (!table->primary_key)
            continue;
        char *sql =
            mem_printf("ALTER TABLE %s ADD PRIMARY KEY (%s)", table->name, table->primary_key);
        int rc = must_stop(f, err) ? -1 : command(f, sql, err);
        free(sql);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int settle_tables(struct filler *f, struct err *err)
{
    struct db_result result;

    tell_step(f, "statistics");
    for (int i = 0; i < f->schema->n_tables; i++) {
        const struct db_table *table = f->schema->table(i, f->options->scale);
        if (must_stop(f, err))
            return -1;
        if (db_settle_table(f->session, table, &result) != DB_OK)
            return err_set(err, ERR_FAILED, "settling %s: %s", table->name, result.message);
    }
    return 0;
}

static int usable_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Sessions that help: one per CPU up to eight where the engine loads in parallel, else one.
static int choose_jobs(const struct filler *f)
{
    int cpus = usable_cpus();

    if (f->options->jobs > 0)
        return f->options->jobs;
    if (!(db_caps(f->target) & DB_CAP_BULK_PARALLEL))
        return 1;
    return cpus < 8 ? cpus : 8;
}

static int fill(struct filler *f, int jobs, struct err *err)
{
    struct fill_sessions sessions = {
        .target = f->target,
        .schema = f->schema,
        .options = f->options,
        .jobs = jobs,
        .split_tables = db_caps(f->target) & DB_CAP_BULK_PARALLEL,
        .start_ns = f->start_ns,
        .rows_total = f->rows_total,
    };

    // From the mark on, until the last one, whoever looks sees an init that did not finish.
    if (mark_write(f->session, f->schema->name, f->options->scale, false, err) < 0 ||
        drop_tables(f, err) < 0 || create_tables(f, err) < 0 || fill_load(&sessions, err) < 0 ||
        add_keys(f, err) < 0 || settle_tables(f, err) < 0)
        return -1;
    return mark_write(f->session, f->schema->name, f->options->scale, true, err);
}

// Tables that prony did not make are dropped only when the user said so.
static int may_drop(struct filler *f, struct err *err)
{
    struct fill_look look;

    if (fill_look(f->session, f->schema, &look, err) < 0)
        return -1;
    if (look.state != FILL_ABSENT && !look.ours && !f->options->replace_foreign)
        return err_set(err, ERR_USAGE,
                       "the tables of %s in %s were not made by prony: drop them yourself, or "
                       "give --replace",
                       f->schema->name, db_display(f->target));
    return 0;
}

int fill_tables(struct db_target *target, const struct schema *schema,
                const struct fill_options *options, struct fill_report *ret, struct err *err)
{
    struct filler f = {.target = target, .schema = schema, .options = options};
    struct db_result result;

    assert(options->scale >= 1 && options->scale <= schema->scale_max);
    f.start_ns = clock_now_ns(&clock_system);
    for (int i = 0; i < schema->n_tables; i++)
        f.rows_total += schema->rows(i, options->scale);
    if (db_connect(target, -1, &f.session, &result) != DB_OK)
        return err_set(err, ERR_USAGE, "%s: %s", db_display(target), result.message);
    int jobs = choose_jobs(&f);
    int rc = may_drop(&f, err);
    if (rc == 0 && (rc = fill(&f, jobs, err)) < 0)
        err_prefix(err, "the tables of %s are not finished (`prony init` makes them anew)",
                   schema->name);
    db_disconnect(f.session);
    if (rc < 0)
        return rc;
    *ret = (struct fill_report){
        .rows = f.rows_total,
        .seconds = (double)(clock_now_ns(&clock_system) - f.start_ns) / 1e9,
        .jobs = jobs,
    };
    return 0;
}

// ---- checking

int fill_check(struct db_session *session, const struct schema *schema, int64_t *balances,
               bool *ret_equal, struct err *err)
{
    *ret_equal = true;
    for (int i = 0; schema->balances[i]; i++) {
        if (query_int(session, schema->balances[i], &balances[i], err) < 0)
            return -1;
        if (balances[i] != balances[0])
            *ret_equal = false;
    }
    return 0;
}
