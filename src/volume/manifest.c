#include "volume/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "base/text.h"
#include "volume/vdisk_media.h"

#define CHUNK (64 * 1024)

void manifest_release(struct manifest *manifest)
{
    str_release(&manifest->text);
}

static void add_line(struct manifest *m, const char *kind, const struct stat *st, bool has_owner,
                     const uint64_t *sum, const char *name)
{
    str_addf(&m->text, "%s ", kind);
    if (has_owner)
        str_addf(&m->text, "%o %u:%u", st->st_mode & 07777, st->st_uid, st->st_gid);
    else
        str_add(&m->text, "- -");
    if (sum)
        str_addf(&m->text, " %lld %016" PRIx64 " ", (long long)st->st_size, *sum);
    else
        str_add(&m->text, " - - ");
    text_add_safe(&m->text, name);
    str_addc(&m->text, '\n');
}

// Only what is not zero counts, with its place; so holes need not be read.
static int sum_file(const struct manifest *m, int fd, int64_t size, uint64_t *ret, struct err *err)
{
    uint8_t *chunk = mem_calloc(CHUNK, 1);
    struct checksum sum;
    int rc = 0;

    checksum_init(&sum);
    for (uint64_t at = 0; rc == 0 && at < (uint64_t)size; at += CHUNK) {
        at = vdisk_media_next_data(fd, at, CHUNK);
        if (at >= (uint64_t)size)
            break;
        if (m->stop && *m->stop)
            rc = err_set(err, ERR_FAILED, "interrupted");
        ssize_t n = rc == 0 ? pread(fd, chunk, CHUNK, (off_t)at) : 0;
        if (n < 0)
            rc = err_set(err, ERR_FAILED, "%s", strerror(errno));
        if (n <= 0 || (chunk[0] == 0 && memcmp(chunk, chunk + 1, (size_t)n - 1) == 0))
            continue;
        uint64_t place = htole64(at);
        checksum_add(&sum, &place, sizeof(place));
        checksum_add(&sum, chunk, (size_t)n);
    }
    *ret = checksum_end(&sum);
    free(chunk);
    return rc;
}

static int add_file(struct manifest *m, const char *path, bool has_owner, const char *name,
                    struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint64_t sum = 0;
    struct stat st;
    int rc = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        rc = err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    else if (sum_file(m, fd, st.st_size, &sum, err) < 0)
        rc = err_prefix(err, "%s", path);
    if (rc == 0) {
        m->files++;
        m->bytes += st.st_size;
        m->room += (int64_t)st.st_blocks * 512;
        add_line(m, has_owner ? "file" : "image", &st, has_owner, &sum, name);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

static void add_link(struct manifest *m, const char *path, struct stat *st, const char *name)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target));
    struct checksum sum;

    checksum_init(&sum);
    checksum_add(&sum, target, n > 0 ? (size_t)n : 0);
    uint64_t value = checksum_end(&sum);
    st->st_size = n;
    add_line(m, "link", st, true, &value, name);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

// In the order of bytes, whatever the locale.
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_tree(struct manifest *m, const char *dir, const char *prefix, bool is_top,
                    struct err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_entry, by_name), rc = 0;

    if (n < 0)
        rc = err_set(err, ERR_FAILED, "%s: %s", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *entry = entries[i]->d_name;
        bool is_left_out = is_top && strcmp(entry, "lost+found") == 0;
        char *path = mem_printf("%s/%s", dir, entry);
        char *name = mem_printf("%s/%s", prefix, entry);
        struct stat st;
        if (rc == 0 && !is_left_out && lstat(path, &st) < 0)
            rc = err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
        else if (rc < 0 || is_left_out)
            ; // told already, or none of ours
        else if (S_ISREG(st.st_mode))
            rc = add_file(m, path, true, name, err);
        else if (S_ISLNK(st.st_mode))
            add_link(m, path, &st, name);
        else
            add_line(m, S_ISDIR(st.st_mode) ? "dir" : "other", &st, true, NULL, name);
        if (rc == 0 && !is_left_out && S_ISDIR(st.st_mode))
            rc = add_tree(m, path, name, false, err);
        free(path);
        free(name);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int manifest_add_tree(struct manifest *manifest, const char *dir, const char *prefix,
                      struct err *err)
{
    return add_tree(manifest, dir, prefix, true, err);
}

int manifest_add_image(struct manifest *manifest, const char *path, const char *name,
                       struct err *err)
{
    return add_file(manifest, path, false, name, err);
}

// ---- compared

// Behind the fifth blank: a name may hold more. A line that was damaged is a name itself.
static const char *name_in(const char *line, size_t len)
{
    const char *name = line;

    for (int i = 0; name && i < 5; i++) {
        name = memchr(name, ' ', len - (size_t)(name - line));
        name += name != NULL;
    }
    return name ? name : line;
}

// The first line from here on whose name begins so; NULL: there is none. The caller frees the name.
static const char *next_line(const char *line, const char *prefix, char **ret_name)
{
    for (size_t len; *line; line += len + (line[len] == '\n')) {
        len = strcspn(line, "\n");
        const char *name = name_in(line, len);
        if (name == line || strncmp(name, prefix, strlen(prefix)) == 0) {
            *ret_name = mem_strndup(name, len - (size_t)(name - line));
            return line;
        }
    }
    return NULL;
}

static bool is_same_line(const char *a, const char *b)
{
    size_t n = strcspn(a, "\n");

    return n == strcspn(b, "\n") && memcmp(a, b, n) == 0;
}

char *manifest_difference(const char *text, const char *other, const char *prefix)
{
    for (;;) {
        char *name = NULL, *other_name = NULL;
        text = next_line(text, prefix, &name);
        other = next_line(other, prefix, &other_name);
        if (!text && !other)
            return NULL;
        if (!text || !other || !is_same_line(text, other)) {
            // One too many in either text comes earlier in the order of names.
            bool is_other = !name || (other_name && strcmp(other_name, name) < 0);
            free(is_other ? name : other_name);
            return is_other ? other_name : name;
        }
        free(name);
        free(other_name);
        text += strcspn(text, "\n");
        text += *text == '\n';
        other += strcspn(other, "\n");
        other += *other == '\n';
    }
}
