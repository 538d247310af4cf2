// prony list, show, export, import: results that are kept already.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "report/report.h"
#include "store/store.h"

static const char *const formats[] = {"text", "md", "json", NULL};
enum format { FORMAT_TEXT, FORMAT_MD, FORMAT_JSON };

// One struct for all four: each command has the rows it needs.
struct results_options {
    char *store, *output;
    int64_t limit;
    int format;
    bool statements, json;
};

#define AT(member) offsetof(struct results_options, member)
#define ROW_STORE                                                                                \
    {                                                                                            \
        "store", 0, OPT_TEXT, AT(store), .arg = "FILE", .group = "Options",                      \
                                         .help = "results file, else $PRONY_STORE or ./prony.db" \
    }

// Parses, opens the store. Returns the store, or NULL with the exit status.
static struct store *results_open(const struct opt_command *command, int argc, char **argv,
                                  struct results_options *options, char **args, int *ret_n_args,
                                  enum store_mode mode, int *ret_status)
{
    struct err err = ERR_INIT;
    struct store *store = NULL;

    *ret_n_args = cmd_parse(command, argc, argv, options, args, ret_status);
    if (*ret_n_args < 0)
        return NULL;
    if (store_open(&store, options->store, mode, &err) < 0)
        *ret_status = cmd_fail(&err);
    return store;
}

// ---- list

static const struct opt_row list_rows[] = {
    ROW_STORE,
    {"limit", 'n', OPT_INT, AT(limit), "20", 0, 1e9, .arg = "N", .help = "newest N runs; 0: all"},
    {"json", 0, OPT_FLAG, AT(json), .help = "an array of objects"},
    {NULL},
};

static const struct opt_command list_command = {
    .name = "list",
    .usage = "",
    .summary = "the runs in the results file, newest first",
    .example = "prony list -n 5",
    .rows = list_rows,
};

// A cell of exactly `width` columns. What is too long loses its begin or its end.
static void print_cell(const char *text, int width, bool keep_end)
{
    struct str safe = STR_INIT;

    text_add_safe(&safe, text ? text : "");
    if (text_columns(safe.buf) <= width) {
        printf("%s%*s ", safe.buf, width - text_columns(safe.buf), "");
    } else if (keep_end) {
        const char *tail = safe.buf;
        while (text_columns(tail) > width - 2)
            do
                tail++;
            while ((*tail & 0xc0) == 0x80);
        printf("..%s%*s ", tail, width - 2 - text_columns(tail), "");
    } else {
        text_cut_columns(safe.buf, width - 2);
        printf("%s..%*s ", safe.buf, width - 2 - text_columns(safe.buf), "");
    }
    str_release(&safe);
}

static void print_list(const struct store_row *rows, int n)
{
    char utc[32], tps[UNITS_MAX], p99[UNITS_MAX];

    printf("%5s %-16s %-14s %-26s %-14s %7s %9s %9s %s\n", "run", "started (UTC)", "label",
           "target", "workload", "clients", "tps", "p99", "doubts");
    for (int i = 0; i < n; i++) {
        const struct store_row *row = &rows[i];
        bool done = strcmp(row->status, "done") == 0;
        clock_format_utc(row->started_real_ns, utc, sizeof(utc));
        utc[10] = ' ';
        utc[16] = '\0';
        printf("%5" PRId64 " %s ", row->id, utc);
        print_cell(row->label, 14, false);
        print_cell(row->target, 26, true); // databases differ at the end
        print_cell(row->workload, 14, false);
        printf("%7" PRId64 " %9s %9s %" PRId64 "%s%s\n", row->clients,
               units_format_rate(row->tps, tps),
               row->p99_us > 0 ? units_format_duration((int64_t)(row->p99_us * 1e3), p99) : "-",
               row->warnings, done ? "" : "  ", done ? "" : row->status);
    }
}

static int list_main(int argc, char **argv)
{
    struct results_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int n_args, status = 0, n = 0;
    struct store_row *rows = NULL;
    struct store *store =
        results_open(&list_command, argc, argv, &options, args, &n_args, STORE_READ, &status);

    if (store) {
        if (store_list(store, (int)options.limit, &rows, &n, &err) < 0)
            status = cmd_fail(&err);
        else if (options.json)
            status = report_list_json(rows, n, stdout) < 0;
        else if (n == 0)
            printf("no runs in %s yet\n", store_path(store));
        else
            print_list(rows, n);
    }
    store_rows_free(rows, n);
    store_close(store);
    opt_release(list_rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_list = {&list_command, list_main};

// ---- show

static const struct opt_row show_rows[] = {
    ROW_STORE,
    {"format", 0, OPT_CHOICE, AT(format), "text", .choices = formats, .arg = "NAME",
     .help = "text, md (to paste into a ticket) or json"},
    {"statements", 'r', OPT_FLAG, AT(statements), .help = "show latency per statement"},
    {NULL},
};

static const struct opt_peer show_peers[] = {
    {"--json", "--format json"},
    {"--md", "--format md"},
    {NULL, NULL},
};

static const struct opt_command show_command = {
    .name = "show",
    .usage = "[RUN]",
    .summary = "one run: the newest, or by number, label or the start of its uuid",
    .example = "prony show 12 --format md",
    .rows = show_rows,
    .peers = show_peers,
    .max_args = 1,
};

static int show_result(const struct result *result, const struct results_options *options)
{
    struct report_style style = report_style_for(stdout);

    style.statements = options->statements;
    switch ((enum format)options->format) {
    case FORMAT_TEXT:
        report_text(result, &style, stdout);
        break;
    case FORMAT_MD:
        report_markdown(result, stdout);
        break;
    case FORMAT_JSON:
        if (report_json(result, stdout) < 0)
            return 1;
        break;
    }
    return 0;
}

static int show_main(int argc, char **argv)
{
    struct results_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int n_args, status = 0;
    struct result *result = NULL;
    struct store *store =
        results_open(&show_command, argc, argv, &options, args, &n_args, STORE_READ, &status);

    if (store) {
        if (store_get(store, n_args ? args[0] : "last", &result, &err) < 0)
            status = cmd_fail(&err);
        else
            status = show_result(result, &options);
    }
    result_free(result);
    store_close(store);
    opt_release(show_rows, &options);
    free(args);
    return cmd_finish_output(status);
}

const struct command command_show = {&show_command, show_main};

// ---- export, import

static const struct opt_row export_rows[] = {
    ROW_STORE,
    {"output", 'o', OPT_TEXT, AT(output), .arg = "FILE", .help = "file to make"},
    {NULL},
};

static const struct opt_command export_command = {
    .name = "export",
    .usage = "RUN -o FILE",
    .summary = "one run as a file of its own (which is itself a results file)",
    .example = "prony export 12 -o before.prony",
    .rows = export_rows,
    .min_args = 1,
    .max_args = 1,
};

static int export_main(int argc, char **argv)
{
    struct results_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int n_args, status = 0;
    struct store *store =
        results_open(&export_command, argc, argv, &options, args, &n_args, STORE_READ, &status);

    if (store) {
        if (!options.output)
            err_set(&err, ERR_USAGE, "where to? Name the file to make with -o FILE");
        else
            store_export(store, args[0], options.output, &err);
        status = err.kind ? cmd_fail(&err) : 0;
        if (!status)
            printf("run %s is in %s\n", args[0], options.output);
    }
    store_close(store);
    opt_release(export_rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_export = {&export_command, export_main};

static const struct opt_row import_rows[] = {
    ROW_STORE,
    {NULL},
};

static const struct opt_command import_command = {
    .name = "import",
    .usage = "FILE",
    .summary = "take an exported run into the results file",
    .example = "prony import before.prony",
    .rows = import_rows,
    .min_args = 1,
    .max_args = 1,
};

static int import_main(int argc, char **argv)
{
    struct results_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int n_args, status = 0;
    struct store *store =
        results_open(&import_command, argc, argv, &options, args, &n_args, STORE_WRITE, &status);

    if (store) {
        int64_t id = 0;
        bool known = false;
        if (store_import(store, args[0], &id, &known, &err) < 0)
            status = cmd_fail(&err);
        else
            printf(known ? "%s is in %s already, as run %" PRId64 "\n"
                         : "%s is in %s as run %" PRId64 "\n",
                   args[0], store_path(store), id);
    }
    store_close(store);
    opt_release(import_rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_import = {&import_command, import_main};
