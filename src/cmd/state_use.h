// A run that begins from a saved state (--state): the state is found by what shapes the data, or
// made once and saved, and then restored, so that the first run begins as all later ones do.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/places.h"
#include "cmd/setup.h"

struct state_options {
    char *text; // [DIR/]NAME[,fast][,verify] as typed; NULL: no state
    // of the text, by state_options_check:
    char *name, *dir; // "auto": by what shapes the data; dir NULL: state_default_dir
    bool shares;      // fast: blocks are shared, else copied
    bool verifies;    // all restored files are compared with what was saved
};

// Its row; at is the offset of a struct state_options in the command's.
// clang-format off
#define STATE_ROW(at)                                                                           \
    {"state", 0, OPT_TEXT, (at) + offsetof(struct state_options, text), .arg = "NAME",          \
     .help = "from this saved state, made when missing; or auto"}
// clang-format on

int state_options_check(struct state_options *options, struct err *err);
void state_options_release(struct state_options *options); // what the check has made

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
