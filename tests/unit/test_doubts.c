// Each doubt appears when its condition holds, and none on a result that deserves none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "watch/doubts.h"

// A run nobody should doubt, and its surroundings; cases spoil one thing each.
struct scene {
    struct result *r;
    struct db_facts facts;
    struct storage data, log, store;
    struct doubt_input in;
};

static void scene_init(struct scene *s)
{
    static struct hist latency;

    memset(s, 0, sizeof(*s));
    s->r = result_new();
    s->r->engine = mem_strdup("postgres");
    s->r->clients = 8;
    s->r->duration_s = s->r->window_s = 300;
    s->r->steady = true;
    s->r->tps = 1000;
    s->r->window_done = s->r->counts.planned = s->r->counts.done = 300000;
    s->r->latency.present = true;
    hist_init(&latency);
    for (int i = 0; i < 300000; i++)
        hist_record(&latency, 8000000);
    hist_sparse_from(&s->r->latency.hist, &latency);
    s->r->done_by_client = mem_calloc(8, sizeof(int64_t));
    for (int i = 0; i < 8; i++)
        s->r->done_by_client[i] = 37500;
    kvs_add(&s->r->counters, "checkpoints_timed", "1");
    kvs_add(&s->r->counters, "checkpoints_requested", "0");
    s->r->cpu_user_s = 10;
    strcpy(s->facts.engine, "postgres");
    s->facts.is_local = true;
    s->facts.data_bytes = 100LL << 30;
    s->facts.cache_bytes = 1LL << 30;
    strcpy(s->data.fs, "ext4");
    strcpy(s->data.path, "/data");
    s->data.device = 1;
    s->data.n_layers = 1;
    strcpy(s->data.layers[0].kind, "disk");
    strcpy(s->data.layers[0].name, "sda");
    s->store = s->data;
    s->store.device = 2;
    strcpy(s->store.layers[0].name, "sdb");
    s->in = (struct doubt_input){
        .facts = &s->facts,
        .data = &s->data,
        .store = &s->store,
        .before = {.mono_ns = 0, .cpus = 4, .free_memory_bytes = 8LL << 30},
        .after = {.mono_ns = 300000000000, .cpus = 4, .free_memory_bytes = 8LL << 30},
        .contended = "one row of pgbench_branches",
        .contended_rows = 100,
        .workload_writes = true,
    };
}

static void scene_release(struct scene *s)
{
    result_free(s->r);
    kvs_release(&s->facts.settings);
}

static void with_failures(struct scene *s)
{
    s->r->counts.failed = 3;
    s->r->counts.planned += 3;
    s->r->errors[DB_DEADLOCK] = 3;
}
static void with_outage(struct scene *s)
{
    s->r->outage_s = 5;
}
static void with_full_log(struct scene *s)
{
    s->in.log_write_error = 28;
}
static void on_tmpfs(struct scene *s)
{
    s->data.in_memory = true;
}
static void log_on_tmpfs(struct scene *s)
{
    s->log = s->data;
    s->log.in_memory = true;
    s->in.log = &s->log;
}
static void on_overlay(struct scene *s)
{
    s->data.is_overlay = true;
}
static void fsync_off(struct scene *s)
{
    kvs_add(&s->facts.settings, "fsync", "off");
}
static void innodb_relaxed(struct scene *s)
{
    kvs_add(&s->facts.settings, "innodb_flush_log_at_trx_commit", "2");
}
static void one_fast_client(struct scene *s)
{
    s->r->clients = 1;
    s->r->tps = 100000;
    kvs_add(&s->facts.settings, "synchronous", "FULL");
}
static void fast_on_rotating(struct scene *s)
{
    s->r->clients = 1;
    s->r->tps = 4000;
    s->data.layers[0].rotational = 1;
    kvs_add(&s->facts.settings, "synchronous", "FULL");
}
static void few_branches(struct scene *s)
{
    s->in.contended_rows = 1;
}
static void small_data(struct scene *s)
{
    s->facts.data_bytes = 1 << 20;
}
static void no_checkpoint(struct scene *s)
{
    kvs_set(&s->r->counters, "checkpoints_timed", "0");
}
static void not_steady(struct scene *s)
{
    s->r->steady = false;
    s->r->steady_why = mem_strdup("fell to 0.6 at 214 s");
}
static void short_run(struct scene *s)
{
    s->r->window_s = 10;
}
static void few_transactions(struct scene *s)
{
    s->r->window_done = 900;
}
static void busy_client(struct scene *s)
{
    s->r->cpu_user_s = 300;
}
static void starved(struct scene *s)
{
    s->r->done_by_client[3] = 10;
}
static void stolen(struct scene *s)
{
    s->in.after.steal_s = 100;
}
static void throttled(struct scene *s)
{
    s->in.after.throttled_s = 100;
}
static void on_battery(struct scene *s)
{
    s->in.after.on_battery = true;
}
static void powersave(struct scene *s)
{
    kvs_add(&s->r->environment, "host.cpu_governor", "powersave");
}
static void slower_clock(struct scene *s)
{
    s->in.before.frequency_mhz = 3000;
    s->in.after.frequency_mhz = 2000;
}
static void one_long_stall(struct scene *s)
{
    s->r->latency.hist.m.max_ns = 2000000000;
}
static void over_the_rate(struct scene *s)
{
    s->r->rate_tps = 2000;
    s->r->counts.backlog = 300000;
    s->r->counts.planned += 300000;
}
static void log_beside_data(struct scene *s)
{
    s->store.device = 1;
    kvs_add(&s->r->options, "log-transactions", "x");
}

static const struct {
    void (*spoil)(struct scene *s);
    const char *id;
} cases[] = {
    {with_failures, "errors"},
    {with_outage, "outage"},
    {with_full_log, "transaction-log"},
    {on_tmpfs, "data-in-memory"},
    {log_on_tmpfs, "data-in-memory"},
    {on_overlay, "data-on-overlay"},
    {fsync_off, "not-durable"},
    {innodb_relaxed, "not-durable"},
    {one_fast_client, "fast-flush"},
    {fast_on_rotating, "fast-flush"},
    {few_branches, "few-rows"},
    {small_data, "data-fits-in-memory"},
    {no_checkpoint, "no-checkpoint"},
    {not_steady, "not-steady"},
    {short_run, "too-short"},
    {few_transactions, "few-transactions"},
    {busy_client, "client-on-host"},
    {starved, "unfair"},
    {stolen, "steal"},
    {throttled, "throttled"},
    {on_battery, "battery"},
    {powersave, "frequency"},
    {slower_clock, "frequency-changed"},
    {one_long_stall, "closed-loop"},
    {over_the_rate, "saturated"},
    {log_beside_data, "store-on-volume"},
};

static void a_clean_run_has_no_doubts(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    doubts_judge(s.r, &s.in);
    for (int i = 0; i < s.r->n_warnings; i++)
        print_message("unexpected: %s\n", s.r->warnings[i].text);
    assert_int_equal(s.r->n_warnings, 0);
    scene_release(&s);
}

static void each_doubt_appears_alone_and_names_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene s;
        scene_init(&s);
        cases[i].spoil(&s);
        doubts_judge(s.r, &s.in);
        if (s.r->n_warnings != 1 || strcmp(s.r->warnings[0].id, cases[i].id) != 0)
            fail_msg("%s: %d doubts, first %s", cases[i].id, s.r->n_warnings,
                     s.r->n_warnings ? s.r->warnings[0].id : "none");
        if (!strpbrk(s.r->warnings[0].text, ":;"))
            fail_msg("%s: no remedy in: %s", cases[i].id, s.r->warnings[0].text);
        scene_release(&s);
    }
}

static void reading_workloads_are_not_asked_to_flush(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.in.workload_writes = false;
    fsync_off(&s);
    no_checkpoint(&s);
    doubts_judge(s.r, &s.in);
    assert_int_equal(s.r->n_warnings, 0);
    scene_release(&s);
}

static void a_server_far_away_is_not_judged_by_this_host(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.facts.is_local = false;
    s.in.data = NULL;
    busy_client(&s);
    small_data(&s);
    powersave(&s);
    doubts_judge(s.r, &s.in);
    assert_int_equal(s.r->n_warnings, 0);
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_run_has_no_doubts),
        cmocka_unit_test(each_doubt_appears_alone_and_names_a_remedy),
        cmocka_unit_test(reading_workloads_are_not_asked_to_flush),
        cmocka_unit_test(a_server_far_away_is_not_judged_by_this_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
