// A result as a person reads it: the answer first, then the numbers, then what was odd.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "report/events.h"
#include "report/page.h"
#include "report/picture.h"
#include "report/words.h"

struct page {
    const struct result *r;
    const struct report_style *style;
    struct str out;
};

static void add_heading(struct page *page, const char *text)
{
    page_heading(&page->out, page->style, text);
}

static void add_wrapped(struct page *page, const char *first, const char *indent, const char *text)
{
    page_wrap(&page->out, page->style, first, indent, text);
}

static void add_answer(struct page *page)
{
    struct str answer = STR_INIT;

    words_answer(page->r, &answer);
    struct str safe = STR_INIT;
    text_add_safe(&safe, answer.buf);
    page_emphasise(&page->out, page->style, safe.buf);
    str_addc(&page->out, '\n');
    str_clear(&answer);
    str_clear(&safe);
    words_setup(page->r, &answer);
    text_add_safe(&safe, answer.buf);
    add_wrapped(page, "", "  ", safe.buf);
    str_release(&safe);
    str_release(&answer);
}

static void add_latency_row(struct str *out, const char *name, const struct result_latency *l)
{
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    char text[UNITS_MAX];

    str_addf(out, "  %-8s", name);
    for (int i = 0; i < 4; i++)
        str_addf(out, " %9s",
                 units_format_duration(hist_sparse_quantile(&l->hist, quantiles[i]), text));
    str_addf(out, " %9s", units_format_duration(l->hist.m.max_ns, text));
    str_addf(out, " %9s", units_format_duration((int64_t)hist_mean_ns(&l->hist.m), text));
    str_addf(out, " %9s\n", units_format_duration((int64_t)hist_sd_ns(&l->hist.m), text));
}

static void add_latency(struct page *page)
{
    const struct result *r = page->r;

    if (r->latency.hist.m.count == 0)
        return;
    str_addf(&page->out, "\n  %-8s %9s %9s %9s %9s %9s %9s %9s\n", "", "p50", "p90", "p99", "p99.9",
             "max", "mean", "sd");
    add_latency_row(&page->out, "latency", &r->latency);
    if (r->service.present && r->service.hist.m.count)
        add_latency_row(&page->out, "service", &r->service);
}

static void add_fact(struct page *page, const char *name, const char *words)
{
    page_fact(&page->out, page->style, name, words);
}

static void add_counts(struct page *page)
{
    struct str words = STR_INIT;

    str_addc(&page->out, '\n');
    words_counts(page->r, &words);
    add_fact(page, "transactions", words.buf);
    for (const struct words_fact *fact = words_facts; fact->name; fact++) {
        str_clear(&words);
        if (fact->words(page->r, &words))
            add_fact(page, fact->name, words.buf);
    }
    if (page->r->failure && page->r->counts.done > 0) // else it is the answer
        add_fact(page, "failure", page->r->failure);
    if (page->r->note)
        add_fact(page, "note", page->r->note);
    str_release(&words);
}

// A line below the series with the number of each event where it began.
static void add_event_marks(struct page *page, int seconds, int width)
{
    struct report_event event;
    struct str line = STR_INIT;

    for (int i = 0; report_event_at(page->r, i, &event); i++) {
        int column = isfinite(event.from_s) ? (int)(event.from_s * width / seconds) : width;
        if (column < 0 || column >= width)
            continue;
        while (line.len <= (size_t)column)
            str_addc(&line, ' ');
        line.buf[column] = line.buf[column] == ' ' && i < 9 ? (char)('1' + i) : '+';
    }
    if (line.len)
        str_addf(&page->out, "  %s  events\n", line.buf);
    str_release(&line);
}

static void add_series(struct page *page)
{
    const struct result *r = page->r;
    char text[UNITS_MAX];
    double top;

    if (r->n_series < 2)
        return;
    // Seconds without a row had no transactions; the cut last second is left out.
    int n = (int)fmax(1, floor(r->duration_s + 0.01));
    double *tps = mem_calloc((size_t)n, sizeof(*tps));
    for (int i = 0; i < r->n_series; i++)
        if (r->series[i].t_s < n)
            tps[r->series[i].t_s] = (double)r->series[i].done;
    add_heading(page, "throughput over time");
    struct str line = STR_INIT;
    picture_line(&line, tps, n, page->style->columns - 24, page->style->unicode, &top);
    str_addf(&page->out, "  %s  %s tps at the top\n", line.buf, units_format_rate(top, text));
    str_clear(&line);
    add_event_marks(page, n, picture_width(n, page->style->columns - 24));
    str_addf(&line, "0 s to %d s", n);
    if (r->warmup_s > 0)
        str_addf(&line, "; the first %g s are left out of the numbers as warm-up", r->warmup_s);
    if (!r->steady && r->steady_why)
        str_addf(&line, "; %s", r->steady_why);
    add_wrapped(page, "  ", "  ", line.buf);
    str_release(&line);
    free(tps);
}

static void add_distribution(struct page *page)
{
    if (page->r->latency.hist.m.count < 2)
        return;
    add_heading(page, "latency distribution (from, share)");
    picture_histogram(&page->out, &page->r->latency.hist, 12, page->style);
}

static void add_statements(struct page *page)
{
    const struct result *r = page->r;
    char count[UNITS_MAX], mean[UNITS_MAX], p50[UNITS_MAX], p99[UNITS_MAX];

    add_heading(page, "statements");
    str_addf(&page->out, "  %11s %9s %9s %9s %8s  %s\n", "count", "mean", "p50", "p99", "failed",
             "statement");
    int room = page->style->columns - 54;
    for (int i = 0; i < r->n_statements; i++) {
        const struct result_statement *s = &r->statements[i];
        struct str sql = STR_INIT;
        text_add_safe(&sql, s->sql);
        bool is_long = text_columns(sql.buf) > room;
        if (is_long)
            text_cut_columns(sql.buf, room - 2);
        str_addf(&page->out, "  %11s %9s %9s %9s %8" PRId64 "  %s%s\n",
                 units_format_count(s->count, count),
                 units_format_duration((int64_t)hist_mean_ns(&s->m), mean),
                 units_format_duration(s->p50_ns, p50), units_format_duration(s->p99_ns, p99),
                 s->failed, sql.buf, is_long ? ".." : "");
        str_release(&sql);
    }
}

static void add_doubts(struct page *page)
{
    const struct result *r = page->r;

    if (r->n_warnings)
        add_heading(page, "doubts");
    for (int i = 0; i < r->n_warnings; i++)
        page_doubt(&page->out, page->style, r->warnings[i].id, r->warnings[i].text);
}

static void add_footer(struct page *page)
{
    const struct result *r = page->r;
    struct str line = STR_INIT;
    char utc[32];

    if (!r->id)
        return;
    clock_format_utc(r->started_real_ns, utc, sizeof(utc));
    str_addf(&line, "kept as run %" PRId64 ", %s", r->id, utc);
    if (r->label) {
        str_add(&line, ", label ");
        text_add_safe(&line, r->label);
    }
    if (r->block)
        str_addf(&line, ", block %" PRId64, r->block);
    str_addf(&line, "; for a ticket: prony show %" PRId64 " --format md", r->id);
    str_addc(&page->out, '\n');
    add_wrapped(page, "", "  ", line.buf);
    str_release(&line);
}

void report_text(const struct result *result, const struct report_style *style, FILE *out)
{
    struct page page = {.r = result, .style = style, .out = STR_INIT};

    add_answer(&page);
    add_latency(&page);
    add_counts(&page);
    add_series(&page);
    add_distribution(&page);
    if (style->statements)
        add_statements(&page);
    add_doubts(&page);
    add_footer(&page);
    fwrite(page.out.buf, 1, page.out.len, out);
    str_release(&page.out);
}
