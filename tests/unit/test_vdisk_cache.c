// The fault model against a naive one, over long random sequences of writes, flushes, discards and
// cuts. The naive one keeps every write of all time and works out the disk anew at each cut.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "volume/vdisk_cache.h"

#define SIZE (16 * VDISK_BLOCK)

struct memory {
    uint8_t bytes[SIZE];
    int fail_in; // calls until one fails; 0: none
};

static int fails(struct memory *m)
{
    return m->fail_in > 0 && --m->fail_in == 0 ? -5 : 0;
}

static int memory_read(void *context, uint64_t offset, void *bytes, size_t n)
{
    struct memory *m = context;

    assert_true(offset + n <= SIZE);
    memcpy(bytes, m->bytes + offset, n);
    return fails(m);
}

static int memory_write(void *context, uint64_t offset, const void *bytes, size_t n)
{
    struct memory *m = context;

    assert_true(offset + n <= SIZE);
    memcpy(m->bytes + offset, bytes, n);
    return fails(m);
}

static int memory_zero(void *context, uint64_t offset, uint64_t n)
{
    struct memory *m = context;

    assert_true(offset + n <= SIZE);
    memset(m->bytes + offset, 0, n);
    return fails(m);
}

struct subject {
    struct memory memory;
    struct vdisk_cache *cache;
};

static void subject_init(struct subject *s, uint64_t limit)
{
    memset(s, 0, sizeof(*s));
    struct vdisk_medium medium = {memory_read, memory_write, memory_zero, &s->memory};
    s->cache = vdisk_cache_new(&medium, limit);
}

static void put(struct subject *s, uint64_t seq, uint64_t offset, size_t n, int value)
{
    uint8_t bytes[SIZE];

    memset(bytes, value, n);
    assert_int_equal(vdisk_cache_write(s->cache, seq, offset, bytes, n), 0);
}

static struct vdisk_cut cut(struct subject *s, enum vdisk_survivors survivors, uint32_t unit,
                            uint64_t seed)
{
    struct vdisk_fate fate = {survivors, seed, unit};
    struct vdisk_cut result;

    assert_int_equal(vdisk_cache_cut(s->cache, 100, &fate, &result), 0);
    assert_int_equal(vdisk_cache_pending_bytes(s->cache), 0);
    assert_int_equal(vdisk_cache_pending_writes(s->cache), 0);
    return result;
}

static void a_cut_loses_what_was_not_flushed_and_only_that(void **state)
{
    struct subject s;

    (void)state;
    subject_init(&s, SIZE);
    put(&s, 1, 0, 512, 'a');
    put(&s, 2, 8192, 4096, 'b');
    assert_int_equal(vdisk_cache_settle(s.cache, 2), 2);
    put(&s, 3, 512, 512, 'c');
    put(&s, 4, 8192, 512, 'd');
    assert_int_equal(s.memory.bytes[8192], 'd'); // the host sees it
    struct vdisk_cut lost = cut(&s, VDISK_DROP, 512, 1);
    assert_int_equal(lost.pending_writes, 2);
    assert_int_equal(lost.pending_bytes, 1024);
    assert_int_equal(lost.lost_units, 2);
    assert_int_equal(lost.survived_units, 0);
    assert_int_equal(s.memory.bytes[0], 'a');
    assert_int_equal(s.memory.bytes[512], 0);
    assert_int_equal(s.memory.bytes[8192], 'b');
    vdisk_cache_free(s.cache);
}

static void a_flush_covers_only_what_came_before_it(void **state)
{
    struct subject s;

    (void)state;
    subject_init(&s, SIZE);
    put(&s, 1, 0, 4096, 'a');
    put(&s, 2, 0, 512, 'b');
    put(&s, 3, 1024, 512, 'c');
    assert_int_equal(vdisk_cache_settle(s.cache, 2), 2); // 3 was replied to while it ran
    assert_int_equal(vdisk_cache_pending_writes(s.cache), 1);
    cut(&s, VDISK_DROP, 512, 1);
    assert_int_equal(s.memory.bytes[0], 'b');
    assert_int_equal(s.memory.bytes[512], 'a');
    assert_int_equal(s.memory.bytes[1024], 'a');
    vdisk_cache_free(s.cache);
}

static void a_protected_cache_keeps_everything(void **state)
{
    struct subject s;

    (void)state;
    subject_init(&s, SIZE);
    put(&s, 1, 0, 4096, 'a');
    put(&s, 2, 100, 1000, 'b');
    struct vdisk_cut kept = cut(&s, VDISK_KEEP, 0, 1);
    assert_int_equal(kept.survived_units, 2);
    assert_int_equal(kept.lost_units, 0);
    assert_int_equal(s.memory.bytes[0], 'a');
    assert_int_equal(s.memory.bytes[100], 'b');
    assert_int_equal(s.memory.bytes[1100], 'a');
    vdisk_cache_free(s.cache);
}

static void a_prefix_is_whole_then_torn_then_nothing(void **state)
{
    int torn = 0, whole = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct subject s;
        subject_init(&s, SIZE);
        for (int i = 0; i < 6; i++)
            put(&s, (uint64_t)i + 1, (uint64_t)i * 8192, 8192, 'a' + i);
        cut(&s, VDISK_PREFIX, 512, seed);
        uint64_t end = 0;
        while (end < 6 * 8192 && s.memory.bytes[end])
            end++;
        assert_int_equal(end % 512, 0);
        for (uint64_t i = 0; i < SIZE; i++)
            assert_int_equal(s.memory.bytes[i], i < end ? 'a' + (int)(i / 8192) : 0);
        torn += end % 8192 != 0;
        whole += end == 6 * 8192;
        vdisk_cache_free(s.cache);
    }
    assert_in_range(torn, 100, 199);
    assert_in_range(whole, 5, 80);
}

static void units_survive_by_fair_and_independent_coins(void **state)
{
    struct {
        uint32_t unit;
        uint64_t units;
    } cases[] = {{4096, 16}, {512, 128}, {0, 1}};

    (void)state;
    for (size_t c = 0; c < ARR_LEN(cases); c++) {
        uint64_t survived = 0, all = 0, with_neighbour = 0;
        for (uint64_t seed = 0; seed < 300; seed++) {
            struct subject s;
            subject_init(&s, SIZE);
            put(&s, 1, 0, SIZE, 'x');
            struct vdisk_cut result = cut(&s, VDISK_RANDOM, cases[c].unit, seed);
            assert_int_equal(result.survived_units + result.lost_units, cases[c].units);
            survived += result.survived_units;
            all += cases[c].units;
            for (uint64_t at = 0; at + 4096 < SIZE; at += 4096)
                with_neighbour += s.memory.bytes[at] == s.memory.bytes[at + 4096];
            vdisk_cache_free(s.cache);
        }
        // Whole writes: 300 coins, five standard deviations.
        assert_in_range(survived * 1000 / all, cases[c].unit ? 450 : 355,
                        cases[c].unit ? 550 : 645);
        if (cases[c].unit)
            assert_in_range(with_neighbour * 100 / (300 * 15), 45, 55);
    }
}

static void without_a_cache_every_write_is_durable(void **state)
{
    struct subject s;

    (void)state;
    subject_init(&s, 0);
    put(&s, 1, 0, 512, 'a');
    assert_int_equal(vdisk_cache_pending_writes(s.cache), 0);
    assert_int_equal(vdisk_cache_overflow(s.cache), 0);
    cut(&s, VDISK_DROP, 512, 1);
    assert_int_equal(s.memory.bytes[0], 'a');
    vdisk_cache_free(s.cache);
}

static void the_bound_is_held_by_settling_the_oldest(void **state)
{
    struct subject s;

    (void)state;
    subject_init(&s, 3 * VDISK_BLOCK);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        put(&s, seq, seq * 4096, 512, 'a'); // counted as a block
        assert_int_equal(vdisk_cache_overflow(s.cache), 0);
    }
    put(&s, 4, 0, 8192, 'b');
    assert_int_equal(vdisk_cache_overflow(s.cache), 2);
    vdisk_cache_settle(s.cache, 2);
    assert_int_equal(vdisk_cache_overflow(s.cache), 0);
    assert_int_equal(vdisk_cache_pending_bytes(s.cache), 3 * VDISK_BLOCK);
    vdisk_cache_free(s.cache);
}

static void an_error_of_the_medium_is_told_and_nothing_is_pending(void **state)
{
    uint8_t bytes[VDISK_BLOCK] = {0};

    (void)state;
    for (int at = 1; at <= 3; at++) { // two reads of what is durable, the write
        struct subject s;
        subject_init(&s, SIZE);
        s.memory.fail_in = at;
        assert_int_equal(vdisk_cache_write(s.cache, 1, 100, bytes, sizeof(bytes)), -5);
        assert_int_equal(vdisk_cache_pending_writes(s.cache), 0);
        vdisk_cache_free(s.cache);
    }
}

// ---- the naive model

struct naive_write {
    uint64_t seq, offset;
    size_t n;
    int value; // -1: zeros, durable
    bool settled;
};

struct naive {
    uint8_t base[SIZE]; // what the last cut left
    struct naive_write writes[600];
    int n;
};

static void naive_apply(uint8_t *disk, const struct naive_write *w, uint64_t from, uint64_t to)
{
    memset(disk + from, w->value < 0 ? 0 : w->value, to - from);
}

// Durable writes in order; then what survives of the others. What is durable goes under what is
// pending, though it may have come later (a discard): such never overlap.
static void naive_cut(struct naive *naive, const struct vdisk_fate *fate)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < naive->n; i++) {
            const struct naive_write *w = &naive->writes[i];
            uint64_t end = w->offset + w->n;
            if (pass == 0 && w->settled)
                naive_apply(naive->base, w, w->offset, end);
            if (pass == 0 || w->settled)
                continue;
            for (uint64_t at = w->offset; at < end;) {
                uint64_t unit = fate->unit ? at / fate->unit : 0;
                uint64_t to =
                    fate->unit && (unit + 1) * fate->unit < end ? (unit + 1) * fate->unit : end;
                if (fate->survivors == VDISK_KEEP ||
                    (fate->survivors == VDISK_RANDOM && vdisk_fate_coin(fate->seed, w->seq, unit)))
                    naive_apply(naive->base, w, at, to);
                at = to;
            }
        }
    }
    naive->n = 0;
}

static void naive_front(const struct naive *naive, uint8_t *disk)
{
    memcpy(disk, naive->base, SIZE);
    for (int i = 0; i < naive->n; i++) {
        const struct naive_write *w = &naive->writes[i];
        naive_apply(disk, w, w->offset, w->offset + w->n);
    }
}

static void naive_settle(struct naive *naive, uint64_t seq)
{
    for (int i = 0; i < naive->n; i++)
        naive->writes[i].settled |= naive->writes[i].seq <= seq;
}

static void step(struct subject *s, struct naive *naive, struct rng *rng, uint64_t seq)
{
    struct naive_write w = {.seq = seq,
                            .offset = (uint64_t)rng_range(rng, 0, SIZE / 512 - 1) * 512};
    int64_t room = (int64_t)(SIZE - w.offset) / 512;

    w.n = (size_t)rng_range(rng, 1, room < 24 ? room : 24) * 512;
    w.value = (int)rng_range(rng, 1, 255);
    int64_t what = rng_range(rng, 0, 19);
    if (what < 16) {
        put(s, seq, w.offset, w.n, w.value);
    } else if (what < 18) {
        // Any earlier number: writes replied to while the flush ran are not covered.
        uint64_t covers = seq - (uint64_t)rng_range(rng, 1, seq < 12 ? (int64_t)seq : 12);
        vdisk_cache_settle(s->cache, covers);
        naive_settle(naive, covers);
        return;
    } else {
        uint64_t newest = vdisk_cache_newest(s->cache, w.offset, w.n);
        if (newest) {
            vdisk_cache_settle(s->cache, newest);
            naive_settle(naive, newest);
        }
        assert_int_equal(vdisk_cache_zero(s->cache, w.offset, w.n), 0);
        w.value = -1;
        w.settled = true;
    }
    naive->writes[naive->n++] = w;
    uint64_t through = vdisk_cache_overflow(s->cache);
    if (through) {
        vdisk_cache_settle(s->cache, through);
        naive_settle(naive, through);
    }
}

static void any_sequence_leaves_what_the_naive_model_says(void **state)
{
    static const enum vdisk_survivors kinds[] = {VDISK_DROP, VDISK_RANDOM, VDISK_KEEP};
    static const uint32_t units[] = {0, 512, 4096};
    struct naive *naive = mem_calloc(1, sizeof(*naive));
    uint8_t *front = mem_calloc(SIZE, 1);

    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct subject s;
        struct rng rng;
        uint64_t seq = 0;
        memset(naive, 0, sizeof(*naive));
        rng_init(&rng, seed, 0, RNG_DATA);
        subject_init(&s, (uint64_t)rng_range(&rng, 24, 400) * VDISK_BLOCK);
        for (int cuts = 0; cuts < 8; cuts++) {
            int64_t steps = rng_range(&rng, 0, 300);
            for (int64_t i = 0; i < steps; i++) {
                step(&s, naive, &rng, ++seq);
                if (i % 16 == 0) {
                    naive_front(naive, front);
                    assert_memory_equal(s.memory.bytes, front, SIZE);
                }
            }
            struct vdisk_fate fate = {kinds[rng_range(&rng, 0, 2)], rng_u64(&rng),
                                      units[rng_range(&rng, 0, 2)]};
            struct vdisk_cut result;
            assert_int_equal(vdisk_cache_cut(s.cache, seq, &fate, &result), 0);
            naive_cut(naive, &fate);
            if (memcmp(s.memory.bytes, naive->base, SIZE) != 0)
                fail_msg("seed %d, cut %d: the disks differ", (int)seed, cuts);
        }
        vdisk_cache_free(s.cache);
    }
    free(naive);
    free(front);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_loses_what_was_not_flushed_and_only_that),
        cmocka_unit_test(a_flush_covers_only_what_came_before_it),
        cmocka_unit_test(a_protected_cache_keeps_everything),
        cmocka_unit_test(a_prefix_is_whole_then_torn_then_nothing),
        cmocka_unit_test(units_survive_by_fair_and_independent_coins),
        cmocka_unit_test(without_a_cache_every_write_is_durable),
        cmocka_unit_test(the_bound_is_held_by_settling_the_oldest),
        cmocka_unit_test(an_error_of_the_medium_is_told_and_nothing_is_pending),
        cmocka_unit_test(any_sequence_leaves_what_the_naive_model_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
