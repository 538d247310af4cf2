// pgbench's tables. What its init writes, checked against version 15: keys from 1, all balances 0,
// filler NULL in branches and tellers, in accounts the empty string (which char(84) pads with
// blanks), history empty; aid is a bigint from scale 20000 on.
#include <assert.h>
#include <stddef.h>

#include "workload/schema.h"

#define TELLERS  10
#define ACCOUNTS 100000

#define BIGINT_SCALE 20000 // here aid would soon outgrow an int

enum { BRANCHES_TABLE, TELLERS_TABLE, ACCOUNTS_TABLE, HISTORY_TABLE, TABLE_COUNT };

static const struct db_column branches_columns[] = {
    {"bid", "int", true},
    {"bbalance", "int"},
    {"filler", "char(88)"},
};

static const struct db_column tellers_columns[] = {
    {"tid", "int", true},
    {"bid", "int"},
    {"tbalance", "int"},
    {"filler", "char(84)"},
};

#define ACCOUNTS_COLUMNS(aid_type)                                                     \
    {                                                                                  \
        {"aid", aid_type, true}, {"bid", "int"}, {"abalance", "int", .constant = "0"}, \
            {"filler", "char(84)", .constant = ""},                                    \
    }
static const struct db_column accounts_columns[] = ACCOUNTS_COLUMNS("int");
static const struct db_column accounts_columns_big[] = ACCOUNTS_COLUMNS("bigint");

#define HISTORY_COLUMNS(aid_type)                                            \
    {                                                                        \
        {"tid", "int"}, {"bid", "int"}, {"aid", aid_type}, {"delta", "int"}, \
            {"mtime", "timestamp"}, {"filler", "char(22)"},                  \
    }
static const struct db_column history_columns[] = HISTORY_COLUMNS("int");
static const struct db_column history_columns_big[] = HISTORY_COLUMNS("bigint");

static const struct db_table tables[TABLE_COUNT] = {
    [BRANCHES_TABLE] = {"pgbench_branches", branches_columns, 3, "bid", 100},
    [TELLERS_TABLE] = {"pgbench_tellers", tellers_columns, 4, "tid", 100},
    [ACCOUNTS_TABLE] = {"pgbench_accounts", accounts_columns, 4, "aid", 100},
    [HISTORY_TABLE] = {"pgbench_history", history_columns, 6, NULL, 0},
};

static const struct db_table tables_big[TABLE_COUNT] = {
    [BRANCHES_TABLE] = {"pgbench_branches", branches_columns, 3, "bid", 100},
    [TELLERS_TABLE] = {"pgbench_tellers", tellers_columns, 4, "tid", 100},
    [ACCOUNTS_TABLE] = {"pgbench_accounts", accounts_columns_big, 4, "aid", 100},
    [HISTORY_TABLE] = {"pgbench_history", history_columns_big, 6, NULL, 0},
};

static const struct db_table *tpcb_table(int i, int64_t scale)
{
    assert(i >= 0 && i < TABLE_COUNT && scale >= 1);
    return scale >= BIGINT_SCALE ? &tables_big[i] : &tables[i];
}

static int64_t tpcb_rows(int i, int64_t scale)
{
    static const int64_t per_scale[TABLE_COUNT] = {
        [BRANCHES_TABLE] = 1,
        [TELLERS_TABLE] = TELLERS,
        [ACCOUNTS_TABLE] = ACCOUNTS,
        [HISTORY_TABLE] = 0,
    };

    assert(i >= 0 && i < TABLE_COUNT && scale >= 1);
    return scale * per_scale[i];
}

static struct db_value integer(int64_t i)
{
    return (struct db_value){.type = DB_INT, .i = i};
}

static void tpcb_row(int i, int64_t row, int64_t scale, struct db_value *values, char *scratch)
{
    const struct db_value null = {.type = DB_NULL};
    const struct db_value empty = {.type = DB_TEXT, .text_len = 0, .s = ""};

    (void)scratch;
    assert(row >= 0 && row < tpcb_rows(i, scale));
    (void)scale;
    values[0] = integer(row + 1);
    switch (i) {
    case BRANCHES_TABLE:
        values[1] = integer(0);
        values[2] = null;
        break;
    case TELLERS_TABLE:
        values[1] = integer(row / TELLERS + 1);
        values[2] = integer(0);
        values[3] = null;
        break;
    case ACCOUNTS_TABLE:
        values[1] = integer(row / ACCOUNTS + 1);
        values[2] = integer(0);
        values[3] = empty;
        break;
    default:
        assert(!"a table without rows");
    }
}

static const char *const balances[] = {
    "select coalesce(sum(abalance), 0) from pgbench_accounts",
    "select coalesce(sum(tbalance), 0) from pgbench_tellers",
    "select coalesce(sum(bbalance), 0) from pgbench_branches",
    "select coalesce(sum(delta), 0) from pgbench_history",
    NULL,
};

static const char *const balance_names[] = {"accounts", "tellers", "branches", "history", NULL};

const struct schema schema_tpcb = {
    .name = "tpcb",
    .version = 1,
    .n_tables = TABLE_COUNT,
    .table = tpcb_table,
    .rows = tpcb_rows,
    .row = tpcb_row,
    .balances = balances,
    .balance_names = balance_names,
    .scale_query = "select count(*) from pgbench_branches",
    .bytes_per_scale = 15700000, // measured: PostgreSQL 15.6 MB
    .scale_max = 214748364,      // tid is an int
};
