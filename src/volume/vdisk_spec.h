// A virtual disk as text: "size=1G,model=hdd-7200,torn=512". One table of keys gives parsing,
// printing and help. Printing gives the keys that differ from the model and the defaults, in the
// order of the table; parse(print(x)) equals x.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "volume/vdisk_cache.h"
#include "volume/vdisk_model.h"

#define VDISK_NAME_MAX 31

enum vdisk_eio {
    VDISK_EIO_ALL,
    VDISK_EIO_READ,
    VDISK_EIO_WRITE,
    VDISK_EIO_FLUSH,
};

struct vdisk_spec {
    int64_t size;                  // bytes, a multiple of VDISK_BLOCK
    int model_index;               // into vdisk_model_names
    struct vdisk_model_spec model; // with own numbers put over it
    int64_t seed;                  // of the model
    bool near_floor;               // numbers that the path is too slow for are wanted all the same
    char *media;                   // file that holds the contents; NULL: memory

    // Faults: these may change while the disk runs.
    bool is_protected; // the cache survives a cut
    bool lying;        // flushes are acknowledged and not done
    int64_t torn;      // unit of bytes that a cut leaves whole: 4096, 512; 0: whole writes
    int64_t eio_after; // that many more requests of the kind eio succeed; -1: all
    int eio;           // enum vdisk_eio
    int64_t delay_ns;  // added to every request
    bool stall;        // requests wait until it is taken back
};

// The defaults: model none, size 0 (must be set).
void vdisk_spec_init(struct vdisk_spec *spec);
void vdisk_spec_release(struct vdisk_spec *spec);

// Sets one key. Errors are ERR_USAGE and name key, value and what is allowed. model= replaces all
// numbers of the model, so put it before own ones. running: only faults may be set.
int vdisk_spec_set(struct vdisk_spec *spec, const char *key, const char *value, bool running,
                   struct err *err);

// Whether a key is one of these; for callers that have keys of their own.
bool vdisk_spec_has_key(const char *key);

// The keys in their order, by index from 0; NULL after the last.
const char *vdisk_spec_key(size_t index);

// Sets what "key=value,..." says, model= first wherever it stands; checks the whole unless running.
int vdisk_spec_parse(struct vdisk_spec *spec, const char *text, bool running, struct err *err);

// Checks that the numbers make a disk together.
int vdisk_spec_check(const struct vdisk_spec *spec, struct err *err);

void vdisk_spec_print(const struct vdisk_spec *spec, struct str *out);

// A line per key for documentation: "  size=SIZE          what".
void vdisk_spec_describe_keys(struct str *out);

// A name that can be a file: letters, digits, '-', '_', '.', not first a '.' or '-'.
int vdisk_name_check(const char *name, struct err *err);

// "drop", "prefix", "random", "keep", by enum vdisk_survivors; ends with NULL.
extern const char *const vdisk_survivor_names[];

// "survivors=random seed=7 unit=4096" and back (-1: not one).
void vdisk_fate_print(const struct vdisk_fate *fate, struct str *out);
int vdisk_fate_parse(const char *text, size_t len, struct vdisk_fate *ret);
