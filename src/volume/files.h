// Files that stand for disks: where they lie, and whether there is room for them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "volume/plan.h"

// The directory that a user named as the value of key (NULL: the working directory), absolute and
// without symbolic links, as the kernel names what lies in it. The caller frees it; NULL with err.
char *files_dir(const char *key, const char *given, struct err *err);

// A new name in the directory; NULL with err when it is taken. The caller frees it.
char *files_new(const char *dir, const char *name, struct err *err);

// Could files of so many bytes lie there? Sparse ones may be larger than what is free, but not than
// the whole; full ones not. key is what the error names.
int files_check_room(const char *dir, const char *key, int64_t bytes, bool full, struct err *err);

// Appends what makes the file, which is not there yet, sparse, and what attaches it to a loop
// device past the page cache, which is "$VARIABLE" from then on.
void files_plan_make(struct plan_of_volume *plan, const char *file, int64_t bytes);
void files_plan_attach(struct plan_of_volume *plan, const char *file, const char *variable);

// May this user attach loop devices, and are there any? ERR_ABSENT when not.
int files_check_loops(struct err *err);
