// Loop devices under virtual disks. Direct I/O, always: else the kernel caches twice, warm reads
// never reach the disk, and what a cut took is still seen.
#include "volume/vdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "volume/vdisk_mounts.h"

#define ATTACH_TRIES 50 // others take loop devices too
#define DETACH_NS    (5 * NS_PER_S)

static bool has_direct_io(int number)
{
    char path[64];
    snprintf(path, sizeof(path), "/sys/block/loop%d/loop/dio", number);
    FILE *file = fopen(path, "re");
    int c = file ? fgetc(file) : EOF;

    if (file)
        fclose(file);
    return c == '1';
}

// 0 attached, 1 somebody else was faster, -1 with err.
static int attach_once(int control_fd, int file_fd, const char *path, int *ret_number,
                       struct err *err)
{
    struct loop_config config = {.fd = (uint32_t)file_fd, .info = {.lo_flags = LO_FLAGS_DIRECT_IO}};
    char device[VDISK_DEVICE_MAX];
    int number = ioctl(control_fd, LOOP_CTL_GET_FREE);

    if (number < 0)
        return err_set(err, ERR_FAILED, "there is no free loop device: %s", strerror(errno));
    snprintf(device, sizeof(device), "/dev/loop%d", number);
    int fd = open(device, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_FAILED, "cannot open %s: %s", device, strerror(errno));
    snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", path);
    int status = ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
    if (status == 0 && !has_direct_io(number)) {
        (void)ioctl(fd, LOOP_CLR_FD, 0);
        close(fd);
        return err_set(err, ERR_ABSENT, "the loop devices of this kernel do no direct I/O");
    }
    close(fd);
    if (status == -EBUSY)
        return 1;
    if (status < 0)
        return err_set(err, ERR_FAILED, "cannot attach %s to %s: %s", path, device,
                       strerror(-status));
    *ret_number = number;
    return 0;
}

int vdisk_attach(const char *dir, const char *name, char *device, struct err *err)
{
    char *path = mem_printf("%s/disks/%s", dir, name);
    int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int file_fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
    int status = -1, number = vdisk_loop_of(path);

    if (control_fd < 0) {
        err_set(err, ERR_ABSENT, "cannot open /dev/loop-control: %s", strerror(errno));
    } else if (file_fd < 0) {
        err_set(err, ERR_FAILED, "cannot open the disk %s: %s", path, strerror(errno));
    } else if (number >= 0) {
        err_set(err, ERR_USAGE, "the disk %s is attached already, to /dev/loop%d", name, number);
    } else {
        status = 1;
        for (int i = 0; i < ATTACH_TRIES && status == 1; i++)
            status = attach_once(control_fd, file_fd, path, &number, err);
        if (status == 1)
            err_set(err, ERR_FAILED, "no loop device stayed free long enough");
    }
    if (status == 0)
        snprintf(device, VDISK_DEVICE_MAX, "/dev/loop%d", number);
    if (control_fd >= 0)
        close(control_fd);
    if (file_fd >= 0)
        close(file_fd);
    free(path);
    return status == 0 ? 0 : -1;
}

bool vdisk_device(const char *dir, const char *name, char *device)
{
    char *path = mem_printf("%s/disks/%s", dir, name);
    int number = vdisk_loop_of(path);

    free(path);
    if (number >= 0)
        snprintf(device, VDISK_DEVICE_MAX, "/dev/loop%d", number);
    return number >= 0;
}

// A kernel that finds the device open elsewhere says yes and detaches it later: so wait and see.
static int detach_number(int number, const char *path, struct err *err)
{
    int64_t end_ns = clock_now_ns(&clock_system) + DETACH_NS;
    char device[VDISK_DEVICE_MAX];
    struct str point = STR_INIT;

    snprintf(device, sizeof(device), "/dev/loop%d", number);
    if (vdisk_loop_mount(number, &point)) {
        err_set(err, ERR_FAILED, "%s is mounted on %s: unmount it first", device, point.buf);
        str_release(&point);
        return -1;
    }
    str_release(&point);
    // While it is open nobody can give the number to another file, so that is looked at again.
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    int status = fd < 0 ? -errno : 0;
    if (fd >= 0 && vdisk_loop_of(path) == number && ioctl(fd, LOOP_CLR_FD, 0) < 0)
        status = -errno;
    if (fd >= 0)
        close(fd);
    if (status < 0 && status != -ENXIO)
        return err_set(err, ERR_FAILED, "cannot detach %s: %s", device, strerror(-status));
    while (vdisk_loop_of(path) == number) {
        if (clock_now_ns(&clock_system) > end_ns)
            return err_set(err, ERR_FAILED, "%s is still in use", device);
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 10 * NS_PER_MS);
    }
    return 0;
}

int vdisk_detach(const char *dir, const char *name, struct err *err)
{
    char *path = mem_printf("%s/disks/%s", dir, name);
    int number = vdisk_loop_of(path);
    int status = number < 0 ? 0 : detach_number(number, path, err);

    free(path);
    return status;
}
