// Memory that is there or the program ends: outside the measured phase an allocation that fails is
// not worth a path of its own, so these print one line to stderr and abort. Free with free().
// Nothing here may be called per transaction.
#pragma once

#include <stddef.h>

// Zero-filled memory for n objects of the given size (n * size is checked for overflow).
void *mem_calloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));

// The same on cache lines of its own (64 bytes), for what one thread writes while others run.
void *mem_calloc_lines(size_t n, size_t size) __attribute__((malloc, warn_unused_result));

// As realloc; n * size is checked for overflow.
void *mem_resize(void *old, size_t n, size_t size) __attribute__((warn_unused_result));

// Asks for memory that will be read and written soon to come into the cache. Never faults.
static inline void mem_prefetch(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch((const char *)p + i, 1);
}

// A copy of text (NULL stays NULL), of its first n bytes, or of a formatted line.
char *mem_strdup(const char *text) __attribute__((warn_unused_result));
char *mem_strndup(const char *text, size_t n) __attribute__((malloc, warn_unused_result));
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), warn_unused_result));
