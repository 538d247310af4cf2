// Inside of the sqlite driver: what its files share.
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "db/driver.h"

enum sqlite_counter {
    SQLITE_CACHE_HITS,
    SQLITE_BLOCKS_READ, // pages the cache lacked
    SQLITE_BLOCKS_WRITTEN,
    SQLITE_CACHE_SPILLS,
    SQLITE_LOCK_WAITS, // waits for a lock in our busy handler, and their time
    SQLITE_LOCK_WAIT_US,
    SQLITE_COUNTERS
};

#define SQLITE_COLUMNS_MAX 64 // of a table that is loaded
#define SQLITE_FILES       4  // the database, and what SQLite may put beside it

struct sqlite_target {
    struct db_target base;
    char *path;         // absolute: neither a change of directory nor "file:..." alters its meaning
    char *vfs;          // NULL: the standard one
    bool read_only;     // mode=ro
    atomic_bool made;   // by a session; goes again if it stays empty
    bool library_busy;  // busy_handler=library: for comparison
    int64_t busy_ns;    // busy_timeout: the longest wait for one lock
    struct kvs pragmas; // in the order in which they must be set
    int leftovers[SQLITE_FILES]; // ids of a temporary database's files
    pthread_mutex_t lock;        // for what follows
    struct sqlite_session *sessions;
    uint64_t retired[SQLITE_COUNTERS]; // of sessions that are gone
};

// State of our busy handler, which runs inside the session's calls.
struct sqlite_busy {
    const struct clock *clock;
    struct rng rng;
    int64_t limit_ns;
    int64_t begin_ns;  // of the present wait
    int64_t waited_ns; // since it was last set to 0
    uint64_t waits, waited_total_ns;
    atomic_bool cancelled; // from another thread
};

// The first row of the last answer, copied: SQLite's own memory is gone with the next step.
struct sqlite_row {
    int n, cap;
    struct db_value *values;
    size_t *names, *texts; // offsets into bytes
    struct str bytes;
};

struct sqlite_session {
    struct db_session base;
    struct sqlite_session *next, **link; // under the target's lock
    sqlite3 *db;
    sqlite3_stmt **handles; // by statement index
    int n_handles;
    struct str text; // simple protocol
    struct sqlite_row row;
    struct sqlite_busy busy;
    sqlite3_stmt *bulk; // INSERT of the load in progress
    int bulk_columns;
    uint32_t bulk_widths[SQLITE_COLUMNS_MAX]; // to which text is padded; 0: it is not
    int64_t bulk_rows;
    int calls; // since the counters were last published
    _Atomic uint64_t counters[SQLITE_COUNTERS];
};

// sqlite_open.c: the URL, the file, and what can be checked without a session.
extern const char sqlite_params_help[];
int sqlite_target_open(struct db_target *base, struct err *err);
void sqlite_target_close(struct db_target *base);
// Opens the session's connection with its busy handler and pragmas; makes the file first where that
// is allowed. On failure session->db may still be a handle, which tells the code.
int sqlite_connect_file(struct sqlite_session *session, struct err *err);

// sqlite_pragma.c. SQLite ignores misspelt names and most bad values silently; these do not.
// Whether this library knows the setting; own are further names to suggest. ERR_USAGE else.
int sqlite_pragma_check(const char *name, const char *const *own, struct err *err);
// Order: what can only be set before anything is written comes first.
bool sqlite_pragma_is_first(const char *name);
// Sets what differs, reads it back and compares by meaning.
int sqlite_pragma_set(sqlite3 *db, const char *name, const char *value, struct err *err);
// The value as text, or NULL when SQLite gives none. The caller frees it.
char *sqlite_pragma_get(sqlite3 *db, const char *name);
// Whether two spellings of a value mean the same ("full" and "2" for synchronous).
bool sqlite_pragma_is_same(const char *name, const char *a, const char *b);

// sqlite_busy.c
void sqlite_busy_init(struct sqlite_busy *busy, const struct sqlite_target *target, int client,
                      uint64_t nth);
int sqlite_busy_handler(void *busy, int count); // for sqlite3_busy_handler

// sqlite_error.c: class, code and text of the connection's last error; rc is the extended code.
enum db_class sqlite_class(int rc, int system_errno, const char *message);
enum db_class sqlite_fail(struct sqlite_session *session, int rc, struct db_result *result);

// sqlite.c: steps a statement to its end and resets it.
enum db_class sqlite_run(struct sqlite_session *session, sqlite3_stmt *stmt, bool want_row,
                         db_row_fn *fn, void *arg, struct db_result *result);
enum db_class sqlite_query(struct db_session *base, const char *sql, bool want_row, db_row_fn *fn,
                           void *arg, struct db_result *result);
int sqlite_bind(sqlite3_stmt *stmt, const struct db_value *values, int n);

// sqlite_load.c
enum db_class sqlite_create_table(struct db_session *base, const struct db_table *table,
                                  bool with_key, struct db_result *result);
enum db_class sqlite_bulk_begin(struct db_session *base, const struct db_table *table,
                                struct db_result *result);
enum db_class sqlite_bulk_row(struct db_session *base, const struct db_value *values,
                              struct db_result *result);
enum db_class sqlite_bulk_end(struct db_session *base, struct db_result *result);
enum db_class sqlite_settle_table(struct db_session *base, const struct db_table *table,
                                  struct db_result *result);

// sqlite_facts.c
void sqlite_describe(struct db_session *base, struct db_facts *facts);
void sqlite_sample(struct db_session *base, struct kvs *counters);
void sqlite_publish(struct sqlite_session *session); // own counters, for sample in any session
