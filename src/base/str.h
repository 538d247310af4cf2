// A growing string. buf is always terminated and never NULL after str_init or STR_INIT, so that
// s.buf can be printed at any time. Running out of memory ends the program (base/mem.h).
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct str {
    char *buf;
    size_t len;
    size_t cap; // bytes owned by buf; 0 while buf is the shared empty string
};

extern char str_empty[];
#define STR_INIT         \
    {                    \
        .buf = str_empty \
    }

void str_init(struct str *s);
void str_release(struct str *s); // frees; s is empty and usable afterwards
void str_clear(struct str *s);   // length 0, memory kept
char *str_detach(struct str *s); // the text, now the caller's to free; s is empty
void str_reserve(struct str *s,
                 size_t more); // room for `more` bytes beyond len, so that adds do not allocate
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *bytes, size_t n);
void str_addc(struct str *s, char c);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vaddf(struct str *s, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
