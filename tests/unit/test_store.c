// The results file: what goes in comes out, whole or not at all; other files are left alone.
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "store/store.h"

static char dir[64];

static char *in_dir(const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/prony-test-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char *command[] = {"rm", "-rf", dir, NULL};

    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        _exit(1);
    }
    return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static void fill_hist(struct hist_sparse *to, int n)
{
    static struct hist dense;

    hist_init(&dense);
    for (int i = 0; i < n; i++)
        hist_record(&dense, 1000 * (i + 1));
    hist_sparse_from(to, &dense);
}

// A result in which every field differs from zero and from its neighbours.
static struct result *full_result(const char *uuid)
{
    struct result *r = result_new();

    r->uuid = mem_strdup(uuid);
    r->status = mem_strdup("done");
    r->failure = mem_strdup("why \"not\"");
    r->started_real_ns = 1764513300123456789;
    r->ended_real_ns = 1764513360123456789;
    r->started_mono_ns = 111;
    r->ended_mono_ns = 222;
    r->boot_id = mem_strdup("boot");
    r->prony_version = mem_strdup("0.1.0");
    r->command = mem_strdup("prony run 'sqlite:a b'");
    r->label = mem_strdup("before");
    r->note = mem_strdup("line one\nline two; DROP TABLE runs");
    r->target = mem_strdup("sqlite:a b");
    r->engine = mem_strdup("sqlite");
    r->engine_version = mem_strdup("3.40");
    r->workload = mem_strdup("tpcb");
    r->workload_hash = mem_strdup("0123456789abcdef");
    r->scale = 7;
    r->block = 8;
    r->clients = 2;
    r->threads = 2;
    r->loop = mem_strdup("threads");
    r->protocol = mem_strdup("prepared");
    r->seed = UINT64_MAX - 1;
    r->rate_tps = 12.5;
    kvs_add(&r->options, "clients", "2");
    kvs_add(&r->options, "define", "a=1");
    kvs_add(&r->options, "define", "b=2");
    r->duration_s = 60.25;
    r->warmup_s = 4;
    r->steady = true;
    r->steady_why = mem_strdup("no");
    r->counts = (struct result_counts){.planned = 146,
                                       .done = 120,
                                       .failed = 5,
                                       .skipped = 6,
                                       .unknown = 4,
                                       .backlog = 8,
                                       .in_flight = 3,
                                       .retried = 9,
                                       .retries = 10};
    r->errors[DB_DEADLOCK] = 14;
    r->errors[DB_OTHER] = 15;
    r->window_s = 56.25;
    r->window_done = 100;
    r->tps = 1.777;
    r->latency.present = r->service.present = true;
    fill_hist(&r->latency.hist, 100);
    fill_hist(&r->service.hist, 90);
    fill_hist(&r->given_hist, 80);
    r->given_delay = r->given_hist.m;
    r->lock_wait_ns = 16;
    r->statements = mem_calloc(2, sizeof(*r->statements));
    r->n_statements = 2;
    for (int i = 0; i < 2; i++)
        r->statements[i] = (struct result_statement){
            .script = mem_strdup("s.sql"),
            .sql = mem_printf("SELECT %d", i),
            .count = 50 + i,
            .failed = i,
            .rows = 70 + i,
            .m = {.count = 50 + i, .min_ns = 100, .max_ns = 900000, .sum_ns = 5e6, .sum_sq = 6e12},
            .p50_ns = 95000 + i,
            .p99_ns = 850000 + i,
        };
    r->series = mem_calloc(3, sizeof(*r->series));
    r->n_series = 3;
    for (int i = 0; i < 3; i++) {
        r->series[i] = (struct result_second){.t_s = 2 * i, .done = i, .errors = 3 - i};
        fill_hist(&r->series[i].latency, i);
    }
    r->slowest = mem_calloc(1, sizeof(*r->slowest));
    r->n_slowest = 1;
    r->slowest[0] = (struct result_slow){1, 42, 5000000000, 123456789, 1};
    r->done_by_client = mem_calloc(2, sizeof(*r->done_by_client));
    r->done_by_client[0] = 50;
    r->done_by_client[1] = 70;
    r->outages = mem_calloc(1, sizeof(*r->outages));
    r->n_outages = 1;
    r->outages[0] = (struct result_outage){10.5, 15.75};
    r->reconnects = 17;
    r->reconnect_attempts = 18;
    r->outage_s = 5.25;
    r->cpu_user_s = 1.5;
    r->cpu_sys_s = 0.5;
    r->cpu_us_per_statement = 3.25;
    r->statements_sent = 840;
    kvs_add(&r->counters, "checkpoints", "3");
    kvs_add(&r->environment, "host.kernel", "Linux");
    kvs_add(&r->environment, "data.path", "unknown: not told");
    result_add_warning(r, "too-short", "only %d s", 30);
    result_add_warning(r, "errors", "some");
    r->limit_id = mem_strdup("flush");
    r->limit_text = mem_strdup("the flush of commits");
    r->watch = mem_calloc(2, sizeof(*r->watch));
    r->n_watch = 2;
    r->watch[0] = (struct result_watch){.subject = mem_strdup("vda"), .name = mem_strdup("queue")};
    r->watch[1] =
        (struct result_watch){.subject = mem_strdup("waits"), .name = mem_strdup("a 'b'")};
    result_watch_set(&r->watch[0], 0, 0.5);
    result_watch_set(&r->watch[0], 2, 1.25e9);
    return r;
}

static void assert_hist_equal(const struct hist_sparse *a, const struct hist_sparse *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->m.count, b->m.count);
    assert_int_equal(a->m.max_ns, b->m.max_ns);
    assert_true(a->m.sum_ns == b->m.sum_ns);
    for (int i = 0; i < a->n; i++) {
        assert_int_equal(a->bucket[i], b->bucket[i]);
        assert_int_equal(a->counts[i], b->counts[i]);
    }
}

static void assert_kvs_equal(const struct kvs *a, const struct kvs *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_string_equal(a->items[i].key, b->items[i].key);
        assert_string_equal(a->items[i].value, b->items[i].value);
    }
}

#define SAME_TEXT(field)   assert_string_equal(a->field, b->field)
#define SAME_NUMBER(field) assert_true(a->field == b->field)

static void assert_result_equal(const struct result *a, const struct result *b)
{
    SAME_TEXT(uuid), SAME_TEXT(status), SAME_TEXT(failure), SAME_TEXT(boot_id);
    SAME_TEXT(prony_version), SAME_TEXT(command), SAME_TEXT(label), SAME_TEXT(note);
    SAME_TEXT(target), SAME_TEXT(engine), SAME_TEXT(engine_version), SAME_TEXT(workload);
    SAME_TEXT(workload_hash), SAME_TEXT(loop), SAME_TEXT(protocol), SAME_TEXT(steady_why);
    SAME_NUMBER(started_real_ns), SAME_NUMBER(ended_real_ns), SAME_NUMBER(started_mono_ns);
    SAME_NUMBER(block), SAME_NUMBER(ended_mono_ns), SAME_NUMBER(scale), SAME_NUMBER(clients),
        SAME_NUMBER(threads);
    SAME_NUMBER(seed), SAME_NUMBER(rate_tps), SAME_NUMBER(duration_s), SAME_NUMBER(warmup_s);
    SAME_NUMBER(steady), SAME_NUMBER(window_s), SAME_NUMBER(window_done), SAME_NUMBER(tps);
    SAME_NUMBER(lock_wait_ns), SAME_NUMBER(reconnects), SAME_NUMBER(reconnect_attempts);
    SAME_NUMBER(outage_s), SAME_NUMBER(cpu_user_s), SAME_NUMBER(cpu_sys_s);
    SAME_NUMBER(cpu_us_per_statement), SAME_NUMBER(statements_sent);
    assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
    assert_memory_equal(a->errors, b->errors, sizeof(a->errors));
    assert_hist_equal(&a->latency.hist, &b->latency.hist);
    assert_hist_equal(&a->service.hist, &b->service.hist);
    assert_hist_equal(&a->given_hist, &b->given_hist);
    assert_kvs_equal(&a->options, &b->options);
    assert_kvs_equal(&a->counters, &b->counters);
    assert_kvs_equal(&a->environment, &b->environment);
    SAME_NUMBER(n_statements), SAME_NUMBER(n_series), SAME_NUMBER(n_slowest);
    SAME_NUMBER(n_outages), SAME_NUMBER(n_warnings), SAME_NUMBER(n_watch);
    SAME_TEXT(limit_id), SAME_TEXT(limit_text);
    for (int i = 0; i < a->n_watch; i++) {
        SAME_TEXT(watch[i].subject), SAME_TEXT(watch[i].name), SAME_NUMBER(watch[i].n);
        for (int s = 0; s < a->watch[i].n; s++)
            assert_true(isnan(a->watch[i].values[s])
                            ? isnan(b->watch[i].values[s])
                            : a->watch[i].values[s] == b->watch[i].values[s]);
    }
    for (int i = 0; i < a->n_statements; i++) {
        SAME_TEXT(statements[i].sql), SAME_TEXT(statements[i].script);
        SAME_NUMBER(statements[i].count), SAME_NUMBER(statements[i].failed);
        SAME_NUMBER(statements[i].rows), SAME_NUMBER(statements[i].p50_ns);
        SAME_NUMBER(statements[i].p99_ns), SAME_NUMBER(statements[i].m.max_ns);
        SAME_NUMBER(statements[i].m.min_ns), SAME_NUMBER(statements[i].m.sum_sq);
    }
    for (int i = 0; i < a->n_series; i++) {
        SAME_NUMBER(series[i].t_s), SAME_NUMBER(series[i].done), SAME_NUMBER(series[i].errors);
        assert_int_equal(a->series[i].latency.m.count, b->series[i].latency.m.count);
    }
    assert_memory_equal(a->slowest, b->slowest, sizeof(*a->slowest));
    assert_memory_equal(a->outages, b->outages, sizeof(*a->outages));
    for (int i = 0; i < a->clients; i++)
        SAME_NUMBER(done_by_client[i]);
    for (int i = 0; i < a->n_warnings; i++)
        SAME_TEXT(warnings[i].id), SAME_TEXT(warnings[i].text);
}

static struct store *open_store(const char *name, enum store_mode mode)
{
    char *path = in_dir(name);
    struct err err = ERR_INIT;
    struct store *store = NULL;

    if (store_open(&store, path, mode, &err) < 0)
        fail_msg("%s", err.text);
    free(path);
    return store;
}

static void put(struct store *store, struct result *result)
{
    struct err err = ERR_INIT;

    if (store_put(store, result, &err) < 0)
        fail_msg("%s", err.text);
}

static const char uuid_a[] = "aaaaaaaa-0000-4000-8000-000000000001";
static const char uuid_b[] = "bbbbbbbb-0000-4000-8000-000000000002";

static void a_result_comes_out_as_it_went_in(void **state)
{
    struct store *store = open_store("a.db", STORE_WRITE);
    struct result *in = full_result(uuid_a), *out = NULL;
    struct err err = ERR_INIT;

    (void)state;
    put(store, in);
    assert_int_equal(store_get(store, "last", &out, &err), 0);
    assert_int_equal(out->id, in->id);
    assert_result_equal(in, out);
    result_check(out);
    result_free(in);
    result_free(out);
    store_close(store);
}

static void runs_are_found_by_number_label_uuid_and_last(void **state)
{
    struct store *store = open_store("find.db", STORE_WRITE);
    struct result *a = full_result(uuid_a), *b = full_result(uuid_b);
    static const struct {
        const char *which;
        int found; // 0: nothing
    } cases[] = {
        {"1", 1},      {"2", 2},          {"3", 0},     {"last", 2},        {"before", 2},
        {"aaaaaa", 1}, {"bbbbbbbb-0", 2}, {"aaaaa", 0}, {"zzzzzz", 0},      {"", 0},
        {"-1", 0},     {"1x", 0},         {"%", 0},     {"' OR 1=1 --", 0},
    };

    (void)state;
    put(store, a);
    put(store, b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct result *out = NULL;
        struct err err = ERR_INIT;
        int rc = store_get(store, cases[i].which, &out, &err);
        if ((rc == 0) != (cases[i].found > 0) || (out && out->id != cases[i].found))
            fail_msg("%s: rc %d id %lld", cases[i].which, rc, out ? (long long)out->id : 0LL);
        if (rc < 0)
            assert_int_equal(err.kind, ERR_USAGE);
        result_free(out);
    }
    result_free(a);
    result_free(b);
    store_close(store);
}

static void a_failed_put_leaves_nothing(void **state)
{
    struct store *store = open_store("twice.db", STORE_WRITE);
    struct result *a = full_result(uuid_a), *again = full_result(uuid_a);
    struct err err = ERR_INIT;
    struct store_row *rows;
    int n;

    (void)state;
    put(store, a);
    assert_int_equal(store_put(store, again, &err), -1); // the uuid is taken
    assert_int_equal(err.kind, ERR_FAILED);
    assert_int_equal(again->id, 0);
    assert_int_equal(store_list(store, 0, &rows, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].warnings, 2);
    store_rows_free(rows, n);
    result_free(a);
    result_free(again);
    store_close(store);
}

static void export_and_import_carry_a_run_whole(void **state)
{
    struct store *from = open_store("from.db", STORE_WRITE), *to = open_store("to.db", STORE_WRITE);
    struct result *a = full_result(uuid_a), *b = full_result(uuid_b), *out = NULL;
    char *path = in_dir("run.prony");
    struct err err = ERR_INIT;
    int64_t id = 0;
    bool known = true;

    (void)state;
    put(from, a);
    put(from, b);
    put(to, a); // the other store has numbers of its own
    assert_int_equal(store_export(from, "2", path, &err), 0);
    assert_int_equal(store_export(from, "2", path, &err), -1); // never overwrites
    assert_int_equal(store_import(to, path, &id, &known, &err), 0);
    assert_false(known);
    assert_int_equal(store_get(to, "bbbbbbbb", &out, &err), 0);
    assert_int_equal(out->id, id);
    assert_result_equal(b, out);
    assert_int_equal(store_import(to, path, &id, &known, &err), 0);
    assert_true(known);
    result_free(a);
    result_free(b);
    result_free(out);
    store_close(from);
    // A store of several runs is no exported run.
    char *several = in_dir("from.db");
    assert_int_equal(store_import(to, several, &id, &known, &err), -1);
    store_close(to);
    free(several);
    free(path);
}

static void sql_at(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void files_of_others_and_of_the_future_are_refused(void **state)
{
    struct store *store;
    struct err err = ERR_INIT;
    char *other = in_dir("other.db"), *future = in_dir("future.db"), *text = in_dir("text.db");

    (void)state;
    sql_at(other, "CREATE TABLE mine (x)");
    assert_int_equal(store_open(&store, other, STORE_WRITE, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "did not make"));
    store_close(open_store("future.db", STORE_WRITE));
    sql_at(future, "PRAGMA user_version = 99");
    assert_int_equal(store_open(&store, future, STORE_WRITE, &err), -1);
    assert_non_null(strstr(err.text, "version 99"));
    FILE *file = fopen(text, "w");
    fputs("this is a text, and long enough to be no database at all, whatever one may hope\n",
          file);
    fclose(file);
    assert_int_equal(store_open(&store, text, STORE_WRITE, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    free(other);
    free(future);
    free(text);
}

// As prony 0.1.0 wrote it: the tables of version 1, which are still made first.
static void make_version_1(const char *path)
{
    extern const char store_schema_sql[];
    struct store *store = open_store("newest.db", STORE_WRITE);
    struct result *in = full_result(uuid_a);
    char *newest = in_dir("newest.db");

    put(store, in);
    result_free(in);
    store_close(store);
    sql_at(path, store_schema_sql);
    char *copy = mem_printf("ATTACH '%s' AS newest; ALTER TABLE newest.runs DROP COLUMN limit_id; "
                            "ALTER TABLE newest.runs DROP COLUMN limit_text; "
                            "ALTER TABLE newest.runs DROP COLUMN block; INSERT INTO runs "
                            "SELECT * FROM newest.runs; "
                            "INSERT INTO environment SELECT * FROM newest.environment; "
                            "PRAGMA main.user_version = 1; PRAGMA main.application_id = %d",
                            newest, 0x70726f6e);
    sql_at(path, copy);
    free(copy);
    unlink(newest);
    free(newest);
}

static void an_older_file_is_brought_forward_also_to_be_read(void **state)
{
    static const enum store_mode modes[] = {STORE_READ, STORE_WRITE};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct result *out;
        char *path = in_dir("old.db");
        make_version_1(path);
        struct store *store = open_store("old.db", modes[i]);
        assert_int_equal(store_get(store, "last", &out, &err), 0);
        assert_string_equal(out->uuid, uuid_a);
        assert_null(out->limit_id);
        assert_int_equal(out->n_watch, 0);
        result_free(out);
        store_close(store);
        unlink(path);
        free(path);
    }
}

static void an_empty_file_becomes_the_newest_version(void **state)
{
    char *path = in_dir("empty.db");

    (void)state;
    sql_at(path, "VACUUM"); // version 0: what SQLite makes by itself
    struct store *store = open_store("empty.db", STORE_WRITE);
    struct result *a = full_result(uuid_a);
    put(store, a);
    result_free(a);
    store_close(store);
    free(path);
}

static void an_empty_file_has_nothing_to_read(void **state)
{
    char *path = in_dir("hollow.db");
    struct store *store;
    struct err err = ERR_INIT;

    (void)state;
    FILE *file = fopen(path, "w");
    fclose(file);
    assert_int_equal(store_open(&store, path, STORE_READ, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "empty"));
    free(path);
}

static void sqlites_word_for_memory_is_no_results_file(void **state)
{
    struct store *store;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(store_open(&store, ":memory:", STORE_WRITE, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[4096];
    size_t n;
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");

    assert_non_null(in);
    assert_non_null(out);
    while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

// The file and its journal as a kill in the middle of a write leaves them.
static void a_write_that_was_cut_short_is_undone_by_a_reader(void **state)
{
    char *path = in_dir("cut.db"), *journal = in_dir("cut.db-journal");
    char *copy = in_dir("copy.db"), *copied_journal = in_dir("copy.db-journal");
    struct result *a = full_result(uuid_a), *out = NULL;
    struct err err = ERR_INIT;
    sqlite3 *db;

    (void)state;
    struct store *store = open_store("cut.db", STORE_WRITE);
    put(store, a);
    store_close(store);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA cache_size = 1; BEGIN; UPDATE runs SET label = 'half';"
                                  "CREATE TABLE more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                                  "SELECT i + 1 FROM n WHERE i < 9999) SELECT i FROM n",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    copy_file(path, copy);
    copy_file(journal, copied_journal);
    sqlite3_close(db);
    store = open_store("copy.db", STORE_READ);
    assert_int_equal(store_get(store, "before", &out, &err), 0);
    assert_result_equal(a, out);
    store_close(store);
    result_free(a);
    result_free(out);
    free(path), free(journal), free(copy), free(copied_journal);
}

static void unwritable_places_fail_and_leave_nothing(void **state)
{
    struct store *store;
    struct err err = ERR_INIT;
    char *path = in_dir("no/such/dir/x.db");

    (void)state;
    assert_int_equal(store_open(&store, path, STORE_WRITE, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "--store"));
    assert_int_equal(store_open(&store, "/dev/full", STORE_WRITE, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    free(path);
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static int n_files(void)
{
    int n = 0;
    DIR *open_dir = opendir(dir);

    assert_non_null(open_dir);
    while (readdir(open_dir))
        n++;
    closedir(open_dir);
    return n;
}

static void a_store_is_made_with_its_first_result(void **state)
{
    char *path = in_dir("late.db");
    struct result *a = full_result(uuid_a);
    int n_before = n_files();

    (void)state;
    struct store *idle = open_store("late.db", STORE_WRITE);
    struct store *store = open_store("late.db", STORE_WRITE);
    assert_int_equal(n_files(), n_before); // nor what it was tried with
    put(store, a);
    assert_true(exists(path));
    store_close(store);
    store_close(idle);
    assert_true(exists(path));
    assert_int_equal(n_files(), n_before + 1);
    result_free(a);
    free(path);
}

static void a_store_that_is_removed_or_replaced_is_made_or_opened_again(void **state)
{
    char *path = in_dir("gone.db");
    struct result *a = full_result(uuid_a), *b = full_result(uuid_b), *out = NULL;
    struct err err = ERR_INIT;

    (void)state;
    struct store *store = open_store("gone.db", STORE_WRITE);
    put(store, a);
    assert_true(exists(path));
    assert_int_equal(unlink(path), 0);
    struct store *other = open_store("gone.db", STORE_WRITE);
    put(other, b);
    store_close(other);
    a->id = 0;
    put(store, a);
    store_close(store);
    store = open_store("gone.db", STORE_READ);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_get(store, i ? uuid_a : uuid_b, &out, &err), 0);
        result_free(out);
    }
    store_close(store);
    result_free(a);
    result_free(b);
    free(path);
}

// Opens and keeps a result; a refusal is printed.
static int keep_one(const char *path)
{
    struct err err = ERR_INIT;
    struct store *store;
    char uuid[64];

    snprintf(uuid, sizeof(uuid), "%08x-0000-4000-8000-000000000000", (unsigned)getpid());
    struct result *result = full_result(uuid);
    if (store_open(&store, path, STORE_WRITE, &err) < 0 || store_put(store, result, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    store_close(store);
    result_free(result);
    return 0;
}

// One may find the tables of another and not yet the mark that says whose they are, and more.
static void first_results_of_many_at_once_are_all_kept(void **state)
{
    enum { MANY = 8, ROUNDS = 20 };
    struct store_row *rows;
    struct err err = ERR_INIT;
    char *path = in_dir("crowd.db");
    int n, status;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            pid_t pid = fork();
            if (pid == 0)
                _exit(keep_one(path));
            assert_true(pid > 0);
        }
        int failed = 0;
        while (wait(&status) > 0)
            failed += status != 0;
        assert_int_equal(failed, 0);
        struct store *store = open_store("crowd.db", STORE_READ);
        assert_int_equal(store_list(store, 0, &rows, &n, &err), 0);
        assert_int_equal(n, MANY);
        store_rows_free(rows, n);
        store_close(store);
        assert_int_equal(unlink(path), 0);
    }
    free(path);
}

static void missing_store_says_how_to_get_one(void **state)
{
    struct store *store;
    struct err err = ERR_INIT;
    char *path = in_dir("absent.db");

    (void)state;
    assert_int_equal(store_open(&store, path, STORE_READ, &err), -1);
    assert_non_null(strstr(err.text, "prony run"));
    assert_int_equal(access(path, F_OK), -1);
    free(path);
}

static void count_row(void *arg, int n, const char *const *names, const char *const *values,
                      const int *types)
{
    (void)n, (void)names, (void)types;
    if (values)
        ++*(int *)arg;
}

static void sql_reads_and_cannot_write(void **state)
{
    static const struct {
        const char *sql;
        int rows; // -1: refused
    } cases[] = {
        {"SELECT 1", 1},
        {"SELECT count(*) FROM runs;", 1},
        {"  SELECT 1 ; ", 1},
        {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
         "SELECT i FROM n",
         3},
        {"SELECT key FROM environment WHERE run_id = 1", 2},
        {"PRAGMA user_version", 1},
        {"", -1},
        {"SELEC 1", -1},
        {"SELECT nothing FROM runs", -1},
        {"SELECT 1; SELECT 2", -1},
        {"DELETE FROM runs", -1},
        {"DROP TABLE runs", -1},
        {"INSERT INTO warnings VALUES (1, 9, 'x', 'y')", -1},
        {"UPDATE runs SET tps = 1", -1},
        {"ATTACH '/tmp/x.db' AS x", -1},
        {"PRAGMA user_version = 3", -1},
        {"PRAGMA journal_mode = delete", -1},
        {"VACUUM INTO '/tmp/prony-x.db'", -1},
        {"CREATE TEMP TABLE t (x)", -1},
        {"BEGIN", -1},
    };
    struct store *store = open_store("sql.db", STORE_WRITE);
    struct result *a = full_result(uuid_a);

    (void)state;
    put(store, a);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        int rows = 0;
        int rc = store_sql(store, cases[i].sql, count_row, &rows, &err);
        if (rc < 0 ? cases[i].rows != -1 : rows != cases[i].rows)
            fail_msg("%s: rc %d, %d rows, %s", cases[i].sql, rc, rows, err.text);
    }
    result_free(a);
    store_close(store);
}

// Also what our own tables would refuse: a file from elsewhere need not have them.
static void what_is_damaged_is_reported_not_believed(void **state)
{
    static const char *const damages[] = {
        "UPDATE runs SET latency_histogram = x'00ff00ff'",
        "UPDATE runs SET clients = 1000000000000",
        "UPDATE runs SET clients = -1",
        "UPDATE runs SET duration_s = 1e300",
        "UPDATE series SET t_s = -5 WHERE t_s = 2",
        "UPDATE clients SET client = 77 WHERE client = 1",
        "DROP TABLE warnings; CREATE TABLE warnings (run_id, position, id, text);"
        "INSERT INTO warnings VALUES (1, 0, 'a', 'x'), (1, 1, 'a', 'y')",
        "DROP TABLE warnings; CREATE TABLE warnings (run_id, position, id, text);"
        "INSERT INTO warnings VALUES (1, 0, 'a', NULL)",
        "DROP TABLE statements; CREATE TABLE statements (run_id, position, script, sql, count, "
        "failed, rows, p50_us, p99_us, min_us, max_us, sum_ns, sum_sq);"
        "INSERT INTO statements (run_id) VALUES (1)",
        "DROP TABLE environment; CREATE TABLE environment (run_id, position, key, value);"
        "INSERT INTO environment VALUES (1, 0, NULL, 'x')",
        "CREATE TABLE copy AS SELECT * FROM runs; DROP TABLE runs; ALTER TABLE copy RENAME TO runs;"
        "UPDATE runs SET status = NULL, seed = NULL",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        char *name = mem_printf("damage%zu.db", i), *path = in_dir(name);
        struct result *a = full_result(uuid_a), *out = NULL;
        struct err err = ERR_INIT;
        struct store *store = open_store(name, STORE_WRITE);
        put(store, a);
        result_free(a);
        store_close(store);
        sql_at(path, damages[i]);
        store = open_store(name, STORE_READ);
        if (store_get(store, "1", &out, &err) == 0 || !strstr(err.text, "damaged"))
            fail_msg("%s: %s", damages[i], err.text);
        store_close(store);
        free(name), free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_comes_out_as_it_went_in),
        cmocka_unit_test(runs_are_found_by_number_label_uuid_and_last),
        cmocka_unit_test(a_failed_put_leaves_nothing),
        cmocka_unit_test(export_and_import_carry_a_run_whole),
        cmocka_unit_test(files_of_others_and_of_the_future_are_refused),
        cmocka_unit_test(an_empty_file_becomes_the_newest_version),
        cmocka_unit_test(an_older_file_is_brought_forward_also_to_be_read),
        cmocka_unit_test(an_empty_file_has_nothing_to_read),
        cmocka_unit_test(sqlites_word_for_memory_is_no_results_file),
        cmocka_unit_test(a_write_that_was_cut_short_is_undone_by_a_reader),
        cmocka_unit_test(unwritable_places_fail_and_leave_nothing),
        cmocka_unit_test(a_store_is_made_with_its_first_result),
        cmocka_unit_test(a_store_that_is_removed_or_replaced_is_made_or_opened_again),
        cmocka_unit_test(first_results_of_many_at_once_are_all_kept),
        cmocka_unit_test(missing_store_says_how_to_get_one),
        cmocka_unit_test(sql_reads_and_cannot_write),
        cmocka_unit_test(what_is_damaged_is_reported_not_believed),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
