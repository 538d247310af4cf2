// What is watched once a second becomes rows of one value a second.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "watch/sampler.h"
#include "watch/source.h"

static void seconds_without_a_value_have_none(void **state)
{
    struct result *r = result_new();
    struct result_watch watch = {.subject = mem_strdup("vda"), .name = mem_strdup("queue")};

    (void)state;
    result_watch_set(&watch, 1, 2);
    result_watch_set(&watch, 4, 4);
    result_watch_set(&watch, 3, 3);
    assert_int_equal(watch.n, 5);
    assert_true(isnan(watch.values[0]) && isnan(watch.values[2]));
    assert_true(watch.values[1] == 2 && watch.values[3] == 3 && watch.values[4] == 4);
    r->watch = &watch;
    r->n_watch = 1;
    r->warmup_s = 2;
    r->duration_s = 4; // the fifth second is after its end
    assert_true(result_watch_mean(r, "vda", "queue") == 3);
    assert_true(isnan(result_watch_mean(r, "vdb", "queue")));
    r->watch = NULL;
    r->n_watch = 0;
    result_watch_release(&watch);
    result_free(r);
}

static void counters_become_rates(void **state)
{
    struct watch_counter counter = {0};

    (void)state;
    assert_true(isnan(watch_rate(&counter, 100, 0)));
    assert_true(watch_rate(&counter, 150, 2) == 25);
    assert_true(isnan(watch_rate(&counter, 10, 1))); // it began anew
    assert_true(watch_rate(&counter, 30, 1) == 20);
}

// On a machine that stands still meanwhile there may be no value.
static void the_machine_and_ourselves_are_watched(void **state)
{
    struct sampler_options options = {.server_pid = getpid()};
    struct result *r = NULL;
    double idle = NAN;

    (void)state;
    for (int i = 0; i < 10 && !(idle >= 0); i++) {
        struct sampler *sampler = sampler_open(&options);
        int64_t start_ns = clock_now_ns(&clock_system);
        result_free(r);
        r = result_new();
        r->duration_s = 60;
        sampler_begin(sampler, start_ns);
        while (clock_now_ns(&clock_system) < start_ns + 2200 * NS_PER_MS)
            ;
        sampler_end(sampler, r);
        idle = result_watch_mean(r, "host", "cpu_idle_share");
    }
    double user = result_watch_mean(r, "host", "cpu_user_share");
    assert_true(idle >= 0 && idle <= 1 && user >= 0 && user <= 1);
    assert_true(result_watch_mean(r, "host", "running_tasks") >= 1);
    assert_true(result_watch_mean(r, "host", "memory_available_bytes") > 1 << 20);
    assert_true(result_watch_mean(r, "client", "cpu_cores") >= 0);
    assert_true(result_watch_mean(r, "server", "cpu_cores") >= 0);
    result_free(r);
}

static void it_may_end_before_it_began(void **state)
{
    struct sampler_options options = {0};

    (void)state;
    sampler_end(sampler_open(&options), NULL);
    sampler_end(NULL, NULL);
    struct sampler *sampler = sampler_open(&options);
    sampler_begin(sampler, clock_now_ns(&clock_system));
    sampler_end(sampler, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seconds_without_a_value_have_none),
        cmocka_unit_test(counters_become_rates),
        cmocka_unit_test(the_machine_and_ourselves_are_watched),
        cmocka_unit_test(it_may_end_before_it_began),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
