// Questions about text: what was meant, how wide it is, what is safe to show, what must be hidden.
#include "base/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/proc.h"
#include "base/rng.h"

static void test_near_misses_are_slips_and_beginnings(void **state)
{
    static const char *const words[] = {"clients",  "threads", "time",  "transactions",
                                        "protocol", "rate",    "retry", "x",
                                        "tpcb",     "scale",   NULL};
    static const struct {
        const char *typed, *meant;
    } cases[] = {
        {"client", "clients"},
        {"cleints", "clients"},
        {"clientss", "clients"},
        {"klients", "clients"},
        {"CLIENTS", "clients"},
        {"clients", "clients"},
        {"tiem", "time"},
        {"tcpb", "tpcb"},
        {"tcp", NULL},
        {"trans", "transactions"},
        {"prot", "protocol"},
        {"r", NULL}, // rate or retry
        {"re", "retry"},
        {"t", NULL},
        {"banana", NULL},
        {"", NULL},
        {"y", NULL}, // of one letter nothing is left
        {"sclae", "scale"},
        {"stale", "scale"},
        {"store", NULL},
        {"transactoins", "transactions"},
    };
    char long_word[200];
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        const char *meant = text_near_miss(cases[i].typed, words);
        if (!meant != !cases[i].meant || (meant && strcmp(meant, cases[i].meant) != 0))
            fail_msg("%s: %s", cases[i].typed, meant ? meant : "nothing");
    }
    memset(long_word, 'c', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    assert_null(text_near_miss(long_word, words));
    assert_null(text_near_miss("x", (const char *const[]){NULL}));
    const char *const has_long[] = {long_word, "near", NULL};
    assert_string_equal(text_near_miss("naer", has_long), "near");
}

static void test_nearest_of_several_wins_and_the_first_of_equals(void **state)
{
    static const char *const words[] = {"abcdefxx", "abcdefgx", "abcdefyg", NULL};
    (void)state;
    assert_string_equal(text_near_miss("abcdefgh", words), "abcdefgx");
    assert_string_equal(text_near_miss("abcdefg", words), "abcdefgx");
    assert_string_equal(text_near_miss("abcdefzz", words), "abcdefxx");
}

static void test_unknown_words_are_answered_with_what_is_known(void **state)
{
    static const char *const words[] = {"tpcb", "simple-update", "select-only", NULL};
    static const char *const one[] = {"tpcb", NULL};
    static const char *const many[] = {"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9",
                                       "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", NULL};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(text_unknown("workload", "tcpb", words, &err), -1);
    assert_string_equal(err.text, "unknown workload tcpb, did you mean tpcb?");
    assert_int_equal(err.kind, ERR_USAGE);
    text_unknown("workload", "banana", words, &err);
    assert_string_equal(err.text,
                        "unknown workload banana: must be tpcb, simple-update or select-only");
    text_unknown("workload", "a\033 b", one, &err);
    assert_string_equal(err.text, "unknown workload 'a\\x1b b': must be tpcb");
    text_unknown("pragma", "banana", many, &err);
    assert_string_equal(err.text, "unknown pragma banana");
    text_unknown("table", "x", many + ARR_LEN(many) - 1, &err);
    assert_string_equal(err.text, "unknown table x");
}

static void test_first_word_is_found_behind_blanks_and_comments(void **state)
{
    static const struct {
        const char *text, *word;
        bool is;
    } cases[] = {
        {"select 1", "select", true},
        {"SELECT 1", "select", true},
        {"  \n\tSelect", "select", true},
        {"select(1)", "select", true},
        {"-- comment\nselect", "select", true},
        {"-- select\nupdate", "select", false},
        {"/* a */ -- b\n /* c\n */ select", "select", true},
        {"/* select", "select", false},
        {"/**/select", "select", true},
        {"-- only", "only", false},
        {"selection", "select", false},
        {"select_1", "select", false},
        {"select1", "select", false},
        {"select\xc3\xa9", "select", false},
        {"sel", "select", false},
        {"", "select", false},
        {"- select", "select", false},
        {"/ select", "select", false},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        if (text_first_word_is(cases[i].text, cases[i].word) != cases[i].is)
            fail_msg("<%s> and <%s>", cases[i].text, cases[i].word);
}

static void test_columns_count_code_points_in_the_plain_locale(void **state)
{
    (void)state;
    setlocale(LC_CTYPE, "C");
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("\u00b5s"), 2);
    assert_int_equal(text_columns("\u2588\u2588"), 2);
    assert_int_equal(text_columns("a\xff\xfe"), 3);
}

static void test_columns_know_wide_and_combining_characters_in_utf8(void **state)
{
    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("\u2588"), 1);
    assert_int_equal(text_columns("\u65e5\u672c"), 4);
    assert_int_equal(text_columns("e\u0301"), 1);
    setlocale(LC_CTYPE, "C");
}

static void test_a_cut_text_fits_and_ends_with_a_whole_character(void **state)
{
    static const struct {
        const char *text;
        int columns;
        const char *cut;
    } cases[] = {
        {"abc", 3, "abc"},
        {"abc", 2, "ab"},
        {"abc", 0, ""},
        {"", 0, ""},
        {"\u00e4\u00f6\u00fc", 2, "\u00e4\u00f6"},
        {"\u65e5\u672c", 3, "\u65e5"},
        {"\x80\x80", 1, ""},
    };

    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        snprintf(text, sizeof(text), "%s", cases[i].text);
        text_cut_columns(text, cases[i].columns);
        assert_string_equal(text, cases[i].cut);
    }
    setlocale(LC_CTYPE, "C");
}

static void test_safe_text_cannot_steer_a_terminal(void **state)
{
    static const struct {
        const char *text, *safe;
    } cases[] = {
        {"plain ~!\\x", "plain ~!\\x"},
        {"\u00fc \u65e5 \U0001f600", "\u00fc \u65e5 \U0001f600"},
        {"\033[2J", "\\x1b[2J"},
        {"a\nb\tc\r\x7f", "a\\x0ab\\x09c\\x0d\\x7f"},
        {"\xc2\x9b\x33\x31m", "\\xc2\\x9b31m"},
        {"\u202eabc", "\\xe2\\x80\\xaeabc"},
        {"\u2066", "\\xe2\\x81\\xa6"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xc3", "\\xc3"},          // cut short
        {"\xc0\xaf", "\\xc0\\xaf"}, // overlong '/'
        {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, // a surrogate
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str out = STR_INIT;
        text_add_safe(&out, cases[i].text);
        assert_string_equal(out.buf, cases[i].safe);
        str_release(&out);
    }
}

static void test_shell_words_are_quoted_only_where_needed(void **state)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"plain-1.2_/@:=,+%", "plain-1.2_/@:=,+%"},
        {"", "''"},
        {"a b", "'a b'"},
        {"it's", "'it'\\''s'"},
        {"'", "''\\'''"},
        {"$HOME `x` \"y\" \\", "'$HOME `x` \"y\" \\'"},
        {"a{b}", "'a{b}'"},
        {"~", "'~'"},
        {"\u00fc", "'\u00fc'"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str out = STR_INIT;
        text_add_shell(&out, cases[i].text);
        assert_string_equal(out.buf, cases[i].quoted);
        str_release(&out);
    }
}

static void test_a_real_shell_reads_quoted_words_back(void **state)
{
    static const char bytes[] = "ab '\"\\$`!*?[]{}()<>|&;#~=%\n\t\xc3\xa9";
    struct rng rng;
    struct str command = STR_INIT, expected = STR_INIT;
    struct proc_result result = {0};
    (void)state;
    rng_init(&rng, 20261130, 1, RNG_DATA);
    str_add(&command, "printf '<%s>'");
    for (int i = 0; i < 300; i++) {
        char word[12];
        int len = (int)rng_range(&rng, 0, sizeof(word) - 1);
        for (int j = 0; j < len; j++)
            word[j] = bytes[rng_range(&rng, 0, (int64_t)sizeof(bytes) - 2)];
        word[len] = '\0';
        str_addc(&command, ' ');
        text_add_shell(&command, word);
        str_addf(&expected, "<%s>", word);
    }
    char *argv[] = {(char *)"sh", (char *)"-c", command.buf, NULL};
    assert_int_equal(proc_run(argv, 0, &result, NULL), 0);
    assert_string_equal(result.out.buf, expected.buf);
    proc_result_release(&result);
    str_release(&command);
    str_release(&expected);
}

static void test_secret_keys_are_told_by_their_ending(void **state)
{
    static const char *const secret[] = {"password", "PASSWORD", "sslpassword",
                                         "passwd",   "PWD",      "mysql-password"};
    static const char *const open[] = {"user", "passfile", "password_encryption", "pass", "pw", ""};
    (void)state;
    for (size_t i = 0; i < ARR_LEN(secret); i++)
        assert_true(text_is_secret_key(secret[i], strlen(secret[i])));
    for (size_t i = 0; i < ARR_LEN(open); i++)
        assert_false(text_is_secret_key(open[i], strlen(open[i])));
}

static void test_passwords_are_hidden_and_all_else_is_kept(void **state)
{
    static const struct {
        const char *text, *redacted;
    } cases[] = {
        // nothing to hide
        {"", ""},
        {"sqlite:/tmp/a@b:c.db?x=y", "sqlite:/tmp/a@b:c.db?x=y"},
        {"postgres://h:5432/db", "postgres://h:5432/db"},
        {"postgres://u@h:5432/db?a=b@c", "postgres://u@h:5432/db?a=b@c"},
        {"postgres://h:5432/db?application_name=me@x",
         "postgres://h:5432/db?application_name=me@x"},
        {"postgres://h1:1,h2:2/db", "postgres://h1:1,h2:2/db"},
        {"postgres://[::1]:5432/db", "postgres://[::1]:5432/db"},
        {"postgres://u:@h", "postgres://u:@h"},
        {"server:postgres?data=@fast", "server:postgres?data=@fast"},
        {"fast=loop:size=2G,mkfs={-J size=4}", "fast=loop:size=2G,mkfs={-J size=4}"},
        {"password=", "password="},
        {"12:30@noon", "12:30@noon"},
        // authorities
        {"mysql://u:hush@h/db", "mysql://u:xxx@h/db"},
        {"mysql://:hush@h", "mysql://:xxx@h"},
        {"mysql://u:hu@sh@h", "mysql://u:xxx@h"},
        {"mysql://u:hu:sh@h:3306", "mysql://u:xxx@h:3306"},
        {"mysql://u:hu/sh@h:3306/db", "mysql://u:xxx@h:3306/db"},
        {"mysql://u:hu?sh@h/db", "mysql://u:xxx@h/db"},
        {"mysql://u:hu#sh@h/db", "mysql://u:xxx@h/db"},
        {"mysql://u:12/hu@h/db", "mysql://u:xxx@h/db"},
        {"mysql://u:hush/db", "mysql://u:xxx"},
        {"mysql://u:hush@[::1]:1/db", "mysql://u:xxx@[::1]:1/db"},
        {"mysql:u:hush@h/db", "mysql:u:xxx@h/db"},
        {"//u:hush@h/db", "//u:xxx@h/db"}, // no engine
        {"//u@h/db", "//u@h/db"},
        {"--target=mysql://u:hush@h", "--target=mysql://u:xxx@h"},
        {"mysql://u:hush@h/d?password=hu&a=b", "mysql://u:xxx@h/d?password=xxx&a=b"},
        // keys
        {"x://h?password=hush&a=b", "x://h?password=xxx&a=b"},
        {"x://h?a=b&PASSWD=hush", "x://h?a=b&PASSWD=xxx"},
        {"x://h?password={a&b}&c=d", "x://h?password=xxx&c=d"},
        {"x://h?password={a{b}c}&c=d", "x://h?password=xxx&c=d"},
        {"x://h?password={a", "x://h?password=xxx"},
        {"x://h?password=a&b", "x://h?password=xxx"},
        {"x://h?password=a b&c=d", "x://h?password=xxx&c=d"},
        {"postgres:host=h password=hush user=u", "postgres:host=h password=xxx user=u"},
        {"postgres:password = hush user=u", "postgres:password = xxx user=u"},
        {"postgres:password='hu sh' user=u", "postgres:password=xxx user=u"},
        {"postgres:password='hu\\' sh' user=u", "postgres:password=xxx user=u"},
        {"postgres:password='hu sh", "postgres:password=xxx"},
        {"postgres:password=hu\\ sh user=u", "postgres:password=xxx user=u"},
        {"postgres:password=hu&sh?x user=u", "postgres:password=xxx user=u"},
        {"postgres:password={hu}sh user=u", "postgres:password=xxx user=u"},
        {"odbc:DSN=x;PWD=hu sh;UID=u", "odbc:DSN=x;PWD=xxx;UID=u"},
        {"odbc:DSN=x;PWD={hu;sh};UID=u", "odbc:DSN=x;PWD=xxx;UID=u"},
        {"--mysql-password=hush", "--mysql-password=xxx"},
        {"PGPASSWORD=hush", "PGPASSWORD=xxx"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str out = STR_INIT;
        text_add_redacted(&out, cases[i].text);
        assert_string_equal(out.buf, cases[i].redacted);
        str_release(&out);
    }
}

static void test_connection_strings_lose_their_secrets(void **state)
{
    static const struct {
        const char *scheme, *rest, *kept;
    } cases[] = {
        {"postgres", "", ""},
        {"postgres", "host=h user=u", "host=h user=u"},
        {"postgres", "host=h password=hush user=u", "host=h user=u"},
        {"postgres", "password=hush", ""},
        {"postgres", "  password=hush  user=u", "  user=u"},
        {"postgres", "user=u password = 'hu sh'", "user=u"},
        {"postgres", "password=a sslpassword=b user=u", "user=u"},
        {"odbc", "PWD=hush;UID=u", "UID=u"},
        {"odbc", "UID=u;PWD=hush", "UID=u;"},
        {"mysql", "u:hush@h/db", "u@h/db"},
        {"sqlite", "/tmp/x:y@z.db", "/tmp/x:y@z.db"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str out = STR_INIT;
        text_add_without_secrets(&out, cases[i].scheme, cases[i].rest);
        assert_string_equal(out.buf, cases[i].kept);
        str_release(&out);
    }
}

static void test_the_recorded_command_can_be_typed_again_without_secrets(void **state)
{
    char *argv[] = {(char *)"prony",      (char *)"run",       (char *)"mysql://u:hush@h/my db",
                    (char *)"--password", (char *)"hush",      (char *)"--note",
                    (char *)"it's",       (char *)"",          (char *)"--no-password",
                    (char *)"tpcb",       (char *)"--pwd=hush"};
    struct str out = STR_INIT;
    (void)state;
    text_add_command(&out, ARR_LEN(argv), argv);
    assert_string_equal(out.buf, "prony run 'mysql://u:xxx@h/my db' --password xxx --note "
                                 "'it'\\''s' '' --no-password tpcb --pwd=xxx");
    str_clear(&out);
    text_add_command(&out, 0, argv);
    assert_string_equal(out.buf, "");
    str_release(&out);
}

// Any bytes: nothing crashes, and what is shown as safe holds no control character.
static void test_random_bytes_are_shown_safely(void **state)
{
    static const char special[] = ":/?@={}'&;% \\\033\n";
    struct rng rng;
    (void)state;
    rng_init(&rng, 20261130, 2, RNG_DATA);
    for (int i = 0; i < 20000; i++) {
        char text[40];
        int len = (int)rng_range(&rng, 0, sizeof(text) - 1);
        for (int j = 0; j < len; j++)
            text[j] = rng_range(&rng, 0, 1) ? special[rng_range(&rng, 0, sizeof(special) - 2)]
                                            : (char)rng_range(&rng, 1, 255);
        text[len] = '\0';
        struct str out = STR_INIT, odd = STR_INIT;
        text_add_value(&out, text);
        for (size_t j = 0; j < out.len; j++)
            assert_true((unsigned char)out.buf[j] >= ' ' && out.buf[j] != 0x7f);
        text_add_without_secrets(&odd, "odbc", text);
        assert_true(text_columns(text) <= len);
        (void)text_first_word_is(text, "x");
        str_release(&out);
        str_release(&odd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_misses_are_slips_and_beginnings),
        cmocka_unit_test(test_nearest_of_several_wins_and_the_first_of_equals),
        cmocka_unit_test(test_unknown_words_are_answered_with_what_is_known),
        cmocka_unit_test(test_first_word_is_found_behind_blanks_and_comments),
        cmocka_unit_test(test_columns_count_code_points_in_the_plain_locale),
        cmocka_unit_test(test_columns_know_wide_and_combining_characters_in_utf8),
        cmocka_unit_test(test_a_cut_text_fits_and_ends_with_a_whole_character),
        cmocka_unit_test(test_safe_text_cannot_steer_a_terminal),
        cmocka_unit_test(test_shell_words_are_quoted_only_where_needed),
        cmocka_unit_test(test_a_real_shell_reads_quoted_words_back),
        cmocka_unit_test(test_secret_keys_are_told_by_their_ending),
        cmocka_unit_test(test_passwords_are_hidden_and_all_else_is_kept),
        cmocka_unit_test(test_connection_strings_lose_their_secrets),
        cmocka_unit_test(test_the_recorded_command_can_be_typed_again_without_secrets),
        cmocka_unit_test(test_random_bytes_are_shown_safely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
