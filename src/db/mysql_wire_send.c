// The bytes of commands. Nothing here allocates once the buffers have grown.
#include <assert.h>
#include <string.h>

#include "db/mysql_wire.h"

#define COM_TEXT    0x03
#define COM_PREPARE 0x16
#define COM_EXECUTE 0x17
#define COM_CLOSE   0x19

static uint8_t *put_int(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (uint8_t)(value >> (8 * i));
    return p;
}

static void put_header(char *p, size_t len, unsigned seq)
{
    put_int((uint8_t *)p, len, 3);
    p[3] = (char)seq;
}

// Makes room for a command of up to `len` bytes; its bytes are to be written behind the header.
// Returns where the command begins.
static size_t command_begin(struct str *out, size_t len)
{
    size_t start = out->len;

    str_reserve(out, WIRE_HEADER + len);
    out->len += WIRE_HEADER;
    return start;
}

// Breaks what is longer than one packet may be into several: the headers of the later ones are
// pushed in, from the last on.
static unsigned split(struct str *out, size_t start, size_t len)
{
    size_t n = len / WIRE_PACKET_MAX; // full ones; the rest, which may be empty, ends the command

    str_reserve(out, n * WIRE_HEADER);
    char *body = out->buf + start + WIRE_HEADER;
    for (size_t i = n; i > 0; i--) {
        size_t part = i < n ? WIRE_PACKET_MAX : len - n * WIRE_PACKET_MAX;
        char *from = body + i * WIRE_PACKET_MAX;
        memmove(from + i * WIRE_HEADER, from, part);
        put_header(from + (i - 1) * WIRE_HEADER, part, (unsigned)i & 0xff);
    }
    put_header(out->buf + start, WIRE_PACKET_MAX, 0);
    out->len += n * WIRE_HEADER;
    return (unsigned)n + 1;
}

// Ends a command at out->len; the answer goes on counting behind it.
static void command_end(struct mysqldb_wire *w, struct str *out, size_t start)
{
    size_t len = out->len - start - WIRE_HEADER;
    unsigned packets = 1;

    if (len >= WIRE_PACKET_MAX)
        packets = split(out, start, len);
    else
        put_header(out->buf + start, len, 0);
    out->buf[out->len] = '\0';
    w->seq = (uint8_t)packets;
}

static void send_simple(struct mysqldb_wire *w, int command, const char *text, size_t len,
                        struct str *out)
{
    size_t start = command_begin(out, 1 + len);

    str_addc(out, (char)command);
    str_addn(out, text, len);
    command_end(w, out, start);
}

void mysqldb_wire_send_text(struct mysqldb_wire *w, const char *text, size_t len, struct str *out)
{
    send_simple(w, COM_TEXT, text, len, out);
}

void mysqldb_wire_send_expanded(struct mysqldb_wire *w, const struct db_statement *statement,
                                const struct db_value *params, struct str *out)
{
    size_t start = command_begin(out, 256);

    str_addc(out, COM_TEXT);
    db_statement_append(statement, params, out);
    command_end(w, out, start);
}

void mysqldb_wire_send_prepare(struct mysqldb_wire *w, const struct db_statement *statement,
                               struct str *out)
{
    send_simple(w, COM_PREPARE, statement->sql, strlen(statement->sql), out);
}

void mysqldb_wire_send_close(uint32_t id, struct str *out)
{
    size_t start = command_begin(out, 5);
    uint8_t *p = (uint8_t *)out->buf + out->len;

    *p++ = COM_CLOSE;
    put_int(p, id, 4);
    out->len += 5;
    put_header(out->buf + start, 5, 0);
    out->buf[out->len] = '\0';
}

void mysqldb_wire_send_no_file(struct mysqldb_wire *w, struct str *out)
{
    size_t start = command_begin(out, 0);

    put_header(out->buf + start, 0, w->seq++);
    out->buf[out->len] = '\0';
}

// ---- execute

static uint8_t type_of(const struct db_value *param)
{
    switch (param->type) {
    case DB_BOOL:
    case DB_INT:
        return MYSQL_TYPE_LONGLONG;
    case DB_DOUBLE:
        return MYSQL_TYPE_DOUBLE;
    default:
        return MYSQL_TYPE_STRING;
    }
}

// Most bytes that the values take. Notes their types: a NULL keeps the one its parameter had.
static size_t look_at_params(struct mysqldb_wire_handle *handle, const struct db_value *params,
                             int n)
{
    size_t size = 0;

    for (int k = 0; k < n; k++) {
        const struct db_value *param = &params[k];
        size += param->type == DB_TEXT ? 9 + (size_t)param->text_len : 8;
        uint8_t type = type_of(param);
        if (type != handle->types[k] && param->type != DB_NULL) {
            handle->types[k] = type;
            handle->typed = false;
        }
    }
    return size;
}

static uint8_t *put_text(uint8_t *p, const char *text, uint32_t len)
{
    if (len < 0xfb) {
        *p++ = (uint8_t)len;
    } else if (len <= 0xffff) {
        *p++ = 0xfc;
        p = put_int(p, len, 2);
    } else if (len <= 0xffffff) {
        *p++ = 0xfd;
        p = put_int(p, len, 3);
    } else {
        *p++ = 0xfe;
        p = put_int(p, len, 8);
    }
    memcpy(p, text, len);
    return p + len;
}

static uint8_t *put_value(uint8_t *p, const struct db_value *param)
{
    uint64_t bits;
    static_assert(sizeof(bits) == sizeof(param->d), "DOUBLE has eight bytes");

    switch (param->type) {
    case DB_NULL:
        return p;
    case DB_BOOL:
        return put_int(p, param->b, 8);
    case DB_INT:
        return put_int(p, (uint64_t)param->i, 8);
    case DB_DOUBLE:
        memcpy(&bits, &param->d, sizeof(bits));
        return put_int(p, bits, 8);
    case DB_TEXT:
        return put_text(p, param->s, param->text_len);
    }
    return p;
}

void mysqldb_wire_send_execute(struct mysqldb_wire *w, struct mysqldb_wire_handle *handle,
                               const struct db_value *params, int n, struct str *out)
{
    size_t n_nulls = ((size_t)n + 7) / 8;
    size_t room = 10 + n_nulls + 1 + 2 * (size_t)n + look_at_params(handle, params, n);
    size_t start = command_begin(out, room);
    uint8_t *p = (uint8_t *)out->buf + out->len;

    assert(handle->prepared && n <= DB_PARAMS_MAX);
    *p++ = COM_EXECUTE;
    p = put_int(p, handle->id, 4);
    *p++ = 0;             // no cursor
    p = put_int(p, 1, 4); // once
    if (n > 0) {
        uint8_t *nulls = p;
        memset(nulls, 0, n_nulls);
        p += n_nulls;
        *p++ = !handle->typed;
        for (int k = 0; k < n && !handle->typed; k++) {
            *p++ = handle->types[k];
            *p++ = 0; // signed
        }
        for (int k = 0; k < n; k++) {
            if (params[k].type == DB_NULL)
                nulls[k / 8] |= (uint8_t)(1 << k % 8);
            p = put_value(p, &params[k]);
        }
        handle->typed = true;
    }
    size_t len = (size_t)(p - (uint8_t *)out->buf) - out->len;
    assert(len <= room);
    out->len += len;
    command_end(w, out, start);
}

// ---- parameters that wait

void mysqldb_wire_hold(struct mysqldb_wire *w, const struct db_value *params, int n)
{
    size_t size = (size_t)n * sizeof(*params), total = size;

    str_clear(&w->held);
    for (int k = 0; k < n; k++)
        if (params[k].type == DB_TEXT)
            total += (size_t)params[k].text_len + 1;
    str_reserve(&w->held, total); // so that what is pointed to does not move
    if (n > 0)
        str_addn(&w->held, (const char *)params, size);
    struct db_value *copies = (struct db_value *)(void *)w->held.buf;
    for (int k = 0; k < n; k++) {
        if (params[k].type != DB_TEXT)
            continue;
        copies[k].s = w->held.buf + w->held.len;
        str_addn(&w->held, params[k].s, params[k].text_len);
        str_addc(&w->held, '\0');
    }
    assert(w->held.len == total);
}

const struct db_value *mysqldb_wire_held(const struct mysqldb_wire *w)
{
    return (const struct db_value *)(const void *)w->held.buf;
}
