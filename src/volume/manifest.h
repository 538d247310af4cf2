// What is in a file or a directory tree, as lines of text: two trees are the same when their lines
// are. A line has what a copy must keep: kind, mode, owner, length, checksum (base/checksum.h),
// name.
//
//     dir 700 109:117 - - data/postgres
//     file 600 109:117 8192 5f0c1e7d22a9b310 data/postgres/base/1/1255
//     link 777 109:117 24 a07d33fa01c2e4b9 data/postgres/pg_wal
//     other 644 0:0 - - data/socket
//
// Times are left out, for servers touch files when they look at them; so are "lost+found" at the
// top, which is the file system's, and how a file is laid out: a hole equals zeros.
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct manifest {
    struct str text;
    int64_t files, bytes;              // regular files, their lengths
    int64_t room;                      // bytes that they take where they are
    const volatile sig_atomic_t *stop; // not 0: ends it with an error; may be NULL
};
#define MANIFEST_INIT    \
    {                    \
        .text = STR_INIT \
    }
void manifest_release(struct manifest *manifest);

// Appends the lines of all that is in dir, named PREFIX/..., in the order of names.
int manifest_add_tree(struct manifest *manifest, const char *dir, const char *prefix,
                      struct err *err);

// Appends the line of one file, without owner and mode: "image - - LENGTH CHECKSUM NAME".
int manifest_add_image(struct manifest *manifest, const char *path, const char *name,
                       struct err *err);

// The name in the first line that differs in two texts whose names begin with prefix ('\0' all);
// NULL: they are the same. The caller frees it.
char *manifest_difference(const char *text, const char *other, const char *prefix);
