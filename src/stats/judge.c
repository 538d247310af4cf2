#include "stats/judge.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/student.h"

// ---- Holm

struct ranked {
    double p;
    int at;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->p != y->p)
        return (x->p > y->p) - (x->p < y->p);
    return x->at - y->at;
}

// The p-values that there are, ascending. The caller frees.
static struct ranked *rank_p(const double *p, int n, int *ret_m)
{
    struct ranked *ranked = mem_calloc((size_t)n + 1, sizeof(*ranked));
    int m = 0;

    for (int i = 0; i < n; i++)
        if (!isnan(p[i]))
            ranked[m++] = (struct ranked){.p = p[i], .at = i};
    qsort(ranked, (size_t)m, sizeof(*ranked), compare_ranked);
    *ret_m = m;
    return ranked;
}

void judge_holm(double *p, int n)
{
    int m;
    struct ranked *ranked = rank_p(p, n, &m);
    double highest = 0;

    for (int i = 0; i < m; i++) {
        highest = fmax(highest, fmin(1, (m - i) * ranked[i].p));
        p[ranked[i].at] = highest;
    }
    free(ranked);
}

// The level at which Holm's method tests each: alpha / (m - rank) while differences are shown, and
// that of the first which is not for all the rest.
static void holm_levels(const double *p, int n, double alpha, double *levels)
{
    int m;
    struct ranked *ranked = rank_p(p, n, &m);
    int shown = 0;

    for (int i = 0; i < m; i++) {
        if (shown == i && ranked[i].p < alpha / (m - i))
            shown++;
        int step = i < shown ? i : shown;
        levels[ranked[i].at] = 1 - alpha / (m - step);
    }
    free(ranked);
}

// ---- verdicts

static enum verdict verdict_of(const struct judgement *j, double alpha)
{
    if (j->p < alpha)
        return j->ratio > 1 ? VERDICT_HIGHER : VERDICT_LOWER;
    return j->is_same ? VERDICT_SAME : VERDICT_OPEN;
}

void judge_family(const struct effect *effects, int n, const struct judge_rules *rules,
                  struct judgement *judgements)
{
    double alpha = rules && rules->alpha > 0 ? rules->alpha : JUDGE_ALPHA;
    double margin = rules && rules->margin > 0 ? rules->margin : JUDGE_MARGIN;
    double *p = mem_calloc((size_t)n + 1, 3 * sizeof(*p)), *p_same = p + n, *levels = p_same + n;

    assert(alpha < 0.5 && margin < 1);
    for (int i = 0; i < n; i++) {
        bool known = effect_is_known(&effects[i]);
        p[i] = known ? effect_p(&effects[i]) : NAN;
        p_same[i] = known ? effect_p_same(&effects[i], margin) : NAN;
    }
    holm_levels(p, n, alpha, levels);
    judge_holm(p, n);
    judge_holm(p_same, n);
    for (int i = 0; i < n; i++) {
        struct judgement *j = &judgements[i];
        *j = (struct judgement){.verdict = VERDICT_TOO_FEW,
                                .p = p[i],
                                .p_same = p_same[i],
                                .ratio = exp(effects[i].log_ratio),
                                .low = NAN,
                                .high = NAN};
        if (!effect_is_known(&effects[i]))
            continue;
        j->level = levels[i];
        j->is_same = p_same[i] < alpha;
        j->verdict = verdict_of(j, alpha);
        effect_interval(&effects[i], j->level, &j->low, &j->high);
    }
    free(p);
}

enum judge_worse judge_worse(const struct effect *effect, const struct judgement *judgement,
                             double margin, bool higher_is_worse)
{
    enum verdict worse = higher_is_worse ? VERDICT_HIGHER : VERDICT_LOWER;
    double limit = higher_is_worse ? 1 + margin : 1 - margin;

    assert(margin > 0 && margin < 1);
    if (!effect_is_known(effect))
        return WORSE_OPEN;
    double p = higher_is_worse ? effect_p_below(effect, limit) : effect_p_above(effect, limit);
    if (p < JUDGE_ALPHA)
        return WORSE_NO;
    bool beyond = higher_is_worse ? judgement->ratio >= limit : judgement->ratio <= limit;
    return judgement->verdict == worse && beyond ? WORSE_YES : WORSE_OPEN;
}

// ---- planning

static double power_at(double shift, double degrees, double alpha)
{
    double critical = student_quantile(1 - alpha / 2, degrees);

    return student_power(shift, critical, degrees) + student_power(-shift, critical, degrees);
}

double judge_power(const struct effect *e, double change, int n, double alpha)
{
    double shift = fabs(log1p(change));

    assert(n >= 2 && change > -1);
    if (!(e->unit_var > 0))
        return shift > 0 ? 1 : alpha;
    return power_at(shift / sqrt(e->unit_var / n), e->unit_degrees * (n - 1), alpha);
}

double judge_detectable(const struct effect *e, double alpha)
{
    double low = 0, high = 1;

    assert(effect_is_known(e));
    if (!(e->se > 0))
        return 0;
    while (power_at(high, e->degrees, alpha) < JUDGE_POWER && high < 1e6)
        high *= 2;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (power_at(middle, e->degrees, alpha) < JUDGE_POWER)
            low = middle;
        else
            high = middle;
    }
    return expm1(high * e->se);
}

int judge_needed(const struct effect *e, double change, double alpha)
{
    int low = 1, high = 2; // low: not enough

    assert(change != 0);
    while (high < JUDGE_NEEDED_MAX && judge_power(e, change, high, alpha) < JUDGE_POWER) {
        low = high;
        high *= 2;
    }
    if (high > JUDGE_NEEDED_MAX)
        high = JUDGE_NEEDED_MAX;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (judge_power(e, change, middle, alpha) < JUDGE_POWER)
            low = middle;
        else
            high = middle;
    }
    return high;
}

// ---- stopping

static bool all_narrow(const struct stop_rule *rule, const struct effect *effects, int n)
{
    double degrees = 0, t = 0; // the quantile is the dear part, and mostly the same for all

    for (int i = 0; i < n; i++) {
        const struct effect *e = &effects[i];
        if (!effect_is_known(e))
            return false;
        if (e->degrees != degrees) {
            degrees = e->degrees;
            t = student_quantile(0.975, degrees);
        }
        if (t * e->se > log1p(rule->width))
            return false;
    }
    return true;
}

enum stop stop_look(struct stop_rule *rule, const struct effect *effects, int n, int blocks)
{
    assert(rule->width > 0 && rule->min_blocks >= STOP_MIN_BLOCKS);
    assert(rule->max_blocks >= rule->min_blocks);
    if (blocks >= rule->max_blocks)
        return STOP_MAX;
    if (blocks <= rule->min_blocks - STOP_LOOKS) // the last of the looks may be the first to stop
        return STOP_NOT_YET;
    rule->narrow = all_narrow(rule, effects, n) ? rule->narrow + 1 : 0;
    return rule->narrow >= STOP_LOOKS ? STOP_NARROW : STOP_NOT_YET;
}
