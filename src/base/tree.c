#include "base/tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"

enum {
    DEPTH_MAX = 200, // one descriptor per level is open
    PASSES_MAX = 3,
};

struct removal {
    struct str path; // of the entry at hand, for messages
    struct err *err; // keeps the first failure
    bool failed;
};

// Always false, so that callers can write `return removal_fail(...)`.
static bool removal_fail(struct removal *removal, const char *reason)
{
    if (!removal->failed)
        err_set(removal->err, ERR_FAILED, "cannot remove %s: %s", removal->path.buf, reason);
    removal->failed = true;
    return false;
}

// Whether a mount begins at this entry. Kernels before 5.8 do not say; then only a change of the
// device number shows it.
static int is_mount_root(int fd, dev_t parent_dev, bool *ret)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_TYPE, &stx) < 0)
        return -1;
    if (stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        *ret = (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    else
        *ret = makedev(stx.stx_dev_major, stx.stx_dev_minor) != parent_dev;
    return 0;
}

static bool remove_entry(struct removal *removal, int parent_fd, const char *name, dev_t parent_dev,
                         int depth);

// One pass over a directory, as far as it goes; false when something is left for good. Takes over
// dir_fd.
static bool empty_directory(struct removal *removal, int dir_fd, int depth)
{
    struct stat st;
    bool emptied = true;

    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        close(dir_fd);
        return removal_fail(removal, strerror(ENOMEM));
    }
    if (fstat(dir_fd, &st) < 0 || depth >= DEPTH_MAX) {
        emptied = removal_fail(removal, "directories are nested too deeply");
        goto close_dir;
    }
    size_t len = removal->path.len;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        str_addf(&removal->path, "/%s", entry->d_name);
        if (!remove_entry(removal, dir_fd, entry->d_name, st.st_dev, depth + 1))
            emptied = false;
        removal->path.len = len;
        removal->path.buf[len] = '\0';
    }
close_dir:
    closedir(dir);
    return emptied;
}

static bool remove_directory(struct removal *removal, int parent_fd, const char *name,
                             dev_t parent_dev, int depth)
{
    bool mounted = false;
    int error = 0;

    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return removal_fail(removal, strerror(errno));
    if (is_mount_root(fd, parent_dev, &mounted) < 0)
        error = errno;
    if (error || mounted) {
        close(fd);
        return removal_fail(removal, error ? strerror(error) : "something is mounted there");
    }
    if (!empty_directory(removal, fd, depth))
        return false;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return false; // somebody still puts files there: worth another pass
    return removal_fail(removal, strerror(errno));
}

static bool remove_entry(struct removal *removal, int parent_fd, const char *name, dev_t parent_dev,
                         int depth)
{
    struct stat st;

    assert(depth <= DEPTH_MAX);
    // Most entries are files: try that first. EISDIR is Linux, EPERM is POSIX.
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return true;
    int error = errno;
    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return removal_fail(removal, strerror(error));

    for (int i = 0; i < PASSES_MAX; i++) {
        if (remove_directory(removal, parent_fd, name, parent_dev, depth))
            return true;
        if (removal->failed)
            return false;
    }
    return removal_fail(removal, strerror(ENOTEMPTY));
}

// "/a//b/" becomes parent "/a" and name "b"; false when no name is left or ".." occurs.
static bool split_path(const char *path, struct str *parent, const char **name)
{
    str_add(parent, path);
    while (parent->len > 1 && parent->buf[parent->len - 1] == '/')
        parent->buf[--parent->len] = '\0';
    char *slash = strrchr(parent->buf, '/');
    if (path[0] != '/' || !slash || slash[1] == '\0' || strcmp(slash, "/.") == 0)
        return false;
    for (const char *p = path; (p = strstr(p, "/..")); p += 3)
        if (p[3] == '/' || p[3] == '\0')
            return false;
    *slash = '\0';
    *name = slash + 1;
    return true;
}

int tree_remove(const char *path, struct err *err)
{
    struct removal removal = {.path = STR_INIT, .err = err};
    struct str parent = STR_INIT;
    struct stat st;
    const char *name;
    int parent_fd = -1;

    assert(path);
    str_add(&removal.path, path);
    if (!split_path(path, &parent, &name)) {
        removal_fail(&removal, "not an absolute path of a thing of its own");
        goto done;
    }
    parent_fd = open(parent.buf[0] ? parent.buf : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent_fd < 0 && errno == ENOENT)
        goto done;
    if (parent_fd < 0 || fstat(parent_fd, &st) < 0) {
        removal_fail(&removal, strerror(errno));
        goto done;
    }
    remove_entry(&removal, parent_fd, name, st.st_dev, 0);
done:
    if (parent_fd >= 0)
        close(parent_fd);
    str_release(&parent);
    str_release(&removal.path);
    return removal.failed ? -1 : 0;
}
