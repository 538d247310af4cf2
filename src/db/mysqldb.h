// Inside of the driver for MySQL and MariaDB: what its files share. Upper floors see db/db.h only.
// The library owns the prefix mysql_ and the header mysql.h, so ours are mysqldb_ and mysqldb.h.
//
//   mysql.c          sessions: connect, disconnect, plain text, rows
//   mysql_stmt.c     statements with parameters: the protocols extended and prepared
//   mysql_target.c   URL -> the library's options
//   mysql_engines.c  what is known of storage engines
//   mysql_cancel.c   stopping a request from another thread
//   mysql_load.c     create, load, settle
//   mysql_facts.c    describe
//   mysql_sample.c   counters
//   mysql_errors.c   error number -> class
//   mysql_wire*.c    the codec for the ring (mysql_wire.h)
//
// Every function that fills a struct db_result expects it reset (DB_OK, "") and returns its class.
#pragma once

#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "db/driver.h"
#include "db/mysql_errors.h"

// ---- mysql_engines.c

// A storage engine. Only the name is sure before a server is asked.
struct mysqldb_engine {
    const char *name;     // lower case
    bool transactions;    // COMMIT and ROLLBACK mean something
    bool row_locks;       // writers of different rows do not wait for each other
    bool key_first;       // loading is fastest with the primary key made before it
    bool load_data;       // LOAD DATA is faster than INSERTs of many rows
    const char *cache;    // the server variable that sizes its cache; NULL: none of its own
    const char *log_path; // the one that tells where its log lies; NULL: beside the data
};

// The entry for a name in any case, or NULL.
const struct mysqldb_engine *mysqldb_engine_find(const char *name);

// Fails with ERR_USAGE for a name that no engine can have or that is a slip of a known one.
int mysqldb_engine_check(const char *name, struct err *err);

// What the engine makes of a target's capabilities.
unsigned mysqldb_engine_caps(const struct mysqldb_engine *engine);

// ---- targets (mysql_target.c)

#define MYSQLDB_PARAMS 32 // room for the table of parameters

struct mysqldb_value { // of one parameter of the URL
    bool told;
    const char *text; // borrowed from the URL
    int64_t number;   // booleans, choices, seconds
};

struct mysqldb_target {
    struct db_target base;
    struct mysqldb_value values[MYSQLDB_PARAMS]; // by row of the table
    char *host;                                  // NULL: the option file's, else this machine
    unsigned port;                               // 0: likewise
    const char *user, *password, *database;      // NULL: likewise; borrowed
    const char *socket;                          // NULL: likewise; borrowed
    bool force_tcp;                              // localhost:PORT means the port
    bool needs_tls;                              // the URL asks for it
    struct mysqldb_engine engine;                // as asked, corrected by the server if unknown
    char *engine_name;
    bool engine_told;            // in the URL: the server is asked whether it has it
    atomic_bool engine_checked;  // it has
    pthread_mutex_t cancel_lock; // for what follows
    MYSQL *canceller;            // a connection for KILL QUERY, opened at need
    int64_t canceller_retry_ns;  // not before; the last attempt failed
};

extern const char mysqldb_params_help[];
int mysqldb_open(struct db_target *base, struct err *err);
void mysqldb_close(struct db_target *base);

// Connects with everything the target says. Returns the handle whether or not that worked: with
// mysql_errno 0 it did. The caller closes it. timeout_s > 0 stands above all told time limits, and
// also bounds every later answer.
MYSQL *mysqldb_dial(const struct mysqldb_target *target, unsigned timeout_s);

// ---- sessions

struct mysqldb_binder;
struct mysqldb_handle; // a prepared statement, by statement index (mysql_stmt.c)

// The first row of the last answer, copied: the library's own memory is gone with the next call.
struct mysqldb_field {
    size_t name; // offset into bytes
    struct db_value value;
    size_t text; // DB_TEXT: offset into bytes
};
struct mysqldb_row {
    int n, cap;
    struct mysqldb_field *fields;
    struct str bytes;
};

// A load between bulk_begin and bulk_end.
struct mysqldb_bulk {
    char *table; // NULL: no load
    int n_columns;
    bool load_data;   // LOAD DATA LOCAL; else INSERT
    struct str head;  // statement up to the rows
    struct str chunk; // rows not yet sent
    size_t limit;     // bytes after which a chunk is sent
    size_t sent;      // LOAD DATA: bytes of the chunk the library has taken
    bool sending;     // LOAD DATA: the server may ask for the chunk, and for nothing else
    int64_t chunk_rows, rows;
};

struct mysqldb_session {
    struct db_session base;
    MYSQL *mysql;
    struct str text; // simple protocol
    struct mysqldb_handle *handles;
    int n_handles;
    struct mysqldb_binder *binder; // parameters on their way (mysql_stmt.c)
    struct mysqldb_row row;
    bool tables_locked; // LOCK TABLES is in force
    struct mysqldb_bulk bulk;
    atomic_bool busy; // a request runs that may be cancelled
    unsigned long thread_id;
    int fd; // the session's socket, and what tells whether it still is that
    uint64_t fd_inode;
};

static inline struct mysqldb_session *mysqldb_session(struct db_session *base)
{
    return (struct mysqldb_session *)base;
}

static inline struct mysqldb_target *mysqldb_target(const struct db_session *base)
{
    return (struct mysqldb_target *)base->target;
}

// Whether the server says that a transaction is open, or tables are locked.
bool mysqldb_in_transaction(const struct mysqldb_session *s);

// Fills result from the library's last error on the session.
enum db_class mysqldb_fail(struct mysqldb_session *s, struct db_result *result);

// Sends text and reads every answer to it; want_row, fn and arg as in db/driver.h. The first result
// set's first row is the one kept.
enum db_class mysqldb_text(struct mysqldb_session *s, const char *sql, size_t len, bool want_row,
                           db_row_fn *fn, void *arg, struct db_result *result);

// The same for the driver's own use, from a terminated text.
enum db_class mysqldb_run(struct mysqldb_session *s, const char *sql, struct db_result *result);

// Runs a query of the driver's own and gives the first row's column as text: true when there is
// one. Otherwise value is empty, and why gets "unknown: REASON" (NULL: not wanted).
bool mysqldb_ask(struct mysqldb_session *s, const char *sql, int column, struct str *value,
                 struct str *why);

// What a statement that went well does to LOCK TABLES.
enum mysqldb_locks {
    MYSQLDB_LOCKS_KEPT,
    MYSQLDB_LOCKS_TAKEN,
    MYSQLDB_LOCKS_GONE,
    MYSQLDB_LOCKS_LEFT, // those in force must be let go by MYSQLDB_UNLOCK
};
#define MYSQLDB_UNLOCK "UNLOCK TABLES"
enum mysqldb_locks mysqldb_locks(enum db_kind kind, const char *sql);

// Acts on that: ROLLBACK lets go of locked tables too.
void mysqldb_note_locks(struct mysqldb_session *s, enum db_kind kind, const char *sql);

// Building the kept row: begin, one add or parse per column, end.
void mysqldb_row_begin(struct mysqldb_row *row, int n);
struct mysqldb_field *mysqldb_row_add(struct mysqldb_row *row, const char *name);
void mysqldb_row_text(struct mysqldb_row *row, struct mysqldb_field *field, const char *text,
                      size_t len);
// A value of the text protocol, not terminated (NULL: NULL). Numbers that do not fit stay text.
void mysqldb_row_parse(struct mysqldb_row *row, const char *name, enum db_type type,
                       const char *bytes, size_t len);
void mysqldb_row_end(struct mysqldb_row *row);
void mysqldb_row_release(struct mysqldb_row *row);

// DB_INT, DB_DOUBLE or DB_TEXT: how a column's values are given, alike in every protocol.
enum db_type mysqldb_type(enum enum_field_types type);

// ---- mysql_stmt.c

void mysqldb_handles_make(struct mysqldb_session *s);
void mysqldb_handles_release(struct mysqldb_session *s); // after mysql_close
enum db_class mysqldb_execute(struct db_session *base, const struct db_statement *statement,
                              const struct db_value *params, bool want_row,
                              struct db_result *result);

// ---- mysql_cancel.c

void mysqldb_cancel(struct db_session *base);
void mysqldb_cancel_init(struct mysqldb_session *s); // notes the socket of a new connection

// ---- slots of the other files

enum db_class mysqldb_claim(struct db_session *base, const char *name, struct db_result *result);
enum db_class mysqldb_create_table(struct db_session *base, const struct db_table *table,
                                   bool with_key, struct db_result *result);
enum db_class mysqldb_bulk_begin(struct db_session *base, const struct db_table *table,
                                 struct db_result *result);
enum db_class mysqldb_bulk_row(struct db_session *base, const struct db_value *values,
                               struct db_result *result);
enum db_class mysqldb_bulk_end(struct db_session *base, struct db_result *result);
enum db_class mysqldb_settle_table(struct db_session *base, const struct db_table *table,
                                   struct db_result *result);
// What LOAD DATA LOCAL may read on this connection: the session's chunk while it is being sent, and
// nothing else, never a file. session may be NULL.
void mysqldb_infile_install(MYSQL *mysql, struct mysqldb_session *session);

void mysqldb_bulk_release(struct mysqldb_session *s);

void mysqldb_describe(struct db_session *base, struct db_facts *facts);
void mysqldb_sample(struct db_session *base, struct kvs *counters);
void mysqldb_gauges(struct db_session *base, struct kvs *gauges);
