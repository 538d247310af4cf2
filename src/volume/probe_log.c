// Writers of a log that make their blocks durable, sharing flushes where several wait.
//
// Group commit as databases do it, without a pause to collect more: a flush covers the writes that
// had returned before it began. A writer whose write has returned waits for the next flush to begin
// and end; if none is running it does that flush itself, for all who wait. Flushes never overlap,
// so their numbers are enough to know who is covered.
#include "volume/probe_internal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

struct log {
    const struct probe *probe;
    int fd;
    const char *path;
    int64_t n_blocks; // the log begins anew after so many
    int64_t until_ns;
    int64_t max_blocks;

    pthread_mutex_t lock; // of everything below
    pthread_cond_t flush_ended;
    int64_t next;  // block to write
    int64_t begun; // blocks
    bool flushing;
    int64_t flushes_begun, flushes_ended; // equal unless one is running
    struct err err;                       // the first; ends all
};

struct writer {
    struct log *log;
    pthread_t thread;
    char *buffer;
    int64_t blocks;
    struct hist latency;
};

// The next block of the log to write, or -1: it is over.
static int64_t take_block(struct log *log, int64_t now_ns)
{
    int64_t block = -1;

    pthread_mutex_lock(&log->lock);
    if (log->begun < log->max_blocks && (log->begun == 0 || now_ns < log->until_ns) &&
        !log->err.kind && !probe_is_stopped(log->probe)) {
        block = log->next;
        log->next = (log->next + 1) % log->n_blocks;
        log->begun++;
    }
    pthread_mutex_unlock(&log->lock);
    return block;
}

static bool write_block(struct log *log, char *buffer, int64_t block)
{
    int64_t stamp[2] = {block, clock_now_ns(&clock_system)}; // no block is written twice
    ssize_t n;

    memcpy(buffer, stamp, sizeof(stamp));
    do
        n = pwrite(log->fd, buffer, LOG_BLOCK, block * LOG_BLOCK);
    while (n < 0 && errno == EINTR);
    if (n == LOG_BLOCK)
        return true;
    pthread_mutex_lock(&log->lock);
    if (!log->err.kind)
        err_set(&log->err, ERR_FAILED, "writing %s: %s", log->path,
                n < 0 ? strerror(errno) : strerror(ENOSPC));
    pthread_mutex_unlock(&log->lock);
    return false;
}

// Called and left with the lock held.
static void flush(struct log *log)
{
    assert(!log->flushing && log->flushes_begun == log->flushes_ended);
    log->flushing = true;
    log->flushes_begun++;
    pthread_mutex_unlock(&log->lock);
    int why = fdatasync(log->fd) < 0 ? errno : 0;
    pthread_mutex_lock(&log->lock);
    if (why && !log->err.kind)
        err_set(&log->err, ERR_FAILED, "flushing %s: %s", log->path, strerror(why));
    log->flushes_ended = log->flushes_begun;
    log->flushing = false;
    pthread_cond_broadcast(&log->flush_ended);
}

// Returns when a flush that began after this call has ended.
static bool make_durable(struct log *log)
{
    pthread_mutex_lock(&log->lock);
    int64_t covers_us = log->flushes_begun + 1;
    while (log->flushes_ended < covers_us && !log->err.kind) {
        if (log->flushing)
            pthread_cond_wait(&log->flush_ended, &log->lock);
        else
            flush(log);
    }
    bool good = !log->err.kind;
    pthread_mutex_unlock(&log->lock);
    return good;
}

static void *write_log(void *arg)
{
    struct writer *writer = arg;
    struct log *log = writer->log;
    int64_t now_ns = clock_now_ns(&clock_system), block;

    while ((block = take_block(log, now_ns)) >= 0) {
        if (!write_block(log, writer->buffer, block) || !make_durable(log))
            break;
        int64_t end_ns = clock_now_ns(&clock_system);
        writer->blocks++;
        hist_record(&writer->latency, end_ns - now_ns);
        now_ns = end_ns;
    }
    return NULL;
}

static void run_writers(struct log *log, int n, char *buffers, struct probe_slice *slice)
{
    struct writer *writers = mem_calloc((size_t)n, sizeof(*writers));
    int started = 0;

    for (; started < n; started++) {
        struct writer *writer = &writers[started];
        hist_init(&writer->latency);
        writer->log = log;
        writer->buffer = buffers + started * LOG_BLOCK;
        int why = pthread_create(&writer->thread, NULL, write_log, writer);
        if (!why)
            continue;
        pthread_mutex_lock(&log->lock);
        err_set(&log->err, ERR_FAILED, "starting a thread: %s", strerror(why));
        pthread_mutex_unlock(&log->lock);
        break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(writers[i].thread, NULL);
        slice->operations += writers[i].blocks;
        hist_add(slice->latency, &writers[i].latency);
    }
    free(writers);
}

int probe_log_run(struct probe *probe, const struct probe_method *method, struct probe_slice *slice,
                  struct err *err)
{
    struct probe_site *site = &probe->site;
    bool grows = method == &probe_methods[PROBE_APPEND];
    int64_t log_blocks = site->sizes.log_bytes / LOG_BLOCK;
    int64_t grow_blocks = site->sizes.grow_bytes / LOG_BLOCK;
    struct log log = {
        .probe = probe,
        .fd = grows ? site->grow : site->log,
        .path = grows ? site->grow_path : site->log_path,
        .n_blocks = grows ? grow_blocks : log_blocks,
        .max_blocks = slice->max_operations,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .flush_ended = PTHREAD_COND_INITIALIZER,
        .next = grows ? 0 : probe->log_block,
    };

    assert(method->depth >= 1 && method->depth <= IO_DEPTH_MAX);
    // A growing file may grow so far; the slice ends then, and the next one begins with it empty.
    if (grows && log.max_blocks > grow_blocks)
        log.max_blocks = grow_blocks;
    if (grows && (ftruncate(log.fd, 0) < 0 || fsync(log.fd) < 0))
        return err_set(err, ERR_FAILED, "emptying %s: %s", log.path, strerror(errno));
    int64_t start_ns = clock_now_ns(&clock_system);
    log.until_ns = start_ns + slice->for_ns;
    run_writers(&log, method->depth, probe->buffers, slice);
    slice->took_ns = clock_now_ns(&clock_system) - start_ns;
    slice->flushes = log.flushes_ended;
    if (!grows)
        probe->log_block = log.next;
    pthread_mutex_destroy(&log.lock);
    pthread_cond_destroy(&log.flush_ended);
    if (log.err.kind)
        return err_set(err, log.err.kind, "%s", log.err.text);
    return 0;
}
