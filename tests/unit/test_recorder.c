// Recording by second, hand-over, merging and packing: against counting everything directly.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "load/recorder.h"
#include "load/seconds.h"

#define SEED       20261130
#define STATEMENTS 3
#define CHANNELS   (TALLY_STATEMENTS + STATEMENTS)
#define START      (77 * NS_PER_S)

// ---- what is expected

struct direct {
    int n_seconds;
    struct hist *hists; // [second][channel]
    int64_t *rows, *failed;
    int64_t *done, *errors, *lock_wait_ns;
    struct slowest slowest;
};

static struct direct direct_new(int n_seconds)
{
    size_t n = (size_t)n_seconds;
    struct direct d = {
        .n_seconds = n_seconds,
        .hists = mem_calloc(n * CHANNELS, sizeof(struct hist)),
        .rows = mem_calloc(n * CHANNELS, sizeof(int64_t)),
        .failed = mem_calloc(n * CHANNELS, sizeof(int64_t)),
        .done = mem_calloc(n, sizeof(int64_t)),
        .errors = mem_calloc(n, sizeof(int64_t)),
        .lock_wait_ns = mem_calloc(n, sizeof(int64_t)),
    };
    for (size_t i = 0; i < n * CHANNELS; i++)
        hist_init(&d.hists[i]);
    return d;
}

static void direct_release(struct direct *d)
{
    free(d->hists);
    free(d->rows);
    free(d->failed);
    free(d->done);
    free(d->errors);
    free(d->lock_wait_ns);
    slowest_release(&d->slowest);
}

struct reading {
    const struct direct *direct;
    int second;
    int channels; // seen
};

static void compare_channel(void *arg, int channel, int64_t rows, int64_t failed,
                            const struct hist_sparse *got)
{
    struct reading *r = arg;
    int at = r->second * CHANNELS + channel;
    const struct hist *expected = &r->direct->hists[at];
    struct hist_sparse sparse;

    hist_sparse_from(&sparse, expected);
    assert_int_equal(got->n, sparse.n);
    assert_memory_equal(got->bucket, sparse.bucket, (size_t)sparse.n * sizeof(*sparse.bucket));
    assert_memory_equal(got->counts, sparse.counts, (size_t)sparse.n * sizeof(*sparse.counts));
    assert_int_equal(got->m.count, expected->m.count);
    assert_int_equal(got->m.min_ns, expected->m.min_ns);
    assert_int_equal(got->m.max_ns, expected->m.max_ns);
    assert_true(got->m.sum_ns == expected->m.sum_ns); // whole numbers below 2^53: exact
    assert_int_equal(rows, r->direct->rows[at]);
    assert_int_equal(failed, r->direct->failed[at]);
    hist_sparse_release(&sparse);
    r->channels++;
}

static void compare(struct seconds *s, struct direct *d)
{
    seconds_pack(s);
    assert_int_equal(s->n, d->n_seconds);
    for (int t = 0; t < s->n; t++) {
        struct reading reading = {.direct = d, .second = t};
        int expected = 0;
        for (int c = 0; c < CHANNELS; c++)
            expected += d->hists[t * CHANNELS + c].m.count > 0;
        seconds_read(s, t, compare_channel, &reading);
        assert_int_equal(reading.channels, expected);
        assert_int_equal(s->items[t].done, d->done[t]);
        assert_int_equal(s->items[t].errors, d->errors[t]);
        assert_int_equal(s->items[t].lock_wait_ns, d->lock_wait_ns[t]);
    }
    slowest_sort(&s->slowest);
    slowest_sort(&d->slowest);
    assert_int_equal(s->slowest.n, d->slowest.n);
    if (d->slowest.n > 0)
        assert_memory_equal(s->slowest.items, d->slowest.items,
                            (size_t)d->slowest.n * sizeof(*d->slowest.items));
}

// ---- what is recorded

static int64_t draw_ns(struct rng *rng)
{
    return (int64_t)rng_exponential(rng, 1000 << rng_range(rng, 0, 12));
}

// One thing at at_ns, into the recorder and directly. Late things count only among the slowest.
static void record_one(struct recorder *r, struct direct *d, struct rng *rng, int64_t at_ns,
                       bool late, int number)
{
    int second = (int)((at_ns - START) / NS_PER_S);
    struct hist *hists = late ? NULL : &d->hists[second * CHANNELS];
    int64_t ns = draw_ns(rng);

    switch (rng_range(rng, 0, 3)) {
    case 0: {
        struct recorder_statement s = {
            .index = (int)rng_range(rng, 0, STATEMENTS - 1),
            .ns = ns,
            .rows = rng_range(rng, 0, 5),
            .lock_wait_ns = rng_range(rng, 0, 1000),
            .given_ns = rng_range(rng, 0, 1) * 500,
            .failed = rng_range(rng, 0, 9) == 0,
        };
        recorder_statement(r, at_ns, &s);
        if (late)
            break;
        int channel = TALLY_STATEMENTS + s.index;
        hist_record(&hists[channel], ns);
        if (s.given_ns)
            hist_record(&hists[TALLY_GIVEN], s.given_ns);
        d->rows[second * CHANNELS + channel] += s.rows;
        d->failed[second * CHANNELS + channel] += s.failed;
        d->lock_wait_ns[second] += s.lock_wait_ns;
        break;
    }
    case 1:
        recorder_error(r, at_ns);
        if (!late)
            d->errors[second]++;
        break;
    default: {
        struct result_slow slow = {.number = number, .latency_ns = ns, .end_ns = at_ns - START};
        recorder_done(r, at_ns, ns / 2, &slow);
        slowest_offer(&d->slowest, &slow);
        if (late)
            break;
        hist_record(&hists[TALLY_LATENCY], ns);
        hist_record(&hists[TALLY_SERVICE], ns / 2);
        d->done[second]++;
    }
    }
}

static void collect(struct seconds *s, struct recorder *r)
{
    for (struct tally *t = recorder_take(r), *next; t; t = next) {
        next = t->next;
        seconds_add(s, t);
        recorder_give(r, t);
    }
}

// Workers that run ahead of and behind each other by many seconds, collected now and then.
static void merging_over_workers_equals_counting_directly(void **state)
{
    (void)state;
    enum { WORKERS = 5, SECONDS = 40 };
    static const int64_t step_ns[WORKERS] = {100000, 1000000, 20000000, 300000000, 4000000000};
    struct rng rng;
    _Atomic int64_t end = START + SECONDS * NS_PER_S;
    struct seconds s;
    struct direct d = direct_new(SECONDS);
    struct recorder *recorders = mem_calloc_lines(WORKERS, sizeof(*recorders));
    int64_t at[WORKERS];

    rng_init(&rng, SEED, 0, RNG_DATA);
    seconds_init(&s, CHANNELS);
    for (int w = 0; w < WORKERS; w++) {
        recorder_init(&recorders[w], CHANNELS, &end, &s.slow_floor);
        recorder_start(&recorders[w], START);
        at[w] = START;
    }
    for (int left = WORKERS, number = 0; left > 0; number++) {
        int w = (int)rng_range(&rng, 0, WORKERS - 1);
        if (at[w] > end + 2 * NS_PER_S)
            continue;
        record_one(&recorders[w], &d, &rng, at[w], at[w] >= end, number);
        at[w] += rng_range(&rng, 0, 2 * step_ns[w]);
        left -= at[w] > end + 2 * NS_PER_S;
        if (rng_range(&rng, 0, 5000) == 0)
            collect(&s, &recorders[rng_range(&rng, 0, WORKERS - 1)]);
    }
    for (int w = 0; w < WORKERS; w++) {
        recorder_close(&recorders[w]);
        collect(&s, &recorders[w]);
        recorder_release(&recorders[w]);
    }
    compare(&s, &d);
    seconds_release(&s);
    direct_release(&d);
    free(recorders);
}

// Bounds: at the begin and the end of a second, and around the end.
static void a_second_holds_its_begin_and_not_its_end(void **state)
{
    (void)state;
    static const struct {
        int64_t at_ns;
        int second; // -1: late
    } cases[] = {
        {0, 0},           {1, 0},           {999999999, 0},    {1000000000, 1},
        {1999999999, 1},  {2000000000, 2},  {2499999999, 2},   {2500000000, -1},
        {2999999999, -1}, {3000000000, -1}, {90000000000, -1},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        _Atomic int64_t end = START + 2500 * NS_PER_MS;
        struct seconds s;
        struct recorder *r = mem_calloc_lines(1, sizeof(*r));
        struct result_slow slow = {.latency_ns = 5};
        seconds_init(&s, CHANNELS);
        recorder_init(r, CHANNELS, &end, &s.slow_floor);
        recorder_start(r, START);
        recorder_done(r, START + cases[i].at_ns, -1, &slow);
        recorder_close(r);
        collect(&s, r);
        seconds_pack(&s);
        for (int t = 0; t < s.n; t++)
            assert_int_equal(s.items[t].done, t == cases[i].second);
        assert_int_equal(s.n, cases[i].second + 1);
        assert_int_equal(s.slowest.n, 1);
        recorder_release(r);
        seconds_release(&s);
        free(r);
    }
}

static void recent_quantiles_cover_what_came_since_the_last_look(void **state)
{
    (void)state;
    _Atomic int64_t end = INT64_MAX;
    struct seconds s;
    struct recorder *r = mem_calloc_lines(1, sizeof(*r));
    int64_t p50, p99;
    seconds_init(&s, CHANNELS);
    recorder_init(r, CHANNELS, &end, &s.slow_floor);
    recorder_start(r, START);
    assert_false(seconds_take_recent(&s, &p50, &p99));
    for (int t = 1; t < 5; t++) {
        for (int i = 0; i < 100; i++) {
            struct result_slow slow = {.latency_ns = t * 100};
            recorder_done(r, START + (t - 1) * NS_PER_S + i, -1, &slow);
        }
        recorder_error(r, START + t * NS_PER_S); // the turn of the second
        collect(&s, r);
        assert_true(seconds_take_recent(&s, &p50, &p99));
        assert_int_equal(p50, t * 100);
        assert_int_equal(p99, t * 100);
        assert_false(seconds_take_recent(&s, &p50, &p99));
    }
    recorder_close(r);
    recorder_release(r);
    seconds_release(&s);
    free(r);
}

static void a_tally_grows_and_keeps_its_counts(void **state)
{
    (void)state;
    struct tally *t = tally_new(CHANNELS);
    struct tally *sum = tally_new(CHANNELS);
    for (int round = 0; round < 3; round++) {
        for (int c = 0; c < CHANNELS; c++)
            for (int b = 0; b < HIST_BUCKETS; b++)
                tally_count(t, c, b, (uint32_t)(b % 7 + 1));
        assert_int_equal(t->n_used, CHANNELS * HIST_BUCKETS);
        tally_add(sum, t);
        tally_clear(t);
        assert_int_equal(t->n_used, 0);
    }
    int64_t total = 0, expected = 0;
    for (uint32_t i = 0; i < sum->n_slots; i++) {
        int bucket = (int)(sum->slots[i].key & 0xffff);
        if (sum->slots[i].count == 0)
            continue;
        assert_int_equal(sum->slots[i].count, 3 * (bucket % 7 + 1));
        total++;
    }
    expected = CHANNELS * HIST_BUCKETS;
    assert_int_equal(total, expected);
    tally_free(t);
    tally_free(sum);
}

// ---- with a thread

struct writer {
    struct recorder *recorder;
    int64_t n;
};

// Seconds pass quickly here, so that hand-overs happen all the time.
static void *write_many(void *arg)
{
    struct writer *w = arg;
    for (int64_t i = 0; i < w->n; i++) {
        struct result_slow slow = {.latency_ns = 100 + i % 50, .number = i};
        recorder_done(w->recorder, START + i * NS_PER_MS, -1, &slow);
    }
    recorder_close(w->recorder);
    return NULL;
}

static void tallies_pass_between_threads_without_loss(void **state)
{
    (void)state;
    _Atomic int64_t end = INT64_MAX;
    struct seconds s;
    struct recorder *r = mem_calloc_lines(1, sizeof(*r));
    struct writer w = {r, 500000};
    pthread_t thread;
    seconds_init(&s, CHANNELS);
    recorder_init(r, CHANNELS, &end, &s.slow_floor);
    recorder_start(r, START);
    assert_int_equal(pthread_create(&thread, NULL, write_many, &w), 0);
    for (int i = 0; i < 1000; i++)
        collect(&s, r);
    pthread_join(thread, NULL);
    collect(&s, r);
    seconds_pack(&s);
    assert_int_equal(s.n, 500);
    for (int t = 0; t < s.n; t++)
        assert_int_equal(s.items[t].done, 1000);
    recorder_release(r);
    seconds_release(&s);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_over_workers_equals_counting_directly),
        cmocka_unit_test(a_second_holds_its_begin_and_not_its_end),
        cmocka_unit_test(recent_quantiles_cover_what_came_since_the_last_look),
        cmocka_unit_test(a_tally_grows_and_keeps_its_counts),
        cmocka_unit_test(tallies_pass_between_threads_without_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
