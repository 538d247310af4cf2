// prony init: make the tables of a built-in workload.
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/setup.h"

// A scale as typed: a number of scale units, or a size on disk.
struct scale_wish {
    int64_t units;
    int64_t bytes;
};

struct init_options {
    struct scale_wish scale;
    int64_t jobs;
    bool replace, quiet, dry_run, json;
    char *trace;
    struct volumes_options volumes;
};

static int parse_scale(const char *text, void *value, struct err *err)
{
    struct scale_wish *wish = value;

    *wish = (struct scale_wish){0};
    if (text[strspn(text, "0123456789")] == '\0') {
        if (units_parse_int(text, &wish->units, err) < 0 || wish->units < 1)
            return err_set(err, ERR_USAGE, "must be at least 1");
        return 0;
    }
    if (units_parse_size(text, &wish->bytes, err) < 0 || wish->bytes < 1)
        return err_set(err, ERR_USAGE, "must be a number, or a size such as 12GB or 2xRAM");
    return 0;
}

#define AT(member) offsetof(struct init_options, member)

static const struct opt_row rows[] = {
    {"scale", 's', OPT_CUSTOM, AT(scale), .arg = "N|SIZE", .group = "Options", .parse = parse_scale,
     .help = "size: N units (10 when not given), 12GB, or 2xRAM"},
    {"jobs", 'j', OPT_INT, AT(jobs), NULL, 0, 64, .arg = "N",
     .help = "parallel sessions, else what helps on this engine"},
    {"replace", 0, OPT_FLAG, AT(replace),
     .help = "drop tables of these names that prony did not make"},
    VOLUMES_ROWS(AT(volumes)),
    {"dry-run", 0, OPT_FLAG, AT(dry_run), .help = "say what would be made, and stop"},
    {"trace", 0, OPT_TEXT, AT(trace), .arg = "FILE", .unrecorded = true,
     .help = "write every database call"},
    {"json", 0, OPT_FLAG, AT(json), .unrecorded = true,
     .help = "print one JSON object instead, at the end"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .unrecorded = true, .help = "print errors only"},
    {NULL},
};

static const struct opt_peer peers[] = {
    {"--fillfactor", "nothing: tables are made with fillfactor 100"},
    {"--threads", "--jobs"},
    {"--drop", "--replace"},
    {"--force", "--replace"},
    {"--table-size", "--scale"},
    {"-i", "nothing: prony init is pgbench -i"},
    {NULL, NULL},
};

static const struct opt_command init_command = {
    .name = "init",
    .usage = "TARGET WORKLOAD",
    .summary = "make the tables of a workload",
    .example = "prony init postgres://me@db1/bench tpcb -s 100\n"
               "prony init sqlite:bench.db tpcb -s 2xRAM",
    .rows = rows,
    .peers = peers,
    .min_args = 2,
    .max_args = 2,
};

static int resolve_scale(const struct schema *schema, const struct scale_wish *wish,
                         int64_t *ret_scale, struct err *err)
{
    int64_t scale = wish->units;

    if (wish->bytes)
        scale = wish->bytes / schema->bytes_per_scale +
                (wish->bytes % schema->bytes_per_scale > schema->bytes_per_scale / 2);
    if (scale == 0)
        scale = wish->bytes ? 1 : 10;
    if (scale > schema->scale_max)
        return err_set(err, ERR_USAGE, "--scale %" PRId64 ": %s goes up to %" PRId64, scale,
                       schema->name, schema->scale_max);
    *ret_scale = scale;
    return 0;
}

// Says what will be made, and what will be dropped for it.
static void announce(const struct setup *setup)
{
    const struct schema *schema = setup->builtin->schema;
    const struct fill_look *look = &setup->look;
    char count[UNITS_MAX], bytes[UNITS_MAX];

    cmd_print_safe("%s in %s, scale %" PRId64 ", about %s", schema->name, db_display(setup->target),
                   setup->scale, units_format_bytes(setup->scale * schema->bytes_per_scale, bytes));
    setup_print_place("data", setup->facts.data_path);
    for (int i = 0; i < schema->n_tables; i++)
        printf("  table  %s, %s rows\n", schema->table(i, setup->scale)->name,
               units_format_count(schema->rows(i, setup->scale), count));
    if (look->state != FILL_ABSENT && look->ours)
        cmd_print_safe("  drops  the same tables, which prony made%s%s%s",
                       look->made[0] ? " on " : "", look->made,
                       look->state == FILL_PARTIAL ? " and did not finish" : "");
    else if (look->state != FILL_ABSENT)
        printf("  drops  the same tables, which prony did not make\n");
    fflush(stdout);
}

static int check(const struct setup *setup, const struct init_options *options, struct err *err)
{
    if (db_is_temporary(setup->target))
        return err_set(err, ERR_USAGE,
                       "%s alone is a temporary database that `prony run` makes and fills itself: "
                       "name a file, as in sqlite:bench.db",
                       db_display(setup->target));
    if (db_caps(setup->target) & DB_CAP_HOLLOW)
        return err_set(err, ERR_USAGE, "%s keeps no data: there is nothing to make",
                       db_display(setup->target));
    if (setup->facts.read_only)
        return err_set(err, ERR_USAGE, "%s is read-only (%s): nothing can be made there",
                       db_display(setup->target), setup->facts.read_only_why);
    if (setup->look.state != FILL_ABSENT && !setup->look.ours && !options->replace)
        return err_set(err, ERR_USAGE,
                       "tables of these names are in %s already and prony did not make them: drop "
                       "them yourself, name another database, or give --replace to drop them",
                       db_display(setup->target));
    return setup_check_room(setup, err);
}

static void print_json(const struct setup *setup, const struct fill_report *report)
{
    json_t *root =
        json_pack("{ss* ss sI sI sf si}", "target", db_display(setup->target), "workload",
                  setup->builtin->name, "scale", (json_int_t)setup->scale, "rows",
                  (json_int_t)report->rows, "seconds", report->seconds, "jobs", report->jobs);

    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(root);
}

static int make(struct setup *setup, const struct init_options *options,
                volatile sig_atomic_t *stop, struct err *err)
{
    struct progress progress = {.quiet = options->quiet};
    struct fill_options fill = {
        .scale = setup->scale,
        .replace_foreign = options->replace,
        .jobs = (int)options->jobs,
        .session = setup->session,
        .stop = stop,
        .tick = progress_fill_tick,
        .arg = &progress,
    };
    struct fill_report report = {0};
    char rows_text[UNITS_MAX], time_text[UNITS_MAX], rate_text[UNITS_MAX];

    int rc = fill_tables(setup->target, setup->builtin->schema, &fill, &report, err);
    progress_end(&progress);
    if (rc < 0)
        return rc;
    if (options->json)
        print_json(setup, &report);
    else if (!options->quiet)
        printf("done: %s rows in %s (%s rows/s, %d session%s)\n",
               units_format_count(report.rows, rows_text),
               units_format_duration((int64_t)(report.seconds * 1e9), time_text),
               units_format_rate((double)report.rows / report.seconds, rate_text), report.jobs,
               report.jobs == 1 ? "" : "s");
    return 0;
}

static int init_main(int argc, char **argv)
{
    struct init_options options = {0};
    struct setup setup = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;

    if (cmd_parse(&init_command, argc, argv, &options, args, &status) < 0)
        goto out;
    cmd_clean_leftovers();
    volatile sig_atomic_t *stop = cmd_catch_signals();
    struct setup_wish wish = {
        .url = args[0],
        .workload = args[1],
        .clients = 1,
        .protocol = DB_SIMPLE,
        .trace_path = options.trace,
        .purpose = SERVER_FOR_INIT, // a dry run leaves nothing: what stays empty goes again
        .volumes = &options.volumes,
        .stop = stop,
        .quiet = options.quiet || options.json,
    };
    // Before anything is opened, and with that made, as far as the workload is known.
    const struct workload_builtin *builtin = workload_find_builtin(args[1]);
    if ((builtin && resolve_scale(builtin->schema, &options.scale, &wish.scale, &err) < 0) ||
        setup_open(&setup, &wish, &err) < 0 || check(&setup, &options, &err) < 0) {
        status = cmd_fail(&err);
        goto out;
    }
    if (!options.quiet && !options.json)
        announce(&setup);
    if (!options.dry_run && make(&setup, &options, stop, &err) < 0)
        status = cmd_fail(&err);
    else if (setup.places.server && !options.dry_run)
        server_keep(setup.places.server);
    setup.failed = status != 0 && *stop == 0;
out:
    setup_close(&setup);
    opt_release(rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_init = {&init_command, init_main};
