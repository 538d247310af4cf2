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
#include "volume/plan.h"
#include "volume/state.h"

// A saved state (volume/state.h) that the places are made for, or begin from.
struct places_state {
    bool builds;         // they are made anew, to be saved by places_save
    struct state *state; // else they begin from this one
    bool shares;         // by shared blocks
    bool verifies;       // and all files are compared with what was saved
    char *url;           // the target to be opened: builds: the one without further settings
    struct kvs facts;    // places_open adds state.restore, state.cache, ...
};

struct places_wish {
    const char *url; // the target as typed
    enum server_purpose purpose;
    enum server_tune tune; // of a server: target
    int64_t clients;
    const struct volumes_options *volumes; // NULL: none
    struct leftovers *leftovers;
    const volatile sig_atomic_t *stop; // ends the making; may be NULL
    struct places_state *state;        // NULL: none
    bool quiet;                        // says nothing on stdout of what it does
};

// Where data or log go.
struct place {
    struct volumes_one one;     // volume NULL: a path, or nothing
    struct plan_of_volume work; // of a state that is kept as files: its own directory
    const char *dir;            // of a state: where the files go; NULL: there is no such place
};

struct places {
    struct place data, log;
    struct leftovers *leftovers;
    struct server *server; // NULL: the target is somebody else's
};

// Does the target ask for any of this?
bool places_are_wanted(const char *url);

// The volumes that a target's data= and log= name, as text, the caller's to free; NULL: a path, or
// none. And whether it has a log= at all.
int places_find_volumes(const char *url, char **ret_data, char **ret_log, struct err *err);
bool places_has_log(const char *url);

// Checks the options of volumes also where there is nothing to make. On failure close it all the
// same; what a server's program said is on stderr then.
int places_open(struct places *places, const struct places_wish *wish, struct err *err);

// Stops the server, then takes the volumes down. failed: a server's log is kept. A line for that
// and for what could not be undone goes to stderr.
void places_close(struct places *places, bool failed);

// Stops the server in order and saves what lies on the places, which were opened for that
// (places_state.builds); the database must be closed. Only places_close may follow.
int places_save(struct places *places, struct state *state, struct err *err);

// The directory of a volume of data=, or of a state, that is no server's; NULL: there is none.
const char *places_data_dir(const struct places *places);

// Adds volume.data.*, volume.log.* and server.* (docs/environment.md).
void places_record(const struct places *places, struct kvs *environment);
