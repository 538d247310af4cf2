// prony study: several set-ups, measured in interleaved blocks, and what can be said of them.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/leftovers.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/run_options.h"
#include "cmd/study_run.h"
#include "report/study.h"

#define CELL_PROBE     "2s"
#define RUN_OVERHEAD_S 2 // making and filling, until the first run has shown how long that takes

struct study_options {
    struct opt_list vary;
    char *clients, *label, *store, *json, *seed;
    int64_t blocks;
    double until;
    bool aa, quiet;
};

#define AT(member) offsetof(struct study_options, member)

static int parse_until(const char *text, void *value, struct err *err)
{
    char *end;
    double percent = strtod(text, &end);

    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0.1 && percent <= 50))
        return err_set(err, ERR_USAGE, "must be between 0.1%% and 50%%");
    *(double *)value = percent / 100;
    return 0;
}

static void print_until(const void *value, char *out, size_t size)
{
    snprintf(out, size, "%g%%", 100 * *(const double *)value);
}

static const struct opt_row rows[] = {
    {"vary", 0, OPT_LIST, AT(vary), .arg = "NAME=V1,V2,...", .group = "What to compare",
     .help = "a setting of the target, or an option of prony run"},
    {"clients", 'c', OPT_TEXT, AT(clients), .arg = "N,N,...",
     .help = "sessions; several are loads to compare at (8)"},
    {"aa", 0, OPT_FLAG, AT(aa), .help = "compare a set-up with itself"},
    {"blocks", 0, OPT_INT, AT(blocks), NULL, 0, STUDY_BLOCKS_MAX, .arg = "N", .group = "How long",
     .help = "each set-up runs once in each block (5; 50 with --until)"},
    {"until", 0, OPT_CUSTOM, AT(until), .arg = "PERCENT", .parse = parse_until,
     .print = print_until, .help = "end when all intervals are within so much"},
    {"seed", 0, OPT_TEXT, AT(seed), .arg = "N", .help = "of the order and of the runs (random)"},
    {"label", 0, OPT_TEXT, AT(label), .arg = "NAME", .group = "Output",
     .help = "name of the study and of its runs"},
    {"json", 0, OPT_TEXT, AT(json), .arg = "FILE",
     .help = "write the study as JSON (- is the terminal)"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE",
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .help = "print errors only"},
    {NULL},
};

static const struct opt_command study_command = {
    .name = "study",
    .usage =
        "TARGET... WORKLOAD [OPTIONS OF prony run] | TARGET... -f FILE[@WEIGHT]... [OPTIONS OF "
        "prony run]",
    .summary = "compare set-ups: which is faster, by how much, and could it be chance",
    .example = "prony study sqlite: tpcb --vary journal_mode=delete,wal -T 10s\n"
               "prony study server:postgres server:mariadb tpcb -c 1,4,16 --until 3%",
    .rows = rows,
    .min_args = 1,
    .max_args = -1,
};

struct study {
    struct study_options options;
    char **targets;
    size_t n_targets;
    const char *workload; // NULL: files
    char **passed;        // options of prony run, as typed
    size_t n_passed, cap_passed;
    struct study_plan plan;
    struct study_outcome outcome;
    struct stop_rule rule;
    struct report_study report;
    volatile sig_atomic_t *stop;
    struct leftovers *leftovers;
    char *dir;
    // for the progress line
    int64_t start_ns;
    int block, slot_number;
    const char *cell_name;
    double last_tps;
};

// ---- the command line

static const struct opt_row *find_row(const struct opt_row *table, const char *arg)
{
    for (const struct opt_row *row = table; row->name; row++) {
        size_t len = strlen(row->name);
        if (arg[0] == '-' && arg[1] == row->letter && row->letter)
            return row;
        if (strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, row->name, len) == 0 &&
            (arg[2 + len] == '=' || !arg[2 + len]))
            return row;
    }
    return NULL;
}

// Whether the argument brings its value along: --name=value, -c8.
static bool has_value(const char *arg)
{
    return strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') != NULL : arg[2] != '\0';
}

// Options that only prony run knows go to it as they are; the rest stays in argv. Returns its
// length.
static int take_run_options(struct study *study, int argc, char **argv)
{
    int n = 0;

    for (int i = 0; i < argc; i++) {
        const struct opt_row *own = find_row(rows, argv[i]);
        const struct opt_row *row = own ? NULL : find_row(run_command.rows, argv[i]);
        if (strcmp(argv[i], "--") == 0) { // what follows are no options
            while (i < argc)
                argv[n++] = argv[i++];
            break;
        }
        int values = (own ? own : row) && (own ? own : row)->type != OPT_FLAG;
        values = values ? ((own ? own : row)->pair ? 2 : 1) - has_value(argv[i]) : 0;
        for (int k = 0; k <= values && i + k < argc; k++) {
            if (row)
                *ARR_PUSH(study->passed, study->n_passed, study->cap_passed) = argv[i + k];
            else
                argv[n++] = argv[i + k];
        }
        i += values;
    }
    argv[n] = NULL;
    return n;
}

static int check_passed(const struct study *study, struct err *err)
{
    static const char *const single[] = {"trace", "log-transactions", "progress", "statements",
                                         "block"};

    for (size_t i = 0; i < study->n_passed; i++)
        for (size_t k = 0; k < ARR_LEN(single); k++) {
            const struct opt_row *row = find_row(run_command.rows, study->passed[i]);
            if (row && strcmp(row->name, single[k]) == 0)
                return err_set(err, ERR_USAGE, "--%s is for a single run: prony run", single[k]);
        }
    return 0;
}

static bool passes(const struct study *study, const char *name)
{
    for (size_t i = 0; i < study->n_passed; i++) {
        const struct opt_row *row = find_row(run_command.rows, study->passed[i]);
        if (row && strcmp(row->name, name) == 0)
            return true;
    }
    return false;
}

static int add_clients(struct study *study, struct err *err)
{
    const char *text = study->options.clients;

    if (!text)
        return 0;
    if (!strchr(text, ',')) {
        *ARR_PUSH(study->passed, study->n_passed, study->cap_passed) = (char *)"--clients";
        *ARR_PUSH(study->passed, study->n_passed, study->cap_passed) = study->options.clients;
        return 0;
    }
    char *factor = mem_printf("clients=%s", text);
    int rc = study_add_factor(&study->plan, factor, run_command.rows, err);
    free(factor);
    return rc;
}

static int make_plan(struct study *study, struct err *err)
{
    struct study_options *o = &study->options;
    int blocks = o->blocks ? (int)o->blocks : o->until > 0 ? 50 : 5;

    if (study->n_targets > 1 && study_add_values(&study->plan, STUDY_TARGET, study->targets,
                                                 study->n_targets, run_command.rows, err) < 0)
        return -1;
    for (size_t i = 0; i < o->vary.n; i++)
        if (study_add_factor(&study->plan, o->vary.items[i], run_command.rows, err) < 0)
            return -1;
    if (add_clients(study, err) < 0 || study_close_plan(&study->plan, blocks, o->aa, err) < 0)
        return -1;
    if (o->until > 0 && blocks < STOP_MIN_BLOCKS)
        return err_set(err, ERR_USAGE, "--until needs at least %d blocks", STOP_MIN_BLOCKS);
    int64_t seed = 0;
    if (o->seed && (units_parse_int(o->seed, &seed, err) < 0 || seed < 0))
        return err_set(err, ERR_USAGE, "--seed %s: must be a whole number", o->seed);
    if (!o->seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = clock_real_ns();
    study->plan.seed = (uint64_t)seed >> (o->seed ? 0 : 1);
    study->rule =
        (struct stop_rule){.width = o->until, .min_blocks = STOP_MIN_BLOCKS, .max_blocks = blocks};
    return 0;
}

// What can be told wrong before anything runs: targets that take no settings.
static int check_targets(const struct study *study, struct err *err)
{
    int rc = 0;

    for (int cell = 0; cell < study->plan.n_cells && rc == 0; cell++) {
        struct str target = STR_INIT;
        rc = study_cell_target(&study->plan, cell, study->targets[0], &target, err);
        str_release(&target);
    }
    return rc;
}

// Where each run makes its own data, they all begin alike.
static bool is_fresh(const char *target)
{
    static const char *const kept[] = {"data=dir:", "data=/", "data=./", "data=@", NULL};

    for (int i = 0; kept[i]; i++)
        if (strstr(target, kept[i]))
            return false;
    return strncmp(target, "server:", 7) == 0 || strncmp(target, "null", 4) == 0 ||
           strcmp(target, "sqlite:") == 0 || strncmp(target, "sqlite:?", 8) == 0;
}

// ---- running

static void on_tick(void *arg, double seconds)
{
    struct study *study = arg;
    struct str line = STR_INIT;
    char left[UNITS_MAX], rate[UNITS_MAX];
    int slots = study_slots(&study->plan);
    int done = study->block * slots + study->slot_number, all = study->plan.blocks * slots;

    if (!cmd_wants_progress(study->options.quiet))
        return;
    double gone_s = (double)(clock_now_ns(&clock_system) - study->start_ns) / NS_PER_S;
    double each_s = done > 0 ? (gone_s - seconds) / done : study->report.run_s + RUN_OVERHEAD_S;
    double left_s = fmax(0, each_s * (all - done) - seconds);
    str_addf(&line, "block %d of %d, run %d of %d: %s, %.0f s", study->block + 1,
             study->plan.blocks, done + 1, all, study->cell_name, seconds);
    if (study->last_tps > 0)
        str_addf(&line, "; the last: %s tps", units_format_rate(study->last_tps, rate));
    str_addf(&line, "; %s%s left", study->options.until > 0 ? "at most " : "about ",
             units_format_duration((int64_t)(left_s * NS_PER_S), left));
    cmd_progress(line.buf);
    str_release(&line);
}

// The command line of a cell's run. Seeds are those of the block: its cells see the same data and
// the same choices.
static char **cell_argv(const struct study *study, int block, int cell, struct err *err)
{
    struct str target = STR_INIT;
    char **argv = NULL;
    size_t n = 0, cap = 0;

    if (study_cell_target(&study->plan, cell, study->targets[0], &target, err) < 0)
        return NULL;
    for (size_t i = 0; i < study->n_passed; i++)
        *ARR_PUSH(argv, n, cap) = mem_strdup(study->passed[i]);
    for (size_t i = 0; i < study->plan.n_factors; i++) {
        const struct study_factor *factor = &study->plan.factors[i];
        if (factor->is_option)
            *ARR_PUSH(argv, n, cap) = mem_printf(
                "--%s=%s", factor->name, factor->values[study_level(&study->plan, cell, i)]);
    }
    if (block == 0 &&
        !passes(study, "probe")) // once for each cell, to hold what it reached against
        *ARR_PUSH(argv, n, cap) = mem_strdup("--probe=" CELL_PROBE);
    *ARR_PUSH(argv, n, cap) =
        mem_printf("--seed=%" PRIu64, (study->plan.seed + (uint64_t)block) & INT64_MAX);
    *ARR_PUSH(argv, n, cap) = mem_printf("--label=%s", study->report.name);
    *ARR_PUSH(argv, n, cap) = mem_printf("--block=%d", block + 1);
    if (study->options.store)
        *ARR_PUSH(argv, n, cap) = mem_printf("--store=%s", study->options.store);
    *ARR_PUSH(argv, n, cap) = mem_strdup("--");
    *ARR_PUSH(argv, n, cap) = str_detach(&target);
    if (study->workload)
        *ARR_PUSH(argv, n, cap) = mem_strdup(study->workload);
    *ARR_PUSH(argv, n, cap) = NULL;
    return argv;
}

static double number_at(const json_t *doc, const char *part, const char *key)
{
    return json_number_value(json_object_get(json_object_get(doc, part), key));
}

static void note_doubts(struct report_study *report, const json_t *doc)
{
    size_t i;
    json_t *warning;

    json_array_foreach(json_object_get(doc, "warnings"), i, warning)
    {
        const char *id = json_string_value(json_object_get(warning, "id"));
        const char *text = json_string_value(json_object_get(warning, "text"));
        size_t k = 0;
        while (id && k < report->n_doubts && strcmp(report->doubts[k].id, id) != 0)
            k++;
        if (!id || !text)
            continue;
        if (k == report->n_doubts)
            *ARR_PUSH(report->doubts, report->n_doubts, report->cap_doubts) =
                (struct report_study_doubt){mem_strdup(id), mem_strdup(text), 0};
        report->doubts[k].runs++;
    }
}

static void take_result(struct study *study, int block, int slot, const json_t *doc)
{
    struct report_study *report = &study->report;
    int cell = study_slot_cell(&study->plan, slot);
    const char *limit = json_string_value(json_object_get(json_object_get(doc, "limit"), "text"));
    int64_t id = json_integer_value(json_object_get(doc, "run_id"));

    study->last_tps = number_at(doc, "throughput", "tps");
    study_put(&study->outcome, STUDY_TPS, block, slot, study->last_tps);
    study_put(&study->outcome, STUDY_P99, block, slot, number_at(doc, "latency_us", "p99"));
    report->n_runs++;
    report->run_s = json_number_value(json_object_get(doc, "duration_s"));
    if (!report->first_run)
        report->first_run = id;
    report->last_run = id;
    if (limit) {
        free(report->limits[cell]);
        report->limits[cell] = mem_strdup(limit);
    }
    note_doubts(report, doc);
}

// 0: measured, or failed and noted; negative: the study ends here.
static int run_slot(struct study *study, int block, int slot, struct err *err)
{
    int cell = study_slot_cell(&study->plan, slot);
    struct study_run run = {.dir = study->dir, .stop = study->stop, .tick = on_tick, .arg = study};
    struct str name = STR_INIT;
    json_t *doc = NULL;

    study_cell_name(&study->plan, cell, &name);
    study->cell_name = name.buf;
    char **argv = cell_argv(study, block, cell, err);
    int rc = -1;
    if (argv) {
        run.argv = argv;
        rc = study_run_do(&run, &doc, err);
    }
    if (rc == 0) {
        take_result(study, block, slot, doc);
    } else if (!*study->stop && argv) {
        study_fail_cell(&study->outcome, cell, err->text);
        study->report.n_failed++;
        rc = 0;
    }
    for (size_t i = 0; argv && argv[i]; i++)
        free(argv[i]);
    free(argv);
    json_decref(doc);
    str_release(&name);
    return rc;
}

// A study none of whose set-ups works ends with what the first of them said.
static bool all_have_failed(const struct study *study)
{
    for (int cell = 0; cell < study->plan.n_cells; cell++)
        if (!study->outcome.reasons[cell])
            return false;
    return true;
}

static int run_blocks(struct study *study, struct err *err)
{
    int *order = mem_calloc((size_t)study_slots(&study->plan), sizeof(*order));
    enum stop stop = STOP_NOT_YET;
    int rc = 0;

    study->start_ns = clock_now_ns(&clock_system);
    for (int block = 0; block < study->plan.blocks && stop == STOP_NOT_YET && rc == 0; block++) {
        study->block = block;
        study_order(&study->plan, block, order);
        for (int i = 0; i < study_slots(&study->plan) && rc == 0; i++) {
            study->slot_number = i;
            if (study->outcome.reasons[study_slot_cell(&study->plan, order[i])])
                continue; // it will not work now either
            rc = run_slot(study, block, order[i], err);
            if (rc == 0 && all_have_failed(study))
                rc = -1; // with the words of the last
        }
        if (rc == 0 && study->options.until > 0)
            stop = study_may_stop(&study->outcome, &study->rule);
    }
    if (cmd_wants_progress(study->options.quiet))
        cmd_progress(NULL);
    study->report.seconds = (double)(clock_now_ns(&clock_system) - study->start_ns) / NS_PER_S;
    study->report.stop = stop;
    free(order);
    if (rc < 0 && *study->stop && study->report.n_runs > 0) {
        study->report.is_interrupted = true;
        rc = 0;
    }
    return rc;
}

// ---- the front

static void announce(const struct study *study)
{
    int slots = study_slots(&study->plan), n = slots * study->plan.blocks;

    cmd_print_safe("%d set-up%s in %s%d blocks, %s%d runs%s", study->plan.n_cells,
                   study->plan.n_cells == 1 ? "" : "s", study->options.until > 0 ? "at most " : "",
                   study->plan.blocks, study->options.until > 0 ? "at most " : "", n,
                   study->plan.twice ? "; the first set-up twice in each block" : "");
    for (int cell = 0; cell < study->plan.n_cells; cell++) {
        struct str name = STR_INIT;
        study_cell_name(&study->plan, cell, &name);
        cmd_print_safe("  %s%s", name.buf,
                       cell == study_baseline(&study->plan, cell) ? " (baseline)" : "");
        str_release(&name);
    }
    printf("\n");
    fflush(stdout);
}

static int prepare(struct study *study, int n_args, char **args, struct err *err)
{
    char utc[32];
    bool has_files = passes(study, "file");

    study->targets = args;
    study->n_targets = (size_t)n_args - (has_files ? 0 : 1);
    study->workload = has_files ? NULL : args[n_args - 1];
    if (study->n_targets == 0)
        return err_set(err, ERR_USAGE, "which database, and which workload? prony study --help");
    if (check_passed(study, err) < 0 || make_plan(study, err) < 0 || check_targets(study, err) < 0)
        return -1;
    clock_format_utc(clock_real_ns(), utc, sizeof(utc));
    struct str name = STR_INIT;
    if (study->options.label)
        text_add_redacted(&name, study->options.label);
    else
        str_addf(&name, "study %s", utc);
    study->report = (struct report_study){
        .plan = &study->plan,
        .outcome = &study->outcome,
        .name = str_detach(&name),
        .target = study->n_targets == 1 ? study->targets[0] : NULL,
        .workload = study->workload ? study->workload : "scripts",
        .alpha = study->options.until > 0 ? JUDGE_ALPHA_SEQUENTIAL : JUDGE_ALPHA,
        .limits = mem_calloc((size_t)study->plan.n_cells, sizeof(char *)),
    };
    for (size_t i = 0; i < study->n_targets; i++)
        if (!is_fresh(study->targets[i]))
            study->report.carried =
                "the data stays from run to run and grows older, so that later runs find another "
                "database than the first: blocks are compared in pairs, but a target that is made "
                "anew for each run (sqlite:, server:postgres) is better";
    study_outcome_init(&study->outcome, &study->plan);
    study->dir = mem_strdup("/tmp/prony-study-XXXXXX");
    const char *temp = getenv("TMPDIR");
    if (temp && *temp) {
        free(study->dir);
        study->dir = mem_printf("%s/prony-study-XXXXXX", temp);
    }
    if (leftovers_open(&study->leftovers, err) < 0)
        return -1;
    if (!mkdtemp(study->dir))
        return err_set(err, ERR_FAILED, "cannot make a directory in %s: %s",
                       temp && *temp ? temp : "/tmp", strerror(errno));
    return leftovers_add_tree(study->leftovers, study->dir, err) < 0 ? -1 : 0;
}

static int tell(struct study *study)
{
    struct err err = ERR_INIT;
    bool made, to_stdout = study->options.json && strcmp(study->options.json, "-") == 0;
    int status = study->report.n_failed ? 1 : 0;

    if (!study->options.quiet && !to_stdout) {
        struct report_style style = report_style_for(stdout);
        report_study_text(&study->report, &style, stdout);
    }
    if (study->options.json) {
        FILE *file = cmd_open_output(study->options.json, &made, &err);
        if (!file)
            return cmd_fail(&err);
        cmd_empty_output(file);
        if (report_study_json(&study->report, file) < 0)
            status = 1;
        if (cmd_close_output(file, study->options.json, &err) < 0)
            status = cmd_fail(&err);
    }
    return cmd_finish_output(status);
}

static void release(struct study *study)
{
    struct str report = STR_INIT;

    if (study->leftovers)
        leftovers_close(study->leftovers, &report);
    if (report.len)
        fputs(report.buf, stderr);
    str_release(&report);
    for (int cell = 0; study->report.limits && cell < study->plan.n_cells; cell++)
        free(study->report.limits[cell]);
    free(study->report.limits);
    for (size_t i = 0; i < study->report.n_doubts; i++) {
        free(study->report.doubts[i].id);
        free(study->report.doubts[i].text);
    }
    free(study->report.doubts);
    free((char *)study->report.name);
    if (study->outcome.plan)
        study_outcome_release(&study->outcome);
    study_plan_release(&study->plan);
    free(study->passed);
    free(study->dir);
    opt_release(rows, &study->options);
}

static int study_main(int argc, char **argv)
{
    struct study study = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc + 1, sizeof(*args));
    char **own = mem_calloc((size_t)argc + 1, sizeof(*own));
    int status = 0;

    memcpy(own, argv, (size_t)argc * sizeof(*own));
    int n_own = take_run_options(&study, argc, own);
    int n_args = cmd_parse(&study_command, n_own, own, &study.options, args, &status);
    if (n_args < 0)
        goto out;
    cmd_clean_leftovers();
    study.stop = cmd_catch_signals();
    bool to_stdout = study.options.json && strcmp(study.options.json, "-") == 0;
    if (prepare(&study, n_args, args, &err) < 0) {
        status = cmd_fail(&err);
        goto out;
    }
    if (!study.options.quiet && !to_stdout)
        announce(&study);
    status = run_blocks(&study, &err) < 0 ? cmd_fail(&err) : tell(&study);
out:
    release(&study);
    free(args);
    free(own);
    return status;
}

const struct command command_study = {&study_command, study_main};
