#include "load/txlog.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "db/value.h"

#define LINE_MAX_BYTES (8 * (DB_VALUE_TEXT_MAX + 1))
#define BUFFER_MIN     4096
#define BUFFER_MAX     65536
#define BUFFERS_BYTES  (16 << 20) // of all workers together, as long as each has the minimum

int txlog_open(struct txlog **ret, const char *prefix, int n_workers, bool with_lag,
               bool with_retries, struct err *err)
{
    assert(n_workers > 0);
    char *path = mem_printf("%s.%d", prefix, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

    if (fd < 0) {
        err_set(err, ERR_USAGE, "--log-transactions: cannot write %s: %s", path, strerror(errno));
        free(path);
        return -1;
    }
    sudo_give(fd);
    struct txlog *log = mem_calloc(1, sizeof(*log));
    int size = BUFFERS_BYTES / n_workers;
    *log = (struct txlog){
        .fd = fd,
        .path = path,
        .with_lag = with_lag,
        .with_retries = with_retries,
        .real_minus_mono_ns = clock_real_ns() - clock_now_ns(&clock_system),
        .buffer_size = size < BUFFER_MIN   ? BUFFER_MIN
                       : size > BUFFER_MAX ? BUFFER_MAX
                                           : size,
    };
    *ret = log;
    return 0;
}

void txlog_close(struct txlog *log)
{
    if (!log)
        return;
    close(log->fd);
    free(log->path);
    free(log);
}

int txlog_error(const struct txlog *log)
{
    return log ? atomic_load(&log->error) : 0;
}

void txlog_buffer_init(struct txlog_buffer *b, struct txlog *log)
{
    *b = (struct txlog_buffer){.log = log};
    if (log)
        b->bytes = mem_calloc((size_t)log->buffer_size, 1);
}

void txlog_buffer_release(struct txlog_buffer *b)
{
    if (b->log)
        txlog_flush(b);
    free(b->bytes);
    *b = (struct txlog_buffer){0};
}

static void add_int(struct txlog_buffer *b, int64_t i, char after)
{
    b->len += db_format_int(i, b->bytes + b->len);
    b->bytes[b->len++] = after;
}

static void add_word(struct txlog_buffer *b, const char *word)
{
    size_t n = strlen(word);

    memcpy(b->bytes + b->len, word, n);
    b->len += (int)n;
    b->bytes[b->len++] = ' ';
}

static int64_t round_us(int64_t ns)
{
    return (ns + NS_PER_US / 2) / NS_PER_US;
}

void txlog_add(struct txlog_buffer *b, const struct txlog_line *line)
{
    const struct txlog *log = b->log;

    if (!log)
        return;
    if (b->len + LINE_MAX_BYTES > log->buffer_size)
        txlog_flush(b);
    int64_t real_us = (line->end_ns + log->real_minus_mono_ns) / NS_PER_US;
    add_int(b, line->client, ' ');
    add_int(b, line->number, ' ');
    if (line->outcome == TXLOG_DONE)
        add_int(b, round_us(line->latency_ns), ' ');
    else
        add_word(b, line->outcome == TXLOG_FAILED ? "failed" : "unknown");
    add_int(b, line->script, ' ');
    add_int(b, real_us / 1000000, ' ');
    add_int(b, real_us % 1000000, log->with_lag || log->with_retries ? ' ' : '\n');
    if (log->with_lag)
        add_int(b, round_us(line->lag_ns), log->with_retries ? ' ' : '\n');
    if (log->with_retries)
        add_int(b, line->retries, '\n');
    assert(b->len <= log->buffer_size);
}

// Appends are atomic: lines of different workers do not mix. After a short or failed write the rest
// of a line may be missing, so nothing is added any more.
void txlog_flush(struct txlog_buffer *b)
{
    struct txlog *log = b->log;
    int n = b->len;

    b->len = 0;
    if (n == 0 || atomic_load_explicit(&log->error, memory_order_relaxed))
        return;
    ssize_t done;
    do
        done = write(log->fd, b->bytes, (size_t)n);
    while (done < 0 && errno == EINTR);
    if (done != n)
        atomic_store(&log->error, done < 0 ? errno : ENOSPC);
}
