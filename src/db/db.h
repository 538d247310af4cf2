// Engines behind one contract: what the upper floors call. This thin layer owns bookkeeping (state
// checks, assertions, tracing) and is the only caller of drivers (db/driver.h).
//
// A *target* is one database, opened once from its URL and shared read-only by all threads. A
// *session* is one connection: used by one thread at a time; calls on it block until answered (the
// threads loop's business; the ring speaks the wire protocol itself). Only db_cancel may come from
// another thread.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/kv.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/url.h"
#include "db/value.h"

struct db_target;
struct db_session;
struct leftovers;

// What became of a request. The core acts on the class alone; the native code and text are for
// people.
enum db_class {
    DB_OK = 0,
    // The transaction may be tried again as it is (db_class_is_retry):
    DB_SERIALIZATION, // could not serialize access
    DB_DEADLOCK,
    DB_BUSY, // a lock was not had in time (sqlite busy, lock wait timeout)
    // The session is gone (db_class_is_lost); the transaction's outcome may be unknown:
    DB_LOST,
    // Connecting only: nobody answers, starting up, shutting down; worth another try:
    DB_UNAVAILABLE,
    DB_TOO_MANY, // connecting: the server's connection limit is reached
    // The statement failed and will fail again:
    DB_DENIED,      // authentication or privilege
    DB_NO_DATABASE, // connecting: the database does not exist
    DB_UNDEFINED,   // table, column or function does not exist
    DB_SYNTAX,      // the statement is malformed
    DB_CONSTRAINT,  // unique, foreign key, not null, check
    DB_READ_ONLY,   // replica or read-only database
    DB_FULL,        // disk, memory or another limit of the server's host
    DB_CANCELLED,   // by us, or a statement timeout
    DB_OTHER,
    DB_CLASS_COUNT
};

// Stable names for JSON and the store: "ok", "serialization", "deadlock", "busy", "lost", ...
const char *db_class_name(enum db_class class);
bool db_class_is_retry(enum db_class class);
bool db_class_is_lost(
    enum db_class class); // DB_LOST; on connecting also DB_UNAVAILABLE, DB_TOO_MANY

// What a session can do. Workloads see these as :cap_NAME (0 or 1).
enum db_cap {
    DB_CAP_TRANSACTIONS = 1 << 0,  // BEGIN ... COMMIT is atomic and can be rolled back
    DB_CAP_ROW_LOCKS = 1 << 1,     // writers of different rows do not wait for each other
    DB_CAP_PREPARED = 1 << 2,      // protocols "prepared" and "extended" differ from "simple"
    DB_CAP_KEY_FIRST = 1 << 3,     // bulk load is fastest with the primary key made before it
    DB_CAP_BULK_PARALLEL = 1 << 4, // several sessions may bulk load one table at once, and it helps
    DB_CAP_LOCK_TABLES = 1 << 5,   // has LOCK TABLES t WRITE, ... / UNLOCK TABLES
    DB_CAP_HOLLOW = 1 << 6,        // keeps no data: every table exists, none is filled or checked
    DB_CAP_PIPELINE = 1 << 7, // by wire: statements can be sent without waiting for the answers
                              // before, up to DB_PIPELINE_MAX
    DB_CAP_COUNT_BITS = 8
};
const char *db_cap_name(int bit); // "transactions", "row_locks", ..., "pipeline"

#define DB_PIPELINE_MAX 64 // statements sent and not answered

enum db_protocol { DB_SIMPLE, DB_EXTENDED, DB_PREPARED };

// What a statement is for the accounting of outcomes; from its first word (db_statement_kind). Of
// several statements in one text the one that decides counts: COMMIT before BEGIN before WRITE.
enum db_kind {
    DB_KIND_READ,     // SELECT, VALUES, SHOW, EXPLAIN, TABLE
    DB_KIND_WRITE,    // anything else: counted as able to change data
    DB_KIND_BEGIN,    // BEGIN, START TRANSACTION, LOCK TABLES
    DB_KIND_COMMIT,   // COMMIT, END, UNLOCK TABLES, PREPARE TRANSACTION
    DB_KIND_ROLLBACK, // ROLLBACK, ABORT
};
enum db_kind db_statement_kind(const char *sql);

// How parameters are written in a statement's text.
enum db_placeholder { DB_PLACE_DOLLAR /* $1 */, DB_PLACE_QUESTION /* ? */ };

#define DB_PARAMS_MAX 255

// One statement of a compiled workload; immutable, shared by all sessions, lives as long as they
// do.
struct db_statement {
    int index; // dense from 0 over the whole workload: drivers keep handles by it
    enum db_kind kind;
    const char *sql; // with placeholders in the target's style; parameter k is used once, in order
    int n_params;    // <= DB_PARAMS_MAX
    const char **pieces; // n_params + 1 texts between the parameters, for the simple protocol
};

// The answer to one request. Owned by the caller, reused without clearing (the layer resets it).
#define DB_MESSAGE_MAX 256
struct db_result {
    enum db_class class;
    bool in_transaction;    // the session stands inside an open (or failed) transaction afterwards
    int64_t rows;           // rows returned, or affected
    int64_t lock_wait_ns;   // time in our own busy handler, where the driver knows it
    int64_t given_delay_ns; // null: the delay it really gave
    int n_columns;          // with want_row: columns of the row
    char native[16];        // SQLSTATE, error number; "" when ok
    char message[DB_MESSAGE_MAX]; // server's text, one line; "" when ok
};

// What can be said about a target, for checks and for the record. Fields that could not be had
// hold their "unknown" value and the reason stands in `settings` under the field's name as
// "unknown: ...".
struct db_facts {
    char engine[32];      // "sqlite", "postgres", "mariadb", "mysql", "null"
    char version[128];    // "15.20 (Debian 15.20-0+deb12u1)"; "unknown: ..." else
    int max_connections;  // 0: unknown or unlimited; net of reserved ones
    int connections_used; // by others
    const char
        *max_connections_setting; // name to change ("max_connections"), NULL where there is none
    bool read_only;
    char read_only_why[64];   // "a replica in recovery", "read_only=1", "file is not writable"
    bool is_local;            // the server shares this machine
    char data_path[PATH_MAX]; // file or directory of the data on this machine; "" unknown
    char log_path[PATH_MAX];  // directory of the transaction log where it is another; ""
    int64_t data_bytes;       // size of the database; -1 unknown
    int64_t cache_bytes;      // the engine's own cache; -1 unknown
    struct kvs settings; // engine settings changed from default, and those that decide durability
};
void db_facts_release(struct db_facts *facts);

// A table that init makes. Types are standard SQL that every engine takes.
struct db_column {
    const char *name;
    const char *type; // "int", "bigint", "char(84)", "timestamp"
    bool not_null;
    const char *constant; // the value of every row that is loaded, a word without quotes; NULL:
                          // they differ. Rows have it all the same
};
struct db_table {
    const char *name;
    const struct db_column *columns;
    int n_columns;
    const char *primary_key; // column list, or NULL
    int fillfactor;          // percent, 0: engine's default; ignored where unknown
};

// ---- targets

struct db_open_options {
    const struct clock *clock;
    uint64_t seed;               // for what drivers invent
    struct leftovers *leftovers; // where a temporary database is registered; NULL: none is made
    const char *trace_path;      // --trace FILE; NULL: no tracing
    const char *display;         // shown and stored instead of the URL; NULL: the URL
    enum db_protocol protocol;
    int n_statements;    // sessions hold this many prepared handles; may be set later, see below
    bool create_missing; // sqlite: a missing file may be created (init); else it is an error
    int64_t connect_timeout_ns; // 0: 10 s
    const char *data_dir;       // where the volume of data= is; NULL: there is no such parameter
};

// Checks the URL and everything that can be checked without connecting. ERR_USAGE for an unknown
// engine, parameter or bad value (near miss suggested), ERR_ABSENT when this build lacks the
// engine.
int db_open(struct db_target **ret, const char *url, const struct db_open_options *options,
            struct err *err);

// The volume that the parameter data= of a target names, where the engine takes one (the caller
// brings it up and gives its directory as data_dir); NULL when there is none or the URL is wrong,
// which db_open tells. The caller frees it.
char *db_data_volume(const char *url);
bool db_names_file(const char *url); // does it name one, or leave the name to prony?

// For a target that leaves the file to prony: what shapes that file, each a line of a state's key;
// the target that makes the same in `file` and asks for nothing else (plain); and the target
// itself, with that file (named). ERR_USAGE for others.
int db_shape(const char *url, const char *file, struct kvs *shape, struct str *plain,
             struct str *named, struct err *err);

void db_close(struct db_target *target); // after all sessions; removes a temporary database

// How many statements sessions must hold handles for; holds for sessions connected afterwards, and
// nobody may be connecting meanwhile.
void db_set_statements(struct db_target *target, int n_statements, enum db_protocol protocol);

const char *db_engine(const struct db_target *target);  // driver name
const char *db_display(const struct db_target *target); // URL without password, as shown and stored
bool db_is_temporary(const struct db_target *target);   // made by prony: run fills it by itself
unsigned db_caps(const struct db_target *target);       // enum db_cap bits
enum db_placeholder db_placeholder(const struct db_target *target);
bool db_has_loop(const struct db_target *target, const char *loop); // "threads"; later "ring"

// The engines in this build, NULL-terminated; for --version and near misses.
const char *const *db_engines(void);

// ---- sessions

// Connects and makes the session ready. client numbers the session for seeded behaviour. Returns
// DB_OK and *ret, else the class with result->message filled and no session.
enum db_class db_connect(struct db_target *target, int client, struct db_session **ret,
                         struct db_result *result);
void db_disconnect(struct db_session *session); // NULL allowed; never waits for a dead server

// Runs a statement with its parameters and waits for the answer. Prepares it first where the
// protocol wants that and this session has not yet. With want_row false rows are read and only
// counted. With want_row the first row stays readable through db_row and result->n_columns is set.
// No allocation outside the client library. Returns result->class.
enum db_class db_execute(struct db_session *session, const struct db_statement *statement,
                         const struct db_value *params, bool want_row, struct db_result *result);

// Column name and value i of the row kept by the last db_execute with want_row; valid until the
// next call. result->rows tells how many rows there were (only the first is kept).
const char *db_row_name(struct db_session *session, int i);
struct db_value db_row_value(struct db_session *session, int i);

// One statement as plain text, no parameters: set-up, checks, DDL. want_row as above.
enum db_class db_query(struct db_session *session, const char *sql, bool want_row,
                       struct db_result *result);

// Every row as text, through a callback (values NULL for NULL). Not for the measured phase.
typedef void db_row_fn(void *arg, int n_columns, const char *const *names,
                       const char *const *values);
enum db_class db_query_each(struct db_session *session, const char *sql, db_row_fn *fn, void *arg,
                            struct db_result *result);

// Asks the server to stop what the session is doing; from any thread, returns soon. The blocked
// call then fails with DB_CANCELLED (or DB_LOST where the engine can only cut the connection).
void db_cancel(struct db_session *session);

// The session is gone and must be disconnected and connected anew; until then every call on it
// answers DB_LOST.
bool db_session_lost(const struct db_session *session);

// Before tables are dropped and made anew: waits at most about a second until no other session that
// claimed the same name lives; the claim lasts as long as the session. DB_BUSY: another one has it.
// It keeps a statement of a loader that was killed, which the server still has to run, out of the
// new tables. Engines whose transactions see to that say DB_OK.
enum db_class db_claim(struct db_session *session, const char *name, struct db_result *result);

// While on, a commit of this session need not wait for the disk; the first one after off does, for
// all that any session has committed before. For tables that are being made: until their mark says
// that they are whole, a power cut costs them anyway. Engines without such a thing ignore it.
enum db_class db_hurry(struct db_session *session, bool on, struct db_result *result);

// Creates a table (with the primary key at once only where with_key). Bulk load: begin, then rows
// with n_columns values each, then end, which makes them durable and visible and gives their
// number in result->rows. Rows arrive in key order. A row or an end that fails ends the load:
// nothing of it stays. Between begin and end nothing else may be asked of the session.
enum db_class db_create_table(struct db_session *session, const struct db_table *table,
                              bool with_key, struct db_result *result);
enum db_class db_bulk_begin(struct db_session *session, const struct db_table *table,
                            struct db_result *result);
enum db_class db_bulk_row(struct db_session *session, const struct db_value *values,
                          struct db_result *result);
enum db_class db_bulk_end(struct db_session *session, struct db_result *result);

// After loading: whatever makes a fresh table ready (VACUUM ANALYZE, ANALYZE TABLE, ...).
enum db_class db_settle_table(struct db_session *session, const struct db_table *table,
                              struct db_result *result);

// Fills facts as far as the server tells; never fails as a whole.
void db_describe(struct db_session *session, struct db_facts *facts);

// The same, but where it takes less time only what an init needs: version, read_only, sizes, paths.
void db_describe_place(struct db_session *session, struct db_facts *facts);

// Cumulative counters, name and value ("checkpoints", "wal_bytes", "blocks_read", ...); the
// difference of two samples describes a run. Missing ones are left out. Never fails.
void db_sample(struct db_session *session, struct kvs *counters);

// Momentary values: how many sessions of this database other than this one wait for what
// ("wait:Lock:tuple", "wait:CPU"; "wait:client" for those that the client has to go on with), and
// gauges of the engine ("dirty_pages", "checkpoint_age_bytes"). Cheap enough for several times a
// second. Only where db_has_gauges. Never fails.
#define DB_GAUGE_WAIT "wait:"
bool db_has_gauges(const struct db_target *target);
void db_gauges(struct db_session *session, struct kvs *gauges);
