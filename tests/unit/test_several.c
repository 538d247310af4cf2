// Sets of runs in the results file: by words, as baselines, and in files of older versions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

static char path[64], other_path[64];

static int make_paths(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/prony-several-%d.db", getpid());
    snprintf(other_path, sizeof(other_path), "/tmp/prony-several-%d-other.db", getpid());
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(path);
    unlink(other_path);
    return 0;
}

static struct store *open_at(const char *at, enum store_mode mode)
{
    struct err err = ERR_INIT;
    struct store *store = NULL;

    if (store_open(&store, at, mode, &err) < 0)
        fail_msg("%s", err.text);
    return store;
}

static void put(struct store *store, const char *label, int64_t block)
{
    static int n;
    struct result *r = result_new();
    struct err err = ERR_INIT;

    r->uuid = mem_printf("%08x-0000-4000-8000-000000000000", ++n);
    r->label = mem_strdup(label);
    r->block = block;
    r->tps = 100 + n;
    r->clients = 1;
    char **texts[] = {&r->status,   &r->target, &r->engine,       &r->workload,
                      &r->protocol, &r->loop,   &r->prony_version};
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        *texts[i] = mem_strdup(i == 0 ? "done" : "x");
    if (store_put(store, r, &err) < 0)
        fail_msg("%s", err.text);
    result_free(r);
}

// Seven runs: before before after after 6 3-4 (none)
static struct store *make_store(enum store_mode mode)
{
    static const char *const labels[] = {"before", "before", "after", "after", "6", "3-4", NULL};
    struct store *store = open_at(path, STORE_WRITE);

    for (size_t i = 0; i < ARR_LEN(labels); i++)
        put(store, labels[i], (int64_t)i / 2);
    store_close(store);
    return open_at(path, mode);
}

// The ids as words: "1 2", or the error's text.
static char *select_words(struct store *store, const char *which)
{
    struct str out = STR_INIT;
    struct err err = ERR_INIT;
    int64_t *ids = NULL;
    int n = 0;

    if (store_select(store, which, &ids, &n, &err) < 0) {
        assert_int_equal(err.kind, ERR_USAGE);
        return mem_strdup(err.text);
    }
    for (int i = 0; i < n; i++)
        str_addf(&out, "%s%lld", i ? " " : "", (long long)ids[i]);
    free(ids);
    return str_detach(&out);
}

static void check(struct store *store, const char *which, const char *expected)
{
    char *got = select_words(store, which);

    if (!strstr(got, expected) || (expected[0] < 'a' && strcmp(got, expected) != 0))
        fail_msg("%s: \"%s\", not \"%s\"", which, got, expected);
    free(got);
}

static void words_name_sets_of_runs(void **state)
{
    static const struct {
        const char *which, *expected; // a set, or a part of the error
    } cases[] = {
        {"before", "1 2"},
        {"after", "3 4"},
        {"1", "1"},
        {"last", "7"},
        {"1,3,7", "1 3 7"},
        {"2-4", "2 3 4"},
        {"7,2-4,3", "2 3 4 7"},
        {"6", "6"},   // a number goes before a label
        {"3-4", "6"}, // a label goes before a range
        {"3-4,1", "1 3 4"},
        {"5-90", "5 6 7"},
        {"00000002", "2"}, // the beginning of a uuid
        {"8", "no run 8"},
        {"0", "no run 0"},
        {"1,8", "no run 8"},
        {"4-2", "is no number"},
        {"1,", "is no number"},
        {"-3", "is no number"},
        {"1-2-3", "is no number"},
        {"1-9000000000", "at most"},
        {"", "no run"},
        {"befor", "no run befor"},
        {"baseline:x", "no baseline x"},
    };
    struct store *store = make_store(STORE_READ);

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        check(store, cases[i].which, cases[i].expected);
    store_close(store);
}

static void baselines_are_kept_replaced_listed_and_removed(void **state)
{
    struct store *store = make_store(STORE_WRITE);
    struct store_baseline *list;
    struct err err = ERR_INIT;
    int replaced = -1, n;

    (void)state;
    assert_int_equal(store_baseline_save(store, "old", (int64_t[]){1, 2}, 2, &replaced, &err), 0);
    assert_int_equal(replaced, 0);
    check(store, "baseline:old", "1 2");
    assert_int_equal(store_baseline_save(store, "old", (int64_t[]){2, 3, 4}, 3, &replaced, &err),
                     0);
    assert_int_equal(replaced, 2);
    assert_int_equal(store_baseline_save(store, "a b", (int64_t[]){7}, 1, &replaced, &err), 0);
    check(store, "baseline:old", "2 3 4");
    assert_int_equal(store_baselines(store, &list, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].name, "a b");
    assert_true(list[1].runs == 3 && list[1].first_id == 2 && list[1].last_id == 4);
    store_baselines_free(list, n);
    assert_int_equal(store_baseline_remove(store, "old", &err), 0);
    check(store, "baseline:old", "no baseline old");
    check(store, "baseline:a b", "7");
    assert_int_equal(store_baseline_remove(store, "old", &err), -1);
    assert_int_equal(store_baseline_save(store, "a:b", (int64_t[]){1}, 1, &replaced, &err), -1);
    assert_int_equal(store_baseline_save(store, "", (int64_t[]){1}, 1, &replaced, &err), -1);
    // A run that is not there: nothing is kept of it, nothing lost.
    assert_int_equal(store_baseline_save(store, "a b", (int64_t[]){1, 99}, 2, &replaced, &err), -1);
    check(store, "baseline:a b", "7");
    store_close(store);
}

// What version 2 lacked is taken away again.
static void make_old(const char *at)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(at, &db), SQLITE_OK);
    if (sqlite3_exec(db,
                     "ALTER TABLE runs DROP COLUMN block; DROP TABLE baselines;"
                     "PRAGMA user_version = 2",
                     NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void files_of_version_2_are_read(void **state)
{
    struct result *result;
    struct store_baseline *list;
    struct err err = ERR_INIT;
    int n = -1;

    (void)state;
    store_close(make_store(STORE_READ));
    make_old(path);
    struct store *store = open_at(path, STORE_READ);
    assert_int_equal(store_get(store, "3", &result, &err), 0);
    assert_string_equal(result->label, "after");
    assert_true(result->block == 0 && result->id == 3);
    result_free(result);
    check(store, "before", "1 2");
    check(store, "baseline:x", "no baseline x");
    assert_int_equal(store_baselines(store, &list, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_int_equal(store_export(store, "3", other_path, &err), 0);
    store_close(store);
}

static void files_of_version_2_are_written_to(void **state)
{
    struct result *result;
    struct err err = ERR_INIT;
    int replaced;

    (void)state;
    store_close(make_store(STORE_READ));
    make_old(path);
    struct store *store = open_at(path, STORE_WRITE);
    put(store, "new", 9);
    assert_int_equal(store_baseline_save(store, "b", (int64_t[]){1, 8}, 2, &replaced, &err), 0);
    store_close(store);
    store = open_at(path, STORE_READ);
    assert_int_equal(store_get_brief(store, 8, &result, &err), 0);
    assert_true(result->block == 9);
    result_free(result);
    assert_int_equal(store_get_brief(store, 4, &result, &err), 0);
    assert_true(result->block == 0);
    result_free(result);
    check(store, "baseline:b", "1 8");
    store_close(store);
}

static void a_run_exported_by_version_2_is_imported(void **state)
{
    struct err err = ERR_INIT;
    int64_t id;
    bool known = true;

    (void)state;
    struct store *store = make_store(STORE_READ);
    assert_int_equal(store_export(store, "3", other_path, &err), 0);
    store_close(store);
    make_old(other_path);
    unlink(path);
    store = open_at(path, STORE_WRITE);
    if (store_import(store, other_path, &id, &known, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(!known && id == 1);
    check(store, "after", "1");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(words_name_sets_of_runs, NULL, remove_files),
        cmocka_unit_test_setup_teardown(baselines_are_kept_replaced_listed_and_removed, NULL,
                                        remove_files),
        cmocka_unit_test_setup_teardown(files_of_version_2_are_read, NULL, remove_files),
        cmocka_unit_test_setup_teardown(files_of_version_2_are_written_to, NULL, remove_files),
        cmocka_unit_test_setup_teardown(a_run_exported_by_version_2_is_imported, NULL,
                                        remove_files),
    };

    return cmocka_run_group_tests(tests, make_paths, remove_files);
}
