// Inside of PostgreSQL's wire codec (protocol 3): what its files share. The loop sees db/wire.h.
//
//   postgres_wire.c         state, adoption, the kept row's fields
//   postgres_wire_encode.c  requests -> bytes
//   postgres_wire_feed.c    bytes -> messages, messages -> an answer
//   postgres_wire_row.c     the row that a script reads
//
// A request ends so that the server sends exactly one ReadyForQuery for it (a Sync of its own, or a
// simple query), and that message alone ends its answer. So requests can be open side by side and
// an error skips nothing but its own request. In a batch only the last request is like that: those
// before it are answered by the end of their command, and after an error ReadyForQuery ends them
// all.
//
// A prepared statement is parsed in the same batch as its first execution, on the word of the
// server alone: until ParseComplete has come the statement is not used by name.
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "db/postgres_errors.h"
#include "db/wire.h"

#define POSTGRES_WIRE_DEPTH DB_PIPELINE_MAX // requests open at once; a power of two

// A length counts itself; the server sends nothing longer, and takes nothing longer.
#define POSTGRES_WIRE_MESSAGE_MAX (1 << 30)

// Buffers that grew beyond this are not kept for the next row or message (5000 sessions add up).
#define POSTGRES_WIRE_SPARE_MAX (16 << 10)

enum {
    REQUEST_WANTS_ROW = 1 << 0,
    REQUEST_EXTENDED = 1 << 1, // ended by a Sync, unless it is joined
    REQUEST_NAMED = 1 << 2,    // executes a statement that is prepared
    REQUEST_PARSES = 1 << 3,   // prepares it first
    REQUEST_CLOSES = 1 << 4,   // and before that makes the server forget one of its name
    REQUEST_JOINED = 1 << 5,   // the next one belongs to the same batch
};

struct postgres_request {
    int statement; // index; -1: plain text
    unsigned flags;
};

enum postgres_handle { // what the server knows of a statement
    HANDLE_NONE,
    HANDLE_ASKED, // a request with its Parse is open
    HANDLE_READY,
    HANDLE_GONE, // an execution said that there is none; it may have meant another
};

struct postgres_column {
    size_t name, value; // offsets into the row's bytes
    int32_t len;        // of the value; -1: NULL
    uint32_t type;      // pg_type's number
};

struct postgres_row {
    struct str bytes; // names and values, each with a zero byte after it
    struct postgres_column *columns;
    int n, cap;
};

// The answer to the oldest open request, as far as it was heard.
struct postgres_answer {
    bool is_described; // the present result has columns (RowDescription)
    bool is_told;      // some result has ended, or failed
    bool is_failed;    // then failure holds; the first one wins
    int64_t n_data;    // rows of the present result
    int64_t rows;      // of the last result
    int n_columns;     // of the last result, where its row is wanted
};

struct postgres_wire {
    struct db_wire base;
    enum db_protocol protocol;
    struct postgres_cancel *cancel; // NULL: no session stands behind (tests)
    int flags_before;               // of the descriptor
    int n_statements;
    unsigned char *handles;  // enum postgres_handle by statement index
    bool in_transaction;     // at the last ReadyForQuery
    char loss[SQLSTATE_MAX]; // of a notice that announces the end (57Pxx)
    uint64_t skip;           // bytes of a message that need not be looked at
    struct str pending;      // the beginning of a message that came in parts
    struct postgres_answer answer;
    unsigned first, n_open;
    struct postgres_request open[POSTGRES_WIRE_DEPTH]; // a ring; begins anew when it is empty

    struct postgres_row row;
    struct db_result failure; // of the present answer, or why the wire broke
};

extern const struct db_wire_codec postgres_wire_codec;

static inline struct postgres_wire *postgres_wire(struct db_wire *wire)
{
    return (struct postgres_wire *)wire;
}

// Gives a zeroed state its first values; end frees what it and later calls took. adopt and release
// use them; tests do so without a session.
void postgres_wire_begin(struct postgres_wire *w, enum db_protocol protocol, int n_statements);
void postgres_wire_end(struct postgres_wire *w);

// Slots of the codec.
enum db_class postgres_wire_encode(struct db_wire *wire, const struct db_statement *statement,
                                   const struct db_value *params, bool want_row, struct str *out,
                                   struct db_result *result);
enum db_class postgres_wire_encode_joined(struct db_wire *wire,
                                          const struct db_statement *statement,
                                          const struct db_value *params, struct str *out,
                                          struct db_result *result);
void postgres_wire_end_batch(struct db_wire *wire, struct str *out);
enum db_class postgres_wire_encode_query(struct db_wire *wire, const char *sql, bool want_row,
                                         struct str *out, struct db_result *result);
enum db_wire_progress postgres_wire_feed(struct db_wire *wire, const char *bytes, size_t n,
                                         size_t *used, struct str *out, struct db_result *result);

// ---- postgres_wire_row.c

// Bodies of RowDescription and of the first DataRow after it, whole. Negative when they contradict
// themselves or each other.
int postgres_row_describe(struct postgres_row *row, const char *body, size_t n);
int postgres_row_fill(struct postgres_row *row, const char *body, size_t n);
void postgres_row_clear(struct postgres_row *row); // no columns; memory as small as it may stay
void postgres_row_release(struct postgres_row *row);

// ---- bytes: numbers travel with the highest byte first

static inline uint32_t postgres_get32(const char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return be32toh(v);
}

static inline unsigned postgres_get16(const char *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return be16toh(v);
}

static inline char *postgres_put32(char *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, sizeof(v));
    return p + sizeof(v);
}

static inline char *postgres_put16(char *p, unsigned v)
{
    uint16_t v16 = htobe16((uint16_t)v);

    memcpy(p, &v16, sizeof(v16));
    return p + sizeof(v16);
}
