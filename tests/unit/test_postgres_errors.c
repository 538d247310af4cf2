// What SQLSTATEs and libpq's texts about failed connections mean. No server, no libpq.
#include "db/postgres_errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"

static const struct {
    const char *state;
    enum db_class class;
} states[] = {
    {"40001", DB_SERIALIZATION},
    {"40P01", DB_DEADLOCK},
    {"55P03", DB_BUSY},
    {"57014", DB_CANCELLED},
    {"57P01", DB_LOST},
    {"57P02", DB_LOST},
    {"57P03", DB_LOST},
    {"57P04", DB_LOST},
    {"57P05", DB_LOST},
    {"08000", DB_LOST},
    {"08006", DB_LOST},
    {"08P01", DB_LOST},
    {"40003", DB_LOST},
    {"53300", DB_TOO_MANY},
    {"28000", DB_DENIED},
    {"28P01", DB_DENIED},
    {"42501", DB_DENIED},
    {"3D000", DB_NO_DATABASE},
    {"42P01", DB_UNDEFINED},
    {"42703", DB_UNDEFINED},
    {"42883", DB_UNDEFINED},
    {"42704", DB_UNDEFINED},
    {"3F000", DB_UNDEFINED},
    {"26000", DB_UNDEFINED},
    {"42601", DB_SYNTAX},
    {"23505", DB_CONSTRAINT},
    {"23503", DB_CONSTRAINT},
    {"23502", DB_CONSTRAINT},
    {"23514", DB_CONSTRAINT},
    {"40002", DB_CONSTRAINT},
    {"25006", DB_READ_ONLY},
    {"53100", DB_FULL},
    {"53200", DB_FULL},
    {"53400", DB_FULL},
    {"25P02", DB_OTHER},
    {"22012", DB_OTHER},
    {"42P07", DB_OTHER},
    {"0A000", DB_OTHER},
    {"XX000", DB_OTHER},
    {"40000", DB_OTHER},
    {"57000", DB_OTHER},
    {"", DB_OTHER},
    {"4", DB_OTHER},
    {"ZZZZZ", DB_OTHER},
};

static void a_sqlstate_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(states); i++) {
        enum db_class class = postgres_class(states[i].state);
        if (class != states[i].class)
            fail_msg("%s: %s, expected %s", states[i].state, db_class_name(class),
                     db_class_name(states[i].class));
    }
}

#define SOCKET "connection to server on socket \"/tmp/.s.PGSQL.5432\" failed: "
#define HOST_A "connection to server at \"a\" (10.0.0.1), port 5432 failed: "
#define HOST_B "connection to server at \"b\" (10.0.0.2), port 5432 failed: "
#define PLACE  "LOCATION:  auth_failed, auth.c:338\n"

static const struct {
    const char *message;
    bool needs_password;
    enum db_class class;
    const char *state;
    const char *text; // what people see
} refusals[] = {
    // the server's answers
    {SOCKET "FATAL:  28P01: password authentication failed for user \"u\"\n" PLACE, false,
     DB_DENIED, "28P01", SOCKET "password authentication failed for user \"u\""},
    {SOCKET "FATAL:  28000: no pg_hba.conf entry for host \"[local]\"\n" PLACE, false, DB_DENIED,
     "28000", SOCKET "no pg_hba.conf entry for host \"[local]\""},
    {SOCKET "FATAL:  3D000: database \"d\" does not exist\n" PLACE, false, DB_NO_DATABASE, "3D000",
     SOCKET "database \"d\" does not exist"},
    {SOCKET "FATAL:  42501: permission denied for database \"d\"\nDETAIL:  User does not have "
            "CONNECT privilege.\n" PLACE,
     false, DB_DENIED, "42501", SOCKET "permission denied for database \"d\""},
    {SOCKET "FATAL:  53300: sorry, too many clients already\n" PLACE, false, DB_TOO_MANY, "53300",
     SOCKET "sorry, too many clients already"},
    {SOCKET "FATAL:  57P03: the database system is starting up\n" PLACE, false, DB_UNAVAILABLE,
     "57P03", SOCKET "the database system is starting up"},
    {SOCKET "FATAL:  57P01: terminating connection\n" PLACE, false, DB_UNAVAILABLE, "57P01",
     SOCKET "terminating connection"},
    {SOCKET "FATAL:  55000: database \"d\" is not currently accepting connections\n" PLACE, false,
     DB_DENIED, "55000", SOCKET "database \"d\" is not currently accepting connections"},
    {SOCKET "FATAL:  42704: unrecognized configuration parameter \"foo\"\n" PLACE, false, DB_OTHER,
     "42704", SOCKET "unrecognized configuration parameter \"foo\""},
    // in another language
    {SOCKET "ВАЖНО:  3D000: база данных \"d\" не существует\nПОЛОЖЕНИЕ:  InitPostgres, "
            "postinit.c:948\n",
     false, DB_NO_DATABASE, "3D000", SOCKET "база данных \"d\" не существует"},
    // nobody answers
    {SOCKET "No such file or directory\n\tIs the server running locally and accepting "
            "connections on that socket?\n",
     false, DB_UNAVAILABLE, "", SOCKET "No such file or directory"},
    {HOST_A "Connection refused\n\tIs the server running on that host and accepting TCP/IP "
            "connections?\n",
     false, DB_UNAVAILABLE, "", HOST_A "Connection refused"},
    {"could not translate host name \"x\" to address: Name or service not known\n", false,
     DB_UNAVAILABLE, "",
     "could not translate host name \"x\" to address: Name or service not known"},
    // libpq's own refusals
    {SOCKET "fe_sendauth: no password supplied\n", true, DB_DENIED, "",
     SOCKET "fe_sendauth: no password supplied"},
    {HOST_A "server does not support SSL, but SSL was required\n", false, DB_DENIED, "",
     HOST_A "server does not support SSL, but SSL was required"},
    {HOST_A "SSL error: certificate verify failed\n", false, DB_DENIED, "",
     HOST_A "SSL error: certificate verify failed"},
    {SOCKET "server is not in hot standby mode\n", false, DB_UNAVAILABLE, "",
     SOCKET "server is not in hot standby mode"},
    // several addresses, several attempts
    {HOST_A "Connection refused\n\tIs the server running?\n" HOST_B
            "FATAL:  3D000: database \"d\" does not exist\n" PLACE,
     false, DB_NO_DATABASE, "3D000",
     HOST_A "Connection refused; " HOST_B "database \"d\" does not exist"},
    {HOST_A "FATAL:  57P03: starting up\n" PLACE HOST_B "FATAL:  28000: no entry\n" PLACE, false,
     DB_DENIED, "28000", HOST_A "starting up; " HOST_B "no entry"},
    {SOCKET "FATAL:  28000: no entry, SSL encryption\n" PLACE SOCKET
            "FATAL:  28000: no entry, SSL encryption\n" PLACE,
     false, DB_DENIED, "28000", SOCKET "no entry, SSL encryption"},
    // pgbouncer before 1.19
    {HOST_A "FATAL:  08P01: no such database: d\n", false, DB_NO_DATABASE, "08P01",
     HOST_A "no such database: d"},
    {HOST_A "FATAL:  08P01: password authentication failed\n", false, DB_DENIED, "08P01",
     HOST_A "password authentication failed"},
    {HOST_A "FATAL:  08P01: no more connections allowed (max_client_conn)\n", false, DB_TOO_MANY,
     "08P01", HOST_A "no more connections allowed (max_client_conn)"},
    {HOST_A "FATAL:  08P01: server login has been failing\n", false, DB_UNAVAILABLE, "08P01",
     HOST_A "server login has been failing"},
    // nothing that looks like a code
    {SOCKET "odd:  12: too short\n", false, DB_UNAVAILABLE, "", SOCKET "odd:  12: too short"},
    {"", false, DB_UNAVAILABLE, "", ""},
};

static void a_refusal_is_classed_by_its_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(refusals); i++) {
        char native[SQLSTATE_MAX];
        enum db_class class =
            postgres_connect_class(refusals[i].message, refusals[i].needs_password, native);
        if (class != refusals[i].class || strcmp(native, refusals[i].state) != 0)
            fail_msg("%s: %s %s, expected %s %s", refusals[i].message, db_class_name(class), native,
                     db_class_name(refusals[i].class), refusals[i].state);
    }
}

static void a_refusal_is_told_in_one_line_without_codes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(refusals); i++) {
        struct str text = STR_INIT;
        postgres_add_connect_text(&text, refusals[i].message);
        assert_string_equal(text.buf, refusals[i].text);
        str_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sqlstate_has_its_class),
        cmocka_unit_test(a_refusal_is_classed_by_its_code),
        cmocka_unit_test(a_refusal_is_told_in_one_line_without_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
