#include "base/attached.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"

#define PAUSE_NS (50 * NS_PER_MS)

// mountinfo writes blanks and backslashes as three octal digits. In place.
static void unescape_octal(char *text)
{
    char *to = text;

    for (const char *p = text; *p; p++, to++) {
        if (p[0] == '\\' && isdigit((unsigned char)p[1]) && isdigit((unsigned char)p[2]) &&
            isdigit((unsigned char)p[3])) {
            *to = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 3;
        } else {
            *to = *p;
        }
    }
    *to = '\0';
}

bool attached_is_mounted(const char *dir)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;

    assert(dir[0] == '/');
    while (file && !found && getline(&line, &cap, file) > 0) {
        char *rest = line, *point = NULL;
        for (int i = 0; i < 5 && rest; i++) // the fifth word
            point = strsep(&rest, " ");
        if (!point)
            continue;
        unescape_octal(point);
        found = strcmp(point, dir) == 0;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

// The last line that a command said, without its newline.
static void last_line(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    char *newline = strrchr(text, '\n');
    if (newline)
        memmove(text, newline + 1, strlen(newline + 1) + 1);
}

static int run(char *const *argv, int64_t deadline_ns, struct err *err)
{
    struct proc_result result;
    int rc = proc_run(argv, deadline_ns, &result, err);

    if (rc == 0 && result.status == 124)
        rc = err_set(err, ERR_FAILED, "%s has not ended in %lld s", argv[0],
                     (long long)(deadline_ns / NS_PER_S));
    else if (rc == 0 && result.status != 0) {
        last_line(result.errors.buf);
        rc = err_set(err, ERR_FAILED, "%s",
                     result.errors.buf[0] ? result.errors.buf : "it failed without a word");
    }
    proc_result_release(&result);
    return rc;
}

int attached_unmount(const char *dir, int64_t deadline_ns, int64_t retry_ns, struct err *err)
{
    char *argv[] = {"umount", (char *)dir, NULL};
    int64_t until_ns = clock_now_ns(&clock_system) + retry_ns;
    struct err why = ERR_INIT;

    while (attached_is_mounted(dir)) {
        if (run(argv, deadline_ns, &why) == 0)
            return 0; // what may be mounted below it is not ours
        if (clock_now_ns(&clock_system) >= until_ns)
            return err_set(err, why.kind, "%s", why.text);
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + PAUSE_NS);
    }
    return 0;
}

// Does /sys/block/NAME stand for a loop device on the file?
static bool is_on_file(const char *name, const char *file)
{
    char *path = mem_printf("/sys/block/%s/loop/backing_file", name);
    FILE *in = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    bool is = false;

    if (in && getline(&line, &cap, in) > 0) {
        static const char gone[] = " (deleted)";
        size_t len = strcspn(line, "\n"), want = strlen(file);
        line[len] = '\0';
        is = strcmp(line, file) == 0 ||
             (len == want + strlen(gone) && strncmp(line, file, want) == 0 &&
              strcmp(line + want, gone) == 0);
    }
    free(line);
    if (in)
        fclose(in);
    free(path);
    return is;
}

// The first loop device on the file as "/dev/loopN", or NULL. The caller frees it.
static char *find_on_file(const char *file)
{
    DIR *dir = opendir("/sys/block");
    char *found = NULL;

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && !found; entry = readdir(dir))
        if (strncmp(entry->d_name, "loop", 4) == 0 && is_on_file(entry->d_name, file))
            found = mem_printf("/dev/%s", entry->d_name);
    if (dir)
        closedir(dir);
    return found;
}

// Between a look and the command that follows the device may have let go and be another's. While it
// is open here it cannot, so it is looked at once more.
static int detach(const char *device, const char *file, struct err *err)
{
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return errno == ENXIO || errno == ENOENT
                   ? 0
                   : err_set(err, ERR_FAILED, "%s: %s", device, strerror(errno));
    if (is_on_file(device + strlen("/dev/"), file) && ioctl(fd, LOOP_CLR_FD, 0) < 0 &&
        errno != ENXIO)
        rc = err_set(err, ERR_FAILED, "%s: %s", device, strerror(errno));
    close(fd);
    return rc;
}

int attached_detach(const char *file, int64_t retry_ns, struct err *err)
{
    int64_t until_ns = clock_now_ns(&clock_system) + retry_ns;
    struct err why = ERR_INIT;
    char *device;

    // A device that somebody has open says yes and lets go later.
    while ((device = find_on_file(file))) {
        int rc = detach(device, file, &why);
        bool late = clock_now_ns(&clock_system) >= until_ns;
        if (late && rc == 0)
            err_set(err, ERR_FAILED, "%s is still in use", device);
        else if (late)
            err_set(err, why.kind, "%s", why.text);
        free(device);
        if (late)
            return -1;
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + PAUSE_NS);
    }
    return 0;
}
