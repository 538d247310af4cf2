// Blocks to and from a file, each case with every engine there is here.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "volume/io.h"

#define BLOCK  8192
#define BLOCKS 100

struct scene {
    char path[64];
    char *buffers;
    struct hist latency;
    struct io_count count;
    struct io_job job;
};

static void scene_init(struct scene *s, int blocks_there)
{
    memset(s, 0, sizeof(*s));
    snprintf(s->path, sizeof(s->path), "/tmp/prony-test-io-XXXXXX");
    int fd = mkstemp(s->path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)blocks_there * BLOCK), 0);
    s->buffers = aligned_alloc(IO_ALIGN, IO_DEPTH_MAX * BLOCK);
    memset(s->buffers, 'x', IO_DEPTH_MAX * BLOCK);
    hist_init(&s->latency);
    s->count.latency = &s->latency;
    s->job = (struct io_job){
        .fd = fd,
        .path = s->path,
        .block_bytes = BLOCK,
        .n_blocks = BLOCKS,
        .depth = 7,
        .seed = 1000,
        .until_ns = INT64_MAX,
        .max_blocks = BLOCKS,
        .buffers = s->buffers,
    };
}

static void scene_release(struct scene *s)
{
    close(s->job.fd);
    unlink(s->path);
    free(s->buffers);
}

static void each_engine(void (*check)(const struct io_engine *engine))
{
    char why[256];
    int n = 0;

    for (int i = 1; io_names[i]; i++) {
        struct err err = ERR_INIT;
        const struct io_engine *engine = io_choose(io_names[i], why, sizeof(why), &err);
        if (engine) {
            check(engine);
            n++;
        } else {
            assert_int_equal(err.kind, ERR_ABSENT); // forbidden here, and said so
        }
    }
    assert_true(n >= 1);
}

// -1: the page has none.
static int64_t stamp_of(int fd, int block, int page)
{
    int64_t stamp[2] = {0};

    assert_int_equal(pread(fd, stamp, sizeof(stamp), (off_t)block * BLOCK + page * IO_ALIGN),
                     sizeof(stamp));
    return stamp[0] && stamp[1] == page * IO_ALIGN ? stamp[0] : -1;
}

static void check_order(const struct io_engine *engine)
{
    struct scene s;
    struct err err = ERR_INIT;

    scene_init(&s, 0);
    s.job.write = true;
    s.job.first_block = 30;
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, BLOCKS);
    assert_int_equal(s.latency.m.count, BLOCKS);
    assert_true(s.latency.m.min_ns > 0);
    assert_int_equal(lseek(s.job.fd, 0, SEEK_END), BLOCKS * BLOCK);
    // Round and round: number n went to block 30 + n, each page with a stamp of its own.
    for (int i = 0; i < BLOCKS; i++)
        for (int page = 0; page < BLOCK / IO_ALIGN; page++)
            assert_int_equal(stamp_of(s.job.fd, (30 + i) % BLOCKS, page), 1000 + i);
    scene_release(&s);
}

static void every_block_is_written_once_when_in_order(void **state)
{
    (void)state;
    each_engine(check_order);
}

static void check_random(const struct io_engine *engine)
{
    struct scene s;
    struct err err = ERR_INIT;
    int hit = 0;

    scene_init(&s, BLOCKS + 50);
    s.job.write = s.job.random = true;
    s.job.max_blocks = 10 * BLOCKS;
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, 10 * BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        hit += stamp_of(s.job.fd, i, 1) >= 1000;
    assert_true(hit > 95); // each is missed with probability e^-10
    for (int i = BLOCKS; i < BLOCKS + 50; i++)
        assert_int_equal(stamp_of(s.job.fd, i, 0), -1);
    scene_release(&s);
}

static void random_places_cover_the_file_and_no_more(void **state)
{
    (void)state;
    each_engine(check_random);
}

static void check_ends(const struct io_engine *engine)
{
    volatile sig_atomic_t stop = 1;
    struct scene s;
    struct err err = ERR_INIT;

    scene_init(&s, BLOCKS);
    s.job.stop = &stop;
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, 0);
    s.job.stop = NULL;
    s.job.until_ns = 1; // long past: one all the same, or there would be no figure
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, 1);
    s.job.until_ns = INT64_MAX;
    s.job.max_blocks = 3; // fewer than may be under way
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, 4);
    s.job.max_blocks = 2;
    assert_int_equal(engine->run(&s.job, &s.count, &err), 0);
    assert_int_equal(s.count.blocks, 6); // is added to
    assert_int_equal(s.latency.m.count, 6);
    scene_release(&s);
}

static void a_job_ends_by_clock_number_or_stop(void **state)
{
    (void)state;
    each_engine(check_ends);
}

static void check_errors(const struct io_engine *engine)
{
    struct scene s;
    struct err err = ERR_INIT;

    scene_init(&s, 10); // shorter than the job believes
    assert_int_equal(engine->run(&s.job, &s.count, &err), -1);
    assert_int_equal(err.kind, ERR_FAILED);
    assert_non_null(strstr(err.text, s.path));
    assert_non_null(strstr(err.text, "only 0 of 8192 bytes"));
    assert_true(s.count.blocks < BLOCKS);
    int own = s.job.fd;
    s.job.fd = open(s.path, O_RDONLY);
    s.job.write = true;
    assert_int_equal(engine->run(&s.job, &s.count, &err), -1);
    assert_non_null(strstr(err.text, strerror(EBADF)));
    close(s.job.fd);
    s.job.fd = own;
    scene_release(&s);
}

static void an_error_ends_the_job_and_names_the_file(void **state)
{
    (void)state;
    each_engine(check_errors);
}

static void auto_finds_one_and_an_unknown_name_none(void **state)
{
    char why[256];
    struct err err = ERR_INIT;

    (void)state;
    const struct io_engine *engine = io_choose("auto", why, sizeof(why), &err);
    assert_non_null(engine);
    // Whoever gets the second best is told why.
    assert_true((strcmp(engine->name, "io_uring") == 0) == (why[0] == '\0'));
    assert_null(io_choose("libaio", why, sizeof(why), &err));
    assert_int_equal(err.kind, ERR_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_written_once_when_in_order),
        cmocka_unit_test(random_places_cover_the_file_and_no_more),
        cmocka_unit_test(a_job_ends_by_clock_number_or_stop),
        cmocka_unit_test(an_error_ends_the_job_and_names_the_file),
        cmocka_unit_test(auto_finds_one_and_an_unknown_name_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
