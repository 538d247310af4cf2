// The slowest transactions: the heap against sorting everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "load/slowest.h"

#define SEED 20261130

static int compare(const void *a, const void *b)
{
    const struct result_slow *x = a;
    const struct result_slow *y = b;
    if (x->latency_ns != y->latency_ns)
        return x->latency_ns > y->latency_ns ? -1 : 1;
    return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns ? 1 : x->client - y->client;
}

static struct result_slow draw(struct rng *rng, int i, int64_t range)
{
    return (struct result_slow){
        .client = (int32_t)rng_range(rng, 0, 20),
        .number = i,
        .end_ns = i * 1000LL,
        .latency_ns = rng_range(rng, 1, range),
    };
}

static void check(struct slowest *s, struct result_slow *all, int n)
{
    qsort(all, (size_t)n, sizeof(*all), compare);
    slowest_sort(s);
    int expected = n < SLOWEST_MAX ? n : SLOWEST_MAX;
    assert_int_equal(s->n, expected);
    for (int i = 0; i < expected; i++)
        assert_memory_equal(&s->items[i], &all[i], sizeof(all[i]));
}

static void the_heap_keeps_what_sorting_would(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 15, 16, 17, 999, 1000, 1001, 50000};
    static const int64_t ranges[] = {1, 50, 1000000000}; // all equal, many equal, few equal
    struct rng rng;
    rng_init(&rng, SEED, 0, RNG_DATA);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        for (size_t j = 0; j < sizeof(ranges) / sizeof(ranges[0]); j++) {
            int n = sizes[k];
            struct result_slow *all = mem_calloc((size_t)n, sizeof(*all));
            struct slowest s = {0};
            for (int i = 0; i < n; i++) {
                all[i] = draw(&rng, i, ranges[j]);
                if (slowest_wants(&s, all[i].latency_ns))
                    slowest_offer(&s, &all[i]);
            }
            check(&s, all, n);
            slowest_release(&s);
            free(all);
        }
    }
}

// As the workers and the main thread do it: parts of any size, with the floor of what was merged.
static void merging_parts_by_the_floor_loses_nothing(void **state)
{
    (void)state;
    enum { N = 100000 };
    static const int64_t ranges[] = {50, 1000000000};
    struct rng rng;
    rng_init(&rng, SEED, 1, RNG_DATA);
    for (size_t j = 0; j < sizeof(ranges) / sizeof(ranges[0]); j++) {
        struct result_slow *all = mem_calloc(N, sizeof(*all));
        struct slowest merged = {0};
        struct slowest part = {0};
        int64_t floor_ns = -1;
        for (int i = 0; i < N; i++) {
            all[i] = draw(&rng, i, ranges[j]);
            if (slowest_wants(&part, all[i].latency_ns) && all[i].latency_ns >= floor_ns)
                slowest_offer(&part, &all[i]);
            if (rng_range(&rng, 0, 700) == 0) {
                slowest_merge(&merged, &part);
                slowest_clear(&part);
                floor_ns = slowest_floor_ns(&merged);
            }
        }
        slowest_merge(&merged, &part);
        assert_true(floor_ns > 0);
        check(&merged, all, N);
        slowest_release(&merged);
        slowest_release(&part);
        free(all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_heap_keeps_what_sorting_would),
        cmocka_unit_test(merging_parts_by_the_floor_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
