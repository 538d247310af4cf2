// The compiled form of scripts, private to this floor: a flat array of operations per workload, and
// a pool with the stack code of all expressions. Written by the compiler (script.c, link.c), only
// read afterwards; every text lies in the pool.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/value.h"
#include "workload/workload.h"

// ---- expressions

enum expr_code {
    EXPR_CONST,       // push constants[arg]
    EXPR_VARIABLE,    // push variable arg; a text is read as the number, boolean or NULL it spells
    EXPR_CALL,        // replace the n_args topmost by function `function` of them
    EXPR_AND,         // top false or NULL: jump to arg, keeping it; true: drop it and go on
    EXPR_OR,          // top true or NULL: likewise; false: drop it and go on
    EXPR_BOOL,        // fail unless the top is a boolean or NULL
    EXPR_JUMP,        // to arg
    EXPR_JUMP_UNLESS, // drop the top, jump to arg unless it was true
};

struct expr_ins {
    uint8_t code;      // enum expr_code
    uint8_t n_args;    // EXPR_CALL
    uint16_t function; // EXPR_CALL: row of expr_functions
    int32_t arg;       // jumps go forward only, relative to the expression's first instruction
};

// One expression: a range of the pool's code. It leaves one value on the stack.
struct expr {
    int first, n;
    int stack; // values on the stack at most
};

#define EXPR_STACK_MAX 256 // deeper nesting is refused by the parser

struct expr_pool {
    struct expr_ins *code;
    size_t n_code, cap_code;
    struct db_value *constants;
    size_t n_constants, cap_constants;
    int *params; // variables of statements, in order: struct op_sql points here
    size_t n_params, cap_params;
    int *assigned; // variables that scripts can change: all that a retry must restore
    size_t n_assigned, cap_assigned;
    void **kept; // memory owned by the pool
    size_t n_kept, cap_kept;
    int params_max;         // of any statement
    int stack_max;          // of any expression
    int client_id_variable; // -1: not used, or set by -D
};

// Hands memory to the pool, which frees it; returns it.
void *pool_keep(struct expr_pool *pool, void *memory);
char *pool_text(struct expr_pool *pool, const char *text, size_t len); // a kept, terminated copy
struct expr_pool *pool_new(void);
void pool_free(struct expr_pool *pool);

// ---- operations

enum op_code {
    OP_SET,         // variable = value of expr
    OP_SQL,         // hand out a statement
    OP_SLEEP,       // wait expr times unit_ns
    OP_PIPELINE,    // a section begins, goes on behind a sync, or ends
    OP_JUMP,        // to target
    OP_JUMP_UNLESS, // to target unless expr is true
};

struct op_sql {
    int statement;
    int first_param; // in pool->params; the statement's n_params of them
    bool gset;
    const char *prefix; // of the variables that \gset fills; "" for none
    size_t prefix_len;
};

struct op {
    uint8_t code; // enum op_code
    int line;
    int command; // its number in the script from 1, as pgbench counts
    struct expr expr;
    union {
        int variable;
        struct op_sql sql;
        int64_t unit_ns;
        struct {
            int command; // enum vm_command
            int n_ahead; // statements of the section up to the next of these, at most
        } pipeline;
        int target; // operation in workload.ops; always forward
    };
};
