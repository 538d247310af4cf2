#include "study/outcome.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void study_outcome_init(struct study_outcome *outcome, const struct study_plan *plan)
{
    size_t n = (size_t)plan->blocks * (size_t)study_slots(plan);

    *outcome = (struct study_outcome){.plan = plan};
    for (int m = 0; m < STUDY_MEASURES; m++) {
        outcome->values[m] = mem_calloc(n, sizeof(double));
        for (size_t i = 0; i < n; i++)
            outcome->values[m][i] = NAN;
    }
    outcome->reasons = mem_calloc((size_t)plan->n_cells, sizeof(char *));
}

void study_outcome_release(struct study_outcome *outcome)
{
    for (int m = 0; m < STUDY_MEASURES; m++)
        free(outcome->values[m]);
    for (int i = 0; outcome->reasons && i < outcome->plan->n_cells; i++)
        free(outcome->reasons[i]);
    free(outcome->reasons);
    *outcome = (struct study_outcome){0};
}

static double *value_at(const struct study_outcome *outcome, enum study_measure measure, int block,
                        int slot)
{
    assert(block >= 0 && block < outcome->plan->blocks);
    assert(slot >= 0 && slot < study_slots(outcome->plan));
    return &outcome->values[measure][block * study_slots(outcome->plan) + slot];
}

void study_put(struct study_outcome *outcome, enum study_measure measure, int block, int slot,
               double value)
{
    *value_at(outcome, measure, block, slot) = isfinite(value) && value > 0 ? value : NAN;
    if (block >= outcome->blocks)
        outcome->blocks = block + 1;
}

void study_fail_cell(struct study_outcome *outcome, int cell, const char *reason)
{
    assert(cell >= 0 && cell < outcome->plan->n_cells);
    if (!outcome->reasons[cell])
        outcome->reasons[cell] = mem_strdup(reason);
}

int study_cell_values(const struct study_outcome *outcome, enum study_measure measure, int cell,
                      double *values)
{
    int n = 0;

    for (int block = 0; block < outcome->blocks; block++)
        for (int slot = 0; slot < study_slots(outcome->plan); slot++) {
            double value = *value_at(outcome, measure, block, slot);
            if (study_slot_cell(outcome->plan, slot) == cell && isfinite(value))
                values[n++] = value;
        }
    return n;
}

// Blocks in which one of the two is missing say nothing about their ratio.
static void pair(const struct study_outcome *outcome, enum study_measure measure, int old_slot,
                 int new_slot, struct effect *ret)
{
    double *old = mem_calloc((size_t)outcome->blocks + 1, sizeof(*old));
    double *new = mem_calloc((size_t)outcome->blocks + 1, sizeof(*new));
    int n = 0;

    for (int block = 0; block < outcome->blocks; block++) {
        old[n] = *value_at(outcome, measure, block, old_slot);
        new[n] = *value_at(outcome, measure, block, new_slot);
        n += isfinite(old[n]) && isfinite(new[n]);
    }
    effect_paired(old, new, n, ret);
    free(old);
    free(new);
}

void study_twins(const struct study_outcome *outcome, enum study_measure measure,
                 struct effect *ret)
{
    int second = outcome->plan->twice ? study_slots(outcome->plan) - 1 : 0;

    if (outcome->plan->twice)
        pair(outcome, measure, 0, second, ret);
    else
        effect_paired(NULL, NULL, 0, ret);
}

void study_effect(const struct study_outcome *outcome, enum study_measure measure, int cell,
                  struct effect *ret)
{
    pair(outcome, measure, study_baseline(outcome->plan, cell), cell, ret);
}

static bool is_compared(const struct study_outcome *outcome, int cell)
{
    int baseline = study_baseline(outcome->plan, cell);

    return cell != baseline && !outcome->reasons[cell] && !outcome->reasons[baseline];
}

int study_judge(const struct study_outcome *outcome, enum study_measure measure, double alpha,
                struct effect *effects, struct judgement *judgements)
{
    int n_cells = outcome->plan->n_cells, n = 0;
    struct effect *family = mem_calloc((size_t)n_cells, sizeof(*family));
    struct judgement *judged = mem_calloc((size_t)n_cells, sizeof(*judged));
    struct judge_rules rules = {.alpha = alpha};

    for (int cell = 0; cell < n_cells; cell++)
        if (is_compared(outcome, cell))
            study_effect(outcome, measure, cell, &family[n++]);
    judge_family(family, n, &rules, judged);
    int k = 0;
    for (int cell = 0; cell < n_cells; cell++)
        if (is_compared(outcome, cell)) {
            effects[cell] = family[k];
            judgements[cell] = judged[k++];
        }
    free(family);
    free(judged);
    return n;
}

enum stop study_may_stop(const struct study_outcome *outcome, struct stop_rule *rule)
{
    int n_cells = outcome->plan->n_cells, n = 0;
    struct effect *effects = mem_calloc((size_t)n_cells + 1, sizeof(*effects));

    for (int cell = 0; cell < n_cells; cell++)
        if (is_compared(outcome, cell))
            study_effect(outcome, STUDY_TPS, cell, &effects[n++]);
    if (n == 0) // --aa
        study_twins(outcome, STUDY_TPS, &effects[n++]);
    enum stop stop = stop_look(rule, effects, n, outcome->blocks);
    free(effects);
    return stop;
}
