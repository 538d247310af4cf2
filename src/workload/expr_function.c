// Functions and operators of expressions, one row each.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/text.h"
#include "workload/distribution.h"
#include "workload/expr.h"
#include "workload/hash.h"

// ---- coercions

const char *expr_type_name(const struct db_value *value)
{
    switch (value->type) {
    case DB_NULL:
        return "NULL";
    case DB_BOOL:
        return "a boolean";
    case DB_INT:
        return "an integer";
    case DB_DOUBLE:
        return "a double";
    case DB_TEXT:
        break;
    }
    assert(!"a text on the stack");
    return "?";
}

// A double is rounded to the nearest integer, halves to the even one.
static int to_int(struct expr_run *run, const struct db_value *value, int64_t *ret)
{
    if (value->type == DB_INT) {
        *ret = value->i;
        return 0;
    }
    *ret = 0;
    if (value->type != DB_DOUBLE)
        return expr_fail(run, "%s where an integer is needed", expr_type_name(value));
    double d = rint(value->d);
    if (isnan(d))
        return expr_fail(run, "not a number (NaN) where an integer is needed");
    if (!(d >= -0x1p63 && d < 0x1p63))
        return expr_fail(run, "double %g is out of an integer's range", value->d);
    *ret = (int64_t)d;
    return 0;
}

static int to_double(struct expr_run *run, const struct db_value *value, double *ret)
{
    *ret = 0;
    if (value->type == DB_DOUBLE)
        *ret = value->d;
    else if (value->type == DB_INT)
        *ret = (double)value->i;
    else
        return expr_fail(run, "%s where a number is needed", expr_type_name(value));
    return 0;
}

static bool any_double(const struct db_value *args, int n)
{
    for (int i = 0; i < n; i++)
        if (args[i].type == DB_DOUBLE)
            return true;
    return false;
}

// ---- arithmetic

static int two_ints(struct expr_run *run, const struct db_value *args, int64_t *a, int64_t *b)
{
    return to_int(run, &args[0], a) < 0 || to_int(run, &args[1], b) < 0 ? -1 : 0;
}

static int two_doubles(struct expr_run *run, const struct db_value *args, double *a, double *b)
{
    return to_double(run, &args[0], a) < 0 || to_double(run, &args[1], b) < 0 ? -1 : 0;
}

static int eval_sum(struct expr_run *run, const struct db_value *args, char op,
                    struct db_value *ret)
{
    if (any_double(args, 2)) {
        double a, b;
        if (two_doubles(run, args, &a, &b) < 0)
            return -1;
        *ret = value_double(op == '+' ? a + b : op == '-' ? a - b : a * b);
        return 0;
    }
    int64_t a, b, result;
    if (two_ints(run, args, &a, &b) < 0)
        return -1;
    bool overflow = op == '+'   ? __builtin_add_overflow(a, b, &result)
                    : op == '-' ? __builtin_sub_overflow(a, b, &result)
                                : __builtin_mul_overflow(a, b, &result);
    if (overflow)
        return expr_fail(run, "integer out of range: %lld %c %lld", (long long)a, op, (long long)b);
    *ret = value_int(result);
    return 0;
}

static int eval_add(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    return eval_sum(run, args, '+', ret);
}

static int eval_sub(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    return eval_sum(run, args, '-', ret);
}

static int eval_mul(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    return eval_sum(run, args, '*', ret);
}

static int eval_div(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    if (any_double(args, 2)) { // by zero gives an infinity or NaN
        double a, b;
        if (two_doubles(run, args, &a, &b) < 0)
            return -1;
        *ret = value_double(a / b);
        return 0;
    }
    int64_t a, b;
    if (two_ints(run, args, &a, &b) < 0)
        return -1;
    if (b == 0)
        return expr_fail(run, "division by zero");
    if (a == INT64_MIN && b == -1)
        return expr_fail(run, "integer out of range: %lld / -1", (long long)a);
    *ret = value_int(a / b);
    return 0;
}

// Always of integers: doubles are rounded first.
static int eval_mod(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    int64_t a, b;

    (void)n;
    if (two_ints(run, args, &a, &b) < 0)
        return -1;
    if (b == 0)
        return expr_fail(run, "division by zero");
    *ret = value_int(b == -1 ? 0 : a % b); // INT64_MIN % -1 traps
    return 0;
}

// ---- comparison and logic

// Sets *ret to whether the comparison holds; NaN makes all but <> false.
static int compare(struct expr_run *run, const struct db_value *args, enum expr_operator op,
                   struct db_value *ret)
{
    bool less, equal;

    if (any_double(args, 2)) {
        double a, b;
        if (two_doubles(run, args, &a, &b) < 0)
            return -1;
        less = op == EXPR_GT || op == EXPR_GE ? b < a : a < b;
        equal = a == b;
    } else {
        int64_t a, b;
        if (two_ints(run, args, &a, &b) < 0)
            return -1;
        less = op == EXPR_GT || op == EXPR_GE ? b < a : a < b;
        equal = a == b;
    }
    *ret = value_bool(op == EXPR_EQ                    ? equal
                      : op == EXPR_NE                  ? !equal
                      : op == EXPR_LT || op == EXPR_GT ? less
                                                       : less || equal);
    return 0;
}

#define COMPARISON(name, op)                                                  \
    static int name(struct expr_run *run, const struct db_value *args, int n, \
                    struct db_value *ret)                                     \
    {                                                                         \
        (void)n;                                                              \
        return compare(run, args, op, ret);                                   \
    }
COMPARISON(eval_eq, EXPR_EQ)
COMPARISON(eval_ne, EXPR_NE)
COMPARISON(eval_lt, EXPR_LT)
COMPARISON(eval_le, EXPR_LE)
COMPARISON(eval_gt, EXPR_GT)
COMPARISON(eval_ge, EXPR_GE)

static int eval_not(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    if (args[0].type != DB_BOOL)
        return expr_fail(run, "%s where a boolean is needed", expr_type_name(&args[0]));
    *ret = value_bool(!args[0].b);
    return 0;
}

// The right side is NULL, TRUE or FALSE. A number is none of them.
static int eval_is(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)run;
    (void)n;
    assert(args[1].type == DB_NULL || args[1].type == DB_BOOL);
    *ret = value_bool(args[0].type == args[1].type &&
                      (args[1].type == DB_NULL || args[0].b == args[1].b));
    return 0;
}

// ---- bits

#define BITWISE(name, expression)                                             \
    static int name(struct expr_run *run, const struct db_value *args, int n, \
                    struct db_value *ret)                                     \
    {                                                                         \
        int64_t a, b;                                                         \
        (void)n;                                                              \
        if (two_ints(run, args, &a, &b) < 0)                                  \
            return -1;                                                        \
        *ret = value_int(expression);                                         \
        return 0;                                                             \
    }
BITWISE(eval_bitand, a &b)
BITWISE(eval_bitor, a | b)
BITWISE(eval_bitxor, a ^ b)
// Only the lowest six bits of the distance count, as on the machines pgbench runs on.
BITWISE(eval_shift_left, (int64_t)((uint64_t)a << (b & 63)))
BITWISE(eval_shift_right, a >> (b & 63))

// ---- numbers

static int eval_abs(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)n;
    switch (args[0].type) {
    case DB_INT: // the lowest integer has no positive counterpart and stays
        *ret = value_int(args[0].i < 0 ? (int64_t) - (uint64_t)args[0].i : args[0].i);
        return 0;
    case DB_DOUBLE:
        *ret = value_double(fabs(args[0].d));
        return 0;
    default:
        return expr_fail(run, "%s where a number is needed", expr_type_name(&args[0]));
    }
}

static int eval_int(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    int64_t i;

    (void)n;
    if (to_int(run, &args[0], &i) < 0)
        return -1;
    *ret = value_int(i);
    return 0;
}

static double identity(double x)
{
    return x;
}

static int eval_pi(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    (void)run;
    (void)args;
    (void)n;
    *ret = value_double(M_PI);
    return 0;
}

#define REAL(name, function)                                                  \
    static int name(struct expr_run *run, const struct db_value *args, int n, \
                    struct db_value *ret)                                     \
    {                                                                         \
        double x;                                                             \
        (void)n;                                                              \
        if (to_double(run, &args[0], &x) < 0)                                 \
            return -1;                                                        \
        *ret = value_double(function(x));                                     \
        return 0;                                                             \
    }
REAL(eval_double, identity)
REAL(eval_exp, exp)
REAL(eval_ln, log)
REAL(eval_sqrt, sqrt)

static int eval_pow(struct expr_run *run, const struct db_value *args, int n, struct db_value *ret)
{
    double a, b;

    (void)n;
    if (two_doubles(run, args, &a, &b) < 0)
        return -1;
    *ret = value_double(pow(a, b));
    return 0;
}

// The least of the arguments, or the greatest; a double when one of them is.
static int extreme(struct expr_run *run, const struct db_value *args, int n, bool greatest,
                   struct db_value *ret)
{
    bool as_double = any_double(args, n);

    for (int i = 0; i < n; i++) {
        if (as_double) {
            double x;
            if (to_double(run, &args[i], &x) < 0)
                return -1;
            if (i == 0 || (greatest ? !(ret->d > x) : !(ret->d < x)))
                *ret = value_double(x);
        } else {
            int64_t x;
            if (to_int(run, &args[i], &x) < 0)
                return -1;
            if (i == 0 || (greatest ? x > ret->i : x < ret->i))
                *ret = value_int(x);
        }
    }
    return 0;
}

static int eval_greatest(struct expr_run *run, const struct db_value *args, int n,
                         struct db_value *ret)
{
    return extreme(run, args, n, true, ret);
}

static int eval_least(struct expr_run *run, const struct db_value *args, int n,
                      struct db_value *ret)
{
    return extreme(run, args, n, false, ret);
}

// ---- hashes

static int eval_hash_fnv1a(struct expr_run *run, const struct db_value *args, int n,
                           struct db_value *ret)
{
    int64_t value, seed;

    (void)n;
    if (two_ints(run, args, &value, &seed) < 0)
        return -1;
    *ret = value_int(hash_fnv1a(value, seed));
    return 0;
}

static int eval_hash_murmur2(struct expr_run *run, const struct db_value *args, int n,
                             struct db_value *ret)
{
    int64_t value, seed;

    (void)n;
    if (two_ints(run, args, &value, &seed) < 0)
        return -1;
    *ret = value_int(hash_murmur2(value, seed));
    return 0;
}

static int eval_permute(struct expr_run *run, const struct db_value *args, int n,
                        struct db_value *ret)
{
    int64_t value, size, seed;

    assert(n == 3);
    (void)n;
    if (two_ints(run, args, &value, &size) < 0 || to_int(run, &args[2], &seed) < 0)
        return -1;
    if (size <= 0)
        return expr_fail(run, "permute: the size must be greater than zero, not %lld",
                         (long long)size);
    *ret = value_int(hash_permute(value, size, seed));
    return 0;
}

// ---- random numbers

// The range all random functions begin with.
static int random_range(struct expr_run *run, const struct db_value *args, int64_t *low,
                        int64_t *high)
{
    int64_t span;

    if (two_ints(run, args, low, high) < 0)
        return -1;
    if (*low > *high)
        return expr_fail(run, "empty range for a random number: %lld to %lld", (long long)*low,
                         (long long)*high);
    if (__builtin_sub_overflow(*high, *low, &span) || span == INT64_MAX)
        return expr_fail(run, "range for a random number is too large: %lld to %lld",
                         (long long)*low, (long long)*high);
    return 0;
}

static int eval_random(struct expr_run *run, const struct db_value *args, int n,
                       struct db_value *ret)
{
    int64_t low, high;

    (void)n;
    if (random_range(run, args, &low, &high) < 0)
        return -1;
    *ret = value_int(rng_range(run->rng, low, high));
    return 0;
}

static int eval_random_exponential(struct expr_run *run, const struct db_value *args, int n,
                                   struct db_value *ret)
{
    int64_t low, high;
    double param;

    (void)n;
    if (random_range(run, args, &low, &high) < 0 || to_double(run, &args[2], &param) < 0)
        return -1;
    if (!(param > 0))
        return expr_fail(run, "random_exponential: the parameter must be greater than 0, not %g",
                         param);
    *ret = value_int(draw_exponential(run->rng, low, high, param));
    return 0;
}

static int eval_random_gaussian(struct expr_run *run, const struct db_value *args, int n,
                                struct db_value *ret)
{
    int64_t low, high;
    double param;

    (void)n;
    if (random_range(run, args, &low, &high) < 0 || to_double(run, &args[2], &param) < 0)
        return -1;
    if (!(param >= GAUSSIAN_PARAM_MIN))
        return expr_fail(run, "random_gaussian: the parameter must be at least %g, not %g",
                         GAUSSIAN_PARAM_MIN, param);
    *ret = value_int(draw_gaussian(run->rng, low, high, param));
    return 0;
}

static int eval_random_zipfian(struct expr_run *run, const struct db_value *args, int n,
                               struct db_value *ret)
{
    int64_t low, high;
    double param;

    (void)n;
    if (random_range(run, args, &low, &high) < 0 || to_double(run, &args[2], &param) < 0)
        return -1;
    if (!(param >= ZIPFIAN_PARAM_MIN && param <= ZIPFIAN_PARAM_MAX))
        return expr_fail(run, "random_zipfian: the parameter must be from %g to %g, not %g",
                         ZIPFIAN_PARAM_MIN, ZIPFIAN_PARAM_MAX, param);
    *ret = value_int(draw_zipfian(run->rng, low, high, param));
    return 0;
}

// ---- debug

static int eval_debug(struct expr_run *run, const struct db_value *args, int n,
                      struct db_value *ret)
{
    char line[128];
    char what[64];

    (void)n;
    *ret = args[0];
    if (!run->workload || !run->workload->debug)
        return 0;
    switch (args[0].type) {
    case DB_BOOL:
        snprintf(what, sizeof(what), "boolean %s", args[0].b ? "true" : "false");
        break;
    case DB_INT:
        snprintf(what, sizeof(what), "int %lld", (long long)args[0].i);
        break;
    case DB_DOUBLE:
        snprintf(what, sizeof(what), "double %.15g", args[0].d);
        break;
    default:
        snprintf(what, sizeof(what), "null");
        break;
    }
    snprintf(line, sizeof(line), "debug(script=%d,command=%d): %s", run->script, run->command,
             what);
    run->workload->debug(run->workload->debug_arg, line);
    return 0;
}

// ---- the table

const struct expr_function expr_functions[] = {
    [EXPR_ADD] = {"+", 2, 2, eval_add},
    [EXPR_SUB] = {"-", 2, 2, eval_sub},
    [EXPR_MUL] = {"*", 2, 2, eval_mul},
    [EXPR_DIV] = {"/", 2, 2, eval_div},
    [EXPR_MOD] = {"%", 2, 2, eval_mod},
    [EXPR_EQ] = {"=", 2, 2, eval_eq},
    [EXPR_NE] = {"<>", 2, 2, eval_ne},
    [EXPR_LT] = {"<", 2, 2, eval_lt},
    [EXPR_LE] = {"<=", 2, 2, eval_le},
    [EXPR_GT] = {">", 2, 2, eval_gt},
    [EXPR_GE] = {">=", 2, 2, eval_ge},
    [EXPR_BITAND] = {"&", 2, 2, eval_bitand},
    [EXPR_BITOR] = {"|", 2, 2, eval_bitor},
    [EXPR_BITXOR] = {"#", 2, 2, eval_bitxor},
    [EXPR_SHIFT_LEFT] = {"<<", 2, 2, eval_shift_left},
    [EXPR_SHIFT_RIGHT] = {">>", 2, 2, eval_shift_right},
    [EXPR_NOT] = {"!", 1, 1, eval_not},
    [EXPR_IS] = {"?", 2, 2, eval_is, .takes_null = true},
    {"abs", 1, 1, eval_abs},
    {"debug", 1, 1, eval_debug, .takes_null = true, .impure = true},
    {"double", 1, 1, eval_double},
    {"exp", 1, 1, eval_exp},
    {"greatest", 1, EXPR_ARGS_MAX, eval_greatest},
    {"hash", 1, 2, eval_hash_murmur2, .seeded = true},
    {"hash_fnv1a", 1, 2, eval_hash_fnv1a, .seeded = true},
    {"hash_murmur2", 1, 2, eval_hash_murmur2, .seeded = true},
    {"int", 1, 1, eval_int},
    {"least", 1, EXPR_ARGS_MAX, eval_least},
    {"ln", 1, 1, eval_ln},
    {"mod", 2, 2, eval_mod},
    {"permute", 2, 3, eval_permute, .seeded = true},
    {"pi", 0, 0, eval_pi},
    {"pow", 2, 2, eval_pow},
    {"power", 2, 2, eval_pow},
    {"random", 2, 2, eval_random, .impure = true},
    {"random_exponential", 3, 3, eval_random_exponential, .impure = true},
    {"random_gaussian", 3, 3, eval_random_gaussian, .impure = true},
    {"random_zipfian", 3, 3, eval_random_zipfian, .impure = true},
    {"sqrt", 1, 1, eval_sqrt},
    {NULL},
};

int expr_find_function(const char *name, size_t len)
{
    for (int i = EXPR_OPERATOR_COUNT; expr_functions[i].name; i++)
        if (strlen(expr_functions[i].name) == len &&
            strncasecmp(expr_functions[i].name, name, len) == 0)
            return i;
    return -1;
}

const char *expr_near_function(const char *name)
{
    static const char *const peers[][2] = {
        {"log", "ln"}, {"round", "int"}, {"min", "least"}, {"max", "greatest"}, {"rand", "random"},
    };
    const char *words[ARR_LEN(expr_functions)];
    int n = 0;

    for (size_t i = 0; i < ARR_LEN(peers); i++)
        if (strcasecmp(name, peers[i][0]) == 0)
            return peers[i][1];

    for (int i = EXPR_OPERATOR_COUNT; expr_functions[i].name; i++)
        words[n++] = expr_functions[i].name;
    words[n] = NULL;
    return text_near_miss(name, words);
}
