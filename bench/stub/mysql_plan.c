#include "mysql_plan.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_LONG = 3, TYPE_LONGLONG = 8, TYPE_STRING = 254 };
enum { CHARSET_BINARY = 63 };

// ---- payloads

void mysql_add_int(struct str *out, uint64_t value, size_t bytes)
{
    uint64_t wire = htole64(value);

    str_addn(out, (const char *)&wire, bytes);
}

void mysql_add_length(struct str *out, uint64_t value)
{
    if (value < 251) {
        str_addc(out, (char)value);
    } else {
        str_addc(out, (char)0xfc);
        mysql_add_int(out, value, 2);
    }
}

void mysql_add_text(struct str *out, const char *text)
{
    mysql_add_length(out, strlen(text));
    str_add(out, text);
}
// ---- plans

void mysql_set_column(struct str *out, const struct sql_column *c)
{
    bool is_char = c->type == SQL_CHAR;

    str_clear(out);
    mysql_add_text(out, "def");
    mysql_add_text(out, ""); // schema
    mysql_add_text(out, ""); // table, and its own name
    mysql_add_text(out, "");
    mysql_add_text(out, c->name);
    mysql_add_text(out, "");
    str_addc(out, 0x0c); // length of what follows
    mysql_add_int(out, is_char ? MYSQL_UTF8MB4 : CHARSET_BINARY, 2);
    mysql_add_int(out, is_char ? 4 * strlen(c->value) : c->type == SQL_INT8 ? 20 : 11, 4);
    str_addc(out, (char)(is_char ? TYPE_STRING : c->type == SQL_INT8 ? TYPE_LONGLONG : TYPE_LONG));
    mysql_add_int(out, 0, 2); // flags
    str_addc(out, 0);         // decimals
    mysql_add_int(out, 0, 2);
}

static void set_rows(struct mysql_plan *plan, const struct sql_answer *a)
{
    char nulls[(SQL_COLUMNS_MAX + 9) / 8] = {0};

    str_clear(&plan->text_row);
    str_clear(&plan->binary_row);
    for (int i = 0; i < a->n_columns; i++)
        if (a->columns[i].is_null)
            nulls[(i + 2) / 8] |= (char)(1 << (i + 2) % 8);
    str_addc(&plan->binary_row, 0);
    str_addn(&plan->binary_row, nulls, (size_t)(a->n_columns + 9) / 8);
    for (int i = 0; i < a->n_columns; i++) {
        const struct sql_column *c = &a->columns[i];
        if (c->is_null) {
            str_addc(&plan->text_row, (char)0xfb);
            continue;
        }
        mysql_add_text(&plan->text_row, c->value);
        if (c->type == SQL_CHAR)
            mysql_add_text(&plan->binary_row, c->value);
        else
            mysql_add_int(&plan->binary_row, (uint64_t)strtoll(c->value, NULL, 10),
                          c->type == SQL_INT8 ? 8 : 4);
    }
}

void mysql_plan_init(struct mysql_plan *plan)
{
    for (int i = 0; i < SQL_COLUMNS_MAX; i++)
        str_init(&plan->columns[i]);
    str_init(&plan->text_row);
    str_init(&plan->binary_row);
}

void mysql_plan_release(struct mysql_plan *plan)
{
    for (int i = 0; i < SQL_COLUMNS_MAX; i++)
        str_release(&plan->columns[i]);
    str_release(&plan->text_row);
    str_release(&plan->binary_row);
}

void mysql_plan_make(struct mysql_plan *plan, const char *sql, size_t n, int64_t scale)
{
    struct sql_answer a;

    sql_answer(sql, n, scale, &a);
    plan->kind = a.kind;
    plan->transaction = a.transaction;
    plan->is_setup = a.is_setup || a.kind == SQL_REFUSED || a.kind == SQL_EMPTY;
    plan->told = false;
    plan->affected = a.affected;
    plan->n_columns = a.n_columns;
    plan->state = a.state;
    plan->message = a.message;
    for (int i = 0; i < a.n_columns; i++)
        mysql_set_column(&plan->columns[i], &a.columns[i]);
    if (a.kind == SQL_ROWS)
        set_rows(plan, &a);
    if (a.kind == SQL_EMPTY) {
        plan->kind = SQL_REFUSED;
        plan->state = "42000";
        plan->message = "Query was empty";
    }
}
