// prony compare: is one set-up really better than another, and by how much.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/sides.h"

#define CHANGE_STANDARD 0.03

static const char *const levels[] = {"run", "boot", NULL};

struct compare_options {
    double see, worse; // parts; 0: not given
    struct opt_list fail_if;
    int measure, replicate;
    bool every_pair, json;
    char *store;
};

#define AT(member) offsetof(struct compare_options, member)

// "5%" or "5": parts of one.
static int parse_percent(const char *text, void *value, struct err *err)
{
    char *copy = mem_strdup(text);
    size_t len = strlen(copy);
    double percent;

    if (len && copy[len - 1] == '%')
        copy[len - 1] = '\0';
    int rc = units_parse_double(copy, &percent, NULL);
    free(copy);
    if (rc < 0 || percent < 0.01 || percent > 90)
        return err_set(err, ERR_USAGE, "must be a percentage between 0.01%% and 90%%");
    *(double *)value = percent / 100;
    return 0;
}

static const struct opt_row rows[] = {
    {"fail-if-worse", 0, OPT_CUSTOM, AT(worse), .arg = "PERCENT", .parse = parse_percent,
     .group = "Conditions", .help = "exit with 3 if worse by so much, 5 if that is open"},
    {"fail-if", 0, OPT_LIST, AT(fail_if), .arg = "MEASURE>LIMIT",
     .help = "exit with 3 if so: 'p99>20ms', 'tps<1000', 'errors>0'"},
    {"see", 0, OPT_CUSTOM, AT(see), .arg = "PERCENT", .parse = parse_percent,
     .help = "a change that matters (3%); exit with 5 if it could not be seen"},
    {"measure", 0, OPT_CHOICE, AT(measure), "tps", .choices = measure_names, .arg = "NAME",
     .group = "Options", .help = "what decides: tps, or a latency such as p99"},
    {"replicate", 0, OPT_CHOICE, AT(replicate), "run", .choices = levels, .arg = "LEVEL",
     .help = "what counts as a repetition: run or boot"},
    {"every-pair", 0, OPT_FLAG, AT(every_pair), .help = "each against each, not all to the first"},
    {"json", 0, OPT_FLAG, AT(json), .help = "one JSON document"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE",
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {NULL},
};

static const struct opt_peer peers[] = {
    {"--baseline", "the baseline as first argument: baseline:NAME"},
    {"--threshold", "--fail-if-worse"},
    {NULL, NULL},
};

static const struct opt_command compare_command = {
    .name = "compare",
    .usage = "A B... (labels, runs 3,5-9, FILE:LABEL, baseline:NAME, 462+-104/17)",
    .summary = "is B really faster than A, and by how much",
    .example = "prony compare before after --fail-if-worse 5%\n"
               "prony compare JFS=462+-104/17 XFS=425+-74/17",
    .rows = rows,
    .peers = peers,
    .min_args = 2,
    .max_args = -1,
};

// Statuses of design: worse goes before open, open before good.
static int status_of(enum outcome outcome)
{
    return outcome == OUTCOME_BAD ? 3 : outcome == OUTCOME_OPEN ? 5 : 0;
}

static int tell(const struct side *sides, int n, const struct compare_options *options,
                const struct objective *objectives)
{
    const struct comparison_rules rules = {
        .main = (enum measure)options->measure,
        .every_pair = options->every_pair,
        .by_boot = options->replicate == 1,
        .change = options->see > 0 ? options->see : CHANGE_STANDARD,
        .is_change_wanted = options->see > 0,
        .worse = options->worse,
    };
    struct comparison comparison;

    comparison_make(sides, n, &rules, &comparison);
    for (size_t i = 0; i < options->fail_if.n; i++)
        comparison_add_objective(&comparison, &objectives[i]);
    int status = status_of(comparison_outcome(&comparison));
    if (options->json) {
        if (comparison_json(&comparison, stdout) < 0)
            status = 1;
    } else {
        struct report_style style = report_style_for(stdout);
        comparison_text(&comparison, &style, stdout);
    }
    comparison_release(&comparison);
    return status;
}

static int compare_main(int argc, char **argv)
{
    struct compare_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0, n_sides = 0;
    int n = cmd_parse(&compare_command, argc, argv, &options, args, &status);
    struct side *sides = mem_calloc((size_t)argc, sizeof(*sides));
    struct objective *objectives = mem_calloc(options.fail_if.n + 1, sizeof(*objectives));
    int rc = n;

    for (size_t i = 0; rc >= 0 && i < options.fail_if.n; i++)
        rc = objective_parse(options.fail_if.items[i], &objectives[i], &err);
    for (; rc >= 0 && n_sides < n; n_sides++)
        rc = side_read(args[n_sides], options.store, &sides[n_sides], &err);
    if (err.kind)
        status = cmd_fail(&err);
    else if (n >= 0)
        status = tell(sides, n, &options, objectives);
    for (size_t i = 0; i < options.fail_if.n; i++)
        free(objectives[i].text);
    free(objectives);
    for (int i = 0; i < n_sides; i++)
        side_release(&sides[i]);
    free(sides);
    opt_release(rows, &options);
    free(args);
    return cmd_finish_output(status);
}

const struct command command_compare = {&compare_command, compare_main};
