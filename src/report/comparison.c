// Values of runs into effects and verdicts: pairs by block, piles without, published figures.
#include "report/comparison.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

const char *const measure_names[] = {"tps", "mean",  "p50", "p90", "p95",
                                     "p99", "p99.9", "max", NULL};

static const double quantiles[MEASURE_COUNT] = {
    [MEASURE_P50] = 0.5,  [MEASURE_P90] = 0.9,    [MEASURE_P95] = 0.95,
    [MEASURE_P99] = 0.99, [MEASURE_P999] = 0.999,
};

// Latencies that are compared beside the main measure.
static const enum measure beside[] = {MEASURE_P50, MEASURE_P99, MEASURE_P999};

double measure_of(const struct result *run, enum measure measure)
{
    const double beyond = 10; // transactions that a percentile needs beyond it
    const struct hist_sparse *hist = &run->latency.hist;
    double value = NAN;

    if (measure == MEASURE_TPS)
        value = run->tps;
    else if (hist->m.count == 0)
        return NAN;
    else if (measure == MEASURE_MEAN)
        value = hist_mean_ns(&hist->m);
    else if (measure == MEASURE_MAX)
        value = (double)hist->m.max_ns;
    else if ((double)hist->m.count * (1 - quantiles[measure]) >= beyond * (1 - 1e-9))
        value = (double)hist_sparse_quantile(hist, quantiles[measure]);
    return value > 0 && isfinite(value) ? value : NAN;
}

void measure_words(enum measure measure, double value, struct str *out)
{
    char text[UNITS_MAX];

    if (isnan(value))
        str_add(out, "-");
    else
        str_add(out, measure == MEASURE_TPS ? units_format_rate(value, text)
                                            : units_format_duration((int64_t)value, text));
}

void side_release(struct side *side)
{
    for (int i = 0; i < side->set.n; i++)
        result_free(side->set.runs[i]);
    free(side->set.runs);
    free(side->name);
    free(side->store);
    *side = (struct side){0};
}

// ---- values

struct values {
    double *value;
    int *boot; // equal numbers: the same boot
    int n;
};

static int boot_number(const struct run_set *set, int at)
{
    const char *boot = set->runs[at]->boot_id;

    for (int i = 0; i < at; i++)
        if (boot && set->runs[i]->boot_id && strcmp(boot, set->runs[i]->boot_id) == 0)
            return i;
    return at;
}

static void values_release(struct values *values)
{
    free(values->value);
    free(values->boot);
}

static void values_by_boot(struct values *values)
{
    double *means = mem_calloc((size_t)values->n + 1, sizeof(*means));

    values->n = cluster_means(values->value, values->boot, values->n, means);
    free(values->value);
    values->value = means;
}

// A run each; or, when boots count, a boot each.
static struct values side_values(const struct side *side, enum measure measure, bool by_boot)
{
    size_t room = (size_t)side->set.n + 1;
    struct values v = {.value = mem_calloc(room, sizeof(double)),
                       .boot = mem_calloc(room, sizeof(int))};

    for (int i = 0; i < side->set.n; i++) {
        double value = measure_of(side->set.runs[i], measure);
        if (isnan(value))
            continue;
        v.value[v.n] = value;
        v.boot[v.n++] = boot_number(&side->set, i);
    }
    if (by_boot)
        values_by_boot(&v);
    return v;
}

static bool has_blocks(const struct side *side)
{
    for (int i = 0; i < side->set.n; i++)
        if (side->set.runs[i]->block == 0)
            return false;
    return side->set.n > 0;
}

// The value of a block: the geometric mean, should it hold several runs. NaN: none.
static double block_value(const struct side *side, int64_t block, enum measure measure)
{
    double sum = 0;
    int n = 0;

    for (int i = 0; i < side->set.n; i++)
        if (side->set.runs[i]->block == block) {
            sum += log(measure_of(side->set.runs[i], measure));
            n++;
        }
    return n ? exp(sum / n) : NAN;
}

static bool is_first_of_block(const struct side *side, int at)
{
    for (int i = 0; i < at; i++)
        if (side->set.runs[i]->block == side->set.runs[at]->block)
            return false;
    return true;
}

// Ratios of the blocks that both sides have. boot is that of the new side's first run there.
static struct values block_ratios(const struct side *old, const struct side *new,
                                  enum measure measure, bool by_boot)
{
    size_t room = (size_t) new->set.n + 1;
    struct values v = {.value = mem_calloc(room, sizeof(double)),
                       .boot = mem_calloc(room, sizeof(int))};

    for (int i = 0; i < new->set.n; i++) {
        int64_t block = new->set.runs[i]->block;
        double ratio = is_first_of_block(new, i)
                           ? block_value(new, block, measure) / block_value(old, block, measure)
                           : NAN;
        if (isnan(ratio))
            continue;
        v.value[v.n] = ratio;
        v.boot[v.n++] = boot_number(&new->set, i);
    }
    if (by_boot)
        values_by_boot(&v);
    return v;
}

static bool paired_effect(const struct side *old, const struct side *new, enum measure measure,
                          bool by_boot, struct effect *ret)
{
    if (!has_blocks(old) || !has_blocks(new) || strcmp(old->store, new->store) != 0)
        return false;
    struct values runs = block_ratios(old, new, measure, false);
    bool is_paired = runs.n >= 2;
    values_release(&runs);
    if (!is_paired)
        return false;
    struct values ratios = block_ratios(old, new, measure, by_boot);
    effect_of_ratios(ratios.value, ratios.n, ret);
    values_release(&ratios);
    return true;
}

static struct summary side_summary(const struct side *side, const struct values *values)
{
    struct summary summary = side->published;

    if (!side->is_published)
        effect_summary(values->value, values->n, &summary);
    return summary;
}

static void published_effect(const struct side *old, const struct side *new,
                             const struct values *old_values, const struct values *new_values,
                             struct effect *ret)
{
    struct summary a = side_summary(old, old_values), b = side_summary(new, new_values);

    *ret = (struct effect){.design = EFFECT_UNPAIRED,
                           .n_old = a.n,
                           .n_new = b.n,
                           .log_ratio = log(b.mean / a.mean),
                           .se = NAN};
    if (a.n >= 2 && b.n >= 2)
        effect_published(&a, &b, ret); // else, or where too vague, it stays unknown
}

static void compare_measure(const struct comparison *c, struct compared *pair)
{
    const struct side *old = &c->sides[pair->old], *new = &c->sides[pair->new];
    bool by_boot = c->rules.by_boot;

    if (paired_effect(old, new, pair->measure, by_boot, &pair->effect)) {
        pair->is_present = true;
        return;
    }
    struct values a = side_values(old, pair->measure, by_boot);
    struct values b = side_values(new, pair->measure, by_boot);
    if (old->is_published || new->is_published) {
        pair->is_present = pair->measure == MEASURE_TPS && (old->is_published || a.n > 0) &&
                           (new->is_published || b.n > 0);
        if (pair->is_present)
            published_effect(old, new, &a, &b, &pair->effect);
    } else {
        pair->is_present = a.n > 0 && b.n > 0;
        effect_unpaired(a.value, a.n, b.value, b.n, &pair->effect);
    }
    values_release(&a);
    values_release(&b);
}

// ---- families

// The main measure is one family, all latencies beside it another.
static void judge(struct comparison *c, bool main)
{
    size_t room = (size_t)c->n_compared + 1;
    struct effect *effects = mem_calloc(room, sizeof(*effects));
    struct judgement *judged = mem_calloc(room, sizeof(*judged));
    int n = 0;

    for (int i = 0; i < c->n_compared; i++)
        if ((c->compared[i].measure == c->rules.main) == main && c->compared[i].is_present)
            effects[n++] = c->compared[i].effect;
    judge_family(effects, n, NULL, judged);
    n = 0;
    for (int i = 0; i < c->n_compared; i++)
        if ((c->compared[i].measure == c->rules.main) == main && c->compared[i].is_present)
            c->compared[i].judged = judged[n++];
    free(effects);
    free(judged);
}

static void add_pair(struct comparison *c, int old, int new)
{
    const size_t room = (size_t)c->n_compared + 1 + ARR_LEN(beside);

    c->compared = mem_resize(c->compared, room, sizeof(*c->compared));
    c->compared[c->n_compared++] =
        (struct compared){.old = old, .new = new, .measure = c->rules.main};
    for (size_t i = 0; i < ARR_LEN(beside); i++)
        if (beside[i] != c->rules.main)
            c->compared[c->n_compared++] =
                (struct compared){.old = old, .new = new, .measure = beside[i]};
    c->n_pairs++;
}

const struct compared *comparison_main(const struct comparison *c, int pair)
{
    assert(pair >= 0 && pair < c->n_pairs);
    return &c->compared[pair * (c->n_compared / c->n_pairs)];
}

void comparison_make(const struct side *sides, int n_sides, const struct comparison_rules *rules,
                     struct comparison *ret)
{
    struct run_set *sets = mem_calloc((size_t)n_sides, sizeof(*sets));

    assert(n_sides >= 2);
    *ret = (struct comparison){.sides = sides, .n_sides = n_sides, .rules = *rules};
    for (int i = 0; i < n_sides; i++)
        sets[i] = sides[i].set;
    differences_find(sets, n_sides, &ret->differences);
    free(sets);
    for (int old = 0; old < (rules->every_pair ? n_sides - 1 : 1); old++)
        for (int new = old + 1; new < n_sides; new ++)
            add_pair(ret, old, new);
    for (int i = 0; i < ret->n_compared; i++)
        compare_measure(ret, &ret->compared[i]);
    judge(ret, true);
    judge(ret, false);
    comparison_find_doubts(ret);
    comparison_judge(ret);
}

void comparison_release(struct comparison *c)
{
    differences_release(&c->differences, c->n_sides);
    free(c->compared);
    for (size_t i = 0; i < c->n_conditions; i++)
        free(c->conditions[i].text);
    free(c->conditions);
    for (size_t i = 0; i < c->n_doubts; i++) {
        free(c->doubts[i].id);
        free(c->doubts[i].text);
    }
    free(c->doubts);
    *c = (struct comparison){0};
}

void comparison_add_doubt(struct comparison *c, const char *id, const char *fmt, ...)
{
    struct str text = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    *ARR_PUSH(c->doubts, c->n_doubts, c->cap_doubts) =
        (struct result_warning){.id = mem_strdup(id), .text = str_detach(&text)};
}
