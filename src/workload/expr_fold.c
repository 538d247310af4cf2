// What can be computed before the run is: a variable that nothing changes becomes its value, and
// code whose operands are constant becomes its result. "random(1, 100000 * :scale)" then costs one
// call per transaction.
#include <assert.h>
#include <string.h>

#include "base/arr.h"
#include "workload/expr.h"

bool expr_is_constant(const struct expr_pool *pool, const struct expr *expr)
{
    return expr->n == 1 && pool->code[expr->first].code == EXPR_CONST;
}

// Evaluates a range of code that has no variables and no visible effect. Negative when it has no
// value.
static int evaluate(struct expr_pool *pool, int first, int n, struct db_value *ret)
{
    struct db_value stack[EXPR_STACK_MAX];
    struct expr_run run = {.pool = pool, .stack = stack};
    struct expr expr = {.first = first, .n = n, .stack = EXPR_STACK_MAX};

    return expr_eval(&run, &expr, ret);
}

static struct expr_ins constant(struct expr_pool *pool, struct db_value value)
{
    *ARR_PUSH(pool->constants, pool->n_constants, pool->cap_constants) = value;
    return (struct expr_ins){.code = EXPR_CONST, .arg = (int)pool->n_constants - 1};
}

// Puts values in place of fixed variables. A text that is no value stays, to fail when reached.
static void fold_variables(struct expr_pool *pool, const struct expr *expr,
                           const struct symbols *symbols)
{
    for (int i = expr->first; i < expr->first + expr->n; i++) {
        if (pool->code[i].code != EXPR_VARIABLE)
            continue;
        const struct symbol *symbol = &symbols->items[pool->code[i].arg];
        struct db_value value = symbol->initial;
        if (!symbol_is_fixed(symbol))
            continue;
        if (value.type == DB_TEXT && expr_type_text(symbol->initial.s, &value) < 0)
            continue;
        pool->code[i] = constant(pool, value);
    }
}

// Folds calls in straight code: out[] grows over in[], which it never overtakes.
static int fold_calls(struct expr_pool *pool, int first, int n)
{
    int out = 0;

    for (int in = 0; in < n; in++) {
        struct expr_ins ins = pool->code[first + in];
        struct db_value value;
        pool->code[first + out++] = ins;
        if (ins.code != EXPR_CALL || expr_functions[ins.function].impure)
            continue;
        int from = out - 1 - ins.n_args;
        bool all = from >= 0;
        for (int i = from; all && i < out - 1; i++)
            all = pool->code[first + i].code == EXPR_CONST;
        if (all && evaluate(pool, first + from, out - from, &value) == 0) {
            out = from;
            pool->code[first + out++] = constant(pool, value);
        }
    }
    return out;
}

void expr_fold(struct expr_pool *pool, struct expr *expr, const struct symbols *symbols)
{
    bool straight = true;
    bool pure = true;
    struct db_value value;

    fold_variables(pool, expr, symbols);
    for (int i = expr->first; i < expr->first + expr->n; i++) {
        const struct expr_ins *ins = &pool->code[i];
        straight = straight && (ins->code == EXPR_CONST || ins->code == EXPR_VARIABLE ||
                                ins->code == EXPR_CALL);
        pure = pure && ins->code != EXPR_VARIABLE &&
               !(ins->code == EXPR_CALL && expr_functions[ins->function].impure);
    }
    if (pure && evaluate(pool, expr->first, expr->n, &value) == 0) {
        pool->code[expr->first] = constant(pool, value);
        expr->n = 1;
    } else if (straight) {
        expr->n = fold_calls(pool, expr->first, expr->n);
    }
    assert(expr->n >= 1);
}
