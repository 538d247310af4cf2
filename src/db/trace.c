#include "db/trace.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sudo.h"

#define TRACE_TEXT_MAX 80
#define TRACE_LINE_MAX 1024

struct db_trace {
    int fd;
    const struct clock *clock;
    int64_t open_ns;
};

static void write_line(const struct db_trace *trace, const char *line, size_t len)
{
    // A trace that cannot be written (disk full) is no reason to end the run it watches.
    while (write(trace->fd, line, len) < 0 && errno == EINTR)
        ;
}

int db_trace_open(struct db_trace **ret, const char *path, const struct clock *clock,
                  struct err *err)
{
    static const char heading[] = "time_s\tclient\tcall\tclass\trows\tduration_us\ttext\terror\n";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);

    if (fd < 0)
        return err_set(err, ERR_USAGE, "cannot write the trace to %s: %s", path, strerror(errno));
    sudo_give(fd);
    struct db_trace *trace = mem_calloc(1, sizeof(*trace));
    *trace = (struct db_trace){.fd = fd, .clock = clock, .open_ns = clock_now_ns(clock)};
    write_line(trace, heading, sizeof(heading) - 1);
    *ret = trace;
    return 0;
}

void db_trace_close(struct db_trace *trace)
{
    if (!trace)
        return;
    close(trace->fd);
    free(trace);
}

// Copies at most max bytes, ends at a character's border, and keeps the line one line.
static void copy_text(char *out, const char *text, size_t max)
{
    size_t n = text ? strnlen(text, max) : 0;

    if (text && text[n])
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
            n--;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    out[n] = '\0';
}

void db_trace_call(struct db_trace *trace, int client, const char *call, const char *text,
                   int64_t start_ns, const struct db_result *result)
{
    char line[TRACE_LINE_MAX], statement[TRACE_TEXT_MAX + 1];
    int64_t end_ns = clock_now_ns(trace->clock);

    assert(end_ns >= start_ns);
    copy_text(statement, text, TRACE_TEXT_MAX);
    int n =
        snprintf(line, sizeof(line), "%.6f\t%d\t%s\t%s\t%" PRId64 "\t%.1f\t%s\t%s%s%s\n",
                 (double)(start_ns - trace->open_ns) / NS_PER_S, client, call,
                 result ? db_class_name(result->class) : "ok", result ? result->rows : 0,
                 (double)(end_ns - start_ns) / NS_PER_US, statement, result ? result->native : "",
                 result && result->native[0] ? " " : "", result ? result->message : "");
    assert(n > 0 && n < (int)sizeof(line));
    write_line(trace, line, (size_t)n);
}
