// Programs of a server: run to their end, or started. What they say goes to a file.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "base/str.h"
#include "server/account.h"
#include "server/kind.h"

struct child {
    struct leftovers *leftovers;
    pthread_mutex_t *registry_lock; // around calls on leftovers; NULL: no other thread is there
    const struct account *account;  // NULL: as prony itself
    const char *dir;                // working directory, and HOME
    const char *log_path;           // appended to
    int signal_number;              // that stops it when prony cannot
    // filled by child_start
    pid_t pid;
    uint64_t start_ticks;
    int id; // in the registry
};

// Starts the program; it is in the registry before it begins.
int child_start(struct child *child, const struct words *argv, struct err *err);

// Starts it and waits for its end. *stop > 0 (stop may be NULL) kills it and all it started. 0 when
// it ended with status 0; *ret_ran tells whether a failure is its own.
int child_run(struct child *child, const struct words *argv, const volatile sig_atomic_t *stop,
              bool *ret_ran, struct err *err);

// What a file holds, its last `most` bytes, from the beginning of a line.
void child_read_log(const char *path, size_t most, struct str *out);

// The line that says what went wrong, without time stamps: the first with the mark of the kind, or
// the first that speaks of an error, or the last. "" where there is none.
void child_fault(const struct server_kind *kind, const char *log, struct str *out);
