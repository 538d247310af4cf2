#include "db/value.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int db_format_int(int64_t i, char out[DB_VALUE_TEXT_MAX])
{
    char digits[20];
    int n = 0;
    int len = 0;
    uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i; // INT64_MIN has no positive counterpart

    do
        digits[n++] = (char)('0' + u % 10);
    while ((u /= 10) > 0);
    if (i < 0)
        out[len++] = '-';
    while (n > 0)
        out[len++] = digits[--n];
    out[len] = '\0';
    assert(len < DB_VALUE_TEXT_MAX);
    return len;
}

// Most doubles of scripts have few decimals: n / 10^k with both exact is rounded once, as is the
// reading of that decimal, so equality here means that the text reads back the same. Returns 0
// when the value is not of that kind. No printf: this is what the measured phase meets.
static int format_short_decimal(double d, char out[DB_VALUE_TEXT_MAX])
{
    static const double power[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    double size = fabs(d);

    if (size >= 1e9 || (d == 0 && signbit(d)))
        return 0;
    for (int k = 0; k < (int)(sizeof(power) / sizeof(power[0])); k++) {
        double scaled = nearbyint(size * power[k]);
        if (scaled / power[k] != size)
            continue;
        int64_t n = (int64_t)scaled;
        int64_t unit = (int64_t)power[k];
        int len = 0;
        if (d < 0)
            out[len++] = '-';
        char whole[DB_VALUE_TEXT_MAX];
        int n_whole = db_format_int(n / unit, whole);
        memcpy(out + len, whole, (size_t)n_whole);
        len += n_whole;
        if (k > 0) {
            out[len] = '.';
            for (int64_t rest = n % unit, i = k; i > 0; i--, rest /= 10)
                out[len + i] = (char)('0' + rest % 10);
            len += 1 + k;
        }
        out[len] = '\0';
        return len;
    }
    return 0;
}

static int format_double(double d, char out[DB_VALUE_TEXT_MAX])
{
    int len = 0;

    // The spellings of infinity that PostgreSQL reads; the other engines have no such value.
    if (isnan(d))
        return snprintf(out, DB_VALUE_TEXT_MAX, "NaN");
    if (isinf(d))
        return snprintf(out, DB_VALUE_TEXT_MAX, d < 0 ? "-Infinity" : "Infinity");
    if ((len = format_short_decimal(d, out)) > 0)
        return len;
    for (int digits = 15; digits <= 17; digits++) {
        len = snprintf(out, DB_VALUE_TEXT_MAX, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    assert(len > 0 && len < DB_VALUE_TEXT_MAX);
    return len;
}

const char *db_value_text(const struct db_value *value, char buf[DB_VALUE_TEXT_MAX], int *ret_len)
{
    switch (value->type) {
    case DB_NULL:
        *ret_len = 0;
        return NULL;
    case DB_BOOL:
        *ret_len = value->b ? 4 : 5;
        return value->b ? "true" : "false";
    case DB_INT:
        *ret_len = db_format_int(value->i, buf);
        return buf;
    case DB_DOUBLE:
        *ret_len = format_double(value->d, buf);
        return buf;
    case DB_TEXT:
        *ret_len = (int)value->text_len;
        return value->s;
    }
    assert(!"a value of no type");
    return NULL;
}
