#include "watch/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_line(char *out, int size, const char *path)
{
    FILE *file = fopen(path, "re");

    out[0] = '\0';
    if (!file)
        return false;
    errno = ENODATA; // an empty file sets none
    bool ok = fgets(out, size, file) != NULL;
    int why = errno;
    fclose(file);
    errno = why;
    size_t len = strcspn(out, "\n");
    while (len > 0 && out[len - 1] == ' ') // SCSI models are padded
        len--;
    out[len] = '\0';
    return ok;
}

bool sysfs_line(char *out, int size, const char *path_fmt, ...)
{
    char path[PATH_MAX];
    va_list ap;

    va_start(ap, path_fmt);
    vsnprintf(path, sizeof(path), path_fmt, ap);
    va_end(ap);
    return read_line(out, size, path);
}

int64_t sysfs_number(int64_t missing, const char *path_fmt, ...)
{
    char path[PATH_MAX], line[64], *end;
    va_list ap;

    va_start(ap, path_fmt);
    vsnprintf(path, sizeof(path), path_fmt, ap);
    va_end(ap);
    if (!read_line(line, sizeof(line), path))
        return missing;
    int64_t value = strtoll(line, &end, 10);
    return end == line ? missing : value;
}

bool sysfs_link_name(char *out, int size, const char *path_fmt, ...)
{
    char path[PATH_MAX], target[PATH_MAX];
    va_list ap;

    va_start(ap, path_fmt);
    vsnprintf(path, sizeof(path), path_fmt, ap);
    va_end(ap);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    out[0] = '\0';
    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(out, (size_t)size, "%s", slash ? slash + 1 : target);
    return true;
}

bool sysfs_value(char *out, int size, const char *path, const char *name)
{
    char *line = NULL;
    size_t cap = 0, len = strlen(name);
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file && !found && getline(&line, &cap, file) > 0) {
        if (strncmp(line, name, len) != 0 || !strchr(" \t:=", line[len]))
            continue;
        const char *value = line + len + strspn(line + len, " \t:=\"");
        snprintf(out, (size_t)size, "%.*s", (int)strcspn(value, "\"\n"), value);
        found = true;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}
