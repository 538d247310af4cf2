// What the stub makes of a statement: enough of SQL to give a client an answer of the right shape.
// There are no tables. A SELECT gives one row, whatever it asks for; anything else is done.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQL_COLUMNS_MAX 16
#define SQL_NAME_MAX    64
#define SQL_VALUE_MAX   128

enum sql_kind {
    SQL_EMPTY,  // nothing but blanks
    SQL_ROWS,   // n_columns columns and one row
    SQL_DONE,   // an INSERT, a BEGIN, ...: no rows
    SQL_REFUSED // state and message
};

// What it does to the transaction.
enum sql_transaction { SQL_STAYS, SQL_BEGINS, SQL_COMMITS, SQL_ROLLS_BACK };

enum sql_type { SQL_INT4, SQL_INT8, SQL_CHAR };

struct sql_column {
    char name[SQL_NAME_MAX];
    enum sql_type type;
    bool is_null;
    char value[SQL_VALUE_MAX]; // as text
};

struct sql_answer {
    enum sql_kind kind;
    enum sql_transaction transaction;
    // Asked by a client about the server, before its load: never delayed or failed on purpose, and
    // not counted as a statement.
    bool is_setup;
    int64_t affected;
    char tag[32]; // PostgreSQL's word for what was done: "INSERT 0 1"
    int n_columns;
    struct sql_column columns[SQL_COLUMNS_MAX];
    const char *state; // SQLSTATE
    const char *message;
};

// scale: of pgbench's tables, as the counts of their rows tell it.
void sql_answer(const char *sql, size_t n, int64_t scale, struct sql_answer *ret);

// Length of the first statement of several, without the ';' that ends it.
size_t sql_first(const char *sql, size_t n);

// Number of parameters: the highest N of $N, or the number of '?'.
int sql_parameters(const char *sql, size_t n, bool by_question_mark);

// The number in "kill [query|connection] N", 0 if it is no such statement.
uint32_t sql_kill(const char *sql, size_t n, bool *ret_connection);
