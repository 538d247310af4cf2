// What the engines share: which block is next, where it lies, and what its error says.
#include "volume/io.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arr.h"

const char *const io_names[] = {"auto", "io_uring", "threads", NULL};

// Best first.
static const struct io_engine *const engines[] = {
#ifdef HAVE_URING
    &io_uring_engine,
#endif
    &io_threads_engine,
};

const struct io_engine *io_choose(const char *name, char *why, int size, struct err *err)
{
    bool any = strcmp(name, "auto") == 0;

    why[0] = '\0';
#ifndef HAVE_URING
    if (any)
        snprintf(why, (size_t)size, "prony was built without io_uring");
#endif
    for (size_t i = 0; i < ARR_LEN(engines); i++) {
        struct err reason = ERR_INIT;
        if (!any && strcmp(engines[i]->name, name) != 0)
            continue;
        if (engines[i]->check(&reason) == 0)
            return engines[i];
        if (!any) {
            err_set(err, ERR_ABSENT, "%s", reason.text);
            return NULL;
        }
        snprintf(why, (size_t)size, "%s", reason.text);
    }
    err_set(err, ERR_ABSENT, "prony was built without %s", name);
    return NULL;
}

bool io_may_begin(const struct io_job *job, int64_t number, int64_t now_ns)
{
    return number < job->max_blocks && (number == 0 || now_ns < job->until_ns) &&
           !(job->stop && *job->stop);
}

int64_t io_place(const struct io_job *job, int64_t number, struct rng *rng)
{
    int64_t block = job->random ? rng_range(rng, 0, job->n_blocks - 1)
                                : (job->first_block + number) % job->n_blocks;

    assert(block >= 0 && block < job->n_blocks);
    return block * job->block_bytes;
}

void io_stamp(const struct io_job *job, char *buffer, int64_t number)
{
    for (int64_t at = 0; at < job->block_bytes; at += IO_ALIGN) {
        uint64_t stamp[2] = {job->seed + (uint64_t)number, (uint64_t)at};
        memcpy(buffer + at, stamp, sizeof(stamp));
    }
}

int io_error(const struct io_job *job, int64_t result, struct err *err)
{
    const char *what = job->write ? "writing" : "reading";

    if (result < 0)
        return err_set(err, ERR_FAILED, "%s %s: %s", what, job->path, strerror((int)-result));
    return err_set(err, ERR_FAILED, "%s %s: only %lld of %lld bytes", what, job->path,
                   (long long)result, (long long)job->block_bytes);
}
