// Option rows: what a command line sets, what every kind of mistake is answered with, what is
// recorded, and what help and manual say.
#include "base/opt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

enum { PROTOCOL_SIMPLE, PROTOCOL_EXTENDED, PROTOCOL_PREPARED };

// Warm-up: a duration, or one of two words (negative numbers).
struct warmup_option {
    int64_t ns; // -1: auto, -2: none
};

struct values {
    int64_t clients;
    int64_t time_ns;
    int64_t scale_bytes;
    double rate;
    bool per_statement, quiet, fairness;
    int protocol;
    char *store, *label;
    struct opt_list files, events;
    struct warmup_option warmup;
    int64_t seed;
};

static int parse_warmup(const char *text, void *value, struct err *err)
{
    struct warmup_option *warmup = value;

    if (strcmp(text, "auto") == 0)
        warmup->ns = -1;
    else if (strcmp(text, "none") == 0)
        warmup->ns = -2;
    else if (strcmp(text, "never") == 0)
        return err_set(err, ERR_USAGE, "must be auto, none or a duration");
    else
        return units_parse_duration(text, NS_PER_S, &warmup->ns, err);
    return 0;
}

static void print_warmup(const void *value, char *out, size_t size)
{
    const struct warmup_option *warmup = value;
    char text[UNITS_MAX];

    snprintf(out, size, "%s",
             warmup->ns == -1   ? "auto"
             : warmup->ns == -2 ? "none"
                                : units_format_duration_exact(warmup->ns, text));
}

static const char *const protocols[] = {"simple", "extended", "prepared", NULL};

#define AT(field) offsetof(struct values, field)
static const struct opt_row rows[] = {
    {"clients", 'c', OPT_INT, AT(clients), "8", 1, 100000, .arg = "N", .help = "simulated sessions",
     .group = "Load"},
    {"time", 'T', OPT_DURATION, AT(time_ns), "60s", 1, 31536000,
     .help = "how long to run; a bare number counts seconds"},
    {"scale", 's', OPT_SIZE, AT(scale_bytes), .arg = "SIZE",
     .help = "how much data the workload's tables hold, in bytes or as a multiple of memory, "
             "which is told by a text that does not fit one line"},
    {"rate", 'R', OPT_DOUBLE, AT(rate), .min = 0.001, .max = 1e18, .arg = "TPS",
     .help = "planned transactions per second"},
    {"protocol", 'M', OPT_CHOICE, AT(protocol), "prepared", .choices = protocols,
     .help = "how statements are sent"},
    {"file", 'f', OPT_LIST, AT(files), .arg = "FILE[@WEIGHT]", .help = "script file"},
    {"at", 0, OPT_LIST, AT(events), .arg = "DURATION WHAT", .pair = true, .help = "an event"},
    {"warmup", 0, OPT_CUSTOM, AT(warmup), "auto", .arg = "auto|DURATION|none",
     .help = "what to leave out at the start", .parse = parse_warmup, .print = print_warmup,
     .group = "Measuring"},
    {"seed", 0, OPT_INT, AT(seed), .help = "of all random numbers"},
    {"fairness", 0, OPT_FLAG, AT(fairness), "yes", .help = "show how even clients were served"},
    {"per-statement", 'r', OPT_FLAG, AT(per_statement), .help = "a table of statements",
     .group = "Output"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .help = "print the result only", .unrecorded = true},
    {"store", 0, OPT_TEXT, AT(store), "./prony.db", .arg = "FILE", .help = "results file"},
    {"label", 0, OPT_TEXT, AT(label), .help = "a word to find the run by"},
    {NULL},
};

static const struct opt_peer peers[] = {
    {"--jobs", "--threads"},
    {"-S", "the workload select-only"},
    {"-U", "name the user in the target, as in postgres://USER@HOST/DB"},
    {NULL, NULL},
};

static const struct opt_command command = {
    .name = "run",
    .usage = "TARGET WORKLOAD | TARGET -f FILE[@WEIGHT]...",
    .summary = "Runs a workload against a database and measures it",
    .example = "prony run sqlite:bench.db tpcb -c 16 -T 5m\nprony run postgres://h/db -f a.sql@2",
    .rows = rows,
    .peers = peers,
    .min_args = 1,
    .max_args = 2,
};

// One parsed command line; the words are split at blanks, '~' stands for a blank and "''" for an
// empty word.
struct parsed {
    struct values values;
    char *args[32];
    char *words;
    int n;
    struct err err;
};

static void parse(struct parsed *parsed, const char *line)
{
    char *argv[32] = {(char *)"run"};
    int argc = 1;

    *parsed = (struct parsed){0};
    opt_defaults(rows, &parsed->values);
    parsed->words = strdup(line);
    for (char *save, *word = strtok_r(parsed->words, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        for (char *p = word; *p; p++)
            if (*p == '~')
                *p = ' ';
        argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
    }
    parsed->n = opt_parse(&command, argc, argv, &parsed->values, parsed->args, &parsed->err);
}

static void parsed_release(struct parsed *parsed)
{
    opt_release(rows, &parsed->values);
    opt_release(rows, &parsed->values); // twice is harmless
    free(parsed->words);
}

static void test_nothing_given_leaves_the_defaults(void **state)
{
    struct parsed p;
    (void)state;
    parse(&p, "null:");
    assert_int_equal(p.n, 1);
    assert_string_equal(p.args[0], "null:");
    assert_int_equal(p.values.clients, 8);
    assert_int_equal(p.values.time_ns, 60 * NS_PER_S);
    assert_int_equal(p.values.scale_bytes, 0);
    assert_true(p.values.rate == 0);
    assert_int_equal(p.values.protocol, PROTOCOL_PREPARED);
    assert_int_equal(p.values.files.n, 0);
    assert_int_equal(p.values.warmup.ns, -1);
    assert_true(p.values.fairness);
    assert_false(p.values.quiet);
    assert_string_equal(p.values.store, "./prony.db");
    assert_null(p.values.label);
    for (const struct opt_row *row = rows; row->name; row++)
        if (opt_is_changed(row, &p.values))
            fail_msg("--%s is not at its default", row->name);
    parsed_release(&p);
}

static void test_a_pair_is_two_words(void **state)
{
    static const struct {
        const char *line;
        const char *items[2];
        const char *says; // NULL: it is taken
    } cases[] = {
        {"--at 30s checkpoint null:", {"30s checkpoint"}, NULL},
        {"null: --at=30s checkpoint", {"30s checkpoint"}, NULL},
        {"null: --at 30s~checkpoint", {"30s checkpoint"}, NULL},
        {"null: --at 1s echo~-n~x --at 2s b", {"1s echo -n x", "2s b"}, NULL},
        {"null: --at 1s -x", {"1s -x"}, NULL}, // no option of ours
        {"null: --at", {NULL}, "--at needs an argument: "},
        {"null: --at 30s", {NULL}, "--at needs two arguments: DURATION WHAT"},
        {"null: --at 30s -q", {NULL}, "--at needs two arguments: DURATION WHAT"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct parsed p;
        parse(&p, cases[i].line);
        assert_int_equal(p.n > 0, cases[i].says == NULL);
        if (cases[i].says)
            assert_non_null(strstr(p.err.text, cases[i].says));
        else
            assert_int_equal(p.n, 1);
        for (size_t k = 0; k < p.values.events.n; k++)
            assert_string_equal(p.values.events.items[k], cases[i].items[k]);
        assert_int_equal(p.values.events.n,
                         (cases[i].items[0] != NULL) + (cases[i].items[1] != NULL));
        parsed_release(&p);
    }
}

static void test_all_spellings_of_an_option_set_the_same(void **state)
{
    static const char *const lines[] = {
        "null: -c 16 -T 5m -qr -M simple",
        "-c16 -T5m -q -r --protocol simple null:",
        "--clients=16 --time=5m --protocol=simple --quiet --per-statement null:",
        "--clients 16 null: --time 300 -rqMsimple",
        "-c 4 --clients 16 -T300s -M prepared -M simple -rq -- null:",
        "-rqc16 -T 5min -Msimple null:",
        "--no-quiet -c 16 -T 5m -qr null: -M simple",
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(lines); i++) {
        struct parsed p;
        parse(&p, lines[i]);
        if (p.n != 1)
            fail_msg("%s: %s", lines[i], p.err.text);
        assert_string_equal(p.args[0], "null:");
        assert_int_equal(p.values.clients, 16);
        assert_int_equal(p.values.time_ns, 300 * NS_PER_S);
        assert_int_equal(p.values.protocol, PROTOCOL_SIMPLE);
        assert_true(p.values.quiet && p.values.per_statement);
        assert_int_equal(p.err.kind, ERR_NONE);
        parsed_release(&p);
    }
}

static void test_every_type_is_set(void **state)
{
    struct parsed p;
    (void)state;
    parse(&p, "t -f a.sql@2 --file=b.sql -f c.sql --scale 12GB --rate 1e3 --warmup 5s --seed -3 "
              "--store x.db --store y.db --label -q~is~not~an~option --no-fairness");
    assert_string_equal(p.err.text, "");
    assert_int_equal(p.n, 1);
    assert_int_equal(p.values.files.n, 3);
    assert_string_equal(p.values.files.items[0], "a.sql@2");
    assert_string_equal(p.values.files.items[1], "b.sql");
    assert_string_equal(p.values.files.items[2], "c.sql");
    assert_int_equal(p.values.scale_bytes, 12LL << 30);
    assert_true(p.values.rate == 1000);
    assert_int_equal(p.values.warmup.ns, 5 * NS_PER_S);
    assert_int_equal(p.values.seed, -3);
    assert_string_equal(p.values.store, "y.db");
    assert_string_equal(p.values.label, "-q is not an option");
    assert_false(p.values.fairness);
    parsed_release(&p);
}

static void test_positional_arguments_keep_their_order(void **state)
{
    struct parsed p;
    (void)state;
    parse(&p, "one -c 3 two");
    assert_int_equal(p.n, 2);
    assert_string_equal(p.args[0], "one");
    assert_string_equal(p.args[1], "two");
    parsed_release(&p);
    parse(&p, "- -- -c");
    assert_int_equal(p.n, 2);
    assert_string_equal(p.args[0], "-");
    assert_string_equal(p.args[1], "-c");
    assert_int_equal(p.values.clients, 8);
    parsed_release(&p);
}

static void test_mistakes_name_option_value_and_what_is_allowed(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        // unknown options
        {"t --client 8", "unknown option --client, did you mean --clients?"},
        {"t --client=8", "unknown option --client, did you mean --clients?"},
        {"t --Clients 8", "unknown option --Clients, did you mean --clients?"},
        {"t --cleints 8", "unknown option --cleints, did you mean --clients?"},
        {"t --cli 8", "unknown option --cli, did you mean --clients?"},
        {"t --hepl", "unknown option --hepl, did you mean --help?"},
        {"t --quite", "unknown option --quite, did you mean --quiet?"},
        {"t --no-quite", "unknown option --no-quite, did you mean --no-quiet?"},
        {"t --per_statement", "unknown option --per_statement, did you mean --per-statement?"},
        {"t -clients 8", "unknown option -clients, did you mean --clients?"},
        {"t -clients=8", "unknown option -clients, did you mean --clients?"},
        {"t --no-clients", "unknown option --no-clients (prony run --help lists them)"},
        {"t --zzz", "unknown option --zzz (prony run --help lists them)"},
        {"t --zzz=secret", "unknown option --zzz (prony run --help lists them)"},
        {"t -z", "unknown option -z (prony run --help lists them)"},
        {"t -qz", "unknown option -z (prony run --help lists them)"},
        {"t -5", "unknown option -5 (prony run --help lists them)"},
        {"t --=3", "unknown option -- (prony run --help lists them)"},
        {"t --help=x", "unknown option --help, did you mean --help?"},
        {"t \u2013clients 8",
         "unknown option \u2013clients (it begins with a typographic dash), did "
         "you mean --clients?"},
        {"t \u2014quiet", "unknown option \u2014quiet (it begins with a typographic dash), did you "
                          "mean --quiet?"},
        {"t --cl\x1b[2J", "unknown option '--cl\\x1b[2J' (prony run --help lists them)"},
        // other tools' spellings
        {"t --jobs 4", "unknown option --jobs, did you mean --threads?"},
        {"t --jobs=4", "unknown option --jobs, did you mean --threads?"},
        {"t -S", "unknown option -S, did you mean the workload select-only?"},
        {"t -rS", "unknown option -S, did you mean the workload select-only?"},
        {"t -U me",
         "unknown option -U: name the user in the target, as in postgres://USER@HOST/DB"},
        // missing arguments
        {"t -c", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t --clients", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t --clients=", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t -c ''", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t -c -q", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t -c --quiet", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t -c --no-quiet", "--clients needs an argument: a whole number between 1 and 100000"},
        {"t --store --time=5", "--store needs an argument: FILE"},
        {"t -f -- x", "--file needs an argument: FILE[@WEIGHT]"},
        {"t -qM", "--protocol needs an argument: simple, extended or prepared"},
        {"t --quiet=yes", "--quiet takes no argument"},
        {"t --no-quiet=yes", "--no-quiet takes no argument"},
        // values
        {"t --clients 0", "--clients 0: must be between 1 and 100000"},
        {"t -c0", "--clients 0: must be between 1 and 100000"},
        {"t -c -5", "--clients -5: must be between 1 and 100000"},
        {"t -c 100001", "--clients 100001: must be between 1 and 100000"},
        {"t -c 99999999999999999999",
         "--clients 99999999999999999999: must be a whole number between 1 and 100000"},
        {"t -c 1e3", "--clients 1e3: must be a whole number between 1 and 100000"},
        {"t -c eight", "--clients eight: must be a whole number between 1 and 100000"},
        {"t --seed x", "--seed x: must be a whole number"},
        {"t -T 0", "--time 0: must be between 1s and 8760h"},
        {"t -T 5x", "--time 5x: must be a duration such as 250us, 2ms, 60s or 5m, between 1s and "
                    "8760h"},
        {"t -T -1", "--time -1: must be a duration such as 250us, 2ms, 60s or 5m, between 1s and "
                    "8760h"},
        {"t --rate 0", "--rate 0: must be at least 0.001"},
        {"t --rate nan", "--rate nan: must be a number at least 0.001"},
        {"t --scale 8q", "--scale 8q: must be a size such as 8k, 512MB, 12GB or 2xRAM"},
        {"t -M prepard", "--protocol prepard: must be simple, extended or prepared; did you mean "
                         "prepared?"},
        {"t -M ext",
         "--protocol ext: must be simple, extended or prepared; did you mean extended?"},
        {"t -M ssl", "--protocol ssl: must be simple, extended or prepared"},
        {"t --warmup 5x", "--warmup 5x: must be a duration such as 250us, 2ms, 60s or 5m"},
        {"t --warmup never", "--warmup never: must be auto, none or a duration"},
        {"t -c postgres://u:hush@h", "--clients postgres://u:xxx@h: must be a whole number between "
                                     "1 and 100000"},
        {"t -M a~b", "--protocol 'a b': must be simple, extended or prepared"},
        // positional arguments
        {"-q", "too few arguments, usage: prony run TARGET WORKLOAD | TARGET -f FILE[@WEIGHT]..."},
        {"a b mysql://u:hush@h/x", "unexpected argument mysql://u:xxx@h/x, usage: prony run TARGET "
                                   "WORKLOAD | TARGET -f FILE[@WEIGHT]..."},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct parsed p;
        parse(&p, cases[i].line);
        if (p.n != -1)
            fail_msg("%s was taken", cases[i].line);
        assert_string_equal(p.err.text, cases[i].text);
        assert_int_equal(p.err.kind, ERR_USAGE);
        parsed_release(&p);
    }
}

static void test_error_object_is_optional(void **state)
{
    char *argv[] = {(char *)"run", (char *)"--clients", (char *)"0", NULL}, *args[4];
    struct values values = {0};
    (void)state;
    opt_defaults(rows, &values);
    assert_int_equal(opt_parse(&command, 3, argv, &values, args, NULL), -1);
    opt_release(rows, &values);
}

static void test_help_is_recognised_before_arguments_are_counted(void **state)
{
    static const char *const lines[] = {"--help", "-h", "-?", "a b c --help", "-qh"};
    (void)state;
    for (size_t i = 0; i < ARR_LEN(lines); i++) {
        struct parsed p;
        parse(&p, lines[i]);
        assert_int_equal(p.n, -2);
        assert_int_equal(p.err.kind, ERR_NONE);
        parsed_release(&p);
    }
    struct parsed p;
    parse(&p, "x -- --help");
    assert_int_equal(p.n, 2);
    parsed_release(&p);
}

static void test_set_by_name_is_for_study_files(void **state)
{
    static const struct {
        const char *name, *text, *error;
    } cases[] = {
        {"clients", "64", NULL},
        {"quiet", "yes", NULL},
        {"quiet", "true", NULL},
        {"quiet", "on", NULL},
        {"quiet", "1", NULL},
        {"quiet", "maybe", "quiet maybe: must be yes or no"},
        {"clients", "0", "clients 0: must be between 1 and 100000"},
        {"clients", "", "clients '': must be a whole number between 1 and 100000"},
        {"client", "64", "unknown option client, did you mean clients?"},
    };
    struct values values = {0};
    (void)state;
    opt_defaults(rows, &values);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct err err = ERR_INIT;
        int rc = opt_set(rows, &values, cases[i].name, cases[i].text, &err);
        assert_int_equal(rc, cases[i].error ? -1 : 0);
        assert_string_equal(err.text, cases[i].error ? cases[i].error : "");
    }
    assert_int_equal(values.clients, 64);
    assert_true(values.quiet);
    assert_int_equal(opt_set(rows, &values, "quiet", "off", NULL), 0);
    assert_false(values.quiet);
    opt_release(rows, &values);
}

static void test_changed_values_are_told_from_defaults(void **state)
{
    static const struct {
        const char *line, *changed;
    } cases[] = {
        {"t -c 8 -T 1m -M prepared --fairness --warmup auto --store ./prony.db", ""},
        {"t -c 9", "clients"},
        {"t -T 61", "time"},
        {"t -s 1", "scale"},
        {"t -R 1", "rate"},
        {"t -M simple", "protocol"},
        {"t -f x", "file"},
        {"t --warmup none", "warmup"},
        {"t --seed 1", "seed"},
        {"t --no-fairness", "fairness"},
        {"t -r", "per-statement"},
        {"t --store x", "store"},
        {"t --label x", "label"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct parsed p;
        parse(&p, cases[i].line);
        for (const struct opt_row *row = rows; row->name; row++)
            if (opt_is_changed(row, &p.values) != (strcmp(row->name, cases[i].changed) == 0))
                fail_msg("%s: --%s", cases[i].line, row->name);
        parsed_release(&p);
    }
}

static void test_what_is_recorded_reads_back_to_the_same_values(void **state)
{
    struct parsed p;
    struct kvs record = KVS_INIT, again = KVS_INIT;
    struct values values = {0};
    (void)state;
    parse(&p, "t -c 16 -T 90 -s 12GB -R 0.1 -M extended -f a -f b --warmup 1500ms --seed 7 -q -r "
              "--no-fairness --label postgres://u:hush@h");
    assert_int_equal(p.n, 1);
    opt_record(rows, &p.values, &record);
    static const char *const expected[][2] = {
        {"clients", "16"},
        {"time", "90s"},
        {"scale", "12GB"},
        {"rate", "0.1"},
        {"protocol", "extended"},
        {"file", "a"},
        {"file", "b"},
        {"warmup", "1.5s"},
        {"seed", "7"},
        {"fairness", "no"},
        {"per-statement", "yes"},
        {"store", "./prony.db"},
        {"label", "postgres://u:xxx@h"},
    };
    assert_int_equal(record.n, ARR_LEN(expected)); // quiet is an output option
    for (size_t i = 0; i < record.n; i++) {
        assert_string_equal(record.items[i].key, expected[i][0]);
        assert_string_equal(record.items[i].value, expected[i][1]);
        assert_int_equal(opt_set(rows, &values, record.items[i].key, record.items[i].value, NULL),
                         0);
    }
    opt_record(rows, &values, &again);
    assert_int_equal(again.n, record.n);
    for (size_t i = 0; i < again.n; i++)
        assert_string_equal(again.items[i].value, record.items[i].value);
    kvs_release(&record);
    kvs_release(&again);
    opt_release(rows, &values);
    parsed_release(&p);
}

static char *printed(void (*print)(const struct opt_command *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    print(&command, out);
    fclose(out);
    return text;
}

static void test_help_fits_a_screen_and_shows_every_row(void **state)
{
    char *help = printed(opt_print_help);
    int n_lines = 0;
    (void)state;
    for (const struct opt_row *row = rows; row->name; row++) {
        char name[64];
        snprintf(name, sizeof(name), strcmp(row->name, "fairness") ? "--%s" : "--[no-]%s",
                 row->name);
        assert_non_null(strstr(help, name));
    }
    assert_non_null(strstr(help, "Usage: prony run [OPTIONS] TARGET WORKLOAD\n"
                                 "       prony run [OPTIONS] TARGET -f FILE[@WEIGHT]...\n"
                                 "Runs a workload against a database and measures it\n"
                                 "\nLoad:\n"
                                 "  -c, --clients N           simulated sessions (8)\n"));
    assert_non_null(strstr(help, "\nMeasuring:\n      --warmup auto|DURATION|none\n"
                                 "                            what to leave out"));
    assert_non_null(strstr(help, "how statements are sent (prepared)\n"));
    assert_non_null(strstr(help, "\nExample:\n  prony run sqlite:bench.db tpcb -c 16 -T 5m\n"
                                 "  prony run postgres"));
    for (char *line = strtok(help, "\n"); line; line = strtok(NULL, "\n"), n_lines++) {
        if (text_columns(line) > 80)
            fail_msg("wider than 80 columns: %s", line);
        assert_true(line[strlen(line) - 1] != ' ');
    }
    assert_in_range(n_lines, 20, 30);
    free(help);
}

static void test_manual_has_every_row_with_default_and_escapes(void **state)
{
    char *mdoc = printed(opt_print_mdoc);
    (void)state;
    assert_non_null(strstr(mdoc, ".Ss prony run\n"));
    assert_non_null(strstr(mdoc, ".It Fl c , Fl \\-clients Ar \"\\&N\"\n"
                                 "Simulated sessions.\nThe default is 8.\n"));
    assert_non_null(strstr(mdoc, ".It Fl \\-[no\\-]fairness\n"));
    assert_non_null(strstr(mdoc, "TARGET \\-f FILE"));
    for (const struct opt_row *row = rows; row->name; row++)
        assert_non_null(strstr(mdoc, row->help + 1));
    for (char *line = strtok(mdoc, "\n"); line; line = strtok(NULL, "\n"))
        if (line[0] == '.' && strncmp(line, ".Ss ", 4) && strncmp(line, ".It ", 4) &&
            strncmp(line, ".Dl ", 4) && strncmp(line, ".Bl ", 4) && strncmp(line, ".Bd ", 4) &&
            strcmp(line, ".Pp") && strcmp(line, ".El") && strcmp(line, ".Ed"))
            fail_msg("unexpected macro: %s", line);
    free(mdoc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_given_leaves_the_defaults),
        cmocka_unit_test(test_a_pair_is_two_words),
        cmocka_unit_test(test_all_spellings_of_an_option_set_the_same),
        cmocka_unit_test(test_every_type_is_set),
        cmocka_unit_test(test_positional_arguments_keep_their_order),
        cmocka_unit_test(test_mistakes_name_option_value_and_what_is_allowed),
        cmocka_unit_test(test_error_object_is_optional),
        cmocka_unit_test(test_help_is_recognised_before_arguments_are_counted),
        cmocka_unit_test(test_set_by_name_is_for_study_files),
        cmocka_unit_test(test_changed_values_are_told_from_defaults),
        cmocka_unit_test(test_what_is_recorded_reads_back_to_the_same_values),
        cmocka_unit_test(test_help_fits_a_screen_and_shows_every_row),
        cmocka_unit_test(test_manual_has_every_row_with_default_and_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
