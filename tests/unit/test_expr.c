// Expressions: values are those that pgbench 15 prints for the same text with \set x debug(...) and
// -s 3; errors are prony's own words for what pgbench refuses too.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "workload/expr.h"
#include "workload/vm.h"

#define SCALE 3
#define SEED  5

struct value_case {
    const char *expr;
    const char *value; // as debug() prints it
};

static const struct value_case value_cases[] = {
    {"1", "int 1"},
    {"-1", "int -1"},
    {"+7", "int 7"},
    {"1 + 2 * 3", "int 7"},
    {"(1 + 2) * 3", "int 9"},
    {"10 - 4 - 3", "int 3"},
    {"2 * 3 % 4", "int 2"},
    {"100 / 7", "int 14"},
    {"-7 / 2", "int -3"},
    {"-7 % 3", "int -1"},
    {"7 % -3", "int 1"},
    {"7.0 / 2", "double 3.5"},
    {"1 / 2.0", "double 0.5"},
    {".5", "double 0.5"},
    {"1.", "double 1"},
    {"1e3", "double 1000"},
    {"1.5e-3", "double 0.0015"},
    {"1E+2", "double 100"},
    {"5 % 2.6", "int 2"},
    {"5.5 % 2", "int 0"},
    {"9223372036854775807", "int 9223372036854775807"},
    {"-9223372036854775808", "int -9223372036854775808"},
    {"-9223372036854775807 - 1", "int -9223372036854775808"},
    {"-9223372036854775808 % -1", "int 0"},
    {"9223372036854775807 * -1", "int -9223372036854775807"},
    {"1.0 / 0", "double inf"},
    {"-1.0 / 0", "double -inf"},
    {"0.0 / 0", "double nan"},
    {"0 - 0.0", "double 0"},
    {"- 0.0", "double 0"},
    {"1 << 3", "int 8"},
    {"1 << 64", "int 1"},
    {"1 << 65", "int 2"},
    {"1 << -1", "int -9223372036854775808"},
    {"-16 >> 2", "int -4"},
    {"-1 >> 63", "int -1"},
    {"5 & 3", "int 1"},
    {"5 | 3", "int 7"},
    {"5 # 3", "int 6"},
    {"~5", "int -6"},
    {"~ 5 + 3", "int -9"},
    {"~5 & 3", "int 2"},
    {"~5 | 8", "int -6"},
    {"1 | 2 & 2", "int 2"},
    {"8 >> 1 << 1", "int 8"},
    {"1 + 2 << 1", "int 6"},
    {"5.4 & 4", "int 4"},
    {"5.5 & 255", "int 6"},
    {"6.5 & 255", "int 6"},
    {"2 * ~ 3 + 4", "int -16"},
    {"- - 5", "int 5"},
    {"-2 * 3", "int -6"},
    {"1 = 1", "boolean true"},
    {"1 = 1.0", "boolean true"},
    {"1 <> 2", "boolean true"},
    {"1 != 2", "boolean true"},
    {"1 < 2", "boolean true"},
    {"2 <= 2", "boolean true"},
    {"2 > 3", "boolean false"},
    {"2 >= 2", "boolean true"},
    {"true", "boolean true"},
    {"FALSE", "boolean false"},
    {"NULL", "null"},
    {"null", "null"},
    {"not true", "boolean false"},
    {"NOT NULL", "null"},
    {"not true or true", "boolean true"},
    {"not false and false", "boolean false"},
    {"true and false", "boolean false"},
    {"true and null", "null"},
    {"null and true", "null"},
    {"null and false", "null"},
    {"false and null", "boolean false"},
    {"null and 1/0 = 1", "null"},
    {"false and 1/0 = 1", "boolean false"},
    {"true or 1/0 = 1", "boolean true"},
    {"null or true", "null"},
    {"true or null", "boolean true"},
    {"false or null", "null"},
    {"false or true", "boolean true"},
    {"not 1 = 2", "boolean true"},
    {"not null is null", "boolean false"},
    {"1 is null", "boolean false"},
    {"null is null", "boolean true"},
    {"null is not null", "boolean false"},
    {"1 isnull", "boolean false"},
    {"1 notnull", "boolean true"},
    {"null isnull", "boolean true"},
    {"null notnull", "boolean false"},
    {"true is true", "boolean true"},
    {"true is false", "boolean false"},
    {"false is true", "boolean false"},
    {"null is true", "boolean false"},
    {"null is false", "boolean false"},
    {"1 is true", "boolean false"},
    {"0 is false", "boolean false"},
    {"1 is not true", "boolean true"},
    {"null is not true", "boolean true"},
    {"true is not false", "boolean true"},
    {"null is null is true", "boolean true"},
    {"1 = 2 is null", "boolean false"},
    {"1 = 2 isnull", "boolean false"},
    {"1 = null is null", "boolean true"},
    {"1 + null", "null"},
    {"null + 1.5", "null"},
    {"null = null", "null"},
    {"null < 1", "null"},
    {"- null", "null"},
    {"~ null", "null"},
    {"case when true then 1 end", "int 1"},
    {"case when false then 1 end", "null"},
    {"case when false then 1 else 2 end", "int 2"},
    {"case when null then 1 else 2 end", "int 2"},
    {"case when 0 then 1 when 1 then 2 else 3 end", "int 2"},
    {"case when 0.0 then 1 when 0.5 then 2 else 3 end", "int 2"},
    {"case when true then 1 else 1/0 end", "int 1"},
    {"case when false then 1/0 else 4 end", "int 4"},
    {"case when 1 then 2.5 else null end", "double 2.5"},
    {"case when 1 then case when 0 then 7 else 8 end end + 1", "int 9"},
    {"abs(-5)", "int 5"},
    {"abs(5)", "int 5"},
    {"abs(-5.5)", "double 5.5"},
    {"abs(null)", "null"},
    {"abs(-9223372036854775808)", "int -9223372036854775808"},
    {"debug(5)", "int 5"},
    {"double(5)", "double 5"},
    {"double(5.5)", "double 5.5"},
    {"double(null)", "null"},
    {"exp(0)", "double 1"},
    {"exp(1)", "double 2.71828182845905"},
    {"exp(1.5)", "double 4.48168907033806"},
    {"greatest(1, 2, 3)", "int 3"},
    {"greatest(1, 2.5)", "double 2.5"},
    {"greatest(3, 2.5)", "double 3"},
    {"greatest(1)", "int 1"},
    {"greatest(1, null)", "null"},
    {"least(4, 2, 3)", "int 2"},
    {"least(4, 2.5, 3)", "double 2.5"},
    {"greatest(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)", "int 16"},
    {"hash(10, 5432)", "int -5817877081768721676"},
    {"hash_murmur2(10, 5432)", "int -5817877081768721676"},
    {"hash_fnv1a(10, 5432)", "int -7793829335365542153"},
    {"hash(0, 0)", "int 8217090173679840641"},
    {"hash_fnv1a(0, 0)", "int -6284781860667377211"},
    {"hash(-1, -1)", "int 1317380444104773032"},
    {"hash_fnv1a(-1, -1)", "int 9116541788052886162"},
    {"hash(123456789, 987654321)", "int -3046098614147007385"},
    {"hash_fnv1a(123456789, 987654321)", "int -6616195411920759204"},
    {"hash(1.5, 2)", "int 8628357597987678224"},
    {"hash(null, 1)", "null"},
    {"hash_murmur2(9223372036854775807, 42)", "int -6957805175083691830"},
    {"hash_fnv1a(9223372036854775807, 42)", "int 5527032554282044647"},
    {"int(5.4)", "int 5"},
    {"int(5.5)", "int 6"},
    {"int(6.5)", "int 6"},
    {"int(-5.5)", "int -6"},
    {"int(1e18)", "int 1000000000000000000"},
    {"int(-9223372036854775808.0)", "int -9223372036854775808"},
    {"int(null)", "null"},
    {"ln(1)", "double 0"},
    {"ln(2.718281828459045)", "double 1"},
    {"ln(0)", "double -inf"},
    {"ln(-1)", "double nan"},
    {"mod(7, 3)", "int 1"},
    {"mod(-7, 3)", "int -1"},
    {"mod(7.6, 3)", "int 2"},
    {"permute(0, 1, 0)", "int 0"},
    {"permute(0, 2, 5432)", "int 0"},
    {"permute(1, 2, 5432)", "int 1"},
    {"permute(0, 3, 5432)", "int 0"},
    {"permute(1, 3, 5432)", "int 1"},
    {"permute(2, 3, 5432)", "int 2"},
    {"permute(0, 10, 5432)", "int 6"},
    {"permute(1, 10, 5432)", "int 5"},
    {"permute(2, 10, 5432)", "int 3"},
    {"permute(9, 10, 5432)", "int 2"},
    {"permute(10, 10, 5432)", "int 6"},
    {"permute(-1, 10, 5432)", "int 7"},
    {"permute(5, 1000000, 1)", "int 975112"},
    {"permute(999999, 1000000, 1)", "int 229617"},
    {"permute(123456, 1024, 7)", "int 316"},
    {"permute(1023, 1024, 7)", "int 135"},
    {"permute(0, 9223372036854775807, 5432)", "int 8941447457790205183"},
    {"permute(123456789012345678, 9223372036854775807, 5432)", "int 5899250911219322202"},
    {"permute(-9223372036854775808, 9223372036854775806, 1)", "int 306800037991457237"},
    {"permute(null, 5, 1)", "null"},
    {"permute(1, 5, 3.5)", "int 4"},
    {"permute(5000000000, 10000000000, -77)", "int 2848394879"},
    {"pi()", "double 3.14159265358979"},
    {"pow(2, 10)", "double 1024"},
    {"power(2, 0.5)", "double 1.4142135623731"},
    {"pow(-1, 0.5)", "double nan"},
    {"pow(0, -1)", "double inf"},
    {"POW(2, 3)", "double 8"},
    {"pow(2, null)", "null"},
    {"sqrt(2)", "double 1.4142135623731"},
    {"sqrt(16)", "double 4"},
    {"sqrt(-1)", "double nan"},
    {"random(5, 5)", "int 5"},
    {"random(1, 9223372036854775807) > 0", "boolean true"},
    {"random(null, 5)", "null"},
    {"random(1.4, 1.3)", "int 1"},
    {"random_exponential(1, 1, 2)", "int 1"},
    {"random_gaussian(7, 7, 2)", "int 7"},
    {"random_zipfian(3, 3, 1.5)", "int 3"},
    {"random_zipfian(1, 10, 1000)", "int 1"},
    {":scale", "int 3"},
    {":scale + :client_id", "int 3"},
    {":random_seed is null", "boolean false"},
    {":default_seed is null", "boolean false"},
    {"hash(:scale) = hash(:scale, :default_seed)", "boolean true"},
    {"permute(5, 100) = permute(5, 100, :default_seed)", "boolean true"},
    {"1 <=2", "boolean true"},
    {"1<-2", "boolean false"},
    {"1-1", "int 0"},
    {"2--1", "int 3"},
    {"true and(false)", "boolean false"},
    {"not(1 is null)", "boolean true"},
    {"debug(debug(1) + debug(2))", "int 3"},
    {"-(2)", "int -2"},
    {"10000000000000000000.0", "double 1e+19"},
    {"0.1 + 0.2", "double 0.3"},
    {"1e15", "double 1e+15"},
    {"123456789012345678.0", "double 1.23456789012346e+17"},
    {"1e100", "double 1e+100"},
    {"1.0", "double 1"},
    {"2.50", "double 2.5"},
    {"-0.0", "double 0"},
    {"3.0 * 2", "double 6"},
    {"1e308 * 10", "double inf"},
    {"1 is true or true", "boolean true"},
    {"not not true", "boolean true"},
    {"2 * 3 = 6 and 1 < 2", "boolean true"},
    {"1 + 1 is null", "boolean false"},
    {"1 = 1 and null is null", "boolean true"},
    {"case when 1 = 1 then 1 end is null", "boolean false"},
    {"mod(9223372036854775807, -1)", "int 0"},
    {"9223372036854775807 % 2", "int 1"},
    {"1 < null", "null"},
    {"1 <> null", "null"},
    {"case when 1 = 1 then 5 else 6 end * 2", "int 10"},
};

static const struct value_case error_cases[] = {
    // While it is read: line and column, what is wrong, the remedy.
    {"9223372036854775808",
     "e.sql:1:8: integer 9223372036854775808 is out of range; write a double"},
    {"99999999999999999999", "e.sql:1:8: integer 99999999999999999999 is out of range"},
    {"1e400", "e.sql:1:8: number 1e400 is out of a double's range"},
    {"1.0e-400", "e.sql:1:8: number 1.0e-400 is out of a double's range"},
    {"0x10", "e.sql:1:8: malformed number 0x10"},
    {"1e", "e.sql:1:8: malformed number 1e"},
    {"1.5.5", "e.sql:1:11: unexpected \".5\"; expected an operator"},
    {"1 < 2 < 3", "e.sql:1:14: comparisons do not chain"},
    {"1 = 1 = TRUE", "e.sql:1:14: comparisons do not chain"},
    {"1 +", "e.sql:1:11: the expression ends where a value was expected"},
    {"", "e.sql:1:8: the expression ends where a value was expected"},
    {"* 2", "e.sql:1:8: unexpected \"*\"; expected a value"},
    {"1 2", "e.sql:1:10: unexpected \"2\"; expected an operator or the end of the line"},
    {"(1", "e.sql:1:10: the expression ends where an operator or \")\" was expected"},
    {"1)", "e.sql:1:9: unexpected \")\""},
    {"1 == 2", "e.sql:1:11: unexpected \"=\"; expected a value"},
    {"1 => 2", "e.sql:1:11: unexpected \">\"; expected a value"},
    {"1 ! 2", "e.sql:1:10: unexpected character ! in an expression; write not, or <>"},
    {"2 ^ 2", "e.sql:1:10: unexpected character ^ in an expression; write pow(x, y)"},
    {"'a'", "unexpected character ' in an expression; expressions have no text values"},
    {"1;", "e.sql:1:9: unexpected character ; in an expression; a meta-command ends with its line"},
    {"\303\244", "e.sql:1:8: unexpected word \303\244"},
    {"\303\244 + $", "e.sql:1:8: unexpected word"}, // a character, not a byte, is a column
    {":\303\244 + $", "e.sql:1:13: unexpected character $"},
    {":1x", "e.sql:1:8: unexpected character : in an expression; a variable is written :name"},
    {"1 is not", "e.sql:1:16: the expression ends where NULL, TRUE or FALSE was expected"},
    {"1 is 5", "e.sql:1:13: unexpected \"5\"; expected NULL, TRUE, FALSE or NOT"},
    {"1 in (1)", "e.sql:1:10: unexpected \"in\"; expected an operator"},
    {"isnull", "unexpected \"isnull\"; expected a value"},
    {"case 1 when 1 then 2 end", "e.sql:1:13: unexpected \"1\"; expected WHEN (only CASE WHEN"},
    {"case when 1 then 2", "expression ends where WHEN, ELSE or END was expected"},
    {"case when true 1 end", "unexpected \"1\"; expected THEN"},
    {"case else 5 end", "unexpected \"else\"; expected WHEN"},
    {"foo", "e.sql:1:8: unexpected word foo; a variable is written :foo, a function foo(...)"},
    {"scale", "e.sql:1:8: unexpected word scale; a variable is written :scale"},
    {"5 -- a comment", "a comment stands on a line of its own"},
    {"nosuch(1)", "e.sql:1:8: unknown function nosuch; docs/scripts.md lists them"},
    {"hsah(1)", "e.sql:1:8: unknown function hsah, did you mean hash()?"},
    {"log(10)", "unknown function log, did you mean ln()?"},
    {"randomgaussian(1, 2, 3)", "did you mean random_gaussian()?"},
    {"abs", "expression ends where \"(\" after the function was expected"},
    {"abs()", "e.sql:1:8: abs() takes 1 argument, not 0"},
    {"abs(1, 2)", "abs() takes 1 argument, not 2"},
    {"abs(,1)", "unexpected \",\"; expected a value"},
    {"hash()", "hash() takes 1 or 2 arguments, not 0"},
    {"permute(1)", "permute() takes 2 or 3 arguments, not 1"},
    {"greatest()", "greatest() takes 1 to 16 arguments, not 0"},
    {"greatest(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
     "too many arguments; a function takes 16"},
    {"random(1)", "random() takes 2 arguments, not 1"},
    {":nosuch", "e.sql:1:8: variable :nosuch is never set; use \\set or -D nosuch=VALUE"},
    {":scal + 1", "e.sql:1:8: variable :scal is never set, did you mean :scale?"},

    // When it is computed: file and line.
    {"9223372036854775807 + 1", "e.sql:1: integer out of range: 9223372036854775807 + 1"},
    {"-9223372036854775807 - 2", "e.sql:1: integer out of range: -9223372036854775807 - 2"},
    {"3037000500 * 3037000500", "e.sql:1: integer out of range: 3037000500 * 3037000500"},
    {"-9223372036854775808 / -1", "e.sql:1: integer out of range: -9223372036854775808 / -1"},
    {"1 / 0", "e.sql:1: division by zero"},
    {"1 % 0", "e.sql:1: division by zero"},
    {"1 % 0.3", "e.sql:1: division by zero"},
    {"mod(5, 0)", "e.sql:1: division by zero"},
    {"true = true", "a boolean where an integer is needed"},
    {"1.5 < true", "a boolean where a number is needed"},
    {"- true", "a boolean where an integer is needed"},
    {"not 1", "an integer where a boolean is needed"},
    {"1 and true", "an integer where a boolean is needed"},
    {"true and 1.5", "a double where a boolean is needed"},
    {"0 or true", "an integer where a boolean is needed"},
    {"abs(true)", "a boolean where a number is needed"},
    {"int(true)", "a boolean where an integer is needed"},
    {"int(1e19)", "double 1e+19 is out of an integer's range"},
    {"int(9223372036854775807.0)", "is out of an integer's range"},
    {"int(0.0/0)", "not a number (NaN) where an integer is needed"},
    {"random(5, 4)", "empty range for a random number: 5 to 4"},
    {"random(0, 9223372036854775807)", "range for a random number is too large"},
    {"random(-9223372036854775808, 9223372036854775807)", "range for a random number is too large"},
    {"random_exponential(1, 10, 0)", "the parameter must be greater than 0, not 0"},
    {"random_gaussian(1, 10, 1.9)", "the parameter must be at least 2, not 1.9"},
    {"random_zipfian(1, 10, 1)", "the parameter must be from 1.001 to 1000, not 1"},
    {"random_zipfian(1, 10, 1000.1)", "the parameter must be from 1.001 to 1000, not 1000.1"},
    {"permute(0, 0, 1)", "permute: the size must be greater than zero, not 0"},
    {"case when 1 / 0 = 1 then 1 end", "division by zero"},
    {"greatest(1, 1 / 0)", "division by zero"},
};

static void print_value(const struct db_value *value, char *out, size_t size)
{
    switch (value->type) {
    case DB_BOOL:
        snprintf(out, size, "boolean %s", value->b ? "true" : "false");
        break;
    case DB_INT:
        snprintf(out, size, "int %lld", (long long)value->i);
        break;
    case DB_DOUBLE: // a NaN has no sign that matters
        snprintf(out, size, "double %.15g", isnan(value->d) ? fabs(value->d) : value->d);
        break;
    case DB_TEXT:
        snprintf(out, size, "text %s", value->s);
        break;
    case DB_NULL:
        snprintf(out, size, "null");
        break;
    }
}

// The value of a variable after one pass of a script that has no SQL, or the error.
static void run_script(const char *text, const struct kvs *defines, const char *variable, char *out,
                       size_t size)
{
    struct workload_options options = {
        .scale = SCALE, .seed = SEED, .clients = 4, .caps = 1, .defines = defines};
    struct workload *workload;
    struct err err = ERR_INIT;
    struct vm_step step;

    if (workload_load_text(&workload, "e.sql", text, &options, &err) < 0) {
        assert_int_equal(err.kind, ERR_USAGE);
        snprintf(out, size, "%s", err.text);
        return;
    }
    struct vm *vm = vm_new(workload, 0, SEED);
    vm_begin(vm, 0);
    enum vm_want want = vm_run(vm, &step);
    if (want == VM_ERROR) {
        snprintf(out, size, "%s", step.error);
    } else {
        assert_int_equal(want, VM_END);
        struct db_value value = vm_variable(vm, variable);
        print_value(&value, out, size);
    }
    vm_free(vm);
    workload_free(workload);
}

static void run_expr(const char *expr, char *out, size_t size)
{
    char text[1024];

    snprintf(text, sizeof(text), "\\set x %s\n", expr);
    run_script(text, NULL, "x", out, size);
}

static void values_are_those_of_pgbench(void **state)
{
    char got[512];

    (void)state;
    for (size_t i = 0; i < ARR_LEN(value_cases); i++) {
        run_expr(value_cases[i].expr, got, sizeof(got));
        if (strcmp(got, value_cases[i].value) != 0)
            fail_msg("%s gives %s, not %s", value_cases[i].expr, got, value_cases[i].value);
    }
}

static void errors_name_the_place_and_the_remedy(void **state)
{
    char got[ERR_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARR_LEN(error_cases); i++) {
        run_expr(error_cases[i].expr, got, sizeof(got));
        if (!strstr(got, error_cases[i].value))
            fail_msg("%s gives \"%s\" without \"%s\"", error_cases[i].expr, got,
                     error_cases[i].value);
    }
}

// The same code without folding, by the parser and the evaluator alone.
static void folding_changes_no_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(value_cases); i++) {
        struct expr_pool *pool = pool_new();
        struct symbols symbols = {0};
        struct lexer lexer;
        struct expr expr;
        struct err err = ERR_INIT;
        struct db_value stack[EXPR_STACK_MAX], values[8] = {0}, value;
        bool unset[8] = {false};
        char *names[8] = {"?", "?", "?", "?", "?", "?", "?", "?"};
        char got[512];
        struct rng rng;

        if (strstr(value_cases[i].expr, ":"))
            goto next;
        rng_init(&rng, SEED, 0, RNG_SCRIPT);
        lexer_init(&lexer, "e.sql", value_cases[i].expr, strlen(value_cases[i].expr));
        if (expr_parse(pool, &symbols, &lexer, &expr, &err) < 0)
            fail_msg("%s: %s", value_cases[i].expr, err.text);
        struct expr_run run = {.pool = pool,
                               .values = values,
                               .unset = unset,
                               .names = names,
                               .rng = &rng,
                               .stack = stack};
        if (expr_eval(&run, &expr, &value) < 0)
            fail_msg("%s: %s", value_cases[i].expr, run.error);
        print_value(&value, got, sizeof(got));
        if (strcmp(got, value_cases[i].value) != 0)
            fail_msg("%s gives %s unfolded, not %s", value_cases[i].expr, got,
                     value_cases[i].value);
    next:
        symbols_release(&symbols);
        pool_free(pool);
    }
}

static void what_cannot_change_is_folded_to_one_instruction(void **state)
{
    static const struct {
        const char *expr;
        int n;
    } cases[] = {
        {"1 + 2 * 3", 1},
        {"100000 * :scale", 1},
        {"random(1, 100000 * :scale)", 3},
        {"random(1, 100000 * :scale) + 2 * 3", 5},
        {"case when :cap_transactions = 1 then 5 else :x end", 7}, // :x is not fixed: kept whole
        {"case when :cap_transactions = 1 then 5 else 6 end", 1},
        {"true or 1 / 0 = 1", 1},
        {"1 / 0", 3}, // left to fail when it is reached
        {":client_id + (1 + 1)", 3},
        {":x + 1", 3},
        {"debug(1 + 1)", 2},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload_options options = {.scale = SCALE, .seed = SEED, .caps = 1};
        struct workload *workload;
        struct err err = ERR_INIT;
        char text[256];
        snprintf(text, sizeof(text), "\\set x 0\n\\set y %s\n", cases[i].expr);
        if (workload_load_text(&workload, "e.sql", text, &options, &err) < 0)
            fail_msg("%s", err.text);
        if (workload->ops[1].expr.n != cases[i].n)
            fail_msg("%s folds to %d instructions, not %d", cases[i].expr, workload->ops[1].expr.n,
                     cases[i].n);
        workload_free(workload);
    }
}

static void texts_of_variables_are_typed_as_pgbench_does(void **state)
{
    static const struct value_case cases[] = {
        {"5", "int 5"},
        {"007", "int 7"},
        {"+5", "int 5"},
        {" 5", "int 5"},
        {"-5", "int -5"},
        {"5.5", "double 5.5"},
        {"1e3", "double 1000"},
        {".5", "double 0.5"},
        {"0x10", "double 16"},
        {"inf", "double inf"},
        {"nan", "double nan"},
        {"true", "boolean true"},
        {"T", "boolean true"},
        {"tr", "boolean true"},
        {"yes", "boolean true"},
        {"y", "boolean true"},
        {"on", "boolean true"},
        {"false", "boolean false"},
        {"f", "boolean false"},
        {"n", "boolean false"},
        {"no", "boolean false"},
        {"of", "boolean false"},
        {"OFF", "boolean false"},
        {"NULL", "null"},
        {"null", "null"},
        {"5 ", "e.sql:1: variable v is no number, boolean or NULL: \"5 \""},
        {"o", "e.sql:1: variable v is no number, boolean or NULL: \"o\""},
        {"nul", "e.sql:1: variable v is no number, boolean or NULL: \"nul\""},
        {"abc", "e.sql:1: variable v is no number, boolean or NULL: \"abc\""},
        {"-", "e.sql:1: variable v is no number, boolean or NULL: \"-\""},
        {"9223372036854775808", "e.sql:1: variable v is no number, boolean or NULL: \"9223"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct kvs defines = KVS_INIT;
        char got[512];
        kvs_add(&defines, "v", cases[i].expr);
        run_script("\\set x :v\n", &defines, "x", got, sizeof(got));
        if (strncmp(got, cases[i].value, strlen(cases[i].value)) != 0)
            fail_msg("\"%s\" gives %s, not %s", cases[i].expr, got, cases[i].value);
        kvs_release(&defines);
    }
}

static void deep_nesting_is_refused_and_long_chains_are_not(void **state)
{
    char text[65536] = "\\set x ";
    char got[512];
    size_t n = strlen(text);

    (void)state;
    for (int i = 0; i < 10000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "1 + ");
    snprintf(text + n, sizeof(text) - n, "1\n");
    run_script(text, NULL, "x", got, sizeof(got));
    assert_string_equal(got, "int 10001");

    n = strlen("\\set x ");
    memset(text + n, '(', 5000);
    snprintf(text + n + 5000, sizeof(text) - n - 5000, "1\n");
    run_script(text, NULL, "x", got, sizeof(got));
    assert_non_null(strstr(got, "nested too deeply"));

    memset(text + n, '-', 5000);
    run_script(text, NULL, "x", got, sizeof(got));
    assert_non_null(strstr(got, "nested too deeply"));
}

static void an_expression_may_go_on_over_lines(void **state)
{
    char got[512];

    (void)state;
    run_script("\\set x 5 \\\n  + 3 \\\r\n * 2\n\\set y :x + 1", NULL, "y", got, sizeof(got));
    assert_string_equal(got, "int 12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_pgbench),
        cmocka_unit_test(errors_name_the_place_and_the_remedy),
        cmocka_unit_test(folding_changes_no_value),
        cmocka_unit_test(what_cannot_change_is_folded_to_one_instruction),
        cmocka_unit_test(texts_of_variables_are_typed_as_pgbench_does),
        cmocka_unit_test(deep_nesting_is_refused_and_long_chains_are_not),
        cmocka_unit_test(an_expression_may_go_on_over_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
