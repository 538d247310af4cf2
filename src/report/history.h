// The runs of one name over time, and where their level changed.
#pragma once

#include <stdio.h>

#include "report/comparison.h"
#include "stats/changes.h"

struct history {
    const struct side *side; // oldest first
    enum measure measure;
    double *values; // of the runs in `at`
    int *at;        // numbers of runs of the side that have a value
    int n;
    struct change *changes; // indices into values
    int n_changes;
};

void history_make(const struct side *side, enum measure measure, struct history *ret);
void history_release(struct history *history);

void history_text(const struct history *history, const struct report_style *style, FILE *out);
// docs/json.md. Negative when writing failed.
int history_json(const struct history *history, FILE *out);
