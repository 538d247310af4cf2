// What held a run back is named from what was watched, with its evidence.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "watch/limit.h"

struct seen {
    const char *subject, *name;
    double value;
};

struct scene {
    const char *engine;
    int clients;
    struct seen seen[12];
    void (*change)(struct result *r, struct doubt_input *in);
};

static void add(struct result *r, size_t *cap, const char *subject, const char *name, double value)
{
    size_t n = (size_t)r->n_watch;
    struct result_watch *watch = ARR_PUSH(r->watch, n, *cap);

    r->n_watch = (int)n;
    watch->subject = mem_strdup(subject);
    watch->name = mem_strdup(name);
    for (int s = 0; s < 12; s++) // the warm-up must not count
        result_watch_set(watch, s, s < 2 ? 0 : value);
}

static void under_a_rate(struct result *r, struct doubt_input *in)
{
    (void)in;
    r->rate_tps = 100;
}

static void behind_its_rate(struct result *r, struct doubt_input *in)
{
    under_a_rate(r, in);
    r->counts.backlog = 500;
}

static void thinking(struct result *r, struct doubt_input *in)
{
    (void)in;
    kvs_add(&r->options, "think", "100ms");
    r->tps = 20;
}

static void own_handler(struct result *r, struct doubt_input *in)
{
    (void)in;
    r->lock_wait_ns = 60000000000; // of 8 clients * 10 s
}

static void counted_locks(struct result *r, struct doubt_input *in)
{
    (void)in;
    kvs_add(&r->counters, "lock_wait_ms", "70000");
}

static void few_rows(struct result *r, struct doubt_input *in)
{
    (void)r;
    in->contended = "one row of pgbench_branches";
    in->contended_rows = 1;
}

static void elsewhere(struct result *r, struct doubt_input *in)
{
    (void)r;
    ((struct db_facts *)in->facts)->is_local = false;
}

static void only_reading(struct result *r, struct doubt_input *in)
{
    (void)r;
    in->workload_writes = false;
}

static void probed(struct result *r, struct doubt_input *in)
{
    (void)in;
    kvs_add(&r->environment, "probe.data.log_flush_1_per_s", "1250");
}

static void nothing_done(struct result *r, struct doubt_input *in)
{
    (void)in;
    r->window_done = 0;
}

#define IDLE                            \
    {"host", "cpu_idle_share", 0.6},    \
    {                                   \
        "host", "cpu_iowait_share", 0.1 \
    }

static const struct {
    const char *name, *id, *says;
    struct scene scene;
} cases[] = {
    {"a hot row",
     "lock",
     "67 % of the time (Lock:transactionid 60 %, Lock:tuple 7 %); 8 clients write 1 row",
     {"postgres",
      8,
      {IDLE,
       {"waits", "Lock:tuple", 0.6},
       {"waits", "Lock:transactionid", 4.8},
       {"waits", "IO:WALSync", 1},
       {"vda", "flush_share", 0.95},
       {"vda", "flushes_per_s", 900}},
      few_rows}},
    {"row locks that the engine counts",
     "lock",
     "73 % of the time",
     {"mariadb", 8, {IDLE}, counted_locks}},
    {"SQLite's one writer", "lock", "one writer at a time", {"sqlite", 8, {IDLE}, own_handler}},
    {"SQLite's writer flushes",
     "flush",
     "vda was flushing 90 % of the time",
     {"sqlite",
      8,
      {IDLE, {"vda", "flush_share", 0.9}, {"vda", "flushes_per_s", 2000}},
      own_handler}},
    {"one client waits for its flush",
     "flush",
     "1000 commits/s, 1.00 flushes per commit of 900 us; vda was flushing 90 % of the time; "
     "sessions waited for it 85 % of theirs",
     {"postgres",
      1,
      {IDLE,
       {"vda", "flush_share", 0.9},
       {"vda", "flushes_per_s", 1000},
       {"waits", "IO:WALSync", 0.8},
       {"waits", "LWLock:WALWrite", 0.05}}}},
    {"a probe before",
     "flush",
     "the probe reached 1250 flushes/s: 80 % of that",
     {"postgres", 1, {IDLE, {"vda", "flush_share", 0.9}, {"vda", "flushes_per_s", 1000}}, probed}},
    {"a server elsewhere tells its waits",
     "flush",
     "sessions waited for it 60 %",
     {"postgres", 8, {{"waits", "IO:WALSync", 1}, {"waits", "LWLock:WALWrite", 3.8}}, elsewhere}},
    {"reads do not flush",
     "device",
     "vda: busy 95 %",
     {"postgres",
      8,
      {IDLE,
       {"vda", "busy_share", 0.95},
       {"vda", "reads_per_s", 200},
       {"vda", "queue", 7.5},
       {"vda", "flush_share", 0.9},
       {"vda", "flushes_per_s", 1}},
      only_reading}},
    {"sessions wait for data",
     "device",
     "sessions waited for data 75 % of their time",
     {"postgres", 8, {IDLE, {"vda", "busy_share", 0.4}, {"waits", "IO:DataFileRead", 6}}}},
    {"every processor busy",
     "cpu",
     "98 % of 4 busy, 3.1 by the server and 0.7 by prony",
     {"postgres",
      8,
      {{"host", "cpu_idle_share", 0.02},
       {"host", "cpu_iowait_share", 0},
       {"server", "cpu_cores", 3.1},
       {"client", "cpu_cores", 0.7}}}},
    {"one client, one processor",
     "cpu",
     "1 client can use no more",
     {"postgres", 1, {IDLE, {"server", "cpu_cores", 0.92}, {"client", "cpu_cores", 0.05}}}},
    {"the server waits for the client",
     "client",
     "next statement 80 % of the time",
     {"postgres", 8, {{"waits", "client", 6.4}, {"client", "cpu_cores", 0.3}}, elsewhere}},
    {"a rate that is met", "rate", "100 tps, was met", {"postgres", 8, {IDLE}, under_a_rate}},
    {"a rate that is not",
     "flush",
     "vda",
     {"postgres",
      8,
      {IDLE, {"vda", "flush_share", 0.9}, {"vda", "flushes_per_s", 50}},
      behind_its_rate}},
    {"clients that think", "think", "98 % of the clients' time", {"postgres", 8, {IDLE}, thinking}},
    {"nothing stands out",
     "none",
     "most of all locks: clients waited for one 30 %",
     {"postgres", 8, {IDLE, {"waits", "Lock:tuple", 2.4}, {"waits", "IO:WALSync", 1}}}},
    {"nothing was done", NULL, NULL, {"postgres", 8, {IDLE}, nothing_done}},
    {"nothing was watched", NULL, NULL, {"postgres", 8, {{NULL}}, NULL}},
    {"no database", NULL, NULL, {"null", 8, {IDLE}, NULL}},
};

static void judge(const struct scene *scene, struct result *r)
{
    static struct hist latency;
    struct storage data = {.n_layers = 1, .layers = {{.kind = "disk", .device = "vda"}}};
    struct db_facts facts = {.is_local = true};
    struct doubt_input in = {
        .facts = &facts, .data = &data, .before = {.cpus = 4}, .workload_writes = true};
    size_t cap = 0;

    r->engine = mem_strdup(scene->engine);
    r->clients = r->threads = scene->clients;
    r->warmup_s = 2;
    r->duration_s = 12;
    r->window_s = 10;
    r->tps = 1000;
    r->window_done = r->counts.planned = 10000;
    hist_init(&latency);
    hist_record(&latency, 8000000);
    hist_sparse_from(&r->latency.hist, &latency);
    for (const struct seen *seen = scene->seen; seen->subject; seen++)
        add(r, &cap, seen->subject, seen->name, seen->value);
    if (scene->change)
        scene->change(r, &in);
    limit_judge(r, &in);
}

static void the_limit_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct result *r = result_new();
        judge(&cases[i].scene, r);
        if (!cases[i].id != !r->limit_id || (r->limit_id && strcmp(r->limit_id, cases[i].id) != 0))
            fail_msg("%s: %s: %s", cases[i].name, r->limit_id, r->limit_text);
        if (cases[i].says && !strstr(r->limit_text, cases[i].says))
            fail_msg("%s: %s", cases[i].name, r->limit_text);
        result_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
