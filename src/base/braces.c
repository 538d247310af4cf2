#include "base/braces.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

// What a plain value must not hold, with the words for it. ',' and '&' separate in one of the two
// grammars each and are harmless in the other, but '=' then gives a wrong separator away.
static const char *what_is_wrong(char c, char separator)
{
    switch (c) {
    case '=':
        return separator == '&' ? "holds '=': separate parameters with '&', or put it in braces"
                                : "holds '=': separate settings with ',', or put it in braces";
    case '&':
        return "holds '&': separate settings with ',', or put it in braces";
    case '{':
    case '}':
        return "holds a brace: put all of it in braces, which must match";
    default:
        return (unsigned char)c <= ' ' || c == 0x7f ? "holds a blank: put it in braces" : NULL;
    }
}

// Behind the brace that closes the one at text, or NULL.
static const char *closing(const char *text)
{
    int depth = 0;

    assert(*text == '{');
    for (; *text; text++) {
        depth += (*text == '{') - (*text == '}');
        if (depth == 0)
            return text + 1;
    }
    return NULL;
}

// Behind "TYPE:" when the text begins as a volume does, or NULL.
static const char *behind_type(const char *text)
{
    const char *p = text;

    while (isalnum((unsigned char)*p))
        p++;
    return isalpha((unsigned char)*text) && *p == ':' ? p + 1 : NULL;
}

// The end of a volume's text that stands as it is: the separator outside braces, or the end. Sets
// *wrong, which may be NULL.
static const char *end_of_volume(const char *p, const char **wrong)
{
    while (*p && *p != '&') {
        if (*p == '{') {
            p = closing(p);
            if (!p) {
                *wrong = "holds a '{' without its '}'";
                return NULL;
            }
            continue;
        }
        *wrong = *p == '=' ? NULL : what_is_wrong(*p, '&');
        if (*wrong)
            return NULL;
        p++;
    }
    return p;
}

const char *braces_read(const char **text, char separator, struct str *value, bool *in_braces)
{
    const char *start = *text, *p = start;

    assert(separator == '&' || separator == ',' || separator == '?');
    *in_braces = *start == '{';
    if (*in_braces) {
        const char *end = closing(start);
        if (!end)
            return "begins with '{' and has no matching '}'";
        if (*end && *end != separator)
            return "goes on after its closing brace: put all of it in braces";
        str_addn(value, start + 1, (size_t)(end - start) - 2);
        *text = end;
        return NULL;
    }
    const char *volume = separator == '&' ? behind_type(start) : NULL;
    if (volume) {
        const char *wrong = NULL, *end = end_of_volume(volume, &wrong);
        if (!end)
            return wrong;
        str_addn(value, start, (size_t)(end - start));
        *text = end;
        return NULL;
    }
    for (; *p && *p != separator; p++) {
        const char *wrong = what_is_wrong(*p, separator);
        if (wrong)
            return wrong;
    }
    str_addn(value, start, (size_t)(p - start));
    *text = p;
    return NULL;
}

bool braces_match(const char *text)
{
    int depth = 0;

    for (; *text && depth >= 0; text++)
        depth += (*text == '{') - (*text == '}');
    return depth == 0;
}

bool braces_is_plain(const char *text, char separator)
{
    const char *volume = separator == '&' ? behind_type(text) : NULL, *wrong = NULL;

    if (!*text)
        return false;
    if (volume) {
        const char *end = end_of_volume(volume, &wrong);
        return end && !*end;
    }
    for (; *text; text++)
        if (*text == separator || what_is_wrong(*text, separator))
            return false;
    return true;
}
