// The parameters of a null: target, one row each.
#include <assert.h>
#include <string.h>

#include "base/arr.h"
#include "base/text.h"
#include "base/units.h"
#include "db/null.h"

const char *const null_fail_classes[] = {
    "serialization", "deadlock",  "busy", "denied",    "undefined", "syntax",
    "constraint",    "read_only", "full", "cancelled", "other",     NULL,
};

enum db_class null_fail_class(int index)
{
    for (int class = DB_OK; class < DB_CLASS_COUNT; class ++)
        if (strcmp(db_class_name((enum db_class) class), null_fail_classes[index]) == 0)
            return (enum db_class) class;
    assert(!"a class without a name");
    return DB_OTHER;
}

static const char *const distributions[] = {"fixed", "exponential", NULL};
static const char *const latency_pers[] = {"statement", "transaction", NULL};
static const char *const lose_ats[] = {"any", "commit", NULL};
static const char *const lose_whens[] = {"either", "before", "after", NULL};
static const char *const booleans[] = {"0", "1", NULL};

const char null_params_help[] =
    "latency, distribution, latency_per, fail, fail_class, lose, lose_at, lose_when, refuse_for, "
    "stall_at, stall_for, down_at, down_for, max_connections, read_only, value";

struct row {
    const char *name;
    enum { DURATION, PROBABILITY, COUNT, CHOICE } type;
    size_t offset;
    const char *const *choices;
};
#define ROW(name, type, field, ...)                                \
    {                                                              \
        name, type, offsetof(struct null_told, field), __VA_ARGS__ \
    }

static const struct row rows[] = {
    ROW("latency", DURATION, latency_ns, NULL),
    ROW("distribution", CHOICE, exponential, distributions),
    ROW("latency_per", CHOICE, per_transaction, latency_pers),
    ROW("fail", PROBABILITY, fail, NULL),
    ROW("fail_class", CHOICE, fail_class, null_fail_classes),
    ROW("lose", PROBABILITY, lose, NULL),
    ROW("lose_at", CHOICE, lose_at, lose_ats),
    ROW("lose_when", CHOICE, lose_when, lose_whens),
    ROW("refuse_for", DURATION, refuse_for_ns, NULL),
    ROW("stall_at", DURATION, stall_at_ns, NULL),
    ROW("stall_for", DURATION, stall_for_ns, NULL),
    ROW("down_at", DURATION, down_at_ns, NULL),
    ROW("down_for", DURATION, down_for_ns, NULL),
    ROW("max_connections", COUNT, max_connections, NULL),
    ROW("read_only", CHOICE, read_only, booleans),
    ROW("value", COUNT, value, NULL),
};

static int parse_choice(const char *const *choices, const char *text, int *ret, struct err *err)
{
    for (int i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0) {
            *ret = i;
            return 0;
        }
    return text_unknown("value", text, choices, err);
}

static int parse_value(const struct row *row, const char *text, void *value, struct err *err)
{
    switch (row->type) {
    case DURATION:
        return units_parse_duration(text, NS_PER_S, value, err);
    case PROBABILITY: {
        double p;
        if (units_parse_double(text, &p, err) < 0)
            return -1;
        if (p < 0 || p > 1)
            return err_set(err, ERR_USAGE, "'%s' is not between 0 and 1", text);
        *(double *)value = p;
        return 0;
    }
    case COUNT: {
        int64_t n;
        if (units_parse_int(text, &n, err) < 0)
            return -1;
        if (n < 0 || n > 1000000000)
            return err_set(err, ERR_USAGE, "'%s' is not between 0 and 1000000000", text);
        *(int64_t *)value = n;
        return 0;
    }
    case CHOICE:
        return parse_choice(row->choices, text, value, err);
    }
    return -1;
}

static int parse_param(const char *key, const char *text, struct null_told *told, struct err *err)
{
    const char *names[ARR_LEN(rows) + 1] = {NULL};

    for (size_t i = 0; i < ARR_LEN(rows); i++) {
        names[i] = rows[i].name;
        if (strcmp(rows[i].name, key) == 0) {
            if (parse_value(&rows[i], text, (char *)told + rows[i].offset, err) < 0)
                return err_prefix(err, "null: parameter %s", key);
            return 0;
        }
    }
    text_unknown("parameter", key, names, err);
    return err_prefix(err, "null");
}

int null_parse(const struct url *url, struct null_told *told, struct err *err)
{
    *told = (struct null_told){.value = 1};
    if (url->has_authority || (url->path && url->path[0]))
        return err_set(err, ERR_USAGE,
                       "null: has no host or path, only parameters: null:?latency=2ms");
    for (size_t i = 0; i < url->params.n; i++) {
        const struct kv *kv = &url->params.items[i];
        for (size_t j = 0; j < i; j++)
            if (strcmp(url->params.items[j].key, kv->key) == 0)
                return err_set(err, ERR_USAGE, "null: parameter %s stands twice", kv->key);
        if (parse_param(kv->key, kv->value, told, err) < 0)
            return -1;
    }
    return 0;
}
