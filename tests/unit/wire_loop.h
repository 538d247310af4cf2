// The smallest loop over a wire codec: blocking, one session at a time. Two ways to use it:
//
//   wire_loop_run     one request that was encoded, to its answer
//   wire_loop_wrap    puts the codec under a target, so that every test of the driver contract runs
//                     through it: execute and query go over the wire of an adopted session, what a
//                     codec cannot do (loads, facts, reading every row) over a second session that
//                     the blocking driver keeps for it
//
// Received bytes are torn: single bytes now and then, so that the codec is cut everywhere.
#pragma once

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "db/driver.h"
#include "db/wire.h"

// Where given, everything that the server sent (decrypted) is appended: to record conversations.
static struct str *wire_loop_heard;

// What cannot be sent because the server has gone is dropped: what it said before is still read.
static inline void wire_loop_put(struct db_wire *wire, struct str *bytes)
{
    for (size_t at = 0; at < bytes->len;) {
        ssize_t n = send(wire->fd, bytes->buf + at, bytes->len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            poll(&(struct pollfd){wire->fd, POLLOUT, 0}, 1, -1);
        else if (errno != EINTR)
            break;
    }
    str_clear(bytes);
}

static inline int wire_loop_send(struct db_wire *wire, struct str *out)
{
    struct str sealed = STR_INIT;

    if (!wire->tls) {
        wire_loop_put(wire, out);
        return 0;
    }
    int r = db_wire_seal(wire, out, &sealed);
    wire_loop_put(wire, &sealed);
    str_release(&sealed);
    return r;
}

// Some bytes of the server's; 0 when it has closed.
static inline size_t wire_loop_receive(struct db_wire *wire, char *buf, size_t size)
{
    static unsigned turn;
    size_t want = ++turn % 3 == 0 ? 1 + turn / 3 % 11 : size;

    for (;;) {
        ssize_t n = recv(wire->fd, buf, want, 0);
        if (n >= 0)
            return (size_t)n;
        if (errno == EAGAIN)
            poll(&(struct pollfd){wire->fd, POLLIN, 0}, 1, -1);
        else if (errno != EINTR)
            return 0;
    }
}

// Sends out and reads until the oldest open request is answered, or the wire is broken. Bytes of
// the next answer must not be there: one request at a time.
static inline enum db_wire_progress wire_loop_run(struct db_wire *wire, struct str *out,
                                                  struct db_result *result)
{
    enum db_wire_progress progress = DB_WIRE_MORE;
    struct str plain = STR_INIT;
    char buf[16384];

    while (progress == DB_WIRE_MORE) {
        if (out->len > 0 && wire_loop_send(wire, out) < 0)
            break;
        size_t n = wire_loop_receive(wire, buf, sizeof(buf)), used = 0;
        const char *bytes = buf;
        if (wire->tls && n > 0) {
            struct str answer = STR_INIT; // TLS's own
            str_clear(&plain);
            int r = db_wire_open(wire, buf, n, &plain, &answer);
            wire_loop_put(wire, &answer);
            str_release(&answer);
            if (r < 0)
                break;
            if (plain.len == 0)
                continue;
            bytes = plain.buf;
            n = plain.len;
        }
        if (wire_loop_heard)
            str_addn(wire_loop_heard, bytes, n);
        progress = db_wire_feed(wire, bytes, n, &used, out, result);
        assert(used <= n && (progress != DB_WIRE_MORE || used == n));
        assert(progress != DB_WIRE_ANSWERED || used == n);
    }
    if (progress == DB_WIRE_MORE) // TLS failed
        progress = db_wire_feed(wire, NULL, 0, &(size_t){0}, out, result);
    str_release(&plain);
    return progress;
}

// ---- a target whose sessions go over wires

// Stands behind the driver's own struct in the session's memory.
struct wire_loop_session {
    struct db_wire *wire;
    struct db_session *helper; // for what a codec cannot do; NULL until it is needed
    struct str out;
    bool by_helper; // the row kept is the helper's
};

static const struct db_driver *wire_loop_real;
static struct db_driver wire_loop_driver; // the real one with slots replaced

static inline struct wire_loop_session *wire_loop_of(struct db_session *session)
{
    size_t at = (wire_loop_real->session_size + 15) / 16 * 16;

    return (struct wire_loop_session *)(void *)((char *)session + at);
}

static inline enum db_class wire_loop_connect(struct db_session *session, struct db_result *result)
{
    struct wire_loop_session *w = wire_loop_of(session);
    char why[DB_MESSAGE_MAX];

    str_init(&w->out);
    if (wire_loop_real->connect(session, result) != DB_OK)
        return result->class;
    session->target->driver = wire_loop_real;
    w->wire = db_wire_adopt(session, why, sizeof(why));
    session->target->driver = &wire_loop_driver;
    return w->wire ? DB_OK : db_fail(result, DB_OTHER, "", "%s", why);
}

static inline void wire_loop_disconnect(struct db_session *session)
{
    struct wire_loop_session *w = wire_loop_of(session);

    db_wire_release(w->wire);
    wire_loop_real->disconnect(session);
    if (w->helper) {
        wire_loop_real->disconnect(w->helper);
        free(w->helper);
    }
    str_release(&w->out);
}

static inline struct db_session *wire_loop_helper(struct db_session *session)
{
    struct wire_loop_session *w = wire_loop_of(session);
    struct db_result result = {.class = DB_OK};

    w->by_helper = true;
    if (w->helper)
        return w->helper;
    w->helper = mem_calloc(1, wire_loop_real->session_size);
    w->helper->target = session->target;
    w->helper->client = session->client;
    if (wire_loop_real->connect(w->helper, &result) != DB_OK) {
        fprintf(stderr, "wire_loop: %s\n", result.message);
        abort();
    }
    return w->helper;
}

static inline enum db_class wire_loop_answer(struct wire_loop_session *w, enum db_class class,
                                             struct db_result *result)
{
    w->by_helper = false;
    if (class == DB_OK) {
        enum db_wire_progress progress = wire_loop_run(w->wire, &w->out, result);
        assert((progress == DB_WIRE_BROKEN) == (result->class == DB_LOST));
        assert((progress == DB_WIRE_BROKEN) == w->wire->broken);
    }
    return result->class;
}

static inline enum db_class wire_loop_execute(struct db_session *session,
                                              const struct db_statement *statement,
                                              const struct db_value *params, bool want_row,
                                              struct db_result *result)
{
    struct wire_loop_session *w = wire_loop_of(session);

    return wire_loop_answer(
        w, db_wire_encode(w->wire, statement, params, want_row, &w->out, result), result);
}

static inline enum db_class wire_loop_query(struct db_session *session, const char *sql,
                                            bool want_row, db_row_fn *fn, void *arg,
                                            struct db_result *result)
{
    struct wire_loop_session *w = wire_loop_of(session);

    if (fn)
        return wire_loop_real->query(wire_loop_helper(session), sql, want_row, fn, arg, result);
    return wire_loop_answer(
        w, w->wire->codec->encode_query(w->wire, sql, want_row, &w->out, result), result);
}

static inline const char *wire_loop_row_name(struct db_session *session, int i)
{
    struct wire_loop_session *w = wire_loop_of(session);

    assert(!w->by_helper);
    return w->wire->codec->row_name(w->wire, i);
}

static inline struct db_value wire_loop_row_value(struct db_session *session, int i)
{
    struct wire_loop_session *w = wire_loop_of(session);

    assert(!w->by_helper);
    return w->wire->codec->row_value(w->wire, i);
}

static inline enum db_class wire_loop_create_table(struct db_session *session,
                                                   const struct db_table *table, bool with_key,
                                                   struct db_result *result)
{
    return wire_loop_real->create_table(wire_loop_helper(session), table, with_key, result);
}

static inline enum db_class wire_loop_bulk_begin(struct db_session *session,
                                                 const struct db_table *table,
                                                 struct db_result *result)
{
    return wire_loop_real->bulk_begin(wire_loop_helper(session), table, result);
}

static inline enum db_class wire_loop_bulk_row(struct db_session *session,
                                               const struct db_value *values,
                                               struct db_result *result)
{
    return wire_loop_real->bulk_row(wire_loop_helper(session), values, result);
}

static inline enum db_class wire_loop_bulk_end(struct db_session *session, struct db_result *result)
{
    return wire_loop_real->bulk_end(wire_loop_helper(session), result);
}

static inline enum db_class wire_loop_settle_table(struct db_session *session,
                                                   const struct db_table *table,
                                                   struct db_result *result)
{
    if (!wire_loop_real->settle_table)
        return DB_OK;
    return wire_loop_real->settle_table(wire_loop_helper(session), table, result);
}

static inline void wire_loop_describe(struct db_session *session, struct db_facts *facts)
{
    wire_loop_real->describe(wire_loop_helper(session), facts);
}

static inline void wire_loop_sample(struct db_session *session, struct kvs *counters)
{
    if (wire_loop_real->sample)
        wire_loop_real->sample(wire_loop_helper(session), counters);
}

// From here on the target's sessions go over wires; before any is connected. One kind of driver at
// a time.
static inline void wire_loop_wrap(struct db_target *target)
{
    wire_loop_real = target->driver;
    assert(wire_loop_real->wire);
    wire_loop_driver = *wire_loop_real;
    wire_loop_driver.session_size =
        (wire_loop_real->session_size + 15) / 16 * 16 + sizeof(struct wire_loop_session);
    wire_loop_driver.connect = wire_loop_connect;
    wire_loop_driver.disconnect = wire_loop_disconnect;
    wire_loop_driver.execute = wire_loop_execute;
    wire_loop_driver.query = wire_loop_query;
    wire_loop_driver.row_name = wire_loop_row_name;
    wire_loop_driver.row_value = wire_loop_row_value;
    wire_loop_driver.create_table = wire_loop_create_table;
    wire_loop_driver.bulk_begin = wire_loop_bulk_begin;
    wire_loop_driver.bulk_row = wire_loop_bulk_row;
    wire_loop_driver.bulk_end = wire_loop_bulk_end;
    wire_loop_driver.settle_table = wire_loop_settle_table;
    wire_loop_driver.describe = wire_loop_describe;
    wire_loop_driver.sample = wire_loop_sample;
    target->driver = &wire_loop_driver;
}
