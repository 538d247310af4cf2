#include "workload/source.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

int source_set_text(struct source *source, const char *text, size_t len, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf";

    if (memchr(text, '\0', len))
        return err_set(err, ERR_USAGE, "%s: holds a NUL byte; a script is text", source->file);
    if (len >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        len -= 3;
    }
    source->text = text;
    source->len = len;
    return 0;
}

static int read_all(int fd, const char *file, struct str *out, struct err *err)
{
    for (;;) {
        str_reserve(out, 65536);
        ssize_t n = read(fd, out->buf + out->len, 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_USAGE, "%s: cannot be read: %s", file, strerror(errno));
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        out->buf[out->len] = '\0';
        if (out->len > SOURCE_BYTES_MAX)
            return err_set(err, ERR_USAGE, "%s: larger than %d MiB; a script is text", file,
                           SOURCE_BYTES_MAX >> 20);
    }
}

static int read_file(const char *file, struct str *out, struct err *err)
{
    struct stat st;
    int status;

    if (strcmp(file, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", out, err);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        if (why == ENOENT && workload_find_builtin(file))
            return err_set(err, ERR_USAGE,
                           "%s: no such file; the built-in workload is given without -f", file);
        return err_set(err, ERR_USAGE, "%s: cannot be read: %s", file, strerror(why));
    }
    if (S_ISDIR(st.st_mode))
        status = err_set(err, ERR_USAGE, "%s: is a directory; give a script file", file);
    else
        status = read_all(fd, file, out, err);
    close(fd);
    return status;
}

// Splits FILE@WEIGHT. What follows an '@' but is no number belongs to the name if such a file
// exists.
static int split_weight(const char *argument, char **ret_file, double *ret_weight, struct err *err)
{
    const char *at = strrchr(argument, '@');

    *ret_weight = 1;
    if (!at || strchr(at, '/')) {
        *ret_file = mem_strdup(argument);
        return 0;
    }
    if (units_parse_double(at + 1, ret_weight, NULL) < 0) {
        *ret_weight = 1;
        if (access(argument, F_OK) == 0) {
            *ret_file = mem_strdup(argument);
            return 0;
        }
        *ret_weight = -1;
    }
    if (!(*ret_weight >= 0 && *ret_weight <= 1e9))
        return err_set(err, ERR_USAGE,
                       "%s: the weight after @ must be a number from 0 to 1e9, not \"%s\"",
                       argument, at + 1);
    *ret_file = mem_strndup(argument, (size_t)(at - argument));
    return 0;
}

void source_release(struct source *source)
{
    free((char *)source->file);
    free((char *)source->name);
    free(source->owned);
    *source = (struct source){0};
}

int source_read(struct source *ret, const char *argument, struct err *err)
{
    struct str text = STR_INIT;
    char *file = NULL;
    double weight;

    *ret = (struct source){0};
    if (split_weight(argument, &file, &weight, err) < 0)
        return -1;
    const char *slash = strrchr(file, '/');
    const char *name = strcmp(file, "-") == 0 ? "stdin" : slash ? slash + 1 : file;
    ret->file = strcmp(file, "-") == 0 ? mem_strdup("stdin") : mem_strdup(file);
    ret->name = mem_strdup(name);
    ret->weight = weight;
    int status = read_file(file, &text, err);
    size_t len = text.len;
    ret->text = ret->owned = str_detach(&text);
    ret->len = len;
    if (status == 0)
        status = source_set_text(ret, ret->owned, len, err);
    free(file);
    return status;
}
