#include "stats/factorial.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

// The cell like `cell` but for one factor's level, or -1.
static int cell_with(const struct factorial *d, int cell, int factor, int level)
{
    const int *like = &d->level[cell * d->n_factors];

    for (int i = 0; i < d->n_cells; i++) {
        const int *own = &d->level[i * d->n_factors];
        bool equal = own[factor] == level;
        for (int f = 0; f < d->n_factors && equal; f++)
            equal = f == factor || own[f] == like[f];
        if (equal)
            return i;
    }
    return -1;
}

// One contrast per block: the sum over cells of weight * log(value). Ratios end up in `ret`.
static void contrast(const struct factorial *d, const double *weights, struct effect *ret)
{
    double *ratios = mem_calloc((size_t)d->n_blocks + 1, sizeof(*ratios));
    int n = 0;

    for (int block = 0; block < d->n_blocks; block++) {
        double sum = 0;
        for (int cell = 0; cell < d->n_cells; cell++)
            if (weights[cell] != 0)
                sum += weights[cell] * log(d->values[block * d->n_cells + cell]);
        if (!isnan(sum))
            ratios[n++] = exp(sum);
    }
    effect_of_ratios(ratios, n, ret);
    free(ratios);
}

// Divides by the number of pairs or squares; without any there is no effect to know.
static void mean_contrast(const struct factorial *d, double *weights, int n, struct effect *ret)
{
    for (int cell = 0; cell < d->n_cells && n > 0; cell++)
        weights[cell] /= n;
    if (n > 0)
        contrast(d, weights, ret);
    else
        effect_of_ratios(NULL, 0, ret);
}

void factorial_effect(const struct factorial *d, int factor, int level, struct effect *ret)
{
    double *weights = mem_calloc((size_t)d->n_cells, sizeof(*weights));
    int pairs = 0;

    assert(factor >= 0 && factor < d->n_factors && level > 0);
    for (int cell = 0; cell < d->n_cells; cell++) {
        if (d->level[cell * d->n_factors + factor] != level)
            continue;
        int other = cell_with(d, cell, factor, 0);
        if (other < 0)
            continue;
        weights[cell] += 1;
        weights[other] -= 1;
        pairs++;
    }
    mean_contrast(d, weights, pairs, ret);
    free(weights);
}

void factorial_interaction(const struct factorial *d, int factor_a, int level_a, int factor_b,
                           int level_b, struct effect *ret)
{
    double *weights = mem_calloc((size_t)d->n_cells, sizeof(*weights));
    int squares = 0;

    assert(factor_a != factor_b && level_a > 0 && level_b > 0);
    assert(factor_a >= 0 && factor_a < d->n_factors && factor_b >= 0 && factor_b < d->n_factors);
    for (int cell = 0; cell < d->n_cells; cell++) {
        const int *own = &d->level[cell * d->n_factors];
        if (own[factor_a] != level_a || own[factor_b] != level_b)
            continue;
        int without_a = cell_with(d, cell, factor_a, 0);
        int without_b = cell_with(d, cell, factor_b, 0);
        int without = without_a < 0 ? -1 : cell_with(d, without_a, factor_b, 0);
        if (without_a < 0 || without_b < 0 || without < 0)
            continue;
        weights[cell] += 1;
        weights[without_a] -= 1;
        weights[without_b] -= 1;
        weights[without] += 1;
        squares++;
    }
    mean_contrast(d, weights, squares, ret);
    free(weights);
}
