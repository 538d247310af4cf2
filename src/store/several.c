// Sets of runs: found by words, and kept under a name.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "store/internal.h"

#define RANGE_MAX 1000000 // runs that a range may span; a slip of the finger is longer

struct ids {
    int64_t *items;
    size_t n, cap;
};

static int select_ids(struct store *store, const char *sql, const char *word, struct ids *ids,
                      struct err *err)
{
    sqlite3_stmt *stmt;

    if (store_prepare(store, &stmt, sql, "looking up runs", err) < 0)
        return -1;
    sqlite3_bind_text(stmt, 1, word, -1, SQLITE_STATIC);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        *ARR_PUSH(ids->items, ids->n, ids->cap) = sqlite3_column_int64(stmt, 0);
    if (sqlite3_finalize(stmt) != SQLITE_OK)
        return store_fail(store, "looking up runs", err);
    return 0;
}

// "7" or "7-12".
static bool parse_range(const char *text, int64_t *low, int64_t *high)
{
    char *copy = mem_strdup(text), *dash = strchr(copy, '-');

    if (dash)
        *dash++ = '\0';
    bool is_range = units_parse_int(copy, low, NULL) == 0 && *low >= 0 &&
                    units_parse_int(dash ? dash : copy, high, NULL) == 0 && *high >= *low;
    free(copy);
    return is_range;
}

// All runs with numbers in the range; one that is not there is an error only by itself.
static int select_range(struct store *store, const char *text, struct ids *ids, struct err *err)
{
    int64_t low, high;
    size_t before = ids->n;

    if (!parse_range(text, &low, &high))
        return err_set(err, ERR_USAGE, "%s is no number of a run, nor a range such as 3-12", text);
    if (high - low > RANGE_MAX)
        return err_set(err, ERR_USAGE, "%s: a range of at most %d runs", text, RANGE_MAX);
    char *sql = mem_printf("SELECT id FROM runs WHERE ?1 NOTNULL AND id BETWEEN %lld AND %lld",
                           (long long)low, (long long)high);
    int rc = select_ids(store, sql, text, ids, err);
    free(sql);
    if (rc == 0 && ids->n == before)
        return err_set(err, ERR_USAGE, "no run %s in results file %s: see `prony list`", text,
                       store->path);
    return rc;
}

static int select_list(struct store *store, const char *which, struct ids *ids, struct err *err)
{
    char *copy = mem_strdup(which), *rest = copy, *part;
    int rc = 0;

    while (rc == 0 && (part = strsep(&rest, ",")))
        rc = select_range(store, part, ids, err);
    free(copy);
    return rc;
}

static int select_baseline(struct store *store, const char *name, struct ids *ids, struct err *err)
{
    if (select_ids(store, "SELECT run_id FROM baselines WHERE name = ?1", name, ids, err) < 0)
        return -1;
    return ids->n > 0 ? 0
                      : err_set(err, ERR_USAGE,
                                "no baseline %s in results file %s: see `prony baseline list`",
                                name, store->path);
}

static int select_any(struct store *store, const char *which, struct ids *ids, struct err *err)
{
    static const char prefix[] = "baseline:";
    int64_t id;

    if (strncmp(which, prefix, sizeof(prefix) - 1) == 0)
        return select_baseline(store, which + sizeof(prefix) - 1, ids, err);
    // As store_find has it, a number goes before a label; and a label before a range, for it may
    // look like one.
    bool is_number = which[0] && which[strspn(which, "0123456789")] == '\0';
    if (is_number && select_ids(store, "SELECT id FROM runs WHERE id = CAST(?1 AS INTEGER)", which,
                                ids, err) < 0)
        return -1;
    if (ids->n == 0 &&
        select_ids(store, "SELECT id FROM runs WHERE label = ?1", which, ids, err) < 0)
        return -1;
    if (ids->n > 0)
        return 0;
    if (strpbrk(which, ",-") && which[strspn(which, "0123456789,-")] == '\0')
        return select_list(store, which, ids, err);
    if (store_find(store, which, &id, err) < 0)
        return -1;
    *ARR_PUSH(ids->items, ids->n, ids->cap) = id;
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int store_select(struct store *store, const char *which, int64_t **ret, int *ret_n, struct err *err)
{
    struct ids ids = {0};

    if (select_any(store, which, &ids, err) < 0) {
        free(ids.items);
        return -1;
    }
    qsort(ids.items, ids.n, sizeof(*ids.items), compare_ids);
    int n = 0;
    for (size_t i = 0; i < ids.n; i++)
        if (n == 0 || ids.items[n - 1] != ids.items[i])
            ids.items[n++] = ids.items[i];
    assert(n > 0);
    *ret = ids.items;
    *ret_n = n;
    return 0;
}

// ---- baselines

static int check_name(const char *name, struct err *err)
{
    if (!*name || strpbrk(name, ":,"))
        return err_set(err, ERR_USAGE, "%s: a baseline's name has no `:` and no `,`", name);
    return 0;
}

static int count_of(struct store *store, const char *name, struct err *err)
{
    struct ids ids = {0};
    int rc = select_ids(store, "SELECT run_id FROM baselines WHERE name = ?1", name, &ids, err);

    free(ids.items);
    return rc < 0 ? -1 : (int)ids.n;
}

static int forget(struct store *store, const char *name, struct err *err)
{
    struct ids none = {0};

    return select_ids(store, "DELETE FROM baselines WHERE name = ?1", name, &none, err);
}

static int keep(struct store *store, const char *name, const int64_t *ids, int n, struct err *err)
{
    sqlite3_stmt *stmt;
    bool good = true;

    if (store_prepare(store, &stmt, "INSERT INTO baselines (name, run_id) VALUES (?1, ?2)",
                      "keeping the baseline", err) < 0)
        return -1;
    for (int i = 0; good && i < n; i++) {
        sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(stmt, 2, ids[i]);
        good = sqlite3_step(stmt) == SQLITE_DONE;
        sqlite3_reset(stmt);
    }
    if (!good)
        store_fail(store, "keeping the baseline", err);
    sqlite3_finalize(stmt);
    return good ? 0 : -1;
}

int store_baseline_save(struct store *store, const char *name, const int64_t *ids, int n,
                        int *ret_replaced, struct err *err)
{
    assert(n > 0 && store->mode == STORE_WRITE);
    if (check_name(name, err) < 0 || store_begin(store, err) < 0)
        return -1;
    *ret_replaced = count_of(store, name, err);
    if (*ret_replaced < 0 || forget(store, name, err) < 0 || keep(store, name, ids, n, err) < 0 ||
        store_exec(store, "COMMIT", "keeping the baseline", err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return 0;
}

int store_baseline_remove(struct store *store, const char *name, struct err *err)
{
    assert(store->mode == STORE_WRITE);
    if (store_begin(store, err) < 0)
        return -1;
    int n = count_of(store, name, err);
    if (n == 0)
        err_set(err, ERR_USAGE, "no baseline %s in results file %s: see `prony baseline list`",
                name, store->path);
    if (n <= 0 || forget(store, name, err) < 0 ||
        store_exec(store, "COMMIT", "removing the baseline", err) < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return 0;
}

int store_baselines(struct store *store, struct store_baseline **ret, int *ret_n, struct err *err)
{
    sqlite3_stmt *stmt;
    struct store_baseline *list = NULL;
    size_t n = 0, cap = 0;

    if (store_prepare(store, &stmt,
                      "SELECT name, count(*), min(run_id), max(run_id), avg(tps) "
                      "FROM baselines JOIN runs ON runs.id = run_id GROUP BY name ORDER BY name",
                      "listing the baselines", err) < 0)
        return -1;
    while (sqlite3_step(stmt) == SQLITE_ROW)
        *ARR_PUSH(list, n, cap) = (struct store_baseline){
            .name = mem_strdup((const char *)sqlite3_column_text(stmt, 0)),
            .runs = sqlite3_column_int64(stmt, 1),
            .first_id = sqlite3_column_int64(stmt, 2),
            .last_id = sqlite3_column_int64(stmt, 3),
            .tps = sqlite3_column_double(stmt, 4),
        };
    if (sqlite3_finalize(stmt) != SQLITE_OK) {
        store_baselines_free(list, (int)n);
        return store_fail(store, "listing the baselines", err);
    }
    *ret = list;
    *ret_n = (int)n;
    return 0;
}

void store_baselines_free(struct store_baseline *baselines, int n)
{
    for (int i = 0; i < n; i++)
        free(baselines[i].name);
    free(baselines);
}
