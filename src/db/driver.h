// The driver contract. An engine is one `const struct db_driver` in the table of db/drivers.c,
// which is checked once at start for required slots; then slots are called unchecked, and only by
// db/db.c.
//
// A driver measures nothing, prints nothing, keeps no global state. Sessions are structs that begin
// with `struct db_session`; the layer allocates session_size zeroed bytes and fills the base.
#pragma once

#include "db/db.h"

struct db_driver;
struct db_wire_codec;

// Base of a target; a driver's own target struct has it as the first member.
struct db_target {
    const struct db_driver *driver;
    struct url url;
    struct db_open_options options; // trace_path is consumed by the layer
    char *display;                  // URL without password; the driver may set a better one in open
    unsigned caps;
    bool temporary;
    struct db_trace *trace; // NULL: no tracing
    uint64_t stream;        // sessions connected so far; changed by the layer atomically
};

struct db_session {
    struct db_target *target;
    int client;
    bool lost; // set by the layer from the class; a driver is not called on a lost session, except
               // for disconnect and cancel
    bool bulk; // between bulk_begin and bulk_end, or a bulk_row that failed
};

// Sets class, native code and message of a result, and returns the class (message cut, made one
// line).
enum db_class db_fail(struct db_result *result, enum db_class class, const char *native,
                      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

// Builds the simple protocol's text: pieces and parameters as text, without quoting (as pgbench
// does). out is cleared first and grows once. NULL parameters become the word NULL.
void db_statement_expand(const struct db_statement *statement, const struct db_value *params,
                         struct str *out);

// The same behind what out holds.
void db_statement_append(const struct db_statement *statement, const struct db_value *params,
                         struct str *out);

// Each slot: called from any thread but one at a time per session, may block, required unless
// "optional" is said. Results are preset to DB_OK and zero by the layer; a driver fills what
// differs.
struct db_driver {
    const char *name;           // "postgres": what --version and db_engine() say
    const char *const *schemes; // NULL-terminated, lower case: {"postgres", "postgresql", NULL}
    const char *const *loops;   // NULL-terminated: {"threads", NULL}, "ring" if wire is filled
    const char *params_help;    // one line for `prony run --help`-like texts
    enum db_placeholder placeholder;
    unsigned caps; // starting value; open may take away or add
    size_t target_size, session_size;
    bool takes_volume; // the parameter data= names the volume for what prony makes (data_dir)
    const char *const *shaping; // with it: parameters that change what is in the file for good

    // Check target->url and fill the driver's own fields. No connection is made.
    int (*open)(struct db_target *target, struct err *err);
    void (*close)(struct db_target *target); // optional; accepts a half-opened target

    enum db_class (*connect)(struct db_session *session, struct db_result *result);
    void (*disconnect)(struct db_session *session); // frees all; accepts a half-connected session
    enum db_class (*execute)(struct db_session *session, const struct db_statement *statement,
                             const struct db_value *params, bool want_row,
                             struct db_result *result);
    // Plain text; rows go to fn when it is given (every row), else the first is kept if want_row.
    enum db_class (*query)(struct db_session *session, const char *sql, bool want_row,
                           db_row_fn *fn, void *arg, struct db_result *result);
    const char *(*row_name)(struct db_session *session, int i);
    struct db_value (*row_value)(struct db_session *session, int i);
    void (*cancel)(struct db_session *session); // from another thread

    enum db_class (*claim)(struct db_session *session, const char *name,
                           struct db_result *result); // optional
    enum db_class (*hurry)(struct db_session *session, bool on,
                           struct db_result *result); // optional
    enum db_class (*create_table)(struct db_session *session, const struct db_table *table,
                                  bool with_key, struct db_result *result);
    // When a row fails the driver abandons the load by itself (bulk_end is not called then).
    enum db_class (*bulk_begin)(struct db_session *session, const struct db_table *table,
                                struct db_result *result);
    enum db_class (*bulk_row)(struct db_session *session, const struct db_value *values,
                              struct db_result *result);
    enum db_class (*bulk_end)(struct db_session *session, struct db_result *result);
    enum db_class (*settle_table)(struct db_session *session, const struct db_table *table,
                                  struct db_result *result); // optional

    // The layer has set every field to its "unknown" value, and the engine to the driver's name.
    void (*describe)(struct db_session *session, struct db_facts *facts);
    void (*describe_place)(struct db_session *session, struct db_facts *facts); // optional
    void (*sample)(struct db_session *session, struct kvs *counters);           // optional
    void (*gauges)(struct db_session *session, struct kvs *gauges);             // optional

    // Optional: the protocol for the ring, which then stands among the loops.
    const struct db_wire_codec *wire;
};

// The table (db/drivers.c), NULL-terminated, in the order shown to users.
extern const struct db_driver *const db_drivers[];
extern const struct db_driver db_driver_null;
extern const struct db_driver db_driver_sqlite;
extern const struct db_driver db_driver_postgres; // built with -Dpostgres
extern const struct db_driver db_driver_mysql;    // built with -Dmysql

// Aborts naming the driver and the slot when a required one is missing.
void db_check_drivers(void);

// CREATE TABLE text common to the engines: columns, optional primary key, then suffix ("" or
// " ENGINE=innodb"). For use by create_table slots.
void db_create_table_sql(const struct db_table *table, bool with_key, const char *suffix,
                         struct str *out);
