#include "load/fill_load.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"

// Rows between two looks at the stop flag and two additions to the shared count.
#define ROWS_PER_LOOK 4096

// Smaller parts than this are not worth a session's turn.
#define ROWS_PER_PART 250000

struct part { // rows [first, end) of a table
    int table;
    int64_t first, end;
};

struct shared {
    const struct fill_sessions *sessions;
    struct part *parts;
    size_t n_parts, cap_parts;
    atomic_size_t next_part;
    atomic_llong rows;
    atomic_int table;   // last begun, for the progress line
    atomic_bool failed; // the others stop
    atomic_int running; // sessions still at work
};

struct loader {
    struct shared *shared;
    pthread_t thread;
    struct err err;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Large tables first and in key order, so that the small ones fill the gap at the end.
static void make_parts(struct shared *shared)
{
    const struct fill_sessions *s = shared->sessions;

    for (int i = 0; i < s->schema->n_tables; i++) {
        int64_t rows = s->schema->rows(i, s->options->scale);
        int64_t size = rows;
        if (s->split_tables && s->jobs > 1) {
            size = (rows + s->jobs - 1) / s->jobs;
            size = size < ROWS_PER_PART ? ROWS_PER_PART : size;
        }
        for (int64_t first = 0; first < rows; first += size)
            *ARR_PUSH(shared->parts, shared->n_parts, shared->cap_parts) =
                (struct part){i, first, least(first + size, rows)};
    }
    for (size_t i = 1; i < shared->n_parts; i++) // insertion sort, stable: a handful of parts
        for (size_t j = i; j > 0; j--) {
            struct part *a = &shared->parts[j - 1], *b = &shared->parts[j], swap = *a;
            if (a->end - a->first >= b->end - b->first)
                break;
            *a = *b;
            *b = swap;
        }
}

static bool must_stop(const struct shared *shared)
{
    const struct fill_options *options = shared->sessions->options;

    return (options->stop && *options->stop) || atomic_load(&shared->failed);
}

static int load_part(struct shared *shared, struct db_session *session, const struct part *part,
                     struct err *err)
{
    const struct fill_sessions *s = shared->sessions;
    const struct db_table *table = s->schema->table(part->table, s->options->scale);
    struct db_value values[SCHEMA_COLUMNS_MAX];
    char scratch[SCHEMA_TEXT_MAX];
    struct db_result result;
    int64_t row = part->first;

    assert(table->n_columns <= SCHEMA_COLUMNS_MAX);
    atomic_store(&shared->table, part->table);
    enum db_class class = db_bulk_begin(session, table, &result);
    while (class == DB_OK && row < part->end && !must_stop(shared)) {
        int64_t begin = row, end = least(row + ROWS_PER_LOOK, part->end);
        for (; class == DB_OK && row < end; row++) {
            s->schema->row(part->table, row, s->options->scale, values, scratch);
            class = db_bulk_row(session, values, &result);
        }
        atomic_fetch_add(&shared->rows, row - begin);
    }
    if (class == DB_OK && row == part->end)
        class = db_bulk_end(session, &result);
    if (class != DB_OK)
        return err_set(err, ERR_FAILED, "filling %s: %s", table->name, result.message);
    return row == part->end ? 0 : -1; // stopped: err stays empty, the session is given up
}

static void *load_parts(void *arg)
{
    struct loader *loader = arg;
    struct shared *shared = loader->shared;
    struct db_session *session = NULL;
    struct db_result result;
    size_t i;

    if (db_connect(shared->sessions->target, -1, &session, &result) != DB_OK)
        err_set(&loader->err, ERR_FAILED, "connecting: %s", result.message);
    while (session && !must_stop(shared) &&
           (i = atomic_fetch_add(&shared->next_part, 1)) < shared->n_parts)
        if (load_part(shared, session, &shared->parts[i], &loader->err) < 0)
            break;
    if (loader->err.kind)
        atomic_store(&shared->failed, true);
    db_disconnect(session);
    atomic_fetch_sub(&shared->running, 1);
    return NULL;
}

static void tell(const struct shared *shared)
{
    const struct fill_sessions *s = shared->sessions;
    int64_t rows = atomic_load(&((struct shared *)shared)->rows);
    double elapsed_s = (double)(clock_now_ns(&clock_system) - s->start_ns) / 1e9;
    double rate = elapsed_s > 0 ? (double)rows / elapsed_s : 0;
    struct fill_tick tick = {
        .table = s->schema->table(atomic_load(&((struct shared *)shared)->table), s->options->scale)
                     ->name,
        .rows = rows,
        .rows_total = s->rows_total,
        .rows_per_s = rate,
        .left_s = rate > 0 ? (double)(s->rows_total - rows) / rate : -1,
        .elapsed_s = elapsed_s,
    };

    if (s->options->tick)
        s->options->tick(s->options->arg, &tick);
}

// Joins the sessions; while they work, the caller's thread tells how far they are.
static int wait_for(struct shared *shared, struct loader *loaders, int n, struct err *err)
{
    int64_t next_tick_ns = clock_now_ns(&clock_system) + NS_PER_S / 4;
    int rc = 0;

    while (atomic_load(&shared->running) > 0) {
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 5 * NS_PER_MS);
        if (clock_now_ns(&clock_system) >= next_tick_ns) {
            tell(shared);
            next_tick_ns += NS_PER_S / 4;
        }
    }
    for (int i = 0; i < n; i++) {
        pthread_join(loaders[i].thread, NULL);
        if (loaders[i].err.kind && rc == 0) {
            *err = loaders[i].err;
            rc = -1;
        }
    }
    return rc;
}

int fill_load(const struct fill_sessions *sessions, struct err *err)
{
    struct shared shared = {.sessions = sessions};
    int n = 0, rc = 0;

    make_parts(&shared);
    struct loader *loaders = mem_calloc((size_t)sessions->jobs, sizeof(*loaders));
    for (; n < sessions->jobs && n < (int)shared.n_parts; n++) {
        loaders[n].shared = &shared;
        atomic_fetch_add(&shared.running, 1);
        if (pthread_create(&loaders[n].thread, NULL, load_parts, &loaders[n]) != 0) {
            atomic_fetch_sub(&shared.running, 1);
            break; // fewer sessions do the work as well
        }
    }
    if (n == 0 && shared.n_parts > 0)
        rc = err_set(err, ERR_FAILED, "no thread could be started");
    if (wait_for(&shared, loaders, n, err) < 0)
        rc = -1;
    if (rc == 0 && sessions->options->stop && *sessions->options->stop)
        rc = err_set(err, ERR_FAILED, "interrupted");
    free(loaders);
    free(shared.parts);
    return rc;
}
