// The heap of deadlines against a plain list, over long random sequences.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "load/timers.h"

#define SLOTS 50

static int64_t least(const int64_t *when)
{
    int64_t first = INT64_MAX;

    for (int i = 0; i < SLOTS; i++)
        first = when[i] < first ? when[i] : first;
    return first;
}

static void deadlines_come_in_order_whatever_was_set_and_cleared(void **state)
{
    int64_t when[SLOTS]; // INT64_MAX: none
    struct timers t;
    struct rng rng;

    (void)state;
    rng_init(&rng, 42, 0, RNG_DATA);
    timers_init(&t, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        when[i] = INT64_MAX;
    for (int step = 0; step < 100000; step++) {
        int slot = (int)rng_range(&rng, 0, SLOTS - 1);
        switch (rng_range(&rng, 0, 3)) {
        case 0:
        case 1:
            when[slot] = rng_range(&rng, 0, 1000);
            timers_set(&t, slot, when[slot]);
            break;
        case 2:
            when[slot] = INT64_MAX;
            timers_clear(&t, slot);
            break;
        default: {
            int64_t now = rng_range(&rng, 0, 300);
            int taken = timers_take(&t, now);
            if (taken < 0) {
                assert_true(least(when) > now);
            } else {
                assert_true(when[taken] == least(when) && when[taken] <= now);
                when[taken] = INT64_MAX;
            }
        }
        }
        assert_true(timers_first_ns(&t) == least(when));
    }
    timers_release(&t);
}

static void nothing_is_due_where_nothing_was_set(void **state)
{
    struct timers t;

    (void)state;
    timers_init(&t, 3);
    assert_int_equal(timers_take(&t, INT64_MAX), -1);
    assert_true(timers_first_ns(&t) == INT64_MAX);
    timers_clear(&t, 2);
    timers_set(&t, 2, 5);
    assert_int_equal(timers_take(&t, 4), -1);
    assert_int_equal(timers_take(&t, 5), 2);
    assert_int_equal(timers_take(&t, 5), -1);
    timers_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_come_in_order_whatever_was_set_and_cleared),
        cmocka_unit_test(nothing_is_due_where_nothing_was_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
