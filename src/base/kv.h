// An ordered list of keys and text values: URL parameters, recorded settings, the environment.
#pragma once

#include <stddef.h>

struct kv {
    char *key;
    char *value;
};

struct kvs {
    struct kv *items;
    size_t n;
    size_t cap;
};

#define KVS_INIT \
    {            \
        0        \
    }

void kvs_add(struct kvs *list, const char *key, const char *value); // copies both; duplicates stay
void kvs_addf(struct kvs *list, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kvs_set(struct kvs *list, const char *key, const char *value); // replaces the first, or adds
const char *kvs_get(const struct kvs *list, const char *key);       // first value, or NULL
void kvs_copy(struct kvs *to, const struct kvs *from);              // appends copies
void kvs_release(struct kvs *list);
