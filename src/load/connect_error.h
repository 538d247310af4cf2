// Words for a session that could not be opened, with what to do about it.
#pragma once

#include "base/err.h"
#include "db/db.h"

struct connect_failure {
    struct db_target *target;
    const struct db_result *result; // of the connection that failed
    int clients;                    // that the run wanted; 0: this was a single session
    int connected;                  // clients that were already there
    struct db_session *session;     // one of them, which may be asked for the setting; NULL: none
};

// Sets ERR_USAGE and returns -1. Where the server has too few connections its setting is named.
int connect_error(const struct connect_failure *failure, struct err *err);
