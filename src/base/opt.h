// Option rows: one row per option gives parsing, range check, help, the recorded setting and the
// manual. A command owns a table of rows whose offsets point into its own struct of values.
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
    OPT_LIST,     // struct opt_list: may be given several times
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
    const char *arg;            // what help calls the argument: "N", "DURATION", "FILE"
    const char *help;           // one line, no period; the default is added by help itself
    const char *group;          // heading in help; NULL: the group of the row before
    int (*parse)(const char *text, void *value, struct err *err); // OPT_CUSTOM
    void (*print)(const void *value, char *out, size_t size); // OPT_CUSTOM, for records; optional
    bool unrecorded; // output options: not part of what a run was
};

// Spellings of other tools that mean something else here, or have another name: the answer is
// `unknown option --jobs, did you mean --threads?` or the note given.
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

// Sets every value to its row's default.
void opt_defaults(const struct opt_row *rows, void *values);

// Parses argv[1..argc-1] (options and arguments in any order, "--name=value" and "--name value",
// "-c8", "-c 8", joined flags "-qr", "--" ends options). Positional arguments are moved to args
// (room for argc pointers into argv). Returns the number of positional arguments; -1 with an
// ERR_USAGE that names option, value and what is allowed; -2 when --help was given (nothing
// printed).
int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *values, char **args,
              struct err *err);

// Sets one option by name from text, as opt_parse would (study files use this).
int opt_set(const struct opt_row *rows, void *values, const char *name, const char *text,
            struct err *err);

// True when the value differs from the row's default.
bool opt_is_changed(const struct opt_row *row, const void *values);

// Appends every recorded row as key and value, as the user would type it.
void opt_record(const struct opt_row *rows, const void *values, struct kvs *out);

// --help of one command; fits 80 columns, options in their groups with defaults.
void opt_print_help(const struct opt_command *cmd, FILE *out);

// The same as sections of a mdoc(7) manual page.
void opt_print_mdoc(const struct opt_command *cmd, FILE *out);

void opt_release(const struct opt_row *rows, void *values);
