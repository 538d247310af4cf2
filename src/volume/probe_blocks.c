// Blocks of the data file, at random places or one after the other.
#include "volume/probe_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

// Only matters where blocks go through the page cache: then reads should find it empty, and read no
// more than was asked for.
static void empty_cache(const struct probe_site *site, bool random)
{
    if (!site->through_cache[0])
        return;
    (void)posix_fadvise(site->data, 0, 0, POSIX_FADV_DONTNEED);
    (void)posix_fadvise(site->data, 0, 0, random ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
}

int probe_blocks_run(struct probe *probe, const struct probe_method *method,
                     struct probe_slice *slice, struct err *err)
{
    struct probe_site *site = &probe->site;
    struct io_count count = {.latency = slice->latency};

    assert(site->file_bytes >= method->block_bytes * method->depth);
    if (!method->write)
        empty_cache(site, method->random);
    int64_t start_ns = clock_now_ns(&clock_system);
    struct io_job job = {
        .fd = site->data,
        .path = site->data_path,
        .write = method->write,
        .random = method->random,
        .block_bytes = method->block_bytes,
        .n_blocks = site->file_bytes / method->block_bytes,
        .first_block = probe->along_block,
        .depth = method->depth,
        .seed = rng_u64(&probe->rng),
        .until_ns = start_ns + slice->for_ns,
        .max_blocks = slice->max_operations,
        .stop = probe->wish->stop,
        .buffers = probe->buffers,
    };
    if (probe->io->run(&job, &count, err) < 0)
        return -1;
    if (method->write) {
        if (fdatasync(site->data) < 0)
            return err_set(err, ERR_FAILED, "flushing %s: %s", site->data_path, strerror(errno));
        slice->flushes = 1;
    }
    slice->took_ns = clock_now_ns(&clock_system) - start_ns;
    slice->operations = count.blocks;
    if (!method->random)
        probe->along_block = (probe->along_block + count.blocks) % job.n_blocks;
    return 0;
}
