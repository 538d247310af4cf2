// Numbers with units: what is read, what is refused and with which words, what people see.
#include "base/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/rng.h"

static void assert_mentions(const struct err *err, const char *part)
{
    if (!strstr(err->text, part))
        fail_msg("error \"%s\" does not mention \"%s\"", err->text, part);
    assert_int_equal(err->kind, ERR_USAGE);
}

static void test_int_is_read_whole(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"20000", 20000},
        {"-3", -3},
        {"+7", 7},
        {"007", 7},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(good); i++) {
        int64_t value = 42;
        struct err err = ERR_INIT;
        assert_int_equal(units_parse_int(good[i].text, &value, &err), 0);
        assert_int_equal(value, good[i].value);
        assert_int_equal(err.kind, ERR_NONE);
    }
}

static void test_int_refuses_anything_else_and_names_it(void **state)
{
    static const char *const bad[] = {"abc",
                                      "",
                                      " 5",
                                      "5 ",
                                      "1e5",
                                      "1,000",
                                      "1 000",
                                      "0x10",
                                      "12.5",
                                      "--3",
                                      "-",
                                      "+",
                                      "5k",
                                      "\n5",
                                      "inf",
                                      "9223372036854775808",
                                      "99999999999999999999999999"};
    (void)state;
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        int64_t value = 42;
        struct err err = ERR_INIT;
        assert_true(units_parse_int(bad[i], &value, &err) < 0);
        assert_int_equal(value, 42);
        assert_mentions(&err, "must be a whole number");
        assert_true(units_parse_int(bad[i], &value, NULL) < 0);
    }
    struct err err = ERR_INIT;
    units_parse_int("abc", &(int64_t){0}, &err);
    assert_string_equal(err.text, "abc: must be a whole number");
    units_parse_int("", &(int64_t){0}, &err);
    assert_string_equal(err.text, "'': must be a whole number");
}

static void test_double_is_finite_and_whole(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.5", 0.5}, {"1e-3", 1e-3}, {"-2", -2}, {".5", 0.5}, {"3.", 3}, {"+1E2", 100}};
    static const char *const bad[] = {"",    "nan",      "inf", "-inf", "1e999", "0x1p3",
                                      " 1",  "1 ",       "1,5", "e5",   ".",     "1.2.3",
                                      "1-2", "infinity", "1e",  "- 1"};
    (void)state;
    for (size_t i = 0; i < ARR_LEN(good); i++) {
        double value = 42;
        assert_int_equal(units_parse_double(good[i].text, &value, NULL), 0);
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        double value = 42;
        struct err err = ERR_INIT;
        if (units_parse_double(bad[i], &value, &err) == 0)
            fail_msg("\"%s\" was taken as %g", bad[i], value);
        assert_mentions(&err, "must be a number");
        assert_true(value == 42);
    }
}

static void test_durations_are_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t bare_ns;
        int64_t ns;
    } good[] = {
        {"250us", NS_PER_S, 250000},
        {"250\u00b5s", NS_PER_S, 250000},
        {"250\u03bcs", NS_PER_S, 250000},
        {"7ns", NS_PER_S, 7},
        {"2ms", NS_PER_S, 2000000},
        {"60s", NS_PER_S, 60 * NS_PER_S},
        {"60 s", NS_PER_S, 60 * NS_PER_S},
        {"60", NS_PER_S, 60 * NS_PER_S},
        {"60", NS_PER_MS, 60 * NS_PER_MS},
        {"5m", NS_PER_S, 300 * NS_PER_S},
        {"5min", NS_PER_S, 300 * NS_PER_S},
        {"3 min", NS_PER_S, 180 * NS_PER_S},
        {"1h", NS_PER_S, 3600 * NS_PER_S},
        {"1d", NS_PER_S, 86400 * NS_PER_S},
        {"1.5s", NS_PER_S, 1500000000},
        {"0.1s", NS_PER_S, 100000000},
        {".1s", NS_PER_S, 100000000},
        {"0.1ns", NS_PER_S, 0},
        {"0.5ns", NS_PER_S, 1},
        {"0.3us", NS_PER_S, 300},
        {"0", NS_PER_S, 0},
        {"0", 0, 0},
        {"0s", 0, 0},
        {"9223372036854775807ns", 0, INT64_MAX},
        {"00000000000000000000000000001s", 0, NS_PER_S},
        {"2562047h", 0, 2562047 * (3600 * NS_PER_S)},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(good); i++) {
        int64_t ns = -1;
        if (units_parse_duration(good[i].text, good[i].bare_ns, &ns, NULL) < 0)
            fail_msg("\"%s\" was refused", good[i].text);
        assert_int_equal(ns, good[i].ns);
    }
}

static void test_durations_refuse_other_text_and_name_it(void **state)
{
    static const char *const bad[] = {"",
                                      "s",
                                      "5x",
                                      "-1s",
                                      "-1",
                                      "1e3",
                                      "5 mins",
                                      "60s ",
                                      " 60s",
                                      "1h30m",
                                      "1..5s",
                                      "1.2.3",
                                      "S",
                                      "60S",
                                      "inf",
                                      "nan",
                                      "5M",
                                      "2562048h",
                                      "9223372036854775808ns",
                                      "107000d",
                                      "99999999999999999999s",
                                      "0.00000000000000000000001s"};
    (void)state;
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        int64_t ns = 42;
        struct err err = ERR_INIT;
        if (units_parse_duration(bad[i], NS_PER_S, &ns, &err) == 0)
            fail_msg("\"%s\" was taken as %lld", bad[i], (long long)ns);
        assert_int_equal(ns, 42);
        assert_mentions(&err, "must be a duration such as");
    }
    int64_t ns = 42;
    struct err err = ERR_INIT;
    assert_true(units_parse_duration("60", 0, &ns, &err) < 0); // a unit is required
    assert_mentions(&err, "60: must be a duration");
}

static void test_sizes_are_powers_of_1024(void **state)
{
    int64_t ram = units_ram_bytes();
    const struct {
        const char *text;
        int64_t bytes;
    } good[] = {
        {"4096", 4096},
        {"0", 0},
        {"8k", 8192},
        {"8K", 8192},
        {"8kB", 8192},
        {"8KiB", 8192},
        {"100B", 100},
        {"512MiB", 512LL << 20},
        {"512 mb", 512LL << 20},
        {"12GB", 12LL << 30},
        {"1.5G", 3LL << 29},
        {"0.5k", 512},
        {"2T", 2LL << 40},
        {"1PB", 1LL << 50},
        {"7E", 7LL << 60},
        {"2xRAM", 2 * ram},
        {"0.5xram", (ram + 1) / 2},
    };
    static const char *const bad[] = {"",
                                      "k",
                                      "8q",
                                      "8kk",
                                      "8kBi",
                                      "-8k",
                                      "1e3",
                                      "8E",
                                      "8 k B",
                                      "x",
                                      "xRAM",
                                      "2RAM",
                                      "9223372036854775808",
                                      "2x",
                                      "8Z"};
    (void)state;
    assert_true(ram > 1 << 20);
    for (size_t i = 0; i < ARR_LEN(good); i++) {
        int64_t bytes = -1;
        if (units_parse_size(good[i].text, &bytes, NULL) < 0)
            fail_msg("\"%s\" was refused", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        int64_t bytes = 42;
        struct err err = ERR_INIT;
        if (units_parse_size(bad[i], &bytes, &err) == 0)
            fail_msg("\"%s\" was taken as %lld", bad[i], (long long)bytes);
        assert_int_equal(bytes, 42);
        assert_mentions(&err, "must be a size such as");
    }
}

static void test_error_text_is_safe_for_a_terminal(void **state)
{
    struct err err = ERR_INIT;
    (void)state;
    units_parse_int("\033[2Jx", &(int64_t){0}, &err);
    assert_null(strchr(err.text, '\033'));
    assert_non_null(strstr(err.text, "\\x1b"));
}

struct written {
    int64_t value;
    const char *text;
};

static void check_written(const struct written *cases, size_t n, char *format(int64_t, char *))
{
    char out[UNITS_MAX];

    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(format(cases[i].value, out), out);
        assert_string_equal(out, cases[i].text);
    }
}

static void test_durations_are_written_with_three_digits(void **state)
{
    static const struct written cases[] = {
        {0, "0 s"},
        {1, "1 ns"},
        {999, "999 ns"},
        {1000, "1.00 us"},
        {187000, "187 us"},
        {999499, "999 us"},
        {999500, "1.00 ms"},
        {2310000, "2.31 ms"},
        {9994999, "9.99 ms"},
        {9995000, "10.0 ms"},
        {99960000, "100 ms"},
        {1050000000, "1.05 s"},
        {59900000000, "59.9 s"},
        {59960000000, "1 min 0 s"},
        {200 * NS_PER_S, "3 min 20 s"},
        {3599 * NS_PER_S, "59 min 59 s"},
        {3599 * NS_PER_S + 600000000, "1 h 0 min"},
        {7500 * NS_PER_S, "2 h 5 min"},
        {-2310000, "-2.31 ms"},
        {INT64_MAX, "2562047 h 47 min"},
        {INT64_MIN, "-2562047 h 47 min"},
    };
    (void)state;
    check_written(cases, ARR_LEN(cases), units_format_duration);
}

static void test_exact_durations_are_the_shortest_text(void **state)
{
    static const struct written cases[] = {
        {0, "0s"},
        {2 * NS_PER_MS, "2ms"},
        {90 * NS_PER_S, "90s"},
        {60 * NS_PER_S, "1m"},
        {3600 * NS_PER_S, "1h"},
        {1500 * NS_PER_MS, "1.5s"},
        {250 * NS_PER_US, "250us"},
        {1, "1ns"},
        {1234567, "1234567ns"},
        {INT64_MAX, "9223372036854775807ns"},
    };
    (void)state;
    check_written(cases, ARR_LEN(cases), units_format_duration_exact);
}

static void test_bytes_are_written_for_people(void **state)
{
    static const struct written cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {8192, "8 KiB"},
        {1536, "1.50 KiB"},
        {(1 << 20) - 1, "1.00 MiB"},
        {312LL << 20, "312 MiB"},
        {1567663555, "1.46 GiB"},
        {1000LL << 10, "1000 KiB"},
        {(1000LL << 10) + 1, "1000 KiB"},
        {-8192, "-8 KiB"},
        {INT64_MAX, "8.00 EiB"},
        {INT64_MIN, "-8 EiB"},
    };
    static const struct written exact[] = {
        {0, "0"},
        {1, "1"},
        {1023, "1023"},
        {8192, "8kB"},
        {1536, "1536"},
        {12LL << 30, "12GB"},
        {512LL << 20, "512MB"},
        {INT64_MAX, "9223372036854775807"},
        {1LL << 62, "4EB"},
    };
    (void)state;
    check_written(cases, ARR_LEN(cases), units_format_bytes);
    check_written(exact, ARR_LEN(exact), units_format_bytes_exact);
}

static void test_counts_stand_thousands_apart(void **state)
{
    static const struct written cases[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1 000"},
        {1021500, "1 021 500"},
        {-100, "-100"},
        {-1000, "-1 000"},
        {INT64_MAX, "9 223 372 036 854 775 807"},
        {INT64_MIN, "-9 223 372 036 854 775 808"},
    };
    (void)state;
    check_written(cases, ARR_LEN(cases), units_format_count);
}

static void test_rates_have_three_to_four_digits(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},         {0.85, "0.85"},     {0.0012, "0.0012"},  {1.2345, "1.23"},
        {9.996, "10.0"},  {12.34, "12.3"},    {99.96, "100"},      {1372.4, "1372"},
        {9999.4, "9999"}, {9999.6, "10 000"}, {35512.2, "35 512"}, {NAN, "-"},
        {INFINITY, "-"},  {1e300, "1e+300"},  {-12.34, "-12.3"},
    };
    char out[UNITS_MAX];
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_string_equal(units_format_rate(cases[i].value, out), cases[i].text);
}

// A value of random magnitude, often round.
static int64_t random_value(struct rng *rng)
{
    int64_t value = (int64_t)(rng_u64(rng) >> rng_range(rng, 1, 63));
    static const int64_t factors[] = {1, 1000, 1000000, 1000000000, 60000000000, 1024, 1 << 20};
    int64_t factor = factors[rng_range(rng, 0, (int64_t)ARR_LEN(factors) - 1)];

    return value < INT64_MAX / factor ? value * factor : value;
}

static void test_exact_texts_read_back_to_the_same_value(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, 20261130, 1, RNG_DATA);
    for (int i = 0; i < 20000; i++) {
        int64_t value = random_value(&rng), back = -1;
        char out[UNITS_MAX];
        units_format_duration_exact(value, out);
        if (units_parse_duration(out, 0, &back, NULL) < 0 || back != value)
            fail_msg("%lld ns was written %s and read %lld", (long long)value, out,
                     (long long)back);
        units_format_bytes_exact(value, out);
        if (units_parse_size(out, &back, NULL) < 0 || back != value)
            fail_msg("%lld bytes were written %s and read %lld", (long long)value, out,
                     (long long)back);
        // The readable forms need not be exact, but must fit and be terminated.
        assert_true(strlen(units_format_duration(value, out)) < UNITS_MAX);
        assert_true(strlen(units_format_bytes(value, out)) < UNITS_MAX);
        assert_true(strlen(units_format_count(value, out)) < UNITS_MAX);
        assert_true(strlen(units_format_rate((double)value / 1e6, out)) < UNITS_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_int_is_read_whole),
        cmocka_unit_test(test_int_refuses_anything_else_and_names_it),
        cmocka_unit_test(test_double_is_finite_and_whole),
        cmocka_unit_test(test_durations_are_exact),
        cmocka_unit_test(test_durations_refuse_other_text_and_name_it),
        cmocka_unit_test(test_sizes_are_powers_of_1024),
        cmocka_unit_test(test_error_text_is_safe_for_a_terminal),
        cmocka_unit_test(test_durations_are_written_with_three_digits),
        cmocka_unit_test(test_exact_durations_are_the_shortest_text),
        cmocka_unit_test(test_bytes_are_written_for_people),
        cmocka_unit_test(test_counts_stand_thousands_apart),
        cmocka_unit_test(test_rates_have_three_to_four_digits),
        cmocka_unit_test(test_exact_texts_read_back_to_the_same_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
