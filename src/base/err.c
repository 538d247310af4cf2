#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Formats into the whole of text and marks a cut, so that no message ends in mid-word unnoticed.
static void err_format(char text[ERR_TEXT_MAX], const char *fmt, va_list ap)
{
    int n = vsnprintf(text, ERR_TEXT_MAX, fmt, ap);

    if (n >= ERR_TEXT_MAX)
        memcpy(text + ERR_TEXT_MAX - 4, "...", 4);
    for (char *p = text; *p; p++) // one line, whatever the server or a file name held
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    for (size_t len = strlen(text); len > 0 && text[len - 1] == ' '; len--)
        text[len - 1] = '\0';
}

int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    if (!err)
        return -1;
    char text[ERR_TEXT_MAX]; // a copy: arguments may point into err->text
    va_list ap;
    va_start(ap, fmt);
    err_format(text, fmt, ap);
    va_end(ap);
    err->kind = kind;
    memcpy(err->text, text, sizeof(text));
    return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char context[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    err_format(context, fmt, ap);
    va_end(ap);
    return err_set(err, err->kind, "%s: %s", context, err->text);
}

int err_exit_status(const struct err *err)
{
    switch (err->kind) {
    case ERR_NONE:
        return 0;
    case ERR_FAILED:
        return 1;
    case ERR_USAGE:
        return 2;
    case ERR_ABSENT:
        return 4;
    }
    return 1;
}
