// A volume: a place with a file system where data or a log lies. The user writes one as
//
//     TYPE:KEY=VALUE,...          loop:size=2G,fs=ext4,mount={noatime,nodiratime}
//     @NAME                       one that --volume NAME=TYPE:... described, or that is up
//
// (grammar: struct spec in base/url.h; what prints can be parsed). Types stand in one table
// (volume/type.h). Opening a volume only looks; it makes the *plan*, the commands that bring the
// volume up, in order. `prony volume plan` prints them and volume_up runs them, so what is printed
// is what is done. What each command makes is listed in the registry of leftovers before it runs,
// with what takes it back; down is that list in reverse order, whoever walks it: volume_down, the
// end of the program, its guard after kill -9, or the next prony command.
//
// Whatever is up belongs to one prony: the folder, the device or the file is locked (flock), a
// second one is refused. A volume that `prony volume up` made is kept until `prony volume down`
// (leftovers_keep); runs use it as @NAME, one at a time.
//
// The life of one:
//     struct volume_wish wish = {.name = "4711-data", .leftovers = lo, .names = &names};
//     volume_open(&v, "loop:size=2G,fs=ext4", &wish, &err)
//     volume_up(v, &err)
//     ... volume_path(v) ...
//     volume_record(v, "volume.data", &environment)
//     volume_down(v, &report)
//     volume_free(v)
// Main thread only, as the registry.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/leftovers.h"
#include "base/str.h"

struct volume;

struct volume_wish {
    const char *name;            // of what prony makes for it: volume_check_name holds
    const struct kvs *names;     // NAME -> TYPE:..., for @NAME; may be NULL
    char *const *destroy;        // devices that may be overwritten; ends with NULL; may be NULL
    struct leftovers *leftovers; // only volume_up needs it
    const volatile sig_atomic_t *stop; // not zero: end between two commands; may be NULL
    // What a fresh volume begins as: a file that volume_save made, of the same text. NULL: empty.
    const char *image;
    bool shares_image; // its blocks are shared until they are written, or it is an error
    bool stays;        // it shall outlive this program (volume_keep)
    // Each command before it runs, as a shell would take it; may be NULL.
    void (*say)(void *arg, const char *line, bool destroys);
    // How far a command is that writes or reads a whole device, every few seconds; may be NULL.
    void (*progress)(void *arg, const char *line);
    void *arg;
};

// Parses and plans. Nothing is made and nothing but reading is done. ERR_USAGE when the text is
// wrong, ERR_ABSENT when this machine or user cannot have such a volume (names what is missing).
// What wish points to must outlive the volume.
int volume_open(struct volume **ret, const char *text, const struct volume_wish *wish,
                struct err *err);

// Sets wish.leftovers, for those who open the registry only when the plan is good.
void volume_use(struct volume *volume, struct leftovers *leftovers);

// Runs the plan. On failure what was made is undone, and err tells the command and what it or the
// kernel said. What could not be undone is appended to the err's words and stays in the registry.
int volume_up(struct volume *volume, struct err *err);

// Whether what lies in it can be saved as one file, and it can begin as one (wish.image): the file
// system with all it holds. Never of a kept one.
bool volume_has_image(const struct volume *volume);

// Appends the text without the keys that change nothing of what comes to lie on it: where it is,
// how fast it is. Not of a kept one.
void volume_shape(const struct volume *volume, struct str *out);

// Unmounts what is up, so that its contents lie still; only volume_save and volume_down may follow.
int volume_rest(struct volume *volume, struct err *err);

// Makes path, which must not be there, a sparse copy of the contents. A signal ends it early. What
// there is of path then is the caller's to remove.
int volume_save(struct volume *volume, const char *path, struct err *err);

// Takes it down; returns the number of things that could not be undone, a line each in report.
// Nothing to do for one that is not up, or is kept. Close what is open there first, and leave it as
// working directory.
int volume_down(struct volume *volume, struct str *report);

void volume_free(struct volume *volume); // does not take it down; NULL is allowed

// The directory for data, absolute. Known from volume_open on, there when it is up.
const char *volume_path(const struct volume *volume);

// The text in its normal form, as `volume_open` reads it. Of @NAME: what NAME stands for.
const char *volume_text(const struct volume *volume);

// Was it up before (@NAME of a kept one)?
bool volume_is_kept(const struct volume *volume);

// Does it come up empty, and is what was written there out of reach when it is down?
bool volume_is_fresh(const struct volume *volume);

// The plan as a shell script: the commands of up, then, after a comment line, those that take it
// down again. ends_at: only as far as up.
void volume_print_up(const struct volume *volume, struct str *out);
void volume_print_down(const struct volume *volume, struct str *out);

// The same, a command each: "up" and "down", and "destroys" in front of an "up" by which something
// is lost.
void volume_list_commands(const struct volume *volume, struct kvs *out);

// Adds PREFIX.text, PREFIX.path and a PREFIX.command.N for each command (docs/environment.md).
void volume_record(const struct volume *volume, const char *prefix, struct kvs *environment);

// Is this text meant as an event that happens to a volume: offline:PART, online:PART, replace:PART?
bool volume_is_event(const char *text);

// Appends the shell commands that make it happen while the volume is up. ERR_USAGE when it knows no
// such event or part.
int volume_event_script(const struct volume *volume, const char *event, struct str *script,
                        struct err *err);

// A name of a volume: 1 to 32 letters, digits, '-', '_', '.', not beginning with '-' or '.'.
int volume_check_name(const char *name, struct err *err);

// Splits NAME=TYPE:... (as --volume takes it) and adds it to names. ERR_USAGE when it is given
// twice.
int volume_add_name(struct kvs *names, const char *text, struct err *err);

// Is this text meant as a volume: TYPE: of a known type, or @NAME? For places that take paths too.
bool volume_is_text(const char *text);

// Keeps a volume that is up, with all else that is in its registry, until volume_take_down; ends
// the registry (wish.leftovers is gone then, also on failure, when everything was undone).
int volume_keep(struct volume *volume, struct err *err);

struct volume_kept {
    char *name;
    char *text;
    char *path;
    bool here; // false: made before the last boot, only files are left
};

// Those that are kept, by name. The caller frees with volume_kept_free.
struct volume_kept *volume_list_kept(size_t *ret_n);
void volume_kept_free(struct volume_kept *list, size_t n);

// Takes a kept one down. ERR_USAGE when there is none of that name or a prony uses it; ERR_FAILED
// with the words of what could not be undone: it stays listed, and can be tried again.
int volume_take_down(const char *name, struct err *err);
