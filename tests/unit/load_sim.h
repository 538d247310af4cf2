// A world for clients, in one thread, under a clock that stands still: a virtual machine that plays
// a list of steps in place of a compiled script, and a loop that delivers scripted answers at
// scripted times. Everything is exact. Included by the tests of the client; they do not link the
// real virtual machine.
#pragma once

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "load/client.h"
#include "load/gather.h"
#include "load/seconds.h"
#include "load/shared.h"

#define SIM_SCRIPTS_MAX 4
#define SIM_STEPS_MAX   100

// One step of a script. SQL steps are the statements, numbered in order over all scripts.
struct sim_step {
    enum vm_want want;
    enum db_kind kind;
    int64_t sleep_ns;
    bool want_row;
    enum vm_command command; // VM_PIPELINE
};

// What the server answers, and after how long.
struct sim_answer {
    enum db_class class;
    int64_t after_ns;
};

// What a client has joined, and then sent in one piece.
struct sim_queue {
    int n, next;
    int statements[DB_PIPELINE_MAX];
    bool last[DB_PIPELINE_MAX]; // of its batch
};

struct sim;
typedef struct sim_answer sim_answer_fn(struct sim *sim, int client, int statement, int64_t now_ns);

struct sim {
    struct plan plan;
    struct db_target *target;
    struct workload workload;
    struct script scripts[SIM_SCRIPTS_MAX];
    struct sim_step steps[SIM_SCRIPTS_MAX][SIM_STEPS_MAX]; // of each script; want VM_END ends
    int first_statement[SIM_SCRIPTS_MAX];
    struct db_statement statements[SIM_SCRIPTS_MAX * SIM_STEPS_MAX];
    struct statement_origin origins[SIM_SCRIPTS_MAX * SIM_STEPS_MAX];

    sim_answer_fn *execute; // statement -1: the undo query
    sim_answer_fn *connect; // NULL: at once, always
    void *arg;

    struct shared shared;
    struct seconds seconds;
    struct recorder recorder; // one worker with all clients
    struct client *clients;
    bool *in_transaction; // at the server, by client
    bool *aborted;        // likewise: inside a transaction that failed
    struct sim_queue *queues;
    int64_t *due_ns;
    enum client_ask *asked;
    struct sim_answer *answers;
    int64_t start_ns;
    int64_t executed, retried; // calls of vm_retry
    int64_t sent, rows_taken;  // pieces that were sent
    struct result *result;
};

// ---- the virtual machine

struct vm {
    const struct sim *sim;
    int script;
    int at;
    int64_t begins, retries;
};

static inline const struct sim *sim_of_workload(const struct workload *w)
{
    return (const struct sim *)((const char *)w - offsetof(struct sim, workload));
}

struct vm *vm_new(const struct workload *workload, int client, uint64_t seed)
{
    (void)client;
    (void)seed;
    struct vm *vm = mem_calloc(1, sizeof(*vm));
    vm->sim = sim_of_workload(workload);
    return vm;
}

void vm_free(struct vm *vm)
{
    free(vm);
}

void vm_begin(struct vm *vm, int script)
{
    vm->script = script;
    vm->at = 0;
    vm->begins++;
}

void vm_retry(struct vm *vm)
{
    vm->at = 0;
    vm->retries++;
}

enum vm_want vm_run(struct vm *vm, struct vm_step *step)
{
    const struct sim *sim = vm->sim;
    const struct sim_step *now = &sim->steps[vm->script][vm->at];
    int statement = sim->first_statement[vm->script];

    if (now->want == VM_END)
        return VM_END;
    for (int i = 0; i < vm->at; i++)
        statement += sim->steps[vm->script][i].want == VM_SQL;
    vm->at++;
    memset(step, 0, sizeof(*step));
    step->statement = &sim->statements[statement];
    step->want_row = now->want_row;
    step->command = now->command;
    for (const struct sim_step *s = now + 1; s->want != VM_PIPELINE && s->want != VM_END; s++)
        step->n_ahead += s->want == VM_SQL;
    step->sleep_ns = now->sleep_ns;
    step->error = "script:1: division by zero";
    return now->want;
}

int vm_take_row(struct vm *vm, int64_t rows, int n_columns)
{
    ((struct sim *)vm->sim)->rows_taken++;
    (void)rows;
    (void)n_columns;
    return 0;
}

void vm_take_column(struct vm *vm, const char *name, struct db_value value)
{
    (void)vm;
    (void)name;
    (void)value;
}

// ---- the world

// Ends of scripts are marked with VM_END; zeroed steps would be SQL.
static inline void sim_script(struct sim *sim, const struct sim_step *steps, int n, double weight)
{
    int s = sim->workload.n_scripts++;

    assert_true(s < SIM_SCRIPTS_MAX && n < SIM_STEPS_MAX);
    sim->scripts[s] = (struct script){.name = (char *)"script", .weight = weight};
    sim->first_statement[s] = sim->workload.n_statements;
    memcpy(sim->steps[s], steps, (size_t)n * sizeof(*steps));
    sim->steps[s][n].want = VM_END;
    for (int i = 0; i < n; i++) {
        if (steps[i].want != VM_SQL)
            continue;
        int k = sim->workload.n_statements++;
        sim->statements[k] =
            (struct db_statement){.index = k, .kind = steps[i].kind, .sql = "statement"};
        sim->origins[k] =
            (struct statement_origin){.script = s, .line = i + 1, .text = (char *)"statement"};
    }
}

// A plan to be changed by the test: one client, 10 s, closed loop, no warm-up.
static inline void sim_init(struct sim *sim)
{
    struct db_open_options options = {.seed = 1};
    struct err err = ERR_INIT;

    memset(sim, 0, sizeof(*sim));
    assert_int_equal(db_open(&sim->target, "null:", &options, &err), 0);
    sim->workload.name = (char *)"sim";
    sim->workload.source_hash = (char *)"0";
    sim->workload.scripts = sim->scripts;
    sim->workload.statements = sim->statements;
    sim->workload.origins = sim->origins;
    sim->start_ns = 1000 * NS_PER_S;
    sim->plan = (struct plan){
        .clock = &clock_system,
        .target = sim->target,
        .workload = &sim->workload,
        .clients = 1,
        .loop = "threads",
        .time_ns = 10 * NS_PER_S,
        .warmup = PLAN_WARMUP_NONE,
        .max_tries = 10,
        .reconnect_for_ns = 60 * NS_PER_S,
        .finish_for_ns = 10 * NS_PER_S,
        .seed = 42,
    };
}

static inline struct sim_answer sim_connect(struct sim *sim, int client, int64_t now_ns)
{
    if (!sim->connect)
        return (struct sim_answer){DB_OK, 0};
    return sim->connect(sim, client, 0, now_ns);
}

// The statement that the server executes now; -1: the undo query.
static inline int sim_present(const struct sim *sim, int i)
{
    const struct sim_queue *q = &sim->queues[i];

    if (sim->asked[i] == ASK_QUERY)
        return -1;
    return q->n > 0 ? q->statements[q->next] : sim->clients[i].step.statement->index;
}

// The server begins with the next statement; the answer is delivered later.
static inline void sim_begin(struct sim *sim, int i, int64_t now_ns)
{
    int statement = sim_present(sim, i);

    sim->executed++;
    if (sim->aborted[i] && statement >= 0) { // COMMIT is answered well, and rolls back
        enum db_kind kind = sim->statements[statement].kind;
        bool ends = kind == DB_KIND_COMMIT || kind == DB_KIND_ROLLBACK;
        sim->answers[i] = (struct sim_answer){ends ? DB_OK : DB_OTHER, 0};
    } else {
        sim->answers[i] = sim->execute(sim, i, statement, now_ns);
    }
    sim->due_ns[i] = now_ns + sim->answers[i].after_ns;
}

static inline void sim_send(struct sim *sim, int i, int64_t now_ns)
{
    client_sending(&sim->clients[i], now_ns);
    sim->sent++;
    sim_begin(sim, i, now_ns);
}

// Only what stands inside BEGIN ... COMMIT is joined, unless a script says so.
static inline void sim_join(struct sim *sim, int i, bool is_last)
{
    struct client *c = &sim->clients[i];
    struct sim_queue *q = &sim->queues[i];
    bool in_block = sim->in_transaction[i];

    assert_true(q->n < DB_PIPELINE_MAX && q->next == 0);
    for (int k = 0; k < q->n; k++) {
        enum db_kind kind = sim->statements[q->statements[k]].kind;
        in_block = kind == DB_KIND_BEGIN ||
                   (in_block && kind != DB_KIND_COMMIT && kind != DB_KIND_ROLLBACK);
    }
    assert_true(in_block || c->step.statement->kind == DB_KIND_BEGIN || c->pipeline->in_section);
    assert_true(is_last || !c->step.want_row);
    assert_int_equal(client_is_joined(c), q->n > 0);
    q->statements[q->n] = c->step.statement->index;
    q->last[q->n++] = is_last;
}

// What the statement does to the session at the server.
static inline void sim_apply(struct sim *sim, int i, struct db_result *result)
{
    int statement = sim_present(sim, i);

    if (result->class == DB_LOST) {
        sim->in_transaction[i] = sim->aborted[i] = false;
    } else if (statement < 0) {
        sim->in_transaction[i] = sim->in_transaction[i] && result->class != DB_OK;
        sim->aborted[i] = sim->aborted[i] && sim->in_transaction[i];
    } else if (result->class != DB_OK) {
        sim->aborted[i] = sim->in_transaction[i];
    } else {
        enum db_kind kind = sim->statements[statement].kind;
        if (kind == DB_KIND_BEGIN)
            sim->in_transaction[i] = (sim->shared.caps & DB_CAP_TRANSACTIONS) != 0;
        if (kind == DB_KIND_COMMIT || kind == DB_KIND_ROLLBACK)
            sim->in_transaction[i] = sim->aborted[i] = false;
    }
    result->in_transaction = sim->in_transaction[i];
}

// Past the statement that was answered, and of a failed batch past the rest. Only the end of a
// batch tells the state of the transaction.
static inline void sim_advance(struct sim *sim, int i, struct db_result *result)
{
    struct sim_queue *q = &sim->queues[i];

    if (q->n == 0)
        return;
    if (result->class == DB_LOST)
        q->next = q->n;
    else if (result->class != DB_OK)
        while (!q->last[q->next++])
            ;
    else if (!q->last[q->next++])
        result->in_transaction = !result->in_transaction;
    if (q->next == q->n)
        q->n = q->next = 0;
}

// False while more answers are due.
static inline bool sim_deliver(struct sim *sim, int i, int64_t now_ns)
{
    struct client *c = &sim->clients[i];
    struct db_result result = {.class = sim->answers[i].class, .rows = 1};

    if (result.class != DB_OK)
        strcpy(result.message, "as scripted"), strcpy(result.native, "X1");
    if (sim->asked[i] == ASK_EXECUTE || sim->asked[i] == ASK_QUERY || sim->asked[i] == ASK_FLUSH) {
        sim_apply(sim, i, &result);
        sim_advance(sim, i, &result);
        if (result.class == DB_OK && sim->asked[i] != ASK_QUERY && client_wants_row(c))
            client_take_row(c, 1, 0);
        client_answered(c, &result, now_ns);
        assert_int_equal(client_awaits(c), sim->queues[i].n > 0);
        if (client_awaits(c))
            sim_begin(sim, i, now_ns);
        return !client_awaits(c);
    } else if (sim->asked[i] == ASK_CONNECT) {
        sim->in_transaction[i] = sim->aborted[i] = false;
        if (result.class == DB_OK)
            client_connected(c, now_ns);
        else
            client_refused(c, &result, now_ns);
    }
    return true;
}

// Steps until something has to be waited for; false when the client has ended.
static inline bool sim_step(struct sim *sim, int i, int64_t now_ns)
{
    for (;;) {
        sim->asked[i] = client_step(&sim->clients[i], now_ns);
        switch (sim->asked[i]) {
        case ASK_EXECUTE:
            if (client_is_joined(&sim->clients[i]))
                sim_join(sim, i, true);
            sim_send(sim, i, now_ns);
            return true;
        case ASK_FLUSH:
            assert_true(sim->queues[i].last[sim->queues[i].n - 1]);
            sim_send(sim, i, now_ns);
            return true;
        case ASK_QUERY:
            sim_send(sim, i, now_ns);
            return true;
        case ASK_JOIN:
            sim_join(sim, i, false);
            break;
        case ASK_END_BATCH:
            assert_false(sim->queues[i].last[sim->queues[i].n - 1]);
            sim->queues[i].last[sim->queues[i].n - 1] = true;
            break;
        case ASK_CONNECT:
            sim->answers[i] = sim_connect(sim, i, now_ns);
            sim->due_ns[i] = now_ns + sim->answers[i].after_ns;
            return true;
        case ASK_WAIT:
            assert_true(sim->clients[i].until_ns > now_ns);
            sim->due_ns[i] = sim->clients[i].until_ns;
            return true;
        case ASK_NEXT:
            break;
        case ASK_END:
            sim->due_ns[i] = INT64_MAX;
            return false;
        case CLIENT_GO_ON:
            fail();
        }
    }
}

static inline void sim_start(struct sim *sim)
{
    int n = sim->plan.clients;

    for (int s = 0; s < sim->workload.n_scripts; s++)
        for (const struct sim_step *step = sim->steps[s]; step->want != VM_END; step++)
            sim->workload.has_pipeline |= step->want == VM_PIPELINE;
    shared_init(&sim->shared, &sim->plan);
    seconds_init(&sim->seconds, TALLY_STATEMENTS + sim->workload.n_statements);
    recorder_init(&sim->recorder, sim->seconds.n_channels, &sim->shared.end_ns,
                  &sim->seconds.slow_floor);
    sim->clients = mem_calloc((size_t)n, sizeof(*sim->clients));
    sim->in_transaction = mem_calloc((size_t)n, sizeof(*sim->in_transaction));
    sim->aborted = mem_calloc((size_t)n, sizeof(*sim->aborted));
    sim->queues = mem_calloc((size_t)n, sizeof(*sim->queues));
    sim->due_ns = mem_calloc((size_t)n, sizeof(*sim->due_ns));
    sim->asked = mem_calloc((size_t)n, sizeof(*sim->asked));
    sim->answers = mem_calloc((size_t)n, sizeof(*sim->answers));
    for (int i = 0; i < n; i++) {
        client_init(&sim->clients[i], i, &sim->shared, &sim->recorder, NULL);
        client_connected(&sim->clients[i], sim->start_ns);
        sim->due_ns[i] = sim->start_ns;
        sim->asked[i] = ASK_WAIT;
    }
    shared_start(&sim->shared, sim->start_ns);
    recorder_start(&sim->recorder, sim->start_ns);
}

static inline void sim_collect(struct sim *sim)
{
    for (struct tally *t = recorder_take(&sim->recorder), *next; t; t = next) {
        next = t->next;
        seconds_add(&sim->seconds, t);
        recorder_give(&sim->recorder, t);
    }
}

// Runs until every client has ended, or to the given time. Returns the time reached.
static inline int64_t sim_run_to(struct sim *sim, int64_t until_ns)
{
    int64_t now_ns = sim->start_ns;

    for (;;) {
        int next = 0;
        for (int i = 1; i < sim->plan.clients; i++)
            if (sim->due_ns[i] < sim->due_ns[next])
                next = i;
        if (sim->due_ns[next] == INT64_MAX || sim->due_ns[next] >= until_ns)
            return now_ns;
        assert_true(sim->due_ns[next] >= now_ns);
        now_ns = sim->due_ns[next];
        if (sim_deliver(sim, next, now_ns))
            sim_step(sim, next, now_ns);
        sim_collect(sim);
    }
}

static inline const struct client *sim_client(const void *arg, int i)
{
    return &((const struct client *)arg)[i];
}

static inline struct result *sim_gather(struct sim *sim)
{
    int64_t end_ns = sim->start_ns;

    for (int i = 0; i < sim->plan.clients; i++) {
        const struct client *c = &sim->clients[i];
        assert_int_equal(c->state, CLIENT_ENDED);
        if (c->end == CLIENT_TIME_IS_UP)
            end_ns = shared_end_ns(&sim->shared);
        else if (c->ended_ns + 1 > end_ns)
            end_ns = c->ended_ns + 1;
        sim->retried += c->vm->retries;
    }
    recorder_close(&sim->recorder);
    sim_collect(sim);
    seconds_pack(&sim->seconds);
    struct gather gather = {
        .shared = &sim->shared,
        .seconds = &sim->seconds,
        .client = sim_client,
        .arg = sim->clients,
        .end_ns = end_ns,
    };
    return sim->result = gather_result(&gather);
}

static inline struct result *sim_run(struct sim *sim)
{
    sim_start(sim);
    sim_run_to(sim, INT64_MAX);
    return sim_gather(sim);
}

static inline void sim_release(struct sim *sim)
{
    result_free(sim->result);
    for (int i = 0; i < sim->plan.clients; i++)
        client_release(&sim->clients[i]);
    free(sim->clients);
    free(sim->in_transaction);
    free(sim->aborted);
    free(sim->queues);
    free(sim->due_ns);
    free(sim->asked);
    free(sim->answers);
    recorder_release(&sim->recorder);
    seconds_release(&sim->seconds);
    shared_release(&sim->shared);
    db_close(sim->target);
}
