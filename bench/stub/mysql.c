// MySQL's protocol as MariaDB 10.11 speaks it: text and binary results, metadata left out of the
// second execution of a statement (MARIADB_CLIENT_CACHE_METADATA), no TLS, no compression. Every
// password is right.
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "mysql_plan.h"
#include "stub.h"

#define SERVER_VERSION "5.5.5-10.11.0-MariaDB-stub" // the prefix is MariaDB's own
#define PLUGIN         "mysql_native_password"
#define SCRAMBLE       "prony's stub is open" // 20 bytes
#define PACKET_MAX     0xffffff
#define LAST_STATEMENT \
    UINT32_MAX // MariaDB: the one prepared last, executed before its number is known

enum capability {
    CAP_FOUND_ROWS = 1 << 1,
    CAP_LONG_FLAG = 1 << 2,
    CAP_WITH_DB = 1 << 3,
    CAP_IGNORE_SPACE = 1 << 8,
    CAP_PROTOCOL_41 = 1 << 9,
    CAP_INTERACTIVE = 1 << 10,
    CAP_TRANSACTIONS = 1 << 13,
    CAP_SECURE = 1 << 15,
    CAP_MULTI_STATEMENTS = 1 << 16,
    CAP_MULTI_RESULTS = 1 << 17,
    CAP_PS_MULTI_RESULTS = 1 << 18,
    CAP_PLUGIN = 1 << 19,
    CAP_ATTRIBUTES = 1 << 20,
    CAP_PLUGIN_LENGTHS = 1 << 21,
    CAP_DEPRECATE_EOF = 1 << 24,
    // MariaDB's own, in a word of their own; that the lowest bit above is unset tells that it is
    // there.
    MARIADB_CACHE_METADATA = 1 << 4,
};

#define CAPABILITIES                                                                              \
    (CAP_FOUND_ROWS | CAP_LONG_FLAG | CAP_WITH_DB | CAP_IGNORE_SPACE | CAP_PROTOCOL_41 |          \
     CAP_INTERACTIVE | CAP_TRANSACTIONS | CAP_SECURE | CAP_MULTI_STATEMENTS | CAP_MULTI_RESULTS | \
     CAP_PS_MULTI_RESULTS | CAP_PLUGIN | CAP_ATTRIBUTES | CAP_PLUGIN_LENGTHS | CAP_DEPRECATE_EOF)

enum { STATUS_IN_TRANSACTION = 1, STATUS_AUTOCOMMIT = 2, STATUS_MORE_RESULTS = 8 };

enum command {
    COM_QUIT = 0x01,
    COM_INIT_DB = 0x02,
    COM_QUERY = 0x03,
    COM_STATISTICS = 0x09,
    COM_PING = 0x0e,
    COM_CHANGE_USER = 0x11,
    COM_STMT_PREPARE = 0x16,
    COM_STMT_EXECUTE = 0x17,
    COM_STMT_SEND_LONG_DATA = 0x18,
    COM_STMT_CLOSE = 0x19,
    COM_STMT_RESET = 0x1a,
    COM_SET_OPTION = 0x1b,
    COM_RESET_CONNECTION = 0x1f,
};

enum phase { PHASE_GREETED, PHASE_SWITCHED, PHASE_READY };

struct mysql_session {
    struct session base;
    enum phase phase;
    uint32_t caps;
    bool caches_metadata;
    uint8_t sequence; // of the next packet
    bool in_transaction;
    struct mysql_plan **plans; // prepared
    size_t n_plans, cap_plans;
    uint32_t last_id;
    struct mysql_plan *running; // held
    struct str query;           // COM_QUERY and how far it was run
    size_t query_at;
    struct mysql_plan scratch; // one statement of it
};

static struct mysql_session *own(struct session *s)
{
    assert(s->protocol == &protocol_mysql);
    return (struct mysql_session *)s;
}

// ---- writing

static size_t packet_begin(struct mysql_session *m)
{
    const char head[4] = {0, 0, 0, (char)m->sequence++};

    str_addn(&m->base.out, head, sizeof(head));
    return m->base.out.len;
}

static void packet_end(struct mysql_session *m, size_t from)
{
    size_t n = m->base.out.len - from;
    char *head = m->base.out.buf + from - 4;

    assert(n < PACKET_MAX);
    head[0] = (char)n;
    head[1] = (char)(n >> 8);
    head[2] = (char)(n >> 16);
}

static void add_packet(struct mysql_session *m, const struct str *payload)
{
    size_t from = packet_begin(m);

    str_addn(&m->base.out, payload->buf, payload->len);
    packet_end(m, from);
}

static unsigned status_of(const struct mysql_session *m)
{
    bool more = m->query_at < m->query.len;

    return STATUS_AUTOCOMMIT | (m->in_transaction ? STATUS_IN_TRANSACTION : 0) |
           (more ? STATUS_MORE_RESULTS : 0);
}

static void add_ok_payload(struct mysql_session *m, int header, uint64_t affected)
{
    struct str *out = &m->base.out;

    str_addc(out, (char)header);
    mysql_add_length(out, affected);
    mysql_add_length(out, 0); // no id was inserted
    mysql_add_int(out, status_of(m), 2);
    mysql_add_int(out, 0, 2); // warnings
}

static void add_ok(struct mysql_session *m, uint64_t affected)
{
    size_t from = packet_begin(m);

    add_ok_payload(m, 0, affected);
    packet_end(m, from);
}

static void add_eof(struct mysql_session *m)
{
    size_t from = packet_begin(m);

    str_addc(&m->base.out, (char)0xfe);
    mysql_add_int(&m->base.out, 0, 2);
    mysql_add_int(&m->base.out, status_of(m), 2);
    packet_end(m, from);
}

// After column definitions: an EOF packet for clients that still want one.
static void end_columns(struct mysql_session *m)
{
    if (!(m->caps & CAP_DEPRECATE_EOF))
        add_eof(m);
}

static void end_rows(struct mysql_session *m)
{
    if (!(m->caps & CAP_DEPRECATE_EOF)) {
        add_eof(m);
        return;
    }
    size_t from = packet_begin(m);
    add_ok_payload(m, 0xfe, 0);
    packet_end(m, from);
}

// MySQL's own number for a SQLSTATE, where it has one that clients go by.
static unsigned number_of(const char *state)
{
    static const struct {
        char state[6];
        unsigned number;
    } known[] = {{"40001", 1213}, {"42P01", 1146}, {"42S02", 1146}, {"23000", 1062},
                 {"HY000", 1205}, {"42000", 1064}, {"70100", 1317}, {"25006", 1792},
                 {"0A000", 1235}, {"08S01", 1053}};

    for (size_t i = 0; i < ARR_LEN(known); i++)
        if (strcmp(known[i].state, state) == 0)
            return known[i].number;
    return 1105; // unknown error
}

static void add_error(struct mysql_session *m, const char *state, const char *text)
{
    size_t from = packet_begin(m);

    str_addc(&m->base.out, (char)0xff);
    mysql_add_int(&m->base.out, number_of(state), 2);
    str_addc(&m->base.out, '#');
    str_add(&m->base.out, strcmp(state, "42P01") == 0 ? "42S02" : state);
    str_add(&m->base.out, text);
    packet_end(m, from);
    if (strcmp(state, "40001") == 0) // a deadlock undoes the transaction
        m->in_transaction = false;
}

// ---- plans

static size_t find_plan(const struct mysql_session *m, uint32_t id)
{
    size_t i = 0;

    if (id == LAST_STATEMENT)
        id = m->last_id;
    while (i < m->n_plans && m->plans[i]->id != id)
        i++;
    return i;
}

static void forget_plan(struct mysql_session *m, uint32_t id)
{
    size_t i = find_plan(m, id);

    if (i == m->n_plans)
        return;
    mysql_plan_release(m->plans[i]);
    free(m->plans[i]);
    m->plans[i] = m->plans[--m->n_plans];
}

// ---- executing

static void add_result(struct mysql_session *m, struct mysql_plan *plan, bool binary)
{
    bool with_columns = !(binary && plan->told && m->caches_metadata);
    size_t from = packet_begin(m);

    mysql_add_length(&m->base.out, (uint64_t)plan->n_columns);
    if (m->caches_metadata)
        str_addc(&m->base.out, with_columns);
    packet_end(m, from);
    for (int i = 0; with_columns && i < plan->n_columns; i++)
        add_packet(m, &plan->columns[i]);
    end_columns(m);
    add_packet(m, binary ? &plan->binary_row : &plan->text_row);
    end_rows(m);
    plan->told = true;
}

// The answer to a statement whose fate is known. False: it failed.
static bool answer(struct mysql_session *m, struct mysql_plan *plan)
{
    struct session *s = &m->base;
    size_t before = s->out.len;
    bool binary = plan != &m->scratch;

    s->send_now = true;
    if (s->cancelled || s->fate == FATE_ERROR || plan->kind == SQL_REFUSED) {
        m->query_at = m->query.len; // what comes after it is not run
        if (s->cancelled)
            add_error(m, "70100", "Query execution was interrupted");
        else if (s->fate == FATE_ERROR)
            add_error(m, s->stub->faults.error.state, "the stub fails, as it was told");
        else
            add_error(m, plan->state, plan->message);
        return false;
    }
    if (plan->transaction != SQL_STAYS)
        m->in_transaction = plan->transaction == SQL_BEGINS;
    if (plan->kind == SQL_ROWS)
        add_result(m, plan, binary);
    else
        add_ok(m, (uint64_t)plan->affected);
    if (s->fate != FATE_ANSWER)
        session_drop(s, before);
    return true;
}

// Goes on with a COM_QUERY, which may hold several statements.
static void run_query(struct mysql_session *m)
{
    do {
        const char *rest = m->query.buf + m->query_at;
        size_t n_rest = m->query.len - m->query_at;
        size_t n = sql_first(rest, n_rest);
        m->query_at += n < n_rest ? n + 1 : n;
        if (m->query_at < m->query.len) { // nothing but blanks after the last ';'
            struct sql_answer after;
            sql_answer(m->query.buf + m->query_at, m->query.len - m->query_at, 1, &after);
            if (after.kind == SQL_EMPTY)
                m->query_at = m->query.len;
        }
        mysql_plan_make(&m->scratch, rest, n, m->base.stub->scale);
        if (session_begin(&m->base, m->scratch.is_setup, m->scratch.transaction)) {
            m->running = &m->scratch;
            return;
        }
        answer(m, &m->scratch);
    } while (m->query_at < m->query.len && !m->base.ending);
}

static void mysql_resume(struct session *s)
{
    struct mysql_session *m = own(s);
    struct mysql_plan *plan = m->running;

    assert(plan);
    m->running = NULL;
    answer(m, plan);
    if (plan == &m->scratch && m->query_at < m->query.len && !s->ending)
        run_query(m);
}

// ---- commands

static void on_query(struct mysql_session *m, const char *sql, size_t n)
{
    bool connection = false;
    uint32_t number = sql_kill(sql, n, &connection);

    if (number > 0) {
        add_ok(m, 0);
        stub_cancel(m->base.stub, &protocol_mysql, number, connection);
        return;
    }
    str_clear(&m->query);
    str_addn(&m->query, sql, n);
    m->query_at = 0;
    run_query(m);
}

static void on_prepare(struct mysql_session *m, const char *sql, size_t n)
{
    static const struct sql_column mark = {.name = "?", .type = SQL_CHAR};
    struct mysql_plan *plan = mem_calloc(1, sizeof(*plan));
    int n_marks = sql_parameters(sql, n, true);

    mysql_plan_init(plan);
    mysql_plan_make(plan, sql, n, m->base.stub->scale);
    if (plan->kind == SQL_REFUSED) {
        add_error(m, plan->state, plan->message);
        mysql_plan_release(plan);
        free(plan);
        return;
    }
    plan->id = ++m->last_id;
    *ARR_PUSH(m->plans, m->n_plans, m->cap_plans) = plan;

    struct str *out = &m->base.out;
    size_t from = packet_begin(m);
    str_addc(out, 0);
    mysql_add_int(out, plan->id, 4);
    mysql_add_int(out, (uint64_t)plan->n_columns, 2);
    mysql_add_int(out, (uint64_t)n_marks, 2);
    mysql_add_int(out, 0, 3); // filler, warnings
    packet_end(m, from);
    struct str column = STR_INIT;
    mysql_set_column(&column, &mark);
    for (int i = 0; i < n_marks; i++)
        add_packet(m, &column);
    str_release(&column);
    if (n_marks > 0)
        end_columns(m);
    for (int i = 0; i < plan->n_columns; i++)
        add_packet(m, &plan->columns[i]);
    if (plan->n_columns > 0)
        end_columns(m);
}

static uint32_t read_int32(const char *bytes, size_t n)
{
    uint32_t wire = 0;

    memcpy(&wire, bytes, n < 4 ? n : 4);
    return le32toh(wire);
}

static void on_execute(struct mysql_session *m, const char *bytes, size_t n)
{
    size_t i = find_plan(m, read_int32(bytes, n));

    if (i == m->n_plans) {
        add_error(m, "HY000", "Unknown prepared statement");
        return;
    }
    if (session_begin(&m->base, m->plans[i]->is_setup, m->plans[i]->transaction))
        m->running = m->plans[i];
    else
        answer(m, m->plans[i]);
}

static void forget_all(struct mysql_session *m)
{
    while (m->n_plans > 0)
        forget_plan(m, m->plans[0]->id);
    m->in_transaction = false;
}

static void on_command(struct mysql_session *m, const char *bytes, size_t n)
{
    struct session *s = &m->base;
    size_t from;

    str_clear(&m->query); // status_of looks at it
    m->query_at = 0;
    s->send_now = true;
    s->cancelled = false;
    switch ((enum command)(unsigned char)bytes[0]) {
    case COM_STMT_EXECUTE:
        on_execute(m, bytes + 1, n - 1);
        break;
    case COM_QUERY:
        on_query(m, bytes + 1, n - 1);
        break;
    case COM_STMT_PREPARE:
        on_prepare(m, bytes + 1, n - 1);
        break;
    case COM_STMT_CLOSE:
        forget_plan(m, read_int32(bytes + 1, n - 1));
        s->send_now = s->out.len > s->n_sent;
        break;
    case COM_STMT_SEND_LONG_DATA: // has no answer either
        s->send_now = s->out.len > s->n_sent;
        break;
    case COM_CHANGE_USER:
    case COM_RESET_CONNECTION:
        forget_all(m);
        add_ok(m, 0);
        break;
    case COM_INIT_DB:
    case COM_PING:
    case COM_STMT_RESET:
        add_ok(m, 0);
        break;
    case COM_SET_OPTION:
        end_rows(m);
        break;
    case COM_STATISTICS:
        from = packet_begin(m);
        str_add(&s->out, "Uptime: 1");
        packet_end(m, from);
        break;
    case COM_QUIT:
        s->ending = true;
        break;
    default:
        add_error(m, "08S01", "Unknown command");
    }
}

// ---- logging in

static void mysql_open(struct session *s)
{
    struct mysql_session *m = own(s);
    struct str *out = &s->out;

    str_init(&m->query);
    mysql_plan_init(&m->scratch);
    size_t from = packet_begin(m);
    str_addc(out, 10); // version of the handshake
    str_addn(out, SERVER_VERSION, sizeof(SERVER_VERSION));
    mysql_add_int(out, s->number, 4);
    str_addn(out, SCRAMBLE, 8);
    str_addc(out, 0);
    mysql_add_int(out, CAPABILITIES & 0xffff, 2);
    str_addc(out, MYSQL_UTF8MB4);
    mysql_add_int(out, STATUS_AUTOCOMMIT, 2);
    mysql_add_int(out, (uint32_t)CAPABILITIES >> 16, 2);
    str_addc(out, sizeof(SCRAMBLE)); // with its end
    mysql_add_int(out, 0, 6);
    mysql_add_int(out, MARIADB_CACHE_METADATA, 4);
    str_addn(out, &SCRAMBLE[8], sizeof(SCRAMBLE) - 8);
    str_addn(out, PLUGIN, sizeof(PLUGIN));
    packet_end(m, from);
}

static void be_ready(struct mysql_session *m)
{
    m->phase = PHASE_READY;
    add_ok(m, 0);
    session_ready(&m->base);
}

// A client that answers with another plugin is asked once more, with ours.
static bool speaks_our_plugin(const struct mysql_session *m, const char *bytes, size_t n)
{
    return !(m->caps & CAP_PLUGIN) || memmem(bytes, n, PLUGIN, sizeof(PLUGIN));
}

// False: it wants what was not offered.
static bool on_login(struct mysql_session *m, const char *bytes, size_t n)
{
    if (m->phase == PHASE_SWITCHED) {
        be_ready(m);
        return true;
    }
    if (n < 33) // a wish for TLS is 32 bytes
        return false;
    m->caps = read_int32(bytes, 4);
    if (!(m->caps & CAP_PROTOCOL_41))
        return false;
    m->caches_metadata = !(m->caps & 1) && (read_int32(bytes + 28, 4) & MARIADB_CACHE_METADATA);
    m->caps &= CAPABILITIES;
    if (speaks_our_plugin(m, bytes, n)) {
        be_ready(m);
        return true;
    }
    size_t from = packet_begin(m);
    str_addc(&m->base.out, (char)0xfe);
    str_addn(&m->base.out, PLUGIN, sizeof(PLUGIN));
    str_addn(&m->base.out, SCRAMBLE, sizeof(SCRAMBLE));
    packet_end(m, from);
    m->phase = PHASE_SWITCHED;
    return true;
}

static ssize_t mysql_take(struct session *s, const char *bytes, size_t n)
{
    struct mysql_session *m = own(s);
    size_t at = 0;

    while (s->heap_index < 0 && !s->ending && n - at >= 4) {
        size_t len = read_int32(bytes + at, 3);
        if (len == 0 || len == PACKET_MAX) // longer than this is too long for us
            return -1;
        if (n - at < 4 + len)
            break;
        m->sequence = (uint8_t)(bytes[at + 3] + 1);
        if (m->phase == PHASE_READY) {
            on_command(m, bytes + at + 4, len);
        } else {
            s->send_now = true;
            if (!on_login(m, bytes + at + 4, len))
                return -1;
        }
        at += 4 + len;
    }
    return (ssize_t)at;
}

static void mysql_release(struct session *s)
{
    struct mysql_session *m = own(s);

    forget_all(m);
    free(m->plans);
    mysql_plan_release(&m->scratch);
    str_release(&m->query);
}

const struct protocol protocol_mysql = {
    .name = "mysql",
    .size = sizeof(struct mysql_session),
    .open = mysql_open,
    .take = mysql_take,
    .resume = mysql_resume,
    .release = mysql_release,
};
