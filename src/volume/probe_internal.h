// What the files of the probe share: the private directory with its files, and the contract of a
// measurement.
#pragma once

#include "base/err.h"
#include "volume/io.h"
#include "volume/probe.h"

#define LOG_BLOCK   (8 * 1024LL) // a page of most databases, and of their logs about
#define ALONG_BLOCK (1024 * 1024LL)

#define PROBE_LEAST_BLOCKS 16 // of the data file, each ALONG_BLOCK: probe_plan_sizes gives no less

// The private directory. Descriptors are -1 when closed.
struct probe_site {
    char *dir;
    char *data_path, *log_path, *grow_path, *files_path;
    int data;  // the data file, O_DIRECT where that works
    int log;   // written from end to end before
    int grow;  // empty
    int files; // the directory for new files
    int leftover;
    struct probe_sizes sizes;
    int64_t file_bytes;  // of the data file, as laid out
    char *through_cache; // room for CACHE_WHY_MAX: as in probe_result
};
#define CACHE_WHY_MAX 256

// One slice of one measurement.
struct probe_slice {
    int64_t for_ns;         // begin nothing after so long, but one operation in any case
    int64_t max_operations; // nor after so many

    // What came of it.
    int64_t operations;
    int64_t flushes;
    int64_t took_ns;      // with what is synced at its end
    struct hist *latency; // is added to
};

struct probe {
    const struct probe_wish *wish;
    const struct io_engine *io;
    struct probe_site site;
    struct rng rng;
    char *buffers;       // IO_DEPTH_MAX blocks of 8 KiB or depth of 1 MiB, random bytes
    int64_t along_block; // where the next sequential slice begins
    int64_t log_block;   // and the next block of the log written before
    int64_t files_made;  // names go on
};

struct probe_method {
    const char *id, *name, *how;
    int64_t block_bytes;
    bool by_bytes;
    bool write; // slices end with a flush, so their operations are bounded by the last rate
    bool random;
    int depth;     // blocks under way, or writers
    int64_t first; // operations of the very first slice, where their flush's cost is not yet known

    // Returns negative with err when it went wrong; 0 with what was done, also when stopped.
    int (*run)(struct probe *probe, const struct probe_method *method, struct probe_slice *slice,
               struct err *err);
};

extern const struct probe_method probe_methods[PROBE_KINDS]; // probe_methods.c

int probe_log_run(struct probe *probe, const struct probe_method *method, struct probe_slice *slice,
                  struct err *err); // probe_log.c
int probe_blocks_run(struct probe *probe, const struct probe_method *method,
                     struct probe_slice *slice, struct err *err); // probe_blocks.c
int probe_create_run(struct probe *probe, const struct probe_method *method,
                     struct probe_slice *slice, struct err *err); // probe_create.c

// Makes the directory and its files, all but the data file's contents. ERR_USAGE when the
// directory cannot be used; then nothing is there.
int probe_site_open(struct probe *probe, struct err *err);

// Writes the data file, until then at the latest, and finds out about the page cache.
int probe_site_lay_out(struct probe *probe, int64_t until_ns, struct err *err);

// Removes all of it. What cannot be removed stays in the registry, which tells.
void probe_site_close(struct probe *probe);

static inline bool probe_is_stopped(const struct probe *probe)
{
    return probe->wish->stop && *probe->wish->stop;
}
