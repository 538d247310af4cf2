#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "db/sqlite.h"

// Pragmas that do something or tell something: no settings of a target.
static const char *const not_settings[] = {
    "collation_list",       "compile_options",      "data_version",   "database_list",
    "foreign_key_list",     "foreign_key_check",    "freelist_count", "function_list",
    "index_info",           "index_list",           "index_xinfo",    "incremental_vacuum",
    "integrity_check",      "module_list",          "optimize",       "page_count",
    "pragma_list",          "quick_check",          "schema_version", "shrink_memory",
    "table_info",           "table_list",           "table_xinfo",    "wal_checkpoint",
    "temp_store_directory", "data_store_directory",
};

static bool is_setting(const char *name)
{
    for (size_t i = 0; i < ARR_LEN(not_settings); i++)
        if (strcasecmp(not_settings[i], name) == 0)
            return false;
    return true;
}

struct names {
    const char **items;
    size_t n, cap;
};

static int add_name(void *arg, int n_columns, char **values, char **columns)
{
    struct names *names = arg;

    (void)columns;
    if (n_columns > 0 && values[0] && is_setting(values[0]))
        *ARR_PUSH(names->items, names->n, names->cap) = mem_strdup(values[0]);
    return 0;
}

int sqlite_pragma_check(const char *name, const char *const *own, struct err *err)
{
    struct names names = {0};
    sqlite3 *db = NULL;
    int r = 0;

    if (!is_setting(name))
        return err_set(err, ERR_USAGE, "sqlite: the pragma %s is not a setting", name);
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "SELECT name FROM pragma_pragma_list", add_name, &names, NULL) !=
            SQLITE_OK)
        r = err_set(err, ERR_FAILED, "sqlite: cannot list the library's pragmas: %s",
                    sqlite3_errmsg(db));
    size_t from_library = names.n;
    for (; *own; own++)
        *ARR_PUSH(names.items, names.n, names.cap) = *own;
    (void)ARR_PUSH(names.items, names.n, names.cap);
    bool known = false;
    for (size_t i = 0; i < from_library; i++)
        known |= strcasecmp(names.items[i], name) == 0;
    if (r == 0 && !known) {
        text_unknown("parameter", name, names.items, err);
        r = err_prefix(err, "sqlite");
    }
    for (size_t i = 0; i < from_library; i++)
        free((char *)names.items[i]);
    free(names.items);
    sqlite3_close(db);
    return r;
}

static bool is_fixed_at_creation(const char *name)
{
    return strcasecmp(name, "page_size") == 0 || strcasecmp(name, "encoding") == 0 ||
           strcasecmp(name, "auto_vacuum") == 0;
}

bool sqlite_pragma_is_first(const char *name)
{
    return is_fixed_at_creation(name);
}

// The number a value stands for, where it stands for one.
static bool meaning(const char *name, const char *text, long long *ret)
{
    static const struct {
        const char *pragma, *word; // pragma NULL: any that the rows before do not name
        int number;
    } words[] = {
        {"synchronous", "off", 0},
        {"synchronous", "normal", 1},
        {"synchronous", "full", 2},
        {"synchronous", "extra", 3},
        {"auto_vacuum", "none", 0},
        {"auto_vacuum", "full", 1},
        {"auto_vacuum", "incremental", 2},
        {"temp_store", "default", 0},
        {"temp_store", "file", 1},
        {"temp_store", "memory", 2},
        {"secure_delete", "fast", 2},
        {NULL, "on", 1},
        {NULL, "yes", 1},
        {NULL, "true", 1},
        {NULL, "off", 0},
        {NULL, "no", 0},
        {NULL, "false", 0},
    };
    char *end;
    const char *digits = text + (*text == '-' || *text == '+');
    int base = strncasecmp(digits, "0x", 2) == 0 ? 16 : 10;

    errno = 0;
    *ret = strtoll(text, &end, base);
    if (end != text && *end == '\0' && errno == 0)
        return true;
    for (size_t i = 0; i < ARR_LEN(words); i++)
        if ((!words[i].pragma || strcasecmp(words[i].pragma, name) == 0) &&
            strcasecmp(words[i].word, text) == 0) {
            *ret = words[i].number;
            return true;
        }
    return false;
}

bool sqlite_pragma_is_same(const char *name, const char *a, const char *b)
{
    long long number_a, number_b;

    if (meaning(name, a, &number_a) && meaning(name, b, &number_b))
        return number_a == number_b;
    return strcasecmp(a, b) == 0;
}

// Runs the pragma and gives the first column of its first row, if there is one.
static int pragma_run(sqlite3 *db, const char *sql, char **ret)
{
    sqlite3_stmt *stmt = NULL;

    *ret = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        *ret = text ? mem_strdup(text) : NULL;
    }
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

char *sqlite_pragma_get(sqlite3 *db, const char *name)
{
    char sql[80];
    char *value;

    assert(strlen(name) < 64);
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA %s", name);
    if (pragma_run(db, sql, &value) != SQLITE_OK) {
        free(value);
        return NULL;
    }
    return value;
}

int sqlite_pragma_set(sqlite3 *db, const char *name, const char *value, struct err *err)
{
    char *had = sqlite_pragma_get(db, name);

    // What already holds is left alone: some settings (journal_mode=wal) are written to the file
    // and need it for themselves.
    if (had && sqlite_pragma_is_same(name, had, value)) {
        free(had);
        return 0;
    }
    free(had);
    char *answer = NULL;
    char *sql = sqlite3_mprintf("PRAGMA %s=%Q", name, value);
    int rc = sql ? pragma_run(db, sql, &answer) : SQLITE_NOMEM;
    sqlite3_free(sql);
    free(answer);
    if (rc != SQLITE_OK)
        return err_set(err, ERR_USAGE, "sqlite: cannot set %s=%s: %s", name, value,
                       sqlite3_errmsg(db));
    char *has = sqlite_pragma_get(db, name);
    int r = 0;
    if (!has)
        r = err_set(err, ERR_USAGE,
                    "sqlite: %s=%s cannot be checked: SQLite gives no value back for it", name,
                    value);
    else if (!sqlite_pragma_is_same(name, has, value))
        r = err_set(err, ERR_USAGE, "sqlite: %s=%s did not take, SQLite has %s%s", name, value, has,
                    is_fixed_at_creation(name) ? " (it is fixed when the file is made)" : "");
    free(has);
    return r;
}
