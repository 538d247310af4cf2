// prony run: set up, load, look at the surroundings, judge, keep, tell.
#include "cmd/run_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/events.h"
#include "cmd/progress.h"
#include "cmd/run_probe.h"
#include "cmd/setup.h"
#include "cmd/state_use.h"
#include "cmd/version.h"
#include "cmd/watching.h"
#include "load/loop.h"
#include "load/run.h"
#include "report/report.h"
#include "store/store.h"
#include "watch/doubts.h"
#include "watch/host.h"
#include "watch/limit.h"
#include "watch/storage.h"

// Everything one run holds open, released together in run_release.
struct run {
    struct run_options options;
    struct setup_wish wish;
    struct kvs defines;
    struct state_use state;
    struct setup setup;
    struct plan plan;
    struct store *store;
    FILE *json;
    bool json_made; // there was no such file
    volatile sig_atomic_t *stop;
    struct events *events; // NULL: none
    struct kvs counters_before, probed;
    struct doubt_input doubts;
    struct storage data, log, store_place, written;
    struct result *result;
};

static uint64_t random_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint64_t)clock_real_ns();
    return seed >> 1; // 63 bits: readable by every tool that reads JSON or SQL integers
}

static char *random_uuid(void)
{
    uint8_t b[16];

    if (getrandom(b, sizeof(b), 0) != sizeof(b))
        abort();
    b[6] = (b[6] & 0x0f) | 0x40; // version 4, RFC 4122
    b[8] = (b[8] & 0x3f) | 0x80;
    return mem_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                      b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                      b[13], b[14], b[15]);
}

static int parse_defines(struct run *run, struct err *err)
{
    for (size_t i = 0; i < run->options.defines.n; i++) {
        const char *item = run->options.defines.items[i];
        const char *equals = strchr(item, '=');
        if (!equals || equals == item)
            return err_set(err, ERR_USAGE, "--define %s: must be NAME=VALUE", item);
        char *name = mem_strndup(item, (size_t)(equals - item));
        kvs_set(&run->defines, name, equals + 1);
        free(name);
    }
    return 0;
}

// ---- before the load

static void make_plan(struct run *run)
{
    const struct run_options *o = &run->options;

    run->plan = (struct plan){
        .clock = &clock_system,
        .target = run->setup.target,
        .workload = run->setup.workload,
        .clients = (int)o->clients,
        .threads = (int)o->threads,
        .loop = o->trace ? "threads" : run_loops[o->loop], // the ring makes no calls to see
        .protocol = (enum db_protocol)o->protocol,
        .pipeline_auto = o->pipeline == RUN_PIPELINE_AUTO,
        .time_ns = o->time_ns,
        .transactions = o->transactions,
        .rate_tps = o->rate_tps,
        .arrival = (enum plan_arrival)o->arrival,
        .think_ns = o->think_ns,
        .warmup = o->warmup.kind,
        .warmup_ns = o->warmup.ns,
        .max_tries = (int)o->max_tries,
        .reconnect_for_ns = o->reconnect_for_ns,
        .finish_for_ns = 10 * NS_PER_S,
        .seed = o->seed.value,
        .log_prefix = o->log_prefix,
        .statements = o->statements,
        .progress_ns = o->progress_ns,
    };
}

static void describe_places(struct run *run)
{
    const struct db_facts *facts = &run->setup.facts;

    if (facts->data_path[0]) {
        storage_describe(facts->data_path, &run->data);
        run->doubts.data = &run->data;
    }
    if (facts->log_path[0]) {
        storage_describe(facts->log_path, &run->log);
        run->doubts.log = &run->log;
    }
    storage_describe(store_path(run->store), &run->store_place);
    // A transaction log goes to PREFIX.PID: described is the folder that will hold it.
    const char *written = run->options.log_prefix ? run->options.log_prefix : run->options.trace;
    if (written) {
        storage_describe(written, &run->written);
        run->doubts.written = &run->written;
    }
}

// What will be done, before it is done.
static void announce(const struct run *run)
{
    const struct run_options *o = &run->options;
    const struct setup *setup = &run->setup;
    char text[UNITS_MAX];
    bool known = strncmp(setup->facts.version, "unknown", 7) != 0;

    cmd_print_safe("%s on %s%s%s%s%s%s", setup->workload->name, db_display(setup->target),
                   known ? " (" : "", known ? setup->facts.engine : "", known ? " " : "",
                   known ? setup->facts.version : "", known ? ")" : "");
    setup_print_place("data", setup->facts.data_path);
    setup_print_place("log", setup->facts.log_path);
    struct str settings = STR_INIT;
    host_describe(run->setup.host, &settings);
    if (settings.len)
        cmd_print_safe("  host   %s", settings.buf);
    str_release(&settings);
    state_use_announce(&run->state);
    if (setup->fills)
        printf("  fill   scale %" PRId64 ", about %s; %s\n", setup->scale,
               units_format_bytes(setup->scale * setup->builtin->schema->bytes_per_scale, text),
               setup->places.server && !server_is_temporary(setup->places.server)
                   ? "stays there"
                   : "removed at the end");
    printf("  load   %" PRId64 " client%s, ", o->clients, o->clients == 1 ? "" : "s");
    if (o->transactions)
        printf("%s transactions each", units_format_count(o->transactions, text));
    else
        printf("%s", units_format_duration_exact(o->time_ns, text));
    if (o->rate_tps > 0)
        printf(", open loop at %g tps", o->rate_tps);
    if (o->think_ns)
        printf(", think time %s", units_format_duration_exact(o->think_ns, text));
    if (setup->scale && setup->builtin)
        printf(", scale %" PRId64, setup->scale);
    printf(", seed %" PRIu64 "\n", o->seed.value);
    struct str events = STR_INIT;
    events_describe(run->events, &events);
    if (events.len)
        cmd_print_safe("  events %s", events.buf);
    str_release(&events);
    printf("\n");
    fflush(stdout);
}

// A database of our own is filled by the run itself. What a server was made for is then there.
static int fill_own(struct run *run, struct err *err)
{
    const struct setup *setup = &run->setup;

    if (!setup->fills) {
        if (setup->places.server)
            server_keep(setup->places.server);
        return 0;
    }
    struct progress progress = {.quiet = run->options.quiet};
    struct fill_options options = {
        .scale = setup->scale,
        .stop = run->stop,
        .tick = progress_fill_tick,
        .arg = &progress,
    };
    struct fill_report report;
    int rc = fill_tables(setup->target, setup->builtin->schema, &options, &report, err);
    progress_end(&progress);
    if (rc == 0 && setup->places.server)
        server_keep(setup->places.server);
    return rc;
}

// ---- around the load

// After a second Ctrl-C nobody wants to wait for a server that may not answer.
static void sample_counters(struct run *run, struct kvs *counters)
{
    struct db_session *session;
    struct db_result answer;

    if (*run->stop >= 2)
        return;
    if (db_connect(run->setup.target, -1, &session, &answer) != DB_OK)
        return;
    db_sample(session, counters);
    db_disconnect(session);
}

static void describe_again(struct run *run)
{
    struct db_session *session;
    struct db_result answer;

    if (*run->stop >= 2)
        return;
    if (db_connect(run->setup.target, -1, &session, &answer) != DB_OK)
        return;
    db_facts_release(&run->setup.facts);
    db_describe(session, &run->setup.facts);
    db_disconnect(session);
}

// Counters are cumulative; a run is described by their difference. Those of a server that was
// started anew begin again.
static void subtract_counters(const struct kvs *before, const struct kvs *after, struct kvs *out)
{
    for (size_t i = 0; i < after->n; i++) {
        const char *from = kvs_get(before, after->items[i].key);
        if (!from)
            continue;
        double more = strtod(after->items[i].value, NULL) - strtod(from, NULL);
        if (more >= 0)
            kvs_addf(out, after->items[i].key, "%.15g", more);
        else
            kvs_add(out, after->items[i].key, "unknown: it was reset during the run");
    }
}

// A copy to keep; NULL stays NULL.
static char *without_password(const char *text)
{
    struct str shown = STR_INIT;

    if (!text)
        return NULL;
    text_add_redacted(&shown, text);
    return str_detach(&shown);
}

static void fill_record(struct run *run, int argc, char **argv)
{
    struct result *result = run->result;
    const struct db_facts *facts = &run->setup.facts;
    struct str command = STR_INIT;

    result->uuid = random_uuid();
    result->prony_version = mem_strdup(PRONY_VERSION);
    str_add(&command, "prony ");
    text_add_command(&command, argc, argv);
    result->command = str_detach(&command);
    result->label = without_password(run->options.label);
    result->note = without_password(run->options.note);
    result->block = run->options.block;
    free(result->engine);
    free(result->engine_version);
    result->engine = mem_strdup(facts->engine);
    result->engine_version = mem_strdup(facts->version);
    opt_record(run_command.rows, &run->options, &result->options);
    host_record(&result->environment);
    kvs_add(&result->environment, RESULT_PIPELINE,
            run->plan.pipeline_auto             ? "auto"
            : run->setup.workload->has_pipeline ? "script"
                                                : "none");
    if (run->doubts.data)
        storage_record(&run->data, "data", &result->environment);
    else
        kvs_add(&result->environment, "data.path",
                facts->is_local ? "unknown: the server does not tell where its data is"
                                : "unknown: the server is on another machine");
    if (run->doubts.log)
        storage_record(&run->log, "log", &result->environment);
    storage_record(&run->store_place, "store", &result->environment);
    host_record_settings(run->setup.host, &result->environment);
    places_record(&run->setup.places, &result->environment);
    kvs_copy(&result->environment, &run->probed);
    state_use_record(&run->state, &result->environment);
    events_record(run->events, result);
    for (size_t i = 0; i < facts->settings.n; i++) {
        char *key = mem_printf("engine.%s", facts->settings.items[i].key);
        const char *value = facts->settings.items[i].value;
        char *shown = without_password(value); // extensions keep what they like in theirs
        kvs_add(&result->environment, key, shown[0] ? shown : "''"); // set to nothing
        free(shown);
        free(key);
    }
}

// What is looked at while the load runs.
struct load_watch {
    struct progress progress;
    struct doubt_input *doubts;
    struct events *events;
    struct sampler *sampler;
    double clock_due_s; // since the load began
};

static void on_begin(void *arg, int64_t start_ns)
{
    struct load_watch *watch = arg;

    events_begin(watch->events, start_ns);
    if (watch->sampler)
        sampler_begin(watch->sampler, start_ns);
}

static void on_tick(void *arg, const struct run_tick *tick)
{
    struct load_watch *watch = arg;

    progress_run_tick(&watch->progress, tick);
    if (tick->at_s < watch->clock_due_s)
        return;
    watch->clock_due_s = tick->at_s + 10; // reading it costs a little on machines of many CPUs
    double mhz = host_frequency_mhz();
    if (watch->doubts->first_mhz > 0)
        watch->doubts->last_mhz = mhz;
    else
        watch->doubts->first_mhz = mhz;
}

static int run_measure(struct run *run, struct err *err)
{
    struct load_watch watch = {
        .progress = {.quiet = run->options.quiet, .every_ns = run->options.progress_ns},
        .doubts = &run->doubts,
        .events = run->events,
        .clock_due_s = 1,
    };
    struct run_hooks hooks = {
        .stop = run->stop,
        .tick = on_tick,
        .began = on_begin,
        .arg = &watch,
        .log_write_error = &run->doubts.log_write_error,
    };
    struct kvs after = KVS_INIT;

    if (run->options.probe_ns > 0)
        run_probe(&run->setup, run->doubts.data, run->doubts.log, run->options.probe_ns, run->stop,
                  &run->probed);
    sample_counters(run, &run->counters_before);
    host_sample_take(&run->doubts.before);
    // A trace shows what the load asks, not what it is watched by.
    if (run->options.watch == RUN_WATCH_ON)
        watch.sampler =
            watching_open(&run->setup, run->doubts.data, run->doubts.log, !run->options.trace);
    int rc = run_load(&run->plan, &hooks, &run->result, err);
    events_end(run->events);
    sampler_end(watch.sampler, rc == 0 ? run->result : NULL);
    host_sample_take(&run->doubts.after);
    progress_end(&watch.progress);
    if (rc == 0) {
        sample_counters(run, &after);
        subtract_counters(&run->counters_before, &after, &run->result->counters);
        // Of scripts only where it means something: tables were found, or it was asked for.
        bool known = run->setup.builtin || run->wish.scale > 0 || run->setup.look.scale > 0;
        run->result->scale = known ? run->setup.scale : 0;
    }
    kvs_release(&after);
    return rc;
}

// ---- after the load

static void judge(struct run *run)
{
    const struct setup *setup = &run->setup;

    run->doubts.facts = &setup->facts;
    run->doubts.workload_writes = setup->writes;
    // Where whole tables or files are locked, more rows would change nothing.
    unsigned caps = db_caps(setup->target);
    if (setup->builtin && setup->builtin->contended && caps & DB_CAP_ROW_LOCKS &&
        !(caps & DB_CAP_HOLLOW)) {
        run->doubts.contended = setup->builtin->contended;
        run->doubts.contended_rows = setup->scale;
    }
    doubts_judge(run->result, &run->doubts);
    limit_judge(run->result, &run->doubts);
}

// The result is told even when it could not be kept; losing it is still a failure.
static int tell(struct run *run)
{
    struct err err = ERR_INIT;
    int status = 0;

    if (store_put(run->store, run->result, &err) < 0)
        status = 1;
    bool json_on_stdout = run->options.json && strcmp(run->options.json, "-") == 0;
    if (!run->options.quiet && !json_on_stdout) {
        struct report_style style = report_style_for(stdout);
        style.statements = run->options.statements;
        report_text(run->result, &style, stdout);
    }
    struct err json_err = ERR_INIT;
    if (run->json) {
        cmd_empty_output(run->json);
        if (report_json(run->result, run->json) < 0)
            status = 1;
        if (cmd_close_output(run->json, run->options.json, &json_err) < 0) {
            status = cmd_fail(&json_err);
            if (run->json_made) // half a document helps nobody
                unlink(run->options.json);
        }
        run->json = NULL;
    }
    if (err.kind)
        cmd_fail(&err);
    if (strcmp(run->result->status, "failed") == 0) {
        struct err failure = ERR_INIT;
        err_set(&failure, ERR_FAILED, "%s",
                run->result->failure ? run->result->failure : "no transaction succeeded");
        status = cmd_fail(&failure);
        run->setup.failed = true;
    }
    return cmd_finish_output(status);
}

static void run_release(struct run *run)
{
    result_free(run->result);
    events_free(run->events);
    setup_close(&run->setup);
    state_use_close(&run->state);
    state_options_release(&run->options.state);
    store_close(run->store);
    if (run->json && run->json != stdout) {
        fclose(run->json);
        if (run->json_made)
            unlink(run->options.json); // it was never written
    }
    kvs_release(&run->defines);
    kvs_release(&run->counters_before);
    kvs_release(&run->probed);
    opt_release(run_command.rows, &run->options);
}

static bool is_same_file(FILE *file, const char *path)
{
    struct stat a, b;

    return fstat(fileno(file), &a) == 0 && S_ISREG(a.st_mode) && stat(path, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// The document replaces what is in the file: that must not be the results or the database.
static int open_json(struct run *run, struct err *err)
{
    const char *path = run->options.json;

    run->json = cmd_open_output(path, &run->json_made, err);
    if (!run->json)
        return -1;
    if (is_same_file(run->json, store_path(run->store)) ||
        is_same_file(run->json, run->setup.facts.data_path))
        return err_set(err, ERR_USAGE, "--json %s: this is the %s: name another file", path,
                       is_same_file(run->json, store_path(run->store)) ? "results file"
                                                                       : "database");
    return 0;
}

static int prepare(struct run *run, int n_args, char **args, struct err *err)
{
    struct run_options *o = &run->options;

    if (run_options_check(o, n_args, args, err) < 0 || parse_defines(run, err) < 0 ||
        events_parse(&run->events, &o->at, err) < 0)
        return -1;
    if (!o->seed.given)
        o->seed = (struct run_seed){.given = true, .value = random_seed()};
    run->wish = (struct setup_wish){
        .url = args[0],
        .workload = n_args > 1 ? args[1] : NULL,
        .files = o->files.items,
        .n_files = (int)o->files.n,
        .defines = &run->defines,
        .scale = o->scale,
        .clients = o->clients,
        .protocol = (enum db_protocol)o->protocol,
        .seed = o->seed.value,
        .trace_path = o->trace,
        .tune = (enum server_tune)o->tune,
        .volumes = &o->volumes,
        .host = &o->host,
        .stop = run->stop,
        .quiet = o->quiet || (o->json && strcmp(o->json, "-") == 0),
    };
    const struct loop_ops *loops[LOOPS_MAX];
    if (o->state.text && state_use_open(&run->state, &o->state, &run->wish, o->store, err) < 0)
        return -1;
    if (setup_open(&run->setup, &run->wish, err) < 0 ||
        run_options_check_pipeline(o, run->setup.workload, run->setup.target, err) < 0 ||
        loop_choose(run->setup.target, run_loops[o->loop],
                    run_options_pipelines(o, run->setup.workload), loops, err) < 0 ||
        setup_check_run(&run->setup, &run->wish, err) < 0 ||
        events_check(run->events, &run->setup, o->time_ns, err) < 0 ||
        store_open(&run->store, o->store, STORE_WRITE, err) < 0)
        return -1;
    if (o->json && open_json(run, err) < 0)
        return -1;
    make_plan(run);
    describe_places(run);
    return 0;
}

static int run_main(int argc, char **argv)
{
    struct run run = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;

    int n_args = cmd_parse(&run_command, argc, argv, &run.options, args, &status);
    if (n_args < 0)
        goto out;
    cmd_clean_leftovers();
    run.stop = cmd_catch_signals();
    if (prepare(&run, n_args, args, &err) < 0) {
        status = cmd_fail(&err);
        goto out;
    }
    bool json_on_stdout = run.options.json && strcmp(run.options.json, "-") == 0;
    if (!run.options.quiet && !json_on_stdout)
        announce(&run);
    if (fill_own(&run, &err) < 0 || run_measure(&run, &err) < 0) {
        status = cmd_fail(&err);
        run.setup.failed = *run.stop == 0;
        goto out;
    }
    describe_again(&run);
    fill_record(&run, argc, argv);
    judge(&run);
    status = tell(&run);
out:
    run_release(&run);
    free(args);
    return status;
}

const struct command command_run = {&run_command, run_main};
