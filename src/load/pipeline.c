// The client's states that have to do with pipelines: what is joined, when it goes out, and what
// the answers mean.
#include "load/pipeline.h"

#include <assert.h>

#include "load/client_internal.h"

// ---- what is joined

// The batch goes out, and what the script wants is heeded when all is answered.
static enum client_ask flush(struct client *c, enum vm_want want)
{
    struct pipeline *p = c->pipeline;

    assert(p->n > 0 && p->next == 0 && !p->has_want);
    p->want = want;
    p->has_want = true;
    c->state = CLIENT_FLUSH;
    return CLIENT_GO_ON;
}

static void add(struct client *c, enum db_kind kind, bool in_block)
{
    struct pipeline *p = c->pipeline;
    unsigned flags = 0;

    assert(p->n < DB_PIPELINE_MAX && p->next == 0);
    if (kind == DB_KIND_COMMIT)
        flags = PIPELINE_COMMITS;
    else if (kind == DB_KIND_WRITE && !in_block)
        flags = PIPELINE_WRITES;
    c->may_be_committed |= flags != 0;
    c->counts.statements++;
    p->in_block =
        kind == DB_KIND_BEGIN || (in_block && kind != DB_KIND_COMMIT && kind != DB_KIND_ROLLBACK);
    p->flags[p->n] = (unsigned char)flags;
    p->statements[p->n++] = c->step.statement->index;
}

// Whether answers to it and to those before may wait: in a section always.
static bool may_join(const struct client *c, enum db_kind kind, bool in_block)
{
    if (c->pipeline->in_section)
        return true;
    if (!c->shared->plan->pipeline_auto || c->step.want_row)
        return false;
    return kind == DB_KIND_BEGIN ||
           (in_block && kind != DB_KIND_COMMIT && kind != DB_KIND_ROLLBACK);
}

static enum client_ask take_statement(struct client *c, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;
    enum db_kind kind = c->step.statement->kind;
    bool in_block = p->n > 0 ? p->in_block : c->in_transaction;
    bool joins = may_join(c, kind, in_block);

    assert(!p->in_section || !c->step.want_row);
    if (!joins && p->n == 0)
        return client_heed(c, VM_SQL, now_ns);
    if (now_ns >= shared_cut_ns(c->shared))
        return client_cut_short(c, now_ns);
    if (p->n == DB_PIPELINE_MAX) {
        assert(!p->in_section); // its batches fit: the compiler counts
        return flush(c, VM_SQL);
    }
    add(c, kind, in_block);
    if (joins) {
        c->state = CLIENT_SCRIPT;
        return ASK_JOIN;
    }
    assert(in_block);
    p->flags[p->n - 1] |= PIPELINE_LAST;
    c->state = CLIENT_PIPELINE;
    return ASK_EXECUTE;
}

// \startpipeline and \endpipeline wait for all answers, \syncpipeline only ends the batch, unless
// the next one has no room beside what is out.
static enum client_ask take_command(struct client *c)
{
    struct pipeline *p = c->pipeline;

    if (c->step.command != VM_SYNC_PIPELINE || p->n + c->step.n_ahead > DB_PIPELINE_MAX) {
        if (p->n > 0)
            return flush(c, VM_PIPELINE);
    } else if (!pipeline_is_ended(p)) {
        p->flags[p->n - 1] |= PIPELINE_LAST;
        c->state = CLIENT_SCRIPT;
        return ASK_END_BATCH;
    }
    p->in_section = c->step.command != VM_END_PIPELINE;
    c->state = CLIENT_SCRIPT;
    return CLIENT_GO_ON;
}

enum client_ask client_pipe(struct client *c, enum vm_want want, int64_t now_ns)
{
    if (want == VM_SQL)
        return take_statement(c, now_ns);
    if (want == VM_PIPELINE)
        return take_command(c);
    return c->pipeline->n > 0 ? flush(c, want) : client_heed(c, want, now_ns);
}

enum client_ask client_state_flush(struct client *c, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;

    (void)now_ns;
    if (!pipeline_is_ended(p)) {
        p->flags[p->n - 1] |= PIPELINE_LAST;
        return ASK_END_BATCH;
    }
    c->state = CLIENT_PIPELINE;
    return ASK_FLUSH;
}

enum client_ask client_state_heed(struct client *c, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;

    assert(p->has_want && p->n == 0);
    p->has_want = false;
    return client_pipe(c, p->want, now_ns);
}

// ---- answers

static void take_good(struct client *c, const struct db_result *result)
{
    struct pipeline *p = c->pipeline;
    unsigned flags = p->flags[p->next++];

    c->is_committed |= (flags & PIPELINE_COMMITS) != 0;
    p->has_written |= (flags & PIPELINE_WRITES) != 0;
    if (!(flags & PIPELINE_LAST))
        return;
    // A BEGIN that came later in the batch has taken earlier writes into its block.
    c->in_transaction = result->in_transaction;
    c->is_committed |= p->has_written && !c->in_transaction;
    p->has_written = false;
}

static void take_failure(struct client *c, const struct db_result *result, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;
    const struct statement_origin *origins = c->shared->workload->origins;
    int statement = p->statements[p->next];

    if (c->trouble == DB_OK && !p->is_cut) {
        p->is_cut = result->class == DB_CANCELLED && now_ns >= shared_cut_ns(c->shared);
        if (!p->is_cut) {
            client_count_error(c, result->class, &origins[statement], result, now_ns);
            c->trouble = result->class;
        }
    }
    while (!(p->flags[p->next++] & PIPELINE_LAST)) // left out
        assert(p->next < p->n);
    c->in_transaction = result->in_transaction;
    p->has_written = false;
}

// All of it is answered, or the session is lost.
static void finish(struct client *c, const struct db_result *result, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;
    bool is_cut = p->is_cut, has_want = p->has_want;

    p->n = p->next = 0;
    p->is_cut = false;
    if (is_cut) {
        client_answer_cut(c, result->class, now_ns);
    } else if (c->trouble != DB_OK) {
        client_fail_try(c, c->trouble, now_ns);
    } else {
        c->state = has_want ? CLIENT_HEED : CLIENT_SCRIPT;
    }
}

void client_pipe_answered(struct client *c, const struct db_result *result, int64_t now_ns)
{
    struct pipeline *p = c->pipeline;

    assert(p->next < p->n);
    int statement = p->statements[p->next];
    client_record_statement(c, statement, result, now_ns);
    if (db_class_is_lost(result->class)) {
        p->n = p->next = 0;
        client_answer_lost(c, statement, result, now_ns);
        return;
    }
    assert(c->state == CLIENT_PIPELINE);
    if (result->class == DB_OK)
        take_good(c, result);
    else
        take_failure(c, result, now_ns);
    if (p->next == p->n)
        finish(c, result, now_ns);
}
