// From script text to a list of commands: the first half of the compiler. Nothing is decided here
// that needs to know all scripts (which names are variables, which conditions are constant); that
// is link.c's half.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "workload/expr.h"
#include "workload/program.h"
#include "workload/symbol.h"
#include "workload/workload.h"

// A statement in parts: plain text (symbol < 0) and variables.
struct part {
    int symbol;
    char *text; // kept by the pool; of a variable the name with its colon, as written
    struct place place;
};

enum command_code {
    COMMAND_SQL,
    COMMAND_SET,
    COMMAND_SLEEP,
    COMMAND_IF,
    COMMAND_ELIF,
    COMMAND_ELSE,
    COMMAND_ENDIF,
    COMMAND_STARTPIPELINE,
    COMMAND_SYNCPIPELINE,
    COMMAND_ENDPIPELINE,
};

struct command {
    enum command_code code;
    struct place place;
    struct expr expr; // SET, IF, ELIF; SLEEP: how many
    int variable;     // SET
    int64_t unit_ns;  // SLEEP

    // SQL:
    int first_part, n_parts;
    char *shown;       // as written, blanks folded
    const char *gset;  // prefix of the variables to fill; NULL: none
    struct place join; // of the first "\;"; line 0: none
};

// One script while it is compiled.
struct source {
    const char *file; // as the user named it: for messages
    const char *name; // as recorded
    const char *text;
    size_t len;
    char *owned; // the memory behind text, if it is the source's
    double weight;
    int first_command, n_commands; // set by script_parse
};

struct compiler {
    const struct workload_options *options;
    struct expr_pool *pool;
    struct symbols symbols;
    struct source *sources;
    int n_sources;
    struct command *commands;
    size_t n_commands, cap_commands;
    struct part *parts;
    size_t n_parts, cap_parts;
};

// Appends the commands of source number i. Errors begin with file:line:column.
int script_parse(struct compiler *compiler, int i, struct err *err);

// Links all commands into the workload: statements, operations, variables.
int link_program(struct compiler *compiler, struct workload *workload, struct err *err);

// As lexer_fail, for a place kept earlier.
int compiler_fail(const struct compiler *compiler, const struct place *place, struct err *err,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
