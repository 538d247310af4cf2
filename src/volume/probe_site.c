// The private directory of a probe and the files in it.
#include "volume/probe_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

// ---- the directory

static int check_directory(const char *dir, struct err *err)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return err_set(err, ERR_USAGE, "%s: %s; name a directory on the storage to probe", dir,
                       strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE,
                       "%s is not a directory: name one on the storage to probe, files are made in "
                       "it and removed",
                       dir);
    return 0;
}

static int plan_sizes(struct probe *probe, const char *dir, struct err *err)
{
    struct statvfs vfs;

    if (statvfs(dir, &vfs) < 0)
        return err_set(err, ERR_USAGE, "%s: %s", dir, strerror(errno));
    // Where the file system tells no size (ramfs), what does not fit is found out while writing.
    int64_t free_bytes = vfs.f_blocks ? (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize : INT64_MAX;
    if (probe_plan_sizes(free_bytes, probe->wish->bytes, &probe->site.sizes, err) < 0)
        return err_prefix(err, "%s", dir);
    return 0;
}

// Listed before it is there; its name is long and random, so that nobody else has it.
static int make_directory(struct probe *probe, const char *dir, struct err *err)
{
    struct probe_site *site = &probe->site;

    site->dir = mem_printf("%s/.prony-probe-%016llx", strcmp(dir, "/") == 0 ? "" : dir,
                           (unsigned long long)rng_u64(&probe->rng));
    site->leftover = leftovers_add_tree(probe->wish->leftovers, site->dir, err);
    if (site->leftover < 0)
        return -1;
    if (mkdir(site->dir, 0700) == 0)
        return 0;
    err_set(err, ERR_USAGE, "nothing can be made in %s: %s", dir, strerror(errno));
    leftovers_drop(probe->wish->leftovers, site->leftover);
    site->leftover = -1;
    return -1;
}

static int open_file(const struct probe_site *site, const char *name, int flags, char **ret_path,
                     struct err *err)
{
    *ret_path = mem_printf("%s/%s", site->dir, name);
    int fd = open(*ret_path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        err_set(err, ERR_FAILED, "making %s: %s", *ret_path, strerror(errno));
    return fd;
}

// O_DIRECT is refused at open; the file may be there all the same.
static int open_data(struct probe_site *site, struct err *err)
{
    struct err ignored = ERR_INIT;

    site->data = open_file(site, "data", O_DIRECT, &site->data_path, &ignored);
    if (site->data >= 0)
        return 0;
    free(site->data_path);
    snprintf(site->through_cache, CACHE_WHY_MAX, "the file system refuses O_DIRECT");
    site->data = open_file(site, "data", 0, &site->data_path, err);
    return site->data;
}

static int open_files_directory(struct probe_site *site, struct err *err)
{
    site->files_path = mem_printf("%s/files", site->dir);
    if (mkdir(site->files_path, 0700) == 0)
        site->files = open(site->files_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (site->files < 0)
        return err_set(err, ERR_FAILED, "making %s: %s", site->files_path, strerror(errno));
    return 0;
}

int probe_site_open(struct probe *probe, struct err *err)
{
    struct probe_site *site = &probe->site;
    const char *dir = probe->wish->dir;

    assert(dir[0] == '/');
    site->data = site->log = site->grow = site->files = site->leftover = -1;
    if (check_directory(dir, err) < 0 || plan_sizes(probe, dir, err) < 0 ||
        make_directory(probe, dir, err) < 0)
        return -1;
    if (open_data(site, err) < 0 || open_files_directory(site, err) < 0)
        return -1;
    site->log = open_file(site, "log", 0, &site->log_path, err);
    site->grow = site->log < 0 ? -1 : open_file(site, "grow", 0, &site->grow_path, err);
    return site->grow < 0 ? -1 : 0;
}

void probe_site_close(struct probe *probe)
{
    struct probe_site *site = &probe->site;
    const int fds[] = {site->data, site->log, site->grow, site->files};
    char *const paths[] = {site->dir, site->data_path, site->log_path, site->grow_path,
                           site->files_path};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (site->leftover >= 0)
        leftovers_undo(probe->wish->leftovers, site->leftover, NULL);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        free(paths[i]);
}

// ---- the files

static int fill_log(struct probe *probe, struct err *err)
{
    struct probe_site *site = &probe->site;

    for (int64_t at = 0; at < site->sizes.log_bytes; at += LOG_BLOCK) {
        // Each time other bytes of the buffers; whole pages of them do not matter here.
        const char *bytes = probe->buffers + (at / LOG_BLOCK * 512) % (IO_DEPTH_MAX * 512);
        ssize_t n = pwrite(site->log, bytes, LOG_BLOCK, at);
        if (n != LOG_BLOCK)
            return err_set(err, ERR_FAILED, "writing %s: %s", site->log_path,
                           strerror(n < 0 ? errno : ENOSPC));
    }
    if (fsync(site->log) < 0)
        return err_set(err, ERR_FAILED, "flushing %s: %s", site->log_path, strerror(errno));
    return 0;
}

static int fill_data(struct probe *probe, int64_t until_ns, struct err *err)
{
    struct probe_site *site = &probe->site;
    struct io_count count = {.latency = mem_calloc(1, sizeof(struct hist))};
    const int64_t n_blocks = site->sizes.data_bytes / ALONG_BLOCK;
    // With less than the least nothing can be measured: that much is written however long it takes.
    struct io_job job = {
        .fd = site->data,
        .path = site->data_path,
        .write = true,
        .block_bytes = ALONG_BLOCK,
        .n_blocks = n_blocks,
        .depth = 4,
        .seed = rng_u64(&probe->rng),
        .until_ns = INT64_MAX,
        .max_blocks = PROBE_LEAST_BLOCKS,
        .stop = probe->wish->stop,
        .buffers = probe->buffers,
    };

    // Room is told to be missing at once, where the file system can promise it.
    if (fallocate(site->data, 0, 0, site->sizes.data_bytes) < 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        free(count.latency);
        return err_set(err, ERR_FAILED, "making %s: %s", site->data_path, strerror(errno));
    }
    hist_init(count.latency);
    int rc = probe->io->run(&job, &count, err);
    job.first_block = job.max_blocks;
    job.max_blocks = n_blocks - job.first_block;
    job.until_ns = until_ns;
    if (rc == 0 && job.max_blocks > 0 && clock_now_ns(&clock_system) < until_ns)
        rc = probe->io->run(&job, &count, err);
    free(count.latency); // nobody asks
    if (rc < 0)
        return -1;
    // Blocks are begun in order and all that were begun are there.
    site->file_bytes = count.blocks * ALONG_BLOCK;
    if (ftruncate(site->data, site->file_bytes) < 0 || fsync(site->data) < 0)
        return err_set(err, ERR_FAILED, "flushing %s: %s", site->data_path, strerror(errno));
    return 0;
}

// The share of the file's pages that the page cache holds; 0 when it cannot be told.
static double cached_share(const struct probe_site *site)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t n = (size_t)site->file_bytes / page, held = 0;
    void *map = mmap(NULL, (size_t)site->file_bytes, PROT_READ, MAP_SHARED, site->data, 0);
    unsigned char *pages = mem_calloc(n, 1);

    if (map != MAP_FAILED && mincore(map, (size_t)site->file_bytes, pages) == 0)
        for (size_t i = 0; i < n; i++)
            held += pages[i] & 1;
    if (map != MAP_FAILED)
        munmap(map, (size_t)site->file_bytes);
    free(pages);
    return (double)held / (double)n;
}

// A file system may accept O_DIRECT and go through the page cache all the same: tmpfs has nothing
// else, ext4 with data=journal and btrfs with compression do. Then what was read lies there.
static int look_for_cached_pages(struct probe *probe, struct err *err)
{
    struct probe_site *site = &probe->site;
    const int64_t at = 0, bytes = 8 * ALONG_BLOCK;

    (void)posix_fadvise(site->data, 0, 0, POSIX_FADV_DONTNEED);
    for (int64_t i = at; i < bytes; i += ALONG_BLOCK)
        if (pread(site->data, probe->buffers, ALONG_BLOCK, i) != ALONG_BLOCK)
            return err_set(err, ERR_FAILED, "reading %s: %s", site->data_path, strerror(errno));
    if (cached_share(site) * (double)site->file_bytes > (double)bytes / 2)
        snprintf(site->through_cache, CACHE_WHY_MAX,
                 "the file system accepts O_DIRECT and caches all the same");
    return 0;
}

int probe_site_lay_out(struct probe *probe, int64_t until_ns, struct err *err)
{
    struct probe_site *site = &probe->site;

    if (fill_log(probe, err) < 0 || fill_data(probe, until_ns, err) < 0)
        return -1;
    if (probe_is_stopped(probe))
        return err_set(err, ERR_FAILED, "interrupted before anything was measured");
    assert(site->file_bytes >= PROBE_LEAST_BLOCKS * ALONG_BLOCK);
    return site->through_cache[0] ? 0 : look_for_cached_pages(probe, err);
}
