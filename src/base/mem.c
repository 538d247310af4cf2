#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *mem_check(void *p)
{
    if (!p) {
        fputs("prony: out of memory\n", stderr);
        abort();
    }
    return p;
}

void *mem_calloc(size_t n, size_t size)
{
    return mem_check(calloc(n ? n : 1, size ? size : 1));
}

void *mem_calloc_lines(size_t n, size_t size)
{
    const size_t line = 64;
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX - line)
        return mem_check(NULL);
    bytes = bytes ? (bytes + line - 1) / line * line : line;
    return memset(mem_check(aligned_alloc(line, bytes)), 0, bytes);
}

void *mem_resize(void *old, size_t n, size_t size)
{
    return mem_check(reallocarray(old, n ? n : 1, size ? size : 1));
}

char *mem_strdup(const char *text)
{
    return text ? mem_check(strdup(text)) : NULL;
}

char *mem_strndup(const char *text, size_t n)
{
    size_t len = strnlen(text, n);
    char *copy = mem_check(malloc(len + 1));

    copy[len] = '\0';
    return memcpy(copy, text, len);
}

char *mem_printf(const char *fmt, ...)
{
    char *out = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&out, fmt, ap);
    va_end(ap);
    return mem_check(n < 0 ? NULL : out);
}
