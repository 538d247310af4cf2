// What prony starts, mounts, attaches or creates for itself is written here *before* it is done,
// and undone in reverse order at the end, on error and on signal. After kill -9 a small guard
// process undoes it at once; if that dies too, the next prony command does (leftovers_clean_dead).
//
// Registry: one file per prony process in the first of these that can be written:
// $XDG_RUNTIME_DIR/prony (if that directory is this user's), /run/prony (root) or
// /run/user/UID/prony, $TMPDIR/prony-UID, /tmp/prony-UID. It holds the boot id and one line per
// thing; the owner holds a lock (flock) on it while it lives. After a reboot only paths are undone,
// also by a command that is needed while its path is there; processes, mounts and attachments are
// gone by themselves.
//
// Kinds of undo: a process to stop, a file, a directory tree or an empty directory to remove, a
// mount to end, loop devices to detach, a command to run. Whatever stands under a listed path is
// removed: list only names that prony chose itself or that were free. One per program. Not for
// threads: main thread only.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct leftovers;

// Opens the registry and forks the guard. Cheap; called by commands that make things.
int leftovers_open(struct leftovers **ret, struct err *err);

// Each returns an id > 0, or -1 with err when the registry cannot be written: then do not do the
// thing. Relative paths are taken from the working directory of now. A process is listed right
// after its start with its start time (start it to die with prony, or list it in proc_as.enter:
// then no gap is left); one that has ended already is an error. A command is looked up in PATH,
// must not depend on the working directory, and is tried again for a few seconds when it fails. A
// mount is named by its directory, loop devices by the file they are on (both without symbolic
// links); both may be listed before they are made, for what is not there needs no undoing, and are
// tried again likewise when busy.
int leftovers_add_file(struct leftovers *lo, const char *path, struct err *err);
int leftovers_add_tree(struct leftovers *lo, const char *dir, struct err *err); // base/tree.h
// Removed only while it is empty: a mount point, into which somebody may have put something.
int leftovers_add_dir(struct leftovers *lo, const char *dir, struct err *err);
int leftovers_add_process(struct leftovers *lo, pid_t pid, struct err *err);
// The same for one that is stopped by another signal than SIGTERM; with SIGKILL, and when the time
// is over, all its descendants go with it.
int leftovers_add_process_signal(struct leftovers *lo, pid_t pid, int signal_number,
                                 struct err *err);
int leftovers_add_command(struct leftovers *lo, char *const *argv, struct err *err);
// A command that is only needed, and tried, while the path is there: may be listed before.
int leftovers_add_command_if(struct leftovers *lo, const char *path, char *const *argv,
                             struct err *err);
int leftovers_add_mount(struct leftovers *lo, const char *dir, struct err *err);
int leftovers_add_loop(struct leftovers *lo, const char *file, struct err *err);

// The thing was undone by other means, or shall stay: forget it.
void leftovers_drop(struct leftovers *lo, int id);

// Undoes one, or all in reverse order. What could not be undone stays in the registry and is
// appended to report (may be NULL), a line each. Returns the number of failures. An id that was
// dropped or undone before is nothing to do. Behind a mount, an attachment or a command that could
// not be undone only processes still are: what is older may lie below it, as a file below the loop
// device on it.
int leftovers_undo(struct leftovers *lo, int id, struct str *report);
int leftovers_undo_all(struct leftovers *lo, struct str *report);

// undo_all, then ends the guard and removes the registry file when nothing is left in it. A program
// that ends without it leaves the work to the guard. NULL is allowed.
void leftovers_close(struct leftovers *lo, struct str *report);

// What shall outlive this program: all that is listed is put aside under a name, with up to eight
// words that say what it is, until leftovers_kept_undo; lo is gone then. After a reboot
// leftovers_clean_dead removes its files. ERR_USAGE when the name is taken; on failure nothing has
// changed.
#define LEFTOVERS_KEPT_WORDS 8
int leftovers_keep(struct leftovers *lo, const char *name, char *const *words, struct err *err);

struct leftovers_kept {
    char *name;
    char *words[LEFTOVERS_KEPT_WORDS + 1]; // as they were given; NULL behind the last
    bool same_boot;
};

// Those of this user, by name. The caller frees them.
struct leftovers_kept *leftovers_kept_list(size_t *ret_n);
void leftovers_kept_free(struct leftovers_kept *list, size_t n);

// Undoes it, up to the first that fails. Returns the number of things left: then it stays, with
// what is left. -1 with ERR_USAGE when there is none of that name, or another prony is undoing it.
// held_fd (-1: none), which keeps others off, is closed when nothing but the undoing is left to do,
// for it would keep a mount busy.
int leftovers_kept_undo(const char *name, int held_fd, struct str *report, struct err *err);

// Undoes what owners that no longer live have left (their lock is free); never a living one's.
// Appends a line per thing undone or not.
void leftovers_clean_dead(struct str *report);
