// prony state: the saved states of data sets.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/state_use.h"
#include "volume/state.h"

struct options {
    char *dir, *store;
    bool quiet;
};

#define AT(member) offsetof(struct options, member)

static const struct opt_row rows[] = {
    {"state-dir", 0, OPT_TEXT, AT(dir), .arg = "DIR", .group = "Options", .unrecorded = true,
     .help = "where states are, else prony-states beside the store"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE", .unrecorded = true,
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .unrecorded = true, .help = "print errors only"},
    {NULL},
};

static const struct opt_command state_command = {
    .name = "state",
    .usage = "list | show NAME | check NAME... | forget NAME...",
    .summary = "saved states of data sets that runs begin from",
    .example = "prony run 'server:postgres?data=loop:size=4G' tpcb -s 100 --state auto\n"
               "prony state list",
    .rows = rows,
    .min_args = 1,
    .max_args = -1,
};

static int list(const char *dir)
{
    size_t n;
    struct state_info *states = state_list(dir, &n);
    char bytes[UNITS_MAX], when[32];

    if (n == 0)
        cmd_print_safe("no state in %s", dir);
    else
        printf("%-18s %10s  %-20s %s\n", "name", "size", "saved", "tables");
    for (size_t i = 0; i < n; i++) {
        const char *tables = strstr(states[i].key, "\ntables ");
        char *words = tables ? mem_strndup(tables + 8, strcspn(tables + 8, "\n")) : mem_strdup("");
        clock_format_utc(states[i].saved_ns, when, sizeof(when));
        cmd_print_safe("%-18s %10s  %-20s %s", states[i].name,
                       units_format_bytes(states[i].bytes, bytes), when, words);
        free(words);
    }
    state_list_free(states, n);
    return 0;
}

static int show(const char *dir, const char *name, struct err *err)
{
    struct state *state;
    struct kvs facts = KVS_INIT;
    char bytes[UNITS_MAX];

    if (state_open(&state, dir, name, err) < 0)
        return -1;
    state_record(state, &facts);
    for (size_t i = 0; i < facts.n; i++)
        cmd_print_safe("%-26s %s", facts.items[i].key, facts.items[i].value);
    cmd_print_safe("%-26s %s", "bytes", units_format_bytes(state_bytes(state), bytes));
    kvs_release(&facts);
    state_close(state);
    return 0;
}

static int check(const char *dir, const char *name, const struct options *options,
                 const volatile sig_atomic_t *stop, struct err *err)
{
    struct state *state;
    int rc = state_open(&state, dir, name, err);

    if (rc < 0)
        return rc;
    rc = state_check(state, stop, err);
    if (rc == 0 && !options->quiet)
        cmd_print_safe("%s is as it was saved", name);
    state_close(state);
    return rc;
}

static int forget(const char *dir, const char *name, const struct options *options, struct err *err)
{
    struct leftovers *leftovers;
    struct str report = STR_INIT;
    int rc = leftovers_open(&leftovers, err);

    if (rc < 0)
        return rc;
    rc = state_forget(dir, name, leftovers, err);
    leftovers_close(leftovers, &report);
    str_release(&report);
    if (rc == 0 && !options->quiet)
        cmd_print_safe("%s is forgotten", name);
    return rc;
}

static int verb(int n, char **args, void *values, const volatile sig_atomic_t *stop,
                struct err *err)
{
    const struct options *options = values;
    static const char *const verbs[] = {"list", "show", "check", "forget", NULL};
    char *dir = options->dir ? mem_strdup(options->dir) : state_default_dir(options->store);
    int v = 0, rc = 0;

    while (verbs[v] && strcmp(args[0], verbs[v]) != 0)
        v++;
    if (!verbs[v])
        rc = text_unknown("state command", args[0], verbs, err);
    else if (v == 0 && n > 1)
        rc = err_set(err, ERR_USAGE, "prony state list takes no argument");
    else if (v > 0 && n < 2)
        rc = err_set(err, ERR_USAGE, "prony state %s needs the NAME of a state", verbs[v]);
    else if (v == 1 && n > 2)
        rc = err_set(err, ERR_USAGE, "prony state show takes one NAME");
    else if (v == 0)
        rc = list(dir);
    for (int i = 1; rc == 0 && i < n; i++)
        rc = v == 1   ? show(dir, args[i], err)
             : v == 2 ? check(dir, args[i], options, stop, err)
                      : forget(dir, args[i], options, err);
    free(dir);
    return rc;
}

static int state_main(int argc, char **argv)
{
    struct options options = {0};

    return cmd_run_verb(&state_command, argc, argv, &options, verb);
}

const struct command command_state = {&state_command, state_main};
