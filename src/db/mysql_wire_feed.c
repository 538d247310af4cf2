// Received bytes to answers. Three layers, each a few functions: bytes to packets (feed at the end
// of the file), packets by what is due (take_packet), and what ends a request.
//
// Life of a prepared select that is new to its session: PREPARE, DEFS and DEFS_END for parameters
// and again for columns, then execute is sent; ANSWER, DEFS, DEFS_END, ROWS, and the request is
// answered. Later it is ANSWER, DEFS_END, ROWS on a server that leaves out definitions it has sent.
//
// Packets are taken from the received bytes where they lie; only one that came in parts is copied,
// and only if its content matters. Where a server says something that cannot be, the wire is
// broken: guessing would count wrong answers as right ones.
#include "db/mysql_wire.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEAD_OK    0x00
#define HEAD_FILE  0xfb
#define HEAD_EOF   0xfe
#define HEAD_ERROR 0xff

#define EOF_LEN_MAX 8 // a row that begins like an EOF is longer

#define CODE_PROGRESS 0xffff // not an error: a long statement tells how far it is

#define NATIVE_UNKNOWN   "2000" // what the client library calls these
#define NATIVE_GONE      "2006"
#define NATIVE_LOST      "2013"
#define NATIVE_MALFORMED "2027"

bool mysqldb_wire_in_transaction(const struct mysqldb_wire *w)
{
    return (w->status & SERVER_STATUS_IN_TRANS) != 0 ||
           mysqldb_session(w->base.session)->tables_locked;
}

// ---- ends of a request

static void reset(struct db_result *result)
{
    result->class = DB_OK;
    result->in_transaction = false;
    result->rows = 0;
    result->lock_wait_ns = 0;
    result->given_delay_ns = 0;
    result->n_columns = 0;
    result->native[0] = '\0';
    result->message[0] = '\0';
}

static void close_request(struct mysqldb_wire *w)
{
    w->phase = WIRE_IDLE;
    w->statement = NULL;
    w->handle = NULL;
    w->defs_into = NULL;
    atomic_store_explicit(&mysqldb_session(w->base.session)->busy, false, memory_order_release);
}

static enum db_wire_progress break_wire(struct mysqldb_wire *w, struct db_result *result,
                                        const char *native, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static enum db_wire_progress break_wire(struct mysqldb_wire *w, struct db_result *result,
                                        const char *native, const char *fmt, ...)
{
    char text[DB_MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    close_request(w);
    w->base.broken = true;
    reset(result);
    db_fail(result, DB_LOST, native, "%s", text);
    return DB_WIRE_BROKEN;
}

static enum db_wire_progress malformed(struct mysqldb_wire *w, struct db_result *result,
                                       const char *what)
{
    return break_wire(w, result, NATIVE_MALFORMED, "the server broke the protocol: %s", what);
}

void mysqldb_wire_drop(struct mysqldb_wire *w, struct mysqldb_wire_handle *handle)
{
    if (!handle->prepared)
        return;
    assert(!w->close_due);
    w->close_id = handle->id;
    w->close_due = true;
    handle->prepared = false;
}

static enum db_wire_progress answered(struct mysqldb_wire *w, struct db_result *result)
{
    result->in_transaction = mysqldb_wire_in_transaction(w);
    if (w->handle && w->protocol == DB_EXTENDED)
        mysqldb_wire_drop(w, w->handle);
    close_request(w);
    return DB_WIRE_ANSWERED;
}

static enum db_wire_progress answered_ok(struct mysqldb_wire *w, struct db_result *result)
{
    reset(result);
    result->rows = w->has_set ? w->rows : w->affected;
    result->n_columns = mysqldb_session(w->base.session)->row.n;
    return answered(w, result);
}

static enum db_wire_progress answered_fault(struct mysqldb_wire *w, struct db_result *result)
{
    reset(result);
    switch (w->fault) {
    case WIRE_FAULT_FILE:
        db_fail(result, DB_OTHER, NATIVE_UNKNOWN, "the server asked for a file, and gets none");
        break;
    case WIRE_FAULT_ROW:
        db_fail(result, DB_OTHER, "", "the row is longer than %d bytes, the most a script can read",
                DB_WIRE_KEEP_MAX);
        break;
    case WIRE_FAULT_PARAMS:
        mysqldb_wire_drop(w, w->handle);
        db_fail(result, DB_SYNTAX, "", "the statement has %u placeholders for %d parameters",
                w->params_told, w->statement->n_params);
        break;
    case WIRE_FAULT_NONE:
        assert(!"a fault");
    }
    return answered(w, result);
}

// The last answer went well.
static enum db_wire_progress finish(struct mysqldb_wire *w, struct str *out,
                                    struct db_result *result)
{
    struct mysqldb_session *s = mysqldb_session(w->base.session);

    if (w->fault != WIRE_FAULT_NONE)
        return answered_fault(w, result);
    if (w->locks == MYSQLDB_LOCKS_TAKEN) {
        s->tables_locked = true;
    } else if (w->locks == MYSQLDB_LOCKS_GONE) {
        s->tables_locked = false;
    } else if (w->locks == MYSQLDB_LOCKS_LEFT && s->tables_locked) {
        mysqldb_wire_send_text(w, MYSQLDB_UNLOCK, sizeof(MYSQLDB_UNLOCK) - 1, out);
        w->phase = WIRE_UNLOCK;
        return DB_WIRE_MORE;
    }
    return answered_ok(w, result);
}

static enum db_wire_progress finish_or_go_on(struct mysqldb_wire *w, struct str *out,
                                             struct db_result *result)
{
    if (!(w->status & SERVER_MORE_RESULTS_EXIST))
        return finish(w, out, result);
    w->phase = WIRE_ANSWER;
    return DB_WIRE_MORE;
}

// ---- errors of the server

struct server_error {
    unsigned code;
    char sqlstate[6];
    char message[WIRE_MESSAGE_MAX];
};

// One too short for a number is one without a number.
static void read_error(struct server_error *error, const uint8_t *body, size_t len)
{
    struct mysqldb_cursor c = {.p = body + 1, .end = body + len};

    *error = (struct server_error){.code = (unsigned)cursor_int(&c, 2), .sqlstate = "HY000"};
    if (error->code == 0)
        error->code = 2000;
    if (c.bad)
        return;
    if (cursor_left(&c) >= 6 && *c.p == '#')
        memcpy(error->sqlstate, cursor_take(&c, 6) + 1, 5);
    size_t n = cursor_left(&c);
    if (n >= sizeof(error->message))
        n = sizeof(error->message) - 1;
    memcpy(error->message, c.p, n);
}

// Numbers of client libraries: a proxy passes on what became of its own connection.
static bool is_client_code(unsigned code)
{
    return (code > 2000 && code < 3000) || (code >= 5000 && code < 6000);
}

static enum db_wire_progress send_as_text(struct mysqldb_wire *w, struct str *out)
{
    w->handle->as_text = true;
    w->handle = NULL;
    w->phase = WIRE_ANSWER;
    mysqldb_wire_send_expanded(w, w->statement, mysqldb_wire_held(w), out);
    return DB_WIRE_MORE;
}

static enum db_wire_progress take_error(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                        struct str *out, struct db_result *result)
{
    struct server_error error;
    char native[DB_VALUE_TEXT_MAX];

    read_error(&error, body, len);
    if (error.code == CODE_PROGRESS && !w->is_odd)
        return DB_WIRE_MORE;
    db_format_int(error.code, native);
    enum db_class class = mysqldb_class(error.code, error.sqlstate, error.message, false);
    if (class == DB_LOST || w->is_odd || is_client_code(error.code))
        return break_wire(w, result, native, "%s", error.message);
    if (w->phase == WIRE_UNLOCK) // ROLLBACK itself went well
        return answered_ok(w, result);
    if (w->phase == WIRE_PREPARE && mysqldb_is_unpreparable(error.code))
        return send_as_text(w, out);
    reset(result);
    db_fail(result, class, native, "%s", error.message);
    if (w->handle && mysqldb_is_stale_statement(error.code))
        mysqldb_wire_drop(w, w->handle);
    return answered(w, result);
}

// ---- packets that tell the status

// An OK, also the one that ends rows. affected may be NULL. -1: malformed.
static int read_ok(struct mysqldb_wire *w, const uint8_t *body, size_t len, int64_t *affected)
{
    struct mysqldb_cursor c = {.p = body + 1, .end = body + len};
    uint64_t n = cursor_length_known(&c);

    cursor_length_known(&c); // the last generated key
    uint16_t status = (uint16_t)cursor_int(&c, 2);
    cursor_int(&c, 2); // warnings
    if (w->tracks_session && cursor_left(&c) > 0) {
        cursor_take(&c, cursor_length_known(&c)); // text for people
        if ((status & SERVER_SESSION_STATE_CHANGED) && cursor_left(&c) > 0)
            cursor_take(&c, cursor_length_known(&c));
    }
    if (c.bad)
        return -1;
    w->status = status;
    if (affected)
        *affected = (int64_t)((uint64_t)*affected + n);
    return 0;
}

// An EOF of one byte, from before 4.1, tells nothing.
static void read_eof(struct mysqldb_wire *w, const uint8_t *body, size_t len)
{
    struct mysqldb_cursor c = {.p = body + 1, .end = body + len};

    cursor_int(&c, 2); // warnings
    uint16_t status = (uint16_t)cursor_int(&c, 2);
    w->status = c.bad ? (uint16_t)(w->status & ~SERVER_MORE_RESULTS_EXIST) : status;
}

static bool is_rows_end(const struct mysqldb_wire *w, uint8_t first, size_t len)
{
    return first == HEAD_EOF && (w->no_eof ? len < WIRE_PACKET_MAX : len <= EOF_LEN_MAX);
}

// ---- packets by phase

// Behind the n definitions of a kind that are due.
static enum db_wire_progress defs_done(struct mysqldb_wire *w, struct str *out,
                                       struct db_result *result);

static enum db_wire_progress defs_end_due(struct mysqldb_wire *w, struct str *out,
                                          struct db_result *result)
{
    if (w->no_eof)
        return defs_done(w, out, result);
    w->phase = WIRE_DEFS_END;
    return DB_WIRE_MORE;
}

static enum db_wire_progress defs_begin(struct mysqldb_wire *w, enum mysqldb_wire_defs defs,
                                        uint32_t n, struct mysqldb_wire_meta *into)
{
    assert(n > 0);
    w->defs = defs;
    w->defs_due = n;
    w->defs_into = into;
    if (into)
        mysqldb_wire_meta_clear(into);
    w->phase = WIRE_DEFS;
    return DB_WIRE_MORE;
}

static struct mysqldb_wire_meta *meta_for(struct mysqldb_wire *w)
{
    struct mysqldb_wire_meta **meta = w->handle ? &w->handle->meta : &w->meta;

    if (!*meta)
        *meta = mysqldb_wire_meta_new();
    return *meta;
}

static enum db_wire_progress prepared(struct mysqldb_wire *w, struct str *out,
                                      struct db_result *result)
{
    w->handle->prepared = true;
    w->handle->typed = false;
    if (w->fault != WIRE_FAULT_NONE)
        return finish(w, out, result);
    mysqldb_wire_send_execute(w, w->handle, mysqldb_wire_held(w), w->statement->n_params, out);
    mysqldb_wire_trim(&w->held);
    w->binary = true;
    w->phase = WIRE_ANSWER;
    return DB_WIRE_MORE;
}

static enum db_wire_progress columns_due(struct mysqldb_wire *w, struct str *out,
                                         struct db_result *result)
{
    if (w->columns_due == 0)
        return prepared(w, out, result);
    return defs_begin(w, WIRE_DEFS_COLUMNS, w->columns_due, w->want_row ? meta_for(w) : NULL);
}

static enum db_wire_progress defs_done(struct mysqldb_wire *w, struct str *out,
                                       struct db_result *result)
{
    switch (w->defs) {
    case WIRE_DEFS_PARAMS:
        return columns_due(w, out, result);
    case WIRE_DEFS_COLUMNS:
        return prepared(w, out, result);
    case WIRE_DEFS_SET:
        w->phase = WIRE_ROWS;
        break;
    }
    return DB_WIRE_MORE;
}

static enum db_wire_progress take_prepare(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                          struct str *out, struct db_result *result)
{
    struct mysqldb_cursor c = {.p = body, .end = body + len};

    if (cursor_int(&c, 1) != HEAD_OK)
        return malformed(w, result, "no answer to a prepare");
    w->handle->id = (uint32_t)cursor_int(&c, 4);
    w->columns_due = (uint16_t)cursor_int(&c, 2);
    w->params_told = (uint16_t)cursor_int(&c, 2);
    if (c.bad)
        return malformed(w, result, "the answer to a prepare is cut");
    if (w->params_told != w->statement->n_params)
        w->fault = WIRE_FAULT_PARAMS;
    if (w->want_row) // there it is, even if the statement turns out to have no columns
        mysqldb_wire_meta_clear(meta_for(w));
    if (w->params_told == 0)
        return columns_due(w, out, result);
    return defs_begin(w, WIRE_DEFS_PARAMS, w->params_told, NULL);
}

static enum db_wire_progress take_set(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                      struct str *out, struct db_result *result)
{
    struct mysqldb_cursor c = {.p = body, .end = body + len};
    uint64_t n = cursor_length_known(&c);
    bool follow = true;

    if (w->cached_columns && cursor_left(&c) > 0)
        follow = cursor_int(&c, 1) != 0;
    if (c.bad || n == 0 || n > WIRE_COLUMNS_MAX)
        return malformed(w, result, "no number of columns");
    w->wants_now = w->want_row && !w->has_set;
    w->has_set = true;
    struct mysqldb_wire_meta *meta = w->wants_now ? meta_for(w) : NULL;
    if (follow)
        return defs_begin(w, WIRE_DEFS_SET, (uint32_t)n, meta);
    if (meta && (!w->handle || meta->n != n))
        return malformed(w, result, "it left out columns that it never told");
    w->defs = WIRE_DEFS_SET;
    return defs_end_due(w, out, result);
}

static enum db_wire_progress take_answer(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                         struct str *out, struct db_result *result)
{
    switch (body[0]) {
    case HEAD_OK:
        if (read_ok(w, body, len, &w->affected) < 0)
            return malformed(w, result, "an OK is cut");
        return finish_or_go_on(w, out, result);
    case HEAD_FILE:
        w->fault = WIRE_FAULT_FILE;
        mysqldb_wire_send_no_file(w, out);
        return DB_WIRE_MORE;
    default:
        return take_set(w, body, len, out, result);
    }
}

static enum db_wire_progress take_def(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                      struct str *out, struct db_result *result)
{
    assert(w->defs_due > 0);
    if (body && mysqldb_wire_meta_add(w->defs_into, body, len, w->extended_columns) < 0)
        return malformed(w, result, "a column definition is cut");
    if (--w->defs_due > 0)
        return DB_WIRE_MORE;
    return defs_end_due(w, out, result);
}

static enum db_wire_progress take_row(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                      struct str *out, struct db_result *result)
{
    if (body && is_rows_end(w, body[0], len)) {
        if (!w->no_eof)
            read_eof(w, body, len);
        else if (read_ok(w, body, len, NULL) < 0)
            return malformed(w, result, "the end of rows is cut");
        w->wants_now = false;
        return finish_or_go_on(w, out, result);
    }
    w->rows++;
    if (!w->wants_now)
        return DB_WIRE_MORE;
    w->wants_now = false;
    struct mysqldb_session *s = mysqldb_session(w->base.session);
    if (body && mysqldb_wire_row(&s->row, meta_for(w), w->binary, body, len) < 0)
        return malformed(w, result, "a row does not fit its columns");
    return DB_WIRE_MORE;
}

// A whole packet. body is NULL for one that was passed over.
static enum db_wire_progress take_packet(struct mysqldb_wire *w, const uint8_t *body, size_t len,
                                         struct str *out, struct db_result *result)
{
    assert(!body || len > 0);
    if (body && body[0] == HEAD_ERROR)
        return take_error(w, body, len, out, result);
    switch (w->phase) {
    case WIRE_ROWS:
        return take_row(w, body, len, out, result);
    case WIRE_ANSWER:
        return take_answer(w, body, len, out, result);
    case WIRE_DEFS:
        return take_def(w, body, len, out, result);
    case WIRE_DEFS_END:
        if (body[0] != HEAD_EOF || len > EOF_LEN_MAX)
            return malformed(w, result, "no end of column definitions");
        read_eof(w, body, len);
        return defs_done(w, out, result);
    case WIRE_PREPARE:
        return take_prepare(w, body, len, out, result);
    case WIRE_UNLOCK:
        if (body[0] != HEAD_OK || read_ok(w, body, len, NULL) < 0)
            return malformed(w, result, "no answer to " MYSQLDB_UNLOCK);
        mysqldb_session(w->base.session)->tables_locked = false;
        return answered_ok(w, result);
    case WIRE_IDLE:
        break;
    }
    return malformed(w, result, "it spoke although nothing was asked");
}

// ---- bytes to packets

// A header has come. What begins while no request is open is out of sequence whatever its number:
// it must not pass for the answer to a request that is sent meanwhile.
static enum db_wire_progress begin_packet(struct mysqldb_wire *w, struct db_result *result)
{
    const uint8_t *h = w->header;
    bool goes_on = w->continues;
    bool is_odd = w->phase == WIRE_IDLE || h[3] != w->seq;

    w->header_len = 0;
    w->length = (uint32_t)h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16;
    w->left = w->length;
    w->continues = w->length == WIRE_PACKET_MAX;
    w->in_packet = true;
    w->seq = (uint8_t)(h[3] + 1);
    if (goes_on)
        return is_odd ? malformed(w, result, "a packet is out of sequence") : DB_WIRE_MORE;
    w->is_odd = is_odd;
    w->is_chosen = false;
    return w->length > 0 ? DB_WIRE_MORE : malformed(w, result, "an empty packet");
}

// Whether the packet is kept, passed over or makes no sense, from its first byte.
static enum db_wire_progress choose(struct mysqldb_wire *w, uint8_t first, struct db_result *result)
{
    bool is_error = first == HEAD_ERROR, is_row = false;

    w->is_chosen = true;
    w->keep = true;
    if (w->is_odd && !is_error)
        return malformed(w, result,
                         w->phase == WIRE_IDLE ? "it spoke although nothing was asked"
                                               : "a packet is out of sequence");
    if (w->phase == WIRE_DEFS && !is_error) {
        if (first == HEAD_EOF)
            return malformed(w, result, "column definitions end too early");
        w->keep = w->defs_into != NULL;
    } else if (w->phase == WIRE_ROWS && !is_error && !is_rows_end(w, first, w->length)) {
        if (w->binary && first != 0)
            return malformed(w, result, "a row of the wrong kind");
        is_row = true;
        w->keep = w->wants_now;
    }
    if (!w->keep || w->length <= DB_WIRE_KEEP_MAX)
        return DB_WIRE_MORE;
    w->keep = false;
    if (!is_row)
        return malformed(w, result, "a packet is far too long");
    w->fault = WIRE_FAULT_ROW;
    return DB_WIRE_MORE;
}

static const uint8_t *gather_header(struct mysqldb_wire *w, const uint8_t *p, const uint8_t *end)
{
    if (w->header_len == 0 && end - p >= WIRE_HEADER) {
        memcpy(w->header, p, WIRE_HEADER);
        w->header_len = WIRE_HEADER;
        return p + WIRE_HEADER;
    }
    while (p < end && w->header_len < WIRE_HEADER)
        w->header[w->header_len++] = *p++;
    return p;
}

// Takes what is there of the packet's body; the whole of it where that is complete now and is kept,
// else NULL.
static const uint8_t *gather_body(struct mysqldb_wire *w, const uint8_t **p, const uint8_t *end)
{
    size_t here = (size_t)(end - *p) < w->left ? (size_t)(end - *p) : w->left;
    bool is_whole = here == w->left;
    const uint8_t *body = NULL;

    if (w->keep && is_whole && w->packet.len == 0) {
        body = *p;
    } else if (w->keep) {
        str_addn(&w->packet, (const char *)*p, here);
        assert(w->packet.len <= DB_WIRE_KEEP_MAX);
        if (is_whole)
            body = (const uint8_t *)w->packet.buf;
    }
    *p += here;
    w->left -= (uint32_t)here;
    return body;
}

enum db_wire_progress mysqldb_wire_feed(struct db_wire *base, const char *bytes, size_t n,
                                        size_t *used, struct str *out, struct db_result *result)
{
    struct mysqldb_wire *w = mysqldb_wire(base);
    const uint8_t *p = (const uint8_t *)bytes, *end = p + n;
    enum db_wire_progress progress = DB_WIRE_MORE;

    *used = n;
    if (base->broken)
        return break_wire(w, result, NATIVE_GONE, "the connection was lost before");
    if (n == 0)
        return break_wire(w, result, w->phase == WIRE_IDLE ? NATIVE_GONE : NATIVE_LOST,
                          "the server closed the connection");
    while (progress == DB_WIRE_MORE && p < end) {
        if (!w->in_packet) {
            p = gather_header(w, p, end);
            if (w->header_len < WIRE_HEADER)
                break;
            progress = begin_packet(w, result);
        }
        if (progress == DB_WIRE_MORE && !w->is_chosen) {
            if (p == end)
                break;
            progress = choose(w, *p, result);
        }
        if (progress != DB_WIRE_MORE)
            break;
        const uint8_t *body = gather_body(w, &p, end);
        if (w->left > 0)
            break;
        w->in_packet = false;
        if (w->continues)
            continue;
        progress = take_packet(w, body, w->length, out, result);
        mysqldb_wire_trim(&w->packet);
    }
    if (progress == DB_WIRE_ANSWERED)
        *used = (size_t)(p - (const uint8_t *)bytes);
    return progress;
}
