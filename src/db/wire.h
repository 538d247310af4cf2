// Wire codecs: an engine's protocol as pure functions over bytes, for a loop that does the input
// and output itself (load/ring). No socket, no clock, no lock in here; the same bytes give the same
// answers, whole or cut anywhere, so a codec is tested and fuzzed without a server.
//
// A session is opened by the driver as ever (db_connect: the client library knows every way to
// authenticate). Then db_wire_adopt takes over its socket: from there on only the loop reads and
// writes it, until db_wire_release; db_disconnect comes after that. What a codec cannot speak (GSS
// encryption, compression, a capability it does not list) is refused at adoption with the reason,
// and the session stays usable by the blocking calls.
//
// One wire belongs to one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "db/db.h"

struct db_wire_codec;

// The base of a codec's state for one session; the codec's own struct begins with it.
struct db_wire {
    const struct db_wire_codec *codec;
    struct db_session *session;
    int fd;                  // the session's socket, made non-blocking; never closed by the wire
    struct db_wire_tls *tls; // NULL: bytes travel as they are
    bool broken;             // the peer broke the protocol, or closed: connect anew
};

enum db_wire_progress {
    DB_WIRE_MORE,     // every byte given was taken; the answer is not whole yet
    DB_WIRE_ANSWERED, // one request is answered: result is filled; bytes after *used are the next
                      // answer's
    DB_WIRE_BROKEN, // result has class DB_LOST and says what was wrong; the wire is of no more use
};

// Longest message that is kept whole (errors, row descriptions, rows that a script reads); longer
// ones are skipped byte by byte, or refused (DB_OTHER) where a script wanted the row.
#define DB_WIRE_KEEP_MAX (1 << 20)

struct db_wire_codec {
    const char *name;  // of the driver
    size_t state_size; // zeroed bytes the layer allocates for a wire

    // Builds the state from what the session negotiated and sets fd and tls. -1: not possible, why
    // says so in words ("the connection is compressed"), and nothing is left to release. Sends
    // nothing.
    int (*adopt)(struct db_wire *wire, char *why, size_t size);

    // Frees what adopt and later calls allocated; gives the library its transport back. Sends
    // nothing. With requests still open it marks the wire as broken.
    void (*release)(struct db_wire *wire);

    // Appends the bytes of one request to out. The protocol is the target's. The first use of a
    // statement may need an answer before its second part: see feed. Returns DB_OK, or a class with
    // result filled and out as it was (a parameter too large, ...). No allocation once buffers have
    // grown.
    enum db_class (*encode)(struct db_wire *wire, const struct db_statement *statement,
                            const struct db_value *params, bool want_row, struct str *out,
                            struct db_result *result);

    // As encode, but others of its batch follow: it is answered at the end of its own command,
    // which tells nothing of in_transaction, and the server sends no answer before the batch has
    // its end from encode or end_batch. A request of a batch that fails is answered when the batch
    // is over, and those behind it in the batch are not answered at all: the server leaves them
    // out. Nothing may be fed, and no plain text encoded, while a batch has no end. Both slots
    // where depth_max is more than 1, else NULL; not in DB_SIMPLE.
    enum db_class (*encode_joined)(struct db_wire *wire, const struct db_statement *statement,
                                   const struct db_value *params, struct str *out,
                                   struct db_result *result);
    void (*end_batch)(struct db_wire *wire, struct str *out);

    // As encode, for plain text without parameters (ROLLBACK, set-up).
    enum db_class (*encode_query)(struct db_wire *wire, const char *sql, bool want_row,
                                  struct str *out, struct db_result *result);

    // Takes n received bytes (any cut, even one at a time) and goes on with the oldest request that
    // is not answered. *used <= n; it is n unless an answer ended before. May append to out what
    // must be sent for the answer to go on (execute after prepare, refusal of COPY). n == 0 means
    // that the peer has closed. Bytes when no request is open: asynchronous messages are taken
    // (MORE), a farewell or anything else breaks the wire.
    enum db_wire_progress (*feed)(struct db_wire *wire, const char *bytes, size_t n, size_t *used,
                                  struct str *out, struct db_result *result);

    // The first row of the last answer with want_row; valid until the next encode. As db_row_name.
    const char *(*row_name)(struct db_wire *wire, int i);
    struct db_value (*row_value)(struct db_wire *wire, int i);

    // Optional: mem_prefetch of what a request and its answer touch outside of the first
    // DB_WIRE_NEAR bytes of the state, which have been fetched before.
    void (*prefetch)(const struct db_wire *wire);

    // How many requests may be open at once: 1 where answers could not be told apart, else at least
    // DB_PIPELINE_MAX, and the target has DB_CAP_PIPELINE.
    int depth_max;
};

#define DB_WIRE_NEAR 256 // bytes at the beginning of a codec's state for what every request uses

// Takes a connected session over. NULL and the reason in why when it must stay with blocking calls.
struct db_wire *db_wire_adopt(struct db_session *session, char *why, size_t size);
void db_wire_release(struct db_wire *wire); // NULL allowed; then db_disconnect(session)

static inline enum db_class db_wire_encode(struct db_wire *wire,
                                           const struct db_statement *statement,
                                           const struct db_value *params, bool want_row,
                                           struct str *out, struct db_result *result)
{
    return wire->codec->encode(wire, statement, params, want_row, out, result);
}

static inline enum db_wire_progress db_wire_feed(struct db_wire *wire, const char *bytes, size_t n,
                                                 size_t *used, struct str *out,
                                                 struct db_result *result)
{
    return wire->codec->feed(wire, bytes, n, used, out, result);
}

static inline void db_wire_prefetch(const struct db_wire *wire)
{
    if (wire->codec->prefetch)
        wire->codec->prefetch(wire);
}

// ---- TLS (db/wire_tls.c): only when wire->tls is set

// Encrypts what stands in plain (and clears it), appending to out. Negative when the TLS layer
// failed; as with db_wire_open, a feed of nothing (n == 0) then fills a result that says why.
int db_wire_seal(struct db_wire *wire, struct str *plain, struct str *out);

// Decrypts received bytes, appending to plain; may append to out what TLS itself must send.
int db_wire_open(struct db_wire *wire, const char *bytes, size_t n, struct str *plain,
                 struct str *out);

// What went wrong in the TLS layer, or NULL: for codecs.
const char *db_wire_tls_error(const struct db_wire *wire);
