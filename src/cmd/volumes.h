// What commands that use volumes share: the options --volume and --destroy, and one volume from its
// text to its end.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/leftovers.h"
#include "base/opt.h"
#include "volume/volume.h"

struct volumes_options {
    struct opt_list names;   // --volume NAME=TYPE:...
    struct opt_list destroy; // --destroy DEVICE
};

// Their rows; at is the offset of a struct volumes_options in the command's.
// clang-format off
#define VOLUMES_ROWS(at)                                                                         \
    {"volume", 0, OPT_LIST, (at) + offsetof(struct volumes_options, names),                      \
     .arg = "NAME=VOLUME", .help = "describe a volume, to be named as @NAME"},                 \
    {"destroy", 0, OPT_LIST, (at) + offsetof(struct volumes_options, destroy), .arg = "DEVICE",  \
     .help = "what is on this device may be overwritten"}
// clang-format on

// One volume of a command, zeroed before.
struct volumes_one {
    const char *image; // set before volumes_open: what it begins as; NULL: empty
    bool shares_image;
    struct kvs names;
    char **destroy; // ends with NULL
    struct volume *volume;
};

// Checks the options, and opens the volume that the text describes (NULL: none, only the options
// are checked). suffix tells apart what one process makes: "data". Nothing is made yet.
int volumes_open(struct volumes_one *one, const char *text, const char *suffix,
                 const struct volumes_options *options, struct leftovers *leftovers,
                 const volatile sig_atomic_t *stop, struct err *err);

// Takes it down if it is up; what could not be undone is appended to report.
void volumes_close(struct volumes_one *one, struct str *report);
