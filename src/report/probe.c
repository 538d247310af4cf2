#include "report/probe.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "report/page.h"
#include "report/probe_words.h"

static void add_answer(const struct report_probe *report, const struct report_style *style,
                       struct str *out)
{
    char summary[512];
    struct str words = STR_INIT, safe = STR_INIT;

    probe_words_answer(report, &words);
    page_emphasise(out, style, words.buf);
    str_addc(out, '\n');
    str_clear(&words);
    storage_summary(report->place, summary, sizeof(summary));
    str_addf(&words, "%s: %s", report->probe->dir, summary);
    text_add_safe(&safe, words.buf);
    page_wrap(out, style, "", "  ", safe.buf);
    str_clear(&words);
    probe_words_setup(report, &words);
    page_wrap(out, style, "  ", "  ", words.buf);
    str_release(&safe);
    str_release(&words);
}

// A rate as told: operations or bytes.
static char *format_rate(const struct probe_measure *m, double per_s, char out[UNITS_MAX])
{
    if (m->by_bytes)
        return units_format_bytes((int64_t)(per_s * (double)m->block_bytes), out);
    return units_format_rate(per_s, out);
}

static void add_row(const struct report_probe *report, const struct probe_measure *m,
                    struct str *out)
{
    bool cached = m->is_block && report->probe->through_cache[0];
    char rate[UNITS_MAX], low[UNITS_MAX], high[UNITS_MAX], p50[UNITS_MAX], p99[UNITS_MAX];
    char *name = mem_printf("%s%s", m->name, cached ? "*" : "");
    char *interval = mem_printf("%s to %s", format_rate(m, fmax(m->rate.low, 0), low),
                                format_rate(m, m->rate.high, high));

    str_addf(out, "  %-25s %9s/s  %-20s %8s %8s\n", name, format_rate(m, m->rate.mean, rate),
             interval, units_format_duration(hist_quantile(&m->latency, 0.5), p50),
             units_format_duration(hist_quantile(&m->latency, 0.99), p99));
    free(interval);
    free(name);
}

static void add_table(const struct report_probe *report, struct str *out)
{
    str_addf(out, "\n  %-25s %11s  %-20s %8s %8s\n", "", "rate", "95 % interval", "p50", "p99");
    for (int i = 0; i < PROBE_KINDS; i++)
        add_row(report, &report->probe->measures[i], out);
}

static void add_meaning(const struct report_probe *report, const struct report_style *style,
                        struct str *out)
{
    struct kvs sentences = KVS_INIT;

    probe_words_meaning(report, &sentences);
    if (sentences.n)
        page_heading(out, style, "what it means");
    for (size_t i = 0; i < sentences.n; i++) {
        struct str safe = STR_INIT;
        text_add_safe(&safe, sentences.items[i].value);
        page_wrap(out, style, "  ", "    ", safe.buf);
        str_release(&safe);
    }
    kvs_release(&sentences);
}

static void add_doubts(const struct report_probe *report, const struct report_style *style,
                       struct str *out)
{
    struct kvs doubts = KVS_INIT;

    probe_words_doubts(report, &doubts);
    if (doubts.n)
        page_heading(out, style, "doubts");
    for (size_t i = 0; i < doubts.n; i++)
        page_doubt(out, style, doubts.items[i].key, doubts.items[i].value);
    kvs_release(&doubts);
}

void report_probe_text(const struct report_probe *report, const struct report_style *style,
                       FILE *out)
{
    struct str text = STR_INIT;

    add_answer(report, style, &text);
    add_table(report, &text);
    add_meaning(report, style, &text);
    add_doubts(report, style, &text);
    fwrite(text.buf, 1, text.len, out);
    str_release(&text);
}
