// Any bytes as a MySQL server's: the codec answers, asks for more or breaks the wire, and says the
// same whole and in single bytes. The first four bytes choose what was negotiated, the protocol,
// which requests are sent, which want a row, and where the stream is cut; the rest is the stream.
//
// What must hold is asserted here, besides what the sanitizers see: every answer is whole, and a
// row's names and values can be read.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/mysql_wire_fake.h"
#include "base/arr.h"
#include "base/rng.h"

#define HEAD         4
#define STREAM_MAX   65536
#define REQUESTS_MAX 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(holds)                                                    \
    do {                                                                \
        if (!(holds)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                    \
        }                                                               \
    } while (0)

static const struct db_statement statements[] = {
    {0, DB_KIND_READ, "SELECT ?", 1, (const char *[]){"SELECT ", ""}},
    {1, DB_KIND_ROLLBACK, "ROLLBACK", 0, (const char *[]){"ROLLBACK"}},
    {2, DB_KIND_BEGIN, "LOCK TABLES t WRITE", 0, (const char *[]){"LOCK TABLES t WRITE"}},
};

static void request(struct wire_fake *f, const uint8_t *head, int k)
{
    static const struct db_value params[] = {{.type = DB_INT, .i = 1}};
    int kind = head[1] >> (k % 4 * 2) & 3;
    bool want_row = head[2] >> k % 8 & 1;
    enum db_class class;

    if (kind == 0)
        class = mysqldb_wire_codec.encode_query(&f->wire.base, "SELECT 1", want_row, &f->out,
                                                &f->result);
    else
        class = db_wire_encode(&f->wire.base, &statements[kind - 1], params, want_row, &f->out,
                               &f->result);
    CHECK(class == DB_OK && f->out.len > WIRE_HEADER);
}

static void check_result(const struct wire_fake *f, enum db_wire_progress progress)
{
    const struct db_result *result = &f->result;

    CHECK(result->class >= DB_OK && result->class < DB_CLASS_COUNT);
    CHECK((result->class == DB_OK) == (result->message[0] == '\0'));
    CHECK((result->class == DB_LOST) == (progress == DB_WIRE_BROKEN));
    CHECK((progress == DB_WIRE_BROKEN) == f->wire.base.broken);
    CHECK(result->n_columns >= 0 && (result->class == DB_OK || result->n_columns == 0));
    CHECK(f->wire.phase == WIRE_IDLE);
}

// What was sent and answered, as text. cut: 0 everything at once, 1 single bytes, else pieces.
static void run(const uint8_t *data, size_t size, int cut, struct str *transcript)
{
    struct wire_fake f;
    struct rng rng;
    const uint8_t *p = data + HEAD, *end = data + size;
    enum db_wire_progress progress = DB_WIRE_ANSWERED;
    unsigned long caps = (data[0] & 1 ? FAKE_NO_EOF : 0) | (data[0] & 2 ? FAKE_TRACKS : 0);
    unsigned long more = (data[0] & 4 ? FAKE_CACHED : 0) | (data[0] & 8 ? FAKE_EXTENDED : 0);
    int requests = 0;

    rng_init(&rng, (uint64_t)cut, 0, RNG_DRIVER);
    wire_fake_init(&f, caps, more, (enum db_protocol)((data[0] >> 4) % 3), ARR_LEN(statements));
    while (progress != DB_WIRE_BROKEN) {
        if (progress == DB_WIRE_ANSWERED && requests < REQUESTS_MAX)
            request(&f, data, requests++);
        size_t n = cut > 1 ? (size_t)rng_range(&rng, 1, 64) : 1;
        if (cut == 0 || n > (size_t)(end - p))
            n = (size_t)(end - p);
        char *piece = mem_resize(NULL, n + (n == 0), 1); // its end is the end of its memory
        memcpy(piece, p, n);
        size_t used = 0;
        progress = db_wire_feed(&f.wire.base, piece, n, &used, &f.out, &f.result);
        free(piece);
        CHECK(used <= n && (progress == DB_WIRE_ANSWERED || used == n));
        p += used;
        wire_fake_sent(&f, transcript);
        if (progress == DB_WIRE_MORE)
            continue;
        check_result(&f, progress);
        wire_fake_result(&f, progress, transcript);
    }
    wire_fake_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str whole = STR_INIT, other = STR_INIT;

    if (size < HEAD || size > STREAM_MAX)
        return 0;
    run(data, size, 0, &whole);
    for (int i = 0; i < 2; i++) {
        str_clear(&other);
        run(data, size, i == 0 ? 1 : 2 + data[3], &other);
        CHECK(whole.len == other.len && memcmp(whole.buf, other.buf, whole.len) == 0);
    }
    str_release(&whole);
    str_release(&other);
    return 0;
}
