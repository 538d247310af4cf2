// What PostgreSQL's error codes mean to the core. Pure functions, no connection.
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "db/db.h"

#define SQLSTATE_MAX 6 // five characters and the terminator

// The class of a failed statement. An unknown or empty code is DB_OTHER.
enum db_class postgres_class(const char *sqlstate);

// The class of a failed attempt to connect. message is libpq's text made with
// PQERRORS_VERBOSE, in which a server's refusal carries its SQLSTATE: that decides, whatever the
// language of the text. Without one nobody answered (DB_UNAVAILABLE), or libpq itself refused the
// server. sqlstate is filled, "" when there was none.
enum db_class postgres_connect_class(const char *message, bool needs_password,
                                     char sqlstate[SQLSTATE_MAX]);

// Appends libpq's message for people: severity, code, source location and hints that libpq adds are
// left out; the lines of several addresses are joined.
void postgres_add_connect_text(struct str *out, const char *message);
