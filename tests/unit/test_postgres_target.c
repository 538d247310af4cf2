// What a target's URL becomes: libpq's parameters, what is shown, and what is refused before
// anything is connected.
#include "db/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"

#define KEEPALIVES \
    " keepalives_idle=10 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=25000"
#define DEFAULTS "fallback_application_name=prony connect_timeout=10" KEEPALIVES

// The environment of the test is empty but for PGUSER=me and PGHOST=/run/pg.
static const struct {
    const char *url;
    const char *params; // as handed to libpq
    const char *display;
} targets[] = {
    {"postgres", DEFAULTS, "postgres:host=/run/pg port=5432 dbname=me user=me"},
    {"postgresql:", DEFAULTS, "postgres:host=/run/pg port=5432 dbname=me user=me"},
    {"postgres:bench", "dbname=bench " DEFAULTS,
     "postgres:host=/run/pg port=5432 dbname=bench user=me"},
    {"postgres:host=/tmp dbname=x user=y", "user=y dbname=x host=/tmp " DEFAULTS,
     "postgres:host=/tmp port=5432 dbname=x user=y"},
    {"postgres://u@db1/bench", "user=u host=db1 dbname=bench " DEFAULTS,
     "postgres://u@db1:5432/bench"},
    {"postgres://db1:6000", "host=db1 port=6000 " DEFAULTS, "postgres://me@db1:6000/me"},
    {"postgres://[::1]:5433/x", "host=::1 port=5433 dbname=x " DEFAULTS,
     "postgres://me@[::1]:5433/x"},
    {"postgres://%2Ftmp:6000/x", "host=/tmp port=6000 dbname=x " DEFAULTS,
     "postgres:host=/tmp port=6000 dbname=x user=me"},
    {"postgres:///x?host=/tmp", "dbname=x host=/tmp " DEFAULTS,
     "postgres:host=/tmp port=5432 dbname=x user=me"},
    {"postgres:hostaddr=127.0.0.1 dbname=x host=h", "dbname=x host=h hostaddr=127.0.0.1 " DEFAULTS,
     "postgres://me@h:5432/x?hostaddr=127.0.0.1"},
    // passwords go to libpq and nowhere else
    {"postgres://u:secret@h/d?sslpassword=hush",
     "user=u password=secret host=h dbname=d sslpassword=hush " DEFAULTS, "postgres://u@h:5432/d"},
    {"postgres:host=/tmp password='a b' user=u", "user=u password=a b host=/tmp " DEFAULTS,
     "postgres:host=/tmp port=5432 dbname=u user=u"},
    {"postgres://h/d?password=secret", "host=h dbname=d password=secret " DEFAULTS,
     "postgres://me@h:5432/d"},
    // parameters
    {"postgres://h/d?sslmode=require&application_name=x",
     "host=h dbname=d sslmode=require application_name=x " DEFAULTS,
     "postgres://me@h:5432/d?sslmode=require&application_name=x"},
    {"postgres://h/d?options={-c geqo=off}", "host=h dbname=d options=-c geqo=off " DEFAULTS,
     "postgres://me@h:5432/d?options={-c geqo=off}"},
    {"postgres:host=/tmp?options=-c%20geqo%3Doff", "host=/tmp options=-c geqo=off " DEFAULTS,
     "postgres:host=/tmp port=5432 dbname=me user=me options='-c geqo=off'"},
    {"postgres:host=/tmp application_name='it\\'s'", "host=/tmp application_name=it's " DEFAULTS,
     "postgres:host=/tmp port=5432 dbname=me user=me application_name='it\\'s'"},
    {"postgres://h/d?ssl=true", "host=h dbname=d sslmode=require " DEFAULTS,
     "postgres://me@h:5432/d?sslmode=require"},
    {"postgres://h/d?host=other", "host=other dbname=d " DEFAULTS, "postgres://me@other:5432/d"},
    {"postgres://h/d?fallback_application_name=mine",
     "host=h dbname=d fallback_application_name=mine"
     " connect_timeout=10" KEEPALIVES,
     "postgres://me@h:5432/d?fallback_application_name=mine"},
    // a '?' in a connection string would begin a query when it is read again
    {"postgres:host=/tmp?application_name=a%3Fb", "host=/tmp application_name=a?b " DEFAULTS,
     "postgres://me@%2Ftmp:5432/me?application_name=a?b"},
    // several hosts
    {"postgres://a:1,b:2/d", "host=a,b port=1,2 dbname=d " DEFAULTS, "postgres://me@a:1,b:2/d"},
    // the user's own word on timeouts
    {"postgres://h/d?connect_timeout=3",
     "host=h dbname=d connect_timeout=3 fallback_application_name=prony" KEEPALIVES,
     "postgres://me@h:5432/d?connect_timeout=3"},
    {"postgres://h/d?keepalives=0",
     "host=h dbname=d keepalives=0 fallback_application_name=prony connect_timeout=10",
     "postgres://me@h:5432/d?keepalives=0"},
    {"postgres://h/d?tcp_user_timeout=5000",
     "host=h dbname=d tcp_user_timeout=5000 fallback_application_name=prony connect_timeout=10",
     "postgres://me@h:5432/d?tcp_user_timeout=5000"},
};

static int open_target(const char *url, struct db_target **ret, struct err *err)
{
    const struct db_open_options options = {0};

    return db_open(ret, url, &options, err);
}

static char *params_of(const struct db_target *target)
{
    const struct postgres_target *t = (const struct postgres_target *)target;
    struct str out = STR_INIT;

    for (size_t i = 0; t->keywords[i]; i++)
        str_addf(&out, "%s%s=%s", i ? " " : "", t->keywords[i], t->values[i]);
    return str_detach(&out);
}

static void a_target_becomes_libpq_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(targets); i++) {
        struct db_target *target;
        struct err err = ERR_INIT;
        if (open_target(targets[i].url, &target, &err) < 0)
            fail_msg("%s: %s", targets[i].url, err.text);
        char *params = params_of(target);
        assert_string_equal(params, targets[i].params);
        assert_string_equal(db_display(target), targets[i].display);
        free(params);
        db_close(target);
    }
}

static void what_is_shown_leads_to_the_same_target(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(targets); i++) {
        struct db_target *target;
        struct err err = ERR_INIT;
        if (open_target(targets[i].display, &target, &err) < 0)
            fail_msg("%s: %s", targets[i].display, err.text);
        assert_string_equal(db_display(target), targets[i].display);
        db_close(target);
    }
}

static const struct {
    const char *url;
    const char *text; // a part of the error
} refused[] = {
    {"postgres:hots=/tmp", "unknown parameter hots of a postgres target, did you mean host"},
    {"postgres://h/d?sslmod=require", "did you mean sslmode"},
    {"postgres://h/d?engine=innodb", "unknown parameter engine of a postgres target"},
    {"postgres://h/d?ssl=maybe", "unknown parameter ssl"},
    {"postgres://h/d?sslmode=maybe", "sslmode value: \"maybe\""},
    {"postgres://h/d?target_session_attrs=maybe", "target_session_attrs"},
    {"postgres://h/d?connect_timeout=soon", "bad value soon of connect_timeout"},
    {"postgres://h/d?keepalives_idle=1s", "bad value 1s of keepalives_idle"},
    {"postgres:host=h port=0", "bad port 0"},
    {"postgres:host=h port=abc", "bad port abc"},
    {"postgres:host=a,b,c port=1,2", "2 ports for 3 hosts"},
    {"postgres:host=a hostaddr=127.0.0.1,127.0.0.2", "bad postgres target"},
    {"postgres:service=nowhere", "service \"nowhere\" not found"},
    {"postgres:host=h password='secret", "unterminated quoted string"},
    {"postgres:host=h password=secret =", "bad postgres target"},
};

static void a_bad_target_is_refused_without_connecting(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(refused); i++) {
        struct db_target *target;
        struct err err = ERR_INIT;
        if (open_target(refused[i].url, &target, &err) == 0)
            fail_msg("%s was taken", refused[i].url);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, refused[i].text))
            fail_msg("%s: %s, expected %s", refused[i].url, err.text, refused[i].text);
        assert_null(strstr(err.text, "secret"));
    }
}

static void the_time_to_connect_is_the_users_or_the_callers(void **state)
{
    static const struct {
        const char *url;
        int64_t caller_ns, expected_ns;
    } cases[] = {
        {"postgres://h/d", 0, 10 * NS_PER_S},
        {"postgres://h/d", 500 * NS_PER_MS, 500 * NS_PER_MS},
        {"postgres://h/d?connect_timeout=3", 0, 3 * NS_PER_S},
        {"postgres://h/d?connect_timeout=0", 0, 0}, // waits for ever, as in libpq
        {"postgres://h/d?connect_timeout=-1", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct db_target *target;
        struct err err = ERR_INIT;
        const struct db_open_options options = {.connect_timeout_ns = cases[i].caller_ns};
        assert_int_equal(db_open(&target, cases[i].url, &options, &err), 0);
        assert_int_equal(((struct postgres_target *)target)->connect_timeout_ns,
                         cases[i].expected_ns);
        db_close(target);
    }
}

// libpq reads the environment: what the machine has set must not decide the test.
static int set_environment(void **state)
{
    static const char *const words[] = {
        "PGHOST",
        "PGHOSTADDR",
        "PGPORT",
        "PGDATABASE",
        "PGUSER",
        "PGPASSWORD",
        "PGSERVICE",
        "PGOPTIONS",
        "PGAPPNAME",
        "PGSSLMODE",
        "PGCONNECT_TIMEOUT",
        "PGTARGETSESSIONATTRS",
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(words); i++)
        unsetenv(words[i]);
    setenv("PGUSER", "me", 1);
    setenv("PGHOST", "/run/pg", 1);
    setenv("PGSERVICEFILE", "/dev/null", 1);
    setenv("PGSYSCONFDIR", "/dev/null", 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_becomes_libpq_parameters),
        cmocka_unit_test(what_is_shown_leads_to_the_same_target),
        cmocka_unit_test(a_bad_target_is_refused_without_connecting),
        cmocka_unit_test(the_time_to_connect_is_the_users_or_the_callers),
    };

    return cmocka_run_group_tests(tests, set_environment, NULL);
}
