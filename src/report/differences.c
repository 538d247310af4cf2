#include "report/differences.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"

#define VALUES_SHOWN 3 // of one set; then ", ..."

// Keys of environment and options that differ by nature, or that another key says better.
static const char *const unimportant[] = {
    "host.boot_id",    "host.kernel_build",
    "load.loop_why",   "store.*",
    "*.free_bytes",    "*.summary",
    "*.path",          "*.device.*.name",
    "event.*",         "server.log_tail",
    "server.data",     "server.log",
    "server.made",     "volume.*.command.*",
    "volume.*.floor",  "volume.*.near_floor",
    "option.seed",     "option.clients",
    "option.threads",  "option.scale",
    "option.protocol", "option.rate",
    "option.loop",     "option.volume",
    "option.pipeline", "option.probe",
    "probe.*",         "option.at",
    "option.destroy",  "engine.sqlite_source_id",
};

static const char *const load_names[] = {"workload", "script", "scale", "clients", "rate"};

// What a set has for one key: its own name for the value, allocated, or NULL.
typedef char *value_fn(const struct result *run, const char *key);

static bool is_unimportant(const char *key)
{
    for (size_t i = 0; i < ARR_LEN(unimportant); i++)
        if (fnmatch(unimportant[i], key, 0) == 0)
            return true;
    return false;
}

// Made for the run: its name says nothing.
static bool is_made_up(const char *value)
{
    return strstr(value, "prony") || strncmp(value, "/dev/loop", 9) == 0;
}

static char *environment_value(const struct result *run, const char *key)
{
    const char *value = strncmp(key, "option.", 7) == 0 ? kvs_get(&run->options, key + 7)
                                                        : kvs_get(&run->environment, key);

    if (value && (strstr(key, ".source") || strstr(key, ".mount_point")) && is_made_up(value))
        return NULL;
    return mem_strdup(value);
}

static char *fact_value(const struct result *r, const char *key)
{
    if (strcmp(key, "target") == 0)
        return mem_strdup(r->target);
    if (strcmp(key, "engine") == 0)
        return mem_strdup(r->engine);
    if (strcmp(key, "version") == 0)
        return mem_strdup(r->engine_version);
    if (strcmp(key, "workload") == 0)
        return mem_strdup(r->workload);
    if (strcmp(key, "script") == 0)
        return mem_strdup(r->workload_hash);
    if (strcmp(key, "scale") == 0)
        return mem_printf("%" PRId64, r->scale);
    if (strcmp(key, "clients") == 0)
        return mem_printf("%" PRId64, r->clients);
    if (strcmp(key, "threads") == 0)
        return mem_printf("%" PRId64, r->threads);
    if (strcmp(key, "loop") == 0)
        return mem_strdup(r->loop);
    if (strcmp(key, "protocol") == 0)
        return mem_strdup(r->protocol);
    if (strcmp(key, "rate") == 0)
        return r->rate_tps > 0 ? mem_printf("%g tps", r->rate_tps) : mem_strdup("closed loop");
    assert(strcmp(key, "prony") == 0);
    return mem_strdup(r->prony_version);
}

// The values of all runs of a set as one text.
static char *set_value(const struct run_set *set, const char *key, value_fn *value)
{
    char **seen = NULL;
    size_t n = 0, cap = 0;
    struct str out = STR_INIT;

    for (int i = 0; i < set->n; i++) {
        char *own = value(set->runs[i], key);
        bool known = false;
        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(seen[j], own ? own : "-") == 0;
        if (known)
            free(own);
        else
            *ARR_PUSH(seen, n, cap) = own ? own : mem_strdup("-");
    }
    for (size_t i = 0; i < n; i++) {
        if (i < VALUES_SHOWN)
            str_addf(&out, "%s%s", i ? " or " : "", seen[i]);
        free(seen[i]);
    }
    if (n > VALUES_SHOWN)
        str_add(&out, ", ...");
    free(seen);
    return str_detach(&out);
}

static bool has_several(const struct run_set *set, const char *key, value_fn *value)
{
    char *first = set->n ? value(set->runs[0], key) : NULL;
    bool several = false;

    for (int i = 1; i < set->n && !several; i++) {
        char *own = value(set->runs[i], key);
        several = strcmp(own ? own : "-", first ? first : "-") != 0;
        free(own);
    }
    free(first);
    return several;
}

static const char *short_name(const char *key)
{
    static const char *const prefixes[] = {"host.", "engine.", "server.setting.", "option."};

    for (size_t i = 0; i < ARR_LEN(prefixes); i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return key + strlen(prefixes[i]);
    return key;
}

static bool is_listed(const struct differences *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

// Returns whether it differs.
static bool look_at(const struct run_set *sets, int n_sets, const char *key, value_fn *value,
                    struct differences *ret)
{
    char **values = mem_calloc((size_t)n_sets, sizeof(*values));
    const char *first = NULL;
    bool differs = false;

    for (int i = 0; i < n_sets; i++) {
        if (sets[i].n == 0) {
            values[i] = mem_strdup("-");
            continue;
        }
        values[i] = set_value(&sets[i], key, value);
        differs |= has_several(&sets[i], key, value) || (first && strcmp(values[i], first) != 0);
        first = values[i];
    }
    if (differs && !is_listed(ret, short_name(key))) {
        *ARR_PUSH(ret->items, ret->n, ret->cap) =
            (struct difference){.name = mem_strdup(short_name(key)), .values = values};
        return true;
    }
    for (int i = 0; i < n_sets; i++)
        free(values[i]);
    free(values);
    return differs;
}

static void add_key(struct kvs *keys, const char *prefix, const char *key)
{
    char *full = mem_printf("%s%s", prefix, key);

    if (!kvs_get(keys, full) && !is_unimportant(full))
        kvs_add(keys, full, "");
    free(full);
}

void differences_find(const struct run_set *sets, int n_sets, struct differences *ret)
{
    static const char *const facts[] = {"target", "engine",   "version", "workload",
                                        "script", "scale",    "clients", "threads",
                                        "loop",   "protocol", "rate",    "prony"};
    struct kvs keys = KVS_INIT;
    bool other_engine = false;

    for (size_t i = 0; i < ARR_LEN(facts); i++)
        if (look_at(sets, n_sets, facts[i], fact_value, ret))
            other_engine |= strcmp(facts[i], "engine") == 0;
    for (int i = 0; i < n_sets; i++)
        for (int j = 0; j < sets[i].n; j++) {
            const struct result *run = sets[i].runs[j];
            for (size_t k = 0; k < run->options.n; k++)
                add_key(&keys, "option.", run->options.items[k].key);
            for (size_t k = 0; k < run->environment.n; k++)
                add_key(&keys, "", run->environment.items[k].key);
        }
    for (size_t i = 0; i < keys.n; i++) {
        const char *key = keys.items[i].key;
        bool is_engines = strncmp(key, "engine.", 7) == 0 || strncmp(key, "server.", 7) == 0;
        if (!is_engines || !other_engine)
            look_at(sets, n_sets, key, environment_value, ret);
    }
    kvs_release(&keys);
}

void differences_release(struct differences *list, int n_sets)
{
    for (size_t i = 0; i < list->n; i++) {
        for (int j = 0; j < n_sets; j++)
            free(list->items[i].values[j]);
        free(list->items[i].values);
        free(list->items[i].name);
    }
    free(list->items);
    *list = (struct differences){0};
}

void difference_words(const struct difference *difference, int n_sets, struct str *out)
{
    str_add(out, difference->name);
    for (int i = 0; i < n_sets; i++)
        str_addf(out, "%s%s", i ? " -> " : " ", difference->values[i]);
}

bool difference_is_load(const struct difference *difference)
{
    for (size_t i = 0; i < ARR_LEN(load_names); i++)
        if (strcmp(difference->name, load_names[i]) == 0)
            return true;
    return false;
}
