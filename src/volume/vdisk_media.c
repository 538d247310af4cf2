#include "volume/vdisk_media.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sudo.h"

// ret_made: the file was not there before, so it is ours.
static int open_or_make(const char *path, bool *ret_made)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags | O_CREAT | O_EXCL, 0600);

    *ret_made = fd >= 0;
    return fd < 0 && errno == EEXIST ? open(path, flags) : fd;
}

// Locked as long as it is open: two disks in one file, of any daemons, would ruin it.
static int media_file(const char *path, int64_t size, struct err *err)
{
    struct stat st;
    bool made;
    int fd = open_or_make(path, &made);

    if (fd < 0) {
        err_set(err, ERR_USAGE, "cannot open the media %s: %s", path, strerror(errno));
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        err_set(err, ERR_USAGE, "the media %s cannot be locked: %s", path,
                errno == EWOULDBLOCK ? "it is in use by another disk" : strerror(errno));
    } else if (fstat(fd, &st) < 0) {
        err_set(err, ERR_USAGE, "cannot open the media %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        err_set(err, ERR_USAGE, "the media %s is no regular file", path);
    } else if (st.st_size != 0 && st.st_size != size) {
        err_set(err, ERR_USAGE, "the media %s has another size than the disk: %lld bytes", path,
                (long long)st.st_size);
    } else {
        if (made)
            sudo_give(fd);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

int vdisk_media_open(const char *path, int64_t size, struct err *err)
{
    int fd = path ? media_file(path, size, err) : memfd_create("prony-vdisk", MFD_CLOEXEC);

    if (fd < 0)
        return path ? -1 : err_set(err, ERR_FAILED, "cannot make memory: %s", strerror(errno));
    if (ftruncate(fd, size) < 0) {
        err_set(err, ERR_USAGE, "cannot make a disk of %lld bytes: %s", (long long)size,
                strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int media_read(void *context, uint64_t offset, void *bytes, size_t n)
{
    const int *fd = context;

    for (size_t done = 0; done < n;) {
        ssize_t got = pread(*fd, (char *)bytes + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO; // somebody has cut the file
        done += (size_t)got;
    }
    return 0;
}

static int media_write(void *context, uint64_t offset, const void *bytes, size_t n)
{
    const int *fd = context;

    for (size_t done = 0; done < n;) {
        ssize_t put = pwrite(*fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        done += (size_t)put;
    }
    return 0;
}

static int media_zero(void *context, uint64_t offset, uint64_t n)
{
    static const uint8_t zeros[65536];
    const int *fd = context;
    int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

    if (n == 0 || fallocate(*fd, mode, (off_t)offset, (off_t)n) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -errno;
    for (int error = 0; n > 0;) {
        size_t part = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);
        error = media_write(context, offset, zeros, part);
        if (error < 0)
            return error;
        offset += part;
        n -= part;
    }
    return 0;
}

struct vdisk_medium vdisk_media_of(int *fd)
{
    return (struct vdisk_medium){media_read, media_write, media_zero, fd};
}

uint64_t vdisk_media_next_data(int fd, uint64_t offset, uint64_t chunk)
{
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);

    if (data < 0) // ENXIO: holes up to the end; else a file system that cannot tell
        return errno == ENXIO ? INT64_MAX : offset;
    return (uint64_t)data / chunk * chunk < offset ? offset : (uint64_t)data / chunk * chunk;
}
