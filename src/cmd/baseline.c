// prony baseline: a name for a set of runs, to compare with later.
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "store/store.h"

struct baseline_options {
    char *store;
};

static const struct opt_row rows[] = {
    {"store", 0, OPT_TEXT, offsetof(struct baseline_options, store), .arg = "FILE",
     .group = "Options", .help = "results file, else $PRONY_STORE or ./prony.db"},
    {NULL},
};

static const struct opt_command baseline_command = {
    .name = "baseline",
    .usage = "save NAME RUNS... | list | remove NAME",
    .summary = "a name for a set of runs, to compare with later",
    .example = "prony baseline save old-platform before\n"
               "prony compare baseline:old-platform after --fail-if-worse 5%",
    .rows = rows,
    .min_args = 1,
    .max_args = -1,
};

static int save(struct store *store, int n, char **args, struct err *err)
{
    int64_t *ids = NULL;
    int n_ids = 0, replaced = 0, rc = 0;

    if (n < 2)
        return err_set(err, ERR_USAGE,
                       "prony baseline save needs a NAME and the RUNS it stands "
                       "for: a label, or numbers such as 3,5-9");
    for (int i = 1; rc == 0 && i < n; i++) {
        int64_t *more;
        int n_more;
        rc = store_select(store, args[i], &more, &n_more, err);
        for (int j = 0; rc == 0 && j < n_more; j++) {
            bool known = false;
            for (int k = 0; k < n_ids && !known; k++)
                known = ids[k] == more[j];
            if (known)
                continue;
            ids = mem_resize(ids, (size_t)n_ids + 1, sizeof(*ids));
            ids[n_ids++] = more[j];
        }
        if (rc == 0)
            free(more);
    }
    if (rc == 0)
        rc = store_baseline_save(store, args[0], ids, n_ids, &replaced, err);
    if (rc == 0) {
        char *before = replaced ? mem_printf(" (before: %d)", replaced) : mem_strdup("");
        cmd_print_safe("baseline %s is %d run%s%s", args[0], n_ids, n_ids == 1 ? "" : "s", before);
        free(before);
    }
    free(ids);
    return rc;
}

static int list(struct store *store, struct err *err)
{
    struct store_baseline *baselines;
    char tps[UNITS_MAX];
    int n;

    if (store_baselines(store, &baselines, &n, err) < 0)
        return -1;
    if (n == 0)
        printf("no baselines in %s yet\n", store_path(store));
    else
        printf("%-24s %6s %9s %s\n", "baseline", "runs", "tps", "numbers");
    for (int i = 0; i < n; i++)
        cmd_print_safe("%-24s %6" PRId64 " %9s %" PRId64 " to %" PRId64, baselines[i].name,
                       baselines[i].runs, units_format_rate(baselines[i].tps, tps),
                       baselines[i].first_id, baselines[i].last_id);
    store_baselines_free(baselines, n);
    return 0;
}

static int drop(struct store *store, int n, char **args, struct err *err)
{
    if (n != 1)
        return err_set(err, ERR_USAGE, "prony baseline remove takes one NAME");
    if (store_baseline_remove(store, args[0], err) < 0)
        return -1;
    cmd_print_safe("baseline %s is removed; its runs stay", args[0]);
    return 0;
}

static int verb(int n, char **args, const char *path, struct err *err)
{
    static const char *const verbs[] = {"save", "list", "remove", NULL};
    struct store *store = NULL;
    int v = 0, rc;

    while (verbs[v] && strcmp(args[0], verbs[v]) != 0)
        v++;
    if (!verbs[v])
        return text_unknown("baseline command", args[0], verbs, err);
    if (v == 1 && n > 1)
        return err_set(err, ERR_USAGE, "prony baseline list takes no argument");
    // Read first: a file that is not there is not made for this.
    rc = store_open(&store, path, STORE_READ, err);
    if (rc == 0 && v != 1) {
        store_close(store);
        store = NULL;
        rc = store_open(&store, path, STORE_WRITE, err);
    }
    if (rc == 0)
        rc = v == 0   ? save(store, n - 1, args + 1, err)
             : v == 1 ? list(store, err)
                      : drop(store, n - 1, args + 1, err);
    store_close(store);
    return rc;
}

static int baseline_main(int argc, char **argv)
{
    struct baseline_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;
    int n = cmd_parse(&baseline_command, argc, argv, &options, args, &status);

    if (n >= 0 && verb(n, args, options.store, &err) < 0)
        status = cmd_fail(&err);
    opt_release(rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_baseline = {&baseline_command, baseline_main};
