// Blocks by threads: each does one after the other with pread and pwrite, so as many are under way
// as there are threads.
#include "volume/io.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

struct crew {
    const struct io_job *job;
    atomic_int_fast64_t begun;
    atomic_bool failed;
};

struct hand {
    struct crew *crew;
    pthread_t thread;
    int slot;
    int64_t blocks;
    struct hist latency;
    struct err err;
};

static int threads_check(struct err *err)
{
    (void)err;
    return 0;
}

static int64_t transfer(const struct io_job *job, char *buffer, int64_t place)
{
    ssize_t n;

    do
        n = job->write ? pwrite(job->fd, buffer, (size_t)job->block_bytes, place)
                       : pread(job->fd, buffer, (size_t)job->block_bytes, place);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static void *work(void *arg)
{
    struct hand *hand = arg;
    struct crew *crew = hand->crew;
    const struct io_job *job = crew->job;
    char *buffer = job->buffers + hand->slot * job->block_bytes;
    struct rng rng;

    rng_init(&rng, job->seed, (uint64_t)hand->slot, RNG_PROBE);
    int64_t now_ns = clock_now_ns(&clock_system);
    while (!crew->failed) {
        int64_t number = atomic_fetch_add(&crew->begun, 1);
        if (!io_may_begin(job, number, now_ns))
            break;
        if (job->write)
            io_stamp(job, buffer, number);
        int64_t n = transfer(job, buffer, io_place(job, number, &rng));
        if (n != job->block_bytes) {
            io_error(job, n, &hand->err);
            crew->failed = true;
            break;
        }
        int64_t end_ns = clock_now_ns(&clock_system);
        hand->blocks++;
        hist_record(&hand->latency, end_ns - now_ns);
        now_ns = end_ns;
    }
    return NULL;
}

static int threads_run(const struct io_job *job, struct io_count *count, struct err *err)
{
    struct crew crew = {.job = job};
    struct hand *hands = mem_calloc((size_t)job->depth, sizeof(*hands));
    int started = 0, rc = 0;

    assert(job->depth >= 1 && job->depth <= IO_DEPTH_MAX && job->n_blocks > 0);
    for (; started < job->depth; started++) {
        struct hand *hand = &hands[started];
        hist_init(&hand->latency);
        hand->crew = &crew;
        hand->slot = started;
        int why = pthread_create(&hand->thread, NULL, work, hand);
        if (why) {
            rc = err_set(err, ERR_FAILED, "starting a thread: %s", strerror(why));
            crew.failed = true;
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        struct hand *hand = &hands[i];
        pthread_join(hand->thread, NULL);
        count->blocks += hand->blocks;
        hist_add(count->latency, &hand->latency);
        if (hand->err.kind && rc == 0)
            rc = err_set(err, hand->err.kind, "%s", hand->err.text);
    }
    free(hands);
    return rc;
}

const struct io_engine io_threads_engine = {
    .name = "threads",
    .check = threads_check,
    .run = threads_run,
};
