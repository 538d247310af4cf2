// New files in one directory. They are removed after the slice, outside its time.
#include "volume/probe_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define FILES_MAX 20000 // in one slice: removing them takes time as well

static const char *name_of(int64_t number, char name[32])
{
    snprintf(name, 32, "f%" PRId64, number);
    return name;
}

static int make_one(const struct probe_site *site, int64_t number, struct err *err)
{
    char name[32];
    int fd =
        openat(site->files, name_of(number, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_set(err, ERR_FAILED, "making %s/%s: %s", site->files_path, name,
                       strerror(errno));
    close(fd);
    return 0;
}

static int sync_directory(const struct probe_site *site, struct err *err)
{
    // A file system that has no fsync for directories says EINVAL.
    if (fsync(site->files) < 0 && errno != EINVAL)
        return err_set(err, ERR_FAILED, "syncing %s: %s", site->files_path, strerror(errno));
    return 0;
}

static void remove_files(struct probe_site *site, int64_t from, int64_t to)
{
    char name[32];

    for (int64_t number = from; number < to; number++)
        unlinkat(site->files, name_of(number, name), 0); // what stays goes with the directory
}

int probe_create_run(struct probe *probe, const struct probe_method *method,
                     struct probe_slice *slice, struct err *err)
{
    struct probe_site *site = &probe->site;
    int64_t start_ns = clock_now_ns(&clock_system), now_ns = start_ns;
    int64_t first = probe->files_made;

    assert(method->depth == 1);
    while (slice->operations < slice->max_operations && slice->operations < FILES_MAX &&
           (slice->operations == 0 || now_ns - start_ns < slice->for_ns) &&
           !probe_is_stopped(probe)) {
        if (make_one(site, probe->files_made, err) < 0)
            return -1;
        probe->files_made++;
        slice->operations++;
        int64_t end_ns = clock_now_ns(&clock_system);
        hist_record(slice->latency, end_ns - now_ns);
        now_ns = end_ns;
    }
    if (sync_directory(site, err) < 0)
        return -1;
    slice->flushes = 1;
    slice->took_ns = clock_now_ns(&clock_system) - start_ns;
    remove_files(site, first, probe->files_made);
    return sync_directory(site, err); // so that nobody else's slice pays for it
}
