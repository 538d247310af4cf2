// A study: the combinations of its factors, each measured once in every block, in an order drawn
// anew for each block. Pure functions.
//
//   factor   a name with values: the target itself, settings of the target, options of `prony run`
//   cell     one combination; cell 0 has the first value of every factor
//   load     a factor that says how much load there is (clients, rate, ...), not what is loaded:
//            cells are compared with the one of the same load whose other factors have their first
//            values (the baseline)
//   slot     what is measured in a block: every cell once, and cell 0 a second time in studies of
//            STUDY_TWICE blocks or more: two equal cells show what a difference of nothing looks
//            like
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/str.h"

#define STUDY_CELLS_MAX  1000
#define STUDY_BLOCKS_MAX 1000
#define STUDY_TWICE      4
#define STUDY_TARGET     "target" // the factor of several targets

struct study_factor {
    char *name;
    char **values;
    int n_values;
    bool is_option; // of prony run; else a setting of the target, or the target
    bool is_load;
};

struct study_plan {
    struct study_factor *factors;
    size_t n_factors, cap_factors;
    int n_cells;
    int blocks; // at most
    bool twice; // cell 0 runs twice in each block
    uint64_t seed;
};

// Adds the factor NAME=VALUE,VALUE,... A value that holds a comma stands in braces. The rows are
// prony run's, by which a name is an option. Needs two values, each once; ERR_USAGE else, also for
// a name that was given before.
int study_add_factor(struct study_plan *plan, const char *text, const struct opt_row *run_rows,
                     struct err *err);
// The same with the values in hand. Copies.
int study_add_values(struct study_plan *plan, const char *name, char *const *values, size_t n,
                     const struct opt_row *run_rows, struct err *err);

// When all factors are there: counts the cells. aa: cell 0 twice and nothing else to compare.
int study_close_plan(struct study_plan *plan, int blocks, bool aa, struct err *err);
void study_plan_release(struct study_plan *plan);

int study_slots(const struct study_plan *plan); // in a block
int study_slot_cell(const struct study_plan *plan, int slot);
// The order of a block's slots: a permutation from the seed (Fisher-Yates). order has room for all.
void study_order(const struct study_plan *plan, int block, int *order);

// The place of a cell's value among those of a factor.
int study_level(const struct study_plan *plan, int cell, size_t factor);
// What a cell is compared with: itself when it is a baseline.
int study_baseline(const struct study_plan *plan, int cell);

// "journal_mode=wal, clients=4"; "the only cell" where there are no factors.
void study_cell_name(const struct study_plan *plan, int cell, struct str *out);

// The target of a cell: base, or the cell's own value of the factor target, with the cell's
// settings put behind it. ERR_USAGE when the target is written in a way that takes none.
int study_cell_target(const struct study_plan *plan, int cell, const char *base, struct str *out,
                      struct err *err);
