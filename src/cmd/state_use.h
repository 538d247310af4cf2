// A run that begins from a saved state (--state): the state is found by what shapes the data, or
// made once and saved, and then restored, so that the first run begins as all later ones do.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/places.h"
#include "cmd/setup.h"

enum state_restore { STATE_RESTORE_COPY, STATE_RESTORE_FAST };

struct state_options {
    char *name; // "auto": by what shapes the data; NULL: no state
    char *dir;  // NULL: state_default_dir
    int restore;
    bool verify;
};
extern const char *const state_restores[]; // by enum state_restore

// Their rows; at is the offset of a struct state_options in the command's.
// clang-format off
#define STATE_ROWS(at)                                                                          \
    {"state", 0, OPT_TEXT, (at) + offsetof(struct state_options, name), .arg = "NAME",          \
     .help = "begin from this saved state, made when missing; auto names it"},                  \
    {"state-dir", 0, OPT_TEXT, (at) + offsetof(struct state_options, dir), .arg = "DIR",        \
     .unrecorded = true, .help = "where states are, else prony-states beside the store"},       \
    {"restore", 0, OPT_CHOICE, (at) + offsetof(struct state_options, restore), "copy",          \
     .choices = state_restores, .arg = "HOW", .help = "copy, or fast: blocks are shared"},      \
    {"verify-state", 0, OPT_FLAG, (at) + offsetof(struct state_options, verify),                \
     .help = "compare all restored files with what was saved"}
// clang-format on

// What rows cannot check alone: options that need --state.
int state_options_check(const struct state_options *options, struct err *err);

// A state in use; zeroed before.
struct state_use {
    struct places_state places;
    struct state *state;
    bool is_new; // it was made by this command
};

// Finds the state of wish, or makes it: servers are started and tables filled for that. Sets
// wish->state. Close it after setup_close, also on failure.
int state_use_open(struct state_use *use, const struct state_options *options,
                   struct setup_wish *wish, const char *store, struct err *err);

// "  state  NAME, copied in 1.2 s; page cache dropped"
void state_use_announce(const struct state_use *use);

// Adds state.* (docs/environment.md).
void state_use_record(const struct state_use *use, struct kvs *environment);
void state_use_close(struct state_use *use);

// prony-states in the directory of the results file. The caller frees it.
char *state_default_dir(const char *store);
