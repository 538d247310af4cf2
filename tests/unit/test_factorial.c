// Factor effects and interactions in blocks: made-up studies whose answers are known.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/factorial.h"

// Two file systems, three settings; the third setting gains 20 % more on the second file system.
enum { FS, SETTING, FACTORS };
enum { CELLS = 6, BLOCKS = 8 };

static const int levels[CELLS * FACTORS] = {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2};

static double true_level(int fs, int setting)
{
    static const double by_setting[] = {1, 1.05, 1.5};

    return 1000 * (fs ? 0.8 : 1) * by_setting[setting] * (fs && setting == 2 ? 1.2 : 1);
}

static double *make_values(double noise)
{
    double *values = mem_calloc((size_t)CELLS * BLOCKS, sizeof(*values));
    struct rng rng;

    rng_init(&rng, 5, 0, RNG_DATA);
    for (int block = 0; block < BLOCKS; block++)
        for (int cell = 0; cell < CELLS; cell++)
            values[block * CELLS + cell] =
                true_level(levels[cell * FACTORS], levels[cell * FACTORS + 1]) *
                (1 + 0.5 * block) * // what a block shares
                exp(noise * (rng_double(&rng) - 0.5));
    return values;
}

static struct factorial design_of(const double *values)
{
    return (struct factorial){.n_factors = FACTORS,
                              .n_cells = CELLS,
                              .n_blocks = BLOCKS,
                              .level = levels,
                              .values = values};
}

static void effects_are_means_over_the_other_factors(void **state)
{
    double *values = make_values(0);
    struct factorial design = design_of(values);
    struct effect e;

    (void)state;
    factorial_effect(&design, FS, 1, &e);
    assert_true(fabs(e.log_ratio - (log(0.8) + log(1.2) / 3)) < 1e-9);
    factorial_effect(&design, SETTING, 1, &e);
    assert_true(fabs(e.log_ratio - log(1.05)) < 1e-9);
    factorial_effect(&design, SETTING, 2, &e);
    assert_true(fabs(e.log_ratio - (log(1.5) + log(1.2) / 2)) < 1e-9);
    assert_int_equal(e.n_old, BLOCKS);
    free(values);
}

static void interactions_are_how_much_more_an_effect_is_elsewhere(void **state)
{
    double *values = make_values(0.02);
    struct factorial design = design_of(values);
    struct effect there, none, swapped;

    (void)state;
    factorial_interaction(&design, SETTING, 2, FS, 1, &there);
    assert_true(fabs(there.log_ratio - log(1.2)) < 0.02);
    assert_true(effect_p(&there) < 1e-6);
    factorial_interaction(&design, SETTING, 1, FS, 1, &none);
    assert_true(fabs(none.log_ratio) < 0.02 && effect_p(&none) > 0.01);
    factorial_interaction(&design, FS, 1, SETTING, 2, &swapped);
    assert_true(fabs(swapped.log_ratio - there.log_ratio) < 1e-9);
    free(values);
}

static void a_block_with_a_missing_run_is_left_out_where_it_matters(void **state)
{
    double *values = make_values(0);
    struct factorial design = design_of(values);
    struct effect e;

    (void)state;
    values[3 * CELLS + 2] = NAN; // file system 0, setting 2
    factorial_effect(&design, SETTING, 2, &e);
    assert_int_equal(e.n_old, BLOCKS - 1);
    assert_true(fabs(e.log_ratio - (log(1.5) + log(1.2) / 2)) < 1e-9);
    factorial_effect(&design, SETTING, 1, &e);
    assert_int_equal(e.n_old, BLOCKS);
    free(values);
}

static void excluded_cells_leave_the_pairs_there_are(void **state)
{
    double *values = make_values(0);
    struct factorial design = design_of(values);
    struct effect e;

    (void)state;
    // The last cell (file system 1, setting 2) was never planned.
    double *fewer = mem_calloc((size_t)(CELLS - 1) * BLOCKS, sizeof(*fewer));
    for (int i = 0, at = 0; i < CELLS * BLOCKS; i++)
        if (i % CELLS != CELLS - 1)
            fewer[at++] = values[i];
    design.n_cells = CELLS - 1;
    design.values = fewer;
    factorial_effect(&design, FS, 1, &e);
    assert_true(fabs(e.log_ratio - log(0.8)) < 1e-9);
    factorial_effect(&design, SETTING, 2, &e);
    assert_true(fabs(e.log_ratio - log(1.5)) < 1e-9);
    factorial_interaction(&design, SETTING, 2, FS, 1, &e);
    assert_true(!effect_is_known(&e) && isnan(e.log_ratio));
    free(fewer);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(effects_are_means_over_the_other_factors),
        cmocka_unit_test(interactions_are_how_much_more_an_effect_is_elsewhere),
        cmocka_unit_test(a_block_with_a_missing_run_is_left_out_where_it_matters),
        cmocka_unit_test(excluded_cells_leave_the_pairs_there_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
