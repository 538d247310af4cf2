#include "base/kv.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"

void kvs_add(struct kvs *list, const char *key, const char *value)
{
    *ARR_PUSH(list->items, list->n, list->cap) =
        (struct kv){.key = mem_strdup(key), .value = mem_strdup(value)};
}

void kvs_addf(struct kvs *list, const char *key, const char *fmt, ...)
{
    struct str value = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&value, fmt, ap);
    va_end(ap);
    *ARR_PUSH(list->items, list->n, list->cap) =
        (struct kv){.key = mem_strdup(key), .value = str_detach(&value)};
}

static struct kv *kvs_find(const struct kvs *list, const char *key)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].key, key) == 0)
            return &list->items[i];
    return NULL;
}

void kvs_set(struct kvs *list, const char *key, const char *value)
{
    struct kv *kv = kvs_find(list, key);

    if (!kv) {
        kvs_add(list, key, value);
        return;
    }
    char *copy = mem_strdup(value);
    free(kv->value);
    kv->value = copy;
}

const char *kvs_get(const struct kvs *list, const char *key)
{
    const struct kv *kv = kvs_find(list, key);

    return kv ? kv->value : NULL;
}

void kvs_copy(struct kvs *to, const struct kvs *from)
{
    for (size_t i = 0; i < from->n; i++)
        kvs_add(to, from->items[i].key, from->items[i].value);
}

void kvs_release(struct kvs *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].key);
        free(list->items[i].value);
    }
    free(list->items);
    *list = (struct kvs)KVS_INIT;
}
