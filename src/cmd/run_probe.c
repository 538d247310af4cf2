#include "cmd/run_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "volume/probe.h"

#define PROBE_BYTES (64 << 20) // of the data file: little, for it is about the device now

// A directory on the storage of a path: itself, or what holds it where it is a file, or belongs to
// a server, which must not find strange things in its data.
static char *directory_of(const struct setup *setup, const struct storage *place)
{
    char *path = mem_strdup(place->path);
    struct stat st;
    bool is_file = stat(path, &st) == 0 && !S_ISDIR(st.st_mode);

    if (is_file || strcmp(setup->facts.engine, "sqlite") != 0) {
        char *slash = strrchr(path, '/');
        struct stat parent;
        if (slash && slash != path)
            *slash = '\0';
        if (stat(path, &parent) < 0 || parent.st_dev != place->device) { // a mount point itself
            free(path);
            return mem_strdup(place->path);
        }
    }
    return path;
}

static void record(const struct probe_result *result, const char *prefix, struct kvs *environment)
{
    for (int i = 0; i < PROBE_KINDS; i++) {
        const struct probe_measure *m = &result->measures[i];
        char *key = mem_printf("%s.%s_per_s", prefix, m->id);
        if (m->n_slices > 0)
            kvs_addf(environment, key, "%.6g", m->rate.mean);
        free(key);
    }
}

static void probe_place(const struct setup *setup, const struct storage *place, const char *prefix,
                        int64_t time_ns, const volatile sig_atomic_t *stop, struct kvs *environment)
{
    char *dir = directory_of(setup, place);
    struct probe_result *result = NULL;
    struct err err = ERR_INIT;
    struct probe_wish wish = {
        .dir = dir,
        .time_ns = time_ns,
        .bytes = PROBE_BYTES,
        .io = "auto",
        .leftovers = setup->leftovers,
        .stop = stop,
    };

    if (probe_run(&wish, &result, &err) == 0) {
        record(result, prefix, environment);
    } else {
        char *why = mem_printf("unknown: %s", err.text);
        kvs_add(environment, prefix, why);
        free(why);
    }
    probe_free(result);
    free(dir);
}

void run_probe(const struct setup *setup, const struct storage *data, const struct storage *log,
               int64_t time_ns, const volatile sig_atomic_t *stop, struct kvs *environment)
{
    if (data)
        probe_place(setup, data, "probe.data", time_ns, stop, environment);
    if (data && log && data->device != log->device && !*stop)
        probe_place(setup, log, "probe.log", time_ns, stop, environment);
}
