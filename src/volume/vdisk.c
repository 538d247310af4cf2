#include "volume/vdisk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "volume/vdisk_control.h"
#include "volume/vdisk_mounts.h"
#include "volume/vdisk_watch.h"

#define START_NS   (20 * NS_PER_S)
#define UNMOUNT_NS (5 * NS_PER_S)
#define END_NS     (10 * NS_PER_S)
#define ANSWER_NS  (5 * NS_PER_S)
#define PAUSE_NS   (10 * NS_PER_MS)

#define CONTENTS_NS (600 * NS_PER_S) // all that a disk holds is read or written

static void pause_a_little(void)
{
    clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + PAUSE_NS);
}

int vdisk_check_here(struct err *err)
{
#ifndef HAVE_FUSE
    return err_set(err, ERR_ABSENT,
                   "this prony was built without libfuse3, so it has no virtual "
                   "disks (Debian package libfuse3-dev)");
#else
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT, "virtual disks need root (loop devices and mounts)");
    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return err_set(err, ERR_ABSENT, "virtual disks need /dev/fuse: %s", strerror(errno));
    if (access("/dev/loop-control", R_OK | W_OK) < 0)
        return err_set(err, ERR_ABSENT, "virtual disks need /dev/loop-control: %s",
                       strerror(errno));
    return 0;
#endif
}

// ---- start

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return dir && n == 0;
}

static int make_dir(const char *dir, struct err *err)
{
    struct stat st;

    if (dir[0] != '/')
        return err_set(err, ERR_USAGE, "%s: the directory of virtual disks needs a whole path",
                       dir);
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, ERR_USAGE, "cannot make %s: %s", dir, strerror(errno));
    if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, "%s is no directory", dir);
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(err, ERR_USAGE, "%s must belong to you and be closed to others (mode 0700)",
                       dir);
    if (!is_empty(dir))
        return err_set(err, ERR_USAGE, "%s must be empty", dir);
    char *disks = mem_printf("%s/disks", dir);
    int status = mkdir(disks, 0700);
    if (status < 0)
        err_set(err, ERR_FAILED, "cannot make %s: %s", disks, strerror(errno));
    free(disks);
    return status;
}

// The last line of the daemon's own words, which says why it ended.
static void last_words(const char *log_path, struct str *out)
{
    FILE *file = fopen(log_path, "re");
    char line[ERR_TEXT_MAX];

    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        str_clear(out);
        str_add(out, line);
    }
    if (file)
        fclose(file);
}

static int wait_until_served(const char *dir, pid_t pid, uint64_t ticks, const char *log_path,
                             struct err *err)
{
    int64_t end_ns = clock_now_ns(&clock_system) + START_NS;
    struct str words = STR_INIT;

    while (clock_now_ns(&clock_system) < end_ns) {
        struct err none = ERR_INIT;
        if (vdisk_command(dir, "ping", 0, NULL, NULL, &none) == 0) {
            str_release(&words);
            return 0;
        }
        if (!proc_is_alive(pid, ticks))
            break;
        pause_a_little();
    }
    last_words(log_path, &words);
    err_set(err, ERR_FAILED, "the daemon of virtual disks did not start%s%s", words.len ? ": " : "",
            words.buf);
    str_release(&words);
    return -1;
}

int vdisk_start(const char *dir, int64_t hang_ns, struct err *err)
{
    if (vdisk_check_here(err) < 0 || make_dir(dir, err) < 0)
        return -1;
    char *program = proc_own_program();
    char *log_path = mem_printf("%s/daemon.log", dir);
    char *hang = mem_printf("%lldms", hang_ns / NS_PER_MS);
    char *argv[] = {program, (char *)"vdisk", (char *)"daemon", (char *)dir, (char *)"--hang", hang,
                    NULL};
    int status = -1;

    pid_t pid = proc_start(argv, log_path, false, err);
    uint64_t ticks = pid > 0 ? proc_start_ticks(pid) : 0;
    if (pid > 0) {
        status = wait_until_served(dir, pid, ticks, log_path, err);
        if (status < 0) {
            struct err second = ERR_INIT;
            (void)proc_stop(pid, ticks, SIGKILL, NS_PER_S);
            (void)vdisk_stop(dir, true, &second);
        }
    }
    free(program);
    free(log_path);
    free(hang);
    return status;
}

int vdisk_add(const char *dir, const char *name, const struct vdisk_spec *spec, char *device,
              struct err *err)
{
    struct str command = STR_INIT;
    struct err second = ERR_INIT;

    str_addf(&command, "add %s ", name);
    vdisk_spec_print(spec, &command);
    int status = vdisk_name_check(name, err);
    if (status == 0)
        status = vdisk_command(dir, command.buf, 0, NULL, NULL, err);
    if (status == 0) {
        status = vdisk_attach(dir, name, device, err);
        if (status < 0) {
            str_clear(&command);
            str_addf(&command, "remove %s", name);
            (void)vdisk_command(dir, command.buf, 0, NULL, NULL, &second);
        }
    }
    str_release(&command);
    return status;
}

// Sends a command about a disk that was just detached. The kernel tells the daemon a moment later
// that the loop device has let go of the file.
static int command_when_free(const char *dir, const char *command, int64_t end_ns, struct err *err)
{
    for (;;) {
        struct err now = ERR_INIT;
        if (vdisk_command(dir, command, CONTENTS_NS, NULL, NULL, &now) == 0)
            return 0;
        if (!strstr(now.text, "in use") || clock_now_ns(&clock_system) > end_ns)
            return err_set(err, now.kind, "%s", now.text);
        pause_a_little();
    }
}

int vdisk_remove(const char *dir, const char *name, struct err *err)
{
    char *command = mem_printf("remove %s", name);
    int64_t end_ns = clock_now_ns(&clock_system) + UNMOUNT_NS;
    struct str stats = STR_INIT;
    int status = vdisk_command(dir, "stats", 0, &stats, NULL, err);

    // Asked before anything is taken down.
    if (status == 0 && strstr(stats.buf, "\nlog_state "))
        status = err_set(err, ERR_FAILED, "the disk %s is being recorded: end that first", name);
    if (status == 0)
        status = vdisk_detach(dir, name, err);
    if (status == 0)
        status = command_when_free(dir, command, end_ns, err);
    str_release(&stats);
    free(command);
    return status;
}

// ---- the power

int vdisk_cut(const char *dir, const char *name, enum vdisk_survivors survivors, uint64_t seed,
              struct str *answer, struct err *err)
{
    char *command =
        mem_printf("cut %s %s %" PRId64, name, vdisk_survivor_names[survivors], (int64_t)seed);
    int status = vdisk_command(dir, command, 0, answer, NULL, err);

    free(command);
    return status;
}

// 1: the power is cut, 0: it is on, -1 with err.
static int is_cut(const char *dir, const char *name, struct err *err)
{
    char *command = mem_printf("stats %s", name);
    struct str answer = STR_INIT;
    int status = vdisk_command(dir, command, 0, &answer, NULL, err);

    if (status == 0)
        status = strstr(answer.buf, "\npower cut\n") != NULL;
    free(command);
    str_release(&answer);
    return status;
}

// A command about a disk that is detached for it and attached anew.
static int command_between(const char *dir, const char *name, const char *command, char *device,
                           struct err *err)
{
    int64_t end_ns = clock_now_ns(&clock_system) + UNMOUNT_NS;
    struct err second = ERR_INIT;

    if (vdisk_detach(dir, name, err) < 0)
        return -1;
    int status = command_when_free(dir, command, end_ns, err);
    // Also when it was refused: as it was, as far as that can be.
    int attached = vdisk_attach(dir, name, device, status < 0 ? &second : err);
    return status < 0 ? status : attached;
}

int vdisk_power(const char *dir, const char *name, char *device, struct err *err)
{
    char *command = mem_printf("power %s", name);
    int cut = is_cut(dir, name, err);
    int status = cut < 0 ? -1 : 0;

    if (cut == 0)
        status = err_set(err, ERR_USAGE, "the power of %s is on", name);
    if (status == 0)
        status = command_between(dir, name, command, device, err);
    free(command);
    return status;
}

// ---- its contents

int vdisk_save(const char *dir, const char *name, const char *path, struct err *err)
{
    char *command = mem_printf("save %s%s%s", name, path ? " " : "", path ? path : "");
    int status = vdisk_command(dir, command, CONTENTS_NS, NULL, NULL, err);

    free(command);
    return status;
}

int vdisk_restore(const char *dir, const char *name, const char *path, bool shares, char *device,
                  struct err *err)
{
    char *command = path ? mem_printf("restore %s %s %s", name, shares ? "share" : "copy", path)
                         : mem_printf("restore %s", name);
    int status = command_between(dir, name, command, device, err);

    free(command);
    return status;
}

// ---- stop

struct detaching {
    const char *dir;
    int failed;
    struct err *err;
};

// Looked at before anything is taken down: all or nothing.
static void check_mounts(int number, const char *path, void *context)
{
    struct detaching *d = context;
    struct str point = STR_INIT;

    (void)path;
    if (vdisk_loop_mount(number, &point) && d->failed++ == 0)
        err_set(d->err, ERR_FAILED, "/dev/loop%d is mounted on %s: unmount it first", number,
                point.buf);
    str_release(&point);
}

static void detach_one(int number, const char *path, void *context)
{
    struct detaching *d = context;
    struct err second = ERR_INIT; // the first error counts

    (void)number;
    if (vdisk_detach(d->dir, strrchr(path, '/') + 1, d->failed ? &second : d->err) < 0)
        d->failed++;
}

// Until the mount point itself is gone: a daemon that is only starting would mount there later.
static int unmount(const char *disks_dir, struct err *err)
{
    int64_t end_ns = clock_now_ns(&clock_system) + UNMOUNT_NS;

    while (rmdir(disks_dir) < 0 && errno != ENOENT) {
        if (errno != EBUSY)
            return err_set(err, ERR_FAILED, "cannot remove %s: %s", disks_dir, strerror(errno));
        if (umount2(disks_dir, 0) == 0)
            continue;
        if ((errno != EBUSY && errno != EINVAL) || clock_now_ns(&clock_system) > end_ns)
            return err_set(err, ERR_FAILED, "cannot unmount %s: %s", disks_dir, strerror(errno));
        pause_a_little();
    }
    return 0;
}

// Waits for the daemon's end, which unmounting brings about.
static int wait_for_end(pid_t pid, uint64_t ticks, int64_t allowed_ns)
{
    int64_t end_ns = clock_now_ns(&clock_system) + allowed_ns;

    while (pid > 0 && ticks && proc_is_alive(pid, ticks)) {
        if (clock_now_ns(&clock_system) > end_ns)
            return proc_stop(pid, ticks, SIGKILL, NS_PER_S);
        pause_a_little();
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, WNOHANG); // where it is our child
    return 0;
}

static void remove_files(const char *dir)
{
    static const char *const names[] = {"socket", "daemon.log"};

    for (size_t i = 0; i < ARR_LEN(names); i++) {
        char *path = mem_printf("%s/%s", dir, names[i]);
        (void)unlink(path);
        free(path);
    }
    (void)rmdir(dir); // stays when something else lies in it
}

// Whether a daemon answers; *ret_pid is its process when anybody listens. What a fault holds back
// is let go with the question, for detaching waits for it.
static bool answers(const char *dir, int64_t deadline_ns, int *ret_pid)
{
    struct err none = ERR_INIT;

    return vdisk_command(dir, "set * stall=no", deadline_ns, NULL, ret_pid, &none) == 0;
}

int vdisk_stop(const char *dir, bool force, struct err *err)
{
    char *disks_dir = mem_printf("%s/disks", dir);
    struct detaching detaching = {.dir = dir, .err = err};
    bool is_mounted = vdisk_mount_find(disks_dir, NULL, NULL, NULL) == 1;
    int status = 0, pid = 0;

    if (!force)
        vdisk_loops_under(disks_dir, check_mounts, &detaching);
    if (detaching.failed) {
        free(disks_dir);
        return -1;
    }
    // What hangs in the kernel is let go first, or detaching would hang too.
    bool is_well = answers(dir, force ? NS_PER_S / 2 : ANSWER_NS, &pid);
    uint64_t ticks = pid > 0 ? proc_start_ticks(pid) : 0;
    if (is_mounted && (force || !is_well)) {
        int connection = vdisk_connection_of(disks_dir, err);
        struct err second = ERR_INIT; // a daemon that died has no connection any more
        if (connection >= 0)
            (void)vdisk_abort(connection, &second);
    }
    vdisk_loops_under(disks_dir, detach_one, &detaching);
    if (detaching.failed)
        status = -1;
    if (status == 0)
        status = unmount(disks_dir, err);
    if (status == 0 && wait_for_end(pid, ticks, is_well && !force ? END_NS : NS_PER_S) < 0)
        status = err_set(err, ERR_FAILED, "cannot end the daemon of %s, process %d", dir, pid);
    if (status == 0)
        remove_files(dir);
    free(disks_dir);
    return status;
}

char **vdisk_stop_argv(const char *dir)
{
    char **argv = mem_calloc(5, sizeof(*argv));

    argv[0] = proc_own_program();
    argv[1] = mem_strdup("vdisk");
    argv[2] = mem_strdup("stop");
    argv[3] = mem_strdup(dir);
    return argv;
}

void vdisk_argv_free(char **argv)
{
    for (int i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
}

char **vdisk_names(const char *dir, struct err *err)
{
    struct str answer = STR_INIT;
    char **names = mem_calloc(1, sizeof(*names));
    size_t n = 0;

    if (vdisk_command(dir, "stats", 0, &answer, NULL, err) < 0) {
        free(names);
        str_release(&answer);
        return NULL;
    }
    char *rest = answer.buf, *line;
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, "disk ", 5) != 0)
            continue;
        names = mem_resize(names, n + 2, sizeof(*names));
        names[n++] = mem_strdup(line + 5);
        names[n] = NULL;
    }
    str_release(&answer);
    return names;
}
