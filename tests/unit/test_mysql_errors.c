// What MySQL's and MariaDB's error numbers mean. No server, no library.
#include "db/mysql_errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"

static const struct {
    unsigned code;
    const char *sqlstate, *message;
    enum db_class class, connecting;
} cases[] = {
    // may be tried again
    {1213, "40001", "Deadlock found", DB_DEADLOCK, DB_DEADLOCK},
    {1205, "HY000", "Lock wait timeout exceeded", DB_BUSY, DB_BUSY},
    {3572, "HY000", "NOWAIT", DB_BUSY, DB_BUSY},
    {1020, "HY000", "Record has changed since last read in table 't'", DB_SERIALIZATION,
     DB_SERIALIZATION},
    {3101, "40000", "rolled back by a plugin", DB_SERIALIZATION, DB_SERIALIZATION},
    // the session is gone; while connecting, nobody answers
    {2006, "HY000", "Server has gone away", DB_LOST, DB_UNAVAILABLE},
    {2013, "HY000", "Lost connection to server during query", DB_LOST, DB_UNAVAILABLE},
    {2055, "HY000", "Lost connection: reset by peer", DB_LOST, DB_UNAVAILABLE},
    {2014, "HY000", "Commands out of sync", DB_LOST, DB_UNAVAILABLE},
    {2026, "HY000", "TLS/SSL error: unexpected eof", DB_LOST, DB_UNAVAILABLE},
    {1053, "08S01", "Server shutdown in progress", DB_LOST, DB_UNAVAILABLE},
    {1927, "70100", "Connection was killed", DB_LOST, DB_UNAVAILABLE},
    {3169, "HY000", "Session was killed", DB_LOST, DB_UNAVAILABLE},
    {4031, "HY000", "disconnected because of inactivity", DB_LOST, DB_UNAVAILABLE},
    {1152, "08S01", "Aborted connection", DB_LOST, DB_UNAVAILABLE},
    {1159, "08S01", "Got timeout reading communication packets", DB_LOST, DB_UNAVAILABLE},
    // connecting
    {2002, "HY000", "Can't connect to local server through socket", DB_LOST, DB_UNAVAILABLE},
    {2003, "HY000", "Can't connect to server on 'h' (111)", DB_LOST, DB_UNAVAILABLE},
    {2005, "HY000", "Unknown server host 'h' (-2)", DB_LOST, DB_UNAVAILABLE},
    {1040, "08004", "Too many connections", DB_TOO_MANY, DB_TOO_MANY},
    {1203, "42000", "max_user_connections", DB_TOO_MANY, DB_TOO_MANY},
    {1226, "42000", "has exceeded the resource", DB_TOO_MANY, DB_TOO_MANY},
    {1045, "28000", "Access denied (using password: YES)", DB_DENIED, DB_DENIED},
    {1044, "42000", "Access denied to database", DB_DENIED, DB_DENIED},
    {1698, "28000", "Access denied", DB_DENIED, DB_DENIED},
    {1130, "HY000", "Host is not allowed to connect", DB_DENIED, DB_DENIED},
    {2059, "HY000", "Authentication plugin cannot be loaded", DB_DENIED, DB_DENIED},
    {1049, "42000", "Unknown database 'x'", DB_NO_DATABASE, DB_NO_DATABASE},
    {1046, "3D000", "No database selected", DB_NO_DATABASE, DB_NO_DATABASE},
    // fails again
    {1142, "42000", "INSERT command denied", DB_DENIED, DB_DENIED},
    {1227, "42000", "you need the SUPER privilege", DB_DENIED, DB_DENIED},
    {1146, "42S02", "Table doesn't exist", DB_UNDEFINED, DB_UNDEFINED},
    {1054, "42S22", "Unknown column", DB_UNDEFINED, DB_UNDEFINED},
    {1305, "42000", "FUNCTION does not exist", DB_UNDEFINED, DB_UNDEFINED},
    {1286, "42000", "Unknown storage engine 'x'", DB_UNDEFINED, DB_UNDEFINED},
    {1064, "42000", "You have an error in your SQL syntax", DB_SYNTAX, DB_SYNTAX},
    {1100, "HY000", "was not locked with LOCK TABLES", DB_SYNTAX, DB_SYNTAX},
    {1062, "23000", "Duplicate entry '1' for key 'PRIMARY'", DB_CONSTRAINT, DB_CONSTRAINT},
    {1048, "23000", "cannot be null", DB_CONSTRAINT, DB_CONSTRAINT},
    {1452, "23000", "a foreign key constraint fails", DB_CONSTRAINT, DB_CONSTRAINT},
    {1406, "22001", "Data too long", DB_CONSTRAINT, DB_CONSTRAINT},
    {4025, "23000", "CONSTRAINT failed", DB_CONSTRAINT, DB_CONSTRAINT},
    {1792, "25006", "in a READ ONLY transaction", DB_READ_ONLY, DB_READ_ONLY},
    {1836, "HY000", "Running in read-only mode", DB_READ_ONLY, DB_READ_ONLY},
    {1290, "HY000", "running with the --read-only option", DB_READ_ONLY, DB_READ_ONLY},
    {1290, "HY000", "running with the --super-read-only option", DB_READ_ONLY, DB_READ_ONLY},
    {1290, "HY000", "running with the --secure-file-priv option", DB_DENIED, DB_DENIED},
    {1317, "70100", "Query execution was interrupted", DB_CANCELLED, DB_CANCELLED},
    {1969, "70100", "max_statement_time exceeded", DB_CANCELLED, DB_CANCELLED},
    {3024, "HY000", "maximum statement execution time exceeded", DB_CANCELLED, DB_CANCELLED},
    // limits, and the disk's end in the text of other troubles
    {1114, "HY000", "The table 't' is full", DB_FULL, DB_FULL},
    {1021, "HY000", "Disk full", DB_FULL, DB_FULL},
    {1461, "42000", "max_prepared_stmt_count", DB_FULL, DB_FULL},
    {1030, "HY000", "Got error 28 \"No space left on device\" from storage engine InnoDB", DB_FULL,
     DB_FULL},
    {1026, "HY000", "Error writing file './x' (Errcode: 28 \"No space left on device\")", DB_FULL,
     DB_FULL},
    {3, "HY000", "Error writing file '/tmp/x' (Errcode: 122 \"Disk quota exceeded\")", DB_FULL,
     DB_FULL},
    {1030, "HY000", "Got error 168 \"Unknown\" from storage engine InnoDB", DB_OTHER, DB_OTHER},
    {1030, "HY000", "Got error 1280 from storage engine", DB_OTHER, DB_OTHER},
    // numbers that prony does not know go by their SQLSTATE
    {9001, "23000", "odd", DB_CONSTRAINT, DB_CONSTRAINT},
    {9001, "40001", "odd", DB_SERIALIZATION, DB_SERIALIZATION},
    {9001, "42S02", "odd", DB_UNDEFINED, DB_UNDEFINED},
    {9001, "28000", "odd", DB_DENIED, DB_DENIED},
    {9001, "08003", "odd", DB_LOST, DB_UNAVAILABLE},
    {9001, "08S01", "odd", DB_OTHER, DB_OTHER},
    {9001, "70100", "odd", DB_CANCELLED, DB_CANCELLED},
    {9001, "HY000", "odd", DB_OTHER, DB_OTHER},
    {9001, NULL, NULL, DB_OTHER, DB_OTHER},
    {1, "", "", DB_OTHER, DB_OTHER},
};

static void test_number_state_and_text_give_the_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        enum db_class got =
            mysqldb_class(cases[i].code, cases[i].sqlstate, cases[i].message, false);
        if (got != cases[i].class)
            fail_msg("%u \"%s\" is %s, expected %s", cases[i].code,
                     cases[i].message ? cases[i].message : "", db_class_name(got),
                     db_class_name(cases[i].class));
        got = mysqldb_class(cases[i].code, cases[i].sqlstate, cases[i].message, true);
        if (got != cases[i].connecting)
            fail_msg("while connecting, %u \"%s\" is %s, expected %s", cases[i].code,
                     cases[i].message ? cases[i].message : "", db_class_name(got),
                     db_class_name(cases[i].connecting));
    }
}

static void test_unavailable_is_for_connecting_only(void **state)
{
    (void)state;
    for (unsigned code = 1; code < 10000; code++) {
        assert_int_not_equal(mysqldb_class(code, "HY000", "", false), DB_UNAVAILABLE);
        assert_int_not_equal(mysqldb_class(code, "HY000", "", true), DB_LOST);
    }
}

// The table is searched by halves: a row out of order would be found by some numbers only.
static void test_no_row_of_the_table_hides(void **state)
{
    int known = 0;

    (void)state;
    for (unsigned code = 1000; code < 5000; code++)
        known += mysqldb_class(code, "HY000", "", false) != DB_OTHER;
    assert_true(known > 100);
    assert_int_equal(mysqldb_class(1005, "HY000", "", false), DB_CONSTRAINT); // first
    assert_int_equal(mysqldb_class(4166, "HY000", "", false), DB_DENIED);     // last
}

static void test_stale_and_unpreparable_statements(void **state)
{
    static const struct {
        unsigned code;
        bool stale, unpreparable;
    } rows[] = {
        {1243, true, false},  {1615, true, false},  {1210, true, false},  {2057, true, false},
        {2013, true, false},  {1295, false, true},  {1047, false, true},  {1062, false, false},
        {1213, false, false}, {1064, false, false}, {3024, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(rows); i++) {
        if (mysqldb_is_stale_statement(rows[i].code) != rows[i].stale ||
            mysqldb_is_unpreparable(rows[i].code) != rows[i].unpreparable)
            fail_msg("%u", rows[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number_state_and_text_give_the_class),
        cmocka_unit_test(test_unavailable_is_for_connecting_only),
        cmocka_unit_test(test_no_row_of_the_table_hides),
        cmocka_unit_test(test_stale_and_unpreparable_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
