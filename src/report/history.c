#include "report/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "report/json_value.h"
#include "report/page.h"
#include "report/picture.h"

#define DIFFERENCES_SHOWN 6 // at one change

void history_make(const struct side *side, enum measure measure, struct history *ret)
{
    size_t room = (size_t)side->set.n + 1;

    *ret = (struct history){.side = side,
                            .measure = measure,
                            .values = mem_calloc(room, sizeof(*ret->values)),
                            .at = mem_calloc(room, sizeof(*ret->at)),
                            .changes = mem_calloc(room, sizeof(*ret->changes))};
    for (int i = 0; i < side->set.n; i++) {
        double value = measure_of(side->set.runs[i], measure);
        if (isnan(value))
            continue;
        ret->values[ret->n] = value;
        ret->at[ret->n++] = i;
    }
    ret->n_changes = changes_find(ret->values, ret->n, ret->changes);
}

void history_release(struct history *history)
{
    free(history->values);
    free(history->at);
    free(history->changes);
    *history = (struct history){0};
}

static const struct result *run_at(const struct history *h, int i)
{
    return h->side->set.runs[h->at[i]];
}

// Bounds of stretch number i of n_changes + 1.
static int stretch_from(const struct history *h, int i)
{
    return i ? h->changes[i - 1].at : 0;
}

static int stretch_to(const struct history *h, int i)
{
    return i < h->n_changes ? h->changes[i].at : h->n;
}

static double level_of(const struct history *h, int stretch)
{
    int from = stretch_from(h, stretch), to = stretch_to(h, stretch);
    double sum = 0;

    for (int i = from; i < to; i++)
        sum += log(h->values[i]);
    return exp(sum / (to - from));
}

// What differs between the runs before and after a change.
static void differences_at(const struct history *h, int change, struct differences *ret)
{
    int from = h->at[stretch_from(h, change)], at = h->at[h->changes[change].at];
    int to = stretch_to(h, change + 1) < h->n ? h->at[stretch_to(h, change + 1)] : h->side->set.n;
    const struct run_set sets[] = {{&h->side->set.runs[from], at - from},
                                   {&h->side->set.runs[at], to - at}};

    *ret = (struct differences){0};
    differences_find(sets, 2, ret);
}

// ---- text

static void add_change_words(const struct history *h, int change, struct str *out)
{
    double ratio = h->changes[change].ratio;
    bool is_tps = h->measure == MEASURE_TPS;

    str_addf(out, "%s by %.1f %% since run %" PRId64,
             ratio > 1 ? (is_tps ? "faster" : "higher") : (is_tps ? "slower" : "lower"),
             100 * fabs(ratio - 1), run_at(h, h->changes[change].at)->id);
}

static void add_answer(const struct history *h, const struct report_style *style, struct str *out)
{
    struct str words = STR_INIT, safe = STR_INIT;

    str_addf(&words, "%s: ", h->side->name);
    if (h->n == 0)
        str_addf(&words, "no run has %s", measure_names[h->measure]);
    else if (h->n_changes == 0)
        str_addf(&words, "no change of level seen in %d run%s", h->n, h->n == 1 ? "" : "s");
    for (int i = 0; i < h->n_changes; i++) {
        str_add(&words, i ? "; " : "");
        add_change_words(h, i, &words);
    }
    if (h->n < 10 && h->n > 0 && h->n_changes == 0)
        str_add(&words, ", of which ten are needed to see one");
    text_add_safe(&safe, words.buf);
    page_emphasise(out, style, safe.buf);
    str_addc(out, '\n');
    str_release(&words);
    str_release(&safe);
}

static void add_stretch(const struct history *h, int stretch, struct str *out)
{
    int from = stretch_from(h, stretch), to = stretch_to(h, stretch);
    double low = INFINITY, high = 0;
    char utc[32];
    struct str text = STR_INIT;

    for (int i = from; i < to; i++) {
        low = fmin(low, h->values[i]);
        high = fmax(high, h->values[i]);
    }
    clock_format_utc(run_at(h, from)->started_real_ns, utc, sizeof(utc));
    utc[10] = ' ';
    utc[16] = '\0';
    str_addf(out, "  %6" PRId64 " %6" PRId64 "  %-16s %5d", run_at(h, from)->id,
             run_at(h, to - 1)->id, utc, to - from);
    const double cells[] = {level_of(h, stretch), low, high};
    for (int i = 0; i < 3; i++) {
        str_clear(&text);
        measure_words(h->measure, cells[i], &text);
        str_addf(out, " %9s", text.buf);
    }
    str_addc(out, '\n');
    str_release(&text);
}

static void add_change(const struct history *h, int change, const struct report_style *style,
                       struct str *out)
{
    struct differences differences;
    struct str words = STR_INIT;
    char *name = mem_printf("run %" PRId64, run_at(h, h->changes[change].at)->id);

    add_change_words(h, change, &words);
    differences_at(h, change, &differences);
    if (differences.n == 0)
        str_add(&words, "; nothing that is recorded changed there");
    for (size_t i = 0; i < differences.n && i < DIFFERENCES_SHOWN; i++) {
        str_add(&words, i ? "; " : "; with it changed: ");
        difference_words(&differences.items[i], 2, &words);
    }
    if (differences.n > DIFFERENCES_SHOWN)
        str_addf(&words, "; and %zu more", differences.n - DIFFERENCES_SHOWN);
    page_fact(out, style, name, words.buf);
    differences_release(&differences, 2);
    str_release(&words);
    free(name);
}

void history_text(const struct history *h, const struct report_style *style, FILE *file)
{
    struct str out = STR_INIT, text = STR_INIT;
    double top;

    add_answer(h, style, &out);
    if (h->n > 1) {
        picture_line(&text, h->values, h->n, style->columns - 24, style->unicode, &top);
        str_addf(&out, "\n  %s  ", text.buf);
        str_clear(&text);
        measure_words(h->measure, top, &text);
        str_addf(&out, "%s at the top\n", text.buf);
    }
    if (h->n > 0)
        str_addf(&out, "\n  %6s %6s  %-16s %5s %9s %9s %9s\n", "from", "to", "since (UTC)", "runs",
                 measure_names[h->measure], "lowest", "highest");
    for (int i = 0; h->n > 0 && i <= h->n_changes; i++)
        add_stretch(h, i, &out);
    if (h->n_changes)
        page_heading(&out, style, "changes");
    for (int i = 0; i < h->n_changes; i++)
        add_change(h, i, style, &out);
    if (h->side->left_out)
        str_addf(&out, "\n  %d run%s did not end well and %s not counted\n", h->side->left_out,
                 h->side->left_out == 1 ? "" : "s", h->side->left_out == 1 ? "is" : "are");
    fwrite(out.buf, 1, out.len, file);
    str_release(&out);
    str_release(&text);
}

// ---- JSON

static json_t *change_object(const struct history *h, int change)
{
    const struct change *found = &h->changes[change];
    struct differences differences;
    json_t *list = json_array();

    differences_at(h, change, &differences);
    for (size_t i = 0; i < differences.n; i++)
        json_array_append_new(
            list, json_pack("{so so so}", "name", json_value_text(differences.items[i].name), "old",
                            json_value_text(differences.items[i].values[0]), "new",
                            json_value_text(differences.items[i].values[1])));
    differences_release(&differences, 2);
    return json_pack("{sI sf sf so}", "run_id", (json_int_t)run_at(h, found->at)->id, "ratio",
                     found->ratio, "p", found->p, "different", list);
}

int history_json(const struct history *h, FILE *out)
{
    json_t *runs = json_array(), *changes = json_array();
    char utc[32];

    for (int i = 0; i < h->n; i++) {
        clock_format_utc(run_at(h, i)->started_real_ns, utc, sizeof(utc));
        json_array_append_new(
            runs, json_pack("{sI ss so}", "run_id", (json_int_t)run_at(h, i)->id, "started_utc",
                            utc, h->measure == MEASURE_TPS ? "tps" : "latency_us",
                            h->measure == MEASURE_TPS ? json_value_number(h->values[i])
                                                      : json_value_us(h->values[i])));
    }
    for (int i = 0; i < h->n_changes; i++)
        json_array_append_new(changes, change_object(h, i));
    json_t *root = json_pack("{ss so ss so so si}", "schema", "prony.history/1", "name",
                             json_value_text(h->side->name), "measure", measure_names[h->measure],
                             "runs", runs, "changes", changes, "left_out", h->side->left_out);
    return json_value_dump(root, out);
}
