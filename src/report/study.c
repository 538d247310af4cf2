// A study for the terminal: the answer first, then two equal cells, then the table, then the rest.
#include "report/study.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "report/page.h"
#include "report/verdict.h"

#define NAME_COLUMNS 34

struct page {
    const struct report_study *study;
    const struct report_style *style;
    struct effect *effects; // by cell, of one measure
    struct judgement *judgements;
    struct str out;
};

static void judge(struct page *page, enum study_measure measure)
{
    study_judge(page->study->outcome, measure, page->study->alpha, page->effects, page->judgements);
}

static bool has_failed(const struct page *page, int cell)
{
    return page->study->outcome->reasons[cell];
}

static bool is_compared(const struct page *page, int cell)
{
    int baseline = study_baseline(page->study->plan, cell);

    return cell != baseline && !has_failed(page, cell) && !has_failed(page, baseline);
}

static void add_name(const struct page *page, int cell, struct str *out)
{
    struct str name = STR_INIT;

    study_cell_name(page->study->plan, cell, &name);
    text_add_safe(out, name.buf);
    str_release(&name);
}

static void add_verdict(const struct page *page, int cell, const struct verdict_words *words,
                        struct str *out)
{
    verdict_add(out, &page->effects[cell], &page->judgements[cell], 0, words);
}

// ---- the answer

// Of one comparison its words; of several how many are shown, and which is furthest from its
// baseline.
static void add_answer(struct page *page)
{
    const struct study_plan *plan = page->study->plan;
    int n = 0, shown = 0, best = -1;
    struct str line = STR_INIT;

    judge(page, STUDY_TPS);
    for (int cell = 0; cell < plan->n_cells; cell++) {
        if (!is_compared(page, cell))
            continue;
        n++;
        enum verdict verdict = page->judgements[cell].verdict;
        shown += verdict == VERDICT_HIGHER || verdict == VERDICT_LOWER;
        if (best < 0 || page->judgements[cell].ratio > page->judgements[best].ratio)
            best = cell;
    }
    if (n == 0 && page->study->outcome->blocks == 0)
        str_add(&line, "nothing was measured");
    else if (n == 0 && plan->n_cells > 1)
        str_add(&line, "nothing can be compared, for set-ups failed");
    else if (n == 0)
        str_add(&line, "a set-up compared with itself");
    else {
        if (n > 1)
            str_addf(&line, "%d of %d differ from their baseline; the best: ", shown, n);
        add_name(page, best, &line);
        str_add(&line, ": ");
        add_verdict(page, best, &verdict_of_throughput, &line);
    }
    page_emphasise(&page->out, page->style, line.buf);
    str_addc(&page->out, '\n');
    str_release(&line);
}

static void add_setup(struct page *page)
{
    const struct report_study *s = page->study;
    char seconds[UNITS_MAX], run[UNITS_MAX];
    struct str line = STR_INIT;

    str_add(&line, s->workload);
    if (s->target) {
        str_add(&line, " on ");
        text_add_redacted(&line, s->target);
    }
    str_addf(&line, "; %d cell%s, %d block%s, %d runs of %s in %s, order from seed %" PRIu64,
             s->plan->n_cells, s->plan->n_cells == 1 ? "" : "s", s->outcome->blocks,
             s->outcome->blocks == 1 ? "" : "s", s->n_runs,
             units_format_duration_exact((int64_t)(s->run_s * 1e9), run),
             units_format_duration((int64_t)(s->seconds * 1e9), seconds), s->plan->seed);
    if (s->is_interrupted)
        str_add(&line, "; interrupted");
    else if (s->stop == STOP_NARROW)
        str_add(&line, "; ended when all intervals were narrow enough");
    struct str safe = STR_INIT;
    text_add_safe(&safe, line.buf);
    page_wrap(&page->out, page->style, "", "  ", safe.buf);
    str_release(&safe);
    str_release(&line);
}

// Shown before any other comparison, for it says what to think of them.
static void add_twins(struct page *page)
{
    struct effect twins;
    struct str line = STR_INIT;

    study_twins(page->study->outcome, STUDY_TPS, &twins);
    if (!effect_is_known(&twins))
        return;
    double low, high;
    effect_interval(&twins, 1 - JUDGE_ALPHA, &low, &high);
    str_add(&line, "two equal cells ");
    verdict_add_twins(&line, &twins);
    str_add(&line, low > 1 || high < 1
                       ? ", which chance does once in 20 times: if it stays so, runs here are not "
                         "alike, and no verdict below holds"
                       : ", which chance explains");
    str_addc(&page->out, '\n');
    page_wrap(&page->out, page->style, "", "  ", line.buf);
    str_release(&line);
}

// ---- the tables

static void add_cell_row(struct page *page, int cell, const char *mean, const char *sd,
                         const char *verdict)
{
    struct str name = STR_INIT, first = STR_INIT;

    add_name(page, cell, &name);
    str_addf(&first, "  %s", name.buf);
    // A long name has a line of its own.
    if (text_columns(name.buf) > NAME_COLUMNS) {
        str_addf(&page->out, "%s\n", first.buf);
        str_clear(&first);
    }
    while (text_columns(first.buf) < NAME_COLUMNS + 2)
        str_addc(&first, ' ');
    str_addf(&first, " %9s %6s  ", mean, sd);
    char indent[NAME_COLUMNS + 24];
    memset(indent, ' ', sizeof(indent) - 1);
    indent[text_columns(first.buf)] = '\0';
    page_wrap(&page->out, page->style, first.buf, indent, verdict);
    str_release(&first);
    str_release(&name);
}

static void add_table(struct page *page, enum study_measure measure, const char *title,
                      const char *column, const struct verdict_words *words)
{
    const struct study_plan *plan = page->study->plan;
    double *values = mem_calloc(2 * (size_t)plan->blocks, sizeof(*values));
    char mean[UNITS_MAX], sd[UNITS_MAX];

    page_heading(&page->out, page->style, title);
    str_addf(&page->out, "  %-*s %9s %6s\n", NAME_COLUMNS, "", column, "sd");
    judge(page, measure);
    for (int cell = 0; cell < plan->n_cells; cell++) {
        struct summary summary;
        struct str verdict = STR_INIT;
        effect_summary(values, study_cell_values(page->study->outcome, measure, cell, values),
                       &summary);
        if (summary.n == 0)
            snprintf(mean, sizeof(mean), "-");
        else if (measure == STUDY_TPS)
            units_format_rate(summary.mean, mean);
        else
            units_format_duration((int64_t)(summary.mean * 1e3), mean);
        snprintf(sd, sizeof(sd), summary.n > 1 ? "%.1f %%" : "-", 100 * summary.sd / summary.mean);
        if (has_failed(page, cell)) {
            str_add(&verdict, "failed: ");
            text_add_safe(&verdict, page->study->outcome->reasons[cell]);
        } else if (is_compared(page, cell))
            add_verdict(page, cell, words, &verdict);
        else
            str_add(&verdict, cell == study_baseline(plan, cell)
                                  ? "baseline"
                                  : "not compared: its baseline failed");
        add_cell_row(page, cell, mean, sd, verdict.buf);
        str_release(&verdict);
    }
    free(values);
}

static void add_limits(struct page *page)
{
    bool any = false;

    for (int cell = 0; cell < page->study->plan->n_cells; cell++) {
        struct str first = STR_INIT, safe = STR_INIT;
        if (!page->study->limits[cell])
            continue;
        if (!any)
            page_heading(&page->out, page->style, "what held it back (in the last run)");
        any = true;
        str_add(&first, "  ");
        add_name(page, cell, &first);
        str_add(&first, ": ");
        text_add_safe(&safe, page->study->limits[cell]);
        page_wrap(&page->out, page->style, first.buf, "    ", safe.buf);
        str_release(&first);
        str_release(&safe);
    }
}

static void add_doubts(struct page *page)
{
    const struct report_study *s = page->study;

    if (s->n_doubts || s->carried)
        page_heading(&page->out, page->style, "doubts");
    if (s->carried)
        page_doubt(&page->out, page->style, "state-carried", s->carried);
    for (size_t i = 0; i < s->n_doubts; i++) {
        char *id = mem_printf("%s (%d of %d runs)", s->doubts[i].id, s->doubts[i].runs, s->n_runs);
        page_doubt(&page->out, page->style, id, s->doubts[i].text);
        free(id);
    }
}

static void add_footer(struct page *page)
{
    const struct report_study *s = page->study;
    struct str line = STR_INIT;

    if (!s->first_run)
        return;
    str_addf(&line, "kept as runs %" PRId64 " to %" PRId64 ", label ", s->first_run, s->last_run);
    text_add_safe(&line, s->name);
    str_addc(&page->out, '\n');
    page_wrap(&page->out, page->style, "", "  ", line.buf);
    str_release(&line);
}

void report_study_text(const struct report_study *study, const struct report_style *style,
                       FILE *out)
{
    size_t n = (size_t)study->plan->n_cells;
    struct page page = {.study = study,
                        .style = style,
                        .effects = mem_calloc(n, sizeof(struct effect)),
                        .judgements = mem_calloc(n, sizeof(struct judgement)),
                        .out = STR_INIT};

    add_answer(&page);
    add_setup(&page);
    add_twins(&page);
    add_table(&page, STUDY_TPS, "throughput (mean of runs)", "tps", &verdict_of_throughput);
    add_table(&page, STUDY_P99, "latency (mean of the runs' p99)", "p99", &verdict_of_latency);
    add_limits(&page);
    add_doubts(&page);
    add_footer(&page);
    fwrite(page.out.buf, 1, page.out.len, out);
    str_release(&page.out);
    free(page.effects);
    free(page.judgements);
}
