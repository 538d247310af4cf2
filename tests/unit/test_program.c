// Scripts compiled: statements, errors, variables that are there from the start, names and weights.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "script_help.h"

static void assert_refused(const char *text, const struct workload_options *options,
                           const char *message)
{
    struct workload *workload = NULL;
    struct err err = ERR_INIT;

    if (workload_load_text(&workload, "pay.sql", text, options, &err) == 0)
        fail_msg("%s\ncompiles, not \"%s\"", text, message);
    assert_int_equal(err.kind, ERR_USAGE);
    if (strncmp(err.text, message, strlen(message)) != 0)
        fail_msg("%s\ngives \"%s\", not \"%s\"", text, err.text, message);
    assert_null(workload);
}

// ---- statements

// sql and pieces of all statements: "SELECT $1 {SELECT |}" one after another.
static void show_statements(const struct workload *workload, struct str *out)
{
    str_clear(out);
    for (int i = 0; i < workload->n_statements; i++) {
        const struct db_statement *s = &workload->statements[i];
        assert_int_equal(s->index, i);
        str_addf(out, "%s%s {", i ? "; " : "", s->sql);
        for (int k = 0; k <= s->n_params; k++)
            str_addf(out, "%s%s", k ? "|" : "", s->pieces[k]);
        str_addc(out, '}');
    }
}

static void each_use_of_a_variable_is_a_parameter_of_its_own(void **state)
{
    static const struct {
        enum db_placeholder placeholder;
        enum db_protocol protocol;
        const char *text;
        const char *statements;
    } cases[] = {
        {DB_PLACE_DOLLAR, DB_PREPARED, "SELECT 1;", "SELECT 1 {SELECT 1}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "SELECT 1", "SELECT 1 {SELECT 1}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "SELECT :scale + :scale, :clients;",
         "SELECT $1 + $2, $3 {SELECT | + |, |}"},
        {DB_PLACE_QUESTION, DB_PREPARED, "SELECT :scale + :scale, :clients;",
         "SELECT ? + ?, ? {SELECT | + |, |}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "SELECT ':scale', :scale::int, \\:scale;",
         "SELECT ':scale', $1::int, :scale {SELECT ':scale', |::int, :scale}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, ";; a ;\n\n;-- nothing\n;/* nothing */; b", "a {a}; b {b}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "\n  SELECT  -- why\n  1 ;",
         "SELECT  \n  1 {SELECT  \n  1}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "a\n\\set x 1\nb :x\\set y 2\nc",
         "a {a}; b $1 {b |}; c {c}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, ":scale", "$1 {|}"},
        {DB_PLACE_QUESTION, DB_PREPARED, "SELECT '?', \"?\" /* ? */;",
         "SELECT '?', \"?\" /* ? */ {SELECT '?', \"?\" /* ? */}"},
        {DB_PLACE_DOLLAR, DB_PREPARED, "SELECT a ? 'b';", "SELECT a ? 'b' {SELECT a ? 'b'}"},
        {DB_PLACE_DOLLAR, DB_SIMPLE, "a \\; b :scale;", "a ; b $1 {a ; b |}"},
        // As in pgbench, a name that nothing sets is plain text in the simple protocol.
        {DB_PLACE_DOLLAR, DB_SIMPLE, "SELECT x[1:n], :scale;",
         "SELECT x[1:n], $1 {SELECT x[1:n], |}"},
        // It is a variable once some \gset may fill it, which a prefix restricts.
        {DB_PLACE_DOLLAR, DB_SIMPLE, "SELECT :a \\gset\nSELECT :b, :b;",
         "SELECT $1 {SELECT |}; SELECT $1, $2 {SELECT |, |}"},
        {DB_PLACE_DOLLAR, DB_SIMPLE, "SELECT 1 \\gset p_\nSELECT :p_b, :b, :p_;",
         "SELECT 1 {SELECT 1}; SELECT $1, :b, :p_ {SELECT |, :b, :p_}"},
    };
    struct str got = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload_options options = standard;
        options.placeholder = cases[i].placeholder;
        options.protocol = cases[i].protocol;
        struct workload *workload = load(cases[i].text, &options);
        show_statements(workload, &got);
        if (strcmp(got.buf, cases[i].statements) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].text, got.buf, cases[i].statements);
        workload_free(workload);
    }
    str_release(&got);
}

static void origins_show_statements_as_written(void **state)
{
    struct workload_options simple = standard;
    struct workload *workload;

    (void)state;
    simple.protocol = DB_SIMPLE;
    workload = load("\\set x 1\n-- first\nSELECT\n\t:x,   'a  b\nc'  ;\nBEGIN \\; END;\n"
                    "\\if :x = 1\n SELECT 5\n\\endif",
                    &simple);
    assert_int_equal(workload->n_statements, 3);
    assert_string_equal(workload->origins[0].text, "SELECT :x, 'a  b c'");
    assert_int_equal(workload->origins[0].line, 3);
    assert_int_equal(workload->origins[0].script, 0);
    assert_string_equal(workload->origins[1].text, "BEGIN \\; END");
    assert_int_equal(workload->origins[1].line, 6);
    assert_string_equal(workload->origins[2].text, "SELECT 5");
    assert_int_equal(workload->origins[2].line, 8);
    workload_free(workload);
}

static void a_statement_has_at_most_255_variables(void **state)
{
    struct str text = STR_INIT;
    struct workload *workload;

    (void)state;
    str_add(&text, "SELECT\n:scale");
    for (int i = 1; i < DB_PARAMS_MAX; i++)
        str_add(&text, ",:scale");
    workload = load(text.buf, &standard);
    assert_int_equal(workload->statements[0].n_params, DB_PARAMS_MAX);
    workload_free(workload);
    str_add(&text, ",:scale");
    assert_refused(text.buf, &standard,
                   "pay.sql:2:1786: a statement can use 255 variables at most");
    str_release(&text);
}

static void explicit_transactions_are_found(void **state)
{
    static const struct {
        const char *text;
        bool explicit;
    } cases[] = {
        {"BEGIN; SELECT 1; COMMIT;", true},
        {"start transaction; SELECT 1; end;", true},
        {"LOCK TABLES t WRITE; SELECT 1; UNLOCK TABLES;", true},
        {"SELECT 1;", false},
        {"BEGIN; SELECT 1;", false},
        {"\\if :cap_transactions\nBEGIN;\nCOMMIT;\n\\endif\nSELECT 1;", true},
        {"\\if not :cap_transactions = 1\nBEGIN;\nCOMMIT;\n\\endif\nSELECT 1;", false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload *workload = load(cases[i].text, &standard);
        if (workload->has_explicit_transaction != cases[i].explicit)
            fail_msg("%s", cases[i].text);
        workload_free(workload);
    }
}

// ---- what is refused

static void errors_name_the_place_and_the_remedy(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "pay.sql:1:1: no statement or command in the script"},
        {" ; -- only\n/* comments */ ;", "pay.sql:1:1: no statement or command in the script"},
        {"S 1;\n  \\foo\n", "pay.sql:2:3: unknown meta-command \\foo; there are \\set, \\sleep"},
        {"\\elsif 1\n", "pay.sql:1:1: unknown meta-command \\elsif, did you mean \\elif?"},
        {"S 1 \\gste\n", "pay.sql:1:5: unknown meta-command \\gste, did you mean \\gset?"},
        {"\\setrandom a 1 10\n",
         "pay.sql:1:1: \\setrandom is no more; write \\set name random(low, high)"},
        {"S 1 \\aset\n", "pay.sql:1:5: \\aset is not supported yet; remove it, or run this script "
                         "with pgbench"},
        {"\\setshell x date\n", "pay.sql:1:1: \\setshell is not supported yet"},
        {"\\set\n", "pay.sql:1:5: \\set needs a variable and an expression"},
        {"\\set 1x 5\n", "pay.sql:1:6: \"1x\" is not a variable's name; use letters, digits and _"},
        {"\\set x\nS 1;", "pay.sql:1:7: the expression ends where a value was expected"},
        {"\\set x 1 2\n", "pay.sql:1:10: unexpected \"2\"; expected an operator"},
        {"\\set x (1 + \\\n   'a')", "pay.sql:2:4: unexpected character ' in an expression"},
        {"\\sleep\n", "pay.sql:1:7: \\sleep needs a time"},
        {"\\sleep 1 h\n", "pay.sql:1:10: unknown unit \"h\"; it is us, ms or s"},
        {"\\sleep 1h\n", "pay.sql:1:9: unknown unit \"h\"; it is us, ms or s"},
        {"\\sleep 1.5 ms\n",
         "pay.sql:1:8: \\sleep needs a whole number or a :variable, not \"1.5\""},
        {"\\sleep 1 ms 2\n", "pay.sql:1:13: unexpected \"2\" after \\sleep TIME UNIT"},
        {"\\sleep 99999999999999999999\n", "pay.sql:1:8: \\sleep time is too long"},
        {"\\sleep :nope ms\n", "pay.sql:1:8: variable :nope is never set"},
        {"\\if\n\\endif", "pay.sql:1:4: the expression ends where a value was expected"},
        {"S 1;\n\\if 1\nS 2;\n", "pay.sql:2:1: \\if without an \\endif after it"},
        {"\\if 1\n\\if 1\n\\endif\n", "pay.sql:1:1: \\if without an \\endif after it"},
        {"\\elif 1\n", "pay.sql:1:1: \\elif without an \\if before it"},
        {"\\else\n", "pay.sql:1:1: \\else without an \\if before it"},
        {"S 1;\n\\endif\n", "pay.sql:2:1: \\endif without an \\if before it"},
        {"\\if 1\n\\else\n\\elif 1\n\\endif\n", "pay.sql:3:1: \\elif after \\else"},
        {"\\if 1\n\\else\n\\else\n\\endif\n", "pay.sql:3:1: \\else after \\else"},
        {"\\if 1\n\\else 2\n\\endif\n", "pay.sql:2:7: unexpected \"2\" after \\else"},
        {"\\if 1\n\\endif 2\n", "pay.sql:2:8: unexpected \"2\" after \\endif"},
        {"\\gset\n", "pay.sql:1:1: \\gset must follow the statement whose row it stores"},
        {"S 1;\n\\set x 1\n\\gset\n", "pay.sql:3:1: \\gset must follow the statement"},
        {"S 1 \\gset\n\\gset\n", "pay.sql:2:1: \\gset must follow the statement"},
        {"S 1 \\gset a b\n", "pay.sql:1:13: unexpected \"b\" after \\gset PREFIX"},
        {"S 1 \\gset 1a\n", "pay.sql:1:11: \"1a\" cannot begin a variable's name"},
        {"S 1\\;\n S 2;", "pay.sql:1:4: \\; joins statements in the simple protocol only"},
        {"S 'a;\n", "pay.sql:1:3: unterminated string"},
        {"\\set aid 1\nS\n  :adi;", "pay.sql:3:3: variable :adi is never set, did you mean :aid?"},
        {"S x[1:upper];", "pay.sql:1:6: variable :upper is never set; use \\set or -D upper=VALUE, "
                          "or write \\: for a plain colon"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_refused(cases[i].text, &standard, cases[i].message);

    struct workload_options question = standard;
    question.placeholder = DB_PLACE_QUESTION;
    assert_refused("S '?', ?;", &question, "pay.sql:1:8: a bare ? would be taken for a parameter");
    question.protocol = DB_SIMPLE;
    assert_refused("S '?', ?;", &question, "pay.sql:1:8: a bare ? would be taken for a parameter");
    assert_refused("S :nope;", &question, "pay.sql:1:3: variable :nope is never set");
}

static void pipeline_sections_are_checked(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"\\startpipeline\nS 1;\n",
         "pay.sql:1:1: \\startpipeline without an \\endpipeline after it"},
        {"\\startpipeline\n\\syncpipeline\n",
         "pay.sql:1:1: \\startpipeline without an \\endpipeline after it"},
        {"S 1;\n\\endpipeline\n", "pay.sql:2:1: \\endpipeline without a \\startpipeline before it"},
        {"\\startpipeline\n\\endpipeline\n\\syncpipeline\n",
         "pay.sql:3:1: \\syncpipeline without a \\startpipeline before it"},
        {"\\startpipeline\nS 1;\n \\startpipeline\n",
         "pay.sql:3:2: \\startpipeline inside the pipeline section that began in line 1"},
        {"\\startpipeline\nS 1 \\gset\n\\endpipeline\n",
         "pay.sql:2:5: \\gset is not allowed in a pipeline section"},
        {"\\startpipeline\nS 1;\n\\endpipeline\n\\gset\n",
         "pay.sql:4:1: \\gset must follow the statement"},
        {"\\startpipeline\n\\sleep 1 ms\n\\endpipeline\n",
         "pay.sql:2:1: \\sleep is not allowed in a pipeline section"},
        {"\\startpipeline 2\n", "pay.sql:1:16: unexpected \"2\" after \\startpipeline"},
        {"\\startpipeline\n\\syncpipeline 2\n", "pay.sql:2:15: unexpected \"2\" after"},
        {"\\startpipeline\n\\endpipeline 2\n", "pay.sql:2:14: unexpected \"2\" after"},
        {"\\if 1\n\\startpipeline\nS 1;\n\\endif\n\\endpipeline\n",
         "pay.sql:4:1: \\endif inside the pipeline section that began in line 2; write "
         "\\endpipeline before it"},
        {"\\if 1\n\\startpipeline\n\\else\n\\endpipeline\n\\endif\n",
         "pay.sql:3:1: \\else inside the pipeline section that began in line 2"},
        {"\\startpipeline\n\\if 1\n\\endpipeline\n\\endif\n",
         "pay.sql:3:1: \\endpipeline in another \\if block than its \\startpipeline in line 1"},
        {"\\startpipeline\n\\if 1\n\\syncpipeline\n\\endif\n\\endpipeline\n",
         "pay.sql:3:1: \\syncpipeline in another \\if block than its \\startpipeline in line 1"},
    };
    struct workload_options simple = standard;
    struct str text = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_refused(cases[i].text, &standard, cases[i].message);
    simple.protocol = DB_SIMPLE;
    assert_refused("\\startpipeline\nS 1;\n\\endpipeline\n", &simple,
                   "pay.sql:1:1: a pipeline needs the protocol extended or prepared; leave "
                   "--protocol simple away");

    str_add(&text, "\\startpipeline\n");
    for (int i = 0; i < DB_PIPELINE_MAX; i++)
        str_add(&text, "S 1;\n");
    size_t n = text.len;
    str_add(&text, "\\syncpipeline\nS 1;\n\\endpipeline\n");
    workload_free(load(text.buf, &standard));
    text.buf[text.len = n] = '\0';
    str_add(&text, "S 1;\n\\endpipeline\n");
    assert_refused(
        text.buf, &standard,
        "pay.sql:66:1: more than 64 statements in one batch of a pipeline section; write "
        "\\syncpipeline between them");
    str_release(&text);
}

static void pipeline_sections_say_what_is_ahead(void **state)
{
    static const struct {
        const char *text;
        const char *pass;
        bool has_pipeline;
    } cases[] = {
        {"a;\n\\startpipeline\nb;\nc;\n\\endpipeline\nd;", "a() start 2 b() c() stop 0 d() end",
         true},
        {"\\startpipeline\na;\n\\syncpipeline\nb;\nc\n\\endpipeline",
         "start 1 a() sync 2 b() c() stop 0 end", true},
        {"\\startpipeline\n\\endpipeline\na;", "start 0 stop 0 a() end", true},
        // Counted at most: the branches together.
        {"\\startpipeline\n\\if :client_id = 0\na;\n\\else\nb;\nc;\n\\endif\n\\endpipeline",
         "start 3 a() stop 0 end", true},
        // What cannot be reached is not there.
        {"\\if not :cap_transactions = 1\n\\startpipeline\na;\n\\endpipeline\n\\else\nb;\n\\endif",
         "b() end", false},
        {"a;", "a() end", false},
    };
    struct str got = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload *workload = load(cases[i].text, &standard);
        struct vm *vm = vm_new(workload, 0, SEED);
        run_pass(vm, 0, &got);
        if (strcmp(got.buf, cases[i].pass) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].text, got.buf, cases[i].pass);
        assert_int_equal(workload->has_pipeline, cases[i].has_pipeline);
        vm_free(vm);
        workload_free(workload);
    }
    str_release(&got);
}

static void defines_are_checked_and_stronger_than_automatic_variables(void **state)
{
    static const struct {
        const char *key, *value;
        const char *sent; // "type text", or the error
    } cases[] = {
        {"v", "20000", "2 20000"},
        {"v", "007", "4 007"},
        {"v", "0.5", "3 0.5"},
        {"v", "1e3", "4 1e3"},
        {"v", "true", "1 true"},
        {"v", "yes", "4 yes"},
        {"v", "Null", "0 NULL"},
        {"v", "abc", "4 abc"},
        {"v", "'x y'", "4 'x y'"},
        {"scale", "77", "2 3"},
        {"1v", "5", "-D 1v=5: \"1v\" is not a variable's name"},
        {"v", "", "-D v=: a value is needed: -D v=VALUE"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload_options options = standard;
        struct kvs defines = KVS_INIT;
        char got[64], buf[DB_VALUE_TEXT_MAX];
        struct vm_step step;
        int len;
        kvs_add(&defines, "w", "3");
        kvs_add(&defines, cases[i].key, cases[i].value);
        options.defines = &defines;
        if (strncmp(cases[i].sent, "-D", 2) == 0) {
            assert_refused("S :w;", &options, cases[i].sent);
            kvs_release(&defines);
            continue;
        }
        char text[64];
        snprintf(text, sizeof(text), "S :%s;", strcmp(cases[i].key, "v") == 0 ? "v" : "w");
        struct workload *workload = load(text, &options);
        struct vm *vm = vm_new(workload, 0, SEED);
        vm_begin(vm, 0);
        assert_int_equal(vm_run(vm, &step), VM_SQL);
        const char *sent = db_value_text(&step.params[0], buf, &len);
        snprintf(got, sizeof(got), "%d %s", step.params[0].type, sent ? sent : "NULL");
        assert_string_equal(got, cases[i].sent);
        if (strcmp(cases[i].key, "scale") == 0)
            assert_int_equal(vm_variable(vm, "scale").i, 77);
        vm_free(vm);
        workload_free(workload);
        kvs_release(&defines);
    }
}

// ---- built-ins and files

static void the_builtin_workloads_compile_for_every_kind_of_engine(void **state)
{
    static const struct {
        const char *name;
        unsigned caps;
        int n_statements;
        const char *first, *last;
        bool transaction;
    } cases[] = {
        {"tpcb", DB_CAP_TRANSACTIONS, 7, "BEGIN", "COMMIT", true},
        {"tpcb", DB_CAP_TRANSACTIONS | DB_CAP_LOCK_TABLES, 7, "BEGIN", "COMMIT", true},
        {"tpcb", DB_CAP_LOCK_TABLES, 7,
         "LOCK TABLES pgbench_accounts WRITE, pgbench_tellers WRITE, pgbench_branches WRITE, "
         "pgbench_history WRITE",
         "UNLOCK TABLES", true},
        {"tpcb", 0, 5, "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2", NULL,
         false},
        {"simple-update", DB_CAP_TRANSACTIONS, 5, "BEGIN", "COMMIT", true},
        {"simple-update", DB_CAP_LOCK_TABLES, 5,
         "LOCK TABLES pgbench_accounts WRITE, pgbench_history WRITE", "UNLOCK TABLES", true},
        {"select-only", DB_CAP_TRANSACTIONS, 1,
         "SELECT abalance FROM pgbench_accounts WHERE aid = $1", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload_options options = standard;
        struct workload *workload;
        struct err err = ERR_INIT;
        options.caps = cases[i].caps;
        if (workload_load_builtin(&workload, cases[i].name, &options, &err) < 0)
            fail_msg("%s: %s", cases[i].name, err.text);
        assert_string_equal(workload->name, cases[i].name);
        assert_ptr_equal(workload->schema, &schema_tpcb);
        assert_int_equal(workload->scale, 3);
        assert_int_equal(workload->n_statements, cases[i].n_statements);
        assert_string_equal(workload->statements[0].sql, cases[i].first);
        if (cases[i].last)
            assert_string_equal(workload->statements[workload->n_statements - 1].sql,
                                cases[i].last);
        assert_int_equal(workload->has_explicit_transaction, cases[i].transaction);
        struct vm *vm = vm_new(workload, 0, SEED);
        struct str got = STR_INIT;
        for (int pass = 0; pass < 1000; pass++) {
            run_pass(vm, 0, &got);
            assert_non_null(strstr(got.buf, "end"));
            assert_in_range(vm_variable(vm, "aid").i, 1, 300000);
        }
        str_release(&got);
        vm_free(vm);
        workload_free(workload);
    }
}

static void an_unknown_builtin_gets_a_suggestion(void **state)
{
    static const struct {
        const char *name, *message;
    } cases[] = {
        {"tcpb", "unknown workload tcpb, did you mean tpcb? (a script file: -f tcpb)"},
        {"tpcb-like", "unknown workload tpcb-like, did you mean tpcb?"},
        {"select_only", "unknown workload select_only, did you mean select-only?"},
        {"pay.sql", "unknown workload pay.sql: there are tpcb, simple-update or select-only; a "
                    "script file is given with -f"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload *workload;
        struct err err = ERR_INIT;
        assert_true(workload_load_builtin(&workload, cases[i].name, &standard, &err) < 0);
        assert_int_equal(err.kind, ERR_USAGE);
        if (strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s", err.text);
    }
}

static char *write_file(const char *dir, const char *name, const char *text, size_t len)
{
    char *path = mem_printf("%s/%s", dir, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void files_have_names_and_weights(void **state)
{
    char dir[] = "/tmp/test_program.XXXXXX";
    struct workload *workload;
    struct err err = ERR_INIT;
    char *names[3];

    (void)state;
    assert_non_null(mkdtemp(dir));
    char *a = write_file(dir, "a.sql",
                         "\xef\xbb\xbf"
                         "\\set n 1\nA;",
                         14);
    char *b = write_file(dir, "b@x.sql", "B :n;", 5);

    names[0] = a;
    assert_int_equal(workload_load_files(&workload, names, 1, &standard, &err), 0);
    assert_string_equal(workload->name, "a.sql");
    assert_string_equal(workload->scripts[0].name, "a.sql");
    assert_true(workload->scripts[0].weight == 1);
    assert_null(workload->schema);
    char *hash = mem_strdup(workload->source_hash);
    assert_int_equal(strlen(hash), 16);
    workload_free(workload);

    // A weight alone changes nothing; between two scripts it does.
    names[0] = mem_printf("%s@5", a);
    assert_int_equal(workload_load_files(&workload, names, 1, &standard, &err), 0);
    assert_string_equal(workload->name, "a.sql");
    assert_string_equal(workload->source_hash, hash);
    workload_free(workload);
    free(hash);

    free(names[0]);
    names[0] = mem_printf("%s@2.5", a);
    names[1] = b;
    assert_int_equal(workload_load_files(&workload, names, 2, &standard, &err), 0);
    assert_string_equal(workload->name, "a.sql@2.5 b@x.sql@1");
    assert_int_equal(workload->n_scripts, 2);
    assert_int_equal(workload->n_statements, 2);
    assert_int_equal(workload->origins[1].script, 1);
    assert_true(workload->scripts[0].weight == 2.5);
    // Variables belong to the client: what one script sets the other sees.
    struct vm *vm = vm_new(workload, 0, SEED);
    struct str got = STR_INIT;
    run_pass(vm, 1, &got);
    assert_string_equal(got.buf, "b@x.sql:1: variable n has no value yet");
    run_pass(vm, 0, &got);
    assert_string_equal(got.buf, "A() end");
    run_pass(vm, 1, &got);
    assert_string_equal(got.buf, "B $1(1) end");
    str_release(&got);
    vm_free(vm);
    hash = mem_strdup(workload->source_hash);
    workload_free(workload);

    free(names[0]);
    names[0] = mem_printf("%s@3", a);
    assert_int_equal(workload_load_files(&workload, names, 2, &standard, &err), 0);
    assert_string_not_equal(workload->source_hash, hash);
    workload_free(workload);
    free(hash);
    free(names[0]);
    unlink(a);
    unlink(b);
    free(a);
    free(b);
    rmdir(dir);
}

static void bad_files_are_refused_by_name(void **state)
{
    static const struct {
        const char *file, *message;
    } cases[] = {
        {"/nowhere/a.sql", "/nowhere/a.sql: cannot be read: No such file or directory"},
        {"tpcb", "tpcb: no such file; the built-in workload is given without -f"},
        {"/", "/: is a directory; give a script file"},
        {"a.sql@x", "a.sql@x: the weight after @ must be a number from 0 to 1e9, not \"x\""},
        {"a.sql@-1", "a.sql@-1: the weight after @ must be a number from 0 to 1e9, not \"-1\""},
        {"a.sql@nan", "a.sql@nan: the weight after @ must be a number"},
        {"%s@0", "no script has a weight above 0, so none would ever run"},
        {"%n", "holds a NUL byte; a script is text"},
        {"%b", "bad.sql:1:3: unterminated string"},
    };
    char dir[] = "/tmp/test_program.XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    char *good = write_file(dir, "good.sql", "S 1;", 4);
    char *nul = write_file(dir, "nul.sql", "S\0;", 3);
    char *bad = write_file(dir, "bad.sql", "S '", 3);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct workload *workload;
        struct err err = ERR_INIT;
        char *name = strcmp(cases[i].file, "%s@0") == 0 ? mem_printf("%s@0", good)
                     : strcmp(cases[i].file, "%n") == 0 ? mem_strdup(nul)
                     : strcmp(cases[i].file, "%b") == 0 ? mem_strdup(bad)
                                                        : mem_strdup(cases[i].file);
        if (workload_load_files(&workload, &name, 1, &standard, &err) == 0)
            fail_msg("%s is accepted", name);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].message))
            fail_msg("%s: %s", name, err.text);
        free(name);
    }
    unlink(good);
    unlink(nul);
    unlink(bad);
    free(good);
    free(nul);
    free(bad);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_use_of_a_variable_is_a_parameter_of_its_own),
        cmocka_unit_test(origins_show_statements_as_written),
        cmocka_unit_test(a_statement_has_at_most_255_variables),
        cmocka_unit_test(explicit_transactions_are_found),
        cmocka_unit_test(errors_name_the_place_and_the_remedy),
        cmocka_unit_test(pipeline_sections_are_checked),
        cmocka_unit_test(pipeline_sections_say_what_is_ahead),
        cmocka_unit_test(defines_are_checked_and_stronger_than_automatic_variables),
        cmocka_unit_test(the_builtin_workloads_compile_for_every_kind_of_engine),
        cmocka_unit_test(an_unknown_builtin_gets_a_suggestion),
        cmocka_unit_test(files_have_names_and_weights),
        cmocka_unit_test(bad_files_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
