// Latency models against sums that can be done by hand. No clock: times are only numbers here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/rng.h"
#include "volume/vdisk_model.h"

#define MIB  (1LL << 20)
#define GIB  (1LL << 30)
#define PAGE 4096

static void assert_within(double value, double wanted, double part)
{
    if (value < wanted * (1 - part) || value > wanted * (1 + part))
        fail_msg("%g is not within %g %% of %g", value, 100 * part, wanted);
}

// Mean time of n reads of a page, each after the one before, at random places of a part of the
// disk.
static double mean_read_ns(struct vdisk_model *m, int64_t from, int64_t to, int n)
{
    struct rng rng;
    int64_t now_ns = 0, sum_ns = 0;

    rng_init(&rng, 7, 0, RNG_DATA);
    for (int i = 0; i < n; i++) {
        int64_t offset = rng_range(&rng, from / PAGE, to / PAGE - 1) * PAGE;
        // A think time, or the platter would always stand where the read before left it.
        now_ns += rng_range(&rng, 0, 20 * NS_PER_MS);
        int64_t done_ns = vdisk_model_done_ns(m, VDISK_READ, offset, PAGE, now_ns);
        sum_ns += done_ns - now_ns;
        now_ns = done_ns;
    }
    return (double)sum_ns / n;
}

static void none_takes_no_time(void **state)
{
    struct vdisk_model *m = vdisk_model_new(vdisk_model_find("none"), GIB, false, 1);

    (void)state;
    for (int op = 0; op < VDISK_OPS; op++)
        for (int64_t at = 0; at < 5; at++)
            assert_int_equal(vdisk_model_done_ns(m, (enum vdisk_op)op, at * MIB, MIB, 100 + at),
                             100 + at);
    vdisk_model_free(m);
}

static void every_name_is_a_model_and_others_are_not(void **state)
{
    (void)state;
    for (int i = 0; vdisk_model_names[i]; i++)
        assert_non_null(vdisk_model_find(vdisk_model_names[i]));
    assert_null(vdisk_model_find("hdd"));
    assert_null(vdisk_model_find(""));
}

static void a_random_read_waits_half_a_turn_when_nothing_moves(void **state)
{
    static const int64_t rpms[] = {5400, 7200, 10000, 15000};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(rpms); i++) {
        struct vdisk_model_spec spec = {.rpm = rpms[i], .rate = 1000 * MIB};
        struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 3);
        double half_turn_ns = 30.0 * NS_PER_S / (double)rpms[i];
        assert_within(mean_read_ns(m, 0, GIB, 20000), half_turn_ns, 0.03);
        vdisk_model_free(m);
    }
}

// With nothing but seeks: a platter so fast that its turn does not count.
static void a_seek_takes_its_time_by_distance(void **state)
{
    static const struct {
        int64_t from, to; // in 1/10000 of the disk
        double seek_ms;
    } cases[] = {
        {0, 1, 1 + 9 * 0.01}, {0, 100, 1 + 9 * 0.1}, {0, 2500, 1 + 9 * 0.5},
        {0, 9999, 10},        {9999, 0, 10},         {5000, 7500, 1 + 9 * 0.5},
    };
    struct vdisk_model_spec spec = {.rpm = 1000000,
                                    .rate = 100000 * MIB,
                                    .seek_track_ns = 1 * NS_PER_MS,
                                    .seek_full_ns = 10 * NS_PER_MS};
    int64_t size = 10000LL * MIB;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct vdisk_model *m = vdisk_model_new(&spec, size, false, 1);
        int64_t there_ns = vdisk_model_done_ns(m, VDISK_READ, cases[i].from * MIB, PAGE, 0);
        int64_t done_ns = vdisk_model_done_ns(m, VDISK_READ, cases[i].to * MIB, PAGE, there_ns);
        assert_within((double)(done_ns - there_ns) / NS_PER_MS, cases[i].seek_ms, 0.06);
        vdisk_model_free(m);
    }
}

static void the_average_seek_of_a_hard_disk_is_that_of_its_kind(void **state)
{
    // Data sheets: about 8.5, 4.7 and 3.6 ms, and half a turn.
    static const struct {
        const char *name;
        double read_ms;
    } cases[] = {
        {"hdd-7200", 8.8 + 4.17},
        {"hdd-10k", 4.9 + 3.0},
        {"hdd-15k", 3.8 + 2.0},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        const struct vdisk_model_spec *spec = vdisk_model_find(cases[i].name);
        struct vdisk_model *m = vdisk_model_new(spec, 100 * GIB, false, 1);
        double mean_ns = mean_read_ns(m, 0, 100 * GIB, 20000);
        assert_within(mean_ns / NS_PER_MS, cases[i].read_ms, 0.04);
        assert_within(mean_ns, (double)vdisk_model_claim_ns(spec, VDISK_READ), 0.04);
        vdisk_model_free(m);
    }
}

static void a_short_stroke_is_faster_than_a_full_one(void **state)
{
    const struct vdisk_model_spec *spec = vdisk_model_find("hdd-7200");
    struct vdisk_model_spec outer = *spec;
    struct vdisk_model *m = vdisk_model_new(spec, 100 * GIB, false, 1);

    (void)state;
    double full_ns = mean_read_ns(m, 0, 100 * GIB, 5000);
    vdisk_model_free(m);
    m = vdisk_model_new(spec, 100 * GIB, false, 1);
    double short_ns = mean_read_ns(m, 0, 1 * GIB, 5000);
    // A hundredth of the way: 0.6 + 15.4 * 0.533 * 0.1 ms, and half a turn.
    assert_within(short_ns / NS_PER_MS, 0.6 + 0.82 + 4.17, 0.05);
    assert_true(short_ns < 0.5 * full_ns);
    vdisk_model_free(m);
    // The same as a small disk that is said to be a part of a large one.
    outer.capacity = 100 * GIB;
    m = vdisk_model_new(&outer, 1 * GIB, false, 1);
    assert_within(mean_read_ns(m, 0, 1 * GIB, 5000), short_ns, 0.001);
    vdisk_model_free(m);
}

// Reads length bytes in pieces, one after the other; bytes per second.
static double sequential_rate(struct vdisk_model *m, int64_t start, int64_t length, int64_t piece)
{
    int64_t now_ns = vdisk_model_done_ns(m, VDISK_READ, start, piece, 0);
    int64_t begin_ns = now_ns;

    for (int64_t at = start + piece; at < start + length; at += piece)
        now_ns = vdisk_model_done_ns(m, VDISK_READ, at, piece, now_ns);
    return (double)(length - piece) * NS_PER_S / (double)(now_ns - begin_ns);
}

static void sequential_reads_go_at_the_rate_of_their_zone(void **state)
{
    (void)state;
    struct vdisk_model *hdd = vdisk_model_new(vdisk_model_find("hdd-7200"), 16 * GIB, false, 1);
    assert_within(sequential_rate(hdd, 0, 512 * MIB, MIB), 200.0 * MIB, 0.01);
    assert_within(sequential_rate(hdd, 0, 8 * MIB, PAGE), 200.0 * MIB, 0.01);
    assert_within(sequential_rate(hdd, 15 * GIB, 512 * MIB, MIB), 100.0 * MIB, 0.01);
    vdisk_model_free(hdd);
    struct vdisk_model *ssd = vdisk_model_new(vdisk_model_find("ssd-sata"), 16 * GIB, false, 1);
    assert_within(sequential_rate(ssd, 0, 512 * MIB, MIB), 500.0 * MIB, 0.01);
    vdisk_model_free(ssd);
}

static void one_large_write_through_goes_at_the_rate(void **state)
{
    struct vdisk_model_spec spec = {.rate = 100 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);

    (void)state;
    assert_int_equal(vdisk_model_done_ns(m, VDISK_WRITE, 0, 50 * MIB, 0), NS_PER_S / 2);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_WRITE, 0, 50 * MIB, 0), NS_PER_S);
    vdisk_model_free(m);
}

// Keeps depth reads on their way; reads per second.
static double reads_per_second(struct vdisk_model *m, int depth, int n)
{
    int64_t done_ns[64] = {0};
    struct rng rng;
    int64_t last_ns = 0;

    rng_init(&rng, 5, 0, RNG_DATA);
    for (int i = 0; i < n; i++) {
        int first = 0; // whose slot is free first
        for (int k = 1; k < depth; k++)
            if (done_ns[k] < done_ns[first])
                first = k;
        int64_t offset = rng_range(&rng, 0, GIB / PAGE - 1) * PAGE;
        done_ns[first] = vdisk_model_done_ns(m, VDISK_READ, offset, PAGE, done_ns[first]);
        last_ns = done_ns[first] > last_ns ? done_ns[first] : last_ns;
    }
    return (double)n * NS_PER_S / (double)last_ns;
}

static void channels_work_side_by_side_and_no_further(void **state)
{
    static const struct {
        int channels, depth;
        double reads_per_ms; // of 1 ms each
    } cases[] = {
        {1, 1, 1}, {1, 8, 1}, {4, 1, 1}, {4, 4, 4}, {4, 16, 4}, {32, 32, 32}, {64, 8, 8},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct vdisk_model_spec spec = {
            .read_ns = NS_PER_MS, .channels = cases[i].channels, .rate = 1000 * MIB};
        struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);
        assert_within(reads_per_second(m, cases[i].depth, 20000), cases[i].reads_per_ms * 1000,
                      0.01);
        vdisk_model_free(m);
    }
}

static void channels_share_the_rate_of_the_medium(void **state)
{
    struct vdisk_model_spec spec = {.read_ns = 100 * NS_PER_US, .channels = 64, .rate = 100 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);

    (void)state; // 64 channels could give 640000 reads, the rate lets 25600 through
    assert_within(reads_per_second(m, 64, 20000), 25600, 0.01);
    vdisk_model_free(m);
}

static void a_flush_of_a_solid_state_disk_costs_itself_and_its_bytes(void **state)
{
    struct vdisk_model_spec spec = {
        .flush_ns = 2 * NS_PER_MS, .rate = 100 * MIB, .cache_bytes = 64 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);

    (void)state;
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, 0), 2 * NS_PER_MS);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_WRITE, 0, 10 * MIB, NS_PER_S), NS_PER_S);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, NS_PER_S),
                     NS_PER_S + 102 * NS_PER_MS);
    assert_int_equal(vdisk_model_dirty_bytes(m, 2 * NS_PER_S), 0);
    vdisk_model_free(m);
}

static void what_is_written_twice_or_side_by_side_is_written_out_once(void **state)
{
    struct vdisk_model_spec spec = {.rate = 100 * MIB, .cache_bytes = 64 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);

    (void)state;
    for (int i = 0; i < 5; i++)
        vdisk_model_done_ns(m, VDISK_WRITE, 0, MIB, 0);
    vdisk_model_done_ns(m, VDISK_WRITE, MIB, MIB, 0);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, 0), 20 * NS_PER_MS);
    vdisk_model_free(m);
}

static void a_discard_takes_writes_out_of_the_cache(void **state)
{
    struct vdisk_model_spec spec = {.rate = 100 * MIB, .cache_bytes = 64 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, GIB, false, 1);

    (void)state;
    vdisk_model_done_ns(m, VDISK_WRITE, 4 * MIB, MIB, 0);
    vdisk_model_done_ns(m, VDISK_DISCARD, 4 * MIB, 2 * MIB, 0);
    assert_int_equal(vdisk_model_dirty_bytes(m, 0), 0);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, 5), 5);
    vdisk_model_free(m);
}

// An appended block just missed its turn: that is what a log on a hard disk lives on.
static void a_log_on_a_hard_disk_gets_one_flush_a_turn(void **state)
{
    struct vdisk_model *m = vdisk_model_new(vdisk_model_find("hdd-7200"), GIB, false, 1);
    int64_t now_ns = 0;
    int n = 500;

    (void)state;
    for (int i = 0; i < n; i++) {
        now_ns = vdisk_model_done_ns(m, VDISK_WRITE, i * 2 * PAGE, 2 * PAGE, now_ns);
        now_ns = vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, now_ns);
    }
    assert_within((double)n * NS_PER_S / (double)now_ns, 120, 0.05);
    vdisk_model_free(m);
}

static void a_full_cache_slows_writes_to_the_rate_of_the_medium(void **state)
{
    struct vdisk_model_spec spec = {
        .rate = 100 * MIB, .link_rate = 1000 * MIB, .cache_bytes = 64 * MIB};
    struct vdisk_model *m = vdisk_model_new(&spec, 4 * GIB, false, 1);
    int64_t now_ns = 0, full_ns = 0;

    (void)state;
    for (int64_t at = 0; at < 1024 * MIB; at += MIB) {
        now_ns = vdisk_model_done_ns(m, VDISK_WRITE, at, MIB, now_ns);
        assert_true(vdisk_model_dirty_bytes(m, now_ns) <= 64 * MIB);
        if (at == 63 * MIB)
            full_ns = now_ns;
    }
    assert_within((double)full_ns, 64.0 / 1000 * NS_PER_S, 0.01);
    assert_within(960.0 * NS_PER_S / (double)(now_ns - full_ns), 100, 0.03);
    vdisk_model_free(m);
}

static void a_protected_cache_flushes_for_nothing(void **state)
{
    struct vdisk_model *m = vdisk_model_new(vdisk_model_find("hdd-7200"), GIB, true, 1);

    (void)state;
    int64_t now_ns = vdisk_model_done_ns(m, VDISK_WRITE, 500 * MIB, PAGE, 0);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, now_ns), now_ns);
    vdisk_model_set_flush_is_free(m, false);
    assert_true(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, now_ns) > now_ns + NS_PER_MS);
    vdisk_model_free(m);
}

static void the_same_seed_gives_the_same_times_and_another_gives_others(void **state)
{
    const struct vdisk_model_spec *spec = vdisk_model_find("hdd-10k");
    int differ = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct vdisk_model *a = vdisk_model_new(spec, GIB, false, seed);
        struct vdisk_model *b = vdisk_model_new(spec, GIB, false, seed);
        struct vdisk_model *c = vdisk_model_new(spec, GIB, false, seed + 1000);
        double a_ns = mean_read_ns(a, 0, GIB, 100);
        assert_true(a_ns == mean_read_ns(b, 0, GIB, 100));
        differ += a_ns != mean_read_ns(c, 0, GIB, 100);
        vdisk_model_free(a);
        vdisk_model_free(b);
        vdisk_model_free(c);
    }
    assert_int_equal(differ, 5);
}

static void a_power_cut_empties_the_cache(void **state)
{
    struct vdisk_model *m = vdisk_model_new(vdisk_model_find("hdd-7200"), GIB, false, 1);

    (void)state;
    vdisk_model_done_ns(m, VDISK_WRITE, 0, 32 * MIB, 0);
    assert_int_equal(vdisk_model_dirty_bytes(m, 0), 32 * MIB);
    vdisk_model_reset(m);
    assert_int_equal(vdisk_model_dirty_bytes(m, 0), 0);
    assert_int_equal(vdisk_model_done_ns(m, VDISK_FLUSH, 0, 0, 9), 9);
    vdisk_model_free(m);
}

// Any requests on any model: never done before they arrive, never beyond the bound of the cache.
static void whatever_is_asked_time_goes_forward(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rng rng;
        rng_init(&rng, seed, 0, RNG_DATA);
        struct vdisk_model_spec spec = *vdisk_model_find(vdisk_model_names[seed % 5]);
        spec.cache_bytes = rng_range(&rng, 0, 3) ? rng_range(&rng, 1, 64) * 65536 : 0;
        spec.channels = rng_range(&rng, 1, VDISK_CHANNELS_MAX);
        struct vdisk_model *m = vdisk_model_new(&spec, 64 * MIB, rng_range(&rng, 0, 1) == 1, seed);
        int64_t now_ns = 0;
        for (int i = 0; i < 2000; i++) {
            enum vdisk_op op = (enum vdisk_op)rng_range(&rng, 0, VDISK_OPS - 1);
            int64_t length = op == VDISK_FLUSH ? 0 : rng_range(&rng, 1, 256) * 512;
            int64_t offset = rng_range(&rng, 0, (64 * MIB - length) / 512) * 512;
            int64_t done_ns = vdisk_model_done_ns(m, op, offset, length, now_ns);
            assert_true(done_ns >= now_ns);
            if (spec.rpm || spec.rate) // else nothing needs writing out
                assert_true(vdisk_model_dirty_bytes(m, done_ns) <=
                            (spec.cache_bytes > 256 * 512 ? spec.cache_bytes : 256 * 512));
            now_ns = rng_range(&rng, 0, 1) ? done_ns : now_ns + rng_range(&rng, 0, NS_PER_MS);
        }
        vdisk_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_takes_no_time),
        cmocka_unit_test(every_name_is_a_model_and_others_are_not),
        cmocka_unit_test(a_random_read_waits_half_a_turn_when_nothing_moves),
        cmocka_unit_test(a_seek_takes_its_time_by_distance),
        cmocka_unit_test(the_average_seek_of_a_hard_disk_is_that_of_its_kind),
        cmocka_unit_test(a_short_stroke_is_faster_than_a_full_one),
        cmocka_unit_test(sequential_reads_go_at_the_rate_of_their_zone),
        cmocka_unit_test(one_large_write_through_goes_at_the_rate),
        cmocka_unit_test(channels_work_side_by_side_and_no_further),
        cmocka_unit_test(channels_share_the_rate_of_the_medium),
        cmocka_unit_test(a_flush_of_a_solid_state_disk_costs_itself_and_its_bytes),
        cmocka_unit_test(what_is_written_twice_or_side_by_side_is_written_out_once),
        cmocka_unit_test(a_discard_takes_writes_out_of_the_cache),
        cmocka_unit_test(a_log_on_a_hard_disk_gets_one_flush_a_turn),
        cmocka_unit_test(a_full_cache_slows_writes_to_the_rate_of_the_medium),
        cmocka_unit_test(a_protected_cache_flushes_for_nothing),
        cmocka_unit_test(the_same_seed_gives_the_same_times_and_another_gives_others),
        cmocka_unit_test(a_power_cut_empties_the_cache),
        cmocka_unit_test(whatever_is_asked_time_goes_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
