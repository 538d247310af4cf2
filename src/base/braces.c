#include "base/braces.h"

#include <assert.h>
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
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text == separator || what_is_wrong(*text, separator))
            return false;
    return true;
}
