// From effects to verdicts: a family of comparisons judged together, how small a change they could
// have shown, how many more blocks it would take, and when a study may stop. Pure functions.
//
// Family: Holm's (1979) step-down correction, so that with any number of comparisons the chance of
// claiming at least one difference where there is none stays at alpha. The interval shown with a
// verdict has the level at which Holm's method tests it, and so never contradicts it: alpha / m for
// the clearest of m, alpha for the last; the first that is not shown, and all after it, share a
// level. Claims of sameness are a family of their own, likewise corrected.
#pragma once

#include <stdbool.h>

#include "stats/effect.h"

// A study that stops by itself is judged at a stricter rate: looking at the width of the intervals
// after each block favours moments when the noise looks smaller than it is. With this one it errs
// in at most 5.7 % of studies whatever the width asked for (tests/unit/test_method.c).
#define JUDGE_ALPHA            0.05
#define JUDGE_ALPHA_SEQUENTIAL 0.038

#define JUDGE_MARGIN 0.02 // `the same within 2 %`
#define JUDGE_POWER  0.8  // what "to see" means: found four times in five

enum verdict {
    VERDICT_TOO_FEW, // not even an interval: a single run on a side
    VERDICT_OPEN,    // no difference shown, nor sameness
    VERDICT_SAME,    // no difference shown, and it is within the margin
    VERDICT_HIGHER,  // the new one's measure is higher (of throughput: faster)
    VERDICT_LOWER,
};

struct judge_rules {
    double alpha;  // of the family; 0: JUDGE_ALPHA
    double margin; // of sameness; 0: JUDGE_MARGIN
};

struct judgement {
    enum verdict verdict;
    bool is_same;     // within the margin; may be true beside a difference that is shown
    double p, p_same; // Holm-corrected; NaN with TOO_FEW
    double level;     // of the interval below: 1 - what Holm's step allows
    double ratio;     // new / old; NaN without values
    double low, high; // its interval; NaN with TOO_FEW
};

// Judges n effects as one family; judgements has room for n. Effects that are not known are not
// counted in it.
void judge_family(const struct effect *effects, int n, const struct judge_rules *rules,
                  struct judgement *judgements);

// Holm's adjusted p-values, in place; values that are NaN are left out.
void judge_holm(double *p, int n);

// "At most `margin` worse": shown or not, or shown to be more. One comparison, one-sided tests.
enum judge_worse {
    WORSE_NO,   // shown to be less than `margin` worse
    WORSE_YES,  // shown to be worse, and by the margin or more as estimated
    WORSE_OPEN, // neither
};
// higher_is_worse: of latencies. With worse by 5 % a throughput ratio is 0.95, a latency's 1.05.
// `judgement` is the effect's own in its family: a loss is one only if it is shown there.
enum judge_worse judge_worse(const struct effect *effect, const struct judgement *judgement,
                             double margin, bool higher_is_worse);

// ---- planning

// Power of the two-sided test at alpha with n pairs, or n values on each side, when the true ratio
// is 1 + change, and the spread is as the effect found it. n >= 2.
double judge_power(const struct effect *effect, double change, int n, double alpha);

// The smallest change (0.034: 3.4 %) found with JUDGE_POWER by what was measured.
double judge_detectable(const struct effect *effect, double alpha);

// Pairs, or values on each side, needed to find `change` with JUDGE_POWER: at least 2, at most
// JUDGE_NEEDED_MAX, which means that or more.
#define JUDGE_NEEDED_MAX 1000000
int judge_needed(const struct effect *effect, double change, double alpha);

// ---- stopping

// A study stops when every 95 % interval has been within `width` of its ratio at three looks in a
// row (one look could be luck), but not before min_blocks; and at max_blocks whatever.
struct stop_rule {
    double width;   // 0.03: each interval reaches at most 3 % up
    int min_blocks; // at least STOP_MIN_BLOCKS
    int max_blocks;
    int narrow; // looks in a row that found all narrow; begins at 0, kept by stop_look
};
#define STOP_MIN_BLOCKS 8
#define STOP_LOOKS      3

enum stop { STOP_NOT_YET, STOP_NARROW, STOP_MAX };

// To be called after each block, with the effects of all `blocks` there are. Looks at the widths
// only, never at the ratios themselves, which is what keeps the error rate (a rule that stops at
// the first difference finds one in every fourth study of two equal set-ups). What it ended with is
// judged at JUDGE_ALPHA_SEQUENTIAL.
enum stop stop_look(struct stop_rule *rule, const struct effect *effects, int n, int blocks);
