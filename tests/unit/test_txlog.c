// --log-transactions: the lines are pgbench's, whole, and a full disk does not hurt.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "load/txlog.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_txlog.XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static struct txlog *open_log(int n_workers, bool lag, bool retries)
{
    struct err err = ERR_INIT;
    struct txlog *log;
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "%s/log", dir);
    assert_int_equal(txlog_open(&log, prefix, n_workers, lag, retries, &err), 0);
    return log;
}

// The file's text, which is removed.
static char *read_log(const struct txlog *log)
{
    char *text = mem_calloc(4 << 20, 1);
    int fd = open(log->path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = 0;
    for (ssize_t got; (got = read(fd, text + n, (4 << 20) - 1 - (size_t)n)) > 0;)
        n += got;
    close(fd);
    unlink(log->path);
    return text;
}

static void lines_have_the_layout_of_pgbench(void **state)
{
    (void)state;
    static const struct {
        bool lag, retries;
        enum txlog_outcome outcome;
        const char *line;
    } cases[] = {
        {false, false, TXLOG_DONE, "3 17 1235 1 1700000000 123456\n"},
        {true, false, TXLOG_DONE, "3 17 1235 1 1700000000 123456 57\n"},
        {false, true, TXLOG_DONE, "3 17 1235 1 1700000000 123456 2\n"},
        {true, true, TXLOG_DONE, "3 17 1235 1 1700000000 123456 57 2\n"},
        {true, true, TXLOG_FAILED, "3 17 failed 1 1700000000 123456 57 2\n"},
        {false, false, TXLOG_FAILED, "3 17 failed 1 1700000000 123456\n"},
        {false, false, TXLOG_UNKNOWN, "3 17 unknown 1 1700000000 123456\n"},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct txlog *log = open_log(1, cases[i].lag, cases[i].retries);
        struct txlog_buffer b;
        log->real_minus_mono_ns = 1700000000 * NS_PER_S;
        txlog_buffer_init(&b, log);
        txlog_add(&b, &(struct txlog_line){
                          .client = 3,
                          .number = 17,
                          .outcome = cases[i].outcome,
                          .script = 1,
                          .latency_ns = 1234567,
                          .end_ns = 123456789,
                          .lag_ns = 56789,
                          .retries = 2,
                      });
        txlog_buffer_release(&b);
        char *text = read_log(log);
        assert_string_equal(text, cases[i].line);
        free(text);
        assert_int_equal(txlog_error(log), 0);
        txlog_close(log);
    }
}

enum { WRITERS = 6, LINES = 10000 };

struct writer {
    struct txlog *log;
    int id;
};

static void *write_lines(void *arg)
{
    struct writer *w = arg;
    struct txlog_buffer b;
    txlog_buffer_init(&b, w->log);
    for (int i = 1; i <= LINES; i++) {
        txlog_add(&b, &(struct txlog_line){.client = w->id, .number = i, .latency_ns = i * 1000});
        if (i % 7 == 0 && txlog_wants_flush(&b)) // not at once: the buffer flushes itself
            txlog_flush(&b);
    }
    txlog_buffer_release(&b);
    return NULL;
}

static void lines_of_several_workers_stay_whole_and_in_order(void **state)
{
    (void)state;
    struct txlog *log = open_log(10000, false, false); // small buffers
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    int64_t next[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){log, i};
        next[i] = 1;
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    char *text = read_log(log);
    int lines = 0;
    for (char *p = text, *end; (end = strchr(p, '\n')) != NULL; p = end + 1, lines++) {
        int client, used = 0;
        long long number, time;
        *end = '\0';
        assert_int_equal(sscanf(p, "%d %lld %lld 0 %*d %*d%n", &client, &number, &time, &used), 3);
        assert_int_equal(p[used], '\0');
        assert_int_equal(number, next[client]++);
        assert_int_equal(time, number);
    }
    assert_int_equal(lines, WRITERS * LINES);
    free(text);
    txlog_close(log);
}

static void a_full_disk_ends_the_log_only(void **state)
{
    (void)state;
    struct txlog *log = open_log(1, false, false);
    struct txlog_buffer b;
    unlink(log->path);
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    dup2(full, log->fd);
    close(full);
    txlog_buffer_init(&b, log);
    for (int i = 1; i <= 100000; i++)
        txlog_add(&b, &(struct txlog_line){.number = i});
    assert_int_equal(txlog_error(log), ENOSPC);
    txlog_buffer_release(&b);
    txlog_close(log);
}

static void a_path_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct txlog *log;
    assert_true(txlog_open(&log, "/nowhere/at/all", 1, false, false, &err) < 0);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_the_layout_of_pgbench),
        cmocka_unit_test(lines_of_several_workers_stay_whole_and_in_order),
        cmocka_unit_test(a_full_disk_ends_the_log_only),
        cmocka_unit_test(a_path_that_cannot_be_written_is_named),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
