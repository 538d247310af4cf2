// A session of the MySQL codec without a server behind it: requests go in, bytes of a server's are
// fed, and what was sent and answered comes out as text. For test_mysql_wire.c and the fuzzer.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "db/mysql_wire.h"

#define FAKE_NO_EOF   (1ul << 24) // an OK ends rows
#define FAKE_TRACKS   CLIENT_SESSION_TRACKING
#define FAKE_CACHED   ((unsigned long)(MARIADB_CLIENT_CACHE_METADATA >> 32))
#define FAKE_EXTENDED ((unsigned long)(MARIADB_CLIENT_EXTENDED_METADATA >> 32))

struct wire_fake {
    struct mysqldb_target target;
    struct mysqldb_session session;
    struct mysqldb_wire wire;
    struct str out;
    struct db_result result;
};

static inline void wire_fake_init(struct wire_fake *f, unsigned long caps, unsigned long more_caps,
                                  enum db_protocol protocol, int n_statements)
{
    memset(f, 0, sizeof(*f));
    f->target.base.options.protocol = protocol;
    f->target.base.options.n_statements = n_statements;
    f->session.base.target = &f->target.base;
    str_init(&f->session.row.bytes);
    f->wire.base.codec = &mysqldb_wire_codec;
    f->wire.base.session = &f->session.base;
    f->wire.base.fd = -1;
    mysqldb_wire_begin(&f->wire, caps, more_caps);
    str_init(&f->out);
}

static inline void wire_fake_release(struct wire_fake *f)
{
    mysqldb_wire_codec.release(&f->wire.base);
    mysqldb_row_release(&f->session.row);
    str_release(&f->out);
}

static inline void wire_fake_value(const struct db_value *value, struct str *text)
{
    char buf[DB_VALUE_TEXT_MAX];
    int len;
    static const char *const marks[] = {
        [DB_NULL] = "NULL", [DB_BOOL] = "bool ", [DB_INT] = "", [DB_DOUBLE] = "~", [DB_TEXT] = "'"};

    str_add(text, marks[value->type]);
    const char *words = db_value_text(value, buf, &len);
    if (words)
        str_addn(text, words, (size_t)len);
    if (value->type == DB_TEXT) {
        str_addc(text, '\'');
        if (value->s[value->text_len] != '\0')
            abort();
    }
}

// "ok 3 rows, in transaction (a=1, b='x')", "undefined 1146: no such table"
static inline void wire_fake_result(struct wire_fake *f, enum db_wire_progress progress,
                                    struct str *text)
{
    const struct db_result *result = &f->result;

    if (progress == DB_WIRE_BROKEN)
        str_add(text, "BROKEN ");
    if (result->class != DB_OK)
        str_addf(text, "%s %s: %s", db_class_name(result->class), result->native, result->message);
    else
        str_addf(text, "ok %lld rows", (long long)result->rows);
    if (result->in_transaction)
        str_add(text, ", in transaction");
    for (int i = 0; i < result->n_columns; i++) {
        struct db_value value = mysqldb_wire_codec.row_value(&f->wire.base, i);
        str_addf(text, "%s%s=", i ? ", " : " (", mysqldb_wire_codec.row_name(&f->wire.base, i));
        wire_fake_value(&value, text);
    }
    str_add(text, result->n_columns > 0 ? ")\n" : "\n");
}

static inline uint64_t wire_fake_int(const char *p, int n)
{
    uint64_t value = 0;

    for (int i = 0; i < n; i++)
        value |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return value;
}

// A line per packet, and clears them: "prepare select ?", "execute 7: 00 01 fe 00 ...", "close 7".
static inline void wire_fake_sent(struct wire_fake *f, struct str *text)
{
    const char *p = f->out.buf, *end = p + f->out.len;

    while (end - p >= WIRE_HEADER) {
        size_t len = wire_fake_int(p, 3);
        unsigned seq = (uint8_t)p[3];
        p += WIRE_HEADER;
        if (len > (size_t)(end - p))
            abort();
        int command = len > 0 && seq == 0 ? p[0] : -1;
        if (command == 0x03 || command == 0x16) {
            str_add(text, command == 0x03 ? "text " : "prepare ");
            str_addn(text, p + 1, len - 1);
        } else if (command == 0x19 && len == 5) {
            str_addf(text, "close %u", (unsigned)wire_fake_int(p + 1, 4));
        } else if (command == 0x17 && len >= 10) {
            str_addf(text, "execute %u:", (unsigned)wire_fake_int(p + 1, 4));
            for (size_t i = 10; i < len; i++)
                str_addf(text, " %02x", (uint8_t)p[i]);
        } else {
            str_addf(text, "packet %u of %zu bytes", seq, len);
        }
        str_addc(text, '\n');
        p += len;
    }
    if (p != end)
        abort();
    str_clear(&f->out);
}
