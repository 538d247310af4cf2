#include "volume/vdisk_mounts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"

// Mount points have blanks, tabs, newlines and backslashes written as \ooo.
static void add_unescaped(struct str *out, const char *text)
{
    for (; *text; text++) {
        bool octal = text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3];
        if (!octal) {
            str_addc(out, *text);
            continue;
        }
        str_addc(out, (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0')));
        text += 3;
    }
}

struct mount_line {
    unsigned major_number, minor_number;
    struct str point, source;
};

// Calls with every mount until one returns true. 1: one did; 0: none; -1: no table.
static int each_mount(bool (*look)(const struct mount_line *line, void *context), void *context)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *text = NULL;
    size_t cap = 0;
    int status = 0;

    if (!table)
        return -1;
    while (status == 0 && getline(&text, &cap, table) > 0) {
        struct mount_line line = {.point = STR_INIT, .source = STR_INIT};
        char *point = NULL, *source = NULL, *dash = strstr(text, " - ");
        // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS
        if (dash && sscanf(text, "%*d %*d %u:%u %*s %ms", &line.major_number, &line.minor_number,
                           &point) == 3) {
            (void)sscanf(dash + 3, "%*s %ms", &source);
            add_unescaped(&line.point, point);
            add_unescaped(&line.source, source ? source : "");
            status = look(&line, context);
        }
        free(point);
        free(source);
        str_release(&line.point);
        str_release(&line.source);
    }
    free(text);
    fclose(table);
    return status;
}

struct by_point {
    const char *point;
    unsigned *ret_major, *ret_minor;
    struct str *ret_source;
};

// The last one over a point is the one that is seen; mounts over mounts do not happen here.
static bool is_point(const struct mount_line *line, void *context)
{
    struct by_point *wanted = context;

    if (strcmp(line->point.buf, wanted->point) != 0)
        return false;
    if (wanted->ret_major)
        *wanted->ret_major = line->major_number;
    if (wanted->ret_minor)
        *wanted->ret_minor = line->minor_number;
    if (wanted->ret_source)
        str_add(wanted->ret_source, line->source.buf);
    return true;
}

int vdisk_mount_find(const char *point, unsigned *ret_major, unsigned *ret_minor,
                     struct str *ret_source)
{
    struct by_point wanted = {point, ret_major, ret_minor, ret_source};

    return each_mount(is_point, &wanted);
}

static bool is_device(const struct mount_line *line, void *context)
{
    struct mount_line *wanted = context;

    if (line->major_number != wanted->major_number || line->minor_number != wanted->minor_number)
        return false;
    str_add(&wanted->point, line->point.buf);
    return true;
}

// btrfs shows a device number of its own and names the device as the source.
static bool is_source(const struct mount_line *line, void *context)
{
    struct mount_line *wanted = context;

    if (strcmp(line->source.buf, wanted->source.buf) != 0)
        return false;
    str_add(&wanted->point, line->point.buf);
    return true;
}

bool vdisk_loop_mount(int number, struct str *ret_point)
{
    struct mount_line wanted = {.point = STR_INIT, .source = STR_INIT};
    struct stat st;

    str_addf(&wanted.source, "/dev/loop%d", number);
    bool found = each_mount(is_source, &wanted) == 1;
    if (!found && stat(wanted.source.buf, &st) == 0) {
        wanted.major_number = major(st.st_rdev);
        wanted.minor_number = minor(st.st_rdev);
        found = each_mount(is_device, &wanted) == 1;
    }
    if (found)
        str_add(ret_point, wanted.point.buf);
    str_release(&wanted.point);
    str_release(&wanted.source);
    return found;
}

void vdisk_loops_under(const char *dir, void (*found)(int number, const char *path, void *context),
                       void *context)
{
    DIR *blocks = opendir("/sys/block");
    size_t n = strlen(dir);
    struct dirent *entry;

    while (blocks && (entry = readdir(blocks))) {
        char path[4200];
        int number, end = 0;
        if (sscanf(entry->d_name, "loop%d%n", &number, &end) != 1 || entry->d_name[end])
            continue;
        snprintf(path, sizeof(path), "/sys/block/loop%d/loop/backing_file", number);
        FILE *file = fopen(path, "re"); // missing: not attached
        if (!file)
            continue;
        if (fgets(path, sizeof(path), file)) {
            path[strcspn(path, "\n")] = '\0';
            if (strncmp(path, dir, n) == 0 && path[n] == '/')
                found(number, path, context);
        }
        fclose(file);
    }
    if (blocks)
        closedir(blocks);
}

struct by_file {
    const char *path;
    int number;
};

static void take_number(int number, const char *path, void *context)
{
    struct by_file *wanted = context;

    if (strcmp(path, wanted->path) == 0)
        wanted->number = number;
}

int vdisk_loop_of(const char *path)
{
    struct by_file wanted = {path, -1};
    const char *slash = strrchr(path, '/');
    char *dir = mem_strndup(path, slash ? (size_t)(slash - path) : 0);

    vdisk_loops_under(dir, take_number, &wanted);
    free(dir);
    return wanted.number;
}
