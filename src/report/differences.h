// In what several sets of runs were not alike: target, load, options, environment.
#pragma once

#include <stdbool.h>

#include "store/result.h"

struct run_set {
    struct result **runs;
    int n;
};

struct difference {
    char *name;    // "kernel", "shared_buffers", "clients"
    char **values; // one for each set: "128MB", "4 or 8" where its runs differ, "-": not recorded
};

struct differences {
    struct difference *items;
    size_t n, cap;
};

// Appends what differs between sets or within one. What differs from run to run by nature (seeds,
// names of temporary files and loop devices, free space, boots) is left out, as are the settings of
// engines that are not the same engine. Sets without runs are never different.
void differences_find(const struct run_set *sets, int n_sets, struct differences *ret);
void differences_release(struct differences *list, int n_sets);

// "kernel Linux 2.6.11 -> Linux 2.6.15"; not made safe for terminals.
void difference_words(const struct difference *difference, int n_sets, struct str *out);

// Is the load itself another: workload, scale, clients or rate?
bool difference_is_load(const struct difference *difference);
