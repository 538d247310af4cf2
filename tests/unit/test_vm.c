// Scripts run: conditions, sleeps, variables, retries, \gset, debug.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "script_help.h"

// ---- running

static void a_pass_runs_the_branches_that_hold(void **state)
{
    static const struct {
        const char *text;
        const char *pass;
    } cases[] = {
        {"a; b;", "a() b() end"},
        {"\\set x 1 + 1\n\\set y :x * 2\nS :y, :x;", "S $1, $2(4,2) end"},
        {"\\set x 0.1 + 0.2\n\\set y 1 = 1\n\\set z null\nS :x, :y, :z;",
         "S $1, $2, $3(0.30000000000000004,true,NULL) end"},
        {"S :scale, :clients, :random_seed, :client_id, :cap_transactions, :cap_row_locks;",
         "S $1, $2, $3, $4, $5, $6(3,4,7,2,1,0) end"},
        {"\\sleep 2\n\\sleep 3 ms\n\\sleep 4us\n\\SLEEP 5MS\n\\sleep 0\n",
         "sleep 2000000000 sleep 3000000 sleep 4000 sleep 5000000 sleep 0 end"},
        {"\\set x 7\n\\sleep :x us\n\\set x -7\n\\sleep :x ms\n\\set x 1.5\n\\sleep :x\n",
         "sleep 7000 sleep 0 sleep 1500000000 end"},
        // constant conditions
        {"\\if 1\na;\n\\else\nb;\n\\endif\nc;", "a() c() end"},
        {"\\if 0\na;\n\\else\nb;\n\\endif\nc;", "b() c() end"},
        {"\\if null\na;\n\\elif 0.5\nb;\n\\elif 1\nc;\n\\else\nd;\n\\endif", "b() end"},
        {"\\if false\na;\n\\endif\n", "end"},
        // conditions that depend on the run
        {"\\set x 2\n\\if :x = 1\na;\n\\elif :x = 2\nb;\n\\elif :x = "
         "2\nc;\n\\else\nd;\n\\endif\ne;",
         "b() e() end"},
        {"\\set x 1\n\\if :x\na;\n\\elif 1 / 0\nb;\n\\endif\nc;", "a() c() end"},
        {"\\set x 0\n\\if :x\na;\n\\else\nb;\n\\endif\nc;", "b() c() end"},
        {"\\set x 0\n\\if :x\na;\n\\elif :x = 0\n\\if :x < 1\nb;\n\\else\nc;\n\\endif\nd;\n\\else\n"
         "e;\n\\endif\nf;",
         "b() d() f() end"},
        // both mixed
        {"\\set x 0\n\\if :x\na;\n\\elif true\nb;\n\\else\nc;\n\\endif\nd;", "b() d() end"},
        {"\\set x 1\n\\if :x\na;\n\\elif true\nb;\n\\else\nc;\n\\endif\nd;", "a() d() end"},
        {"\\set x 0\n\\if false\n\\if :x = 0\na;\n\\endif\n\\elif :x = 0\nb;\n\\endif\nc;",
         "b() c() end"},
        // errors of the run
        {"\\set x 0\na;\n\\set y 1 / :x\nb;", "a() pay.sql:3: division by zero"},
        {"a :x;\n\\set x 1\n", "pay.sql:1: variable x has no value yet"},
        {"\\if :x\n\\endif\n\\set x 1\n", "pay.sql:1: variable x has no value yet"},
        {"\\set x null\n\\sleep :x ms\n", "pay.sql:2: \\sleep needs a number, not NULL"},
        {"\\set x 1e300\n\\sleep :x\n", "pay.sql:2: \\sleep is too long: 1e+300"},
    };
    struct str got = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload *workload = load(cases[i].text, &standard);
        struct vm *vm = vm_new(workload, 2, SEED);
        run_pass(vm, 0, &got);
        if (strcmp(got.buf, cases[i].pass) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].text, got.buf, cases[i].pass);
        vm_free(vm);
        workload_free(workload);
    }
    str_release(&got);
}

static void dead_branches_leave_no_statements(void **state)
{
    struct workload *workload = load("\\if :cap_row_locks\na;\n\\else\nb;\n\\endif\n"
                                     "\\set x 1\n\\if :x\nc;\n\\endif",
                                     &standard);

    (void)state;
    assert_int_equal(workload->n_statements, 2);
    assert_string_equal(workload->statements[0].sql, "b");
    assert_string_equal(workload->statements[1].sql, "c");
    workload_free(workload);
}

static void variables_stay_from_pass_to_pass_and_over_scripts(void **state)
{
    struct workload *workload = load("\\if :n > 2\nMANY :n;\n\\endif\n\\set n :n + 1\n", &standard);
    struct str got = STR_INIT;
    struct kvs defines = KVS_INIT;
    struct workload_options options = standard;

    (void)state;
    struct vm *vm = vm_new(workload, 0, SEED);
    run_pass(vm, 0, &got);
    assert_string_equal(got.buf, "pay.sql:1: variable n has no value yet");
    vm_free(vm);
    workload_free(workload);

    kvs_add(&defines, "n", "1");
    options.defines = &defines;
    workload = load("\\if :n > 2\nMANY :n;\n\\endif\n\\set n :n + 1\n", &options);
    vm = vm_new(workload, 0, SEED);
    for (int pass = 0; pass < 4; pass++) {
        run_pass(vm, 0, &got);
        assert_string_equal(got.buf, pass < 2    ? "end"
                                     : pass == 2 ? "MANY $1(3) end"
                                                 : "MANY $1(4) end");
    }
    vm_free(vm);
    workload_free(workload);
    kvs_release(&defines);
    str_release(&got);
}

static void a_retry_has_the_same_numbers_and_variables(void **state)
{
    struct kvs defines = KVS_INIT;
    struct workload_options options = standard;
    struct str first = STR_INIT, again = STR_INIT, next = STR_INIT;

    (void)state;
    kvs_add(&defines, "n", "0");
    options.defines = &defines;
    struct workload *workload =
        load("\\set n :n + 1\n\\set a random(1, 1000000000)\n\\set b random_zipfian(1, 1000, 1.5)\n"
             "\\set c random_gaussian(1, 1000, 2.5)\nS :n, :a, :b, :c;",
             &options);
    struct vm *vm = vm_new(workload, 1, SEED);
    for (int pass = 0; pass < 5; pass++) {
        run_pass(vm, 0, &first);
        for (int i = 0; i < 3; i++) {
            vm_retry(vm);
            run_pass(vm, -1, &again);
            assert_string_equal(first.buf, again.buf);
        }
        assert_string_not_equal(first.buf, next.buf);
        str_clear(&next);
        str_add(&next, first.buf);
    }
    assert_int_equal(vm_variable(vm, "n").i, 5);

    // The same client of the same seed repeats the run; another client does not.
    struct vm *twin = vm_new(workload, 1, SEED);
    struct vm *other = vm_new(workload, 2, SEED);
    for (int pass = 0; pass < 5; pass++)
        run_pass(twin, 0, &again);
    assert_string_equal(first.buf, again.buf);
    for (int pass = 0; pass < 5; pass++)
        run_pass(other, 0, &again);
    assert_string_not_equal(first.buf, again.buf);
    vm_free(vm);
    vm_free(twin);
    vm_free(other);
    workload_free(workload);
    kvs_release(&defines);
    str_release(&first);
    str_release(&again);
    str_release(&next);
}

// ---- \gset

static struct db_value text_value(const char *s)
{
    return (struct db_value){.type = DB_TEXT, .s = s, .text_len = (uint32_t)strlen(s)};
}

// Goes to the statement that wants a row.
static void run_to_row(struct vm *vm)
{
    struct vm_step step;

    assert_int_equal(vm_run(vm, &step), VM_SQL);
    assert_true(step.want_row);
}

static void gset_stores_a_row_in_variables(void **state)
{
    struct workload *workload = load(
        "SELECT a, b \\gset\nSELECT c \\gset p_\n\\set x :a + 1\nS :a, :b, :p_c, :x;", &standard);
    struct vm *vm = vm_new(workload, 0, SEED);
    struct str got = STR_INIT;
    char name[16] = "a", text[16] = "041";

    (void)state;
    vm_begin(vm, 0);
    run_to_row(vm);
    assert_int_equal(vm_take_row(vm, 1, 3), 0);
    vm_take_column(vm, name, text_value(text));
    vm_take_column(vm, "b", (struct db_value){.type = DB_NULL});
    vm_take_column(vm, "nobody_looks_at_it", text_value("x"));
    memset(text, 'x', sizeof(text)); // copied: the driver's buffer may change
    run_to_row(vm);
    assert_int_equal(vm_take_row(vm, 1, 1), 0);
    vm_take_column(vm, "c", (struct db_value){.type = DB_DOUBLE, .d = 2.5});
    run_pass(vm, -1, &got);
    assert_string_equal(got.buf, "S $1, $2, $3, $4(041,NULL,2.5,42) end");
    vm_free(vm);
    workload_free(workload);
    str_release(&got);
}

static void gset_refuses_what_pgbench_refuses(void **state)
{
    static const struct {
        const char *column; // NULL: no row is taken
        int64_t rows;
        const char *error;
    } cases[] = {
        {NULL, 0, "pay.sql:2: \\gset needs exactly one row, the statement gave 0"},
        {NULL, 2, "pay.sql:2: \\gset needs exactly one row, the statement gave 2"},
        {"?column?", 1,
         "pay.sql:2: \\gset: column \"?column?\" is no variable's name; name it "
         "with AS"},
        {"1", 1, "pay.sql:2: \\gset: column \"1\" is no variable's name; name it with AS"},
    };
    struct workload *workload = load("\\set x 1\nSELECT 1 \\gset\nS :x;", &standard);

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct vm *vm = vm_new(workload, 0, SEED);
        struct vm_step step;
        vm_begin(vm, 0);
        run_to_row(vm);
        if (cases[i].rows != 1) {
            assert_true(vm_take_row(vm, cases[i].rows, 1) < 0);
        } else {
            assert_int_equal(vm_take_row(vm, 1, 2), 0);
            vm_take_column(vm, cases[i].column, text_value("5"));
            vm_take_column(vm, "x", text_value("5"));
        }
        assert_int_equal(vm_run(vm, &step), VM_ERROR);
        assert_string_equal(step.error, cases[i].error);
        // The client goes on with its next pass.
        vm_begin(vm, 0);
        run_to_row(vm);
        assert_int_equal(vm_take_row(vm, 1, 0), 0);
        assert_int_equal(vm_run(vm, &step), VM_SQL);
        vm_free(vm);
    }
    workload_free(workload);
}

static void a_prefix_may_be_continued_by_a_digit(void **state)
{
    struct workload *workload = load("SELECT 1 \\gset v\nS :v1;", &standard);
    struct vm *vm = vm_new(workload, 0, SEED);
    struct str got = STR_INIT;

    (void)state;
    vm_begin(vm, 0);
    run_to_row(vm);
    assert_int_equal(vm_take_row(vm, 1, 2), 0);
    vm_take_column(vm, "1", text_value("5"));
    vm_take_column(vm, "2", text_value("6"));
    run_pass(vm, -1, &got);
    assert_string_equal(got.buf, "S $1(5) end");
    vm_free(vm);
    workload_free(workload);
    str_release(&got);
}

static void a_retry_restores_texts_of_any_length(void **state)
{
    struct workload *workload = load("SELECT :a \\gset\n", &standard);
    struct vm_step step;
    struct str text = STR_INIT, before = STR_INIT;
    struct vm *vm;

    (void)state;
    vm = vm_new(workload, 0, SEED);
    vm_begin(vm, 0);
    assert_int_equal(vm_run(vm, &step), VM_ERROR); // no value yet
    vm_free(vm);
    workload_free(workload);

    workload = load("SELECT a \\gset\nS :a;", &standard);
    vm = vm_new(workload, 0, SEED);
    str_add(&before, "x");
    for (int pass = 0; pass < 12; pass++) {
        vm_begin(vm, 0);
        for (int i = 0; i < 3; i++) {
            struct db_value value = vm_variable(vm, "a");
            if (pass == 0) {
                assert_int_equal(value.type, DB_NULL);
            } else {
                assert_int_equal(value.text_len, before.len);
                assert_string_equal(value.s, before.buf);
            }
            run_to_row(vm);
            assert_int_equal(vm_take_row(vm, 1, 1), 0);
            str_clear(&text);
            for (int k = 0; k < 1 << pass; k++)
                str_addc(&text, (char)('a' + i));
            vm_take_column(vm, "a", text_value(text.buf));
            assert_int_equal(vm_run(vm, &step), VM_SQL);
            assert_string_equal(step.params[0].s, text.buf);
            if (i < 2)
                vm_retry(vm);
        }
        str_clear(&before);
        str_add(&before, text.buf);
    }
    vm_free(vm);
    workload_free(workload);
    str_release(&text);
    str_release(&before);
}

static void keep_line(void *arg, const char *line)
{
    str_addf(arg, "%s\n", line);
}

static void debug_says_what_pgbench_says(void **state)
{
    struct workload_options options = standard;
    struct str lines = STR_INIT;
    struct str got = STR_INIT;

    (void)state;
    options.debug = keep_line;
    options.debug_arg = &lines;
    struct workload *workload = load("S 1 ;\n\\set x debug(debug(5) / 2.0)\n\\if debug(true)\n"
                                     "\\set x debug(null)\n\\endif\n",
                                     &options);
    struct vm *vm = vm_new(workload, 0, SEED);
    run_pass(vm, 0, &got);
    assert_string_equal(got.buf, "S 1() end");
    assert_string_equal(lines.buf, "debug(script=0,command=2): int 5\n"
                                   "debug(script=0,command=2): double 2.5\n"
                                   "debug(script=0,command=3): boolean true\n"
                                   "debug(script=0,command=4): null\n");
    vm_free(vm);
    workload_free(workload);
    str_release(&lines);
    str_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_runs_the_branches_that_hold),
        cmocka_unit_test(dead_branches_leave_no_statements),
        cmocka_unit_test(variables_stay_from_pass_to_pass_and_over_scripts),
        cmocka_unit_test(a_retry_has_the_same_numbers_and_variables),
        cmocka_unit_test(gset_stores_a_row_in_variables),
        cmocka_unit_test(gset_refuses_what_pgbench_refuses),
        cmocka_unit_test(a_prefix_may_be_continued_by_a_digit),
        cmocka_unit_test(a_retry_restores_texts_of_any_length),
        cmocka_unit_test(debug_says_what_pgbench_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
