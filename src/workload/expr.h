// Expressions of \set, \if and \sleep: parsed to stack code, folded where nothing in them can
// change, evaluated without allocation. Semantics are pgbench's: 64-bit integers whose overflow is
// an error, doubles, booleans, NULL; one double operand makes the operation double; NULL in gives
// NULL out.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "workload/lexer.h"
#include "workload/program.h"
#include "workload/symbol.h"

#define EXPR_ERROR_MAX 192

// What an evaluation needs of its surroundings.
struct expr_run {
    const struct expr_pool *pool;
    const struct db_value *values; // by variable
    const bool *unset;
    char *const *names; // of variables, for messages
    struct rng *rng;
    struct db_value *stack; // room for the expression's stack
    const struct workload *workload;
    int script, command; // for debug()
    char error[EXPR_ERROR_MAX];
};

// Sets run->error and returns -1.
int expr_fail(struct expr_run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Parses from the lexer's position to the end of the line, which stays unread. Variables are
// entered into symbols.
int expr_parse(struct expr_pool *pool, struct symbols *symbols, struct lexer *lexer,
               struct expr *ret, struct err *err);

// An expression that is one constant, or one variable.
struct expr expr_constant(struct expr_pool *pool, struct db_value value);
struct expr expr_variable(struct expr_pool *pool, int variable);

// Replaces variables that nothing changes by their values, and what then is constant by its
// result. What would fail is left to fail when it is reached.
void expr_fold(struct expr_pool *pool, struct expr *expr, const struct symbols *symbols);
bool expr_is_constant(const struct expr_pool *pool, const struct expr *expr);

// Negative with run->error set when there is no value.
int expr_eval(struct expr_run *run, const struct expr *expr, struct db_value *ret);

// True for true and numbers that are not zero; NULL is not.
bool expr_truth(const struct db_value *value);

// Reads a text as pgbench reads the text of a variable: null, true, yes, on, false, no, off and
// their beginnings, integers, doubles. Negative when it is nothing of the kind.
int expr_type_text(const char *text, struct db_value *ret);

// ---- functions and operators (expr_function.c)

typedef int expr_function_fn(struct expr_run *run, const struct db_value *args, int n,
                             struct db_value *ret);

struct expr_function {
    const char *name; // an operator's begins with a sign and is not found by expr_find_function
    int min_args, max_args;
    expr_function_fn *eval;
    bool takes_null; // called with NULL arguments too; others give NULL without being called
    bool impure;     // random or visible: never folded
    bool seeded;     // a last argument left out is :default_seed
};

#define EXPR_ARGS_MAX 16

enum expr_operator {
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV,
    EXPR_MOD,
    EXPR_EQ,
    EXPR_NE,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_BITAND,
    EXPR_BITOR,
    EXPR_BITXOR,
    EXPR_SHIFT_LEFT,
    EXPR_SHIFT_RIGHT,
    EXPR_NOT,
    EXPR_IS,
    EXPR_OPERATOR_COUNT // rows from here on are functions with names
};

const char *expr_type_name(const struct db_value *value); // "an integer", for messages

extern const struct expr_function expr_functions[];   // ended by name NULL
int expr_find_function(const char *name, size_t len); // any case; -1 when there is none
const char *expr_near_function(const char *name);     // a near miss, or NULL

static inline struct db_value value_null(void)
{
    return (struct db_value){.type = DB_NULL};
}

static inline struct db_value value_bool(bool b)
{
    return (struct db_value){.type = DB_BOOL, .b = b};
}

static inline struct db_value value_int(int64_t i)
{
    return (struct db_value){.type = DB_INT, .i = i};
}

static inline struct db_value value_double(double d)
{
    return (struct db_value){.type = DB_DOUBLE, .d = d};
}
