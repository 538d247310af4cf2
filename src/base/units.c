// Parsing is done in integers: a decimal number becomes mantissa / 10^digits and is multiplied by
// its unit in 128 bits, so that "0.1s" is exactly 100 ms and texts round-trip.
#include "base/units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"

#define NS_PER_MIN  (60 * NS_PER_S)
#define NS_PER_HOUR (60 * NS_PER_MIN)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit duration_units[] = {
    {"ns", 1},           {"us", NS_PER_US},  {"\u00b5s", NS_PER_US}, {"\u03bcs", NS_PER_US},
    {"ms", NS_PER_MS},   {"s", NS_PER_S},    {"sec", NS_PER_S},      {"m", NS_PER_MIN},
    {"min", NS_PER_MIN}, {"h", NS_PER_HOUR}, {"d", NS_PER_DAY},
};

static int refuse(const char *text, const char *words, struct err *err)
{
    struct str shown = STR_INIT;

    text_add_value(&shown, text);
    err_set(err, ERR_USAGE, "%s: must be %s", shown.buf, words);
    str_release(&shown);
    return -1;
}

// Reads DIGITS[.DIGITS] as mantissa / divisor and returns the rest of the text, blanks skipped;
// NULL when there is no such number or it does not fit.
static const char *parse_decimal(const char *text, int64_t *mantissa, int64_t *divisor)
{
    bool any = false, in_fraction = false;

    *mantissa = 0;
    *divisor = 1;
    for (; isdigit((unsigned char)*text) || (*text == '.' && !in_fraction); text++) {
        if (*text == '.') {
            in_fraction = true;
            continue;
        }
        any = true;
        if (__builtin_mul_overflow(*mantissa, 10, mantissa) ||
            __builtin_add_overflow(*mantissa, *text - '0', mantissa) ||
            (in_fraction && __builtin_mul_overflow(*divisor, 10, divisor)))
            return NULL;
    }
    if (!any)
        return NULL;
    while (*text == ' ')
        text++;
    return text;
}

// mantissa / divisor * factor, rounded; -1 when it does not fit.
static int scale_decimal(int64_t mantissa, int64_t divisor, int64_t factor, int64_t *ret)
{
    assert(mantissa >= 0 && divisor > 0 && factor > 0);
    __int128 scaled = ((__int128)mantissa * factor + divisor / 2) / divisor;

    if (scaled > INT64_MAX)
        return -1;
    *ret = (int64_t)scaled;
    return 0;
}

int units_parse_int(const char *text, int64_t *ret, struct err *err)
{
    const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
    char *end;

    if (!isdigit((unsigned char)*digits))
        return refuse(text, UNITS_INT_WORDS, err);
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (*end)
        return refuse(text, UNITS_INT_WORDS, err);
    if (errno == ERANGE)
        return refuse(text, UNITS_INT_WORDS " that fits 64 bits", err);
    *ret = n;
    return 0;
}

int units_parse_double(const char *text, double *ret, struct err *err)
{
    char *end;

    // strtod alone would take blanks, hexadecimal, "inf" and "nan".
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return refuse(text, UNITS_DOUBLE_WORDS, err);
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return refuse(text, UNITS_DOUBLE_WORDS, err);
    *ret = value;
    return 0;
}

int units_parse_duration(const char *text, int64_t bare_ns, int64_t *ret_ns, struct err *err)
{
    int64_t mantissa, divisor, factor = 0;
    const char *unit = parse_decimal(text, &mantissa, &divisor);

    assert(bare_ns >= 0);
    if (unit && !*unit)
        factor = bare_ns ? bare_ns : mantissa == 0;
    else if (unit)
        for (size_t i = 0; i < ARR_LEN(duration_units); i++)
            if (strcmp(unit, duration_units[i].name) == 0)
                factor = duration_units[i].factor;
    if (!unit || factor == 0 || scale_decimal(mantissa, divisor, factor, ret_ns) < 0)
        return refuse(text, UNITS_DURATION_WORDS, err);
    return 0;
}

// The factor of "", "k", "KB", "MiB", ..., "xRAM"; 0 when it is none of these.
static int64_t size_factor(const char *unit)
{
    static const char prefixes[] = "kMGTPE";
    int64_t factor = 1024;

    if (!*unit || strcasecmp(unit, "b") == 0)
        return 1;
    if (strcasecmp(unit, "xram") == 0)
        return units_ram_bytes();
    for (const char *p = prefixes; *p; p++, factor *= 1024) {
        if (tolower((unsigned char)*unit) == tolower((unsigned char)*p))
            return !unit[1] || !strcasecmp(unit + 1, "b") || !strcasecmp(unit + 1, "ib") ? factor
                                                                                         : 0;
        if (p[1] == '\0')
            break; // 1024^7 does not fit
    }
    return 0;
}

int units_parse_size(const char *text, int64_t *ret_bytes, struct err *err)
{
    int64_t mantissa, divisor, factor;
    const char *unit = parse_decimal(text, &mantissa, &divisor);

    factor = unit ? size_factor(unit) : 0;
    if (factor == 0 || scale_decimal(mantissa, divisor, factor, ret_bytes) < 0)
        return refuse(text, UNITS_SIZE_WORDS, err);
    return 0;
}

int64_t units_ram_bytes(void)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    assert(pages > 0 && page_bytes > 0);
    return pages * page_bytes;
}

// Writes value with three significant digits; false when it needs four, so that the caller takes
// the next unit.
static bool three_digits(double value, char *out, int size)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

    assert(value >= 0);
    snprintf(out, (size_t)size, "%.*f", decimals, value);
    return value < 999.5;
}

char *units_format_duration(int64_t ns, char *out)
{
    static const struct unit units[] = {{"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
    const char *sign = ns < 0 ? "-" : "";
    uint64_t abs_ns = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    char digits[UNITS_MAX - 8];

    if (abs_ns == 0) {
        snprintf(out, UNITS_MAX, "0 s");
        return out;
    }
    if (abs_ns < 1000) {
        snprintf(out, UNITS_MAX, "%s%d ns", sign, (int)abs_ns);
        return out;
    }
    for (size_t i = 0; i < ARR_LEN(units); i++) {
        double value = (double)abs_ns / (double)units[i].factor;
        if (units[i].factor == NS_PER_S && value >= 59.95)
            break;
        if (three_digits(value, digits, sizeof(digits))) {
            snprintf(out, UNITS_MAX, "%s%s %s", sign, digits, units[i].name);
            return out;
        }
    }
    uint64_t seconds = (abs_ns + NS_PER_S / 2) / NS_PER_S;
    uint64_t minutes = (seconds + 30) / 60;
    if (seconds < 3600)
        snprintf(out, UNITS_MAX, "%s%d min %d s", sign, (int)(seconds / 60), (int)(seconds % 60));
    else
        snprintf(out, UNITS_MAX, "%s%lld h %d min", sign, (long long)(minutes / 60),
                 (int)(minutes % 60));
    return out;
}

char *units_format_duration_exact(int64_t ns, char *out)
{
    static const struct unit units[] = {{"ns", 1},       {"us", NS_PER_US}, {"ms", NS_PER_MS},
                                        {"s", NS_PER_S}, {"m", NS_PER_MIN}, {"h", NS_PER_HOUR}};
    char text[UNITS_MAX];
    size_t best = SIZE_MAX;

    assert(ns >= 0);
    if (ns == 0) {
        snprintf(out, UNITS_MAX, "0s");
        return out;
    }
    for (size_t i = 0; i < ARR_LEN(units); i++) {
        int64_t whole = ns / units[i].factor, rest = ns % units[i].factor;
        if (rest && units[i].factor > NS_PER_S)
            break; // a third of a minute has no end
        int n = snprintf(text, sizeof(text), "%lld", (long long)whole);
        if (rest) {
            int decimals = units[i].factor == NS_PER_S ? 9 : units[i].factor == NS_PER_MS ? 6 : 3;
            n += snprintf(text + n, sizeof(text) - (size_t)n, ".%0*lld", decimals, (long long)rest);
            while (text[n - 1] == '0')
                text[--n] = '\0';
        }
        snprintf(text + n, sizeof(text) - (size_t)n, "%s", units[i].name);
        if (strlen(text) < best) {
            best = strlen(text);
            memcpy(out, text, best + 1);
        }
    }
    return out;
}

char *units_format_bytes(int64_t bytes, char *out)
{
    static const char prefixes[] = "KMGTPE";
    const char *sign = bytes < 0 ? "-" : "";
    uint64_t n = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
    uint64_t factor = 1024;
    const char *prefix = prefixes;
    char digits[UNITS_MAX - 8];

    if (n < 1024) {
        snprintf(out, UNITS_MAX, "%s%d B", sign, (int)n);
        return out;
    }
    while (prefix[1] && (double)n / (double)factor >= 1023.5) {
        factor *= 1024;
        prefix++;
    }
    if (n % factor == 0)
        snprintf(digits, sizeof(digits), "%lld", (long long)(n / factor));
    else
        (void)three_digits((double)n / (double)factor, digits, sizeof(digits));
    snprintf(out, UNITS_MAX, "%s%s %ciB", sign, digits, *prefix);
    return out;
}

char *units_format_bytes_exact(int64_t bytes, char *out)
{
    static const char *const names[] = {"", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t i = 0;

    assert(bytes >= 0);
    for (; bytes >= 1024 && bytes % 1024 == 0; bytes /= 1024)
        i++;
    assert(i < ARR_LEN(names));
    snprintf(out, UNITS_MAX, "%lld%s", (long long)bytes, names[i]);
    return out;
}

char *units_format_count(int64_t n, char *out)
{
    char plain[UNITS_MAX];
    int len = snprintf(plain, sizeof(plain), "%lld", (long long)n);
    int to = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && plain[i - 1] != '-' && (len - i) % 3 == 0)
            out[to++] = ' ';
        out[to++] = plain[i];
    }
    assert(to < UNITS_MAX);
    out[to] = '\0';
    return out;
}

char *units_format_rate(double per_second, char *out)
{
    double size = fabs(per_second);

    if (!isfinite(per_second))
        snprintf(out, UNITS_MAX, "-");
    else if (size == 0)
        snprintf(out, UNITS_MAX, "0");
    else if (size < 0.0995)
        snprintf(out, UNITS_MAX, "%.2g", per_second);
    else if (size < 9.995)
        snprintf(out, UNITS_MAX, "%.2f", per_second);
    else if (size < 99.95)
        snprintf(out, UNITS_MAX, "%.1f", per_second);
    else if (size < 9999.5)
        snprintf(out, UNITS_MAX, "%.0f", per_second);
    else if (size < 1e15)
        units_format_count(llround(per_second), out);
    else
        snprintf(out, UNITS_MAX, "%.3g", per_second);
    return out;
}
