// Directories of a server: found, judged, made. Each is in the registry before it is made.
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "server/account.h"

struct server_kind;

// data= and log= as typed, to an absolute path: a bare path or dir:PATH. Whatever else gives a
// directory can be asked here.
int place_of_text(const char *key, const char *text, char out[PATH_MAX], struct err *err);

enum place_state {
    PLACE_NEW,      // to be made
    PLACE_EXISTING, // a data directory, or its log
};

// Where the data directory is in, or as, the directory given; the log likewise. ERR_USAGE when
// something else is there. The log is new exactly when the data directory is.
int place_find_data(const struct server_kind *kind, const char *dir, char out[PATH_MAX],
                    enum place_state *ret, struct err *err);
int place_find_log(const struct server_kind *kind, const char *dir, const char *data,
                   enum place_state state, char out[PATH_MAX], struct err *err);

// ERR_USAGE when a server runs on the data directory.
int place_check_idle(const struct server_kind *kind, const char *data, struct err *err);

// from=: the data directory there, and where its log is ("": inside). Only looks. ERR_USAGE: there
// is none, a server runs on it, or a part of it lies elsewhere, which a copy would share.
int place_find_source(const struct server_kind *kind, const char *text, char out[PATH_MAX],
                      char log[PATH_MAX], struct err *err);

// Makes a directory of mode 0700 that belongs to the account. Returns its id in the registry.
int place_make(struct leftovers *lo, const struct account *account, const char *path,
               struct err *err);

// The same with a name of its own, PREFIX and six letters, in the working directory; or, where the
// account cannot come there, in another directory of the same file system.
int place_make_temporary(struct leftovers *lo, const struct account *account, char out[PATH_MAX],
                         struct err *err);

// The same for sockets and settings: where the path is short enough for a socket of the given name.
int place_make_run(struct leftovers *lo, const struct account *account, const char *socket,
                   char out[PATH_MAX], struct err *err);
