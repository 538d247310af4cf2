// Verdicts and conditions of a comparison, in words.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "report/comparison.h"
#include "report/verdict.h"
#include "stats/interval.h"

// "3 %", "2.5 %"
static void add_limit(struct str *out, double part)
{
    str_addf(out, "%g %%", round(part * 1e5) / 1e3);
}

static const char *unit_of(const struct comparison *c, const struct effect *effect)
{
    bool paired = effect->design == EFFECT_PAIRED;

    return c->rules.by_boot ? (paired ? "boots" : "boots of each")
                            : (paired ? "blocks" : "runs of each");
}

static void add_too_few(const struct comparison *c, const struct compared *pair, struct str *out)
{
    const struct effect *e = &pair->effect;
    bool vague = c->sides[pair->old].is_published || c->sides[pair->new].is_published;

    if (vague && e->n_old > 1 && e->n_new > 1) {
        str_add(out, "nothing can be said: a mean is known no better than to a fifth of itself");
        return;
    }
    double change = pair->judged.ratio - 1;
    str_addf(out, "nothing can be said from one %s: ", c->rules.by_boot ? "boot" : "run");
    str_addf(out, fabs(change) < 10 ? "%.1f" : "%.0f", 100 * fabs(change));
    str_addf(out,
             " %% %s here, but how much %s differ is not known; measure each at least five times",
             change < 0 ? "less" : "more", c->rules.by_boot ? "boots" : "runs");
}

void comparison_verdict(const struct comparison *c, const struct compared *pair, struct str *out)
{
    struct verdict_words words =
        pair->measure == MEASURE_TPS ? verdict_of_throughput : verdict_of_latency;

    words.unit = unit_of(c, &pair->effect);
    words.change = c->rules.change;
    if (pair->judged.verdict == VERDICT_TOO_FEW)
        add_too_few(c, pair, out);
    else
        verdict_add(out, &pair->effect, &pair->judged, JUDGE_MARGIN, &words);
}

// ---- conditions

static void add_condition(struct comparison *c, struct str *text, enum outcome outcome)
{
    *ARR_PUSH(c->conditions, c->n_conditions, c->cap_conditions) =
        (struct condition){.text = str_detach(text), .outcome = outcome};
}

// "the smallest change that could be seen is 7.2 %; it would take about 30 blocks to see 5 %"
static void add_remedy(const struct comparison *c, const struct compared *pair, double change,
                       struct str *out)
{
    if (!effect_is_known(&pair->effect)) {
        str_add(out, "there is no repetition to judge by");
        return;
    }
    double alpha = 1 - pair->judged.level;
    double smallest = judge_detectable(&pair->effect, alpha);
    int needed = judge_needed(&pair->effect, change, alpha);
    str_add(out, "the smallest change that could be seen is ");
    if (smallest < COULD_SEE_MAX)
        str_addf(out, "%.1f", 100 * smallest);
    else
        str_addf(out, "over %.0f", 100 * COULD_SEE_MAX);
    str_add(out, " %; it would take ");
    verdict_add_needed(out, needed, unit_of(c, &pair->effect));
    str_add(out, " to see ");
    add_limit(out, fabs(change));
}

static void judge_fail_if_worse(struct comparison *c, const struct compared *pair)
{
    bool is_latency = pair->measure != MEASURE_TPS;
    enum judge_worse worse =
        pair->is_present ? judge_worse(&pair->effect, &pair->judged, c->rules.worse, is_latency)
                         : WORSE_OPEN;
    struct str text = STR_INIT;

    str_addf(&text, "%s against %s: ", c->sides[pair->new].name, c->sides[pair->old].name);
    switch (worse) {
    case WORSE_NO:
        str_add(&text, "not worse by ");
        add_limit(&text, c->rules.worse);
        break;
    case WORSE_YES:
        str_add(&text, "worse by ");
        add_limit(&text, c->rules.worse);
        str_add(&text, " or more");
        break;
    case WORSE_OPEN:
        str_add(&text, "whether it is worse by ");
        add_limit(&text, c->rules.worse);
        str_add(&text, " cannot be decided: ");
        add_remedy(c, pair, is_latency ? c->rules.worse : -c->rules.worse, &text);
        break;
    }
    add_condition(c, &text,
                  worse == WORSE_NO    ? OUTCOME_GOOD
                  : worse == WORSE_YES ? OUTCOME_BAD
                                       : OUTCOME_OPEN);
}

// A change that was asked for and could not have been seen leaves the question open.
static void judge_change(struct comparison *c, const struct compared *pair)
{
    enum verdict verdict = pair->is_present ? pair->judged.verdict : VERDICT_TOO_FEW;
    struct str text = STR_INIT;

    if (verdict != VERDICT_TOO_FEW && verdict != VERDICT_OPEN)
        return;
    if (verdict == VERDICT_OPEN &&
        judge_detectable(&pair->effect, 1 - pair->judged.level) <= c->rules.change)
        return;
    str_addf(&text, "%s against %s: ", c->sides[pair->new].name, c->sides[pair->old].name);
    str_add(&text, "a change of ");
    add_limit(&text, c->rules.change);
    str_add(&text, " could not have been seen: ");
    add_remedy(c, pair, c->rules.change, &text);
    add_condition(c, &text, OUTCOME_OPEN);
}

void comparison_judge(struct comparison *c)
{
    for (int i = 0; i < c->n_pairs; i++) {
        if (c->rules.worse > 0)
            judge_fail_if_worse(c, comparison_main(c, i));
        if (c->rules.is_change_wanted)
            judge_change(c, comparison_main(c, i));
    }
}

enum outcome comparison_outcome(const struct comparison *c)
{
    enum outcome worst = OUTCOME_GOOD;

    for (size_t i = 0; i < c->n_conditions; i++)
        if (c->conditions[i].outcome > worst)
            worst = c->conditions[i].outcome;
    return worst;
}

// ---- objectives

int objective_parse(const char *text, struct objective *ret, struct err *err)
{
    static const char words[] =
        "must be a measure, < or >, and a limit: p99>20ms, tps<1000, errors>0";
    size_t len = strcspn(text, "<>");
    char *name = mem_strndup(text, len);
    const char *limit = text + len + 1;
    int64_t ns;
    int m = 0, rc = -1;

    *ret = (struct objective){.is_errors = strcmp(name, "errors") == 0, .above = text[len] == '>'};
    while (measure_names[m] && strcmp(measure_names[m], name) != 0)
        m++;
    free(name);
    if (!text[len] || (!measure_names[m] && !ret->is_errors))
        return err_set(err, ERR_USAGE,
                       "--fail-if %s: %s (measures: tps, mean, p50, p90, p95, p99, "
                       "p99.9, max, errors)",
                       text, words);
    ret->measure = measure_names[m] ? (enum measure)m : MEASURE_TPS;
    if (ret->is_errors || ret->measure == MEASURE_TPS) {
        rc = units_parse_double(limit, &ret->limit, NULL);
    } else {
        rc = units_parse_duration(limit, 0, &ns, NULL);
        ret->limit = (double)ns;
    }
    if (rc < 0 || ret->limit < 0)
        return err_set(err, ERR_USAGE, "--fail-if %s: %s", text, words);
    ret->text = mem_strdup(text);
    return 0;
}

static enum outcome judge_errors(const struct side *side, const struct objective *o,
                                 struct str *text)
{
    int64_t worst = 0;

    for (int i = 0; i < side->set.n; i++) {
        const struct result_counts *counts = &side->set.runs[i]->counts;
        int64_t errors = counts->failed + counts->unknown;
        bool is_worse = i == 0 || (o->above ? errors > worst : errors < worst);
        worst = is_worse ? errors : worst;
    }
    str_addf(text, "%" PRId64 " in the worst run", worst);
    bool bad = o->above ? (double)worst > o->limit : (double)worst < o->limit;
    return side->set.n == 0 ? OUTCOME_OPEN : bad ? OUTCOME_BAD : OUTCOME_GOOD;
}

static enum outcome judge_measure(const struct side *side, const struct objective *o,
                                  struct str *text)
{
    double *logs = mem_calloc((size_t)side->set.n + 1, sizeof(*logs));
    struct interval interval;
    int n = 0;

    for (int i = 0; i < side->set.n; i++) {
        double value = measure_of(side->set.runs[i], o->measure);
        if (!isnan(value))
            logs[n++] = log(value);
    }
    interval_of_mean(logs, n, &interval);
    free(logs);
    if (n == 0) {
        str_add(text, "nothing was measured to judge it by");
        return OUTCOME_OPEN;
    }
    measure_words(o->measure, exp(interval.mean), text);
    double low = n > 1 ? exp(interval.low) : exp(interval.mean);
    double high = n > 1 ? exp(interval.high) : exp(interval.mean);
    if (n > 1) {
        str_add(text, " (");
        measure_words(o->measure, low, text);
        str_add(text, " to ");
        measure_words(o->measure, high, text);
        str_add(text, ")");
    } else {
        str_add(text, " in one run");
    }
    if (o->above ? low > o->limit : high < o->limit)
        return OUTCOME_BAD;
    return (o->above ? high <= o->limit : low >= o->limit) ? OUTCOME_GOOD : OUTCOME_OPEN;
}

void comparison_add_objective(struct comparison *c, const struct objective *objective)
{
    static const char *const words[] = {"not so", "cannot be decided", "so it is"};

    for (int i = 1; i < c->n_sides; i++) {
        struct str text = STR_INIT, found = STR_INIT;
        enum outcome outcome = objective->is_errors
                                   ? judge_errors(&c->sides[i], objective, &found)
                                   : judge_measure(&c->sides[i], objective, &found);
        str_addf(&text, "%s, fail if %s: %s, %s", c->sides[i].name, objective->text, words[outcome],
                 found.buf);
        str_release(&found);
        add_condition(c, &text, outcome);
    }
}
