// Servers that prony itself makes, starts and stops: the target
//
//     server:KIND[?data=DIR&log=DIR&from=DIR&bin=DIR&...&SETTING=VALUE...]
//
// wherever a URL is accepted. KIND is a row of the table in kinds.c: postgres, mariadb, mysql. This
// header is the manual for the floors above; server/kind.h is the contract of a kind.
//
//   data=, log=     "here is the directory": a bare path or dir:PATH, or a volume that the caller
//                   has brought up (server_options.data_dir); nothing: a private temporary
//                   directory on the file system of the working directory, and the log with the
//                   data. A directory that does not exist is made and is then the data directory
//                   itself; in one that exists (a mount point, say) the directory KIND (KIND-log)
//                   is made or found. An existing data directory is started as it is.
//   from=DIR        start from a copy of this data directory, which is only read; not while a
//                   server runs on it
//   bin=DIR         where the programs are (PostgreSQL: a version will do), else what is installed
//   initdb={...}    more arguments for the program that makes the data directory
//   stop=           fast, immediate or kill; not given: fast where the data stays, else immediate
//   user=           who runs it, when prony is root; else the owner of an existing data directory,
//                   or the user that the package makes. Without root: always oneself
//   role=, database=, engine=   whom and what to connect to; storage engine of MySQL's tables
//   wait=DURATION   how long it may take to be ready (5m: recovery takes what it takes)
//   anything else   a setting of the server, which judges it
//
// The server listens on a UNIX socket in a directory of mode 0700, and nowhere else; there are no
// passwords. It runs in a session of its own, by its own user, and everything is in the registry of
// leftovers before it is done: at the end, on error and on signals it is undone in reverse order by
// server_close or leftovers_close, after kill -9 by the guard. A data directory that was named with
// data= and made here is undone too until server_keep says that it is worth keeping.
//
// Main thread only.
#pragma once

#include <signal.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/leftovers.h"
#include "base/str.h"

struct server_kind;
struct server;

enum server_stop { SERVER_STOP_UNSET, SERVER_STOP_FAST, SERVER_STOP_IMMEDIATE, SERVER_STOP_KILL };

// --tune: settings proposed by what the machine has; those in the target win.
enum server_tune { SERVER_TUNE_NONE, SERVER_TUNE_OLTP };

// The kinds, NULL-terminated, for help and near misses.
const char *const *server_kind_names(void);

// A target as typed; texts that were not given are NULL.
struct server_wish {
    const struct server_kind *kind;
    char *display; // the target as shown and stored
    char *data, *log, *from, *bin, *user, *role, *database, *engine;
    char **make_args; // initdb=, split into words; ends with NULL
    size_t n_make_args, cap_make_args;
    enum server_stop stop;
    int64_t wait_ns;
    struct kvs settings; // in the order typed
};

// Whether the text is a target of this folder: it begins with "server:".
bool server_is_target(const char *url);

// Fails with ERR_USAGE; nothing outside the text is looked at. Release it either way.
int server_wish_parse(struct server_wish *wish, const char *url, struct err *err);
void server_wish_release(struct server_wish *wish);

enum server_purpose {
    SERVER_FOR_RUN,   // may make what it needs, and take it away again
    SERVER_FOR_INIT,  // makes what shall stay: data= must be given
    SERVER_FOR_CHECK, // only looks: data= or from= must be there
};

struct server_options {
    struct leftovers *leftovers;
    enum server_purpose purpose;
    enum server_tune tune;
    int64_t clients;                   // sessions that will be wanted
    const char *data_dir, *log_dir;    // where the data and the log go, whatever data= and log= say
                                       // (the volumes of these); NULL: what they say
    bool data_goes;                    // with the volume, after server_close
    bool is_restored;                  // a state is there (server_shape), perhaps at other places
    const volatile sig_atomic_t *stop; // counted up by signals: > 0 ends what goes on; may be NULL
    void (*say)(void *arg, const char *line); // what is being done, a line each; NULL: nobody asks
    void *say_arg;
};

// What shapes the data directory that such a target makes, each a line of a state's key: kind,
// version, initdb=, role=, ..., and of the settings those that are cut into the files. plain gets
// the target of a server that makes the same and has no other setting; it is stopped in order.
// ERR_USAGE for targets whose data is there already.
int server_shape(const char *url, struct kvs *shape, struct str *plain, struct err *err);

// Makes what is missing, starts the server and waits until it takes connections. On failure
// nothing is left and err says why in one line; words gets what the program said, whole, when that
// is more than err holds. ERR_ABSENT: it is not installed, with the package that has it. ERR_USAGE:
// what was typed cannot work, also when the server refuses a setting.
int server_start(struct server **ret, const char *url, const struct server_options *options,
                 struct str *words, struct err *err);

const char *server_url(const struct server *server);     // for db_open
const char *server_display(const struct server *server); // the target as typed
bool server_is_temporary(const struct server *server);   // its data goes with it
bool server_is_alive(const struct server *server);

// What a client is told to reach it: the socket's path, or its directory where clients name that
// (PostgreSQL); and its data directory. Both last as long as the server.
const char *server_socket(const struct server *server);
const char *server_data(const struct server *server);
int64_t server_pid(const struct server *server); // its first process; 0: it does not run

// The data directory that was made here holds what its user wants: it stays from now on.
void server_keep(struct server *server);

// Stops it in order (fast) and starts it again on the same socket.
// The lock is held for each call on the registry, which other threads then may use too.
int server_restart(struct server *server, pthread_mutex_t *registry_lock, struct err *err);

// Stops it in order, so that its files can be copied as they are: an error unless it ended by
// itself within the time that takes.
int server_finish(struct server *server, struct err *err);

// Adds server.kind, server.program, server.setting.NAME, ... and the end of the server's log
// (docs/environment.md). Reads nothing but that log.
void server_record(const struct server *server, struct kvs *environment);

// Stops the server as stop= says and undoes what was made for it. If it died by itself, or failed
// is set, its log is first copied to the working directory (not an empty one); a line about that
// and one for what could not be undone is appended to report. NULL is allowed.
void server_close(struct server *server, bool failed, struct str *report);
