// The contract of a kind of server: facts and pure functions that plan, so that what would be run
// and written can be tested word for word without the server. Within this folder only.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/str.h"
#include "server/server.h"

// The words of a command, or other texts; ends with NULL.
struct words {
    char **items;
    size_t n_items, cap_items;
};
void words_add(struct words *words, const char *text);
void words_addf(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void words_release(struct words *words);

// Splits at blanks; quotes ("" and '') keep blanks together and are taken away. ERR_USAGE: a quote
// is not closed.
int words_split(struct words *words, const char *text, struct err *err);

// Several commands, to be run one after the other.
struct commands {
    struct words *items;
    size_t n_items, cap_items;
};
struct words *commands_add(struct commands *commands, const char *program);
// A plain copy of all that is in a directory, into one that is there.
void commands_add_copy(struct commands *commands, const char *from, const char *to);
void commands_release(struct commands *commands);

#define SERVER_PROGRAMS_MAX 2
#define SOCKET_PATH_MAX     107 // sun_path without its end

// Everything that decides what is run and written.
struct server_plan {
    const struct server_kind *kind;
    const struct server_wish *wish;
    char *programs[SERVER_PROGRAMS_MAX]; // absolute, in the order of the kind's
    char version[128];                   // as the first of them says
    char *data;                          // the data directory
    char *log;                           // the log directory; NULL: inside the data directory
    char *run;                           // private directory: socket, settings, the server's log
    bool is_copy;                        // of another server's data
    struct kvs settings;                 // to be set: those proposed, then the user's
    size_t n_proposed;
};

// What --tune goes by.
struct tune_input {
    int64_t ram_bytes;
    int64_t cpus;
    int64_t clients;
    int64_t log_free_bytes; // where the log lies; -1 unknown
};

enum { SIGNAL_FAST, SIGNAL_IMMEDIATE, SIGNAL_KILL, SIGNAL_COUNT };

struct server_kind {
    const char *name;     // in targets
    const char *title;    // for people
    const char *package;  // Debian's, that has the programs
    const char *account;  // user that the package makes
    const char *role;     // who may do everything in a new data directory
    const char *database; // where workloads go when no other is named
    const char *mark;     // a file that every data directory of this kind has
    const char *socket;   // its name in the run directory
    const char *settings_file;
    // Program names, each with alternatives: "mariadbd|mysqld". The server comes first.
    const char *programs[SERVER_PROGRAMS_MAX];
    const char *places; // where they may be besides PATH; "*" stands for a version; NULL
    const char *version_has, *version_lacks; // tells kinds apart that share names; NULL
    const char *const *own;                  // settings that prony sets itself
    const char *const *shaping;              // settings that change what is in the files for good
    int signals[SIGNAL_COUNT];
    const char *fault;     // what a line of the log holds that says why the server does not start
    int max_connections;   // by default
    bool creates_database; // a new data directory has no database for workloads yet
    bool names_directory;  // its clients are told the directory of the socket

    // The command that makes the data directory, which exists and is empty, as does the log's.
    void (*plan_make)(const struct server_plan *plan, struct words *argv);
    // The command that is the server.
    void (*plan_start)(const struct server_plan *plan, struct words *argv);
    void (*settings_text)(const struct server_plan *plan, struct str *out);
    const char *second_file, *second_text; // beside the settings file; NULL: none
    // How db_open reaches it; without a database when that may not exist yet.
    void (*url)(const struct server_plan *plan, bool with_database, struct str *out);
    // Fills settings; never fails.
    void (*tune)(const struct tune_input *input, struct kvs *settings);

    // The process that runs on a data directory; 0: none; -1: some, it is not known which.
    pid_t (*runs_on)(const char *data);
    // Whether the server, a process on a data directory, is likely to take connections; NULL: that
    // is found out by connecting.
    bool (*is_up)(const char *data, pid_t pid);
    // Where an existing data directory has its log when that is elsewhere, as far as the directory
    // itself tells; "" with the data; false: it must be told with log=.
    bool (*log_of)(const char *data, char out[PATH_MAX]);
    // Whether a directory is the log of a data directory that does not tell; NULL: all tell.
    bool (*is_log)(const char *dir);
    // The major version that must run an existing data directory ("15"); "" any.
    void (*version_of)(const char *data, char *out, size_t size);
    // A data directory was moved together with its log: it is told where that is now. NULL: the
    // command that starts the server says so.
    int (*relink)(const struct server_plan *plan, struct err *err);
    // The commands that make the data directory, which exists and is empty, as does the log's, a
    // copy of another, without what belongs to the other server's process. log_from: where its log
    // is, as log_of told.
    void (*plan_copy)(const struct server_plan *plan, const char *from, const char *log_from,
                      struct commands *commands);
};

// kinds.c: the table, NULL-terminated.
extern const struct server_kind *const server_kinds[];
extern const struct server_kind server_kind_postgres, server_kind_mariadb, server_kind_mysql;

// Two names of one setting: '-' and '_' are the same, and so are capitals and small letters.
bool setting_is_named(const char *name, const char *other);
bool settings_have(const struct kvs *settings, const char *name);
