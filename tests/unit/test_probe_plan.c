// Sizes and times of a probe, by tables.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "volume/probe.h"

#define MIB (1024 * 1024LL)
#define GIB (1024 * MIB)

static void sizes_fit_into_what_is_free(void **state)
{
    static const struct {
        int64_t free, wished;
        int64_t data;     // 0: refused
        const char *says; // then
    } cases[] = {
        {100 * GIB, 0, 512 * MIB, NULL},
        {2 * GIB, 0, 512 * MIB, NULL},
        {2 * GIB - 1, 0, 511 * MIB, NULL}, // a quarter, in whole MiB
        {300 * MIB, 0, 75 * MIB, NULL},
        {128 * MIB, 0, 64 * MIB, NULL},
        {128 * MIB - 1, 0, 0, "--size"},
        {0, 0, 0, "--size"},
        {-5, 0, 0, "0 B"},
        {128 * MIB - 1, 16 * MIB, 16 * MIB, NULL},
        {80 * MIB, 16 * MIB, 16 * MIB, NULL},
        {80 * MIB - 1, 16 * MIB, 0, "80.0 MiB"},
        {100 * GIB, 50 * GIB, 50 * GIB, NULL},
        {100 * GIB, 100 * GIB, 0, "100 GiB are free"},
        {100 * GIB, 16 * MIB - 1, 0, "at least 16MB"},
        {100 * GIB, 20 * MIB + 4097, 20 * MIB, NULL},
        {100 * GIB, INT64_MAX, 0, "free"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct probe_sizes sizes = {0};
        struct err err = ERR_INIT;
        int rc = probe_plan_sizes(cases[i].free, cases[i].wished, &sizes, &err);
        assert_int_equal(sizes.data_bytes, cases[i].data);
        assert_int_equal(rc, cases[i].data ? 0 : -1);
        if (cases[i].data) {
            assert_true(sizes.data_bytes + sizes.log_bytes + sizes.grow_bytes <= cases[i].free);
            assert_true(sizes.log_bytes >= MIB && sizes.grow_bytes >= MIB);
        } else {
            assert_int_equal(err.kind, ERR_USAGE);
            assert_non_null(strstr(err.text, cases[i].says));
        }
    }
}

static void slices_share_the_time_that_is_left(void **state)
{
    (void)state;
    assert_int_equal(probe_plan_slice_ns(PROBE_KINDS * NS_PER_S, 1), NS_PER_S);
    assert_int_equal(probe_plan_slice_ns(PROBE_KINDS * NS_PER_S, 8), NS_PER_S / 8);
    // When the time is over each still gets a little, or the probe would have no figure for it.
    assert_int_equal(probe_plan_slice_ns(-NS_PER_S, 3), 10 * NS_PER_MS);
    assert_int_equal(probe_plan_slice_ns(0, 0.5), 10 * NS_PER_MS);
}

static void operations_follow_the_last_rate(void **state)
{
    (void)state;
    assert_int_equal(probe_plan_operations(0, NS_PER_S, 64), 64);
    assert_int_equal(probe_plan_operations(100, NS_PER_S, 64), 150);
    assert_int_equal(probe_plan_operations(100, NS_PER_S / 10, 64), 15);
    assert_int_equal(probe_plan_operations(0.01, NS_PER_S, 64), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_fit_into_what_is_free),
        cmocka_unit_test(slices_share_the_time_that_is_left),
        cmocka_unit_test(operations_follow_the_last_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
