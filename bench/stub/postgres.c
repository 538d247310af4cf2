// PostgreSQL's protocol, version 3: simple, extended and prepared. Everybody may log in. What is
// answered to a statement is made into bytes once, when it is parsed.
#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "postgres_plan.h"
#include "stub.h"

enum {
    REQUEST_CANCEL = 80877102,
    REQUEST_SSL = 80877103,
    REQUEST_GSS = 80877104,
    PROTOCOL_MAJOR = 3,
};

struct postgres_session {
    struct session base;
    bool started;
    bool skipping;    // after an error, until Sync
    char transaction; // 'I' none, 'T' open, 'E' failed
    struct postgres_plan **plans;
    size_t n_plans, cap_plans;
    char portal_name[64];
    struct postgres_plan *portal;  // the last that was bound; NULL: none
    enum postgres_format format;   // of its results
    struct postgres_plan *running; // held
    struct str query;              // a simple query and how far it was run; empty: none
    size_t query_at;
    struct postgres_plan scratch; // one statement of it
};

static struct postgres_session *own(struct session *s)
{
    assert(s->protocol == &protocol_postgres);
    return (struct postgres_session *)s;
}

static void add_ready(struct postgres_session *p)
{
    const char message[6] = {'Z', 0, 0, 0, 5, p->transaction};

    str_addn(&p->base.out, message, sizeof(message));
    p->base.send_now = true;
}

// ---- plans

static struct postgres_plan *find_plan(const struct postgres_session *p, const char *name)
{
    for (size_t i = 0; i < p->n_plans; i++)
        if (strcmp(p->plans[i]->name, name) == 0)
            return p->plans[i];
    return NULL;
}

static void forget_plan(struct postgres_session *p, const char *name)
{
    for (size_t i = 0; i < p->n_plans; i++) {
        struct postgres_plan *plan = p->plans[i];
        if (strcmp(plan->name, name) != 0)
            continue;
        if (p->portal == plan)
            p->portal = NULL;
        postgres_plan_release(plan);
        free(plan);
        p->plans[i] = p->plans[--p->n_plans];
        return;
    }
}

// ---- executing

static void fail(struct postgres_session *p, const char *state, const char *text)
{
    postgres_add_error(&p->base.out, state, text);
    if (p->transaction == 'T')
        p->transaction = 'E';
    if (p->query.len == 0)
        p->skipping = true;
}

// The answer to a statement whose fate is known. False: it failed.
static bool answer(struct postgres_session *p, const struct postgres_plan *plan)
{
    struct session *s = &p->base;
    const struct str *rows = &plan->as[p->query.len > 0 ? POSTGRES_TEXT : p->format].rows;
    size_t before = s->out.len;

    if (s->cancelled) {
        fail(p, "57014", "canceling statement due to user request");
        return false;
    }
    if (s->fate == FATE_ERROR) {
        fail(p, s->stub->faults.error.state, "the stub fails, as it was told");
        return false;
    }
    if (plan->kind == SQL_REFUSED) {
        fail(p, plan->state, plan->message);
        return false;
    }
    if (plan->transaction == SQL_COMMITS && p->transaction == 'E')
        postgres_add_complete(&s->out, "ROLLBACK");
    else
        str_addn(&s->out, rows->buf, rows->len);
    if (plan->transaction != SQL_STAYS)
        p->transaction = plan->transaction == SQL_BEGINS ? 'T' : 'I';
    if (s->fate != FATE_ANSWER)
        session_drop(s, before);
    return true;
}

// True: held. ret_failed is set unless it is held.
static bool execute(struct postgres_session *p, struct postgres_plan *plan, bool *ret_failed)
{
    bool ends = plan->transaction == SQL_COMMITS || plan->transaction == SQL_ROLLS_BACK;

    if (p->transaction == 'E' && !ends) {
        fail(p, "25P02", "current transaction is aborted");
        *ret_failed = true;
        return false;
    }
    if (session_begin(&p->base, plan->is_setup, plan->transaction)) {
        p->running = plan;
        return true;
    }
    *ret_failed = !answer(p, plan);
    return false;
}

// ---- simple queries

static void end_query(struct postgres_session *p)
{
    str_clear(&p->query);
    if (!p->base.ending)
        add_ready(p);
}

// Goes on with a simple query, which may hold several statements.
static void run_query(struct postgres_session *p)
{
    const struct str *description = &p->scratch.as[POSTGRES_TEXT].description;
    bool failed = false;

    do {
        const char *rest = p->query.buf + p->query_at;
        size_t n_rest = p->query.len - p->query_at;
        size_t n = sql_first(rest, n_rest);
        bool is_only = p->query_at == 0 && n == n_rest;
        p->query_at += n < n_rest ? n + 1 : n;
        postgres_plan_make(&p->scratch, rest, n, p->base.stub->scale, true);
        if (p->scratch.kind == SQL_EMPTY && !is_only)
            continue;
        if (p->scratch.kind == SQL_ROWS)
            str_addn(&p->base.out, description->buf, description->len);
        if (execute(p, &p->scratch, &failed))
            return;
    } while (!failed && !p->base.ending && p->query_at < p->query.len);
    end_query(p);
}

static void postgres_resume(struct session *s)
{
    struct postgres_session *p = own(s);
    struct postgres_plan *plan = p->running;

    assert(plan);
    p->running = NULL;
    bool good = answer(p, plan);
    if (p->query.len == 0)
        return;
    if (good && !s->ending && p->query_at < p->query.len)
        run_query(p);
    else
        end_query(p);
}

// ---- messages of the client

struct reader {
    const char *at, *end;
    bool bad;
};

static const char *read_text(struct reader *r)
{
    const char *text = r->at;
    const char *zero = r->at < r->end ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;

    if (!zero) {
        r->bad = true;
        return "";
    }
    r->at = zero + 1;
    return text;
}

static int64_t read_int(struct reader *r, int size)
{
    int64_t value = 0;

    if (r->end - r->at < size) {
        r->bad = true;
        return 0;
    }
    for (int i = 0; i < size; i++)
        value = value << 8 | (unsigned char)*r->at++;
    return size == 4 ? (int32_t)value : (int16_t)value;
}

static void skip_bytes(struct reader *r, int64_t n)
{
    if (n > r->end - r->at)
        r->bad = true;
    else if (n > 0)
        r->at += n;
}

static void on_parse(struct postgres_session *p, struct reader *r)
{
    const char *name = read_text(r);
    const char *sql = read_text(r);

    if (r->bad)
        return;
    if (name[0] && find_plan(p, name)) {
        fail(p, "42P05", "prepared statement already exists");
        return;
    }
    if (p->transaction == 'E') {
        struct sql_answer a;
        sql_answer(sql, strlen(sql), 1, &a);
        if (a.transaction != SQL_COMMITS && a.transaction != SQL_ROLLS_BACK) {
            fail(p, "25P02", "current transaction is aborted");
            return;
        }
    }
    struct postgres_plan *plan = mem_calloc(1, sizeof(*plan));
    postgres_plan_init(plan);
    postgres_plan_make(plan, sql, strlen(sql), p->base.stub->scale, false);
    if (plan->kind == SQL_REFUSED) { // as a server that has no such table
        fail(p, plan->state, plan->message);
        postgres_plan_release(plan);
        free(plan);
        return;
    }
    postgres_plan_parameters(plan, sql_parameters(sql, strlen(sql), false));
    plan->name = mem_strdup(name);
    forget_plan(p, name);
    *ARR_PUSH(p->plans, p->n_plans, p->cap_plans) = plan;
    postgres_add_empty(&p->base.out, '1');
}

static void on_bind(struct postgres_session *p, struct reader *r)
{
    const char *portal = read_text(r);
    const char *name = read_text(r);
    bool text = false, binary = false;

    skip_bytes(r, 2 * read_int(r, 2));
    for (int64_t n = read_int(r, 2); n > 0 && !r->bad; n--)
        skip_bytes(r, read_int(r, 4));
    for (int64_t n = read_int(r, 2); n > 0 && !r->bad; n--) {
        bool one = read_int(r, 2) == POSTGRES_BINARY;
        binary |= one;
        text |= !one;
    }
    if (r->bad)
        return;
    struct postgres_plan *plan = find_plan(p, name);
    if (!plan) {
        fail(p, "26000", "prepared statement does not exist");
    } else if (text && binary) {
        fail(p, "0A000", "the stub gives all columns as text, or all as binary");
    } else if (strlen(portal) >= sizeof(p->portal_name)) {
        fail(p, "42622", "the portal's name is too long");
    } else {
        memcpy(p->portal_name, portal, strlen(portal) + 1);
        p->portal = plan;
        p->format = binary ? POSTGRES_BINARY : POSTGRES_TEXT;
        postgres_add_empty(&p->base.out, '2');
    }
}

// The portal of this name; only the last that was bound exists.
static struct postgres_plan *find_portal(struct postgres_session *p, const char *name)
{
    if (p->portal && strcmp(p->portal_name, name) == 0)
        return p->portal;
    fail(p, "34000", "portal does not exist");
    return NULL;
}

static void on_describe(struct postgres_session *p, struct reader *r)
{
    char what = r->at < r->end ? *r->at++ : 'P';
    const char *name = read_text(r);
    if (r->bad)
        return;
    struct postgres_plan *plan = what == 'S' ? find_plan(p, name) : find_portal(p, name);
    if (!plan) {
        if (what == 'S')
            fail(p, "26000", "prepared statement does not exist");
        return;
    }
    if (what == 'S')
        str_addn(&p->base.out, plan->parameters.buf, plan->parameters.len);
    const struct str *description = &plan->as[what == 'S' ? POSTGRES_TEXT : p->format].description;
    str_addn(&p->base.out, description->buf, description->len);
}

static void on_close(struct postgres_session *p, struct reader *r)
{
    char what = r->at < r->end ? *r->at++ : 'P';
    const char *name = read_text(r);

    if (r->bad)
        return;
    if (what == 'S')
        forget_plan(p, name);
    else if (strcmp(p->portal_name, name) == 0)
        p->portal = NULL;
    postgres_add_empty(&p->base.out, '3');
}

static void on_execute(struct postgres_session *p, struct reader *r)
{
    const char *name = read_text(r);
    bool failed;

    if (r->bad)
        return;
    struct postgres_plan *plan = find_portal(p, name);
    if (plan)
        execute(p, plan, &failed);
}

static void on_query(struct postgres_session *p, struct reader *r)
{
    const char *sql = read_text(r);

    if (r->bad)
        return;
    str_clear(&p->query);
    str_addn(&p->query, sql, strlen(sql) + 1); // with its end, so that an empty one is a query too
    p->query_at = 0;
    run_query(p);
}

static void on_message(struct postgres_session *p, char type, struct reader *r)
{
    if (type == 'S') {
        p->skipping = false;
        add_ready(p);
        return;
    }
    if (p->skipping && type != 'X')
        return;
    switch (type) {
    case 'B':
        on_bind(p, r);
        break;
    case 'E':
        on_execute(p, r);
        break;
    case 'D':
        on_describe(p, r);
        break;
    case 'P':
        on_parse(p, r);
        break;
    case 'Q':
        on_query(p, r);
        break;
    case 'C':
        on_close(p, r);
        break;
    case 'H':
        p->base.send_now = true;
        break;
    case 'X':
        p->base.ending = true;
        break;
    case 'F':
        fail(p, "0A000", "the stub has no functions");
        break;
    case 'd': // the rest of a COPY that was refused
    case 'c':
    case 'f':
        break;
    default:
        r->bad = true;
    }
}

// ---- starting

static void add_status(struct str *out, const char *name, const char *value)
{
    size_t from = postgres_begin(out, 'S');

    postgres_add_text(out, name);
    postgres_add_text(out, value);
    postgres_end(out, from);
}

static void welcome(struct postgres_session *p, int minor)
{
    static const char *const told[][2] = {
        {"server_version", "15.0 (stub)"},
        {"server_encoding", "UTF8"},
        {"client_encoding", "UTF8"},
        {"standard_conforming_strings", "on"},
        {"integer_datetimes", "on"},
        {"DateStyle", "ISO, MDY"},
        {"TimeZone", "UTC"},
        {"in_hot_standby", "off"},
        {"default_transaction_read_only", "off"},
    };
    struct str *out = &p->base.out;
    size_t from;

    if (minor > 0) { // NegotiateProtocolVersion: 3.0 it is
        from = postgres_begin(out, 'v');
        postgres_add_int32(out, 0);
        postgres_add_int32(out, 0);
        postgres_end(out, from);
    }
    from = postgres_begin(out, 'R');
    postgres_add_int32(out, 0);
    postgres_end(out, from);
    for (size_t i = 0; i < ARR_LEN(told); i++)
        add_status(out, told[i][0], told[i][1]);
    from = postgres_begin(out, 'K');
    postgres_add_int32(out, p->base.number);
    postgres_add_int32(out, 0);
    postgres_end(out, from);
    p->transaction = 'I';
    p->started = true;
    session_ready(&p->base);
    add_ready(p);
}

static void on_startup(struct postgres_session *p, struct reader *r)
{
    int64_t code = read_int(r, 4);

    if (code == REQUEST_SSL || code == REQUEST_GSS) {
        str_addc(&p->base.out, 'N');
        p->base.send_now = true;
    } else if (code == REQUEST_CANCEL) {
        uint32_t number = (uint32_t)read_int(r, 4);
        if (!r->bad)
            stub_cancel(p->base.stub, &protocol_postgres, number, false);
        p->base.ending = true;
    } else if (code >> 16 == PROTOCOL_MAJOR) {
        welcome(p, (int)(code & 0xffff));
    } else {
        r->bad = true;
    }
}

static void postgres_open(struct session *s)
{
    struct postgres_session *p = own(s);

    str_init(&p->query);
    postgres_plan_init(&p->scratch);
}

static ssize_t postgres_take(struct session *s, const char *bytes, size_t n)
{
    struct postgres_session *p = own(s);
    size_t at = 0;

    while (s->heap_index < 0 && !s->ending) {
        size_t head = p->started ? 1 : 0; // the first messages have no type
        struct reader r = {bytes + at + head, bytes + n, false};
        if (n - at < head + 4)
            break;
        int64_t len = read_int(&r, 4);
        if (len < 4 || len > MESSAGE_MAX)
            return -1;
        if (n - at < head + (size_t)len)
            break;
        r.end = bytes + at + head + len;
        if (p->started)
            on_message(p, bytes[at], &r);
        else
            on_startup(p, &r);
        if (r.bad)
            return -1;
        at += head + (size_t)len;
    }
    return (ssize_t)at;
}

static void postgres_release(struct session *s)
{
    struct postgres_session *p = own(s);

    for (size_t i = 0; i < p->n_plans; i++) {
        postgres_plan_release(p->plans[i]);
        free(p->plans[i]);
    }
    free(p->plans);
    str_release(&p->query);
    postgres_plan_release(&p->scratch);
}

const struct protocol protocol_postgres = {
    .name = "postgres",
    .size = sizeof(struct postgres_session),
    .open = postgres_open,
    .take = postgres_take,
    .resume = postgres_resume,
    .release = postgres_release,
};
