// What a study has found: a table of values by block and slot (study/plan.h), compared by
// stats/judge.h. Pure functions. docs/study.md tells the method to users.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "stats/judge.h"
#include "study/plan.h"

enum study_measure { STUDY_TPS, STUDY_P99, STUDY_MEASURES };

struct study_outcome {
    const struct study_plan *plan;
    int blocks;                     // begun
    double *values[STUDY_MEASURES]; // [block * slots + slot]; NaN: no such run
    char **reasons; // [cell]: why it failed; NULL: it did not. A failed cell is left out
};

void study_outcome_init(struct study_outcome *outcome, const struct study_plan *plan);
void study_outcome_release(struct study_outcome *outcome);

// Keeps the value of a run. > 0; anything else counts as none.
void study_put(struct study_outcome *outcome, enum study_measure measure, int block, int slot,
               double value);
void study_fail_cell(struct study_outcome *outcome, int cell, const char *reason);

// All values of a cell, without those that are missing; values has room for 2 * blocks. Returns
// how many.
int study_cell_values(const struct study_outcome *outcome, enum study_measure measure, int cell,
                      double *values);

// Cell 0's second runs against its first: what a difference of nothing looks like here. Not known
// (effect_is_known) when it did not run twice.
void study_twins(const struct study_outcome *outcome, enum study_measure measure,
                 struct effect *ret);

// A cell against its baseline, in pairs of blocks.
void study_effect(const struct study_outcome *outcome, enum study_measure measure, int cell,
                  struct effect *ret);

// Every cell that is no baseline and has not failed: effects and judgements by cell (those of
// others are not touched), as one family. Returns how many there are.
int study_judge(const struct study_outcome *outcome, enum study_measure measure, double alpha,
                struct effect *effects, struct judgement *judgements);

// Whether all intervals of throughput are narrow enough (stats/judge.h); to be asked after each
// block.
enum stop study_may_stop(const struct study_outcome *outcome, struct stop_rule *rule);
