// PostgreSQL's messages, and a statement's answer made into them once.
#pragma once

#include "base/str.h"
#include "sql.h"

// ---- messages: begin gives what end wants

size_t postgres_begin(struct str *out, char type);
void postgres_end(struct str *out, size_t from);
void postgres_add_int16(struct str *out, int value);
void postgres_add_int32(struct str *out, int64_t value);
void postgres_add_text(struct str *out, const char *text); // with its zero byte

// Whole ones.
void postgres_add_empty(struct str *out, char type);
void postgres_add_error(struct str *out, const char *state, const char *text);
void postgres_add_complete(struct str *out, const char *tag);

// ---- plans

enum postgres_format { POSTGRES_TEXT, POSTGRES_BINARY };

struct postgres_plan {
    char *name; // NULL: the text of a simple query; freed with the plan
    enum sql_kind kind;
    enum sql_transaction transaction;
    bool is_setup;
    struct str parameters; // ParameterDescription
    struct {
        struct str description; // RowDescription, or NoData
        struct str rows;        // DataRow and CommandComplete
    } as[2];                    // by enum postgres_format
    char state[6];              // SQL_REFUSED
    const char *message;
};

void postgres_plan_init(struct postgres_plan *plan);
void postgres_plan_release(struct postgres_plan *plan);

// Of an initialised one, or one that was used before. A simple query's is text only.
void postgres_plan_make(struct postgres_plan *plan, const char *sql, size_t n, int64_t scale,
                        bool text_only);
void postgres_plan_parameters(struct postgres_plan *plan, int n);
