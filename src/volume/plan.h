// The plan of a volume: the commands that bring it up, each with what takes back what it made.
//
// A word of a command that equals the variable of an earlier step ("$LOOP"), or ends so behind a
// '='
// ("device=$LOOP"), stands for what that step printed last; all other words are passed as they are.
// Printed, a plan is a shell script that does the same.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/leftovers.h"
#include "base/str.h"

struct volume_wish;

enum plan_undo {
    PLAN_NOTHING,
    PLAN_FILE,       // unlink
    PLAN_TREE,       // remove a directory with all it holds (base/tree.h)
    PLAN_DIR,        // remove a directory while it is empty
    PLAN_UNMOUNT,    // a mount point
    PLAN_DETACH,     // the loop devices on a file
    PLAN_PROCESS,    // of a step that started one
    PLAN_COMMAND,    // words of a command
    PLAN_COMMAND_IF, // a path, and the words of a command that is needed while it is there
};

struct plan_step {
    char **argv;      // ends with NULL
    char *variable;   // "LOOP": what the last line printed is called from here on; NULL
    char *ready_path; // a process that goes on is started, and is ready when this path exists; NULL
    bool started;     // a process that goes on
    enum plan_undo undo;
    char **undo_words;   // the path or the command; ends with NULL; NULL for PROCESS and NOTHING
    bool destroys;       // what was there before is lost
    bool exclusive;      // when the command fails the thing was another's: it is not undone
    bool tidies;         // a killed command has a guard that undoes what it began: let that work
    bool is_long;        // it may take hours, and a signal ends it at once
    char *moves;         // the device that it writes or reads whole, so progress is told; NULL
    int64_t deadline_ns; // 0: PLAN_DEADLINE_NS
};
#define PLAN_DEADLINE_NS (120 * 1000000000LL)
#define PLAN_LONG_NS     (24 * 3600 * 1000000000LL) // of a step that is_long

struct plan_of_volume {
    struct plan_step *steps;
    size_t n_steps, cap_steps;
    char *path;      // where data goes
    char *file;      // what holds its contents, when it does not hold a file system itself; NULL
    size_t n_rest;   // so many steps stay done while it is not mounted and its contents lie still
    char *lock;      // an existing folder, file or device to be locked while the volume is up; NULL
    int lock_fd;     // -1: not locked
    char **devices;  // block devices that are overwritten, locked likewise; ends with NULL; NULL
    char *journal;   // device, or "$NAME", of the file system's journal; NULL: it has it inside
    int *device_fds; // by device, while they are locked; NULL
    int *leftovers;  // ids in the registry, of the steps that ran; 0: none
    char **values;   // of variables, by step; NULL: none
};

// Each adds a step and returns it, valid until the next one; words are copied, a NULL ends them.
// Set further fields directly.
struct plan_step *plan_command(struct plan_of_volume *plan, const char *word, ...)
    __attribute__((sentinel));
struct plan_step *plan_argv(struct plan_of_volume *plan, char *const *argv);

// One more word for the command of a step, or, cut at blanks, the words of a text.
void plan_word(struct plan_step *step, const char *word);
void plan_words(struct plan_step *step, const char *text);

// What undoes the step: at least one word (PLAN_PROCESS has none and is set directly).
void plan_undo(struct plan_step *step, enum plan_undo undo, const char *word, ...)
    __attribute__((sentinel));

void plan_undo_argv(struct plan_step *step, enum plan_undo undo, char *const *words);

// One more device that is overwritten; copied.
void plan_device(struct plan_of_volume *plan, const char *device);

// Is the word one of an earlier step's variable? Returns where in the word it begins ('$'), or
// NULL.
const char *plan_variable(const struct plan_of_volume *plan, const char *word, size_t *ret_step);

// Makes the mount point; the first step of a volume, for mkdir lets only one of two of a name go
// on.
struct volume;
void plan_mount_point(struct plan_of_volume *plan, const struct volume *volume, const char *point);

// A file system on a block device (a path, or "$NAME"), mounted at mount_point, as the keys fs,
// mkfs and mount of the volume say. ERR_ABSENT names the package when there is no such mkfs.
enum plan_fs {
    PLAN_FS_OVERWRITE = 1 << 0, // there may be an older one, which shall go; this one is labelled
    PLAN_FS_ALLOCATED = 1 << 1, // what the device has allocated stays so: mkfs discards nothing
    PLAN_FS_LABELLED = 1 << 2,  // it may come to light on a device, when what carries it is gone
};
int plan_file_system(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                     unsigned flags, const char *mount_point, struct err *err);

void plan_print_up(const struct plan_of_volume *plan, struct str *out);
void plan_print_down(const struct plan_of_volume *plan, struct str *out);
void plan_print_step(const struct plan_of_volume *plan, size_t index,
                     struct str *out); // without a newline
// What undoes the step, likewise; nothing when nothing does.
void plan_print_undo(const struct plan_of_volume *plan, size_t index, struct str *out);

// Takes the locks there are; ERR_USAGE when another prony has one. Let go by unlock.
int plan_lock(struct plan_of_volume *plan, struct err *err);
void plan_unlock(struct plan_of_volume *plan);

// Runs the steps up to the first that fails. plan_undo_all undoes those that were begun, up to
// the first that cannot be undone (the rest stays in the registry), and releases the lock.
int plan_run(struct plan_of_volume *plan, const struct volume_wish *wish, struct err *err);
int plan_undo_all(struct plan_of_volume *plan, struct leftovers *leftovers, struct str *report);
// The same for the steps from an index on; those before stay done.
int plan_undo_from(struct plan_of_volume *plan, size_t first, struct leftovers *leftovers,
                   struct str *report);
void plan_release(struct plan_of_volume *plan);
