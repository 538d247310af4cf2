#include "volume/vdisk_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "volume/vdisk_log_format.h"

struct vdisk_log {
    int fd;
    int error; // 0, or what broke it
    uint64_t seq;
    uint64_t sum;
    uint64_t size;
};

// Whole or not at all, as far as the file system lets: a short write is one that found no room.
static int write_all(struct vdisk_log *log, struct iovec *parts, int n_parts)
{
    while (n_parts > 0) {
        ssize_t n = writev(log->fd, parts, n_parts);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        log->size += (uint64_t)n;
        while (n_parts > 0 && (size_t)n >= parts->iov_len) {
            n -= (ssize_t)parts->iov_len;
            parts++;
            n_parts--;
        }
        if (n_parts > 0) {
            parts->iov_base = (char *)parts->iov_base + n;
            parts->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int vdisk_log_create(struct vdisk_log **ret, const char *path, struct err *err)
{
    struct log_header header = {.magic = LOG_MAGIC,
                                .version = VDISK_LOG_VERSION,
                                .start_ns = clock_now_ns(&clock_system),
                                .start_real_ns = clock_real_ns()};
    struct vdisk_log *log = mem_calloc(1, sizeof(*log));

    log->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (log->fd < 0) {
        err_set(err, ERR_USAGE, "cannot make the log %s: %s", path, strerror(errno));
        free(log);
        return -1;
    }
    if (getrandom(&header.id, sizeof(header.id), 0) != (ssize_t)sizeof(header.id))
        header.id = (uint64_t)header.start_real_ns;
    header.sum = log_sum(0, &header, offsetof(struct log_header, sum));
    log->sum = header.sum;
    struct iovec part = {&header, sizeof(header)};
    log->error = write_all(log, &part, 1);
    if (log->error < 0) {
        err_set(err, ERR_FAILED, "cannot write the log %s: %s", path, strerror(-log->error));
        close(log->fd);
        unlink(path);
        free(log);
        return -1;
    }
    *ret = log;
    return 0;
}

int vdisk_log_put(struct vdisk_log *log, struct vdisk_log_record *record)
{
    static uint8_t zeros[8];
    bool has_payload = record->type != VDISK_LOG_ZERO;
    size_t length = has_payload ? (size_t)record->length : 0;
    size_t whole = length & ~(size_t)7;
    uint8_t tail[8] = {0};
    struct log_head head = {
        .magic = LOG_RECORD_MAGIC,
        .type = (uint8_t)record->type,
        .flags = record->lied ? LOG_FLAG_LIED : 0,
        .disk = record->disk,
        .seq = log->seq + 1,
        .time_ns = record->time_ns,
        .offset = record->offset,
        .length = record->length,
        .through = record->through,
    };

    assert(record->type > 0 && record->type < VDISK_LOG_TYPES);
    assert(length <= VDISK_LOG_PAYLOAD_MAX);
    if (log->error < 0)
        return log->error;
    if (length > whole)
        memcpy(tail, (const uint8_t *)record->bytes + whole, length - whole);
    head.sum = log_sum(log->sum, &head, offsetof(struct log_head, sum));
    head.sum = log_sum(head.sum, record->bytes, whole);
    if (length > whole)
        head.sum = log_sum(head.sum, tail, sizeof(tail));
    struct iovec parts[] = {
        {&head, sizeof(head)},
        {(void *)record->bytes, length},
        {zeros, log_padded(length) - length},
    };
    log->error = write_all(log, parts, 3);
    if (log->error < 0)
        return log->error;
    log->sum = head.sum;
    record->seq = ++log->seq;
    return 0;
}

uint64_t vdisk_log_seq(const struct vdisk_log *log)
{
    return log->seq;
}

uint64_t vdisk_log_size(const struct vdisk_log *log)
{
    return log->size;
}

int vdisk_log_error(const struct vdisk_log *log)
{
    return log->error;
}

int vdisk_log_close(struct vdisk_log *log, struct err *err)
{
    if (!log)
        return 0;
    struct vdisk_log_record end = {
        .type = VDISK_LOG_END, .offset = log->seq, .time_ns = clock_now_ns(&clock_system)};
    int error = vdisk_log_put(log, &end);
    if (close(log->fd) < 0 && error == 0)
        error = -errno;
    free(log);
    return error < 0 ? err_set(err, ERR_FAILED, "the log is not whole: %s", strerror(-error)) : 0;
}
