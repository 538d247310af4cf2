// Inside of the PostgreSQL driver: what its files share. Upper floors see db/db.h only.
//
//   postgres.c          sessions: connect, execute, query, rows
//   postgres_target.c   URL -> libpq's parameters, and the target's display
//   postgres_cancel.c   stopping a request from another thread
//   postgres_bulk.c     create, load (COPY), settle
//   postgres_facts.c    describe
//   postgres_place.c    describe: where the data lies on this machine
//   postgres_sample.c   counters
//   postgres_errors.c   SQLSTATE -> class
//   postgres_wire*.c    the codec for the ring, see db/postgres_wire.h
//
// Every function that fills a struct db_result expects it reset (DB_OK, "") and returns its class.
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/str.h"
#include "db/driver.h"
#include "db/postgres_errors.h"

struct postgres_target {
    struct db_target base;
    bool several_hosts;
    struct kvs params;          // what is handed to libpq, in its keywords
    const char **keywords;      // NULL-terminated, pointing into params, as PQconnect wants them
    const char **values;        //
    int64_t connect_timeout_ns; // per address; 0: no limit
};

int postgres_open(struct db_target *base, struct err *err);
void postgres_close(struct db_target *base);

struct postgres_cancel;

// A COPY between bulk_begin and bulk_end.
struct postgres_bulk_column {
    bool strip;      // trailing blanks mean nothing there (char(n))
    bool is_default; // left out of COPY: every row gets the same
};

struct postgres_bulk {
    struct str rows; // encoded, not yet handed to libpq
    const struct db_table *table;
    struct postgres_bulk_column *columns;
    int64_t n_rows;
    bool own_transaction; // bulk_begin opened one, bulk_end commits it
};

struct postgres_name {
    char text[16]; // "prony_" and the statement's index
};

struct postgres_session {
    struct db_session base;
    PGconn *conn;
    PGresult *row; // kept by want_row until the next call
    struct postgres_cancel *cancel;
    struct str sql; // expanded text of the simple protocol
    int n_statements;
    bool *prepared;              // by statement index
    struct postgres_name *names; // likewise
    char loss[SQLSTATE_MAX];     // SQLSTATE of a notice that announces the end (57Pxx)
    struct postgres_bulk bulk;
    const char *param_values[DB_PARAMS_MAX];
    char param_texts[DB_PARAMS_MAX][DB_VALUE_TEXT_MAX];
};

static inline struct postgres_session *postgres_session(struct db_session *base)
{
    return (struct postgres_session *)base;
}

// Fills result from a failed libpq call; res may be NULL (then the connection's own message is
// used) and stays the caller's. A broken connection is DB_LOST whatever the code.
enum db_class postgres_fail(struct postgres_session *s, const PGresult *res,
                            struct db_result *result);

// Sends plain text and reads the answer, which is the caller's: the last result, the first failure,
// or a COPY that has begun. NULL when it could not be sent.
PGresult *postgres_exec(struct postgres_session *s, const char *sql);

// Runs one statement without parameters or rows, for the driver's own use.
enum db_class postgres_run(struct postgres_session *s, const char *sql, struct db_result *result);

// A column's text as a value that borrows it; type is pg_type's number, and a zero byte follows the
// text.
struct db_value postgres_value(uint32_t type, const char *text, int len);

// Reads results to the last one; the first failure is kept in result.
void postgres_drain(struct postgres_session *s, struct db_result *result);

// ---- postgres_cancel.c

// The handle outlives the session while helper threads use it. NULL when libpq cannot make one.
struct postgres_cancel *postgres_cancel_create(PGconn *conn);

// The session's thread marks what it does: only a running request is cancelled.
void postgres_cancel_busy(struct postgres_cancel *cancel);
void postgres_cancel_idle(struct postgres_cancel *cancel);

void postgres_cancel_prefetch(const struct postgres_cancel *cancel); // of what these two touch

// True when the running request is to be stopped: for the session's thread, while it works itself.
bool postgres_cancel_asked(const struct postgres_cancel *cancel);

// The socket is (about to be) closed: nobody may touch it any more.
void postgres_cancel_detach(struct postgres_cancel *cancel);
void postgres_cancel_release(
    struct postgres_cancel *cancel); // the session's reference; NULL allowed

void postgres_cancel(struct db_session *base);

// ---- slots of the other files

enum db_class postgres_hurry(struct db_session *base, bool on, struct db_result *result);
enum db_class postgres_create_table(struct db_session *base, const struct db_table *table,
                                    bool with_key, struct db_result *result);
enum db_class postgres_bulk_begin(struct db_session *base, const struct db_table *table,
                                  struct db_result *result);
enum db_class postgres_bulk_row(struct db_session *base, const struct db_value *values,
                                struct db_result *result);
enum db_class postgres_bulk_end(struct db_session *base, struct db_result *result);
enum db_class postgres_settle_table(struct db_session *base, const struct db_table *table,
                                    struct db_result *result);
void postgres_bulk_release(struct postgres_bulk *bulk);

void postgres_describe(struct db_session *base, struct db_facts *facts);
void postgres_describe_place(struct db_session *base, struct db_facts *facts);
void postgres_sample(struct db_session *base, struct kvs *counters);
void postgres_gauges(struct db_session *base, struct kvs *gauges);

// ---- postgres_facts.c and postgres_place.c

// Runs a query of the driver's own; the result is the caller's to clear. NULL when it failed or
// gave no row: then why (if not NULL) gets "unknown: REASON". Never leaves a failed transaction.
PGresult *postgres_ask(struct postgres_session *s, const char *sql, struct str *why);

// Fills is_local, data_path and log_path, and settings' reasons for what is not known.
void postgres_place(struct postgres_session *s, struct db_facts *facts);
