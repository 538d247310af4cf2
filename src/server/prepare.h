// Between a target as typed and a server that can be started: what is found, chosen and made.
#pragma once

#include <stdbool.h>

#include "server/account.h"
#include "server/kind.h"
#include "server/place.h"

// Everything of a server; the fields are used by prepare.c and server.c.
struct server {
    struct server_options options;
    pthread_mutex_t *registry_lock; // while it is restarted; else NULL
    struct server_wish wish;
    struct server_plan plan;
    struct account account;
    char *from, *from_log;       // absolute; NULL: no copy
    enum place_state state;      // of the data directory before
    bool kept;                   // the data directory stays
    bool is_finished;            // it was stopped, and its files are whole
    int run_id, data_id, log_id; // in the registry; 0 nothing to undo
    pid_t pid;                   // 0: not started
    uint64_t start_ticks;
    int process_id; // in the registry
    char *log_file; // of the server
    char *url;
    char *socket; // as clients are told
};

// Finds places, programs and the user; nothing is made yet.
int prepare_find(struct server *server, struct err *err);

// Makes the directories and files, then the data directory or its copy. words gets what a program
// said that failed.
int prepare_make(struct server *server, struct str *words, struct err *err);

void prepare_say(const struct server *server, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
