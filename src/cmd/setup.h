// What run, init and check do before they begin: the target opened, looked at, and every check that
// can be made before a load is made, so that a wrong set-up is told in one line and nothing is
// started.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "base/opt.h"
#include "cmd/places.h"
#include "db/db.h"
#include "load/fill.h"
#include "volume/host.h"
#include "workload/workload.h"

struct setup_wish {
    const char *url;
    const char *workload; // built-in name; NULL when files are given
    char *const *files;   // FILE[@WEIGHT]
    int n_files;
    const struct kvs *defines; // -D
    int64_t scale;             // asked for; 0: what is there, or the default for new tables
    int64_t clients;
    enum db_protocol protocol;
    uint64_t seed;
    const char *trace_path;
    enum server_purpose purpose;           // init: a missing file is made, missing tables are fine
    const struct volumes_options *volumes; // NULL: none
    enum server_tune tune;                 // of a server: target
    const volatile sig_atomic_t *stop;     // ends the making of a volume or a server; may be NULL
    const struct opt_list *host;           // --host-setting; NULL: none
    struct places_state *state;            // the tables are in it, or are made for it; NULL: none
    bool quiet;                            // says nothing on stdout of what it does
};

struct setup {
    struct leftovers *leftovers;
    struct host_settings *host; // of this machine, while it lasts; NULL: none
    struct places places;       // volumes and server of our own
    struct db_target *target;
    struct db_session *session;             // init: the one that looked goes on to fill; else NULL
    const struct workload_builtin *builtin; // NULL for files
    struct workload *workload;
    struct db_facts facts;
    struct fill_look look; // of the built-in's tables
    int64_t scale;         // of the tables, or to be used for new ones
    bool writes;           // some statement of the workload may change data
    bool fills;            // a run makes the tables itself: the database is prony's own
    bool failed;           // set by the command: a server's log is kept
};

// Starts the server where the target is one, opens, compiles, connects once, describes and looks.
// On failure everything is released and err says why; what a server's program said is on stderr
// then.
int setup_open(struct setup *setup, const struct setup_wish *wish, struct err *err);

// Checks for a run: tables there, of the scale asked, connections enough, not read-only. Only
// looks.
int setup_check_run(const struct setup *setup, const struct setup_wish *wish, struct err *err);

// Is there room for tables of setup->scale where the data lies? Where that is not known, there is.
int setup_check_room(const struct setup *setup, struct err *err);

// "  data   /path: ext4 on sda (...)" on stdout; nothing where the path is not known ("").
void setup_print_place(const char *what, const char *path);

// Fills what was opened for a state (places_state.builds) by the caller's fill_tables; this closes
// the database, stops the server in order and saves what is there. Only setup_close may follow.
int setup_save(struct setup *setup, struct state *state, struct err *err);

// Closes all and stops the server. Where its log is kept, and what could not be undone, is told on
// stderr.
void setup_close(struct setup *setup);

// A connection failure in words with the remedy for its class. Returns -1.
int setup_connect_error(struct db_target *target, const struct db_result *result, struct err *err);
