// ZFS comes as a module of the kernel or, in Debian's package zfs-fuse, as a daemon. Both are
// driven by the same commands.
//
// The daemon is one per machine. One that the user runs is used as it is. Else the first volume
// starts it and the last one stops it: each leaves a file in DIR while it is up, and all this is
// done under a lock. Its pools are in no cache file (zfs.c), so it forgets them when it is killed.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/tree.h"
#include "volume/fs.h"
#include "volume/zfs.h"

#define DEVICE "/dev/zfs"
#define SOCKET "/var/run/zfs/zfs_socket"
#define CACHE  "/var/lib/zfs/zpool.cache"

#define DIR_PATH    "/run/prony-zfs-fuse"
#define LOCK_PATH   DIR_PATH ".lock" // stays, for one who waits holds it open
#define PID_PATH    DIR_PATH "/pid"  // pid and start time of the daemon that prony started
#define LOG_PATH    DIR_PATH "/log"
#define USER_PREFIX "user-"

#define START_NS (30 * NS_PER_S)
#define STOP_NS  (20 * NS_PER_S)
#define PAUSE_NS (20 * NS_PER_MS)

// ---- what is here

int zfs_find(enum zfs_kind *ret, struct err *err)
{
    if (!fs_is_installed("zpool") || !fs_is_installed("zfs"))
        return err_set(err, ERR_ABSENT,
                       "zpool is not installed: install the package zfs-fuse, or zfsutils-linux "
                       "and the kernel module zfs");
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT,
                       "only root may make a pool or dataset: use sudo, or dir:PATH");
    if (access(DEVICE, F_OK) == 0) {
        *ret = ZFS_KERNEL;
        return 0;
    }
    if (!fs_is_installed("zfs-fuse"))
        return err_set(err, ERR_ABSENT,
                       "the kernel has no ZFS (there is no " DEVICE "): load the module zfs, or "
                       "install the package zfs-fuse");
    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return err_set(err, ERR_ABSENT, "ZFS is zfs-fuse here, which needs /dev/fuse: %s",
                       strerror(errno));
    *ret = ZFS_FUSE;
    return 0;
}

const char *zfs_control(enum zfs_kind kind)
{
    return kind == ZFS_KERNEL ? DEVICE : SOCKET;
}

static bool is_running(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool running = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0)
        close(fd);
    return running;
}

// ---- of a plan

int zfs_fuse_plan(struct plan_of_volume *plan, const char *name, struct err *err)
{
    struct stat st;

    if (!is_running() && stat(CACHE, &st) == 0 && st.st_size > 0)
        return err_set(
            err, ERR_USAGE,
            "zfs-fuse does not run, and it would open the pools that are listed in " CACHE
            ": start it yourself first (service zfs-fuse start)");
    char *self = proc_own_program();
    struct plan_step *step = plan_command(plan, self, "volume", "zfs-fuse", "up", name, NULL);
    plan_undo(step, PLAN_COMMAND, self, "volume", "zfs-fuse", "down", name, NULL);
    free(self);
    return 0;
}

// ---- the daemon

static int lock(struct err *err)
{
    int fd = open(LOCK_PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd >= 0 && flock(fd, LOCK_EX) == 0)
        return fd;
    err_set(err, ERR_FAILED, "%s: %s", LOCK_PATH, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int write_file(const char *path, const char *text, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t len = strlen(text);

    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    else
        len = 0;
    if (fd >= 0)
        close(fd);
    return len ? -1 : 0;
}

struct daemon_id {
    pid_t pid;
    uint64_t ticks;
};

static int write_daemon(void *arg, pid_t pid, struct err *err)
{
    struct daemon_id *id = arg;

    *id = (struct daemon_id){pid, proc_start_ticks(pid)};
    char *text = mem_printf("%d %" PRIu64 "\n", (int)pid, id->ticks);
    int rc = write_file(PID_PATH, text, err);
    free(text);
    return rc;
}

static bool read_daemon(struct daemon_id *ret)
{
    FILE *file = fopen(PID_PATH, "re");
    char line[64] = "", *end;

    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    ret->pid = (pid_t)strtol(line, &end, 10);
    ret->ticks = strtoull(end, NULL, 10);
    return ret->pid > 0 && proc_is_alive(ret->pid, ret->ticks);
}

// What the daemon said, on one line.
static int say_ended(struct err *err)
{
    FILE *file = fopen(LOG_PATH, "re");
    char line[200] = "";

    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return err_set(err, ERR_FAILED, "zfs-fuse ended before it was ready%s%s", line[0] ? ": " : "",
                   line);
}

static int start(struct err *err)
{
    char *argv[] = {"zfs-fuse", "--no-daemon", "--no-kstat-mount", NULL};
    int64_t until_ns = clock_now_ns(&clock_system) + START_NS;
    struct daemon_id id = {0};
    struct proc_as as = {.enter = write_daemon, .arg = &id};

    (void)mkdir("/var/run/zfs", 0755);
    (void)mkdir("/var/lock/zfs", 0755);
    if (proc_start_as(argv, LOG_PATH, false, &as, err) < 0)
        return -1;
    while (!is_running()) {
        if (!proc_is_alive(id.pid, id.ticks))
            return say_ended(err);
        if (clock_now_ns(&clock_system) > until_ns)
            return err_set(err, ERR_FAILED, "zfs-fuse was not ready in time");
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + PAUSE_NS);
    }
    return 0;
}

int zfs_fuse_up(const char *name, struct err *err)
{
    char *user = mem_printf("%s/" USER_PREFIX "%s", DIR_PATH, name);
    int lock_fd = lock(err), rc = lock_fd < 0 ? -1 : 0;

    if (rc == 0 && mkdir(DIR_PATH, 0700) < 0 && errno != EEXIST)
        rc = err_set(err, ERR_FAILED, "%s: %s", DIR_PATH, strerror(errno));
    if (rc == 0)
        rc = write_file(user, "", err);
    if (rc == 0 && !is_running())
        rc = start(err);
    if (lock_fd >= 0)
        close(lock_fd);
    free(user);
    return rc;
}

static bool has_users(void)
{
    DIR *dir = opendir(DIR_PATH);
    bool found = false;

    for (struct dirent *entry; dir && !found && (entry = readdir(dir));)
        found = strncmp(entry->d_name, USER_PREFIX, strlen(USER_PREFIX)) == 0;
    if (dir)
        closedir(dir);
    return found;
}

// Somebody may have made a pool of his own meanwhile.
static bool has_pools(void)
{
    char *argv[] = {"zpool", "list", "-H", "-o", "name", NULL};
    struct proc_result result;
    bool has = is_running() && proc_run(argv, STOP_NS, &result, NULL) == 0;

    if (has) {
        has = result.status == 0 && strcmp(result.out.buf, "no pools available\n") != 0 &&
              result.out.len > 0;
        proc_result_release(&result);
    }
    return has;
}

int zfs_fuse_down(const char *name, struct err *err)
{
    char *user = mem_printf("%s/" USER_PREFIX "%s", DIR_PATH, name);
    int lock_fd = lock(err), rc = lock_fd < 0 ? -1 : 0;
    struct daemon_id id;

    if (rc == 0 && unlink(user) < 0 && errno != ENOENT)
        rc = err_set(err, ERR_FAILED, "%s: %s", user, strerror(errno));
    if (rc == 0 && !has_users()) {
        bool runs = read_daemon(&id);
        if (!runs || !has_pools()) {
            // Without pools there is nothing to take leave of, which takes it three seconds.
            int error = runs ? proc_stop(id.pid, id.ticks, SIGKILL, STOP_NS) : 0;
            if (runs && error == 0)
                (void)unlink(SOCKET);
            rc = error < 0
                     ? err_set(err, ERR_FAILED, "zfs-fuse cannot be stopped: %s", strerror(-error))
                     : tree_remove(DIR_PATH, err);
        }
    }
    if (lock_fd >= 0)
        close(lock_fd);
    free(user);
    return rc;
}
