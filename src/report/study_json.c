// A study as one JSON document; docs/json.md describes the keys.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/json_value.h"
#include "report/study.h"

static const char *const measure_names[] = {
    [STUDY_TPS] = "tps",
    [STUDY_P99] = "p99_us",
};
static const char *const verdict_names[] = {
    [VERDICT_TOO_FEW] = "too few", [VERDICT_OPEN] = "no difference shown",
    [VERDICT_SAME] = "same",       [VERDICT_HIGHER] = "higher",
    [VERDICT_LOWER] = "lower",
};

static json_t *factors(const struct study_plan *plan)
{
    json_t *array = json_array();

    for (size_t i = 0; i < plan->n_factors; i++) {
        const struct study_factor *factor = &plan->factors[i];
        json_t *values = json_array();
        for (int k = 0; k < factor->n_values; k++) {
            struct str shown = STR_INIT;
            char *pair = mem_printf("%s=%s", factor->name, factor->values[k]);
            text_add_redacted(&shown, pair); // a password is known by its name
            json_array_append_new(values, json_value_text(shown.buf + strlen(factor->name) + 1));
            free(pair);
            str_release(&shown);
        }
        json_array_append_new(
            array, json_pack("{so so}", "name", json_value_text(factor->name), "values", values));
    }
    return array;
}

static json_t *interval(const struct effect *effect)
{
    double low, high;

    if (!effect_is_known(effect))
        return json_null();
    effect_interval(effect, 1 - JUDGE_ALPHA, &low, &high);
    return json_pack("{so so so}", "ratio", json_value_number(exp(effect->log_ratio)), "low",
                     json_value_number(low), "high", json_value_number(high));
}

static json_t *judgement(const struct judgement *j)
{
    return json_pack("{ss so so so so so}", "verdict", verdict_names[j->verdict], "ratio",
                     json_value_number(j->ratio), "low", json_value_number(j->low), "high",
                     json_value_number(j->high), "level", json_value_number(j->level), "p",
                     json_value_number(j->p));
}

static json_t *numbers(const double *values, int n)
{
    json_t *array = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_value_number(values[i]));
    return array;
}

static json_t *cell_measure(const struct report_study *s, enum study_measure measure, int cell,
                            const struct judgement *judged)
{
    double *values = mem_calloc(2 * (size_t)s->plan->blocks, sizeof(*values));
    int n = study_cell_values(s->outcome, measure, cell, values);
    bool failed = s->outcome->reasons[cell] || s->outcome->reasons[study_baseline(s->plan, cell)];
    bool is_compared = cell != study_baseline(s->plan, cell) && !failed;
    struct summary summary;

    effect_summary(values, n, &summary);
    json_t *object =
        json_pack("{so so so so}", "mean", n ? json_value_number(summary.mean) : json_null(), "sd",
                  n > 1 ? json_value_number(summary.sd) : json_null(), "values", numbers(values, n),
                  "comparison", is_compared ? judgement(judged) : json_null());
    free(values);
    return object;
}

static json_t *cells(const struct report_study *s)
{
    size_t n = (size_t)s->plan->n_cells;
    struct effect *effects = mem_calloc(n, sizeof(*effects));
    struct judgement *judged[STUDY_MEASURES];
    json_t *array = json_array();

    for (int m = 0; m < STUDY_MEASURES; m++) {
        judged[m] = mem_calloc(n, sizeof(struct judgement));
        study_judge(s->outcome, (enum study_measure)m, s->alpha, effects, judged[m]);
    }
    for (int cell = 0; cell < s->plan->n_cells; cell++) {
        struct str name = STR_INIT;
        study_cell_name(s->plan, cell, &name);
        json_t *object = json_pack(
            "{sI so sI so so}", "cell", (json_int_t)cell, "name", json_value_text(name.buf),
            "baseline", (json_int_t)study_baseline(s->plan, cell), "failure",
            json_value_text(s->outcome->reasons[cell]), "limit", json_value_text(s->limits[cell]));
        for (int m = 0; m < STUDY_MEASURES; m++)
            json_object_set_new(object, measure_names[m],
                                cell_measure(s, (enum study_measure)m, cell, &judged[m][cell]));
        json_array_append_new(array, object);
        str_release(&name);
    }
    for (int m = 0; m < STUDY_MEASURES; m++)
        free(judged[m]);
    free(effects);
    return array;
}

static json_t *doubts(const struct report_study *s)
{
    json_t *array = json_array();

    for (size_t i = 0; i < s->n_doubts; i++)
        json_array_append_new(array, json_pack("{so so sI}", "id", json_value_text(s->doubts[i].id),
                                               "text", json_value_text(s->doubts[i].text), "runs",
                                               (json_int_t)s->doubts[i].runs));
    return array;
}

int report_study_json(const struct report_study *s, FILE *out)
{
    struct effect twins;
    struct str target = STR_INIT;
    json_t *root = json_object();

    study_twins(s->outcome, STUDY_TPS, &twins);
    text_add_redacted(&target, s->target ? s->target : "");
    json_object_set_new(root, "schema", json_string(REPORT_STUDY_SCHEMA));
    json_object_set_new(root, "status",
                        json_string(s->is_interrupted ? "interrupted"
                                    : s->n_failed     ? "failed"
                                                      : "done"));
    json_object_set_new(root, "name", json_value_text(s->name));
    json_object_set_new(root, "target", s->target ? json_value_text(target.buf) : json_null());
    json_object_set_new(root, "workload", json_value_text(s->workload));
    json_object_set_new(root, "state", json_string(s->carried ? "carried" : "fresh"));
    json_object_set_new(root, "seed", json_integer((json_int_t)s->plan->seed));
    json_object_set_new(root, "blocks", json_integer(s->outcome->blocks));
    json_object_set_new(root, "runs", json_integer(s->n_runs));
    json_object_set_new(root, "failed_runs", json_integer(s->n_failed));
    json_object_set_new(root, "first_run_id", json_integer(s->first_run));
    json_object_set_new(root, "last_run_id", json_integer(s->last_run));
    json_object_set_new(root, "seconds", json_value_number(s->seconds));
    json_object_set_new(root, "alpha", json_value_number(s->alpha));
    json_object_set_new(root, "factors", factors(s->plan));
    json_object_set_new(root, "equal_cells", interval(&twins));
    json_object_set_new(root, "cells", cells(s));
    json_object_set_new(root, "warnings", doubts(s));
    str_release(&target);
    return json_value_dump(root, out);
}
