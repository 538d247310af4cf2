// prony check: do the sums that every run must keep still agree? Exit status 3 when they do not: it
// could be looked at, and the verdict is bad.
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/setup.h"

struct check_options {
    bool quiet, json;
};

static const struct opt_row rows[] = {
    {"quiet", 'q', OPT_FLAG, offsetof(struct check_options, quiet), .group = "Options",
     .help = "print errors only"},
    {"json", 0, OPT_FLAG, offsetof(struct check_options, json), .help = "print one JSON object"},
    {NULL},
};

static const struct opt_command check_command = {
    .name = "check",
    .usage = "TARGET WORKLOAD",
    .summary = "verify the balances that a workload's transactions must keep",
    .example = "prony check postgres://me@db1/bench tpcb",
    .rows = rows,
    .min_args = 2,
    .max_args = 2,
};

#define BALANCES_MAX 8

static int ask_balances(struct setup *setup, int64_t *balances, bool *ret_equal, struct err *err)
{
    struct db_session *session;
    struct db_result answer;

    enum db_class class = db_connect(setup->target, -1, &session, &answer);
    if (class != DB_OK)
        return setup_connect_error(setup->target, &answer, err);
    int rc = fill_check(session, setup->builtin->schema, balances, ret_equal, err);
    db_disconnect(session);
    return rc;
}

static void print_json(const struct setup *setup, const int64_t *balances, bool equal)
{
    const struct schema *schema = setup->builtin->schema;
    json_t *sums = json_object();

    for (int i = 0; schema->balances[i]; i++)
        json_object_set_new(sums, schema->balance_names[i], json_integer(balances[i]));
    json_t *root = json_pack("{ss* ss sI sb so}", "target", db_display(setup->target), "workload",
                             setup->builtin->name, "scale", (json_int_t)setup->look.scale, "agree",
                             equal, "balances", sums);
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

// Returns the exit status of the verdict, or negative with err when there is none.
static int check_balances(struct setup *setup, const struct check_options *options, struct err *err)
{
    const struct schema *schema = setup->builtin->schema;
    int64_t balances[BALANCES_MAX] = {0};
    bool equal = false;

    if (ask_balances(setup, balances, &equal, err) < 0)
        return -1;
    if (options->json)
        print_json(setup, balances, equal);
    else if (!options->quiet)
        for (int i = 0; schema->balances[i]; i++)
            printf("  %-10s %" PRId64 "\n", schema->balance_names[i], balances[i]);
    if (!equal) {
        struct err verdict = ERR_INIT;
        err_set(&verdict, ERR_FAILED,
                "the balances of %s in %s differ: a transaction was applied in part, or something "
                "else changed the tables (simple-update leaves tellers and branches out, for one)",
                schema->name, db_display(setup->target));
        cmd_fail(&verdict);
        return 3;
    }
    if (!options->quiet && !options->json)
        printf("the balances agree\n");
    return 0;
}

static int check_main(int argc, char **argv)
{
    struct check_options options = {0};
    struct setup setup = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;

    if (cmd_parse(&check_command, argc, argv, &options, args, &status) < 0)
        goto out;
    cmd_clean_leftovers();
    struct setup_wish wish = {
        .url = args[0],
        .workload = args[1],
        .clients = 1,
        .protocol = DB_SIMPLE,
        .purpose = SERVER_FOR_CHECK,
        .stop = cmd_catch_signals(),
        .quiet = options.quiet || options.json,
    };
    if (setup_open(&setup, &wish, &err) < 0) {
        status = cmd_fail(&err);
        goto out;
    }
    // As a reader: a check never writes, so a replica can be checked.
    setup.writes = false;
    if (db_is_temporary(setup.target) || db_caps(setup.target) & DB_CAP_HOLLOW)
        err_set(&err, ERR_USAGE, "%s holds nothing to check: name a database",
                db_display(setup.target));
    else if (setup_check_run(&setup, &wish, &err) == 0)
        status = check_balances(&setup, &options, &err);
    if (err.kind)
        status = cmd_fail(&err);
out:
    setup_close(&setup);
    opt_release(rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_check = {&check_command, check_main};
