// Plans of studies and what comes out of them: cells, baselines, orders, pairs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/outcome.h"

static const struct opt_row run_rows[] = {{"clients"}, {"protocol"}, {NULL}};

static void plan_of(struct study_plan *plan, int blocks, const char *const *factors)
{
    struct err err = ERR_INIT;

    *plan = (struct study_plan){.seed = 7};
    for (; *factors; factors++)
        if (study_add_factor(plan, *factors, run_rows, &err) < 0)
            fail_msg("%s", err.text);
    if (study_close_plan(plan, blocks, plan->n_factors == 0, &err) < 0)
        fail_msg("%s", err.text);
}

static void factors_become_cells(void **state)
{
    static const char *const factors[] = {"journal_mode=delete,wal", "clients=1,4,16", NULL};
    static const char *const names[] = {
        "journal_mode=delete, clients=1",  "journal_mode=delete, clients=4",
        "journal_mode=delete, clients=16", "journal_mode=wal, clients=1",
        "journal_mode=wal, clients=4",     "journal_mode=wal, clients=16"};
    static const int baselines[] = {0, 1, 2, 0, 1, 2}; // clients are a load: compared at each
    struct study_plan plan;

    (void)state;
    plan_of(&plan, 3, factors);
    assert_int_equal(plan.n_cells, 6);
    assert_int_equal(study_slots(&plan), 6); // too few blocks for a second baseline
    for (int cell = 0; cell < 6; cell++) {
        struct str name = STR_INIT;
        study_cell_name(&plan, cell, &name);
        assert_string_equal(name.buf, names[cell]);
        assert_int_equal(study_baseline(&plan, cell), baselines[cell]);
        str_release(&name);
    }
    study_plan_release(&plan);
}

static void loads_alone_are_compared_with_the_first(void **state)
{
    static const char *const factors[] = {"clients=1,4", NULL};
    struct study_plan plan;

    (void)state;
    plan_of(&plan, 3, factors);
    assert_int_equal(study_baseline(&plan, 1), 0);
    study_plan_release(&plan);
}

static void settings_go_to_the_target_and_options_do_not(void **state)
{
    static const struct {
        const char *base, *factor, *target; // of cell 1; NULL: refused
    } cases[] = {
        {"sqlite:", "journal_mode=delete,wal", "sqlite:?journal_mode=wal"},
        {"sqlite:?cache_size=5", "journal_mode=delete,wal",
         "sqlite:?cache_size=5&journal_mode=wal"},
        {"sqlite:", "clients=1,2", "sqlite:"},
        {"sqlite:", "data={loop:size=1G,fs=ext4},{loop:size=1G,fs=xfs,mount={noatime}}",
         "sqlite:?data=loop:size=1G,fs=xfs,mount={noatime}"},
        {"server:postgres", "archive_command=a,{cp %p x}",
         "server:postgres?archive_command={cp %p x}"},
        {"postgres", "work_mem=1MB,2MB", NULL},
        {"postgres:host=/tmp dbname=x", "work_mem=1MB,2MB", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const factors[] = {cases[i].factor, NULL};
        struct study_plan plan;
        struct str target = STR_INIT;
        struct err err = ERR_INIT;
        plan_of(&plan, 3, factors);
        int rc = study_cell_target(&plan, 1, cases[i].base, &target, &err);
        assert_int_equal(rc, cases[i].target ? 0 : -1);
        if (cases[i].target)
            assert_string_equal(target.buf, cases[i].target);
        str_release(&target);
        study_plan_release(&plan);
    }
}

static void wrong_factors_are_refused(void **state)
{
    static const struct {
        const char *factors[3], *says;
    } cases[] = {
        {{"wal"}, "NAME=VALUE"}, {{"=a,b"}, "NAME=VALUE"}, {{"a=1"}, "two values"},
        {{"a=1,,2"}, "empty"},   {{"a=1,1"}, "twice"},     {{"a=1,2", "a=3,4"}, "twice"},
        {{"a={1,2"}, "'}'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct study_plan plan = {0};
        struct err err = ERR_INIT;
        int rc = 0;
        for (const char *const *f = cases[i].factors; *f && rc == 0; f++)
            rc = study_add_factor(&plan, *f, run_rows, &err);
        assert_int_equal(rc, -1);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s", err.text);
        study_plan_release(&plan);
    }
}

static void each_block_has_an_order_of_its_own(void **state)
{
    static const char *const factors[] = {"a=1,2,3,4", NULL};
    struct study_plan plan;
    int order[5], again[5], firsts[5] = {0}, differ = 0;

    (void)state;
    plan_of(&plan, 200, factors);
    assert_int_equal(study_slots(&plan), 5); // the baseline twice
    assert_int_equal(study_slot_cell(&plan, 4), 0);
    for (int block = 0; block < 200; block++) {
        int seen = 0;
        study_order(&plan, block, order);
        study_order(&plan, block, again);
        assert_memory_equal(order, again, sizeof(order));
        for (int i = 0; i < 5; i++)
            seen |= 1 << order[i];
        assert_int_equal(seen, 31);
        firsts[order[0]]++;
        study_order(&plan, 0, again);
        differ += memcmp(order, again, sizeof(order)) != 0;
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(firsts[i], 20, 60); // 40 of 200 each; from a seed, so always the same
    assert_true(differ > 150);
    study_plan_release(&plan);
}

// New is 10 % faster in every block, whatever the block's own speed; one run is missing.
static void pairs_are_of_blocks(void **state)
{
    static const char *const factors[] = {"a=1,2,3", NULL};
    struct study_plan plan;
    struct study_outcome outcome;
    struct effect effects[3], twins;
    struct judgement judged[3];
    double values[20];

    (void)state;
    plan_of(&plan, 6, factors);
    study_outcome_init(&outcome, &plan);
    for (int block = 0; block < 6; block++) {
        double speed = 100 * (block + 1);
        study_put(&outcome, STUDY_TPS, block, 0, speed);
        study_put(&outcome, STUDY_TPS, block, 1, speed * (1.1 + 0.001 * (block % 2)));
        study_put(&outcome, STUDY_TPS, block, 2,
                  block == 2 ? NAN : speed * (0.999 + 0.001 * (block % 3)));
        study_put(&outcome, STUDY_TPS, block, 3, speed * (1 + 0.001 * (block % 3)));
    }
    assert_int_equal(study_judge(&outcome, STUDY_TPS, 0, effects, judged), 2);
    assert_int_equal(judged[1].verdict, VERDICT_HIGHER);
    assert_true(fabs(judged[1].ratio - 1.1005) < 1e-4);
    assert_int_equal(effects[2].n_old, 5);
    assert_int_equal(judged[2].verdict, VERDICT_SAME);
    study_twins(&outcome, STUDY_TPS, &twins);
    assert_true(effect_is_known(&twins) && fabs(twins.log_ratio) < 0.002);
    assert_int_equal(study_cell_values(&outcome, STUDY_TPS, 0, values), 12);
    assert_int_equal(study_cell_values(&outcome, STUDY_TPS, 2, values), 5);
    study_fail_cell(&outcome, 1, "no space");
    assert_int_equal(study_judge(&outcome, STUDY_TPS, 0, effects, judged), 1);
    study_fail_cell(&outcome, 0, "no space"); // the baseline of all
    assert_int_equal(study_judge(&outcome, STUDY_TPS, 0, effects, judged), 0);
    study_outcome_release(&outcome);
    study_plan_release(&plan);
}

static void a_set_up_is_compared_with_itself(void **state)
{
    static const char *const none[] = {NULL};
    struct study_plan plan;
    struct study_outcome outcome;
    struct stop_rule rule = {.width = 0.05, .min_blocks = STOP_MIN_BLOCKS, .max_blocks = 50};
    enum stop stop = STOP_NOT_YET;

    (void)state;
    plan_of(&plan, 50, none);
    study_outcome_init(&outcome, &plan);
    int block = 0;
    for (; block < 50 && stop == STOP_NOT_YET; block++) {
        study_put(&outcome, STUDY_TPS, block, 0, 100 + block % 3);
        study_put(&outcome, STUDY_TPS, block, 1, 100 + block % 2);
        stop = study_may_stop(&outcome, &rule);
    }
    assert_int_equal(stop, STOP_NARROW);
    assert_in_range(block, STOP_MIN_BLOCKS, 20);
    study_outcome_release(&outcome);
    study_plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_become_cells),
        cmocka_unit_test(loads_alone_are_compared_with_the_first),
        cmocka_unit_test(settings_go_to_the_target_and_options_do_not),
        cmocka_unit_test(wrong_factors_are_refused),
        cmocka_unit_test(each_block_has_an_order_of_its_own),
        cmocka_unit_test(pairs_are_of_blocks),
        cmocka_unit_test(a_set_up_is_compared_with_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
