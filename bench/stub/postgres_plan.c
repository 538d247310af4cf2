#include "postgres_plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OID_INT8 = 20, OID_INT4 = 23, OID_BPCHAR = 1042, OID_VARCHAR = 1043 };

// ---- messages

void postgres_add_int16(struct str *out, int value)
{
    uint16_t wire = htons((uint16_t)value);

    str_addn(out, (const char *)&wire, sizeof(wire));
}

void postgres_add_int32(struct str *out, int64_t value)
{
    uint32_t wire = htonl((uint32_t)value);

    str_addn(out, (const char *)&wire, sizeof(wire));
}

size_t postgres_begin(struct str *out, char type)
{
    str_addc(out, type);
    postgres_add_int32(out, 0);
    return out->len;
}

void postgres_end(struct str *out, size_t from)
{
    uint32_t wire = htonl((uint32_t)(out->len - from + 4));

    memcpy(out->buf + from - 4, &wire, sizeof(wire));
}

void postgres_add_text(struct str *out, const char *text)
{
    str_addn(out, text, strlen(text) + 1);
}

void postgres_add_empty(struct str *out, char type)
{
    const char message[5] = {type, 0, 0, 0, 4};

    str_addn(out, message, sizeof(message));
}

void postgres_add_error(struct str *out, const char *state, const char *text)
{
    size_t from = postgres_begin(out, 'E');

    postgres_add_text(out, "SERROR");
    postgres_add_text(out, "VERROR");
    str_addc(out, 'C');
    postgres_add_text(out, state);
    str_addc(out, 'M');
    postgres_add_text(out, text);
    str_addc(out, '\0');
    postgres_end(out, from);
}

void postgres_add_complete(struct str *out, const char *tag)
{
    size_t from = postgres_begin(out, 'C');

    postgres_add_text(out, tag);
    postgres_end(out, from);
}

// ---- plans

static void add_description(struct str *out, const struct sql_answer *a,
                            enum postgres_format format)
{
    size_t from = postgres_begin(out, 'T');

    postgres_add_int16(out, a->n_columns);
    for (int i = 0; i < a->n_columns; i++) {
        const struct sql_column *c = &a->columns[i];
        bool is_char = c->type == SQL_CHAR;
        postgres_add_text(out, c->name);
        postgres_add_int32(out, 0); // of no table
        postgres_add_int16(out, 0);
        postgres_add_int32(out, is_char ? OID_BPCHAR : c->type == SQL_INT8 ? OID_INT8 : OID_INT4);
        postgres_add_int16(out, is_char ? -1 : c->type == SQL_INT8 ? 8 : 4);
        postgres_add_int32(out, is_char ? (int64_t)strlen(c->value) + 4 : -1); // its modifier
        postgres_add_int16(out, format);
    }
    postgres_end(out, from);
}

static void add_value(struct str *out, const struct sql_column *c, enum postgres_format format)
{
    int64_t value = strtoll(c->value, NULL, 10);

    if (c->is_null) {
        postgres_add_int32(out, -1);
    } else if (format == POSTGRES_TEXT || c->type == SQL_CHAR) {
        postgres_add_int32(out, (int64_t)strlen(c->value));
        str_add(out, c->value);
    } else {
        postgres_add_int32(out, c->type == SQL_INT8 ? 8 : 4);
        if (c->type == SQL_INT8)
            postgres_add_int32(out, value >> 32);
        postgres_add_int32(out, value);
    }
}

static void add_row(struct str *out, const struct sql_answer *a, enum postgres_format format)
{
    size_t from = postgres_begin(out, 'D');

    postgres_add_int16(out, a->n_columns);
    for (int i = 0; i < a->n_columns; i++)
        add_value(out, &a->columns[i], format);
    postgres_end(out, from);
}

void postgres_plan_init(struct postgres_plan *plan)
{
    str_init(&plan->parameters);
    for (int i = 0; i < 2; i++) {
        str_init(&plan->as[i].description);
        str_init(&plan->as[i].rows);
    }
}

void postgres_plan_release(struct postgres_plan *plan)
{
    free(plan->name);
    str_release(&plan->parameters);
    for (int i = 0; i < 2; i++) {
        str_release(&plan->as[i].description);
        str_release(&plan->as[i].rows);
    }
}

static void make_messages(struct postgres_plan *plan, const struct sql_answer *a,
                          enum postgres_format format)
{
    struct str *description = &plan->as[format].description;
    struct str *rows = &plan->as[format].rows;

    str_clear(description);
    str_clear(rows);
    switch (a->kind) {
    case SQL_EMPTY:
        postgres_add_empty(description, 'n');
        postgres_add_empty(rows, 'I');
        break;
    case SQL_ROWS:
        add_description(description, a, format);
        add_row(rows, a, format);
        postgres_add_complete(rows, a->tag);
        break;
    case SQL_DONE:
        postgres_add_empty(description, 'n');
        postgres_add_complete(rows, a->tag);
        break;
    case SQL_REFUSED:
        break;
    }
}

void postgres_plan_make(struct postgres_plan *plan, const char *sql, size_t n, int64_t scale,
                        bool text_only)
{
    struct sql_answer a;

    sql_answer(sql, n, scale, &a);
    plan->kind = a.kind;
    plan->transaction = a.transaction;
    plan->is_setup = a.is_setup || a.kind == SQL_REFUSED || a.kind == SQL_EMPTY;
    plan->message = a.message;
    if (a.kind == SQL_REFUSED)
        snprintf(plan->state, sizeof(plan->state), "%s", a.state);
    make_messages(plan, &a, POSTGRES_TEXT);
    if (!text_only)
        make_messages(plan, &a, POSTGRES_BINARY);
}

void postgres_plan_parameters(struct postgres_plan *plan, int n)
{
    size_t from = postgres_begin(&plan->parameters, 't');

    postgres_add_int16(&plan->parameters, n);
    for (int i = 0; i < n; i++)
        postgres_add_int32(&plan->parameters, OID_VARCHAR);
    postgres_end(&plan->parameters, from);
}
