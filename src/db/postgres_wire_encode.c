// Requests as bytes. Sizes are bounded first, then messages are written in place: no allocation
// once out has grown, no copy of values.
#include <assert.h>

#include "db/driver.h"
#include "db/postgres.h"
#include "db/postgres_wire.h"

#define NAME_MAX_LEN (6 + DB_VALUE_TEXT_MAX)

// Room for everything of a request but texts, names and values: headers, counts, tail.
#define FRAME_MAX 128

// Portal "": describe it, execute it without a limit of rows, and end the batch.
static const char tail[] = "D\0\0\0\6P\0"
                           "E\0\0\0\x9\0\0\0\0\0"
                           "S\0\0\0\4";
#define DESCRIBE_LEN 7
#define SYNC_LEN     5
#define TAIL_LEN     (sizeof(tail) - 1)

static enum db_class refuse(struct postgres_wire *w, struct db_result *result, enum db_class class,
                            const char *text)
{
    *result = (struct db_result){.in_transaction = class != DB_LOST && w->in_transaction};
    return db_fail(result, class, "", "%s", text);
}

static enum db_class refuse_size(struct postgres_wire *w, struct db_result *result)
{
    return refuse(w, result, DB_OTHER, "the statement with its parameters is longer than 1 GiB");
}

// At most what put_values writes.
static size_t values_bound(const struct db_value *params, int n)
{
    size_t bound = 0;

    for (int i = 0; i < n; i++) {
        size_t text = params[i].type == DB_TEXT ? params[i].text_len : 0;
        bound += 4 + (text > DB_VALUE_TEXT_MAX ? text : DB_VALUE_TEXT_MAX);
    }
    return bound;
}

// Text that is made is made at its place.
static char *put_text(char *p, const struct db_value *value, int *ret_len)
{
    const char *text = db_value_text(value, p, ret_len);

    if (text && text != p)
        memcpy(p, text, (size_t)*ret_len);
    return text ? p + *ret_len : p;
}

static char *put_values(char *p, const struct db_value *params, int n)
{
    for (int i = 0; i < n; i++) {
        int len;
        char *end = put_text(p + 4, &params[i], &len);
        postgres_put32(p, params[i].type == DB_NULL ? UINT32_MAX : (uint32_t)len);
        p = end;
    }
    return p;
}

static char *put_bytes(char *p, const char *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

// Messages begin with their type; the length counts itself and what follows.
static char *end_message(char *message, char *end)
{
    postgres_put32(message + 1, (uint32_t)(end - message - 1));
    return end;
}

static char *put_close(char *p, const char *name, size_t name_len)
{
    char *message = p;

    *p = 'C';
    p += 5;
    *p++ = 'S';
    p = put_bytes(p, name, name_len + 1);
    return end_message(message, p);
}

static char *put_parse(char *p, const char *name, size_t name_len, const char *sql, size_t sql_len)
{
    char *message = p;

    *p = 'P';
    p = put_bytes(p + 5, name, name_len + 1);
    p = put_bytes(p, sql, sql_len + 1);
    p = postgres_put16(p, 0); // the server finds the parameters' types
    return end_message(message, p);
}

static char *put_bind(char *p, const char *name, size_t name_len,
                      const struct db_statement *statement, const struct db_value *params)
{
    char *message = p;

    *p = 'B';
    p += 5;
    *p++ = '\0'; // portal ""
    p = put_bytes(p, name, name_len + 1);
    p = postgres_put16(p, 0); // all parameters as text
    p = postgres_put16(p, (unsigned)statement->n_params);
    p = put_values(p, params, statement->n_params);
    p = postgres_put16(p, 0); // all columns as text
    return end_message(message, p);
}

static void push(struct postgres_wire *w, int statement, unsigned flags)
{
    struct postgres_request *request = &w->open[(w->first + w->n_open) % POSTGRES_WIRE_DEPTH];

    *request = (struct postgres_request){statement, flags};
    if (w->n_open++ == 0 && w->cancel)
        postgres_cancel_busy(w->cancel);
    // The kept row is valid until the next request.
    postgres_row_clear(&w->row);
}

static enum db_class encode_extended(struct postgres_wire *w, const struct db_statement *statement,
                                     const struct db_value *params, unsigned flags, struct str *out,
                                     struct db_result *result)
{
    bool parses = !(flags & REQUEST_NAMED) || (flags & REQUEST_PARSES);
    size_t sql_len = parses ? strlen(statement->sql) : 0;
    size_t bound = sql_len + values_bound(params, statement->n_params);
    char name[NAME_MAX_LEN] = "";
    size_t name_len = 0;

    if (bound > POSTGRES_WIRE_MESSAGE_MAX - FRAME_MAX - NAME_MAX_LEN)
        return refuse_size(w, result);
    if (flags & REQUEST_NAMED) {
        memcpy(name, "prony_", 6);
        name_len = 6 + (size_t)db_format_int(statement->index, name + 6);
    }
    str_reserve(out, bound + FRAME_MAX + 3 * sizeof(name));
    char *p = out->buf + out->len;
    if (flags & REQUEST_CLOSES)
        p = put_close(p, name, name_len);
    if (parses)
        p = put_parse(p, name, name_len, statement->sql, sql_len);
    p = put_bind(p, name, name_len, statement, params);
    if (flags & REQUEST_WANTS_ROW)
        p = put_bytes(p, tail, TAIL_LEN);
    else if (flags & REQUEST_JOINED)
        p = put_bytes(p, tail + DESCRIBE_LEN, TAIL_LEN - DESCRIBE_LEN - SYNC_LEN);
    else // rows are counted without knowing their columns
        p = put_bytes(p, tail + DESCRIBE_LEN, TAIL_LEN - DESCRIBE_LEN);
    out->len = (size_t)(p - out->buf);
    assert(out->len < out->cap);
    *p = '\0';
    push(w, statement->index, flags | REQUEST_EXTENDED);
    return DB_OK;
}

static enum db_class encode_prepared(struct postgres_wire *w, const struct db_statement *statement,
                                     const struct db_value *params, unsigned flags, struct str *out,
                                     struct db_result *result)
{
    assert(statement->index >= 0 && statement->index < w->n_statements);
    unsigned char *handle = &w->handles[statement->index];

    switch ((enum postgres_handle) * handle) {
    case HANDLE_READY:
        flags |= REQUEST_NAMED;
        break;
    case HANDLE_ASKED: // should its Parse fail, this one must fail for the same reason
        break;
    case HANDLE_NONE:
        flags |= REQUEST_NAMED | REQUEST_PARSES;
        break;
    case HANDLE_GONE:
        flags |= REQUEST_NAMED | REQUEST_PARSES | REQUEST_CLOSES;
        break;
    }
    if (encode_extended(w, statement, params, flags, out, result) != DB_OK)
        return result->class;
    if (flags & REQUEST_PARSES)
        *handle = HANDLE_ASKED;
    return DB_OK;
}

// The text ends at a zero byte for the server, and what follows would be a broken message.
static bool has_zero_byte(const struct db_value *params, int n)
{
    for (int i = 0; i < n; i++)
        if (params[i].type == DB_TEXT && memchr(params[i].s, '\0', params[i].text_len))
            return true;
    return false;
}

static enum db_class encode_simple(struct postgres_wire *w, const struct db_statement *statement,
                                   const struct db_value *params, unsigned flags, struct str *out,
                                   struct db_result *result)
{
    int n = statement->n_params;
    size_t bound = values_bound(params, n); // NULL becomes a word, which is shorter than that

    for (int i = 0; i <= n; i++)
        bound += strlen(statement->pieces[i]);
    if (bound > POSTGRES_WIRE_MESSAGE_MAX - FRAME_MAX)
        return refuse_size(w, result);
    if (has_zero_byte(params, n))
        return refuse(w, result, DB_OTHER, "a parameter has a zero byte, which no text can have");
    size_t at = out->len;
    str_reserve(out, bound + FRAME_MAX);
    str_addn(out, "Q\0\0\0\0", 5);
    db_statement_append(statement, params, out);
    out->len++; // with the zero byte that stands there
    out->buf[out->len] = '\0';
    end_message(out->buf + at, out->buf + out->len);
    push(w, statement->index, flags);
    return DB_OK;
}

static enum db_class encode(struct db_wire *wire, const struct db_statement *statement,
                            const struct db_value *params, unsigned flags, struct str *out,
                            struct db_result *result)
{
    struct postgres_wire *w = postgres_wire(wire);

    assert(statement->n_params >= 0 && statement->n_params <= DB_PARAMS_MAX);
    assert(w->n_open < POSTGRES_WIRE_DEPTH);
    if (wire->broken)
        return refuse(w, result, DB_LOST, "the connection was lost before");
    switch (w->protocol) {
    case DB_PREPARED:
        return encode_prepared(w, statement, params, flags, out, result);
    case DB_EXTENDED:
        return encode_extended(w, statement, params, flags, out, result);
    case DB_SIMPLE:
        return encode_simple(w, statement, params, flags, out, result);
    }
    assert(!"a protocol of no name");
    return DB_OTHER;
}

enum db_class postgres_wire_encode(struct db_wire *wire, const struct db_statement *statement,
                                   const struct db_value *params, bool want_row, struct str *out,
                                   struct db_result *result)
{
    return encode(wire, statement, params, want_row ? REQUEST_WANTS_ROW : 0, out, result);
}

enum db_class postgres_wire_encode_joined(struct db_wire *wire,
                                          const struct db_statement *statement,
                                          const struct db_value *params, struct str *out,
                                          struct db_result *result)
{
    assert(postgres_wire(wire)->protocol != DB_SIMPLE);
    return encode(wire, statement, params, REQUEST_JOINED, out, result);
}

void postgres_wire_end_batch(struct db_wire *wire, struct str *out)
{
    struct postgres_wire *w = postgres_wire(wire);

    assert(w->n_open > 0);
    struct postgres_request *last = &w->open[(w->first + w->n_open - 1) % POSTGRES_WIRE_DEPTH];
    assert(last->flags & REQUEST_JOINED);
    last->flags &= ~(unsigned)REQUEST_JOINED;
    str_addn(out, tail + TAIL_LEN - SYNC_LEN, SYNC_LEN);
}

enum db_class postgres_wire_encode_query(struct db_wire *wire, const char *sql, bool want_row,
                                         struct str *out, struct db_result *result)
{
    struct postgres_wire *w = postgres_wire(wire);
    const struct db_statement plain = {.index = -1, .n_params = 0, .pieces = &sql};

    assert(w->n_open < POSTGRES_WIRE_DEPTH);
    if (wire->broken)
        return refuse(w, result, DB_LOST, "the connection was lost before");
    return encode_simple(w, &plain, NULL, want_row ? REQUEST_WANTS_ROW : 0, out, result);
}
