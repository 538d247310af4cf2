// PostgreSQL's protocol, version 3: simple, extended and prepared. Everybody may log in. What is
// answered to a statement is made into bytes once, when it is parsed.
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "stub.h"

enum {
    REQUEST_CANCEL = 80877102,
    REQUEST_SSL = 80877103,
    REQUEST_GSS = 80877104,
    PROTOCOL_MAJOR = 3,
};

enum format { AS_TEXT, AS_BINARY };

enum { OID_INT8 = 20, OID_INT4 = 23, OID_BPCHAR = 1042, OID_VARCHAR = 1043 };

// A statement and the messages that answer it.
struct plan {
    char *name; // NULL: the text of a simple query
    enum sql_kind kind;
    enum sql_transaction transaction;
    bool is_setup;
    struct str parameters; // ParameterDescription
    struct {
        struct str description; // RowDescription, or NoData
        struct str rows;        // DataRow and CommandComplete
    } as[2];                    // by enum format
    char state[6];              // SQL_REFUSED
    const char *message;
};

struct postgres_session {
    struct session base;
    bool started;
    bool skipping;    // after an error, until Sync
    char transaction; // 'I' none, 'T' open, 'E' failed
    struct plan **plans;
    size_t n_plans, cap_plans;
    char portal_name[64];
    struct plan *portal;  // the last that was bound; NULL: none
    enum format format;   // of its results
    struct plan *running; // held
    struct str query;     // a simple query and how far it was run; empty: none
    size_t query_at;
    struct plan scratch; // one statement of it
};

static struct postgres_session *own(struct session *s)
{
    assert(s->protocol == &protocol_postgres);
    return (struct postgres_session *)s;
}

// ---- writing

static void add_int16(struct str *out, int value)
{
    uint16_t wire = htons((uint16_t)value);

    str_addn(out, (const char *)&wire, sizeof(wire));
}

static void add_int32(struct str *out, int64_t value)
{
    uint32_t wire = htonl((uint32_t)value);

    str_addn(out, (const char *)&wire, sizeof(wire));
}

static size_t message_begin(struct str *out, char type)
{
    str_addc(out, type);
    add_int32(out, 0);
    return out->len;
}

static void message_end(struct str *out, size_t from)
{
    uint32_t wire = htonl((uint32_t)(out->len - from + 4));

    memcpy(out->buf + from - 4, &wire, sizeof(wire));
}

static void add_text(struct str *out, const char *text)
{
    str_addn(out, text, strlen(text) + 1);
}

static void add_empty(struct str *out, char type)
{
    const char message[5] = {type, 0, 0, 0, 4};

    str_addn(out, message, sizeof(message));
}

static void add_error(struct str *out, const char *state, const char *text)
{
    size_t from = message_begin(out, 'E');

    add_text(out, "SERROR");
    add_text(out, "VERROR");
    str_addc(out, 'C');
    add_text(out, state);
    str_addc(out, 'M');
    add_text(out, text);
    str_addc(out, '\0');
    message_end(out, from);
}

static void add_ready(struct postgres_session *p)
{
    const char message[6] = {'Z', 0, 0, 0, 5, p->transaction};

    str_addn(&p->base.out, message, sizeof(message));
    p->base.send_now = true;
}

static void add_complete(struct str *out, const char *tag)
{
    size_t from = message_begin(out, 'C');

    add_text(out, tag);
    message_end(out, from);
}

// ---- plans

static void add_description(struct str *out, const struct sql_answer *a, enum format format)
{
    size_t from = message_begin(out, 'T');

    add_int16(out, a->n_columns);
    for (int i = 0; i < a->n_columns; i++) {
        const struct sql_column *c = &a->columns[i];
        bool is_char = c->type == SQL_CHAR;
        add_text(out, c->name);
        add_int32(out, 0); // of no table
        add_int16(out, 0);
        add_int32(out, is_char ? OID_BPCHAR : c->type == SQL_INT8 ? OID_INT8 : OID_INT4);
        add_int16(out, is_char ? -1 : c->type == SQL_INT8 ? 8 : 4);
        add_int32(out, is_char ? (int64_t)strlen(c->value) + 4 : -1); // its modifier
        add_int16(out, format);
    }
    message_end(out, from);
}

static void add_value(struct str *out, const struct sql_column *c, enum format format)
{
    int64_t value = strtoll(c->value, NULL, 10);

    if (c->is_null) {
        add_int32(out, -1);
    } else if (format == AS_TEXT || c->type == SQL_CHAR) {
        add_int32(out, (int64_t)strlen(c->value));
        str_add(out, c->value);
    } else {
        add_int32(out, c->type == SQL_INT8 ? 8 : 4);
        if (c->type == SQL_INT8)
            add_int32(out, value >> 32);
        add_int32(out, value);
    }
}

static void add_row(struct str *out, const struct sql_answer *a, enum format format)
{
    size_t from = message_begin(out, 'D');

    add_int16(out, a->n_columns);
    for (int i = 0; i < a->n_columns; i++)
        add_value(out, &a->columns[i], format);
    message_end(out, from);
}

static void plan_init(struct plan *plan)
{
    str_init(&plan->parameters);
    for (int i = 0; i < 2; i++) {
        str_init(&plan->as[i].description);
        str_init(&plan->as[i].rows);
    }
}

static void plan_release(struct plan *plan)
{
    free(plan->name);
    str_release(&plan->parameters);
    for (int i = 0; i < 2; i++) {
        str_release(&plan->as[i].description);
        str_release(&plan->as[i].rows);
    }
}

static void make_messages(struct plan *plan, const struct sql_answer *a, enum format format)
{
    struct str *description = &plan->as[format].description;
    struct str *rows = &plan->as[format].rows;

    str_clear(description);
    str_clear(rows);
    switch (a->kind) {
    case SQL_EMPTY:
        add_empty(description, 'n');
        add_empty(rows, 'I');
        break;
    case SQL_ROWS:
        add_description(description, a, format);
        add_row(rows, a, format);
        add_complete(rows, a->tag);
        break;
    case SQL_DONE:
        add_empty(description, 'n');
        add_complete(rows, a->tag);
        break;
    case SQL_REFUSED:
        break;
    }
}

// plan: initialised, or used before. A simple query's is text only.
static void plan_make(struct plan *plan, const char *sql, size_t n, int64_t scale, bool text_only)
{
    struct sql_answer a;

    sql_answer(sql, n, scale, &a);
    plan->kind = a.kind;
    plan->transaction = a.transaction;
    plan->is_setup = a.is_setup || a.kind == SQL_REFUSED || a.kind == SQL_EMPTY;
    plan->message = a.message;
    if (a.kind == SQL_REFUSED)
        snprintf(plan->state, sizeof(plan->state), "%s", a.state);
    make_messages(plan, &a, AS_TEXT);
    if (!text_only)
        make_messages(plan, &a, AS_BINARY);
}

static void add_parameters(struct plan *plan, int n)
{
    size_t from = message_begin(&plan->parameters, 't');

    add_int16(&plan->parameters, n);
    for (int i = 0; i < n; i++)
        add_int32(&plan->parameters, OID_VARCHAR);
    message_end(&plan->parameters, from);
}

static struct plan *find_plan(const struct postgres_session *p, const char *name)
{
    for (size_t i = 0; i < p->n_plans; i++)
        if (strcmp(p->plans[i]->name, name) == 0)
            return p->plans[i];
    return NULL;
}

static void forget_plan(struct postgres_session *p, const char *name)
{
    for (size_t i = 0; i < p->n_plans; i++) {
        struct plan *plan = p->plans[i];
        if (strcmp(plan->name, name) != 0)
            continue;
        if (p->portal == plan)
            p->portal = NULL;
        plan_release(plan);
        free(plan);
        p->plans[i] = p->plans[--p->n_plans];
        return;
    }
}

// ---- executing

static void fail(struct postgres_session *p, const char *state, const char *text)
{
    add_error(&p->base.out, state, text);
    if (p->transaction == 'T')
        p->transaction = 'E';
    if (p->query.len == 0)
        p->skipping = true;
}

// The answer to a statement whose fate is known. False: it failed.
static bool answer(struct postgres_session *p, const struct plan *plan)
{
    struct session *s = &p->base;
    const struct str *rows = &plan->as[p->query.len > 0 ? AS_TEXT : p->format].rows;
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
        add_complete(&s->out, "ROLLBACK");
    else
        str_addn(&s->out, rows->buf, rows->len);
    if (plan->transaction != SQL_STAYS)
        p->transaction = plan->transaction == SQL_BEGINS ? 'T' : 'I';
    if (s->fate != FATE_ANSWER)
        session_drop(s, before);
    return true;
}

// True: held. ret_failed is set unless it is held.
static bool execute(struct postgres_session *p, struct plan *plan, bool *ret_failed)
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
    const struct str *description = &p->scratch.as[AS_TEXT].description;
    bool failed = false;

    do {
        const char *rest = p->query.buf + p->query_at;
        size_t n_rest = p->query.len - p->query_at;
        size_t n = sql_first(rest, n_rest);
        bool is_only = p->query_at == 0 && n == n_rest;
        p->query_at += n < n_rest ? n + 1 : n;
        plan_make(&p->scratch, rest, n, p->base.stub->scale, true);
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
    struct plan *plan = p->running;

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
    struct plan *plan = mem_calloc(1, sizeof(*plan));
    plan_init(plan);
    plan_make(plan, sql, strlen(sql), p->base.stub->scale, false);
    if (plan->kind == SQL_REFUSED) { // as a server that has no such table
        fail(p, plan->state, plan->message);
        plan_release(plan);
        free(plan);
        return;
    }
    add_parameters(plan, sql_parameters(sql, strlen(sql), false));
    plan->name = mem_strdup(name);
    forget_plan(p, name);
    *ARR_PUSH(p->plans, p->n_plans, p->cap_plans) = plan;
    add_empty(&p->base.out, '1');
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
        bool one = read_int(r, 2) == AS_BINARY;
        binary |= one;
        text |= !one;
    }
    if (r->bad)
        return;
    struct plan *plan = find_plan(p, name);
    if (!plan) {
        fail(p, "26000", "prepared statement does not exist");
    } else if (text && binary) {
        fail(p, "0A000", "the stub gives all columns as text, or all as binary");
    } else if (strlen(portal) >= sizeof(p->portal_name)) {
        fail(p, "42622", "the portal's name is too long");
    } else {
        memcpy(p->portal_name, portal, strlen(portal) + 1);
        p->portal = plan;
        p->format = binary ? AS_BINARY : AS_TEXT;
        add_empty(&p->base.out, '2');
    }
}

// The portal of this name; only the last that was bound exists.
static struct plan *find_portal(struct postgres_session *p, const char *name)
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
    struct plan *plan = what == 'S' ? find_plan(p, name) : find_portal(p, name);
    if (!plan) {
        if (what == 'S')
            fail(p, "26000", "prepared statement does not exist");
        return;
    }
    if (what == 'S')
        str_addn(&p->base.out, plan->parameters.buf, plan->parameters.len);
    const struct str *description = &plan->as[what == 'S' ? AS_TEXT : p->format].description;
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
    add_empty(&p->base.out, '3');
}

static void on_execute(struct postgres_session *p, struct reader *r)
{
    const char *name = read_text(r);
    bool failed;

    if (r->bad)
        return;
    struct plan *plan = find_portal(p, name);
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
    size_t from = message_begin(out, 'S');

    add_text(out, name);
    add_text(out, value);
    message_end(out, from);
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
        from = message_begin(out, 'v');
        add_int32(out, 0);
        add_int32(out, 0);
        message_end(out, from);
    }
    from = message_begin(out, 'R');
    add_int32(out, 0);
    message_end(out, from);
    for (size_t i = 0; i < ARR_LEN(told); i++)
        add_status(out, told[i][0], told[i][1]);
    from = message_begin(out, 'K');
    add_int32(out, p->base.number);
    add_int32(out, 0);
    message_end(out, from);
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
    plan_init(&p->scratch);
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
        plan_release(p->plans[i]);
        free(p->plans[i]);
    }
    free(p->plans);
    str_release(&p->query);
    plan_release(&p->scratch);
}

const struct protocol protocol_postgres = {
    .name = "postgres",
    .size = sizeof(struct postgres_session),
    .open = postgres_open,
    .take = postgres_take,
    .resume = postgres_resume,
    .release = postgres_release,
};
