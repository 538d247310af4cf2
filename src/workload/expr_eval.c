#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "workload/expr.h"

int expr_fail(struct expr_run *run, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(run->error, sizeof(run->error), fmt, ap);
    va_end(ap);
    return -1;
}

bool expr_truth(const struct db_value *value)
{
    switch (value->type) {
    case DB_BOOL:
        return value->b;
    case DB_INT:
        return value->i != 0;
    case DB_DOUBLE:
        return value->d != 0;
    default:
        return false;
    }
}

// ---- texts as values

// Whether text is the beginning of word, in any case.
static bool begins(const char *word, const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= strlen(word) && strncasecmp(word, text, len) == 0;
}

// Blanks, sign, digits: then it is meant as an integer.
static bool looks_like_int(const char *text)
{
    text += strspn(text, " \t\n\v\f\r");
    if (*text == '+' || *text == '-')
        text++;
    return *text && text[strspn(text, "0123456789")] == '\0';
}

int expr_type_text(const char *text, struct db_value *ret)
{
    char *end;

    if (strcasecmp(text, "null") == 0) {
        *ret = value_null();
        return 0;
    }
    if (begins("true", text) || begins("yes", text) || strcasecmp(text, "on") == 0) {
        *ret = value_bool(true);
        return 0;
    }
    if (begins("false", text) || begins("no", text) || strcasecmp(text, "off") == 0 ||
        strcasecmp(text, "of") == 0) {
        *ret = value_bool(false);
        return 0;
    }
    if (*text == '\0')
        return -1;
    errno = 0;
    *ret = looks_like_int(text) ? value_int(strtoll(text, &end, 10))
                                : value_double(strtod(text, &end));
    return errno != 0 || *end != '\0' ? -1 : 0;
}

// ---- the machine

static int push_variable(struct expr_run *run, int variable, struct db_value *ret)
{
    const struct db_value *value = &run->values[variable];

    if (run->unset[variable])
        return expr_fail(run, "variable %s has no value yet", run->names[variable]);
    if (value->type != DB_TEXT) {
        *ret = *value;
        return 0;
    }
    if (expr_type_text(value->s, ret) < 0)
        return expr_fail(run, "variable %s is no number, boolean or NULL: \"%.40s\"",
                         run->names[variable], value->s);
    return 0;
}

static int call(struct expr_run *run, const struct expr_ins *ins, struct db_value *args)
{
    const struct expr_function *function = &expr_functions[ins->function];
    struct db_value result;

    if (!function->takes_null) {
        for (int i = 0; i < ins->n_args; i++) {
            if (args[i].type == DB_NULL) {
                args[0] = value_null();
                return 0;
            }
        }
    }
    if (function->eval(run, args, ins->n_args, &result) < 0)
        return -1;
    args[0] = result;
    return 0;
}

static int fail_boolean(struct expr_run *run, const struct db_value *value)
{
    return expr_fail(run, "%s where a boolean is needed", expr_type_name(value));
}

int expr_eval(struct expr_run *run, const struct expr *expr, struct db_value *ret)
{
    const struct expr_ins *code = &run->pool->code[expr->first];
    struct db_value *stack = run->stack;
    int top = -1;

    assert(expr->n > 0 && (size_t)(expr->first + expr->n) <= run->pool->n_code);
    for (int pc = 0; pc < expr->n;) {
        const struct expr_ins *ins = &code[pc++];
        assert(top >= -1 && top < expr->stack);
        switch ((enum expr_code)ins->code) {
        case EXPR_CONST:
            stack[++top] = run->pool->constants[ins->arg];
            break;
        case EXPR_VARIABLE:
            if (push_variable(run, ins->arg, &stack[++top]) < 0)
                return -1;
            break;
        case EXPR_CALL:
            top -= ins->n_args - 1;
            if (call(run, ins, &stack[top]) < 0)
                return -1;
            break;
        case EXPR_AND:
        case EXPR_OR:
            if (stack[top].type == DB_NULL)
                pc = ins->arg;
            else if (stack[top].type != DB_BOOL)
                return fail_boolean(run, &stack[top]);
            else if (stack[top].b == (ins->code == EXPR_OR))
                pc = ins->arg;
            else
                top--;
            break;
        case EXPR_BOOL:
            if (stack[top].type != DB_NULL && stack[top].type != DB_BOOL)
                return fail_boolean(run, &stack[top]);
            break;
        case EXPR_JUMP:
            pc = ins->arg;
            break;
        case EXPR_JUMP_UNLESS:
            if (!expr_truth(&stack[top--]))
                pc = ins->arg;
            break;
        }
    }
    assert(top == 0);
    *ret = stack[0];
    return 0;
}
