// Expressions to stack code in one pass, by precedence climbing: an operand's code is emitted
// before its operator's, so no tree is built.
//
// Binding, from loosest: OR; AND; NOT; IS, ISNULL, NOTNULL; comparisons (which do not chain);
// | # & << >> and the operand of ~; + -; * / %; unary - and +. As in pgbench, whose table has the
// surprise that ~5 + 3 is ~(5 + 3).
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/text.h"
#include "workload/expr.h"

enum binding {
    BIND_NONE,
    BIND_OR,
    BIND_AND,
    BIND_NOT,
    BIND_IS,
    BIND_COMPARE,
    BIND_BITS,
    BIND_SUM,
    BIND_PRODUCT,
    BIND_UNARY,
};

#define NESTING_MAX 100 // of parentheses, calls, CASE and prefix operators

struct parser {
    struct expr_pool *pool;
    struct symbols *symbols;
    struct lexer *lexer;
    struct token token; // the next one
    int first;          // of the expression's code
    int stack, stack_max;
    int nesting;
    struct err *err;
};

static int parse_binary(struct parser *p, enum binding least);

static int next(struct parser *p)
{
    return lexer_next_expr(p->lexer, &p->token, p->err);
}

static bool at_op(const struct parser *p, int op)
{
    return p->token.kind == LEX_OPERATOR && p->token.op == op;
}

static bool at_word(const struct parser *p, const char *word)
{
    return p->token.kind == LEX_NAME && p->token.len == strlen(word) &&
           strncasecmp(p->token.s, word, p->token.len) == 0;
}

// What stands where something else was expected.
static int fail_expected(struct parser *p, const char *expected)
{
    const struct token *token = &p->token;

    if (token->kind == LEX_EOL)
        return lexer_fail(p->lexer, token->offset, p->err,
                          "the expression ends where %s was expected", expected);
    return lexer_fail(p->lexer, token->offset, p->err, "unexpected \"%.*s\"; expected %s",
                      (int)token->len, token->s, expected);
}

// ---- emitting

static int emit(struct parser *p, enum expr_code code, int arg, int stack_change)
{
    struct expr_pool *pool = p->pool;

    *ARR_PUSH(pool->code, pool->n_code, pool->cap_code) =
        (struct expr_ins){.code = (uint8_t)code, .arg = arg};
    p->stack += stack_change;
    assert(p->stack >= 0);
    if (p->stack > p->stack_max)
        p->stack_max = p->stack;
    return (int)pool->n_code - 1;
}

static void emit_constant(struct parser *p, struct db_value value)
{
    struct expr_pool *pool = p->pool;

    *ARR_PUSH(pool->constants, pool->n_constants, pool->cap_constants) = value;
    emit(p, EXPR_CONST, (int)pool->n_constants - 1, 1);
}

static void emit_call(struct parser *p, int function, int n_args)
{
    assert(n_args >= 0 && n_args <= EXPR_ARGS_MAX);
    int at = emit(p, EXPR_CALL, 0, 1 - n_args);
    struct expr_ins *ins = &p->pool->code[at];
    ins->function = (uint16_t)function;
    ins->n_args = (uint8_t)n_args;
}

// Makes the jump at `at` land on what is emitted next.
static void land(struct parser *p, int at)
{
    p->pool->code[at].arg = (int)p->pool->n_code - p->first;
}

// ---- operands

static int parse_variable(struct parser *p)
{
    emit(p, EXPR_VARIABLE, symbols_use(p->symbols, p->lexer, &p->token, true), 1);
    return next(p);
}

static int fail_name(struct parser *p, const struct token *name)
{
    char word[64];

    if (name->len >= sizeof(word))
        return lexer_fail(p->lexer, name->offset, p->err, "unknown function");
    memcpy(word, name->s, name->len);
    word[name->len] = '\0';
    bool is_call = at_op(p, '(');
    const char *near = expr_near_function(word);
    if (is_call && near)
        return lexer_fail(p->lexer, name->offset, p->err, "unknown function %s, did you mean %s()?",
                          word, near);
    if (is_call)
        return lexer_fail(p->lexer, name->offset, p->err,
                          "unknown function %s; docs/scripts.md lists them", word);
    if (symbols_find(p->symbols, word, name->len) >= 0)
        return lexer_fail(p->lexer, name->offset, p->err,
                          "unexpected word %s; a variable is written :%s", word, word);
    return lexer_fail(p->lexer, name->offset, p->err,
                      "unexpected word %s; a variable is written :%s, a function %s(...), and a "
                      "comment stands on a line of its own",
                      word, word, word);
}

// After the opening parenthesis. Returns how many, or negative.
static int parse_arguments(struct parser *p)
{
    int n = 0;

    if (at_op(p, ')'))
        return next(p) < 0 ? -1 : 0;
    for (;;) {
        if (n == EXPR_ARGS_MAX)
            return lexer_fail(p->lexer, p->token.offset, p->err,
                              "too many arguments; a function takes %d at most", EXPR_ARGS_MAX);
        if (parse_binary(p, BIND_OR) < 0)
            return -1;
        n++;
        if (at_op(p, ')'))
            return next(p) < 0 ? -1 : n;
        if (!at_op(p, ','))
            return fail_expected(p, "\",\" or \")\"");
        if (next(p) < 0)
            return -1;
    }
}

static int parse_call(struct parser *p)
{
    struct token name = p->token;
    int function = expr_find_function(name.s, name.len);

    if (next(p) < 0)
        return -1;
    if (function < 0 || !at_op(p, '('))
        return function < 0 ? fail_name(p, &name) : fail_expected(p, "\"(\" after the function");
    const struct expr_function *row = &expr_functions[function];
    if (next(p) < 0)
        return -1;
    int n = parse_arguments(p);
    if (n < 0)
        return -1;
    if (row->seeded && n == row->max_args - 1) {
        static const char seed[] = "default_seed";
        struct token variable = {.offset = name.offset, .s = seed, .len = sizeof(seed) - 1};
        emit(p, EXPR_VARIABLE, symbols_use(p->symbols, p->lexer, &variable, true), 1);
        n++;
    }
    if (n >= row->min_args && n <= row->max_args) {
        emit_call(p, function, n);
        return 0;
    }
    if (row->min_args == row->max_args)
        return lexer_fail(p->lexer, name.offset, p->err, "%s() takes %d argument%s, not %d",
                          row->name, row->min_args, row->min_args == 1 ? "" : "s", n);
    return lexer_fail(p->lexer, name.offset, p->err, "%s() takes %d %s %d arguments, not %d",
                      row->name, row->min_args, row->seeded ? "or" : "to", row->max_args, n);
}

// CASE WHEN condition THEN value ... [ELSE value] END. All branches leave one value in the same
// place of the stack.
static int parse_case(struct parser *p)
{
    int ends[64];
    int n = 0;

    if (next(p) < 0)
        return -1;
    if (!at_word(p, "when"))
        return fail_expected(p, "WHEN (only CASE WHEN condition THEN ... is known)");
    while (at_word(p, "when")) {
        if (n == (int)ARR_LEN(ends))
            return lexer_fail(p->lexer, p->token.offset, p->err,
                              "too many branches; a CASE has %d at most", n);
        if (next(p) < 0 || parse_binary(p, BIND_OR) < 0)
            return -1;
        if (!at_word(p, "then"))
            return fail_expected(p, "THEN");
        int skip = emit(p, EXPR_JUMP_UNLESS, 0, -1);
        if (next(p) < 0 || parse_binary(p, BIND_OR) < 0)
            return -1;
        ends[n++] = emit(p, EXPR_JUMP, 0, -1);
        land(p, skip);
    }
    if (at_word(p, "else")) {
        if (next(p) < 0 || parse_binary(p, BIND_OR) < 0)
            return -1;
    } else {
        emit_constant(p, value_null());
    }
    if (!at_word(p, "end"))
        return fail_expected(p, "WHEN, ELSE or END");
    while (n > 0)
        land(p, ends[--n]);
    return next(p);
}

// "-x" is 0 - x and "~x" is -1 # x, as in pgbench: that gives the rules for doubles and NULL.
static int parse_prefix(struct parser *p, int64_t left, enum expr_operator op, enum binding least)
{
    if (next(p) < 0)
        return -1;
    if (op == EXPR_SUB && p->token.kind == LEX_INT_TOO_BIG) {
        emit_constant(p, value_int(INT64_MIN));
        return next(p);
    }
    emit_constant(p, value_int(left));
    if (parse_binary(p, least) < 0)
        return -1;
    emit_call(p, op, 2);
    return 0;
}

static int parse_name(struct parser *p)
{
    if (at_word(p, "case"))
        return parse_case(p);
    if (at_word(p, "not")) {
        if (next(p) < 0 || parse_binary(p, BIND_NOT) < 0)
            return -1;
        emit_call(p, EXPR_NOT, 1);
        return 0;
    }
    bool truth = at_word(p, "true");
    if (truth || at_word(p, "false")) {
        emit_constant(p, value_bool(truth));
        return next(p);
    }
    if (at_word(p, "null")) {
        emit_constant(p, value_null());
        return next(p);
    }
    static const char *const keywords[] = {"and",  "or",   "is",   "isnull", "notnull",
                                           "when", "then", "else", "end"};
    for (size_t i = 0; i < ARR_LEN(keywords); i++)
        if (at_word(p, keywords[i]))
            return fail_expected(p, "a value");
    return parse_call(p);
}

static int parse_operator(struct parser *p)
{
    switch (p->token.op) {
    case '(':
        if (next(p) < 0 || parse_binary(p, BIND_OR) < 0)
            return -1;
        return at_op(p, ')') ? next(p) : fail_expected(p, "an operator or \")\"");
    case '-':
        return parse_prefix(p, 0, EXPR_SUB, BIND_UNARY);
    case '~':
        return parse_prefix(p, -1, EXPR_BITXOR, BIND_BITS + 1);
    case '+':
        return next(p) < 0 ? -1 : parse_binary(p, BIND_UNARY);
    default:
        return fail_expected(p, "a value");
    }
}

static int parse_operand(struct parser *p)
{
    switch (p->token.kind) {
    case LEX_INT:
        emit_constant(p, value_int(p->token.i));
        return next(p);
    case LEX_DOUBLE:
        emit_constant(p, value_double(p->token.d));
        return next(p);
    case LEX_INT_TOO_BIG:
        return lexer_fail(p->lexer, p->token.offset, p->err,
                          "integer %.*s is out of range; write a double: %.*s.0", (int)p->token.len,
                          p->token.s, (int)p->token.len, p->token.s);
    case LEX_VARIABLE:
        return parse_variable(p);
    case LEX_NAME:
        return parse_name(p);
    case LEX_OPERATOR:
        return parse_operator(p);
    default:
        return fail_expected(p, "a value");
    }
}

// ---- operators between operands

struct infix {
    int op;
    enum binding binding;
    enum expr_operator function;
};

static const struct infix infixes[] = {
    {'=', BIND_COMPARE, EXPR_EQ},
    {LEX_OP2('<', '>'), BIND_COMPARE, EXPR_NE},
    {'<', BIND_COMPARE, EXPR_LT},
    {LEX_OP2('<', '='), BIND_COMPARE, EXPR_LE},
    {'>', BIND_COMPARE, EXPR_GT},
    {LEX_OP2('>', '='), BIND_COMPARE, EXPR_GE},
    {'|', BIND_BITS, EXPR_BITOR},
    {'#', BIND_BITS, EXPR_BITXOR},
    {'&', BIND_BITS, EXPR_BITAND},
    {LEX_OP2('<', '<'), BIND_BITS, EXPR_SHIFT_LEFT},
    {LEX_OP2('>', '>'), BIND_BITS, EXPR_SHIFT_RIGHT},
    {'+', BIND_SUM, EXPR_ADD},
    {'-', BIND_SUM, EXPR_SUB},
    {'*', BIND_PRODUCT, EXPR_MUL},
    {'/', BIND_PRODUCT, EXPR_DIV},
    {'%', BIND_PRODUCT, EXPR_MOD},
};

// IS [NOT] NULL|TRUE|FALSE, ISNULL, NOTNULL; the operand is already emitted.
static int parse_is(struct parser *p)
{
    struct db_value what = value_null();
    bool negated = at_word(p, "notnull");
    bool is_word = at_word(p, "is");

    if (next(p) < 0)
        return -1;
    if (is_word) {
        if (at_word(p, "not")) {
            negated = true;
            if (next(p) < 0)
                return -1;
        }
        if (at_word(p, "true") || at_word(p, "false"))
            what = value_bool(at_word(p, "true"));
        else if (!at_word(p, "null"))
            return fail_expected(p, negated ? "NULL, TRUE or FALSE" : "NULL, TRUE, FALSE or NOT");
        if (next(p) < 0)
            return -1;
    }
    emit_constant(p, what);
    emit_call(p, EXPR_IS, 2);
    if (negated)
        emit_call(p, EXPR_NOT, 1);
    return 0;
}

// AND and OR do not look at their right side when the left decides.
static int parse_logical(struct parser *p, enum expr_code code, enum binding binding)
{
    int jump = emit(p, code, 0, -1);

    if (next(p) < 0 || parse_binary(p, binding + 1) < 0)
        return -1;
    emit(p, EXPR_BOOL, 0, 0);
    land(p, jump);
    return 0;
}

// One operator that binds at least as tightly as `least`, with its right side. Returns 1, or 0 when
// none follows. *compared: the left side is a bare comparison, which must not be compared again.
static int parse_infix(struct parser *p, enum binding least, bool *compared)
{
    if (p->token.kind == LEX_OPERATOR) {
        for (size_t i = 0; i < ARR_LEN(infixes); i++) {
            const struct infix *infix = &infixes[i];
            if (infix->op != p->token.op)
                continue;
            if (infix->binding < least)
                return 0;
            if (infix->binding == BIND_COMPARE && *compared)
                return lexer_fail(p->lexer, p->token.offset, p->err,
                                  "comparisons do not chain; use parentheses or AND");
            if (next(p) < 0 || parse_binary(p, infix->binding + 1) < 0)
                return -1;
            emit_call(p, infix->function, 2);
            *compared = infix->binding == BIND_COMPARE;
            return 1;
        }
        return 0;
    }
    *compared = false;
    if (least <= BIND_IS && (at_word(p, "is") || at_word(p, "isnull") || at_word(p, "notnull")))
        return parse_is(p) < 0 ? -1 : 1;
    if (least <= BIND_AND && at_word(p, "and"))
        return parse_logical(p, EXPR_AND, BIND_AND) < 0 ? -1 : 1;
    if (least <= BIND_OR && at_word(p, "or"))
        return parse_logical(p, EXPR_OR, BIND_OR) < 0 ? -1 : 1;
    return 0;
}

static int parse_binary(struct parser *p, enum binding least)
{
    bool compared = false;
    int more;

    if (p->nesting == NESTING_MAX)
        return lexer_fail(p->lexer, p->token.offset, p->err,
                          "expression is nested too deeply; use several \\set");
    p->nesting++;
    if (parse_operand(p) < 0)
        return -1;
    while ((more = parse_infix(p, least, &compared)) > 0)
        ;
    p->nesting--;
    return more;
}

int expr_parse(struct expr_pool *pool, struct symbols *symbols, struct lexer *lexer,
               struct expr *ret, struct err *err)
{
    struct parser p = {
        .pool = pool, .symbols = symbols, .lexer = lexer, .first = (int)pool->n_code, .err = err};

    if (next(&p) < 0 || parse_binary(&p, BIND_OR) < 0)
        return -1;
    if (p.token.kind != LEX_EOL)
        return fail_expected(&p, "an operator or the end of the line");
    assert(p.stack == 1 && p.stack_max >= 1);
    if (p.stack_max > EXPR_STACK_MAX)
        return lexer_fail(lexer, p.token.offset, err, "expression is too large; use several \\set");
    *ret = (struct expr){.first = p.first, .n = (int)pool->n_code - p.first, .stack = p.stack_max};
    if (p.stack_max > pool->stack_max)
        pool->stack_max = p.stack_max;
    return 0;
}

struct expr expr_constant(struct expr_pool *pool, struct db_value value)
{
    struct parser p = {.pool = pool, .first = (int)pool->n_code};

    emit_constant(&p, value);
    pool->stack_max = pool->stack_max > 1 ? pool->stack_max : 1;
    return (struct expr){.first = p.first, .n = 1, .stack = 1};
}

struct expr expr_variable(struct expr_pool *pool, int variable)
{
    struct parser p = {.pool = pool, .first = (int)pool->n_code};

    emit(&p, EXPR_VARIABLE, variable, 1);
    pool->stack_max = pool->stack_max > 1 ? pool->stack_max : 1;
    return (struct expr){.first = p.first, .n = 1, .stack = 1};
}
