// What a target asks prony to make before anyone connects: the volumes of data= and log=, and the
// server of a server: target. Up before the database is opened, down after it is closed.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "base/str.h"
#include "cmd/volumes.h"
#include "server/server.h"

struct places_wish {
    const char *url; // the target as typed
    enum server_purpose purpose;
    enum server_tune tune; // of a server: target
    int64_t clients;
    const struct volumes_options *volumes; // NULL: none
    struct leftovers *leftovers;
    const volatile sig_atomic_t *stop; // ends the making; may be NULL
    bool quiet;                        // says nothing on stdout of what it does
};

struct places {
    struct volumes_one data, log; // volume NULL: a path, or nothing
    struct server *server;        // NULL: the target is somebody else's
};

// Does the target ask for any of this?
bool places_are_wanted(const char *url);

// Checks the options of volumes also where there is nothing to make. On failure close it all the
// same; what a server's program said is on stderr then.
int places_open(struct places *places, const struct places_wish *wish, struct err *err);

// Stops the server, then takes the volumes down. failed: a server's log is kept. A line for that
// and for what could not be undone goes to stderr.
void places_close(struct places *places, bool failed);

// The directory of a volume of data= that is no server's; NULL: there is none.
const char *places_data_dir(const struct places *places);

// Adds volume.data.*, volume.log.* and server.* (docs/environment.md).
void places_record(const struct places *places, struct kvs *environment);
