// States of data sets: what lies on the places of a set-up (data, log) when everything is stopped,
// kept so that every run can begin from the same. All places of a set-up are one state.
//
//     DIR/NAME/key          the text that says what shaped it, a line "KEY VALUE" each
//     DIR/NAME/manifest     a line per file, with checksums (volume/manifest.h)
//     DIR/NAME/PLACE.image  the contents of a volume that can be one file (volume_has_image),
//     sparse DIR/NAME/PLACE.files  else the directory that was used, as it was
//
// What a state is of is its key's matter: two with the same key are interchangeable. The key is
// made by the floors that know what shaped the data (volumes, server, workload, scale); here it is
// only compared, byte by byte. A state appears whole (it is made under another name, written
// through to the disk, and renamed) or not at all; what an end of any kind leaves half made is
// undone by the registry of leftovers. It is locked (flock on its directory) while anybody uses it.
//
// Saving, when all is stopped in order and still mounted:
//     state_make_room(dir, bytes, &err), state_begin(&state, &wish, &err)
//     state_note(state, "data", dir, &err)           lists what is there, for each place
//     volume_rest(v, &err), state_add_image(state, "data", v, &err)       or
//     state_add_files(state, "data", dir, &err)
//     state_commit(state, &err)
// Restoring:
//     state_find(&state, &wish, &err) == 1
//     volume_wish.image = state_image(state, "data"), volume_up, or
//     state_plan_files(state, "data", to, shares, &plan), plan_run
//     state_settle(...)
// Both end with state_close. Main thread only.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/leftovers.h"
#include "volume/plan.h"
#include "volume/volume.h"

struct state;

// A word of the commands that share blocks, by which they are known when one failed.
#define STATE_SHARES "--reflink=always"

struct state_wish {
    const char *dir;                   // where states lie; made when the first one is saved
    const char *name;                  // volume_check_name holds; NULL: made from the key
    const char *key;                   // lines "KEY VALUE", in an order that is always the same
    struct leftovers *leftovers;       // for saving
    const volatile sig_atomic_t *stop; // not 0: ends what goes on, with an error; may be NULL
};

// 1: there is one with this key, and it stays until state_close; 0: there is none; -1: ERR_USAGE
// when one of this name has another key (err shows the first line that differs).
int state_find(struct state **ret, const struct state_wish *wish, struct err *err);

// Before a new one is made: makes the directory of states, and sees whether there is room for about
// so many bytes. ERR_USAGE.
int state_make_room(const char *dir, int64_t bytes, struct err *err);

// Begins a new one.
int state_begin(struct state **ret, const struct state_wish *wish, struct err *err);

// Each also checks that there is room for what it has seen.
int state_note(struct state *state, const char *place, const char *dir, struct err *err);
int state_add_image(struct state *state, const char *place, struct volume *at_rest,
                    struct err *err);
int state_add_files(struct state *state, const char *place, const char *dir, struct err *err);

// It is there from now on, as if state_find had found it. Somebody else may have been faster: then
// it is his, which is as good.
int state_commit(struct state *state, struct err *err);

void state_close(struct state *state); // one that was not committed is removed; NULL is allowed

const char *state_name(const struct state *state);
const char *state_path(const struct state *state);
int64_t state_bytes(const struct state *state); // that it takes on disk

// The file to be given to a volume; NULL: this place was saved as files, or is no part of it.
const char *state_image(const struct state *state, const char *place);

// Plans the directory `to`, which must not be there, as a copy of a place that was saved as files,
// with owners, modes, times, extended attributes and holes; undone by removing it. shares: blocks
// are shared until they are written (FICLONE), or it is an error; else they are copied.
void state_plan_files(const struct state *state, const char *place, const char *to, bool shares,
                      struct plan_of_volume *plan);

// Is there room where a place of it shall go? Not asked when blocks are shared.
int state_check_room(const struct state *state, const char *place, const char *dir,
                     struct err *err);

// Compares all that is in dir with what was noted there. ERR_FAILED names the first difference.
int state_verify(const struct state *state, const char *place, const char *dir, struct err *err);

// Are the bytes of the state itself still as they were written? Reads all of them.
int state_check(const struct state *state, const volatile sig_atomic_t *stop, struct err *err);

// After restoring, before anything is measured: what is dirty below the directories (ends with
// NULL) is written, and the page cache is dropped where this user may. Adds "state.cache" to facts:
// "dropped", or "as restored: REASON".
void state_settle(const char *const *dirs, struct kvs *facts);

// Facts about it for the record of a run: state.name, state.path, state.key.LINE, ...
void state_record(const struct state *state, struct kvs *facts);

struct state_info {
    char *name;
    char *key;        // its text
    int64_t bytes;    // on disk
    int64_t saved_ns; // real time
};

// Those in a directory, by name; none where there is no directory. state_list_free.
struct state_info *state_list(const char *dir, size_t *ret_n);
void state_list_free(struct state_info *list, size_t n);

// Opens one by its name, whatever its key. ERR_USAGE when there is none.
int state_open(struct state **ret, const char *dir, const char *name, struct err *err);

// Removes one. ERR_USAGE when there is none, or a prony uses it.
int state_forget(const char *dir, const char *name, struct leftovers *leftovers, struct err *err);
