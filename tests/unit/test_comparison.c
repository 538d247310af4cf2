// Comparisons in words: the sentences people quote, and what is left out of differences.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/comparison.h"

static struct side side_of(const char *name, double mean, double sd, int n)
{
    return (struct side){
        .name = mem_strdup(name), .is_published = true, .published = {mean, sd, n}};
}

static void verdicts_are_worded_as_promised(void **state)
{
    static const struct {
        enum verdict verdict;
        enum measure measure;
        double ratio, low, high;
        bool is_same;
        const char *words;
    } cases[] = {
        {VERDICT_HIGHER, MEASURE_TPS, 1.081, 1.052, 1.11, false, "faster by 8.1 % (5.2 to 11.0)"},
        {VERDICT_LOWER, MEASURE_TPS, 0.69, 0.57, 0.84, false, "slower by 31 % (16 to 43)"},
        {VERDICT_HIGHER, MEASURE_TPS, 2.4, 2.1, 2.8, false, "2.4 times as fast (2.1 to 2.8)"},
        {VERDICT_SAME, MEASURE_TPS, 1.001, 0.99, 1.01, true, "the same within 2 %"},
        {VERDICT_HIGHER, MEASURE_TPS, 1.008, 1.006, 1.01, true,
         "faster by 0.8 % (0.6 to 1.0), the same within 2 %"},
        {VERDICT_HIGHER, MEASURE_P99, 1.2, 1.1, 1.3, false, "higher by 20 % (10 to 30)"},
        {VERDICT_LOWER, MEASURE_P50, 0.9, 0.85, 0.95, false, "lower by 10 % (5 to 15)"},
    };
    struct side sides[] = {side_of("a", 1, 0, 2), side_of("b", 1, 0, 2)};
    struct comparison c = {.sides = sides, .n_sides = 2, .rules = {.change = 0.03}};
    struct str words = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct compared pair = {.new = 1,
                                .measure = cases[i].measure,
                                .effect = {.degrees = 11},
                                .judged = {.verdict = cases[i].verdict,
                                           .is_same = cases[i].is_same,
                                           .ratio = cases[i].ratio,
                                           .low = cases[i].low,
                                           .high = cases[i].high,
                                           .level = 0.95}};
        str_clear(&words);
        comparison_verdict(&c, &pair, &words);
        assert_string_equal(words.buf, cases[i].words);
    }
    str_release(&words);
    side_release(&sides[0]);
    side_release(&sides[1]);
}

static void an_open_verdict_says_what_it_would_take(void **state)
{
    static const struct {
        double sd; // of a log ratio
        int n;
        enum effect_design design;
        const char *words;
    } cases[] = {
        {0.0361, 8, EFFECT_PAIRED, "no difference shown: it would take about 14 blocks to see 3 %"},
        {0.0361, 14, EFFECT_PAIRED, "no difference shown, and 3 % would have been seen"},
        {0.4, 8, EFFECT_UNPAIRED,
         "no difference shown: it would take about 1500 runs of each to see 3 %"},
        {50, 8, EFFECT_PAIRED,
         "no difference shown: it would take more than a million blocks to see 3 %"},
    };
    struct side sides[] = {side_of("a", 1, 0, 2), side_of("b", 1, 0, 2)};
    struct comparison c = {.sides = sides, .n_sides = 2, .rules = {.change = 0.03}};
    struct str words = STR_INIT;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct compared pair = {.new = 1,
                                .effect = {.design = cases[i].design,
                                           .n_old = cases[i].n,
                                           .n_new = cases[i].n,
                                           .se = 1,
                                           .degrees = 7,
                                           .unit_var = cases[i].sd * cases[i].sd,
                                           .unit_degrees = 1},
                                .judged = {.verdict = VERDICT_OPEN, .level = 0.95}};
        str_clear(&words);
        comparison_verdict(&c, &pair, &words);
        assert_string_equal(words.buf, cases[i].words);
    }
    str_release(&words);
    side_release(&sides[0]);
    side_release(&sides[1]);
}

// The file systems of 2006, 17 runs each.
static void published_file_systems_are_judged(void **state)
{
    const struct comparison_rules rules = {.change = 0.03, .worse = 0.05};
    struct side sides[] = {side_of("JFS", 462, 104, 17), side_of("XFS", 425, 74, 17),
                           side_of("ext3", 319, 106, 17), side_of("writeback", 429.87, 77, 17)};
    struct comparison c;

    (void)state;
    comparison_make(sides, 4, &rules, &c);
    assert_int_equal(comparison_main(&c, 0)->judged.verdict, VERDICT_OPEN);
    assert_int_equal(comparison_main(&c, 1)->judged.verdict, VERDICT_LOWER);
    assert_int_equal(comparison_main(&c, 2)->judged.verdict, VERDICT_OPEN);
    assert_int_equal(c.n_conditions, 3);
    assert_int_equal(c.conditions[0].outcome, OUTCOME_OPEN);
    assert_int_equal(c.conditions[1].outcome, OUTCOME_BAD);
    assert_int_equal(comparison_outcome(&c), OUTCOME_BAD);
    comparison_release(&c);
    for (size_t i = 0; i < ARR_LEN(sides); i++)
        side_release(&sides[i]);
}

static struct result *run_with(const char *kernel, const char *place)
{
    struct result *r = result_new();
    char **texts[] = {&r->target,   &r->engine, &r->workload,
                      &r->protocol, &r->loop,   &r->prony_version};

    for (size_t i = 0; i < ARR_LEN(texts); i++)
        *texts[i] = mem_strdup("x");
    kvs_add(&r->environment, "host.kernel", kernel);
    kvs_add(&r->environment, "data.mount_point", place);
    kvs_add(&r->environment, "data.free_bytes", kernel);
    return r;
}

static void differences_name_what_matters(void **state)
{
    struct result *runs[] = {run_with("2.6.11", "/a"), run_with("2.6.11", "/run/prony/1"),
                             run_with("2.6.15", "/b"), run_with("3.1", "/b")};
    struct run_set sets[] = {{runs, 2}, {runs + 2, 2}, {0}};
    struct differences list = {0};
    struct str words = STR_INIT;

    (void)state;
    differences_find(sets, 2, &list);
    assert_int_equal(list.n, 2);
    difference_words(&list.items[0], 2, &words);
    assert_string_equal(words.buf, "kernel 2.6.11 -> 2.6.15 or 3.1");
    str_clear(&words);
    difference_words(&list.items[1], 2, &words);
    assert_string_equal(words.buf, "data.mount_point /a or - -> /b");
    differences_release(&list, 2);
    // A side without runs has nothing that could differ.
    struct run_set lone[] = {{runs, 1}, {0}};
    differences_find(lone, 2, &list);
    assert_int_equal(list.n, 0);
    differences_release(&list, 2);
    str_release(&words);
    for (size_t i = 0; i < ARR_LEN(runs); i++)
        result_free(runs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_worded_as_promised),
        cmocka_unit_test(an_open_verdict_says_what_it_would_take),
        cmocka_unit_test(published_file_systems_are_judged),
        cmocka_unit_test(differences_name_what_matters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
