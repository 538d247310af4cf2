#include "study/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/braces.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"

// Options of prony run that set how much load there is.
static const char *const loads[] = {"clients", "rate", "think", "threads", "arrival", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool is_option(const char *name, const struct opt_row *rows)
{
    for (; rows->name; rows++)
        if (strcmp(rows->name, name) == 0)
            return true;
    return false;
}

int study_add_values(struct study_plan *plan, const char *name, char *const *values, size_t n,
                     const struct opt_row *run_rows, struct err *err)
{
    for (size_t i = 0; i < plan->n_factors; i++)
        if (strcmp(plan->factors[i].name, name) == 0)
            return err_set(err, ERR_USAGE, "%s is varied twice", name);
    if (n < 2)
        return err_set(err, ERR_USAGE, "%s: give at least two values to compare, as in %s=%s,...",
                       name, name, n ? values[0] : "1");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(values[i], values[k]) == 0)
                return err_set(err, ERR_USAGE,
                               "%s: the value %s stands twice (a set-up is compared with itself "
                               "by --aa)",
                               name, values[i]);
    struct study_factor *factor = ARR_PUSH(plan->factors, plan->n_factors, plan->cap_factors);
    *factor = (struct study_factor){.name = mem_strdup(name),
                                    .values = mem_calloc(n, sizeof(char *)),
                                    .n_values = (int)n,
                                    .is_option = is_option(name, run_rows),
                                    .is_load = is_one_of(name, loads)};
    for (size_t i = 0; i < n; i++)
        factor->values[i] = mem_strdup(values[i]);
    return 0;
}

int study_add_factor(struct study_plan *plan, const char *text, const struct opt_row *run_rows,
                     struct err *err)
{
    const char *equals = strchr(text, '='), *at = equals ? equals + 1 : NULL;
    char **values = NULL;
    size_t n = 0, cap = 0;
    int rc = 0;

    if (!equals || equals == text)
        return err_set(err, ERR_USAGE, "--vary %s: must be NAME=VALUE,VALUE,...", text);
    char *name = mem_strndup(text, (size_t)(equals - text));
    while (rc == 0) {
        struct str value = STR_INIT;
        bool in_braces = false;
        const char *wrong = braces_read(&at, ',', &value, &in_braces);
        if (wrong)
            rc = err_set(err, ERR_USAGE, "--vary %s: a value %s", name, wrong);
        else if (value.len == 0)
            rc = err_set(err, ERR_USAGE, "--vary %s: a value is empty", name);
        else
            *ARR_PUSH(values, n, cap) = mem_strdup(value.buf);
        str_release(&value);
        if (*at != ',')
            break;
        at++;
    }
    if (rc == 0 && study_add_values(plan, name, values, n, run_rows, err) < 0)
        rc = err_prefix(err, "--vary");
    for (size_t i = 0; i < n; i++)
        free(values[i]);
    free(values);
    free(name);
    return rc;
}

int study_close_plan(struct study_plan *plan, int blocks, bool aa, struct err *err)
{
    plan->n_cells = 1;
    plan->blocks = blocks;
    for (size_t i = 0; i < plan->n_factors; i++) {
        plan->n_cells *= plan->factors[i].n_values;
        if (plan->n_cells > STUDY_CELLS_MAX)
            return err_set(err, ERR_USAGE, "more than %d combinations: vary less", STUDY_CELLS_MAX);
    }
    if (aa && plan->n_cells > 1)
        return err_set(err, ERR_USAGE,
                       "--aa compares one set-up with itself: name one target and vary nothing");
    if (!aa && plan->n_cells == 1)
        return err_set(err, ERR_USAGE,
                       "nothing to compare: name several targets, or --vary NAME=VALUE,VALUE, or "
                       "--aa to compare a set-up with itself");
    plan->twice = aa || blocks >= STUDY_TWICE;
    return 0;
}

void study_plan_release(struct study_plan *plan)
{
    for (size_t i = 0; i < plan->n_factors; i++) {
        struct study_factor *factor = &plan->factors[i];
        for (int k = 0; k < factor->n_values; k++)
            free(factor->values[k]);
        free(factor->values);
        free(factor->name);
    }
    free(plan->factors);
    *plan = (struct study_plan){0};
}

int study_slots(const struct study_plan *plan)
{
    return plan->n_cells + plan->twice;
}

int study_slot_cell(const struct study_plan *plan, int slot)
{
    assert(slot >= 0 && slot < study_slots(plan));
    return slot < plan->n_cells ? slot : 0;
}

void study_order(const struct study_plan *plan, int block, int *order)
{
    struct rng rng;
    int n = study_slots(plan);

    rng_init(&rng, plan->seed, (uint64_t)block, RNG_STUDY);
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)rng_range(&rng, 0, i), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

int study_level(const struct study_plan *plan, int cell, size_t factor)
{
    // The last factor changes fastest.
    for (size_t i = plan->n_factors; i-- > factor + 1;)
        cell /= plan->factors[i].n_values;
    return cell % plan->factors[factor].n_values;
}

int study_baseline(const struct study_plan *plan, int cell)
{
    bool only_load = true;
    int baseline = 0;

    for (size_t i = 0; i < plan->n_factors; i++)
        only_load &= plan->factors[i].is_load;
    for (size_t i = 0; i < plan->n_factors; i++) {
        int level = plan->factors[i].is_load && !only_load ? study_level(plan, cell, i) : 0;
        baseline = baseline * plan->factors[i].n_values + level;
    }
    return baseline;
}

void study_cell_name(const struct study_plan *plan, int cell, struct str *out)
{
    for (size_t i = 0; i < plan->n_factors; i++) {
        const struct study_factor *factor = &plan->factors[i];
        const char *value = factor->values[study_level(plan, cell, i)];
        if (i)
            str_add(out, ", ");
        char *pair = mem_printf("%s=%s", factor->name, value);
        text_add_redacted(out, strcmp(factor->name, STUDY_TARGET) == 0 ? value : pair);
        free(pair);
    }
    if (plan->n_factors == 0)
        str_add(out, "the only cell");
}

int study_cell_target(const struct study_plan *plan, int cell, const char *base, struct str *out,
                      struct err *err)
{
    const char *target = base;

    for (size_t i = 0; i < plan->n_factors; i++)
        if (strcmp(plan->factors[i].name, STUDY_TARGET) == 0)
            target = plan->factors[i].values[study_level(plan, cell, i)];
    str_add(out, target);
    // "postgres:host=/tmp dbname=x" is the library's own form, and takes its own words alone.
    bool has_query = strchr(target, '?'), is_words = strchr(target, ' ') != NULL;
    for (size_t i = 0; i < plan->n_factors; i++) {
        const struct study_factor *factor = &plan->factors[i];
        const char *value = factor->values[study_level(plan, cell, i)];
        if (factor->is_option || strcmp(factor->name, STUDY_TARGET) == 0)
            continue;
        if (is_words || !strchr(target, ':'))
            return err_set(err, ERR_USAGE,
                           "--vary %s: is no option of prony run, and %s takes no settings: write "
                           "it as a URL",
                           factor->name, target);
        bool is_plain = braces_is_plain(value, '&') && !strchr(value, '%'); // else it is decoded
        str_addf(out, is_plain ? "%c%s=%s" : "%c%s={%s}", has_query ? '&' : '?', factor->name,
                 value);
        has_query = true;
    }
    return 0;
}
