// Several sets of runs compared: what differs, how much each measure changed, and what stands
// against believing it. Made from results by comparison_make, told as text or JSON. Pure but for
// the FILE. Method: stats/effect.h, stats/judge.h.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/differences.h"
#include "report/report.h"
#include "stats/effect.h"
#include "stats/judge.h"

enum measure {
    MEASURE_TPS,
    MEASURE_MEAN,
    MEASURE_P50,
    MEASURE_P90,
    MEASURE_P95,
    MEASURE_P99,
    MEASURE_P999,
    MEASURE_MAX,
    MEASURE_COUNT
};
extern const char *const measure_names[]; // "tps", "mean", "p50", ..., ends with NULL

// Of one run: transactions/s or nanoseconds. NaN when the run has none: no transaction, or fewer
// than ten beyond the percentile.
double measure_of(const struct result *run, enum measure measure);
// "1372", "5.1 ms"
void measure_words(enum measure measure, double value, struct str *out);

// One side of a comparison: runs, or published figures of throughput.
struct side {
    char *name;         // as the user named it
    struct run_set set; // owned, oldest first; empty when published
    int left_out;       // runs with the name that did not end well
    char *store;        // path of the results file; blocks of two files have nothing in common
    bool is_published;
    struct summary published;
};
void side_release(struct side *side);

struct comparison_rules {
    enum measure main;     // what answers and conditions are about
    bool every_pair;       // else each against the first
    bool by_boot;          // boots count, not runs
    double change;         // "to see": 0.03
    double worse;          // --fail-if-worse; 0: not asked
    bool is_change_wanted; // the change was asked for: not being able to see it is no good
};

struct compared { // two sides in one measure
    int old, new; // sides
    enum measure measure;
    struct effect effect;
    struct judgement judged;
    bool is_present; // both sides have values
};

#define COULD_SEE_MAX 10.0 // larger changes are only said to be so

enum outcome { OUTCOME_GOOD, OUTCOME_OPEN, OUTCOME_BAD };

struct condition { // --fail-if-worse, --see, --fail-if, as judged for one side
    char *text;
    enum outcome outcome;
};

struct comparison {
    const struct side *sides;
    int n_sides;
    struct comparison_rules rules;
    struct differences differences;
    struct compared *compared; // pair by pair, the main measure first in each
    int n_compared, n_pairs;
    struct condition *conditions;
    size_t n_conditions, cap_conditions;
    struct result_warning *doubts;
    size_t n_doubts, cap_doubts;
};

// Of two sides or more, each with at least one run or published. The sides must outlive it.
void comparison_make(const struct side *sides, int n_sides, const struct comparison_rules *rules,
                     struct comparison *ret);
void comparison_release(struct comparison *comparison);

// What is the main measure of pair i.
const struct compared *comparison_main(const struct comparison *comparison, int pair);

void comparison_add_doubt(struct comparison *comparison, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// --fail-if 'p99>20ms': bad when it holds for a side other than the first. With several runs the
// typical (geometric mean) value counts, and it is open while its 95 % interval holds the limit;
// one run counts as it was measured.
struct objective {
    char *text;
    enum measure measure;
    bool is_errors; // failed and unknown transactions of the worst run; then no measure
    bool above;     // bad above the limit, else below
    double limit;   // in the measure's unit
};
int objective_parse(const char *text, struct objective *ret, struct err *err);
void comparison_add_objective(struct comparison *comparison, const struct objective *objective);

// The worst of all conditions: GOOD without any.
enum outcome comparison_outcome(const struct comparison *comparison);

// "faster by 8.1 % (5.2 to 11.0)", "no difference shown: it would take about 14 blocks to see 3 %",
// "the same within 2 %"
void comparison_verdict(const struct comparison *comparison, const struct compared *compared,
                        struct str *out);

// Parts of comparison_make: what stands against believing it, and the conditions of the rules.
void comparison_find_doubts(struct comparison *comparison);
void comparison_judge(struct comparison *comparison);

void comparison_text(const struct comparison *comparison, const struct report_style *style,
                     FILE *out);
// docs/json.md. Negative when writing failed.
int comparison_json(const struct comparison *comparison, FILE *out);
