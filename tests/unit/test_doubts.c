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
    struct storage data, log, written;
    struct doubt_input in;
};

static void scene_init(struct scene *s)
{
    static struct hist latency;

    memset(s, 0, sizeof(*s));
    s->r = result_new();
    s->r->engine = mem_strdup("postgres");
    s->r->loop = mem_strdup("threads");
    s->r->threads = 8;
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
    s->written = s->data;
    s->written.device = 2;
    strcpy(s->written.layers[0].name, "sdb");
    s->in = (struct doubt_input){
        .facts = &s->facts,
        .data = &s->data,
        .written = &s->written,
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
static void log_on_overlay(struct scene *s)
{
    s->log = s->data;
    s->log.is_overlay = true;
    s->in.log = &s->log;
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
static void set(struct scene *s, const char *name, const char *value)
{
    kvs_set(&s->facts.settings, name, value);
}
static void commit_off(struct scene *s)
{
    set(s, "fsync", "on");
    set(s, "synchronous_commit", "off");
}
static void sqlite_off(struct scene *s)
{
    set(s, "journal_mode", "wal");
    set(s, "synchronous", "off");
}
static void sqlite_wal_normal(struct scene *s)
{
    set(s, "journal_mode", "wal");
    set(s, "synchronous", "normal");
}
static void sqlite_without_journal(struct scene *s)
{
    set(s, "journal_mode", "memory");
    set(s, "synchronous", "full");
}
static void torn_pages(struct scene *s)
{
    set(s, "full_page_writes", "off");
}
static void no_doublewrite(struct scene *s)
{
    set(s, "table_engine", "InnoDB");
    set(s, "innodb_doublewrite", "OFF");
}
static void innodb_nosync(struct scene *s)
{
    set(s, "engine", "innodb");
    set(s, "innodb_flush_log_at_trx_commit", "1");
    set(s, "innodb_flush_method", "nosync");
}
static void on_myisam(struct scene *s)
{
    set(s, "engine", "innodb");
    set(s, "table_engine", "MyISAM");
    set(s, "flush", "OFF");
}
static void one_fast_client(struct scene *s)
{
    s->r->clients = 1;
    s->r->tps = 100000;
}
static void one_fast_writer(struct scene *s)
{
    free(s->r->engine);
    s->r->engine = mem_strdup("sqlite");
    s->r->tps = 100000;
    set(s, "synchronous", "full");
    set(s, "journal_mode", "wal");
}
static void many_flushes(struct scene *s)
{
    kvs_add(&s->r->counters, "wal_syncs", "30000000"); // in 300 s
}
static void many_flushes_somewhere(struct scene *s)
{
    many_flushes(s);
    s->in.data = NULL;
}
static void fast_on_rotating(struct scene *s)
{
    s->r->clients = 1;
    s->r->tps = 4000;
    s->data.layers[0].rotational = 1;
}
static void fast_log_on_rotating(struct scene *s)
{
    s->r->clients = 1;
    s->r->tps = 4000;
    s->log = s->data;
    s->log.layers[0].rotational = 1;
    s->in.log = &s->log;
}
static void few_branches(struct scene *s)
{
    s->in.contended_rows = 1;
}
static void small_data(struct scene *s)
{
    s->facts.data_bytes = 1 << 20;
}
static void fits_the_cache_elsewhere(struct scene *s)
{
    s->facts.is_local = false;
    s->facts.data_bytes = 1 << 20;
}
static void no_innodb_checkpoint(struct scene *s)
{
    set(s, "table_engine", "InnoDB");
    kvs_release(&s->r->counters);
    kvs_add(&s->r->counters, "checkpoint_lsn", "0");
    kvs_add(&s->r->counters, "wal_lsn", "123456");
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
static void busy_workers(struct scene *s)
{
    free(s->r->loop);
    s->r->loop = mem_strdup("ring-uring");
    s->r->threads = 1;
    s->r->cpu_user_s = 290;
    s->facts.is_local = false; // else client-on-host says it too
    s->in.data = NULL;
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
    s->in.first_mhz = 3000;
    s->in.last_mhz = 2000;
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
static void writes_beside_data(struct scene *s)
{
    s->written.device = 1;
}
static void writes_beside_log(struct scene *s)
{
    s->log = s->written;
    s->in.log = &s->log;
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
    {log_on_overlay, "data-on-overlay"},
    {fsync_off, "not-durable"},
    {commit_off, "not-durable"},
    {sqlite_off, "not-durable"},
    {sqlite_wal_normal, "not-durable"},
    {innodb_relaxed, "not-durable"},
    {innodb_nosync, "not-durable"},
    {on_myisam, "not-durable"},
    {sqlite_without_journal, "not-crash-safe"},
    {torn_pages, "not-crash-safe"},
    {no_doublewrite, "not-crash-safe"},
    {one_fast_client, "fast-flush"},
    {one_fast_writer, "fast-flush"},
    {many_flushes, "fast-flush"},
    {many_flushes_somewhere, "fast-flush"},
    {fast_on_rotating, "fast-flush"},
    {fast_log_on_rotating, "fast-flush"},
    {few_branches, "few-rows"},
    {small_data, "data-fits-in-memory"},
    {fits_the_cache_elsewhere, "data-fits-in-memory"},
    {no_checkpoint, "no-checkpoint"},
    {no_innodb_checkpoint, "no-checkpoint"},
    {not_steady, "not-steady"},
    {short_run, "too-short"},
    {few_transactions, "few-transactions"},
    {busy_workers, "client-limit"},
    {busy_client, "client-on-host"},
    {starved, "unfair"},
    {stolen, "steal"},
    {throttled, "throttled"},
    {on_battery, "battery"},
    {powersave, "frequency"},
    {slower_clock, "frequency-changed"},
    {one_long_stall, "closed-loop"},
    {over_the_rate, "saturated"},
    {writes_beside_data, "store-on-volume"},
    {writes_beside_log, "store-on-volume"},
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

// Settings and figures that look odd and are not.
static void sqlite_default(struct scene *s)
{
    set(s, "journal_mode", "delete");
    set(s, "synchronous", "full");
}
static void sqlite_rollback_normal(struct scene *s)
{
    set(s, "journal_mode", "delete");
    set(s, "synchronous", "normal");
}
static void innodb_strict(struct scene *s)
{
    set(s, "table_engine", "InnoDB");
    set(s, "innodb_flush_log_at_trx_commit", "1");
    set(s, "innodb_doublewrite", "ON");
    set(s, "flush", "OFF");
    kvs_release(&s->r->counters);
    kvs_add(&s->r->counters, "checkpoint_lsn", "77");
    kvs_add(&s->r->counters, "wal_lsn", "123456");
}
static void relaxed_innodb_beside_aria(struct scene *s)
{
    set(s, "table_engine", "Aria");
    set(s, "innodb_flush_log_at_trx_commit", "2");
    set(s, "innodb_doublewrite", "OFF");
    no_innodb_checkpoint(s);
    set(s, "table_engine", "Aria");
}
static void innodb_past_the_kernel(struct scene *s)
{
    set(s, "table_engine", "InnoDB");
    set(s, "innodb_flush_method", "O_DIRECT");
    s->facts.data_bytes = 2LL << 30;
}
static void torn_pages_on_zfs(struct scene *s)
{
    strcpy(s->data.fs, "zfs");
    set(s, "full_page_writes", "off");
}
static void fast_on_a_virtual_disk(struct scene *s)
{
    fast_on_rotating(s);
    kvs_add(&s->r->environment, "host.virtualization", "virtual machine: VMware");
}
static void mostly_reading_client(struct scene *s)
{
    one_fast_client(s);
    s->r->statements = mem_calloc(2, sizeof(*s->r->statements));
    s->r->n_statements = 2;
    s->r->statements[0] =
        (struct result_statement){.sql = mem_strdup("SELECT 1"), .count = 30000000};
    s->r->statements[1] =
        (struct result_statement){.sql = mem_strdup("UPDATE t SET a = 1"), .count = 3000};
}
static void idle_under_a_rate(struct scene *s)
{
    starved(s);
    s->r->rate_tps = 1000;
}
static void clock_of_a_short_run(struct scene *s)
{
    s->in.first_mhz = 3000; // and nothing later to compare it with
}
static void reset_counters(struct scene *s)
{
    kvs_release(&s->r->counters);
    kvs_add(&s->r->counters, "checkpoints_timed", "unknown: reset during the run");
    kvs_add(&s->r->counters, "checkpoints_requested", "unknown: reset during the run");
}
static void stolen_from_few_of_many_cpus(struct scene *s)
{
    s->in.after.idle_s = 64 * 300.0;
    stolen(s);
}

static void what_only_looks_odd_is_not_doubted(void **state)
{
    static void (*const spoils[])(struct scene * s) = {
        sqlite_default,         sqlite_rollback_normal,
        innodb_strict,          relaxed_innodb_beside_aria,
        innodb_past_the_kernel, torn_pages_on_zfs,
        fast_on_a_virtual_disk, mostly_reading_client,
        idle_under_a_rate,      reset_counters,
        clock_of_a_short_run,   stolen_from_few_of_many_cpus,
    };

    (void)state;
    for (size_t i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++) {
        struct scene s;
        scene_init(&s);
        spoils[i](&s);
        doubts_judge(s.r, &s.in);
        if (s.r->n_warnings)
            fail_msg("case %zu: %s: %s", i, s.r->warnings[0].id, s.r->warnings[0].text);
        scene_release(&s);
    }
}

static void rates_are_advised_as_one_would_type_them(void **state)
{
    static const struct {
        double tps;
        const char *rate;
    } cases[] = {{1000, "--rate 700 "},
                 {17649, "--rate 12000 "},
                 {8.13, "--rate 5.7 "},
                 {0.5, "--rate 0.35 "},
                 {1543000, "--rate 1100000 "}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene s;
        scene_init(&s);
        one_long_stall(&s);
        s.r->tps = cases[i].tps;
        doubts_judge(s.r, &s.in);
        assert_int_equal(s.r->n_warnings, 1);
        if (!strstr(s.r->warnings[0].text, cases[i].rate))
            fail_msg("%s: %s", cases[i].rate, s.r->warnings[0].text);
        scene_release(&s);
    }
}

static void a_server_far_away_is_not_judged_by_this_host(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.facts.is_local = false;
    s.in.data = NULL;
    busy_client(&s);
    s.facts.data_bytes = 2LL << 30;
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
        cmocka_unit_test(what_only_looks_odd_is_not_doubted),
        cmocka_unit_test(rates_are_advised_as_one_would_type_them),
        cmocka_unit_test(a_server_far_away_is_not_judged_by_this_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
