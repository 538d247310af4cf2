#include "volume/vdisk_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "volume/vdisk_mounts.h"

#define LOOK_MS 100

int vdisk_connection_of(const char *mount_point, struct err *err)
{
    unsigned major_number, minor_number;

    if (vdisk_mount_find(mount_point, &major_number, &minor_number, NULL) <= 0)
        return err_set(err, ERR_FAILED, "%s is not mounted", mount_point);
    return (int)minor_number; // the kernel names a connection by it
}

int vdisk_abort_open(int connection, struct err *err)
{
    char name[64];
    int fd = -1;

    // A mount without a place: nothing to make, nothing to take away.
    int context = fsopen("fusectl", FSOPEN_CLOEXEC);
    if (context >= 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        int tree = fsmount(context, FSMOUNT_CLOEXEC, 0);
        snprintf(name, sizeof(name), "%d/abort", connection);
        if (tree >= 0) {
            fd = openat(tree, name, O_WRONLY | O_CLOEXEC);
            close(tree);
        }
    }
    if (context >= 0)
        close(context);
    if (fd < 0) {
        snprintf(name, sizeof(name), "/sys/fs/fuse/connections/%d/abort", connection);
        fd = open(name, O_WRONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return err_set(err, ERR_FAILED, "cannot open the abort file of FUSE connection %d: %s",
                       connection, strerror(errno));
    return fd;
}

int vdisk_abort(int connection, struct err *err)
{
    int fd = vdisk_abort_open(connection, err);

    if (fd < 0)
        return -1;
    ssize_t n = write(fd, "1", 1);
    int error = n == 1 ? 0 : errno;
    close(fd);
    return error ? err_set(err, ERR_FAILED, "cannot end FUSE connection %d: %s", connection,
                           strerror(error))
                 : 0;
}

static void close_others(int keep)
{
    if (keep > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)keep - 1, 0);
    (void)close_range((unsigned)keep + 1, ~0U, 0);
}

static _Noreturn void guard_main(struct vdisk_watch *watch, int pidfd, int64_t deadline_ns)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    struct pollfd death = {.fd = pidfd, .events = POLLIN};
    int64_t still = 0, allowed = deadline_ns / (LOOK_MS * NS_PER_MS);
    long long seen = -1;
    int abort_fd = -1;

    setsid();
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "prony-vdiskguard");
    close_others(pidfd);
    // The daemon's end is the kernel's business: it ends the connection by itself.
    while (poll(&death, 1, LOOK_MS) <= 0) {
        unsigned connection = atomic_load(&watch->connection);
        if (connection && abort_fd < 0) {
            abort_fd = vdisk_abort_open((int)connection - 1, NULL);
            atomic_store(&watch->is_armed, abort_fd >= 0);
        }
        long long now = atomic_load(&watch->beats);
        still = now == seen ? still + 1 : 0;
        seen = now;
        if (still < allowed)
            continue;
        if (abort_fd >= 0 && write(abort_fd, "1", 1) != 1)
            fprintf(stderr, "guard: cannot end the connection: %s\n", strerror(errno));
        fprintf(stderr, "guard: the daemon hung, so its disks were ended\n");
        (void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        _exit(1);
    }
    _exit(0);
}

struct vdisk_watch *vdisk_watch_start(int64_t deadline_ns, pid_t *ret_guard, struct err *err)
{
    struct vdisk_watch *watch =
        mmap(NULL, sizeof(*watch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pidfd = pidfd_open(getpid(), 0);
    pid_t pid = watch == MAP_FAILED || pidfd < 0 ? -1 : fork();

    if (pid == 0)
        guard_main(watch, pidfd, deadline_ns);
    if (pid < 0) {
        err_set(err, ERR_FAILED, "cannot start the guard: %s", strerror(errno));
        if (watch != MAP_FAILED)
            munmap(watch, sizeof(*watch));
        watch = NULL;
    }
    if (pidfd >= 0)
        close(pidfd);
    *ret_guard = pid;
    return watch;
}
