// The file behind base/leftovers.h; nothing else uses it. A text file, readable at whatever
// instruction its writer was killed:
//
//     prony-leftovers 1
//     boot 5b1a2c0e-...            of the kernel that ran the owner
//     owner 4711
//     + tree /tmp/prony\x20x       things, in the order they were made
//     + process 4712 91823 15      pid, start time in ticks, signal (15 where it is left out)
//     + command-if /p rm x         a command, needed while the path is there
//     + loop /srv/x.img            what is attached to a file, mounted at a directory ("mount")
//     - command umount /mnt/x      one word per argument; undone or forgotten: its '+' is now '-',
//                                  which needs no room on a full disk
//
// Words are separated by one blank; blanks, control characters and backslashes in them are written
// \xNN. A last line without its newline was never finished, so what it names was never done.
//
// Invariants: the file is locked (flock) from before its first byte until it is unlinked, by its
// owner and, through the same open file, by the owner's guard; who holds the lock may undo. It is
// trusted only when it and its directory belong to this user and nobody else may write them.
//
// A registry that is kept (leftovers_keep) lies unlocked under a name of its own in the directory
// `kept`: of $PRONY_STATE_DIR, or of /var/lib/prony for root, else beside the others; it is
// nobody's leftover until the next boot.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum leftover_kind {
    LEFTOVER_FILE,
    LEFTOVER_TREE,
    LEFTOVER_DIR, // an empty directory
    LEFTOVER_PROCESS,
    LEFTOVER_COMMAND,
    LEFTOVER_COMMAND_IF, // a command, if its first word, a path, is there
    LEFTOVER_MOUNT,      // what is mounted at a directory
    LEFTOVER_LOOP,       // the loop devices on a file
    LEFTOVER_NOTE,       // nothing to undo: words for whoever reads the registry
};

struct leftover {
    int id;       // within this process only
    off_t offset; // of its line in the file
    enum leftover_kind kind;
    char **words; // the path; pid, start ticks, signal; or the arguments; ends with NULL
    size_t n_words;
    size_t cap_words;
};

// How undoing goes, and how long it may take.
struct undo_limits {
    int64_t process_ns; // from SIGTERM to SIGKILL
    int64_t command_ns; // one attempt
    int64_t retry_ns;   // a command that fails is tried again for so long (umount: busy)
    bool strict;        // any failure holds what is older (registry_undo_all)
    bool tells;         // a line also for what was undone
};

struct registry {
    int fd;     // -1 when closed
    char *path; // absolute
    off_t header_len;
    pid_t owner;
    bool same_boot; // the owner ran in this boot, as far as one can tell
    int next_id;
    struct leftover *items; // in the order they were made
    size_t n_items;
    size_t cap_items;
};

// Creates the file, locked, in the first directory of registry_dirs that can be written.
int registry_create(struct registry *registry, struct err *err);

// Opens and locks a file that an owner left and reads it. Returns 1 when it is ready, 0 when there
// is nothing to do (its owner lives, or it is gone), -1 with err when it cannot be used.
int registry_adopt(struct registry *registry, const char *path, struct err *err);

// Reads the items anew from the file, which another process has written through the same lock.
int registry_reload(struct registry *registry, struct err *err);

// Writes the thing down. Takes over item->words, also on failure. Returns its id, or -1 with err.
int registry_add(struct registry *registry, struct leftover *item, struct err *err);
void registry_drop(struct registry *registry, int id);

// Where the item with this id stands in items; -1: dropped already.
int registry_index(const struct registry *registry, int id);

// Nothing to undo: a note; a process, mount or attachment of an earlier boot, gone by itself.
bool registry_is_moot(const struct registry *registry, const struct leftover *item);

// Undoes the item at an index (a moot one: by doing nothing), 0 or -1 with err. Does not drop it.
int registry_undo(const struct registry *registry, size_t index, const struct undo_limits *limits,
                  struct err *err);

// The same; returns whether it was undone; if not, a line in report (may be NULL) says why.
bool registry_undo_told(struct registry *registry, size_t index, const struct undo_limits *limits,
                        struct str *report);

// Undoes and drops all, newest first; returns the number of things that stay, each with a line in
// report (may be NULL). Behind a mount, an attachment or a command that could not be undone
// (strict: behind anything) all that is older stays as it is but processes, for it may lie below.
// The notes stay as long as anything does: they say what it is.
int registry_undo_all(struct registry *registry, const struct undo_limits *limits,
                      struct str *report);

// "file /tmp/x", "process 4712", "command zpool destroy x", in printable characters.
void registry_describe(const struct leftover *item, struct str *out);

// Moves the file to DIR/kept/NAME; -1 when that name is taken. It stays locked.
int registry_move_to_kept(struct registry *registry, const char *name, struct err *err);

// The directories of kept registries that are there; ends with NULL; registry_dirs_free.
char **registry_kept_dirs(void);

// Removes the file when nothing is listed in it, then unlocks. Accepts a zeroed or closed one.
void registry_close(struct registry *registry);

// The places a registry may lie, best first; ends with NULL. The caller frees with
// registry_dirs_free.
char **registry_dirs(void);
void registry_dirs_free(char **dirs);

// Opens a directory only if it is private to this user; -1 with errno (EPERM: not private).
int registry_dir_open(const char *path, bool create);
