// Blocks between memory and one file, a given number of them under way all the time.
//
// A job runs to its end in one call: by the clock, by a number of blocks, or by *stop. Two engines
// behind one contract: io_uring, one thread that hands over and reaps; and a thread per block under
// way with pread and pwrite, for kernels and containers that forbid the first.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "stats/hist.h"

#define IO_ALIGN     4096 // of buffers, enough for O_DIRECT on any disk
#define IO_DEPTH_MAX 64

struct io_job {
    int fd;
    const char *path; // for errors
    bool write;
    bool random;         // any block, all equally likely; else one after the other, round and round
    int64_t block_bytes; // a multiple of IO_ALIGN
    int64_t n_blocks;    // of the file
    int64_t first_block; // where going through in order begins
    int depth;           // blocks under way, up to IO_DEPTH_MAX
    uint64_t seed;       // of the places
    int64_t until_ns;    // CLOCK_MONOTONIC: nothing is begun after, but the first block always
    int64_t max_blocks;  // nor more than these
    const volatile sig_atomic_t *stop; // nor when it is not zero
    char *buffers; // depth * block_bytes at IO_ALIGN; what is written gets a stamp in each 4 KiB,
                   // so that no two blocks are equal (devices that find equal ones store one)
};

struct io_count {
    int64_t blocks;
    struct hist *latency; // the caller's, is added to: from handing over to completion
};

struct io_engine {
    const char *name; // as recorded: "io_uring", "threads"

    // ERR_ABSENT with the reason when the kernel or a container forbids it.
    int (*check)(struct err *err);

    // Returns when nothing is under way any more. A block that fails or comes short ends the job
    // with an error that names the path; what was counted before stays counted.
    int (*run)(const struct io_job *job, struct io_count *count, struct err *err);
};

#ifdef HAVE_URING
extern const struct io_engine io_uring_engine;
#endif
extern const struct io_engine io_threads_engine;

// The engine named "io_uring" or "threads"; "auto": the first of them that can be had, and why not
// the other goes to why (room for size bytes; "" when there is nothing to say).
const struct io_engine *io_choose(const char *name, char *why, int size, struct err *err);
extern const char *const io_names[]; // "auto" and the engines; ends with NULL

// ---- for the engines

// May the block with this number (from 0) still begin?
bool io_may_begin(const struct io_job *job, int64_t number, int64_t now_ns);

// Where it lies, in bytes. rng is the caller's stream of the job's seed.
int64_t io_place(const struct io_job *job, int64_t number, struct rng *rng);

void io_stamp(const struct io_job *job, char *buffer, int64_t number);

// The error of a block: result is what the call returned, or -errno.
int io_error(const struct io_job *job, int64_t result, struct err *err);
