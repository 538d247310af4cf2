// Outages: tables of who loses and gets a session when.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "load/outage.h"

#define START (9 * NS_PER_S)

static void outages_are_the_times_without_any_session(void **state)
{
    (void)state;
    // d: a client loses its session, u: gets one, l: one with a session ends, g: one without gives
    // up. The load lasts 100 s.
    static const struct {
        const char *what;
        int clients;
        struct {
            char event;
            double at_s;
        } events[10];
        double expected[6]; // from, to, ... ends with 0
    } cases[] = {
        {"nothing", 2, {{0}}, {0}},
        {"one of two is down", 2, {{'d', 3}, {'u', 5}}, {0}},
        {"both are down", 2, {{'d', 3}, {'d', 4}, {'u', 6}, {'u', 7}}, {4, 6}},
        {"twice", 1, {{'d', 3}, {'u', 4}, {'d', 8}, {'u', 10}}, {3, 4, 8, 10}},
        {"until the end", 1, {{'d', 90}}, {90, 100}},
        {"until the last gives up", 2, {{'d', 3}, {'d', 4}, {'g', 10}, {'g', 12}}, {4, 12}},
        {"the one that is up ends", 2, {{'d', 3}, {'l', 5}, {'u', 8}}, {5, 8}},
        {"noticed after the end", 1, {{'d', 101}, {'u', 102}}, {0}},
        {"comes back after the end", 1, {{'d', 99}, {'u', 102}}, {99, 100}},
        {"times out of order", 2, {{'d', 4}, {'d', 3}, {'u', 6}, {'u', 5}}, {4, 6}},
        {"no time at all", 1, {{'d', 4}, {'u', 4}}, {0}},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct outage o;
        double sum = 0;
        int n = 0;
        outage_init(&o, cases[i].clients);
        outage_start(&o, START);
        for (int k = 0; k < 10 && cases[i].events[k].event; k++) {
            int64_t at = START + (int64_t)(cases[i].events[k].at_s * NS_PER_S);
            switch (cases[i].events[k].event) {
            case 'd':
                outage_down(&o, at);
                break;
            case 'u':
                outage_up(&o, at);
                break;
            case 'l':
                outage_leave(&o, true, at);
                break;
            case 'g':
                outage_leave(&o, false, at);
                break;
            }
        }
        outage_finish(&o, START + 100 * NS_PER_S);
        for (; cases[i].expected[2 * n]; n++) {
            double from = cases[i].expected[2 * n];
            double to = cases[i].expected[2 * n + 1];
            if (n >= o.n || fabs(o.items[n].from_s - from) > 1e-9 ||
                fabs(o.items[n].to_s - to) > 1e-9)
                fail_msg("%s: outage %d", cases[i].what, n);
            sum += to - from;
        }
        if (o.n != n)
            fail_msg("%s: %d outages instead of %d", cases[i].what, o.n, n);
        assert_true(fabs(outage_sum_s(&o) - sum) < 1e-9);
        outage_release(&o);
    }
}

static void clients_up_follows(void **state)
{
    (void)state;
    struct outage o;
    outage_init(&o, 3);
    outage_start(&o, START);
    assert_int_equal(outage_clients_up(&o), 3);
    outage_down(&o, START + 1);
    outage_down(&o, START + 2);
    assert_int_equal(outage_clients_up(&o), 1);
    outage_up(&o, START + 3);
    outage_leave(&o, true, START + 4);
    outage_leave(&o, false, START + 5);
    assert_int_equal(outage_clients_up(&o), 1);
    outage_release(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outages_are_the_times_without_any_session),
        cmocka_unit_test(clients_up_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
