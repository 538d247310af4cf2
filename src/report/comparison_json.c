// A comparison as one JSON document (docs/json.md).
#include <math.h>

#include "base/str.h"
#include "report/comparison.h"
#include "report/json_value.h"

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *runs_of(const struct side *side)
{
    json_t *array = json_array();

    for (int i = 0; i < side->set.n; i++) {
        const struct result *run = side->set.runs[i];
        json_array_append_new(array,
                              json_pack("{sI so so so so so}", "run_id", (json_int_t)run->id,
                                        "uuid", json_value_text(run->uuid), "block",
                                        run->block ? json_integer(run->block) : json_null(), "tps",
                                        json_value_number(run->tps), "p50_us",
                                        json_value_us(measure_of(run, MEASURE_P50)), "p99_us",
                                        json_value_us(measure_of(run, MEASURE_P99))));
    }
    return array;
}

static json_t *sides_of(const struct comparison *c)
{
    json_t *array = json_array();

    for (int i = 0; i < c->n_sides; i++) {
        const struct side *side = &c->sides[i];
        json_t *published =
            side->is_published
                ? json_pack("{so so si}", "mean", json_real(side->published.mean), "sd",
                            json_real(side->published.sd), "n", side->published.n)
                : json_null();
        json_array_append_new(array, json_pack("{so so so so si}", "name",
                                               json_value_text(side->name), "store",
                                               json_value_text(side->store), "runs", runs_of(side),
                                               "published", published, "left_out", side->left_out));
    }
    return array;
}

static json_t *differences_of(const struct comparison *c)
{
    json_t *array = json_array();

    for (size_t i = 0; i < c->differences.n; i++) {
        json_t *values = json_array();
        for (int j = 0; j < c->n_sides; j++)
            json_array_append_new(values, json_value_text(c->differences.items[i].values[j]));
        json_array_append_new(array, json_pack("{so so}", "name",
                                               json_value_text(c->differences.items[i].name),
                                               "values", values));
    }
    return array;
}

static json_t *compared_object(const struct comparison *c, const struct compared *pair)
{
    static const char *const verdicts[] = {"too few", "open", "same", "higher", "lower"};
    const struct judgement *j = &pair->judged;
    bool known = effect_is_known(&pair->effect);
    double alpha = 1 - j->level;
    struct str words = STR_INIT;

    comparison_verdict(c, pair, &words);
    json_t *object = json_pack(
        "{so so ss ss si si ss sb so so so so so so so so so}", "old",
        json_value_text(c->sides[pair->old].name), "new", json_value_text(c->sides[pair->new].name),
        "measure", measure_names[pair->measure], "design",
        pair->effect.design == EFFECT_PAIRED ? "paired" : "unpaired", "n_old", pair->effect.n_old,
        "n_new", pair->effect.n_new, "verdict", verdicts[j->verdict], "same", j->is_same, "words",
        json_value_text(words.buf), "ratio", number_or_null(j->ratio), "low",
        number_or_null(j->low), "high", number_or_null(j->high), "level",
        known ? json_real(j->level) : json_null(), "p", number_or_null(j->p), "p_same",
        number_or_null(j->p_same), "could_see",
        known ? number_or_null(judge_detectable(&pair->effect, alpha)) : json_null(), "needed",
        known ? json_integer(judge_needed(&pair->effect, c->rules.change, alpha)) : json_null());
    str_release(&words);
    return object;
}

static json_t *comparisons_of(const struct comparison *c)
{
    json_t *array = json_array();

    for (int i = 0; i < c->n_compared; i++)
        if (c->compared[i].is_present)
            json_array_append_new(array, compared_object(c, &c->compared[i]));
    return array;
}

int comparison_json(const struct comparison *c, FILE *out)
{
    static const char *const outcomes[] = {"good", "open", "bad"};
    json_t *conditions = json_array(), *doubts = json_array();

    for (size_t i = 0; i < c->n_conditions; i++)
        json_array_append_new(conditions,
                              json_pack("{so ss}", "text", json_value_text(c->conditions[i].text),
                                        "outcome", outcomes[c->conditions[i].outcome]));
    for (size_t i = 0; i < c->n_doubts; i++)
        json_array_append_new(doubts, json_pack("{so so}", "id", json_value_text(c->doubts[i].id),
                                                "text", json_value_text(c->doubts[i].text)));
    json_t *root = json_pack("{ss ss ss so so so so so so}", "schema", "prony.compare/1", "outcome",
                             outcomes[comparison_outcome(c)], "measure",
                             measure_names[c->rules.main], "change", json_real(c->rules.change),
                             "different", differences_of(c), "sides", sides_of(c), "comparisons",
                             comparisons_of(c), "conditions", conditions, "warnings", doubts);
    return json_value_dump(root, out);
}
