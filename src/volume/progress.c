#include "volume/progress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "volume/volume.h"

#define SECTOR   512
#define PAUSE_NS (5 * NS_PER_S)

struct progress {
    const struct volume_wish *wish;
    char name[32]; // of the device, as the user knows it
    dev_t device;
    int64_t bytes;      // of the device
    int64_t begun;      // its count then
    int64_t next_ns;    // when to tell again
    int64_t started_ns; // by the same clock
};

// Bytes read and written since the machine was started; -1: unknown.
static int64_t count(dev_t device)
{
    char *path = mem_printf("/sys/dev/block/%u:%u/stat", major(device), minor(device));
    FILE *file = fopen(path, "re");
    int64_t read_sectors, written_sectors, bytes = -1;

    if (file && fscanf(file, "%*u %*u %" SCNd64 " %*u %*u %*u %" SCNd64, &read_sectors,
                       &written_sectors) == 2)
        bytes = (read_sectors + written_sectors) * SECTOR;
    if (file)
        fclose(file);
    free(path);
    return bytes;
}

struct progress *progress_begin(const char *device, const struct volume_wish *wish)
{
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int64_t bytes = fd >= 0 && fstat(fd, &st) == 0 ? lseek(fd, 0, SEEK_END) : -1;
    struct progress *progress = NULL;

    if (fd >= 0)
        close(fd);
    if (bytes > 0 && count(st.st_rdev) >= 0) {
        progress = mem_calloc(1, sizeof(*progress));
        progress->wish = wish;
        progress->device = st.st_rdev;
        progress->bytes = bytes;
        progress->begun = count(st.st_rdev);
        progress->started_ns = clock_now_ns(&clock_system);
        progress->next_ns = progress->started_ns + PAUSE_NS;
        snprintf(progress->name, sizeof(progress->name), "%s", device);
    }
    return progress;
}

void progress_tell(struct progress *progress)
{
    int64_t now_ns = clock_now_ns(&clock_system);
    char moved[UNITS_MAX], all[UNITS_MAX], rate[UNITS_MAX];

    if (now_ns < progress->next_ns)
        return;
    progress->next_ns = now_ns + PAUSE_NS;
    int64_t bytes = count(progress->device) - progress->begun;
    double seconds = (double)(now_ns - progress->started_ns) / NS_PER_S;
    char *line =
        mem_printf("  %s: %s of %s, %s/s", progress->name, units_format_bytes(bytes, moved),
                   units_format_bytes(progress->bytes, all),
                   units_format_bytes((int64_t)((double)bytes / seconds), rate));
    progress->wish->progress(progress->wish->arg, line);
    free(line);
}
