// Inside of the wire codec for MySQL and MariaDB: what its files share. What a codec is: db/wire.h.
//
//   mysql_wire.c       taking a session over and giving it back; requests
//   mysql_wire_feed.c  the state machine over received bytes
//   mysql_wire_row.c   column definitions, and the one row that a script reads
//   mysql_wire_send.c  the bytes of each command
//
// Results mean what they mean in the blocking driver (mysql.c, mysql_stmt.c); both are held to one
// test suite. One request is open at a time: the server would take several, but goes on with the
// next where one fails, so that behind a deadlock, which rolls back the whole transaction, what was
// sent together with the victim would be committed by itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/mysqldb.h"
#include "db/wire.h"

#define WIRE_HEADER      4        // three bytes of length, one of sequence
#define WIRE_PACKET_MAX  0xffffff // a packet of this length goes on in the next
#define WIRE_COLUMNS_MAX 0xffff
#define WIRE_REQUEST_MAX ((size_t)1 << 30) // no server takes more (max_allowed_packet)
#define WIRE_SPARE_MAX   (16u << 10)       // a buffer that grew beyond this is not kept
#define WIRE_MESSAGE_MAX 512               // of a server's error; the rest is cut

// ---- column definitions and rows (mysql_wire_row.c)

// A column, as far as reading its values needs it.
struct mysqldb_wire_column {
    uint32_t name;   // offset into names
    uint32_t length; // display width
    uint16_t flags;
    uint8_t type; // enum enum_field_types
    uint8_t decimals;
};

// The columns of a result set.
struct mysqldb_wire_meta {
    size_t n, cap;
    struct mysqldb_wire_column *columns;
    struct str names; // each terminated
};

struct mysqldb_wire_meta *mysqldb_wire_meta_new(void);
void mysqldb_wire_meta_clear(struct mysqldb_wire_meta *meta);
void mysqldb_wire_meta_free(struct mysqldb_wire_meta *meta); // NULL allowed

// Adds the column that a definition packet describes. extended: a field of MariaDB's stands in it.
// -1: the packet is malformed.
int mysqldb_wire_meta_add(struct mysqldb_wire_meta *meta, const uint8_t *body, size_t len,
                          bool extended);

// Reads a row packet into row. binary: the answer to an execute, else to a text. -1: malformed.
int mysqldb_wire_row(struct mysqldb_row *row, const struct mysqldb_wire_meta *meta, bool binary,
                     const uint8_t *body, size_t len);

// ---- reading packets

// A position in a packet. What would pass the end sets bad and gives zeros from then on.
struct mysqldb_cursor {
    const uint8_t *p, *end;
    bool bad;
};

static inline size_t cursor_left(const struct mysqldb_cursor *c)
{
    return (size_t)(c->end - c->p);
}

// Passes n bytes; NULL when they are not there.
static inline const uint8_t *cursor_take(struct mysqldb_cursor *c, uint64_t n)
{
    const uint8_t *p = c->p;

    if (c->bad || n > cursor_left(c)) {
        c->bad = true;
        return NULL;
    }
    c->p += n;
    return p;
}

// A whole number of n bytes, lowest first.
static inline uint64_t cursor_int(struct mysqldb_cursor *c, int n)
{
    const uint8_t *p = cursor_take(c, (uint64_t)n);
    uint64_t value = 0;

    for (int i = 0; p && i < n; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

// A length of one to nine bytes. *null: the byte that stands for NULL in rows of text.
static inline uint64_t cursor_length(struct mysqldb_cursor *c, bool *null)
{
    uint64_t first = cursor_int(c, 1);

    *null = false;
    if (first < 0xfb)
        return first;
    switch (first) {
    case 0xfb:
        *null = true;
        return 0;
    case 0xfc:
        return cursor_int(c, 2);
    case 0xfd:
        return cursor_int(c, 3);
    case 0xfe:
        return cursor_int(c, 8);
    }
    c->bad = true;
    return 0;
}

// A length that cannot be NULL.
static inline uint64_t cursor_length_known(struct mysqldb_cursor *c)
{
    bool null;
    uint64_t length = cursor_length(c, &null);

    c->bad = c->bad || null;
    return length;
}

// ---- a session

// A prepared statement, by statement index.
struct mysqldb_wire_handle {
    uint32_t id;                    // the server's number, while prepared
    bool prepared;                  // the server holds it
    bool typed;                     // and has been told the types
    bool as_text;                   // the server cannot prepare this kind of statement
    uint8_t *types;                 // enum enum_field_types per parameter, as told
    struct mysqldb_wire_meta *meta; // its columns; NULL: no row of it was wanted yet
};

// What the next packet is. Kept in this order: requests that are open come after IDLE.
enum mysqldb_wire_phase {
    WIRE_IDLE,     // nothing: no request is open
    WIRE_PREPARE,  // head of the answer to a prepare
    WIRE_ANSWER,   // head of an answer: OK, error, wish for a file, number of columns
    WIRE_DEFS,     // a column definition
    WIRE_DEFS_END, // the EOF behind definitions (where EOF is spoken)
    WIRE_ROWS,     // a row, or the end of rows
    WIRE_UNLOCK,   // answer to the UNLOCK TABLES that was sent after ROLLBACK
};

enum mysqldb_wire_defs { WIRE_DEFS_PARAMS, WIRE_DEFS_COLUMNS, WIRE_DEFS_SET };

// Why a request fails although the server answers it well.
enum mysqldb_wire_fault {
    WIRE_FAULT_NONE,
    WIRE_FAULT_FILE,   // it asked for a file, and got none
    WIRE_FAULT_ROW,    // the wanted row is longer than DB_WIRE_KEEP_MAX
    WIRE_FAULT_PARAMS, // the statement has another number of placeholders
};

struct mysqldb_wire {
    struct db_wire base;

    // Negotiated.
    enum db_protocol protocol; // the target's
    bool no_eof;               // an OK ends rows, nothing stands behind definitions
    bool tracks_session;       // an OK may tell what else changed
    bool cached_columns;       // the server may leave out definitions it has sent before
    bool extended_columns;     // definitions have one field more
    int socket_flags;          // of the descriptor as it was; -1: not ours

    int n_handles;
    struct mysqldb_wire_handle *handles;
    uint32_t close_id; // a statement to be closed before the next request
    bool close_due;
    uint16_t status; // as the server reported last (SERVER_STATUS_...)

    // The stream. A packet is kept whole or passed over, as its first byte decides.
    uint8_t header[WIRE_HEADER];
    uint8_t header_len; // bytes of it that have come
    uint8_t seq;        // of the next packet
    bool in_packet;     // the header has come
    bool is_chosen;     // so has the first byte
    bool keep;
    bool continues;    // the next packet belongs to this one
    bool is_odd;       // out of sequence: only the farewell of a server may be that
    uint32_t length;   // of this packet
    uint32_t left;     // of it, not yet come
    struct str packet; // the part of a kept packet that came before

    // The open request.
    enum mysqldb_wire_phase phase;
    enum mysqldb_wire_defs defs;
    enum mysqldb_wire_fault fault;
    enum mysqldb_locks locks; // what it does to LOCK TABLES
    bool want_row;
    bool binary;       // rows come in the binary protocol
    bool has_set;      // a result set has begun
    bool wants_now;    // this set's first row is wanted and has not come
    uint32_t defs_due; // definitions still to come
    uint16_t columns_due;
    uint16_t params_told;                 // placeholders, as the server counts them
    int64_t rows, affected;               // of all sets, of all answers without one
    const struct db_statement *statement; // NULL: plain text
    struct mysqldb_wire_handle *handle;   // NULL: it goes as text
    struct mysqldb_wire_meta *defs_into;  // definitions go here; NULL: they are not wanted
    struct mysqldb_wire_meta *meta;       // columns of plain text; NULL until wanted
    struct str held;                      // parameters of a statement that is being prepared
};

static inline struct mysqldb_wire *mysqldb_wire(struct db_wire *base)
{
    return (struct mysqldb_wire *)base;
}

// Empties a buffer; thousands of sessions must not each keep room for the longest thing they met.
static inline void mysqldb_wire_trim(struct str *s)
{
    if (s->cap > WIRE_SPARE_MAX)
        str_release(s);
    else
        str_clear(s);
}

// Fills a zeroed state whose base has a session. Capabilities are those in force: of the basic word
// and of MariaDB's further one. Has no socket: for adopt, and for tests.
void mysqldb_wire_begin(struct mysqldb_wire *w, unsigned long caps, unsigned long more_caps);

bool mysqldb_wire_in_transaction(const struct mysqldb_wire *w);

extern const struct db_wire_codec mysqldb_wire_codec;

// Its slot feed (mysql_wire_feed.c).
enum db_wire_progress mysqldb_wire_feed(struct db_wire *base, const char *bytes, size_t n,
                                        size_t *used, struct str *out, struct db_result *result);

// The server's handle is not needed any more, or is of no use: it is closed with the next request.
void mysqldb_wire_drop(struct mysqldb_wire *w, struct mysqldb_wire_handle *handle);

// ---- commands (mysql_wire_send.c): each appends a whole command and expects the answer's number

void mysqldb_wire_send_text(struct mysqldb_wire *w, const char *text, size_t len, struct str *out);
void mysqldb_wire_send_expanded(struct mysqldb_wire *w, const struct db_statement *statement,
                                const struct db_value *params, struct str *out);
void mysqldb_wire_send_prepare(struct mysqldb_wire *w, const struct db_statement *statement,
                               struct str *out);
void mysqldb_wire_send_execute(struct mysqldb_wire *w, struct mysqldb_wire_handle *handle,
                               const struct db_value *params, int n, struct str *out);
void mysqldb_wire_send_close(uint32_t id, struct str *out); // has no answer
void mysqldb_wire_send_no_file(struct mysqldb_wire *w, struct str *out);

// Copies parameters to where they stay until the statement is prepared, and gives them back.
void mysqldb_wire_hold(struct mysqldb_wire *w, const struct db_value *params, int n);
const struct db_value *mysqldb_wire_held(const struct mysqldb_wire *w);
