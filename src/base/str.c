#include "base/str.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

char str_empty[1];

void str_init(struct str *s)
{
    *s = (struct str)STR_INIT;
}

void str_release(struct str *s)
{
    if (s->cap)
        free(s->buf);
    str_init(s);
}

void str_clear(struct str *s)
{
    s->len = 0;
    if (s->cap)
        s->buf[0] = '\0';
}

char *str_detach(struct str *s)
{
    char *text = s->cap ? s->buf : mem_strdup("");

    str_init(s);
    return text;
}

void str_reserve(struct str *s, size_t more)
{
    assert(more < SIZE_MAX / 4 && s->len < SIZE_MAX / 4);
    size_t need = s->len + more + 1;
    if (need <= s->cap)
        return;
    size_t cap = s->cap ? s->cap : 64;
    while (cap < need)
        cap *= 2;
    s->buf = mem_resize(s->cap ? s->buf : NULL, cap, 1);
    s->cap = cap;
    s->buf[s->len] = '\0';
}

void str_addn(struct str *s, const char *bytes, size_t n)
{
    str_reserve(s, n);
    memcpy(s->buf + s->len, bytes, n);
    s->len += n;
    s->buf[s->len] = '\0';
}

void str_add(struct str *s, const char *text)
{
    str_addn(s, text, strlen(text));
}

void str_addc(struct str *s, char c)
{
    str_addn(s, &c, 1);
}

void str_vaddf(struct str *s, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    assert(n >= 0);
    str_reserve(s, (size_t)n);
    vsnprintf(s->buf + s->len, (size_t)n + 1, fmt, again);
    s->len += (size_t)n;
    va_end(again);
}

void str_addf(struct str *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(s, fmt, ap);
    va_end(ap);
}
