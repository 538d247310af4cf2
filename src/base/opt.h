// Option rows: one row per option gives parsing, range check, help, the recorded setting and the
// manual. A command owns a table of rows whose offsets point into its own struct of values, zeroed
// before opt_defaults.
//
// Errors name the option, what was typed (passwords hidden) and what is allowed:
//     --clients 0: must be between 1 and 100000
//     --clients needs an argument: a whole number between 1 and 100000
//     --protocol prepard: must be simple, extended or prepared; did you mean prepared?
//     unknown option --client, did you mean --clients?
// Abbreviations of long names are refused with the name that was probably meant, so that a later
// version may add options without changing what an old script does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/kv.h"

enum opt_type {
    OPT_FLAG,     // bool; no argument ("--no-NAME" is accepted too)
    OPT_INT,      // int64_t in [min, max]
    OPT_DOUBLE,   // double in [min, max]
    OPT_DURATION, // int64_t nanoseconds; min and max in seconds; a bare number counts in seconds
    OPT_SIZE,     // int64_t bytes
    OPT_TEXT,     // char *, allocated; freed by opt_release
    OPT_CHOICE,   // int: index into choices
    OPT_LIST,     // struct opt_list: may be given several times; has no default
    OPT_CUSTOM,   // parse() reads it into the value at offset
};

struct opt_list {
    char **items;
    size_t n;
    size_t cap;
};

struct opt_row {
    const char *name; // long name without dashes; NULL ends the table
    char letter;      // short form, 0 for none
    enum opt_type type;
    size_t offset;              // of the value in the command's struct
    const char *standard;       // default as the user would type it; NULL: zero / NULL
    double min, max;            // both 0: no check (durations and sizes are never negative)
    const char *const *choices; // OPT_CHOICE: NULL-terminated
    const char *arg;            // what help calls the argument: "N", "DURATION"; NULL: by the type
    const char *help;           // one line, no period; the default is added by help itself
    const char *group;          // heading in help; NULL: the group of the row before

    // OPT_CUSTOM. parse replaces the value there (it may be called several times); its error says
    // what is allowed ("must be ..."), the option and the text are put before it. print writes the
    // value for records in the form of `standard`; without it the option is not recorded. What
    // such a value owns is freed by its command, not by opt_release.
    int (*parse)(const char *text, void *value, struct err *err);
    void (*print)(const void *value, char *out, size_t size);

    bool unrecorded; // output options: not part of what a run was
    bool pair; // OPT_LIST: an item is two words, `--at 30s checkpoint`, kept with a blank between
};

// Spellings of other tools that mean something else here, or have another name. The answer is
// `unknown option --jobs, did you mean --threads?` when the suggestion begins with "-", "the "
// or "prony "; any other suggestion is a note: `unknown option -U: name the user in the target`. A
// row's own name or letter goes before a peer's.
struct opt_peer {
    const char *spelling;   // with its dashes: "--jobs", "-S"
    const char *suggestion; // what to type instead: "--threads", "the workload select-only"
};

struct opt_command {
    const char *name;    // "run"
    const char *usage;   // "TARGET WORKLOAD | TARGET -f FILE[@WEIGHT]..."
    const char *summary; // one line
    const char *example; // one or two command lines
    const struct opt_row *rows;
    const struct opt_peer *peers; // ends with spelling NULL; may be NULL
    int min_args, max_args;       // positional arguments; max -1: any number
};

// Sets every value to its row's default. Asserts that the table makes sense: names and letters
// once, defaults in range.
void opt_defaults(const struct opt_row *rows, void *values);

// Parses argv[1..argc-1] (options and arguments in any order, "--name=value" and "--name value",
// "-c8", "-c 8", joined flags "-qr", "--" ends options). Positional arguments are moved to args
// (room for argc pointers into argv). Returns the number of positional arguments; -1 with an
// ERR_USAGE that names option, value and what is allowed; -2 when --help was given (nothing
// printed). -h and -? are help too unless the command has such a row or peer. A repeated option
// replaces the earlier one, except lists. Empty arguments are refused.
int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *values, char **args,
              struct err *err);

// Sets one option by name from text, as opt_parse would (study files use this); errors name the
// option without dashes. Flags take yes, no, true, false, on, off, 1, 0.
int opt_set(const struct opt_row *rows, void *values, const char *name, const char *text,
            struct err *err);

// True when the value differs from the row's default.
bool opt_is_changed(const struct opt_row *row, const void *values);

// Appends every recorded row as key and value, as opt_set reads it; lists once per item; texts that
// are not set are left out, passwords hidden.
void opt_record(const struct opt_row *rows, const void *values, struct kvs *out);

// --help of one command; fits 80 columns, options in their groups with defaults.
void opt_print_help(const struct opt_command *cmd, FILE *out);

// The same as a subsection (.Ss) of a mdoc(7) manual page.
void opt_print_mdoc(const struct opt_command *cmd, FILE *out);

void opt_release(const struct opt_row *rows, void *values);
