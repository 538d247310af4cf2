// What is particular to SQLite: its file, settings that it would ignore silently, waiting for
// locks, and what its codes mean. What every engine does is in test_driver_suite.c.
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/leftovers.h"
#include "base/mem.h"
#include "db/sqlite.h"

#define SEED 20261203

// Every test runs in an empty directory of its own, which is the working directory.
static char dir[64], home[PATH_MAX];

static int setup(void **state)
{
    (void)state;
    if (!getcwd(home, sizeof(home)))
        return -1;
    snprintf(dir, sizeof(dir), "/tmp/test_sqlite_XXXXXX");
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int n_files(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static int teardown(void **state)
{
    DIR *d = opendir(dir);

    (void)state;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            if (unlink(e->d_name) < 0) // the folder of a registry
                rmdir(e->d_name);
    closedir(d);
    return chdir(home) == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static int open_url(struct db_target **target, const char *url, bool create, struct err *err)
{
    struct db_open_options options = {
        .clock = &clock_system, .seed = SEED, .create_missing = create};

    *target = NULL;
    *err = (struct err)ERR_INIT;
    return db_open(target, url, &options, err);
}

static struct db_target *open_ok(const char *url, bool create)
{
    struct db_target *target;
    struct err err;

    if (open_url(&target, url, create, &err) < 0)
        fail_msg("%s", err.text);
    return target;
}

static struct db_session *connect_ok(struct db_target *target, int client)
{
    struct db_session *session = NULL;
    struct db_result result;

    if (db_connect(target, client, &session, &result) != DB_OK)
        fail_msg("%s", result.message);
    return session;
}

static void query_ok(struct db_session *session, const char *sql)
{
    struct db_result result;

    if (db_query(session, sql, false, &result) != DB_OK)
        fail_msg("%s: %s", sql, result.message);
}

static enum db_class query(struct db_session *session, const char *sql, struct db_result *result)
{
    return db_query(session, sql, false, result);
}

static void make_database(const char *url, const char *sql)
{
    struct db_target *target = open_ok(url, true);
    struct db_session *session = connect_ok(target, 0);

    query_ok(session, sql);
    db_disconnect(session);
    db_close(target);
}

static void write_file(const char *path, long offset, const char *text)
{
    FILE *f = fopen(path, offset ? "r+" : "w");

    assert_non_null(f);
    fseek(f, offset, SEEK_SET);
    fputs(text, f);
    fclose(f);
}

// ---- settings

static void setting_that_sqlite_would_ignore_is_refused(void **state)
{
    static const struct {
        const char *params, *text;
    } cases[] = {
        {"synchronus=off", "sqlite: unknown parameter synchronus, did you mean synchronous?"},
        {"busy_timout=5", "sqlite: unknown parameter busy_timout, did you mean busy_timeout?"},
        {"bananas=1", "sqlite: unknown parameter bananas"},
        {"synchronous=fulll", "sqlite: synchronous=fulll did not take, SQLite has 1"},
        {"journal_mode=wall", "sqlite: journal_mode=wall did not take, SQLite has delete"},
        {"page_size=8192", "sqlite: page_size=8192 did not take, SQLite has 4096 (it is fixed when "
                           "the file is made)"},
        {"cache_size=many", "sqlite: cache_size=many did not take"},
        {"mmap_size=256MB", "sqlite: mmap_size=256MB did not take, SQLite has 256"},
        {"locking_mode=exlusive", "sqlite: locking_mode=exlusive did not take"},
        {"case_sensitive_like=1", "cannot be checked"},
        {"wal_checkpoint=1", "sqlite: the pragma wal_checkpoint is not a setting"},
        {"integrity_check=1", "sqlite: the pragma integrity_check is not a setting"},
        {"synchronous=off&Synchronous=full", "sqlite: parameter Synchronous stands twice"},
        {"mode=rx", "sqlite: parameter mode: unknown value rx"},
        {"busy_handler=none", "sqlite: parameter busy_handler: unknown value none"},
        {"busy_timeout=soon", "sqlite: parameter busy_timeout: "},
        {"busy_timeout=2h", "sqlite: busy_timeout=2h is more than an hour"},
        {"vfs=unix-nosuch", "sqlite: this library has no vfs unix-nosuch"},
        {"cache_size={1';DROP TABLE t;--}", "did not take"},
    };
    struct db_target *target;
    struct err err;

    (void)state;
    make_database("sqlite:x.db", "CREATE TABLE t (a int)");
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char url[200];
        snprintf(url, sizeof(url), "sqlite:x.db?%s", cases[i].params);
        assert_int_equal(open_url(&target, url, false, &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: %s", url, err.text);
    }
    make_database("sqlite:x.db", "SELECT a FROM t"); // the table is still there
}

static void setting_takes_in_every_spelling(void **state)
{
    static const struct {
        const char *params, *pragma, *value;
    } cases[] = {
        {"synchronous=off", "synchronous", "0"},
        {"synchronous=FULL", "synchronous", "2"},
        {"synchronous=3", "synchronous", "3"},
        {"synchronous=no", "synchronous", "0"},
        {"journal_mode=WAL", "journal_mode", "wal"},
        {"journal_mode=truncate", "journal_mode", "truncate"},
        {"journal_mode=off", "journal_mode", "off"},
        {"cache_size=-4000", "cache_size", "-4000"},
        {"cache_size=123", "cache_size", "123"},
        {"temp_store=Memory", "temp_store", "2"},
        {"foreign_keys=ON", "foreign_keys", "1"},
        {"foreign_keys=true", "foreign_keys", "1"},
        {"secure_delete=fast", "secure_delete", "2"},
        {"secure_delete=off", "secure_delete", "0"},
        {"mmap_size=0x100000", "mmap_size", "1048576"},
        {"wal_autocheckpoint=500", "wal_autocheckpoint", "500"},
        {"journal_size_limit=-1", "journal_size_limit", "-1"},
        {"page_size=8192", "page_size", "8192"},
        {"journal_mode=wal&page_size=16384", "page_size", "16384"}, // whatever the order
        {"auto_vacuum=incremental", "auto_vacuum", "2"},
        {"locking_mode=exclusive", "locking_mode", "exclusive"},
        {"application_id=77", "application_id", "77"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char url[100], path[20], sql[60];
        struct db_result result;
        snprintf(path, sizeof(path), "%zu.db", i);
        snprintf(url, sizeof(url), "sqlite:%s?%s", path, cases[i].params);
        snprintf(sql, sizeof(sql), "PRAGMA %s", cases[i].pragma);
        make_database(url, "CREATE TABLE t (a int)");
        for (int again = 0; again < 2; again++) { // on the file as it now is
            struct db_target *target = open_ok(url, false);
            struct db_session *session = connect_ok(target, 0);
            assert_int_equal(db_query(session, sql, true, &result), DB_OK);
            struct db_value value = db_row_value(session, 0);
            char buf[DB_VALUE_TEXT_MAX];
            int len;
            assert_string_equal(db_value_text(&value, buf, &len), cases[i].value);
            db_disconnect(session);
            db_close(target);
        }
    }
}

static void every_session_has_the_settings(void **state)
{
    struct db_target *target = open_ok("sqlite:x.db?cache_size=77&synchronous=off", true);
    struct db_result result;

    (void)state;
    for (int client = 0; client < 3; client++) {
        struct db_session *session = connect_ok(target, client);
        assert_int_equal(db_query(session, "PRAGMA cache_size", true, &result), DB_OK);
        assert_int_equal(db_row_value(session, 0).i, 77);
        assert_int_equal(db_query(session, "PRAGMA synchronous", true, &result), DB_OK);
        assert_int_equal(db_row_value(session, 0).i, 0);
        db_disconnect(session);
    }
    db_close(target);
}

// ---- the file

static void bad_file_is_named_with_a_remedy_and_nothing_is_made(void **state)
{
    static const struct {
        const char *url, *text;
        bool create;
    } cases[] = {
        {"sqlite:missing.db",
         "missing.db does not exist; make it with: prony init sqlite:missing.db WORKLOAD", false},
        {"sqlite:missing.db?journal_mode=wal&synchronous=off",
         "prony init 'sqlite:missing.db?journal_mode=wal&synchronous=off' WORKLOAD", false},
        {"sqlite:missing.db?mode=ro", "missing.db does not exist", true},
        {"sqlite:missing.db?synchronus=off", "did you mean synchronous?", true},
        {"sqlite:missing.db?journal_mode=wall", "journal_mode=wall did not take", true},
        {"sqlite:no/such/dir/x.db", "its directory does not exist", true},
        {"sqlite:/tmp", "/tmp is a directory", true},
        {"sqlite:/dev/null", "/dev/null is not a regular file", true},
        {"sqlite::memory:", "tmpfs", true},
        {"sqlite://x.db", "takes a path without //", true},
        {"sqlite:", "no temporary database is made here; name a file", true}, // no leftovers
    };
    struct db_target *target;
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_int_equal(open_url(&target, cases[i].url, cases[i].create, &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].url, err.text);
        assert_int_equal(n_files(), 0);
    }
    write_file("text.db", 0, "This is no database, but long enough to be looked at as one......");
    assert_int_equal(open_url(&target, "sqlite:text.db", true, &err), -1);
    assert_string_equal(err.text, "sqlite: text.db is not an SQLite database");
    assert_int_equal(n_files(), 1);
}

static void file_is_made_by_the_first_session(void **state)
{
    struct db_target *target = open_ok("sqlite:new.db?journal_mode=wal", true);

    (void)state;
    assert_int_equal(n_files(), 0); // the check of the settings left nothing
    struct db_session *session = connect_ok(target, 0);
    assert_int_equal(access("new.db", F_OK), 0);
    db_disconnect(session);
    db_close(target);
    assert_int_equal(n_files(), 0); // nothing came into it
    target = open_ok("sqlite:new.db?journal_mode=wal", true);
    session = connect_ok(target, 0);
    query_ok(session, "CREATE TABLE t (a int)");
    db_disconnect(session);
    db_close(target);
    assert_int_equal(access("new.db", F_OK), 0);
}

static void empty_file_of_others_stays(void **state)
{
    (void)state;
    fclose(fopen("empty.db", "w"));
    struct db_target *target = open_ok("sqlite:empty.db", true);
    db_disconnect(connect_ok(target, 0));
    db_close(target);
    assert_int_equal(access("empty.db", F_OK), 0);
}

static void file_that_went_away_is_no_database(void **state)
{
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    make_database("sqlite:x.db", "CREATE TABLE t (a int)");
    struct db_target *target = open_ok("sqlite:x.db", false);
    unlink("x.db");
    assert_int_equal(db_connect(target, 0, &session, &result), DB_NO_DATABASE);
    assert_int_equal(access("x.db", F_OK), -1);
    db_close(target);
}

static void odd_characters_in_a_path_are_taken_as_they_are(void **state)
{
    static const char *const names[] = {
        "a b.db", "50%.db", "%41.db", "file:x.db", "it's \"x\".db", "\xc3\xa9\xc2\xb5.db", "#.db",
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(names); i++) {
        char *url = mem_printf("sqlite:%s", names[i]);
        make_database(url, "CREATE TABLE t (a int)");
        assert_int_equal(access(names[i], F_OK), 0);
        free(url);
    }
    make_database("sqlite:{what?.db}?synchronous=off", "CREATE TABLE t (a int)");
    assert_int_equal(access("what?.db", F_OK), 0);
}

static void path_outlives_a_change_of_directory(void **state)
{
    struct db_target *target = open_ok("sqlite:x.db", true);

    (void)state;
    assert_int_equal(chdir("/"), 0);
    struct db_session *session = connect_ok(target, 0);
    query_ok(session, "CREATE TABLE t (a int)");
    db_disconnect(session);
    db_close(target);
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(access("x.db", F_OK), 0);
}

static void temporary_database_goes_away(void **state)
{
    struct db_open_options options = {.clock = &clock_system};
    struct leftovers *lo = NULL;
    struct str report = STR_INIT;
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    (void)state;
    setenv("XDG_RUNTIME_DIR", dir, 1);
    assert_int_equal(leftovers_open(&lo, &err), 0);
    options.leftovers = lo;
    int before = n_files();
    if (db_open(&target, "sqlite:?journal_mode=wal", &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(db_is_temporary(target));
    struct db_session *session = connect_ok(target, 0);
    query_ok(session, "CREATE TABLE t (a int)");
    struct db_facts facts;
    db_describe(session, &facts);
    const char *name = strrchr(facts.data_path, '/') + 1;
    assert_int_equal(strlen(name), strlen(".prony-XXXXXX.db"));
    assert_int_equal(strncmp(name, ".prony-", 7), 0);
    assert_int_equal(n_files(), before + 3); // with -wal and -shm
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
    assert_int_equal(n_files(), before);
    leftovers_close(lo, &report);
    assert_string_equal(report.buf, "");
    str_release(&report);
}

static void bad_setting_of_a_temporary_database_leaves_nothing(void **state)
{
    struct db_open_options options = {.clock = &clock_system};
    struct leftovers *lo = NULL;
    struct str report = STR_INIT;
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    (void)state;
    setenv("XDG_RUNTIME_DIR", dir, 1);
    assert_int_equal(leftovers_open(&lo, &err), 0);
    options.leftovers = lo;
    int before = n_files(); // the registry's folder
    assert_int_equal(db_open(&target, "sqlite:?journal_mode=wall", &options, &err), -1);
    assert_int_equal(n_files(), before);
    leftovers_close(lo, &report);
    str_release(&report);
}

// ---- locks

struct holder {
    struct db_target *target;
    struct db_session *holds, *waits;
};

static void hold_lock(struct holder *h, const char *params)
{
    char url[100];

    snprintf(url, sizeof(url), "sqlite:x.db%s", params);
    h->target = open_ok(url, true);
    h->holds = connect_ok(h->target, 0);
    h->waits = connect_ok(h->target, 1);
    query_ok(h->holds, "CREATE TABLE t (a int)");
    query_ok(h->holds, "BEGIN IMMEDIATE");
    query_ok(h->holds, "INSERT INTO t VALUES (1)");
}

static void let_go(struct holder *h)
{
    db_disconnect(h->holds);
    db_disconnect(h->waits);
    db_close(h->target);
}

static void lock_is_waited_for_as_long_as_told_then_busy(void **state)
{
    struct db_result result;
    struct holder h;

    (void)state;
    hold_lock(&h, "?busy_timeout=300");
    int64_t before_ns = clock_now_ns(&clock_system);
    assert_int_equal(query(h.waits, "INSERT INTO t VALUES (2)", &result), DB_BUSY);
    int64_t took_ns = clock_now_ns(&clock_system) - before_ns;
    assert_true(took_ns >= 300 * NS_PER_MS && took_ns < 2 * NS_PER_S);
    assert_true(result.lock_wait_ns > 200 * NS_PER_MS && result.lock_wait_ns <= took_ns);
    assert_string_equal(result.native, "5");
    assert_string_equal(result.message, "database is locked");
    assert_false(result.in_transaction);
    query_ok(h.holds, "COMMIT");
    assert_int_equal(query(h.waits, "INSERT INTO t VALUES (2)", &result), DB_OK);
    assert_int_equal(result.lock_wait_ns, 0); // of this call
    let_go(&h);
}

static void *commit_soon(void *session)
{
    clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 100 * NS_PER_MS);
    query_ok(session, "COMMIT");
    return NULL;
}

static void wait_for_a_lock_ends_when_it_is_free_and_is_counted(void **state)
{
    struct kvs counters = KVS_INIT;
    struct db_result result;
    struct holder h;
    pthread_t thread;

    (void)state;
    hold_lock(&h, "");
    assert_int_equal(pthread_create(&thread, NULL, commit_soon, h.holds), 0);
    assert_int_equal(query(h.waits, "INSERT INTO t VALUES (2)", &result), DB_OK);
    pthread_join(thread, NULL);
    assert_true(result.lock_wait_ns > 50 * NS_PER_MS && result.lock_wait_ns < 5 * NS_PER_S);
    db_sample(h.waits, &counters);
    assert_string_equal(kvs_get(&counters, "lock_waits"), "1");
    assert_true(atoll(kvs_get(&counters, "lock_wait_us")) > 50000);
    assert_true(atoll(kvs_get(&counters, "blocks_written")) > 0);
    kvs_release(&counters);
    let_go(&h);
}

static void *cancel_soon(void *session)
{
    clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 100 * NS_PER_MS);
    db_cancel(session);
    return NULL;
}

static void wait_for_a_lock_can_be_cancelled(void **state)
{
    struct db_result result;
    struct holder h;
    pthread_t thread;

    (void)state;
    hold_lock(&h, "?busy_timeout=60s");
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, h.waits), 0);
    int64_t before_ns = clock_now_ns(&clock_system);
    assert_int_equal(query(h.waits, "INSERT INTO t VALUES (2)", &result), DB_CANCELLED);
    assert_true(clock_now_ns(&clock_system) - before_ns < 10 * NS_PER_S);
    pthread_join(thread, NULL);
    query_ok(h.holds, "COMMIT");
    assert_int_equal(query(h.waits, "INSERT INTO t VALUES (2)", &result), DB_OK);
    let_go(&h);
}

static void write_from_an_old_snapshot_is_a_serialization_failure(void **state)
{
    struct db_result result;

    (void)state;
    make_database("sqlite:x.db?journal_mode=wal", "CREATE TABLE t (a int)");
    struct db_target *target = open_ok("sqlite:x.db", false);
    struct db_session *a = connect_ok(target, 0), *b = connect_ok(target, 1);
    query_ok(a, "BEGIN");
    query_ok(a, "SELECT count(*) FROM t");
    query_ok(b, "INSERT INTO t VALUES (1)");
    assert_int_equal(query(a, "INSERT INTO t VALUES (2)", &result), DB_SERIALIZATION);
    assert_string_equal(result.native, "517");
    assert_true(result.in_transaction);
    query_ok(a, "ROLLBACK");
    assert_int_equal(query(a, "INSERT INTO t VALUES (2)", &result), DB_OK);
    db_disconnect(a);
    db_disconnect(b);
    db_close(target);
}

// Writers in a closed loop, each transaction two statements between BEGIN and COMMIT.
#define WRITERS_MAX 8
struct writer {
    pthread_t thread;
    struct db_target *target;
    int client;
    int64_t done;
    const bool *stop;
    int64_t *total; // atomically
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    struct db_session *session = connect_ok(w->target, w->client);
    struct db_result result;

    while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED)) {
        query_ok(session, "BEGIN");
        if (db_query(session, "UPDATE t SET a = a + 1 WHERE id = 5", false, &result) == DB_OK &&
            db_query(session, "INSERT INTO h VALUES (1)", false, &result) == DB_OK &&
            db_query(session, "COMMIT", false, &result) == DB_OK) {
            w->done++;
            __atomic_fetch_add(w->total, 1, __ATOMIC_RELAXED);
        } else {
            assert_int_equal(result.class, DB_BUSY);
            query_ok(session, "ROLLBACK");
        }
    }
    db_disconnect(session);
    return NULL;
}

// Share of the least served writer in what the best served one did. Ends when enough transactions
// are done for chance to even out, or after the time.
static double fairness(const char *params, int n_writers, int64_t enough, int64_t limit_s)
{
    struct writer writers[WRITERS_MAX] = {0};
    bool stop = false;
    int64_t total = 0, least = INT64_MAX, most = 0;
    char *url = mem_printf("sqlite:fair.db?%s", params);

    make_database(url, "CREATE TABLE t (id integer primary key, a int); CREATE TABLE h (a int);"
                       "INSERT INTO t VALUES (5, 0)");
    struct db_target *target = open_ok(url, false);
    for (int i = 0; i < n_writers; i++) {
        writers[i] = (struct writer){.target = target, .client = i, .stop = &stop, .total = &total};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
    }
    int64_t start_ns = clock_now_ns(&clock_system), now_ns = start_ns;
    while (now_ns < start_ns + limit_s * NS_PER_S &&
           __atomic_load_n(&total, __ATOMIC_RELAXED) < enough) {
        clock_sleep_until_ns(&clock_system, now_ns + 50 * NS_PER_MS);
        now_ns = clock_now_ns(&clock_system);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < n_writers; i++) {
        pthread_join(writers[i].thread, NULL);
        least = writers[i].done < least ? writers[i].done : least;
        most = writers[i].done > most ? writers[i].done : most;
    }
    db_close(target);
    print_message("%s, %d writers: %lld transactions in %.1f s, least/most %lld/%lld = %.2f\n",
                  params, n_writers, (long long)total, (double)(now_ns - start_ns) / NS_PER_S,
                  (long long)least, (long long)most, (double)least / (double)most);
    free(url);
    for (size_t i = 0; i < SQLITE_FILES; i++) {
        static const char *const names[] = {"fair.db", "fair.db-wal", "fair.db-shm",
                                            "fair.db-journal"};
        unlink(names[i]);
    }
    return (double)least / (double)most;
}

// The library's own handler gives 0.00 to 0.3 here. Where each commit waits for the disk there are
// too few transactions in the time for chance to even out.
static void writers_get_their_turns_alike(void **state)
{
    static const struct {
        const char *params;
        int n_writers;
        double least;
    } cases[] = {
        {"journal_mode=delete&synchronous=off", 4, 0.5},
        {"journal_mode=delete&synchronous=off", 8, 0.5},
        {"journal_mode=wal&synchronous=off", 4, 0.5},
        {"journal_mode=wal&synchronous=off", 8, 0.5},
        {"journal_mode=wal", 4, 0.3},
        {"journal_mode=delete", 4, 0.2},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_true(fairness(cases[i].params, cases[i].n_writers, 40000, 5) > cases[i].least);
}

// ---- failures

static void code_has_its_class(void **state)
{
    static const struct {
        int rc, system_errno;
        const char *message;
        enum db_class class;
    } cases[] = {
        {SQLITE_BUSY, 0, "database is locked", DB_BUSY},
        {SQLITE_BUSY_RECOVERY, 0, "database is locked", DB_BUSY},
        {SQLITE_BUSY_SNAPSHOT, 0, "database is locked", DB_SERIALIZATION},
        {SQLITE_LOCKED_SHAREDCACHE, 0, "", DB_BUSY},
        {SQLITE_PROTOCOL, 0, "locking protocol", DB_BUSY},
        {SQLITE_FULL, 0, "database or disk is full", DB_FULL},
        {SQLITE_NOMEM, 0, "out of memory", DB_FULL},
        {SQLITE_IOERR_NOMEM, 0, "out of memory", DB_FULL},
        {SQLITE_IOERR_WRITE, ENOSPC, "disk I/O error", DB_FULL},
        {SQLITE_IOERR_SHMSIZE, ENOSPC, "disk I/O error", DB_FULL},
        {SQLITE_IOERR_FSYNC, EIO, "disk I/O error", DB_LOST},
        {SQLITE_IOERR_READ, EACCES, "disk I/O error", DB_LOST},
        {SQLITE_READONLY, 0, "attempt to write a readonly database", DB_READ_ONLY},
        {SQLITE_READONLY_DBMOVED, 0, "", DB_READ_ONLY},
        {SQLITE_PERM, 0, "", DB_DENIED},
        {SQLITE_AUTH, 0, "", DB_DENIED},
        {SQLITE_INTERRUPT, 0, "interrupted", DB_CANCELLED},
        {SQLITE_CONSTRAINT_UNIQUE, 0, "UNIQUE constraint failed: t.a", DB_CONSTRAINT},
        {SQLITE_CONSTRAINT_FOREIGNKEY, 0, "FOREIGN KEY constraint failed", DB_CONSTRAINT},
        {SQLITE_MISMATCH, 0, "datatype mismatch", DB_CONSTRAINT},
        {SQLITE_CANTOPEN, ENOENT, "unable to open database file", DB_NO_DATABASE},
        {SQLITE_CANTOPEN, EACCES, "unable to open database file", DB_DENIED},
        {SQLITE_CANTOPEN, EMFILE, "unable to open database file", DB_FULL},
        {SQLITE_CANTOPEN, EROFS, "unable to open database file", DB_READ_ONLY},
        {SQLITE_CORRUPT, 0, "database disk image is malformed", DB_OTHER},
        {SQLITE_NOTADB, 0, "file is not a database", DB_OTHER},
        {SQLITE_ERROR, 0, "no such table: t", DB_UNDEFINED},
        {SQLITE_ERROR, 0, "no such column: a", DB_UNDEFINED},
        {SQLITE_ERROR, 0, "no such function: f", DB_UNDEFINED},
        {SQLITE_ERROR, 0, "table t has no column named z", DB_UNDEFINED},
        {SQLITE_ERROR, 0, "near \"SELEC\": syntax error", DB_SYNTAX},
        {SQLITE_ERROR, 0, "incomplete input", DB_SYNTAX},
        {SQLITE_ERROR, 0, "unrecognized token: \"'\"", DB_SYNTAX},
        {SQLITE_ERROR, 0, "table t has 1 columns but 2 values were supplied", DB_SYNTAX},
        {SQLITE_ERROR, 0, "2 values for 1 columns", DB_SYNTAX},
        {SQLITE_ERROR, 0, "cannot commit - no transaction is active", DB_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        enum db_class class = sqlite_class(cases[i].rc, cases[i].system_errno, cases[i].message);
        if (class != cases[i].class)
            fail_msg("%d, errno %d, '%s' is %s", cases[i].rc, cases[i].system_errno,
                     cases[i].message, db_class_name(class));
    }
}

static enum db_class fill_up(struct db_session *session, struct db_result *result)
{
    enum db_class class = DB_OK;

    for (int i = 0; i < 1000 && class == DB_OK; i++)
        class = query(session, "INSERT INTO t VALUES (zeroblob(10000))", result);
    return class;
}

static void full_database_is_full_and_the_session_lives_on(void **state)
{
    struct db_target *target = open_ok("sqlite:x.db?max_page_count=100", true);
    struct db_session *session = connect_ok(target, 0);
    struct db_result result;

    (void)state;
    query_ok(session, "CREATE TABLE t (a)");
    assert_int_equal(fill_up(session, &result), DB_FULL);
    assert_string_equal(result.message, "database or disk is full");
    assert_false(result.in_transaction);
    query_ok(session, "BEGIN");
    assert_int_equal(fill_up(session, &result), DB_FULL);
    if (result.in_transaction) // as SQLite decides
        query_ok(session, "ROLLBACK");
    query_ok(session, "DELETE FROM t");
    db_disconnect(session);
    db_close(target);
}

static void check_file_size_limit(const char *url)
{
    struct db_target *target = open_ok(url, true);
    struct db_session *session = connect_ok(target, 0);
    struct rlimit old, limit;
    struct db_result result;

    query_ok(session, "CREATE TABLE t (a)");
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){.rlim_cur = 200000, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    enum db_class class = fill_up(session, &result);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(class, DB_FULL);
    assert_non_null(strstr(result.message, "File too large"));
    db_disconnect(session);
    db_close(target);
}

static void file_size_limit_is_full_too(void **state)
{
    (void)state;
    check_file_size_limit("sqlite:x.db");
    check_file_size_limit("sqlite:w.db?journal_mode=wal&wal_autocheckpoint=0");
}

static void damaged_file_says_so(void **state)
{
    struct db_result result;
    char garbage[4096];

    (void)state;
    make_database("sqlite:x.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    memset(garbage, 'x', sizeof(garbage) - 1);
    garbage[sizeof(garbage) - 1] = '\0';
    write_file("x.db", 4096, garbage); // the table's page
    struct db_target *target = open_ok("sqlite:x.db", false);
    struct db_session *session = connect_ok(target, 0);
    assert_int_equal(query(session, "SELECT * FROM t", &result), DB_OTHER);
    assert_string_equal(result.message, "database disk image is malformed");
    db_disconnect(session);
    db_close(target);
}

static void read_only_target_refuses_writes(void **state)
{
    struct db_result result;
    struct db_facts facts;

    (void)state;
    make_database("sqlite:x.db", "CREATE TABLE t (a)");
    struct db_target *target = open_ok("sqlite:x.db?mode=ro", false);
    struct db_session *session = connect_ok(target, 0);
    assert_int_equal(query(session, "SELECT * FROM t", &result), DB_OK);
    assert_int_equal(query(session, "INSERT INTO t VALUES (1)", &result), DB_READ_ONLY);
    db_describe(session, &facts);
    assert_true(facts.read_only);
    assert_string_equal(facts.read_only_why, "mode=ro");
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
}

// ---- statements, tables, facts

static void prepared_statement_is_one_statement(void **state)
{
    static const struct {
        const char *sql;
        int n_params;
        enum db_class class;
        const char *message;
    } cases[] = {
        {"SELECT ?; ", 1, DB_OK, ""},
        {"/* a */ ; SELECT 1 -- b", 0, DB_OK, ""},
        {"SELECT 1; SELECT 2", 0, DB_SYNTAX, "several statements"},
        {"SELECT 1; SELEC 2", 0, DB_SYNTAX, "several statements"},
        {"SELECT ?, ?", 1, DB_SYNTAX, "has 2 placeholders for 1"},
        {"", 0, DB_SYNTAX, "empty"},
        {"-- nothing", 0, DB_SYNTAX, "empty"},
    };
    const struct db_value params[2] = {{.type = DB_INT, .i = 1}, {.type = DB_INT, .i = 2}};
    struct db_target *target = open_ok("sqlite:x.db", true);

    (void)state;
    db_set_statements(target, 1, DB_PREPARED);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_session *session = connect_ok(target, 0);
        struct db_statement statement = {.sql = cases[i].sql, .n_params = cases[i].n_params};
        struct db_result result;
        enum db_class class = db_execute(session, &statement, params, false, &result);
        if (class != cases[i].class || !strstr(result.message, cases[i].message))
            fail_msg("%s: %s %s", cases[i].sql, db_class_name(class), result.message);
        db_disconnect(session);
    }
    db_close(target);
}

static void whole_number_key_is_the_tables_own(void **state)
{
    static const struct db_column columns[] = {{"aid", "int", true}, {"filler", "char(84)", false}};
    static const struct db_table table = {
        .name = "t", .columns = columns, .n_columns = 2, .primary_key = "aid"};
    struct db_target *target = open_ok("sqlite:x.db", true);
    struct db_session *session = connect_ok(target, 0);
    struct db_result result;

    (void)state;
    assert_int_equal(db_create_table(session, &table, true, &result), DB_OK);
    assert_int_equal(
        db_query(session, "SELECT count(*) FROM sqlite_schema WHERE type='index'", true, &result),
        DB_OK);
    assert_int_equal(db_row_value(session, 0).i, 0);
    query_ok(session, "INSERT INTO t VALUES (7, 'x')");
    assert_int_equal(db_query(session, "SELECT rowid FROM t", true, &result), DB_OK);
    assert_int_equal(db_row_value(session, 0).i, 7);
    db_disconnect(session);
    db_close(target);
}

static void fixed_width_text_is_loaded_with_its_blanks(void **state)
{
    static const struct db_column columns[] = {
        {"id", "int", true}, {"fixed", "char(6)", false}, {"free", "varchar(6)", false}};
    static const struct db_table table = {
        .name = "t", .columns = columns, .n_columns = 3, .primary_key = "id"};
    static const struct {
        const char *text, *fixed; // given for both columns, and what the first then holds
    } cases[] = {{"", "      "}, {"ab", "ab    "}, {"abcdef", "abcdef"}, {"abcdefg", "abcdefg"}};
    struct db_target *target = open_ok("sqlite:x.db", true);
    struct db_session *session = connect_ok(target, 0);
    struct db_result result;

    (void)state;
    assert_int_equal(db_create_table(session, &table, true, &result), DB_OK);
    assert_int_equal(db_bulk_begin(session, &table, &result), DB_OK);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_value text = {
            .type = DB_TEXT, .s = cases[i].text, .text_len = (uint32_t)strlen(cases[i].text)};
        struct db_value row[3] = {{.type = DB_INT, .i = (int64_t)i}, text, text};
        assert_int_equal(db_bulk_row(session, row, &result), DB_OK);
    }
    assert_int_equal(db_bulk_end(session, &result), DB_OK);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *sql = mem_printf("SELECT fixed, free FROM t WHERE id = %zu", i);
        assert_int_equal(db_query(session, sql, true, &result), DB_OK);
        assert_string_equal(db_row_value(session, 0).s, cases[i].fixed);
        assert_string_equal(db_row_value(session, 1).s, cases[i].text);
        free(sql);
    }
    db_disconnect(session);
    db_close(target);
}

static void facts_tell_what_decides_durability(void **state)
{
    struct db_target *target =
        open_ok("sqlite:x.db?synchronous=extra&cache_size=-4000&analysis_limit=5", true);
    struct db_session *session = connect_ok(target, 0);
    struct db_facts facts;

    (void)state;
    query_ok(session, "CREATE TABLE t (a)");
    db_describe(session, &facts);
    assert_string_equal(facts.engine, "sqlite");
    assert_string_equal(facts.version, sqlite3_libversion());
    assert_true(facts.is_local);
    assert_false(facts.read_only);
    char *path = mem_printf("%s/x.db", dir);
    assert_string_equal(facts.data_path, path);
    free(path);
    assert_int_equal(facts.data_bytes, 8192);
    assert_int_equal(facts.cache_bytes, 4000 * 1024);
    assert_string_equal(kvs_get(&facts.settings, "synchronous"), "extra");
    assert_string_equal(kvs_get(&facts.settings, "journal_mode"), "delete");
    assert_string_equal(kvs_get(&facts.settings, "analysis_limit"), "5"); // because it was set
    assert_string_equal(kvs_get(&facts.settings, "busy_timeout"), "10s");
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(setting_that_sqlite_would_ignore_is_refused),
        TEST(setting_takes_in_every_spelling),
        TEST(every_session_has_the_settings),
        TEST(bad_file_is_named_with_a_remedy_and_nothing_is_made),
        TEST(file_is_made_by_the_first_session),
        TEST(empty_file_of_others_stays),
        TEST(file_that_went_away_is_no_database),
        TEST(odd_characters_in_a_path_are_taken_as_they_are),
        TEST(path_outlives_a_change_of_directory),
        TEST(temporary_database_goes_away),
        TEST(bad_setting_of_a_temporary_database_leaves_nothing),
        TEST(lock_is_waited_for_as_long_as_told_then_busy),
        TEST(wait_for_a_lock_ends_when_it_is_free_and_is_counted),
        TEST(wait_for_a_lock_can_be_cancelled),
        TEST(write_from_an_old_snapshot_is_a_serialization_failure),
        TEST(writers_get_their_turns_alike),
        TEST(code_has_its_class),
        TEST(full_database_is_full_and_the_session_lives_on),
        TEST(file_size_limit_is_full_too),
        TEST(damaged_file_says_so),
        TEST(read_only_target_refuses_writes),
        TEST(prepared_statement_is_one_statement),
        TEST(whole_number_key_is_the_tables_own),
        TEST(fixed_width_text_is_loaded_with_its_blanks),
        TEST(facts_tell_what_decides_durability),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
