// A comparison as a person reads it: what differs, the answer, the numbers, what is doubtful.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "report/comparison.h"
#include "report/page.h"

#define DIFFERENCES_SHOWN 20

struct page {
    const struct comparison *c;
    const struct report_style *style;
    struct str out;
};

static void add_differences(struct page *page)
{
    const struct differences *list = &page->c->differences;
    struct str words = STR_INIT, safe = STR_INIT;

    for (size_t i = 0; i < list->n && i < DIFFERENCES_SHOWN; i++) {
        str_clear(&words);
        str_clear(&safe);
        difference_words(&list->items[i], page->c->n_sides, &words);
        text_add_safe(&safe, words.buf);
        page_wrap(&page->out, page->style, i ? "           " : "different: ", "             ",
                  safe.buf);
    }
    if (list->n > DIFFERENCES_SHOWN)
        str_addf(&page->out, "           and %zu more: --json has all\n",
                 list->n - DIFFERENCES_SHOWN);
    if (list->n)
        str_addc(&page->out, '\n');
    str_release(&words);
    str_release(&safe);
}

// "after against before: faster by 8.1 % (5.2 to 11.0)"
static void add_answers(struct page *page)
{
    const struct comparison *c = page->c;
    struct str words = STR_INIT, safe = STR_INIT, line = STR_INIT;

    for (int i = 0; i < c->n_pairs; i++) {
        const struct compared *pair = comparison_main(c, i);
        str_clear(&words);
        str_clear(&safe);
        str_clear(&line);
        str_addf(&words, "%s against %s: ", c->sides[pair->new].name, c->sides[pair->old].name);
        if (c->rules.main != MEASURE_TPS)
            str_addf(&words, "%s ", measure_names[c->rules.main]);
        if (pair->is_present)
            comparison_verdict(c, pair, &words);
        else
            str_addf(&words, "nothing to compare: a side has no %s", measure_names[c->rules.main]);
        text_add_safe(&safe, words.buf);
        page_wrap(&line, page->style, "", "  ", safe.buf);
        page_emphasise(&page->out, page->style, line.buf);
    }
    for (size_t i = 0; i < c->n_conditions; i++) {
        str_clear(&safe);
        text_add_safe(&safe, c->conditions[i].text);
        page_wrap(&page->out, page->style, "", "  ", safe.buf);
    }
    str_release(&words);
    str_release(&safe);
    str_release(&line);
}

// Geometric mean, lowest and highest of one measure over the runs of a side.
static void add_cell(const struct side *side, enum measure measure, int which, struct str *out)
{
    double sum = 0, low = INFINITY, high = 0;
    int n = 0;
    struct str text = STR_INIT;

    for (int i = 0; i < side->set.n; i++) {
        double value = measure_of(side->set.runs[i], measure);
        if (isnan(value))
            continue;
        sum += log(value);
        low = fmin(low, value);
        high = fmax(high, value);
        n++;
    }
    measure_words(measure,
                  n == 0       ? NAN
                  : which == 0 ? exp(sum / n)
                  : which < 0  ? low
                               : high,
                  &text);
    str_addf(out, " %9s", text.buf);
    str_release(&text);
}

static void add_side(struct page *page, const struct side *side)
{
    struct str name = STR_INIT;

    text_add_safe(&name, side->name);
    text_cut_columns(name.buf, 24);
    str_addf(&page->out, "  %s%*s", name.buf, 24 - text_columns(name.buf), "");
    if (side->is_published) {
        str_addf(&page->out, " %5d %9.4g  standard deviation %.4g\n", side->published.n,
                 side->published.mean, side->published.sd);
    } else {
        str_addf(&page->out, " %5d", side->set.n);
        add_cell(side, MEASURE_TPS, 0, &page->out);
        add_cell(side, MEASURE_TPS, -1, &page->out);
        add_cell(side, MEASURE_TPS, 1, &page->out);
        add_cell(side, MEASURE_P50, 0, &page->out);
        add_cell(side, MEASURE_P99, 0, &page->out);
        str_addc(&page->out, '\n');
    }
    str_release(&name);
}

static void add_sides(struct page *page)
{
    str_addf(&page->out, "\n  %-24s %5s %9s %9s %9s %9s %9s\n", "", "runs", "tps", "lowest",
             "highest", "p50", "p99");
    for (int i = 0; i < page->c->n_sides; i++)
        add_side(page, &page->c->sides[i]);
}

static void add_times(double ratio, struct str *out)
{
    str_addf(out, ratio < 9.9995 ? "%.3f" : "%.3g", ratio);
}

// "1.081 times (1.052 to 1.110, 95 %), from 12 pairs"
static void add_ratio(const struct comparison *c, const struct compared *pair, struct str *out)
{
    const struct effect *e = &pair->effect;
    const char *what = c->rules.by_boot ? "boots" : "runs";

    add_times(pair->judged.ratio, out);
    str_add(out, " times");
    if (effect_is_known(e)) {
        str_add(out, " (");
        add_times(pair->judged.low, out);
        str_add(out, " to ");
        add_times(pair->judged.high, out);
        str_addf(out, ", %.3g %%)", 100 * pair->judged.level);
    }
    if (e->design == EFFECT_PAIRED)
        str_addf(out, ", from %d %s", e->n_old, c->rules.by_boot ? "boots" : "pairs");
    else
        str_addf(out, ", from %d and %d %s", e->n_old, e->n_new, what);
    if (!effect_is_known(e))
        return;
    double smallest = judge_detectable(e, 1 - pair->judged.level);
    if (smallest < COULD_SEE_MAX)
        str_addf(out, "; could see %.1f %%", 100 * smallest);
    else
        str_addf(out, "; could see only over %.0f %%", 100 * COULD_SEE_MAX);
}

static void add_measures(struct page *page)
{
    const struct comparison *c = page->c;
    struct str words = STR_INIT, heading = STR_INIT;
    int per_pair = c->n_compared / c->n_pairs;

    for (int i = 0; i < c->n_compared; i++) {
        const struct compared *pair = &c->compared[i];
        if (i % per_pair == 0) {
            str_clear(&heading);
            str_clear(&words);
            str_addf(&words, "%s against %s", c->sides[pair->new].name, c->sides[pair->old].name);
            text_add_safe(&heading, words.buf);
            page_heading(&page->out, page->style, heading.buf);
        }
        if (!pair->is_present)
            continue;
        str_clear(&words);
        if (i % per_pair) { // the main measure's is the answer above
            comparison_verdict(c, pair, &words);
            str_add(&words, "; ");
        }
        add_ratio(c, pair, &words);
        page_fact(&page->out, page->style,
                  pair->measure == MEASURE_TPS ? "throughput" : measure_names[pair->measure],
                  words.buf);
    }
    str_release(&words);
    str_release(&heading);
}

void comparison_text(const struct comparison *comparison, const struct report_style *style,
                     FILE *out)
{
    struct page page = {.c = comparison, .style = style, .out = STR_INIT};

    add_differences(&page);
    add_answers(&page);
    add_sides(&page);
    add_measures(&page);
    if (comparison->n_doubts)
        page_heading(&page.out, style, "doubts");
    for (size_t i = 0; i < comparison->n_doubts; i++)
        page_doubt(&page.out, style, comparison->doubts[i].id, comparison->doubts[i].text);
    fwrite(page.out.buf, 1, page.out.len, out);
    str_release(&page.out);
}
