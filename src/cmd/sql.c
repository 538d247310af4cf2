// prony sql: a person's own question to the results file, as a table, CSV (RFC 4180) or JSON.
#include <jansson.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "store/store.h"

struct sql_options {
    bool csv, json;
    char *store;
};

#define AT(member) offsetof(struct sql_options, member)

static const struct opt_row rows[] = {
    {"csv", 0, OPT_FLAG, AT(csv), .group = "Options", .help = "comma-separated, with a header"},
    {"json", 0, OPT_FLAG, AT(json), .help = "an array of objects"},
    {"store", 0, OPT_TEXT, AT(store), .arg = "FILE",
     .help = "results file, else $PRONY_STORE or ./prony.db"},
    {NULL},
};

static const struct opt_command sql_command = {
    .name = "sql",
    .usage = "QUERY",
    .summary = "ask the results file in SQL (reading only; tables: docs/store.md)",
    .example = "prony sql 'SELECT label, avg(tps) FROM runs GROUP BY label' --csv",
    .rows = rows,
    .min_args = 1,
    .max_args = 1,
};

// Bytes are no text: hex(column) shows them.
static const char *text_of(const char *value, int type)
{
    return !value ? "" : type == SQLITE_BLOB ? "(blob)" : value;
}

// ---- a table: widths are known only after the last row, so rows are kept

struct table {
    char **cells; // row by row, the header first
    bool *right;  // numbers
    size_t n, cap, n_right, cap_right;
    int columns;
};

static void table_row(void *arg, int n, const char *const *names, const char *const *values,
                      const int *types)
{
    struct table *table = arg;

    table->columns = n;
    for (int i = 0; i < n; i++) {
        struct str safe = STR_INIT;
        text_add_safe(&safe, values ? text_of(values[i], types[i]) : names[i]);
        *ARR_PUSH(table->cells, table->n, table->cap) = str_detach(&safe);
        *ARR_PUSH(table->right, table->n_right, table->cap_right) =
            values && (types[i] == SQLITE_INTEGER || types[i] == SQLITE_FLOAT);
    }
}

static void table_print_and_free(struct table *table)
{
    int *widths = mem_calloc((size_t)table->columns, sizeof(*widths));

    for (size_t i = 0; i < table->n; i++) {
        int width = text_columns(table->cells[i]);
        int *widest = &widths[i % (size_t)table->columns];
        if (width > *widest)
            *widest = width;
    }
    for (size_t i = 0; i < table->n; i++) {
        size_t column = i % (size_t)table->columns;
        bool last = column + 1 == (size_t)table->columns;
        int pad = widths[column] - text_columns(table->cells[i]);
        printf("%*s%s%*s%s", table->right[i] ? pad : 0, "", table->cells[i],
               table->right[i] || last ? 0 : pad, "", last ? "\n" : "  ");
        free(table->cells[i]);
    }
    free(widths);
    free(table->cells);
    free(table->right);
}

// ---- CSV, JSON

static void csv_row(void *arg, int n, const char *const *names, const char *const *values,
                    const int *types)
{
    (void)arg;
    for (int i = 0; i < n; i++) {
        const char *text = values ? text_of(values[i], types[i]) : names[i];
        if (i)
            putchar(',');
        if (!text[strcspn(text, ",\"\r\n")]) {
            fputs(text, stdout);
            continue;
        }
        putchar('"');
        for (; *text; text++) {
            if (*text == '"')
                putchar('"');
            putchar(*text);
        }
        putchar('"');
    }
    fputs("\r\n", stdout);
}

static void json_row(void *arg, int n, const char *const *names, const char *const *values,
                     const int *types)
{
    json_t *array = arg;

    if (!values)
        return;
    json_t *object = json_object();
    for (int i = 0; i < n; i++) {
        json_t *value = json_null();
        if (values[i] && types[i] == SQLITE_INTEGER)
            value = json_integer(strtoll(values[i], NULL, 10));
        else if (values[i] && types[i] == SQLITE_FLOAT)
            value = json_real(strtod(values[i], NULL));
        else if (values[i] && types[i] != SQLITE_BLOB)
            value = json_string(values[i]);
        json_object_set_new(object, names[i], value ? value : json_null());
    }
    json_array_append_new(array, object);
}

static int sql_main(int argc, char **argv)
{
    struct sql_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    struct store *store = NULL;
    struct table table = {0};
    json_t *array = json_array();
    int status = 0;

    if (cmd_parse(&sql_command, argc, argv, &options, args, &status) < 0)
        goto out;
    if (options.csv && options.json)
        err_set(&err, ERR_USAGE, "--csv and --json exclude each other: leave one away");
    else if (store_open(&store, options.store, STORE_READ, &err) == 0) {
        if (options.csv)
            store_sql(store, args[0], csv_row, NULL, &err);
        else if (options.json)
            store_sql(store, args[0], json_row, array, &err);
        else
            store_sql(store, args[0], table_row, &table, &err);
        if (table.columns)
            table_print_and_free(&table);
        if (options.json && !err.kind) {
            json_dumpf(array, stdout, JSON_INDENT(2));
            putchar('\n');
        }
    }
    status = err.kind ? cmd_fail(&err) : 0;
out:
    json_decref(array);
    store_close(store);
    opt_release(rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_sql = {&sql_command, sql_main};
