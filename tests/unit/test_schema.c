// The tables of tpcb are pgbench's: what its version 15 writes is written down here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/str.h"
#include "db/driver.h"
#include "workload/schema.h"
#include "workload/workload.h"

static void tables_are_created_as_pgbench_creates_them(void **state)
{
    static const struct {
        int64_t scale;
        int fillfactor;
        const char *sql;
    } cases[] = {
        {1, 100,
         "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88), "
         "PRIMARY KEY (bid))"},
        {1, 100,
         "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84), "
         "PRIMARY KEY (tid))"},
        {19999, 100,
         "CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, "
         "filler char(84), PRIMARY KEY (aid))"},
        {19999, 0,
         "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, "
         "filler char(22))"},
        {20000, 100,
         "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88), "
         "PRIMARY KEY (bid))"},
        {20000, 100,
         "CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84), "
         "PRIMARY KEY (tid))"},
        {20000, 100,
         "CREATE TABLE pgbench_accounts (aid bigint NOT NULL, bid int, abalance int, "
         "filler char(84), PRIMARY KEY (aid))"},
        {20000, 0,
         "CREATE TABLE pgbench_history (tid int, bid int, aid bigint, delta int, mtime timestamp, "
         "filler char(22))"},
    };

    (void)state;
    assert_int_equal(schema_tpcb.n_tables, 4);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        const struct db_table *table = schema_tpcb.table((int)i % 4, cases[i].scale);
        struct str sql = STR_INIT;
        db_create_table_sql(table, true, "", &sql);
        assert_string_equal(sql.buf, cases[i].sql);
        assert_int_equal(table->fillfactor, cases[i].fillfactor);
        assert_true(table->n_columns <= SCHEMA_COLUMNS_MAX);
        str_release(&sql);
    }
}

// One row as pgbench -i leaves it, blanks after text left out.
static void rows_are_those_of_pgbench(void **state)
{
    static const struct {
        int table;
        int64_t row;
        const char *text;
    } cases[] = {
        {0, 0, "1|0|NULL"},        {0, 1, "2|0|NULL"},         {1, 0, "1|1|0|NULL"},
        {1, 9, "10|1|0|NULL"},     {1, 10, "11|2|0|NULL"},     {2, 0, "1|1|0|"},
        {2, 99999, "100000|1|0|"}, {2, 100000, "100001|2|0|"}, {2, 199999, "200000|2|0|"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_value values[SCHEMA_COLUMNS_MAX];
        char scratch[SCHEMA_TEXT_MAX];
        char buf[DB_VALUE_TEXT_MAX];
        struct str text = STR_INIT;
        int len;
        schema_tpcb.row(cases[i].table, cases[i].row, 2, values, scratch);
        for (int c = 0; c < schema_tpcb.table(cases[i].table, 2)->n_columns; c++) {
            const char *value = db_value_text(&values[c], buf, &len);
            str_addf(&text, "%s%s", c ? "|" : "", value ? value : "NULL");
        }
        assert_string_equal(text.buf, cases[i].text);
        str_release(&text);
    }
}

static void rows_grow_with_the_scale(void **state)
{
    (void)state;
    assert_int_equal(schema_tpcb.rows(0, 7), 7);
    assert_int_equal(schema_tpcb.rows(1, 7), 70);
    assert_int_equal(schema_tpcb.rows(2, 7), 700000);
    assert_int_equal(schema_tpcb.rows(3, 7), 0);
    assert_int_equal(schema_tpcb.rows(2, schema_tpcb.scale_max), schema_tpcb.scale_max * 100000);
    assert_true(schema_tpcb.rows(1, schema_tpcb.scale_max) <= INT32_MAX);
    assert_true(schema_tpcb.rows(1, schema_tpcb.scale_max + 1) > INT32_MAX);
}

static void every_balance_has_a_query_and_a_name(void **state)
{
    int n = 0;

    (void)state;
    while (schema_tpcb.balances[n]) {
        assert_non_null(schema_tpcb.balance_names[n]);
        assert_non_null(strstr(schema_tpcb.balances[n], schema_tpcb.balance_names[n]));
        n++;
    }
    assert_int_equal(n, 4);
    assert_null(schema_tpcb.balance_names[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_created_as_pgbench_creates_them),
        cmocka_unit_test(rows_are_those_of_pgbench),
        cmocka_unit_test(rows_grow_with_the_scale),
        cmocka_unit_test(every_balance_has_a_query_and_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
