// A result as Markdown to paste into a ticket: at most 30 lines whatever the run was.
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "report/words.h"

#define DOUBTS_SHOWN 10

// Text from outside must not become markup: characters that Markdown or HTML reads are escaped.
static void add_escaped(struct str *out, const char *text)
{
    struct str safe = STR_INIT;

    text_add_safe(&safe, text ? text : "");
    for (const char *p = safe.buf; *p; p++) {
        if (strchr("\\`*_{}[]<>#|~&", *p))
            str_addc(out, '\\');
        str_addc(out, *p);
    }
    str_release(&safe);
}

// Inline code: a fence longer than any run of backquotes inside.
static void add_code(struct str *out, const char *text)
{
    struct str safe = STR_INIT;
    int longest = 0, run = 0;

    text_add_safe(&safe, text ? text : "");
    for (const char *p = safe.buf; *p; p++) {
        run = *p == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (int i = 0; i <= longest; i++)
        str_addc(out, '`');
    str_addf(out, longest ? " %s " : "%s", safe.buf);
    for (int i = 0; i <= longest; i++)
        str_addc(out, '`');
    str_release(&safe);
}

static void add_numbers(struct str *out, const struct result *r)
{
    static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
    const struct hist_sparse *hist = &r->latency.hist;
    char text[UNITS_MAX];

    str_add(out, "| tps | p50 | p90 | p99 | p99.9 | max | mean | sd |\n"
                 "|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    str_addf(out, "| %s", units_format_rate(r->tps, text));
    for (int i = 0; i < 4; i++)
        str_addf(out, " | %s",
                 units_format_duration(hist_sparse_quantile(hist, quantiles[i]), text));
    str_addf(out, " | %s", units_format_duration(hist->m.max_ns, text));
    str_addf(out, " | %s", units_format_duration((int64_t)hist_mean_ns(&hist->m), text));
    str_addf(out, " | %s |\n\n", units_format_duration((int64_t)hist_sd_ns(&hist->m), text));
}

static void add_setup_line(struct str *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    str_addf(out, "- %s: ", name);
    add_escaped(out, value);
    str_addc(out, '\n');
}

// The environment in three lines; the rest is in the store.
static void add_environment(struct str *out, const struct result *r)
{
    const char *fs = kvs_get(&r->environment, "data.summary");
    const char *options = kvs_get(&r->environment, "data.mount_options");
    const char *kernel = kvs_get(&r->environment, "host.kernel");
    const char *cpu = kvs_get(&r->environment, "host.cpu_model");
    const char *cpus = kvs_get(&r->environment, "host.cpus");
    struct str line = STR_INIT;

    if (fs) {
        str_addf(&line, "%s%s%s", fs, options ? ", mounted " : "", options ? options : "");
        add_setup_line(out, "data on", line.buf);
    }
    str_clear(&line);
    str_addf(&line, "%s, %s, %s CPUs", kernel ? kernel : "unknown kernel",
             cpu ? cpu : "unknown CPU", cpus ? cpus : "?");
    add_setup_line(out, "host", line.buf);
    str_release(&line);
}

static void add_doubts(struct str *out, const struct result *r)
{
    for (int i = 0; i < r->n_warnings && i < DOUBTS_SHOWN; i++) {
        str_add(out, i ? "" : "\n");
        str_add(out, "- doubt **");
        add_escaped(out, r->warnings[i].id);
        str_add(out, "**: ");
        add_escaped(out, r->warnings[i].text);
        str_addc(out, '\n');
    }
    if (r->n_warnings > DOUBTS_SHOWN)
        str_addf(out, "- and %d more doubts\n", r->n_warnings - DOUBTS_SHOWN);
}

void report_markdown(const struct result *r, FILE *out)
{
    struct str page = STR_INIT, line = STR_INIT;
    char utc[32];

    str_add(&page, "**");
    words_answer(r, &line);
    add_escaped(&page, line.buf);
    str_add(&page, "**\n\n");
    if (r->latency.hist.m.count)
        add_numbers(&page, r);
    str_clear(&line);
    words_counts(r, &line);
    add_setup_line(&page, "transactions", line.buf);
    for (const struct words_fact *fact = words_facts; fact->name; fact++) {
        str_clear(&line);
        if (fact->words(r, &line))
            add_setup_line(&page, fact->name, line.buf);
    }
    str_clear(&line);
    words_setup(r, &line);
    add_setup_line(&page, "set-up", line.buf);
    add_environment(&page, r);
    clock_format_utc(r->started_real_ns, utc, sizeof(utc));
    str_clear(&line);
    str_addf(&line, "prony %s, run %" PRId64 " (%.8s), ", r->prony_version, r->id, r->uuid);
    if (r->label)
        str_addf(&line, "label %s, ", r->label);
    str_add(&line, utc);
    str_add(&page, "- ");
    add_escaped(&page, line.buf);
    str_addc(&page, '\n');
    if (r->counts.done > 0) // else it is the answer
        add_setup_line(&page, "failure", r->failure);
    add_setup_line(&page, "note", r->note);
    str_add(&page, "- command: ");
    add_code(&page, r->command);
    str_addc(&page, '\n');
    add_doubts(&page, r);
    fwrite(page.buf, 1, page.len, out);
    str_release(&page);
    str_release(&line);
}
