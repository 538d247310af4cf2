// Payloads of MySQL's packets, and a statement's answer made into them once.
#pragma once

#include "base/str.h"
#include "sql.h"

enum { MYSQL_UTF8MB4 = 45 }; // the character set of texts

void mysql_add_int(struct str *out, uint64_t value, size_t bytes);
void mysql_add_length(struct str *out, uint64_t value); // "length-encoded"
void mysql_add_text(struct str *out, const char *text); // with its length before it

struct mysql_plan {
    uint32_t id; // of a prepared one
    enum sql_kind kind;
    enum sql_transaction transaction;
    bool is_setup;
    bool told; // its metadata was sent with an answer
    int64_t affected;
    int n_columns;
    struct str columns[SQL_COLUMNS_MAX]; // definitions
    struct str text_row, binary_row;
    const char *state, *message; // SQL_REFUSED
};

void mysql_plan_init(struct mysql_plan *plan);
void mysql_plan_release(struct mysql_plan *plan);

// Of an initialised one, or one that was used before.
void mysql_plan_make(struct mysql_plan *plan, const char *sql, size_t n, int64_t scale);

// A column's definition.
void mysql_set_column(struct str *out, const struct sql_column *column);
