// Effects of factors in a study whose cells are combinations of factor levels, and whether two
// factors interact. Works on contrasts within blocks: one number per block, then Student's t on
// these (n - 1 degrees), so that cells may differ in their noise and what a block shares cancels
// (Box, Hunter and Hunter 2005, chapters 4 and 5). Pure functions.
#pragma once

#include "stats/effect.h"

struct factorial {
    int n_factors, n_cells, n_blocks;
    const int *level;     // [cell * n_factors + factor]: 0 is the level the others are compared to
    const double *values; // [block * n_cells + cell]: positive; NaN where a run is missing
};

// The ratio that `level` of a factor makes against its level 0: the mean over all pairs of cells
// that differ in this factor only. A block in which a cell of any pair is missing does not count.
// Not known when the design has no such pair.
void factorial_effect(const struct factorial *design, int factor, int level, struct effect *ret);

// How many times larger the effect of level_a of factor_a is with level_b of factor_b than with
// level 0 of it (1.2: another 20 %; 1: they do not interact): the mean over all squares of four
// cells. The same in both directions. Blocks as above.
void factorial_interaction(const struct factorial *design, int factor_a, int level_a, int factor_b,
                           int level_b, struct effect *ret);
