#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "stats/hist.h"

#define SEED           20240607
#define QUANTILE_ERROR 0.004 // half of 1/128, rounded up

static struct hist *hist_new(void)
{
    struct hist *h = mem_calloc(1, sizeof(*h));
    hist_init(h);
    return h;
}

static struct hist *hist_of(const int64_t *values, int n)
{
    struct hist *h = hist_new();
    for (int i = 0; i < n; i++) {
        hist_record(h, values[i]);
    }
    return h;
}

// Spread evenly over the orders of magnitude from 1 ns to beyond the last bucket's lower bound.
static int64_t draw_any(struct rng *rng)
{
    return (int64_t)exp(rng_double(rng) * log(4e12));
}

// A lognormal around 2 ms with a second mode of stalls, as databases have.
static int64_t draw_latency(struct rng *rng)
{
    double normal = sqrt(-2 * log(1 - rng_double(rng))) * cos(6.283185307 * rng_double(rng));
    double ns = 2e6 * exp(0.5 * normal);
    return (int64_t)(rng_range(rng, 0, 99) == 0 ? ns * 40 : ns);
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void assert_near(double got, double want, double relative)
{
    if (fabs(got - want) > relative * fabs(want)) {
        fail_msg("got %.17g, want %.17g within %g", got, want, relative);
    }
}

static void assert_same_moments(const struct hist_moments *a, const struct hist_moments *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->min_ns, b->min_ns);
    assert_int_equal(a->max_ns, b->max_ns);
    assert_near(a->sum_ns, b->sum_ns, 1e-12);
    assert_near(a->sum_sq, b->sum_sq, 1e-12);
}

static void buckets_cover_the_range_without_gap_or_overlap(void **state)
{
    (void)state;
    assert_int_equal(hist_bucket_low(0), 0);
    assert_int_equal(hist_bucket_high(HIST_BUCKETS - 1), HIST_MAX_NS);
    for (int b = 0; b < HIST_BUCKETS; b++) {
        int64_t low = hist_bucket_low(b);
        int64_t high = hist_bucket_high(b);
        int64_t mid = hist_bucket_mid(b);
        assert_true(low <= mid && mid <= high);
        assert_int_equal(hist_bucket(low), b);
        assert_int_equal(hist_bucket(high), b);
        assert_true(b == 0 || hist_bucket(low - 1) == b - 1);
        assert_true((double)(high - mid) <= QUANTILE_ERROR * (double)low);
        assert_true((double)(mid - low) <= QUANTILE_ERROR * (double)low);
        if (b < 2 * HIST_SUB) {
            assert_int_equal(low, high);
        }
    }
}

static void values_out_of_range_land_in_the_end_buckets(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        int bucket;
    } cases[] = {
        {INT64_MIN, 0},
        {-1, 0},
        {0, 0},
        {255, 255},
        {256, 256},
        {257, 256},
        {258, 257},
        {HIST_MAX_NS, HIST_BUCKETS - 1},
        {HIST_MAX_NS + 1, HIST_BUCKETS - 1},
        {INT64_MAX, HIST_BUCKETS - 1},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_int_equal(hist_bucket(cases[i].ns), cases[i].bucket);
    }
}

static void any_value_is_reported_within_the_error_bound(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 0, RNG_DATA);
    for (int i = 0; i < 500000; i++) {
        int64_t ns = rng_range(&rng, 1, HIST_MAX_NS) >> rng_range(&rng, 0, HIST_TOP_BIT - 1);
        assert_near((double)hist_bucket_mid(hist_bucket(ns)), (double)ns, QUANTILE_ERROR);
    }
}

static void quantiles_match_the_sorted_values(void **state)
{
    (void)state;
    static const double qs[] = {0, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1};
    static const int sizes[] = {1, 2, 3, 10, 99, 100, 1000, 20000};
    struct rng rng;
    rng_init(&rng, SEED, 1, RNG_DATA);
    for (size_t k = 0; k < 2 * ARR_LEN(sizes); k++) {
        int n = sizes[k / 2];
        int64_t *values = mem_calloc((size_t)n, sizeof(*values));
        for (int i = 0; i < n; i++) {
            values[i] = k % 2 ? draw_latency(&rng) : draw_any(&rng);
        }
        struct hist *h = hist_of(values, n);
        struct hist_sparse s;
        hist_sparse_from(&s, h);
        qsort(values, (size_t)n, sizeof(*values), compare_int64);
        for (size_t i = 0; i < ARR_LEN(qs); i++) {
            int rank = (int)ceil(qs[i] * n - 1e-9);
            int64_t want = values[rank < 1 ? 0 : rank - 1];
            assert_near((double)hist_quantile(h, qs[i]), (double)want, QUANTILE_ERROR);
            assert_int_equal(hist_sparse_quantile(&s, qs[i]), hist_quantile(h, qs[i]));
        }
        assert_int_equal(hist_quantile(h, 0), values[0]);
        assert_int_equal(hist_quantile(h, 1), values[n - 1]);
        hist_sparse_release(&s);
        free(h);
        free(values);
    }
}

static void a_rank_is_not_pushed_up_by_rounding(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    for (int64_t v = 1; v <= 100; v++) {
        hist_record(h, v); // below 256 ns: exact
    }
    for (int percent = 1; percent <= 100; percent++) {
        assert_int_equal(hist_quantile(h, percent / 100.0), percent);
    }
    assert_int_equal(hist_quantile(h, 0.501), 51);
    free(h);
}

static void moments_are_exact(void **state)
{
    (void)state;
    static const int64_t values[] = {2000000, 4000000, 4000000, 4000000,
                                     5000000, 5000000, 7000000, 9000000};
    struct hist *h = hist_of(values, ARR_LEN(values));
    assert_int_equal(h->m.count, 8);
    assert_int_equal(h->m.min_ns, 2000000);
    assert_int_equal(h->m.max_ns, 9000000);
    assert_near(hist_mean_ns(&h->m), 5e6, 1e-12);
    assert_near(hist_sd_ns(&h->m), 1e6 * sqrt(32.0 / 7), 1e-12);
    free(h);
}

static void empty_single_and_equal_values_have_no_spread(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    assert_int_equal(h->m.min_ns, INT64_MAX);
    assert_int_equal(hist_quantile(h, 0.5), 0);
    assert_true(hist_mean_ns(&h->m) == 0);
    assert_true(hist_sd_ns(&h->m) == 0);
    assert_true(hist_share_above(h, 0) == 0);
    hist_record(h, -5);
    assert_int_equal(h->m.min_ns, 0);
    assert_int_equal(h->m.max_ns, 0);
    assert_true(hist_sd_ns(&h->m) == 0);
    hist_clear(h);
    for (int i = 0; i < 1000; i++) {
        hist_record(h, 3333333333333);
    }
    assert_true(hist_sd_ns(&h->m) == 0);
    assert_int_equal(hist_quantile(h, 0.5), 3333333333333);
    free(h);
}

static void a_maximum_beyond_the_last_bucket_stays_exact(void **state)
{
    (void)state;
    const int64_t two_hours = (int64_t)7200 * 1000000000;
    struct hist *h = hist_of((int64_t[]){1000, 2000, two_hours}, 3);
    assert_int_equal(h->m.max_ns, two_hours);
    assert_int_equal(hist_quantile(h, 1), two_hours);
    assert_near(hist_share_above(h, 3000), 1.0 / 3, 1e-12);
    assert_true(hist_share_above(h, HIST_MAX_NS) > 0.3);
    assert_true(hist_share_above(h, two_hours) == 0);
    free(h);
}

static void clear_leaves_nothing_behind(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 2, RNG_DATA);
    struct hist *h = hist_new();
    struct hist *fresh = hist_new();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 300; i++) {
            hist_record(h, draw_any(&rng) - 3);
        }
        hist_clear(h);
        assert_memory_equal(h, fresh, sizeof(*h));
    }
    free(fresh);
    free(h);
}

static void merging_equals_recording_all(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 3, RNG_DATA);
    struct hist *all = hist_new();
    struct hist *dense = hist_new();
    struct hist *by_sparse = hist_new();
    struct hist_sparse sparse = {0};
    for (int part = 0; part < 30; part++) {
        struct hist *h = hist_new();
        for (int i = 0; i < part * 50; i++) { // the first part is empty
            int64_t v = part % 2 ? draw_any(&rng) : draw_latency(&rng);
            hist_record(h, v);
            hist_record(all, v);
        }
        struct hist_sparse s;
        hist_sparse_from(&s, h);
        hist_add(dense, h);
        hist_add_sparse(by_sparse, &s);
        hist_sparse_add(&sparse, h);
        hist_sparse_release(&s);
        free(h);
    }
    struct hist *back = hist_new();
    hist_add_sparse(back, &sparse);
    struct hist *merged[] = {dense, by_sparse, back};
    for (size_t i = 0; i < ARR_LEN(merged); i++) {
        assert_memory_equal(merged[i]->counts, all->counts, sizeof(all->counts));
        assert_same_moments(&merged[i]->m, &all->m);
        free(merged[i]);
    }
    hist_sparse_release(&sparse);
    free(all);
}

static void share_above_matches_the_values(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct rng rng;
    rng_init(&rng, SEED, 4, RNG_DATA);
    int64_t *values = mem_calloc(N, sizeof(*values));
    for (int i = 0; i < N; i++) {
        values[i] = draw_latency(&rng);
    }
    struct hist *h = hist_of(values, N);
    qsort(values, N, sizeof(*values), compare_int64);
    for (int i = 0; i < N; i += 37) {
        // Interpolation may be off by a fraction of what lies in the divided bucket.
        double in_bucket = (double)h->counts[hist_bucket(values[i])] / N;
        int above = N - 1 - i;
        while (above > 0 && values[N - above] == values[i]) {
            above--;
        }
        double got = hist_share_above(h, values[i]);
        assert_true(fabs(got - (double)above / N) <= 0.5 * in_bucket + 2.0 / N);
    }
    assert_true(hist_share_above(h, -1) == 1);
    assert_true(hist_share_above(h, values[0] - 1) == 1);
    assert_true(hist_share_above(h, values[N - 1]) == 0);
    free(h);
    free(values);
}

static void share_above_divides_one_bucket_evenly(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    for (int64_t v = 1048576; v < 1048576 + 4 * 8192; v += 8) { // four whole buckets
        hist_record(h, v);
    }
    for (int k = 0; k < 32; k++) {
        double got = hist_share_above(h, 1048576 + k * 1024 - 1);
        assert_true(fabs(got - (1 - k / 32.0)) < 1e-3);
    }
    hist_clear(h);
    hist_record(h, 1048576 + 4096); // the values' own range, not the whole bucket's
    hist_record(h, 1048576 + 8191);
    assert_near(hist_share_above(h, 1048576 + 6143), 0.5, 1e-12);
    hist_clear(h);
    hist_record(h, 100);
    hist_record(h, 101);
    assert_true(hist_share_above(h, 100) == 0.5); // strictly above, exact below 256 ns
    free(h);
}

static struct str encoded(const struct hist *h)
{
    struct hist_sparse s;
    struct str bytes = STR_INIT;
    hist_sparse_from(&s, h);
    hist_encode(&s, &bytes);
    hist_sparse_release(&s);
    return bytes;
}

static struct hist *hist_random(struct rng *rng, int n)
{
    struct hist *h = hist_new();
    for (int i = 0; i < n; i++) {
        hist_record(h, i % 2 ? draw_any(rng) : draw_latency(rng));
    }
    return h;
}

static void decode_gives_back_what_was_encoded(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 2, 50, 5000, 100000};
    struct rng rng;
    rng_init(&rng, SEED, 5, RNG_DATA);
    for (size_t i = 0; i < ARR_LEN(sizes); i++) {
        struct hist *h = hist_random(&rng, sizes[i]);
        struct str bytes = STR_INIT;
        struct hist_sparse s, back;
        str_add(&bytes, "before"); // encode appends
        hist_sparse_from(&s, h);
        hist_encode(&s, &bytes);
        assert_int_equal(hist_decode(&back, bytes.buf + 6, (int64_t)bytes.len - 6), 0);
        assert_int_equal(back.n, s.n);
        assert_memory_equal(&back.m, &s.m, sizeof(s.m));
        for (int k = 0; k < s.n; k++) {
            assert_int_equal(back.bucket[k], s.bucket[k]);
            assert_int_equal(back.counts[k], s.counts[k]);
        }
        hist_sparse_release(&s);
        hist_sparse_release(&back);
        str_release(&bytes);
        free(h);
    }
}

static void a_zeroed_sparse_histogram_is_empty(void **state)
{
    (void)state;
    struct hist_sparse s = {0};
    struct hist_sparse back;
    struct str bytes = STR_INIT;
    hist_encode(&s, &bytes);
    assert_int_equal(hist_decode(&back, bytes.buf, (int64_t)bytes.len), 0);
    assert_int_equal(back.m.count, 0);
    assert_int_equal(back.m.min_ns, INT64_MAX);
    assert_int_equal(hist_sparse_quantile(&back, 0.99), 0);
    str_release(&bytes);
}

static void counts_over_32_bits_survive_the_sparse_form(void **state)
{
    (void)state;
    struct hist *h = hist_new();
    struct hist *back = hist_new();
    hist_record(h, 1000);
    hist_record(h, 5000);
    const uint64_t many = 10 * (uint64_t)UINT32_MAX + 7;
    h->counts[hist_bucket(1000)] += many;
    h->m.count += (int64_t)many;
    h->m.sum_ns += (double)many * 1000;
    struct str bytes = encoded(h);
    struct hist_sparse s;
    assert_int_equal(hist_decode(&s, bytes.buf, (int64_t)bytes.len), 0);
    assert_int_equal(s.n, 12);
    hist_add_sparse(back, &s);
    assert_memory_equal(back, h, sizeof(*h));
    hist_sparse_release(&s);
    str_release(&bytes);
    free(back);
    free(h);
}

// Decodes a copy of exactly n bytes, so that a sanitizer sees every read beyond them.
static int decode_copy(const char *bytes, size_t n)
{
    char *exact = mem_resize(NULL, n > 0 ? n : 1, 1);
    memcpy(exact, bytes, n);
    struct hist_sparse s;
    int rc = hist_decode(&s, exact, (int64_t)n);
    if (rc < 0) {
        assert_int_equal(s.n, 0);
        assert_int_equal(s.m.count, 0);
        assert_null(s.bucket);
    }
    hist_sparse_release(&s);
    free(exact);
    return rc;
}

static void decode_refuses_truncated_and_extended_bytes(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 6, RNG_DATA);
    struct hist *h = hist_random(&rng, 300);
    struct str bytes = encoded(h);
    for (size_t n = 0; n < bytes.len; n++) {
        assert_true(decode_copy(bytes.buf, n) < 0);
    }
    assert_int_equal(decode_copy(bytes.buf, bytes.len), 0);
    str_addc(&bytes, 0);
    assert_true(decode_copy(bytes.buf, bytes.len) < 0);
    struct hist_sparse s;
    assert_true(hist_decode(&s, bytes.buf, -1) < 0);
    str_release(&bytes);
    free(h);
}

static void decode_refuses_damaged_bytes(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 7, RNG_DATA);
    for (int round = 0; round < 20000; round++) {
        struct hist *h = hist_random(&rng, (int)rng_range(&rng, 0, 40));
        struct str bytes = encoded(h);
        struct str damaged = STR_INIT;
        str_addn(&damaged, bytes.buf, bytes.len);
        for (int64_t i = rng_range(&rng, 1, 4); i > 0; i--) {
            damaged.buf[rng_range(&rng, 0, (int64_t)bytes.len - 1)] = (char)rng_u64(&rng);
        }
        bool same = memcmp(bytes.buf, damaged.buf, bytes.len) == 0;
        if ((decode_copy(damaged.buf, damaged.len) == 0) != same) {
            fail_msg("seed %d, round %d: damaged bytes were accepted", SEED, round);
        }
        str_release(&damaged);
        str_release(&bytes);
        free(h);
    }
}

// The checksum again, independently, so that damage behind it can be tried.
static void seal(struct str *bytes)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < bytes->len - 4; i++) {
        sum = (sum ^ (unsigned char)bytes->buf[i]) * 0x01000193;
    }
    for (int i = 0; i < 4; i++) {
        bytes->buf[bytes->len - 4 + (size_t)i] = (char)(sum >> (8 * i));
    }
}

static void what_passes_a_forged_checksum_is_still_consistent(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, SEED, 8, RNG_DATA);
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        struct hist *h = hist_random(&rng, (int)rng_range(&rng, 0, 20));
        struct str bytes = encoded(h);
        for (int64_t i = rng_range(&rng, 1, 3); i > 0; i--) {
            bytes.buf[rng_range(&rng, 0, (int64_t)bytes.len - 5)] ^= (char)rng_u64(&rng);
        }
        seal(&bytes);
        struct hist_sparse s;
        if (hist_decode(&s, bytes.buf, (int64_t)bytes.len) == 0) {
            struct hist *back = hist_new();
            hist_add_sparse(back, &s);
            int64_t total = 0;
            for (int b = 0; b < HIST_BUCKETS; b++) {
                total += (int64_t)back->counts[b];
            }
            assert_int_equal(total, s.m.count);
            assert_true(total == 0 || s.m.min_ns <= s.m.max_ns);
            assert_true(hist_quantile(back, 0.5) == hist_sparse_quantile(&s, 0.5));
            hist_clear(back); // asserts its range; leaves nothing
            for (int b = 0; b < HIST_BUCKETS; b++) {
                assert_int_equal(back->counts[b], 0);
            }
            accepted++;
            free(back);
        }
        hist_sparse_release(&s);
        str_release(&bytes);
        free(h);
    }
    assert_true(accepted < 20000 / 2);
}

#define SUMS_OF_TWO "\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x40" // 2.0 and 2.0

static void decode_refuses_inconsistent_histograms(void **state)
{
    (void)state;
    // Two values of 1 ns, and one thing wrong with each but the first.
    static const struct {
        const char *what;
        const char *bytes;
        size_t n;
        int rc;
    } cases[] = {
#define CASE(what, text, rc) {what, text "....", sizeof(text "....") - 1, rc}
        CASE("good", "\x01\x02\x01\x01" SUMS_OF_TWO "\x01\x01\x02", 0),
        CASE("version", "\x02\x02\x01\x01" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("count", "\x01\x03\x01\x01" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("min over max", "\x01\x02\x02\x01" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("sum over count * max", "\x01\x01\x01\x01" SUMS_OF_TWO "\x01\x01\x01", -1),
        CASE("max outside the entries", "\x01\x02\x01\x03" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("min outside the entries", "\x01\x02\x00\x01" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("entry with no count", "\x01\x02\x01\x01" SUMS_OF_TWO "\x02\x01\x02\x01\x00", -1),
        CASE("bucket twice", "\x01\x02\x01\x01" SUMS_OF_TWO "\x02\x01\x01\x00\x01", -1),
        CASE("bucket too high", "\x01\x02\x01\x01" SUMS_OF_TWO "\x01\x80\x40\x02", -1),
        CASE("no entries", "\x01\x02\x01\x01" SUMS_OF_TWO "\x00", -1),
        CASE("more entries than bytes", "\x01\x02\x01\x01" SUMS_OF_TWO "\xff\xff\x7f\x01\x02", -1),
        CASE("entries left over", "\x01\x02\x01\x01" SUMS_OF_TWO "\x01\x01\x02\x01\x01", -1),
        CASE("endless varint",
             "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" SUMS_OF_TWO "\x01\x01\x02", -1),
        CASE("sum not a number",
             "\x01\x02\x01\x01\0\0\0\0\0\0\xf8\x7f\0\0\0\0\0\0\0\x40\x01\x01\x02", -1),
        CASE("squares not a number",
             "\x01\x02\x01\x01\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\xf8\x7f\x01\x01\x02", -1),
#undef CASE
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str bytes = STR_INIT;
        str_addn(&bytes, cases[i].bytes, cases[i].n);
        seal(&bytes);
        int rc = decode_copy(bytes.buf, bytes.len);
        if (rc != cases[i].rc) {
            fail_msg("%s: got %d, want %d", cases[i].what, rc, cases[i].rc);
        }
        str_release(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_cover_the_range_without_gap_or_overlap),
        cmocka_unit_test(values_out_of_range_land_in_the_end_buckets),
        cmocka_unit_test(any_value_is_reported_within_the_error_bound),
        cmocka_unit_test(quantiles_match_the_sorted_values),
        cmocka_unit_test(a_rank_is_not_pushed_up_by_rounding),
        cmocka_unit_test(moments_are_exact),
        cmocka_unit_test(empty_single_and_equal_values_have_no_spread),
        cmocka_unit_test(a_maximum_beyond_the_last_bucket_stays_exact),
        cmocka_unit_test(clear_leaves_nothing_behind),
        cmocka_unit_test(merging_equals_recording_all),
        cmocka_unit_test(share_above_matches_the_values),
        cmocka_unit_test(share_above_divides_one_bucket_evenly),
        cmocka_unit_test(decode_gives_back_what_was_encoded),
        cmocka_unit_test(a_zeroed_sparse_histogram_is_empty),
        cmocka_unit_test(counts_over_32_bits_survive_the_sparse_form),
        cmocka_unit_test(decode_refuses_truncated_and_extended_bytes),
        cmocka_unit_test(decode_refuses_damaged_bytes),
        cmocka_unit_test(what_passes_a_forged_checksum_is_still_consistent),
        cmocka_unit_test(decode_refuses_inconsistent_histograms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
