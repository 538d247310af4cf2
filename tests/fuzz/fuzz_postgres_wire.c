// Any bytes as a PostgreSQL server's: the codec answers, asks for more or breaks the wire, and says
// the same whole and cut. The input is
//
//   protocol and depth | seed of the cuts | number of requests | a byte per request | the stream
//
// Up to depth requests are open at once; the next one is sent when one is answered. Of a request's
// byte the lowest two bits choose the statement, the third wants the row, the fourth makes it a
// part of a batch that ends with the next one.
//
// What must hold is asserted here, besides what the sanitizers see: an answer has what the contract
// (db/wire.h) says, a row's names and values can be read, what is sent are whole messages, and no
// more memory is held than a row or an error may take.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "db/driver.h"
#include "db/postgres_wire.h"

#define HEAD         3
#define REQUESTS_MAX 16
#define STREAM_MAX   65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(holds)                                                    \
    do {                                                                \
        if (!(holds)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                    \
        }                                                               \
    } while (0)

static const struct db_statement statements[] = {
    {.index = 0, .sql = "SELECT $1", .n_params = 1, .pieces = (const char *[]){"SELECT ", ""}},
    {.index = 1, .sql = "BEGIN", .pieces = (const char *[]){"BEGIN"}},
    {.index = 2, .sql = "COPY t FROM stdin", .pieces = (const char *[]){"COPY t FROM stdin"}},
};

struct session {
    struct postgres_wire wire;
    struct str sent, log;
    const uint8_t *requests;
    int n_requests, depth, asked, answered;
    bool joined[REQUESTS_MAX]; // by request: others of its batch follow
};

// What was sent, as the letters of its messages.
static void log_sent(struct session *s)
{
    for (size_t at = 0; at < s->sent.len;) {
        CHECK(s->sent.len - at >= 5);
        uint32_t len = postgres_get32(s->sent.buf + at + 1);
        CHECK(len >= 4 && len < s->sent.len - at);
        str_addc(&s->log, s->sent.buf[at]);
        at += 1 + len;
    }
    str_clear(&s->sent);
}

static bool is_joined(uint8_t request)
{
    return (request & 12) == 8;
}

static void ask(struct session *s)
{
    while (s->asked < s->n_requests && s->asked - s->answered < s->depth && !s->wire.base.broken) {
        uint8_t request = s->requests[s->asked++];
        struct db_value param = {.type = DB_INT, .i = request};
        struct db_result result;
        bool want_row = request & 4;
        bool may_join = s->wire.protocol != DB_SIMPLE && (request & 3) != 3;
        enum db_class class;

        if (may_join && is_joined(request)) {
            struct db_wire *wire = &s->wire.base;
            s->joined[s->asked - 1] = true;
            class = wire->codec->encode_joined(wire, &statements[request & 3], &param, &s->sent,
                                               &result);
            // Nothing is fed before the batch has its end.
            if (s->asked == s->n_requests || s->asked - s->answered == s->depth ||
                (s->requests[s->asked] & 3) == 3) {
                wire->codec->end_batch(wire, &s->sent);
                s->joined[s->asked - 1] = false;
            }
        } else if ((request & 3) == 3)
            class =
                postgres_wire_encode_query(&s->wire.base, "SELECT 1", want_row, &s->sent, &result);
        else
            class = db_wire_encode(&s->wire.base, &statements[request & 3], &param, want_row,
                                   &s->sent, &result);
        CHECK(class == DB_OK && s->sent.len > 5);
        log_sent(s);
    }
}

static void log_row(struct session *s, const struct db_result *result)
{
    struct db_wire *wire = &s->wire.base;

    for (int i = 0; i < result->n_columns; i++) {
        char buf[DB_VALUE_TEXT_MAX];
        int len = 0;
        str_addf(&s->log, "%s=", wire->codec->row_name(wire, i));
        if (result->rows == 0)
            continue;
        struct db_value value = wire->codec->row_value(wire, i);
        const char *text = db_value_text(&value, buf, &len);
        CHECK(!text || text[len] == '\0');
        str_addf(&s->log, "%d:%s,", value.type, text ? text : "NULL");
    }
}

static void take(struct session *s, enum db_wire_progress progress, const struct db_result *result)
{
    CHECK(result->class >= DB_OK && result->class < DB_CLASS_COUNT);
    CHECK((result->class == DB_OK) == (result->message[0] == '\0'));
    CHECK((result->class == DB_LOST) == (progress == DB_WIRE_BROKEN));
    CHECK(result->rows >= 0 && result->n_columns >= 0);
    CHECK(result->class == DB_OK || (result->rows == 0 && result->n_columns == 0));
    str_addf(&s->log, " %s %s '%s' %lld%s ", db_class_name(result->class), result->native,
             result->message, (long long)result->rows, result->in_transaction ? " in" : "");
    if (progress == DB_WIRE_ANSWERED) {
        CHECK(s->answered < s->asked);
        CHECK(result->n_columns == 0 || (s->requests[s->answered] & 4));
        while (s->joined[s->answered++] && result->class != DB_OK)
            CHECK(s->answered < s->asked); // left out
        log_row(s, result);
        ask(s);
    }
}

static void feed(struct session *s, const char *bytes, size_t n)
{
    char *copy = malloc(n ? n : 1); // so that a look beyond the end is seen
    size_t at = 0;

    CHECK(copy);
    if (n > 0)
        memcpy(copy, bytes, n);
    do {
        struct db_result result = {.class = DB_DEADLOCK, .rows = -1, .n_columns = -1};
        size_t used = n + 1;
        enum db_wire_progress progress =
            db_wire_feed(&s->wire.base, copy + at, n - at, &used, &s->sent, &result);
        CHECK(used <= n - at && (progress != DB_WIRE_MORE || used == n - at));
        CHECK((progress == DB_WIRE_BROKEN) == s->wire.base.broken);
        log_sent(s);
        if (progress != DB_WIRE_MORE)
            take(s, progress, &result);
        at += used;
    } while (at < n && !s->wire.base.broken);
    CHECK(s->wire.pending.len <= STREAM_MAX && s->wire.row.bytes.len <= 4 * STREAM_MAX);
    free(copy);
}

static void hold(struct session *s, const uint8_t *data, size_t size, bool cut)
{
    const uint8_t *stream = data + HEAD + data[2] % REQUESTS_MAX;
    size_t n = (size_t)(data + size - stream);
    struct rng rng;

    *s = (struct session){.sent = STR_INIT, .log = STR_INIT};
    s->wire.base.codec = &postgres_wire_codec;
    postgres_wire_begin(&s->wire, (enum db_protocol)(data[0] % 3), ARR_LEN(statements));
    s->requests = data + HEAD;
    s->n_requests = data[2] % REQUESTS_MAX;
    s->depth = 1 + data[0] / 3 % 4;
    rng_init(&rng, data[1], 0, RNG_DRIVER);
    ask(s);
    for (size_t at = 0, step; at < n && !s->wire.base.broken; at += step) {
        step = n - at;
        if (cut && data[1] % 2)
            step = 1;
        else if (cut)
            step = (size_t)rng_range(&rng, 1, (int64_t)step);
        feed(s, (const char *)stream + at, step);
    }
    feed(s, "", 0);
    CHECK(s->wire.base.broken);
}

static void session_release(struct session *s)
{
    postgres_wire_end(&s->wire);
    str_release(&s->sent);
    str_release(&s->log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session whole, cut;

    if (size < HEAD || size < HEAD + (size_t)data[2] % REQUESTS_MAX || size > STREAM_MAX)
        return 0;
    hold(&whole, data, size, false);
    hold(&cut, data, size, true);
    CHECK(strcmp(whole.log.buf, cut.log.buf) == 0);
    session_release(&whole);
    session_release(&cut);
    return 0;
}
