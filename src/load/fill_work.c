// Sessions take tasks from a common list until none is left. Per table: it is made and, where only
// one session may load it, loaded by that session in one go; else it is loaded by ranges of rows;
// then it gets its key, where that did not come first, and is settled. Big tables go first. The
// main thread tells the progress and heeds *stop.
#include "load/fill_work.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define RANGE_ROWS   1000000           // rows of one bulk load where several sessions load a table
#define LOOK_ROWS    256               // rows between looks at whether to stop
#define TICK_NS      (500 * NS_PER_MS) // between two reports of progress
#define WAIT_NS      (50 * NS_PER_MS)  // how soon *stop is noticed
#define CANCEL_EVERY 10                // waits between two attempts to cancel what runs

enum task_kind { TASK_MAKE, TASK_LOAD, TASK_KEY, TASK_SETTLE };

struct part { // a table on its way; fields under the lock
    const struct db_table *table;
    int index; // in the schema
    int64_t rows;
    int64_t taken; // rows given to sessions
    int loading;   // tasks of this table that run now
    int stage;     // enum task_kind: what comes next
};

struct task {
    struct part *part;
    enum task_kind kind;
    int64_t from, to;
};

struct job { // one session and its thread
    struct fill_work *work;
    struct db_session *session; // NULL: not connected; changed under the lock
    pthread_t thread;
    struct task task; // running now; part NULL: none
};

struct fill_work {
    const struct schema *schema;
    int64_t scale;
    bool key_first, parallel;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct part *parts; // by number of rows, most first
    int n_parts;
    struct db_target *target;
    struct job *jobs;
    int n_jobs, n_running;
    bool failed;
    struct err err;
    _Atomic bool quit;
    _Atomic int64_t rows; // loaded so far
    int64_t rows_total;
};

// ---- tasks

// Under the lock. What a session can do next for a table; false when it has to wait for others.
static bool next_of(const struct fill_work *w, struct part *p, struct task *task)
{
    *task = (struct task){.part = p, .kind = (enum task_kind)p->stage};
    switch (p->stage) {
    case TASK_MAKE:
        p->stage = TASK_LOAD;
        if (!w->parallel)
            p->taken = p->rows;
        break;
    case TASK_LOAD:
        if (p->taken < p->rows && p->loading > 0 && p->taken == 0)
            return false; // being made
        if (p->taken < p->rows) {
            task->from = p->taken;
            task->to = p->rows - p->taken > RANGE_ROWS ? p->taken + RANGE_ROWS : p->rows;
            p->taken = task->to;
            break;
        }
        if (p->loading > 0)
            return false;
        if (!w->key_first && p->table->primary_key) {
            task->kind = TASK_KEY;
            p->stage = TASK_KEY;
            break;
        }
        task->kind = TASK_SETTLE;
        p->stage = TASK_SETTLE;
        break;
    case TASK_KEY:
        if (p->loading > 0)
            return false;
        task->kind = TASK_SETTLE;
        p->stage = TASK_SETTLE;
        break;
    case TASK_SETTLE:
        return false;
    }
    p->loading++;
    return true;
}

static bool all_begun(const struct fill_work *w)
{
    for (int i = 0; i < w->n_parts; i++)
        if (w->parts[i].stage != TASK_SETTLE)
            return false;
    return true;
}

// Waits for a task. False when there is none any more.
static bool take_task(struct job *job)
{
    struct fill_work *w = job->work;
    bool found = false;

    pthread_mutex_lock(&w->lock);
    if (job->task.part) {
        job->task.part->loading--;
        pthread_cond_broadcast(&w->changed);
    }
    job->task.part = NULL;
    while (!w->failed && !atomic_load(&w->quit) && !found) {
        for (int i = 0; i < w->n_parts && !found; i++)
            found = next_of(w, &w->parts[i], &job->task);
        if (!found && all_begun(w))
            break;
        if (!found)
            pthread_cond_wait(&w->changed, &w->lock);
    }
    if (!found)
        job->task.part = NULL;
    pthread_mutex_unlock(&w->lock);
    return found;
}

// ---- doing them

static enum db_class load_rows(struct job *job, const struct part *p, int64_t from, int64_t to,
                               struct db_result *result)
{
    struct fill_work *w = job->work;
    struct db_value values[SCHEMA_COLUMNS_MAX];
    char scratch[SCHEMA_TEXT_MAX];
    int64_t told = from;

    assert(p->table->n_columns <= SCHEMA_COLUMNS_MAX);
    if (from == to)
        return DB_OK;
    enum db_class class = db_bulk_begin(job->session, p->table, result);
    for (int64_t row = from; row < to && class == DB_OK; row++) {
        w->schema->row(p->index, row, w->scale, values, scratch);
        class = db_bulk_row(job->session, values, result);
        if (row - told >= LOOK_ROWS) {
            atomic_fetch_add_explicit(&w->rows, row - told, memory_order_relaxed);
            told = row;
            if (atomic_load_explicit(&w->quit, memory_order_relaxed))
                return DB_OK; // closing the session undoes what stands open
        }
    }
    if (class == DB_OK)
        class = db_bulk_end(job->session, result);
    atomic_fetch_add_explicit(&w->rows, to - told, memory_order_relaxed);
    return class;
}

static enum db_class add_key(struct job *job, const struct part *p, struct db_result *result)
{
    struct str sql = STR_INIT;

    str_addf(&sql, "alter table %s add primary key (%s)", p->table->name, p->table->primary_key);
    enum db_class class = db_query(job->session, sql.buf, false, result);
    str_release(&sql);
    return class;
}

static enum db_class do_task(struct job *job, struct db_result *result)
{
    const struct fill_work *w = job->work;
    const struct task *task = &job->task;
    const struct part *p = task->part;

    switch (task->kind) {
    case TASK_MAKE:
        if (db_create_table(job->session, p->table, w->key_first && p->table->primary_key,
                            result) != DB_OK)
            return result->class;
        return w->parallel ? DB_OK : load_rows(job, p, 0, p->rows, result);
    case TASK_LOAD:
        return load_rows(job, p, task->from, task->to, result);
    case TASK_KEY:
        return add_key(job, p, result);
    case TASK_SETTLE:
        return db_settle_table(job->session, p->table, result);
    }
    assert(!"a task");
    return DB_OTHER;
}

// A session that the server does not let in is done without; the first one is there already.
static bool job_connect(struct job *job)
{
    struct fill_work *w = job->work;
    struct db_session *session;
    struct db_result result;

    if (job->session)
        return true;
    if (db_connect(w->target, -1, &session, &result) != DB_OK)
        return false;
    db_hurry(session, true, &result);
    pthread_mutex_lock(&w->lock);
    job->session = session;
    pthread_mutex_unlock(&w->lock);
    return true;
}

static void *job_main(void *arg)
{
    struct job *job = arg;
    struct fill_work *w = job->work;
    struct db_result result;

    while (job_connect(job) && take_task(job)) {
        if (do_task(job, &result) == DB_OK)
            continue;
        pthread_mutex_lock(&w->lock);
        if (!w->failed && !atomic_load(&w->quit))
            err_set(&w->err, ERR_FAILED, "%s: %s", job->task.part->table->name, result.message);
        w->failed = true;
        atomic_store(&w->quit, true); // loads in progress look at it
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_lock(&w->lock);
    w->n_running--;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// ---- watching

// Under the lock: what is told of is the biggest table that is worked on.
static void describe_work(const struct fill_work *w, struct str *out)
{
    const struct task *most = NULL;

    for (int i = 0; i < w->n_jobs; i++) {
        const struct task *t = &w->jobs[i].task;
        if (t->part && (!most || t->part->rows > most->part->rows))
            most = t;
    }
    str_clear(out);
    if (!most)
        return;
    if (most->kind == TASK_KEY)
        str_add(out, "primary key of ");
    if (most->kind == TASK_SETTLE)
        str_add(out, "statistics of ");
    str_add(out, most->part->table->name);
}

static void tick(const struct fill_work *w, const struct fill_options *options, const char *what,
                 double elapsed_s)
{
    int64_t rows = atomic_load(&w->rows);
    double rate = elapsed_s > 0 ? (double)rows / elapsed_s : 0;
    bool loading = rows > 0 && rows < w->rows_total;
    struct fill_tick t = {
        .table = what,
        .rows = rows,
        .rows_total = w->rows_total,
        .rows_per_s = rate,
        .left_s = loading ? (double)(w->rows_total - rows) / rate : -1,
        .elapsed_s = elapsed_s,
    };

    if (options->tick)
        options->tick(options->arg, &t);
}

static void wait_a_little(struct fill_work *w)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + WAIT_NS;
    until.tv_sec += ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    pthread_cond_timedwait(&w->changed, &w->lock, &until);
}

// Sessions live until their threads have ended, so any may be cancelled.
static void cancel_all(struct fill_work *w)
{
    for (int i = 0; i < w->n_jobs; i++) {
        pthread_mutex_lock(&w->lock);
        struct db_session *session = w->jobs[i].session;
        pthread_mutex_unlock(&w->lock);
        if (session)
            db_cancel(session);
    }
}

static void watch(struct fill_work *w, const struct fill_options *options)
{
    int64_t start_ns = clock_now_ns(&clock_system);
    int64_t due_ns = start_ns;
    int waits = 0;
    struct str what = STR_INIT;

    pthread_mutex_lock(&w->lock);
    while (w->n_running > 0) {
        describe_work(w, &what);
        pthread_mutex_unlock(&w->lock);
        int64_t now = clock_now_ns(&clock_system);
        if (now >= due_ns) {
            due_ns = now + TICK_NS;
            tick(w, options, what.buf, (double)(now - start_ns) / NS_PER_S);
        }
        if (options->stop && *options->stop)
            atomic_store(&w->quit, true);
        if (atomic_load(&w->quit) && waits++ % CANCEL_EVERY == 0)
            cancel_all(w);
        pthread_mutex_lock(&w->lock);
        if (atomic_load(&w->quit))
            pthread_cond_broadcast(&w->changed);
        if (w->n_running > 0)
            wait_a_little(w);
    }
    pthread_mutex_unlock(&w->lock);
    tick(w, options, what.buf, (double)(clock_now_ns(&clock_system) - start_ns) / NS_PER_S);
    str_release(&what);
}

// ---- all of it

static int compare_rows(const void *a, const void *b)
{
    const struct part *x = a;
    const struct part *y = b;

    return x->rows != y->rows ? (x->rows > y->rows ? -1 : 1) : x->index - y->index;
}

static void make_parts(struct fill_work *w)
{
    w->n_parts = w->schema->n_tables;
    w->parts = mem_calloc((size_t)w->n_parts, sizeof(*w->parts));
    for (int i = 0; i < w->n_parts; i++) {
        w->parts[i] = (struct part){
            .table = w->schema->table(i, w->scale),
            .index = i,
            .rows = w->schema->rows(i, w->scale),
        };
        w->rows_total += w->parts[i].rows;
    }
    qsort(w->parts, (size_t)w->n_parts, sizeof(*w->parts), compare_rows);
}

static void run_jobs(struct fill_work *w, const struct fill_options *options)
{
    sigset_t all, old;
    int started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    w->n_running = w->n_jobs;
    while (started < w->n_jobs &&
           pthread_create(&w->jobs[started].thread, NULL, job_main, &w->jobs[started]) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_lock(&w->lock);
    w->n_running -= w->n_jobs - started;
    if (started == 0)
        w->failed = err_set(&w->err, ERR_FAILED, "cannot start a thread") < 0;
    pthread_mutex_unlock(&w->lock);
    watch(w, options);
    for (int i = 0; i < started; i++)
        pthread_join(w->jobs[i].thread, NULL);
}

int fill_work(struct db_target *target, struct db_session *session, const struct schema *schema,
              const struct fill_options *options, int jobs, int *ret_jobs, struct err *err)
{
    unsigned caps = db_caps(target);
    struct fill_work w = {
        .target = target,
        .schema = schema,
        .scale = options->scale,
        .key_first = caps & DB_CAP_KEY_FIRST,
        .parallel = (caps & DB_CAP_BULK_PARALLEL) && jobs > 1,
    };
    pthread_condattr_t attr;
    int rc = 0;

    assert(jobs >= 1);
    pthread_mutex_init(&w.lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w.changed, &attr);
    pthread_condattr_destroy(&attr);
    make_parts(&w);
    w.jobs = mem_calloc((size_t)jobs, sizeof(*w.jobs));
    for (; w.n_jobs < jobs; w.n_jobs++)
        w.jobs[w.n_jobs] = (struct job){.work = &w, .session = w.n_jobs == 0 ? session : NULL};
    run_jobs(&w, options);
    if (w.err.kind != ERR_NONE)
        rc = err_set(err, w.err.kind, "%s", w.err.text);
    else if (atomic_load(&w.quit))
        rc = err_set(err, ERR_FAILED, "interrupted");
    *ret_jobs = 0;
    for (int i = 0; i < w.n_jobs; i++) {
        *ret_jobs += w.jobs[i].session != NULL;
        if (i > 0 && w.jobs[i].session)
            db_disconnect(w.jobs[i].session);
    }
    free(w.jobs);
    free(w.parts);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    return rc;
}
