// Which flushes are too fast for which storage.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "watch/flush.h"

static void a_flush_is_judged_by_the_disk_under_it(void **state)
{
    static const struct {
        double each_us;
        int rotational;
        const char *cache;
        bool is_virtual;
        const char *says; // NULL: it may be
    } cases[] = {
        {5, 0, "write through", false, "no disk"},
        {5, 1, "write back", true, "no disk"},
        {30, 0, "write through", false, NULL},
        {30, 0, "", false, NULL},
        {30, 0, "write back", false, "volatile cache"},
        {30, 0, "write back", true, NULL},
        {50, 1, "write back", true, NULL},
        {150, 0, "write back", false, NULL},
        {150, 1, "write back", false, "rotating"},
        {150, 1, "write through", false, "rotating"},
        {150, 1, "write back", true, NULL},
        {150, -1, "write back", false, NULL},
        {5000, 1, "write back", false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct storage place = {.n_layers = 2};
        struct storage_layer *disk = &place.layers[1]; // the last counts
        disk->rotational = cases[i].rotational;
        snprintf(disk->write_cache, sizeof(disk->write_cache), "%s", cases[i].cache);
        const char *why = flush_too_fast(cases[i].each_us, &place, cases[i].is_virtual);
        if (cases[i].says) {
            assert_non_null(why);
            assert_non_null(strstr(why, cases[i].says));
        } else {
            assert_null(why);
        }
    }
}

// It says "write back" whatever lies under its file.
static void a_loop_device_tells_nothing_of_its_cache(void **state)
{
    struct storage place = {.n_layers = 1};
    struct storage_layer *disk = &place.layers[0];

    (void)state;
    disk->rotational = 1;
    snprintf(disk->kind, sizeof(disk->kind), "loop");
    snprintf(disk->write_cache, sizeof(disk->write_cache), "write back");
    assert_null(flush_too_fast(30, &place, false));
    assert_non_null(flush_too_fast(5, &place, false));
}

static void without_a_known_disk_only_the_impossible_is_told(void **state)
{
    struct storage nothing = {0};

    (void)state;
    assert_non_null(flush_too_fast(5, NULL, false));
    assert_null(flush_too_fast(30, NULL, false));
    assert_non_null(flush_too_fast(5, &nothing, false));
    assert_null(flush_too_fast(30, &nothing, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_is_judged_by_the_disk_under_it),
        cmocka_unit_test(a_loop_device_tells_nothing_of_its_cache),
        cmocka_unit_test(without_a_known_disk_only_the_impossible_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
