// What a target's URL becomes, and what is refused before anything is connected.
#include "db/mysqldb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"

#define INNODB (DB_CAP_TRANSACTIONS | DB_CAP_ROW_LOCKS | DB_CAP_BULK_PARALLEL)

static const struct {
    const char *url;
    const char *host, *socket, *user, *password, *database;
    unsigned port;
    bool force_tcp;
    const char *display;
} targets[] = {
    {"mysql", NULL, NULL, NULL, NULL, NULL, 0, false, "mysql"},
    {"mysql:bench", NULL, NULL, NULL, NULL, "bench", 0, false, "mysql:bench"},
    {"mariadb://u:secret@db1:3307/bench", "db1", NULL, "u", "secret", "bench", 3307, false,
     "mariadb://u@db1:3307/bench"},
    {"mysql://u@/bench?socket=/tmp/s", "localhost", "/tmp/s", "u", NULL, "bench", 0, false,
     "mysql://u@/bench?socket=/tmp/s"},
    {"mysql://u@%2Ftmp%2Fs/bench", "localhost", "/tmp/s", "u", NULL, "bench", 0, false,
     "mysql://u@%2Ftmp%2Fs/bench"},
    {"mysql://localhost/bench?socket=/tmp/s", "localhost", "/tmp/s", NULL, NULL, "bench", 0, false,
     "mysql://localhost/bench?socket=/tmp/s"},
    {"mysql://localhost:3307/bench", "localhost", NULL, NULL, NULL, "bench", 3307, true,
     "mysql://localhost:3307/bench"},
    {"mysql://u@a:1,b:2/bench", "a:1,b:2", NULL, "u", NULL, "bench", 0, false,
     "mysql://u@a:1,b:2/bench"},
    {"mysql:bench?user=u&password=secret&socket=/tmp/s", "localhost", "/tmp/s", "u", "secret",
     "bench", 0, false, "mysql:bench?user=u&socket=/tmp/s"},
};

static const struct {
    const char *url;
    unsigned caps; // beside those every engine has
} engines[] = {
    {"mysql", INNODB | DB_CAP_KEY_FIRST},
    {"mysql://h/d?engine=innodb", INNODB | DB_CAP_KEY_FIRST},
    {"mysql://h/d?engine=InnoDB", INNODB | DB_CAP_KEY_FIRST},
    {"mysql://h/d?engine=rocksdb", INNODB | DB_CAP_KEY_FIRST},
    {"mysql://h/d?engine=myisam", 0},
    {"mysql://h/d?engine=aria", DB_CAP_KEY_FIRST},
    {"mysql://h/d?engine=quite_new", DB_CAP_KEY_FIRST},
};

static const struct {
    const char *url, *says;
} refused[] = {
    {"mysql://h/d?engin=innodb", "unknown parameter engin, did you mean engine?"},
    {"mysql://h/d?sokcet=/tmp/s", "did you mean socket?"},
    {"mysql://h/d?default_file=/x", "did you mean defaults_file?"},
    {"mysql://h/d?sll_ca=/x", "did you mean ssl_ca?"},
    {"mysql://h/d?engine=inodb", "unknown engine inodb, did you mean innodb?"},
    {"mysql://h/d?engine=a-b", "unknown engine a-b"},
    {"mysql://h/d?engine=", "engine is empty"},
    {"mysql://h/d?engine=aria&engine=myisam", "engine stands twice"},
    {"mysql://h/d?connect_timeout=soon", "connect_timeout"},
    {"mysql://h/d?connect_timeout=0", "connect_timeout"},
    {"mysql://h/d?connect_timeout=2h", "connect_timeout"},
    {"mysql://h/d?compress=maybe", "compress: maybe must be 1 or 0"},
    {"mysql://h/d?protocol=pipe", "unknown protocol pipe"},
    {"mysql://h/d?ssl_ca=/does/not/exist", "ssl_ca: cannot read /does/not/exist: No such file"},
    {"mysql://h/d?defaults_file=/does/not/exist", "defaults_file: cannot read"},
    {"mysql://h/d?socket=/tmp/s", "not both"},
    {"mysql://%2Ftmp%2Fs/d?socket=/tmp/t", "the socket stands twice"},
    {"mysql://:3307/d?socket=/tmp/t", "has no port"},
    {"mysql://u@h/d?user=v", "the user stands twice"},
    {"mysql://u:secret@h/d?password=secret", "the password stands twice"},
    {"mysql:host=/tmp dbname=x", "mysql://USER@HOST:PORT/DATABASE"},
};

static struct mysqldb_target *open_target(const char *url, struct err *err)
{
    static const struct db_open_options options = {0};
    struct db_target *target = NULL;

    return db_open(&target, url, &options, err) == 0 ? (struct mysqldb_target *)target : NULL;
}

static void assert_text(const char *url, const char *what, const char *got, const char *expected)
{
    if ((got == NULL) != (expected == NULL) || (got && strcmp(got, expected) != 0))
        fail_msg("%s: %s is %s, expected %s", url, what, got ? got : "none",
                 expected ? expected : "none");
}

static void test_url_says_where_and_who(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(targets); i++) {
        struct err err = ERR_INIT;
        const char *url = targets[i].url;
        struct mysqldb_target *t = open_target(url, &err);
        if (!t)
            fail_msg("%s: %s", url, err.text);
        assert_text(url, "host", t->host, targets[i].host);
        assert_text(url, "socket", t->socket, targets[i].socket);
        assert_text(url, "user", t->user, targets[i].user);
        assert_text(url, "password", t->password, targets[i].password);
        assert_text(url, "database", t->database, targets[i].database);
        assert_int_equal(t->port, targets[i].port);
        assert_int_equal(t->force_tcp, targets[i].force_tcp);
        assert_text(url, "display", db_display(&t->base), targets[i].display);
        assert_string_equal(db_engine(&t->base), "mysql");
        db_close(&t->base);
    }
}

static void test_engine_decides_the_capabilities(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(engines); i++) {
        struct err err = ERR_INIT;
        struct mysqldb_target *t = open_target(engines[i].url, &err);
        if (!t)
            fail_msg("%s: %s", engines[i].url, err.text);
        if (db_caps(&t->base) != (engines[i].caps | DB_CAP_PREPARED | DB_CAP_LOCK_TABLES))
            fail_msg("%s: capabilities %#x", engines[i].url, db_caps(&t->base));
        db_close(&t->base);
    }
}

static void test_bad_targets_are_refused_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(refused); i++) {
        struct err err = ERR_INIT;
        if (open_target(refused[i].url, &err))
            fail_msg("%s was taken", refused[i].url);
        if (!strstr(err.text, refused[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", refused[i].url, err.text, refused[i].says);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(strstr(err.text, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_says_where_and_who),
        cmocka_unit_test(test_engine_decides_the_capabilities),
        cmocka_unit_test(test_bad_targets_are_refused_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
