// From error numbers to classes. The numbers are those of the protocol, not of one product's
// header: MariaDB and MySQL share those below 1900 and went their own ways from there.
#include "db/mysql_errors.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"

struct row {
    unsigned code;
    enum db_class class;
};

// Ascending, for bsearch.
static const struct row rows[] = {
    {1005, DB_CONSTRAINT},    // cannot create table: mostly a bad foreign key
    {1020, DB_SERIALIZATION}, // record has changed since last read
    {1021, DB_FULL},          // disk full
    {1028, DB_CANCELLED},     // sort aborted
    {1036, DB_READ_ONLY},     // table is read only
    {1037, DB_FULL},          // out of memory
    {1038, DB_FULL},          // out of sort memory
    {1040, DB_TOO_MANY},      // too many connections
    {1041, DB_FULL},          // out of resources
    {1042, DB_DENIED},        // no name for your address
    {1044, DB_DENIED},        // user may not use the database
    {1045, DB_DENIED},        // wrong user or password
    {1046, DB_NO_DATABASE},   // no database selected
    {1048, DB_CONSTRAINT},    // column cannot be null
    {1049, DB_NO_DATABASE},   // unknown database
    {1051, DB_UNDEFINED},     // unknown table (drop)
    {1053, DB_LOST},          // server shutdown in progress
    {1054, DB_UNDEFINED},     // unknown column
    {1062, DB_CONSTRAINT},    // duplicate entry
    {1064, DB_SYNTAX},        // parse error
    {1065, DB_SYNTAX},        // query was empty
    {1079, DB_LOST},          // shutdown complete
    {1080, DB_LOST},          // forcing close of the thread
    {1091, DB_UNDEFINED},     // cannot drop: no such key or column
    {1095, DB_DENIED},        // not owner of the thread
    {1099, DB_SYNTAX},        // table was locked with READ
    {1100, DB_SYNTAX},        // table was not locked with LOCK TABLES
    {1109, DB_UNDEFINED},     // unknown table in a list
    {1114, DB_FULL},          // table is full
    {1115, DB_UNDEFINED},     // unknown character set
    {1128, DB_UNDEFINED},     // function is not defined
    {1129, DB_DENIED},        // host is blocked because of many errors
    {1130, DB_DENIED},        // host may not connect
    {1131, DB_DENIED},        // anonymous users may not
    {1135, DB_TOO_MANY},      // cannot create a new thread
    {1136, DB_SYNTAX},        // column count does not match value count
    {1142, DB_DENIED},        // command denied for table
    {1143, DB_DENIED},        // command denied for column
    {1146, DB_UNDEFINED},     // table does not exist
    {1147, DB_DENIED},        // no such grant on table
    {1149, DB_SYNTAX},        // syntax error
    {1152, DB_LOST},          // aborted connection
    {1158, DB_LOST},          // network: cannot read
    {1159, DB_LOST},          // read timeout
    {1160, DB_LOST},          // cannot write
    {1161, DB_LOST},          // write timeout
    {1169, DB_CONSTRAINT},    // unique constraint
    {1176, DB_UNDEFINED},     // key does not exist in table
    {1184, DB_LOST},          // new connection aborted
    {1193, DB_UNDEFINED},     // unknown system variable
    {1197, DB_FULL},          // transaction needs more than the binary log's cache
    {1203, DB_TOO_MANY},      // max_user_connections
    {1205, DB_BUSY},          // lock wait timeout: the statement alone was rolled back
    {1206, DB_FULL},          // the lock table is full
    {1213, DB_DEADLOCK},      // found when trying to get a lock
    {1216, DB_CONSTRAINT},    // foreign key: no parent row
    {1217, DB_CONSTRAINT},    // foreign key: child rows
    {1223, DB_READ_ONLY},     // conflicting read lock (FLUSH TABLES WITH READ LOCK)
    {1226, DB_TOO_MANY},      // account exceeded a resource limit
    {1227, DB_DENIED},        // a privilege is needed
    {1231, DB_SYNTAX},        // variable cannot be set to this value
    {1235, DB_SYNTAX},        // not supported yet
    {1251, DB_DENIED},        // client does not support the authentication protocol
    {1263, DB_CONSTRAINT},    // column set to default: NULL in a NOT NULL column
    {1264, DB_CONSTRAINT},    // out of range value
    {1265, DB_CONSTRAINT},    // data truncated
    {1275, DB_DENIED},        // server wants secure authentication
    {1286, DB_UNDEFINED},     // unknown storage engine
    {1292, DB_CONSTRAINT},    // incorrect value for the type
    {1305, DB_UNDEFINED},     // function or procedure does not exist
    {1317, DB_CANCELLED},     // query execution was interrupted
    {1318, DB_SYNTAX},        // wrong number of arguments
    {1364, DB_CONSTRAINT},    // field has no default value
    {1366, DB_CONSTRAINT},    // incorrect value for column
    {1370, DB_DENIED},        // routine denied
    {1396, DB_DENIED},        // account operation failed
    {1406, DB_CONSTRAINT},    // data too long
    {1451, DB_CONSTRAINT},    // foreign key: cannot delete a parent row
    {1452, DB_CONSTRAINT},    // foreign key: cannot add a child row
    {1461, DB_FULL},          // max_prepared_stmt_count
    {1557, DB_CONSTRAINT},    // foreign key: would lead to a duplicate entry
    {1568, DB_SYNTAX},        // transaction characteristics inside a transaction
    {1586, DB_CONSTRAINT},    // duplicate entry for a named key
    {1613, DB_BUSY},          // XA: rolled back because of a timeout
    {1614, DB_DEADLOCK},      // XA: rolled back because of a deadlock
    {1637, DB_FULL},          // too many concurrent transactions
    {1690, DB_CONSTRAINT},    // value out of range in an expression
    {1698, DB_DENIED},        // access denied, no password used
    {1748, DB_READ_ONLY},     // partitions locked against change
    {1761, DB_CONSTRAINT},    // foreign key: duplicate key
    {1762, DB_CONSTRAINT},    // the same, names unknown
    {1792, DB_READ_ONLY},     // statement in a READ ONLY transaction
    {1820, DB_DENIED},        // the password must be changed first
    {1836, DB_READ_ONLY},     // running in read-only mode
    {1862, DB_DENIED},        // password expired
    {1873, DB_DENIED},        // access denied, change of user
    {1874, DB_READ_ONLY},     // InnoDB is in read only mode
    {1927, DB_LOST},          // MariaDB: connection was killed
    {1969, DB_CANCELLED},     // MariaDB: max_statement_time exceeded
    {2002, DB_UNAVAILABLE},   // client: nobody at the UNIX socket
    {2003, DB_UNAVAILABLE},   // client: nobody at host and port
    {2005, DB_UNAVAILABLE},   // client: unknown host, which a name server may know later
    {2006, DB_LOST},          // client: server has gone away
    {2008, DB_FULL},          // client: out of memory
    {2012, DB_LOST},          // client: error in the handshake
    {2013, DB_LOST},          // client: lost connection during the query
    {2014, DB_LOST},          // client: commands out of sync: the session cannot be used on
    {2018, DB_LOST},          // client: cannot read
    {2026, DB_LOST},          // client: TLS
    {2027, DB_LOST},          // client: malformed packet: the stream is out of step
    {2049, DB_DENIED},        // client: refuses the old authentication
    {2054, DB_DENIED},        // client: an authentication method that the library does not have
    {2055, DB_LOST},          // client: lost connection, with the system's reason
    {2058, DB_DENIED},        // client: authentication plugin not found
    {2059, DB_DENIED},        // client: authentication plugin cannot be loaded
    {2061, DB_DENIED},        // client: authentication plugin reported an error
    {3024, DB_CANCELLED},     // MySQL: max_execution_time exceeded
    {3032, DB_LOST},          // MySQL: server offline mode
    {3058, DB_DEADLOCK},      // MySQL: deadlock of user locks
    {3101, DB_SERIALIZATION}, // MySQL: group replication rolled the transaction back
    {3118, DB_DENIED},        // MySQL: account is locked
    {3168, DB_UNAVAILABLE},   // MySQL: server is not configured properly yet
    {3169, DB_LOST},          // MySQL: session was killed
    {3572, DB_BUSY},          // MySQL: NOWAIT and the lock is not free
    {3819, DB_CONSTRAINT},    // MySQL: check constraint
    {3948, DB_DENIED},        // MySQL: LOAD DATA LOCAL is off
    {4025, DB_CONSTRAINT},    // MariaDB: check constraint
    {4031, DB_LOST},          // MySQL: disconnected because of inactivity
    {4150, DB_DENIED},        // MariaDB: access denied
    {4151, DB_DENIED},        // MariaDB: account is locked
    {4166, DB_DENIED},        // MariaDB: LOAD DATA LOCAL is off
};

static int compare_code(const void *key, const void *member)
{
    unsigned code = *(const unsigned *)key;
    const struct row *row = member;

    return code < row->code ? -1 : code > row->code;
}

// The operating system's "no space" and "quota exceeded", as servers put them into the text of
// whatever they were doing.
static bool says_full(const char *message)
{
    static const char *const signs[] = {
        "rror 28 ",      "rrcode: 28 ", "rrcode: 28)", "rrno: 28 ",
        "No space left", "rror 122 ",   "rrcode: 122", "Disk quota exceeded",
    };

    for (size_t i = 0; i < ARR_LEN(signs); i++)
        if (strstr(message, signs[i]))
            return true;
    return false;
}

// 1290 names the server option that stands in the way.
static bool says_read_only(const char *message)
{
    return strstr(message, "read-only") || strstr(message, "read_only") ||
           strstr(message, "READ ONLY");
}

static enum db_class class_of_sqlstate(const char *sqlstate)
{
    static const struct {
        const char *prefix;
        enum db_class class;
    } states[] = {
        {"08S01", DB_OTHER}, // MySQL's for many troubles that leave the session as it is
        {"08", DB_LOST},        {"21", DB_SYNTAX},        {"22", DB_CONSTRAINT},
        {"23", DB_CONSTRAINT},  {"25006", DB_READ_ONLY},  {"28", DB_DENIED},
        {"3D", DB_NO_DATABASE}, {"40", DB_SERIALIZATION}, {"42S", DB_UNDEFINED},
        {"53", DB_FULL},        {"70100", DB_CANCELLED},
    };

    for (size_t i = 0; i < ARR_LEN(states); i++)
        if (strncmp(sqlstate, states[i].prefix, strlen(states[i].prefix)) == 0)
            return states[i].class;
    return DB_OTHER;
}

static enum db_class class_of_code(unsigned code, const char *sqlstate, const char *message)
{
    const struct row *row = bsearch(&code, rows, ARR_LEN(rows), sizeof(rows[0]), compare_code);

    if (code == 1290)
        return says_read_only(message) ? DB_READ_ONLY : DB_DENIED;
    if (says_full(message))
        return DB_FULL;
    return row ? row->class : class_of_sqlstate(sqlstate);
}

enum db_class mysqldb_class(unsigned code, const char *sqlstate, const char *message,
                            bool connecting)
{
    assert(code != 0);
    enum db_class class = class_of_code(code, sqlstate ? sqlstate : "", message ? message : "");

    if (!connecting)
        // Between statements these are the same trouble: whoever was there is there no more.
        return class == DB_UNAVAILABLE ? DB_LOST : class;
    return class == DB_LOST ? DB_UNAVAILABLE : class;
}

bool mysqldb_is_stale_statement(unsigned code)
{
    switch (code) {
    case 1210: // wrong arguments to execute
    case 1243: // unknown statement handle: a proxy sent us to another server
    case 1615: // needs to be prepared anew
        return true;
    }
    // The library's own troubles: its view of the statement is off. The second range is MariaDB's.
    return (code >= 2000 && code < 3000) || (code >= 5000 && code < 5100);
}

bool mysqldb_is_unpreparable(unsigned code)
{
    return code == 1295     // not supported in the prepared statement protocol yet
           || code == 1047  // unknown command: proxies that do not pass it on
           || code == 1235; // not supported yet
}
