// What the error numbers of MySQL, MariaDB and their client library mean to the core. Pure
// functions, no connection.
#pragma once

#include <stdbool.h>

#include "db/db.h"

// The class of a failed request. code is mysql_errno (never 0); sqlstate and message may be NULL
// and decide where the number alone does not: a number prony does not know goes by its SQLSTATE, a
// full disk hides in the text of several numbers. While connecting, a connection that broke means
// that nobody answers (DB_UNAVAILABLE).
enum db_class mysqldb_class(unsigned code, const char *sqlstate, const char *message,
                            bool connecting);

// True when the prepared statement the error came from is of no more use, though the session is: it
// must be prepared anew before the next try.
bool mysqldb_is_stale_statement(unsigned code);

// True when the server cannot prepare this kind of statement but may run it as plain text.
bool mysqldb_is_unpreparable(unsigned code);
