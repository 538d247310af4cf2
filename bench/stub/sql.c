#include "sql.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKED_AT 512 // bytes of a statement

// ---- reading

// Where a quoted text, a comment or a single character that begins at `at` ends.
static size_t skip_token(const char *sql, size_t n, size_t at)
{
    char c = sql[at];

    if (c == '\'' || c == '"' || c == '`') {
        for (at++; at < n && sql[at] != c; at++)
            if (sql[at] == '\\' && c == '\'')
                at++;
        return at < n ? at + 1 : n;
    }
    if (c == '-' && at + 1 < n && sql[at + 1] == '-') {
        while (at < n && sql[at] != '\n')
            at++;
        return at;
    }
    if (c == '/' && at + 1 < n && sql[at + 1] == '*') {
        for (at += 2; at + 1 < n; at++)
            if (sql[at] == '*' && sql[at + 1] == '/')
                return at + 2;
        return n;
    }
    return at + 1;
}

static bool is_comment(const char *sql, size_t n, size_t at)
{
    return at + 1 < n &&
           ((sql[at] == '-' && sql[at + 1] == '-') || (sql[at] == '/' && sql[at + 1] == '*'));
}

// Lower case, without comments, one blank for each run of blanks, none at the ends.
static size_t plain_text(const char *sql, size_t n, char *out, size_t size)
{
    size_t len = 0;
    bool blank = false;

    for (size_t at = 0; at < n && len + 2 < size;) {
        size_t next = skip_token(sql, n, at);
        if (is_comment(sql, n, at) || isspace((unsigned char)sql[at]) || sql[at] == '\0') {
            blank = len > 0;
            at = next;
            continue;
        }
        if (blank)
            out[len++] = ' ';
        blank = false;
        for (; at < next && len + 1 < size; at++)
            out[len++] = (char)tolower((unsigned char)sql[at]);
        at = next;
    }
    out[len] = '\0';
    return len;
}

static bool begins(const char *text, const char *words)
{
    size_t n = strlen(words);

    return strncmp(text, words, n) == 0 && !isalnum((unsigned char)text[n]) && text[n] != '_';
}

static bool holds(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

size_t sql_first(const char *sql, size_t n)
{
    for (size_t at = 0; at < n; at = skip_token(sql, n, at))
        if (sql[at] == ';')
            return at;
    return n;
}

int sql_parameters(const char *sql, size_t n, bool by_question_mark)
{
    int count = 0;

    for (size_t at = 0; at < n; at = skip_token(sql, n, at)) {
        if (by_question_mark && sql[at] == '?')
            count++;
        if (!by_question_mark && sql[at] == '$') {
            int number = 0;
            for (size_t i = at + 1; i < n && isdigit((unsigned char)sql[i]) && number < 10000; i++)
                number = 10 * number + (sql[i] - '0');
            count = number > count ? number : count;
        }
    }
    return count;
}

uint32_t sql_kill(const char *sql, size_t n, bool *ret_connection)
{
    char text[64];

    plain_text(sql, n, text, sizeof(text));
    if (!begins(text, "kill"))
        return 0;
    const char *number = text + strcspn(text, "0123456789");
    *ret_connection = !begins(text, "kill query");
    return (uint32_t)strtoul(number, NULL, 10);
}

// ---- columns

static void set_name(struct sql_column *column, const char *name, size_t n)
{
    if (n >= sizeof(column->name))
        n = sizeof(column->name) - 1;
    memcpy(column->name, name, n);
    column->name[n] = '\0';
}

static struct sql_column *add_column(struct sql_answer *a, const char *name, enum sql_type type)
{
    struct sql_column *column = &a->columns[a->n_columns++];

    *column = (struct sql_column){.type = type};
    set_name(column, name, strlen(name));
    return column;
}

static void add_number(struct sql_answer *a, const char *name, int64_t value)
{
    struct sql_column *column = add_column(a, name, SQL_INT8);

    snprintf(column->value, sizeof(column->value), "%" PRId64, value);
}

// What sysbench's rows look like: ten groups of eleven digits, CHAR(120).
static void add_groups_of_digits(struct sql_answer *a)
{
    struct sql_column *column = add_column(a, "c", SQL_CHAR);

    for (int i = 0; i < 119; i++)
        column->value[i] = i % 12 == 11 ? '-' : (char)('0' + i * 7 % 10);
    column->value[119] = ' '; // blanks fill it up
    column->value[120] = '\0';
}

// The name that an engine would give to one item of a list: the last word, of what is no word none.
static void name_item(struct sql_column *column, const char *item, size_t n)
{
    while (n > 0 && item[n - 1] == ' ')
        n--;
    size_t from = n;
    while (from > 0 && (isalnum((unsigned char)item[from - 1]) || item[from - 1] == '_'))
        from--;
    if (from < n && !isdigit((unsigned char)item[from]))
        set_name(column, item + from, n - from);
    else
        set_name(column, "?column?", 8);
}

// A column of value 1 for each item between SELECT and FROM. text is plain_text's.
static void add_listed_columns(struct sql_answer *a, const char *text)
{
    const char *list = text + strcspn(text, " ");
    int depth = 0;
    size_t n = strlen(list), from = 0, at = 0;

    while (at < n && a->n_columns < SQL_COLUMNS_MAX) {
        depth += (list[at] == '(') - (list[at] == ')');
        bool at_end = depth == 0 && begins(list + at, " from");
        if (at_end || (depth == 0 && list[at] == ',')) {
            name_item(add_column(a, "", SQL_INT4), list + from, at - from);
            from = at + 1;
        }
        if (at_end)
            break;
        at = skip_token(list, n, at);
        if (at >= n && a->n_columns < SQL_COLUMNS_MAX)
            name_item(add_column(a, "", SQL_INT4), list + from, n - from);
    }
    if (a->n_columns == 0)
        add_column(a, "?column?", SQL_INT4);
    for (int i = 0; i < a->n_columns; i++)
        memcpy(a->columns[i].value, "1", 2);
}

// ---- answering

static void refuse(struct sql_answer *a, const char *state, const char *message)
{
    a->kind = SQL_REFUSED;
    a->state = state;
    a->message = message;
}

static void count_rows(struct sql_answer *a, const char *text, int64_t scale)
{
    int64_t rows = holds(text, "pgbench_branches")   ? scale
                   : holds(text, "pgbench_tellers")  ? 10 * scale
                   : holds(text, "pgbench_accounts") ? 100000 * scale
                   : holds(text, "pgbench_history")  ? 0
                                                     : 1;
    a->is_setup = true;
    add_number(a, "count", rows);
}

static void answer_select(struct sql_answer *a, const char *text, int64_t scale)
{
    a->kind = SQL_ROWS;
    snprintf(a->tag, sizeof(a->tag), "SELECT 1");
    if (holds(text, "partstrat")) { // pgbench asks whether its table is partitioned
        a->is_setup = true;
        add_number(a, "n", 1);
        add_column(a, "partstrat", SQL_CHAR)->is_null = true;
        add_number(a, "count", 0);
    } else if (holds(text, "pg_") || holds(text, "information_schema") ||
               holds(text, "performance_schema") || holds(text, "current_setting") ||
               holds(text, "inet_server_addr")) {
        a->is_setup = true;
        refuse(a, "0A000", "the stub has no catalog");
    } else if (holds(text, "prony_init")) {
        a->is_setup = true;
        refuse(a, "42P01", "relation \"prony_init\" does not exist");
    } else if (holds(text, "count(*) from ")) {
        count_rows(a, text, scale);
    } else if (holds(text, "sum(")) { // balances
        add_number(a, "sum", 0);
    } else if (begins(text, "select c from sbtest") || holds(text, " c from sbtest")) {
        add_groups_of_digits(a);
    } else {
        add_listed_columns(a, text);
        a->is_setup = begins(text, "select 1 from") || begins(text, "select current_user");
        if (strncmp(text, "select @@", 9) == 0) { // a variable: no limit, off
            a->is_setup = true;
            memcpy(a->columns[0].value, "0", 2);
        } else if (begins(text, "select version")) {
            a->is_setup = true;
            a->columns[0].type = SQL_CHAR;
            snprintf(a->columns[0].value, SQL_VALUE_MAX, "stub, no database");
        }
    }
}

struct word {
    const char *word;
    const char *tag; // NULL: the word itself
    enum sql_transaction transaction;
    int affected;
    bool is_setup;
};

static const struct word words[] = {
    {"insert", "INSERT 0 1", SQL_STAYS, 1, false},
    {"update", "UPDATE 1", SQL_STAYS, 1, false},
    {"delete", "DELETE 1", SQL_STAYS, 1, false},
    {"replace", "INSERT 0 1", SQL_STAYS, 1, false},
    {"begin", "BEGIN", SQL_BEGINS, 0, false},
    {"start", "START TRANSACTION", SQL_BEGINS, 0, false},
    {"commit", "COMMIT", SQL_COMMITS, 0, false},
    {"end", "COMMIT", SQL_COMMITS, 0, false},
    {"rollback", "ROLLBACK", SQL_ROLLS_BACK, 0, false},
    {"abort", "ROLLBACK", SQL_ROLLS_BACK, 0, false},
    {"set", "SET", SQL_STAYS, 0, true},
    {"vacuum", "VACUUM", SQL_STAYS, 0, true},
    {"truncate", "TRUNCATE TABLE", SQL_STAYS, 0, true},
    {"analyze", "ANALYZE", SQL_STAYS, 0, true},
    {"discard", "DISCARD ALL", SQL_STAYS, 0, true},
    {"create", "CREATE TABLE", SQL_STAYS, 0, true},
    {"drop", "DROP TABLE", SQL_STAYS, 0, true},
    {"use", "USE", SQL_STAYS, 0, true},
    {"kill", "KILL", SQL_STAYS, 0, true},
};

void sql_answer(const char *sql, size_t n, int64_t scale, struct sql_answer *ret)
{
    char text[LOOKED_AT];

    *ret = (struct sql_answer){.kind = SQL_DONE};
    size_t len = plain_text(sql, n, text, sizeof(text));
    if (len == 0) {
        ret->kind = SQL_EMPTY;
        return;
    }
    if (begins(text, "select") || begins(text, "with") || text[0] == '(') {
        answer_select(ret, text, scale);
        return;
    }
    if (begins(text, "show")) {
        ret->is_setup = true;
        refuse(ret, "0A000", "the stub has no settings to show");
        return;
    }
    if (begins(text, "copy") || begins(text, "load data")) {
        refuse(ret, "0A000", "the stub takes no bulk load");
        return;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (begins(text, words[i].word)) {
            ret->transaction = words[i].transaction;
            ret->affected = words[i].affected;
            ret->is_setup = words[i].is_setup;
            snprintf(ret->tag, sizeof(ret->tag), "%s", words[i].tag);
            return;
        }
    }
    // A savepoint, a CALL, a LOCK TABLES: done, whatever it was.
    snprintf(ret->tag, sizeof(ret->tag), "%.*s", (int)strcspn(text, " (;"), text);
    for (char *c = ret->tag; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}
