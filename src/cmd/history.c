// prony history: the runs of one name over time, and where their level changed.
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/sides.h"
#include "report/history.h"

struct history_options {
    int measure;
    bool json;
    char *store;
};

#define AT(member) offsetof(struct history_options, member)

static const struct opt_row rows[] = {
    {"measure", 0, OPT_CHOICE, AT(measure), "tps", .choices = measure_names, .arg = "NAME",
     .group = "Options", .help = "what to look at: tps, or a latency such as p99"},
    {"json", 0, OPT_FLAG, AT(json), .help = "one JSON document"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE",
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {NULL},
};

static const struct opt_command history_command = {
    .name = "history",
    .usage = "LABEL | RUNS",
    .summary = "runs over time, and when they became faster or slower",
    .example = "prony history nightly --measure p99",
    .rows = rows,
    .min_args = 1,
    .max_args = 1,
};

static int tell(const struct side *side, const struct history_options *options)
{
    struct report_style style = report_style_for(stdout);
    struct history history;
    int status = 0;

    history_make(side, (enum measure)options->measure, &history);
    if (!options->json)
        history_text(&history, &style, stdout);
    else if (history_json(&history, stdout) < 0)
        status = 1;
    history_release(&history);
    return status;
}

static int history_main(int argc, char **argv)
{
    struct history_options options = {0};
    struct side side = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;

    if (cmd_parse(&history_command, argc, argv, &options, args, &status) < 0)
        goto out;
    if (side_read(args[0], options.store, &side, &err) == 0 && side.is_published)
        err_set(&err, ERR_USAGE, "%s: published figures have no history", args[0]);
    status = err.kind ? cmd_fail(&err) : tell(&side, &options);
out:
    side_release(&side);
    opt_release(rows, &options);
    free(args);
    return cmd_finish_output(status);
}

const struct command command_history = {&history_command, history_main};
