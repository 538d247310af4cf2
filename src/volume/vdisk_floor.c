// What the path itself takes: loop device, FUSE, the daemon and back.
#include "volume/vdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "volume/vdisk_control.h"

#define SCRATCH_BYTES (1 << 20)
#define DELAY_NS      NS_PER_MS
#define ROUNDS        100
#define WARM_UP       40 // the daemon learns what waking takes

// On a quiet machine it is close to the median; on a busy one the others had to wait for a
// processor, which is no property of the path.
#define FLOOR_PART 10

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int one_request(int fd, enum vdisk_op op, int64_t offset, void *block)
{
    ssize_t n = VDISK_BLOCK;

    if (op == VDISK_READ)
        n = pread(fd, block, VDISK_BLOCK, offset);
    else if (op == VDISK_WRITE)
        n = pwrite(fd, block, VDISK_BLOCK, offset);
    else if (fsync(fd) < 0)
        return -errno;
    return n == VDISK_BLOCK ? 0 : n < 0 ? -errno : -EIO;
}

// Times single requests on a device that takes DELAY_NS for each.
static int time_requests(const char *device, int64_t ret_floor_ns[VDISK_OPS], struct err *err)
{
    int64_t taken_ns[VDISK_FLUSH + 1][ROUNDS];
    void *block = NULL;
    int error = 0;
    int fd = open(device, O_RDWR | O_DIRECT | O_CLOEXEC);

    if (fd < 0)
        error = -errno;
    if (posix_memalign(&block, VDISK_BLOCK, VDISK_BLOCK) != 0)
        abort();
    memset(block, 0, VDISK_BLOCK);
    for (int i = -WARM_UP; i < ROUNDS && error == 0; i++) {
        int64_t offset = (i + WARM_UP) % (SCRATCH_BYTES / VDISK_BLOCK) * VDISK_BLOCK;
        for (int op = VDISK_READ; op <= VDISK_FLUSH && error == 0; op++) {
            int64_t start_ns = clock_now_ns(&clock_system);
            error = one_request(fd, (enum vdisk_op)op, offset, block);
            if (i >= 0)
                taken_ns[op][i] = clock_now_ns(&clock_system) - start_ns - DELAY_NS;
        }
    }
    if (fd >= 0)
        close(fd);
    free(block);
    if (error < 0)
        return err_set(err, ERR_FAILED, "cannot measure the path of %s: %s", device,
                       strerror(-error));
    for (int op = VDISK_READ; op <= VDISK_FLUSH; op++) {
        qsort(taken_ns[op], ROUNDS, sizeof(int64_t), by_value);
        int64_t floor_ns = taken_ns[op][ROUNDS / FLOOR_PART];
        ret_floor_ns[op] = floor_ns > 1 ? floor_ns : 1; // 0 is: not known
    }
    return 0;
}

// What the daemon was told for a disk that it has already.
static bool is_known(const char *dir, int64_t ret_floor_ns[VDISK_OPS])
{
    static const char *const keys[] = {"\nfloor_read_ns ", "\nfloor_write_ns ",
                                       "\nfloor_flush_ns "};
    struct str answer = STR_INIT;
    struct err none = ERR_INIT;
    bool known = vdisk_command(dir, "stats", 0, &answer, NULL, &none) == 0;

    for (int op = VDISK_READ; op <= VDISK_FLUSH && known; op++) {
        const char *line = strstr(answer.buf, keys[op]);
        ret_floor_ns[op] = line ? strtoll(line + strlen(keys[op]), NULL, 10) : 0;
        known = ret_floor_ns[op] > 0;
    }
    str_release(&answer);
    return known;
}

int vdisk_measure_floor(const char *dir, int64_t ret_floor_ns[VDISK_OPS], struct err *err)
{
    static const char name[] = VDISK_FLOOR_NAME;
    char device[VDISK_DEVICE_MAX];
    struct err second = ERR_INIT;
    struct vdisk_spec spec;

    memset(ret_floor_ns, 0, VDISK_OPS * sizeof(*ret_floor_ns));
    if (is_known(dir, ret_floor_ns))
        return 0;
    vdisk_spec_init(&spec);
    spec.size = SCRATCH_BYTES;
    spec.delay_ns = DELAY_NS;
    if (vdisk_add(dir, name, &spec, device, err) < 0)
        return -1;
    // What this process waits for a processor is not the path's.
    struct sched_param first = {.sched_priority = 1}, usual = {0};
    bool is_first = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
    int status = time_requests(device, ret_floor_ns, err);
    if (is_first)
        (void)sched_setscheduler(0, SCHED_OTHER, &usual);
    if (vdisk_remove(dir, name, status < 0 ? &second : err) < 0)
        status = -1;
    return status;
}

int vdisk_check_floor(const struct vdisk_spec *spec, const int64_t floor_ns[VDISK_OPS],
                      struct str *marks, struct err *err)
{
    static const char *const names[] = {"read", "write", "flush"};
    const char *model = vdisk_model_names[spec->model_index];
    const struct vdisk_model_spec *preset = vdisk_model_find(model);

    for (int op = VDISK_READ; op <= VDISK_FLUSH; op++) {
        int64_t claim_ns = vdisk_model_claim_ns(&spec->model, (enum vdisk_op)op);
        char claim[UNITS_MAX], least[UNITS_MAX];
        if (claim_ns == 0 || claim_ns >= VDISK_FLOOR_TIMES * floor_ns[op])
            continue;
        units_format_duration(claim_ns, claim);
        units_format_duration(VDISK_FLOOR_TIMES * floor_ns[op], least);
        bool is_own = claim_ns != vdisk_model_claim_ns(preset, (enum vdisk_op)op);
        if (is_own && !spec->near_floor)
            return err_set(err, ERR_USAGE,
                           "%s %s: the path takes so long itself that only from %s on a model is "
                           "true; near-floor=yes keeps it",
                           names[op], claim, least);
        str_addf(marks, "%s %s%s%s is below %d times the floor (%s): not exact\n", names[op], claim,
                 is_own ? "" : " of ", is_own ? "" : model, VDISK_FLOOR_TIMES, least);
    }
    return 0;
}

int vdisk_set_floor(const char *dir, const char *name, const int64_t floor_ns[VDISK_OPS],
                    struct err *err)
{
    char *command = mem_printf("floor %s %" PRId64 " %" PRId64 " %" PRId64, name,
                               floor_ns[VDISK_READ], floor_ns[VDISK_WRITE], floor_ns[VDISK_FLUSH]);
    int status = vdisk_command(dir, command, 0, NULL, NULL, err);

    free(command);
    return status;
}
