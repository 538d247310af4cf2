// Growing arrays of any type, as three plain fields of the owning struct:
//
//     struct thing *things;   size_t n_things;   size_t cap_things;
//     *ARR_PUSH(o->things, o->n_things, o->cap_things) = (struct thing){...};
//
// ARR_PUSH gives a pointer to a new zeroed last element, valid until the next push.
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define ARR_PUSH(items, n, cap)                                     \
    ({                                                              \
        if ((n) == (cap)) {                                         \
            (cap) = (cap) ? 2 * (cap) : 8;                          \
            (items) = mem_resize((items), (cap), sizeof(*(items))); \
        }                                                           \
        memset(&(items)[(n)], 0, sizeof(*(items)));                 \
        &(items)[(n)++];                                            \
    })

#define ARR_LEN(a) (sizeof(a) / sizeof((a)[0]))
