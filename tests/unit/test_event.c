// Rates before, during and after what happened in a run.
#include "load/event.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"

#define NO NAN

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void rates_come_from_whole_seconds_that_no_other_event_touches(void **state)
{
    static const struct {
        const char *what;
        double duration_s;
        int done[32]; // in second 0, 1, ...; -1: the second has no row
        struct event_span spans[3];
        int n, i;
        struct event_rates rates;
    } cases[] = {
        {"within one second", 6, {10, 20, 30, 2, 40, 50}, {{3.2, 3.9}}, 1, 0, {20, 2, 45}},
        {"over two seconds", 6, {10, 20, 30, 2, 4, 50}, {{3.9, 4.1}}, 1, 0, {20, 3, 50}},
        {"a second without a row had none", 5, {9, 9, -1, 9, 9}, {{2, 2.5}}, 1, 0, {9, 0, 9}},
        {"at the very start", 3, {1, 2, 4}, {{0, 0.1}}, 1, 0, {NO, 1, 3}},
        {"at the very end", 3, {1, 3, 4}, {{2.5, 3.2}}, 1, 0, {2, 4, NO}},
        {"in the cut last second", 2.5, {1, 3, 4}, {{2.1, 2.2}}, 1, 0, {2, NO, NO}},
        {"the first of two", 8, {8, 8, 1, 6, 6, 1, 9, 9}, {{2, 2}, {5, 5.5}}, 2, 0, {8, 1, 6}},
        {"the second of two", 8, {8, 8, 1, 6, 6, 1, 9, 9}, {{2, 2}, {5, 5.5}}, 2, 1, {6, 1, 9}},
        {"side by side", 4, {8, 1, 2, 9}, {{1, 1.5}, {2, 2.5}}, 2, 0, {8, 1, NO}},
        {"overlapping", 6, {8, 1, 1, 1, 9, 9}, {{1, 3.5}, {2, 2.5}}, 2, 1, {NO, 1, NO}},
        {"of ten seconds at most",
         25,
         {99, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 99, 99, 99},
         {{11, 11.5}},
         1,
         0,
         {1, 7, 2}},
    };

    (void)state;
    for (size_t k = 0; k < ARR_LEN(cases); k++) {
        struct result result = {.duration_s = cases[k].duration_s};
        struct event_rates rates;

        result.series = mem_calloc(32, sizeof(*result.series));
        for (int t = 0; t < (int)ceil(cases[k].duration_s); t++)
            if (cases[k].done[t] >= 0)
                result.series[result.n_series++] =
                    (struct result_second){.t_s = t, .done = cases[k].done[t]};
        event_rates(&result, cases[k].spans, cases[k].n, cases[k].i, &rates);
        if (!same(rates.before_tps, cases[k].rates.before_tps) ||
            !same(rates.during_tps, cases[k].rates.during_tps) ||
            !same(rates.after_tps, cases[k].rates.after_tps))
            fail_msg("%s: %g %g %g", cases[k].what, rates.before_tps, rates.during_tps,
                     rates.after_tps);
        free(result.series);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_come_from_whole_seconds_that_no_other_event_touches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
