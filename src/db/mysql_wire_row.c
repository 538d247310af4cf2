// Column definitions and rows off the wire. Only what a script reads comes here: one row of a
// statement at most; every other row is passed over by its length.
//
// Values have the types and texts that the blocking driver gives them, and it has them from
// libmariadb: that is why a FLOAT is written with six digits and dates with the column's decimals.
// snprintf is used for FLOAT alone.
#include "db/mysql_wire.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"

#define DECIMALS_ANY 31 // and more: the column has no fixed number of decimals

// ---- definitions

struct mysqldb_wire_meta *mysqldb_wire_meta_new(void)
{
    struct mysqldb_wire_meta *meta = mem_calloc(1, sizeof(*meta));

    str_init(&meta->names);
    return meta;
}

void mysqldb_wire_meta_clear(struct mysqldb_wire_meta *meta)
{
    meta->n = 0;
    str_clear(&meta->names);
}

void mysqldb_wire_meta_free(struct mysqldb_wire_meta *meta)
{
    if (!meta)
        return;
    free(meta->columns);
    str_release(&meta->names);
    free(meta);
}

int mysqldb_wire_meta_add(struct mysqldb_wire_meta *meta, const uint8_t *body, size_t len,
                          bool extended)
{
    struct mysqldb_cursor c = {.p = body, .end = body + len};
    const uint8_t *name = NULL;
    uint64_t name_len = 0;

    assert(meta->n < WIRE_COLUMNS_MAX);
    // Catalog, schema, table and its real name, then the name and the column's real one.
    for (int i = 0; i < 6; i++) {
        uint64_t n = cursor_length_known(&c);
        const uint8_t *text = cursor_take(&c, n);
        if (i == 4) {
            name = text;
            name_len = n;
        }
    }
    if (extended)
        cursor_take(&c, cursor_length_known(&c));
    struct mysqldb_cursor fixed = {0};
    uint64_t fixed_len = cursor_length_known(&c);
    fixed.p = cursor_take(&c, fixed_len);
    if (c.bad)
        return -1;
    fixed.end = fixed.p + fixed_len;
    struct mysqldb_wire_column column = {.name = (uint32_t)meta->names.len};
    cursor_int(&fixed, 2); // character set
    column.length = (uint32_t)cursor_int(&fixed, 4);
    column.type = (uint8_t)cursor_int(&fixed, 1);
    column.flags = (uint16_t)cursor_int(&fixed, 2);
    column.decimals = (uint8_t)cursor_int(&fixed, 1);
    if (fixed.bad)
        return -1;
    str_addn(&meta->names, (const char *)name, name_len);
    str_addc(&meta->names, '\0');
    *ARR_PUSH(meta->columns, meta->n, meta->cap) = column;
    return 0;
}

// ---- texts of binary values

// Digits of a number, at least as many as told. Returns past the last.
static char *put_number(char *out, uint64_t number, int digits_min)
{
    char digits[20];
    int n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) > 0 || n < digits_min);
    while (n > 0)
        *out++ = digits[--n];
    return out;
}

static char *put_clock(char *out, uint64_t hours, uint64_t minutes, uint64_t seconds,
                       uint64_t micros, int decimals)
{
    out = put_number(out, hours, 2);
    *out++ = ':';
    out = put_number(out, minutes, 2);
    *out++ = ':';
    out = put_number(out, seconds, 2);
    if (decimals < 1 || decimals > 6)
        return out;
    for (int i = decimals; i < 6; i++)
        micros /= 10;
    *out++ = '.';
    return put_number(out, micros, decimals);
}

// Parts left out at the end of the value are zero. None is longer than the bytes it comes in allow.
#define DATE_TEXT_MAX 64

static char *put_time(char *out, const uint8_t *value, size_t len, int decimals)
{
    struct mysqldb_cursor c = {.p = value, .end = value + len};
    uint64_t negative = cursor_int(&c, 1), days = cursor_int(&c, 4);
    uint64_t hours = cursor_int(&c, 1), minutes = cursor_int(&c, 1), seconds = cursor_int(&c, 1);

    if (negative)
        *out++ = '-';
    return put_clock(out, days * 24 + hours, minutes, seconds, cursor_int(&c, 4), decimals);
}

static char *put_date(char *out, const uint8_t *value, size_t len, int decimals, bool with_clock)
{
    struct mysqldb_cursor c = {.p = value, .end = value + len};
    uint64_t year = cursor_int(&c, 2), month = cursor_int(&c, 1), day = cursor_int(&c, 1);
    uint64_t hours = cursor_int(&c, 1), minutes = cursor_int(&c, 1), seconds = cursor_int(&c, 1);

    out = put_number(out, year, 4);
    *out++ = '-';
    out = put_number(out, month, 2);
    *out++ = '-';
    out = put_number(out, day, 2);
    if (!with_clock)
        return out;
    *out++ = ' ';
    return put_clock(out, hours, minutes, seconds, cursor_int(&c, 4), decimals);
}

// Six significant digits without trailing zeros; *point is where the point stands among them.
static int float_digits(double size, char digits[6], int *point)
{
    char text[32]; // d.ddddde-XX
    int n = 6;

    snprintf(text, sizeof(text), "%.5e", size);
    digits[0] = text[0];
    memcpy(digits + 1, text + 2, 5);
    *point = (int)strtol(text + 8, NULL, 10) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

#define FLOAT_TEXT_MAX 320

// As short as six digits allow, with an exponent only far from zero.
static char *put_short_float(char *out, double value)
{
    char digits[6];
    int point;
    int n = float_digits(fabs(value), digits, &point);

    if (signbit(value))
        *out++ = '-';
    if (point < -14 || point > 15) {
        *out++ = digits[0];
        if (n > 1)
            *out++ = '.';
        memcpy(out, digits + 1, (size_t)n - 1);
        out += n - 1;
        *out++ = 'e';
        if (point < 1)
            *out++ = '-';
        return put_number(out, (uint64_t)abs(point - 1), 1);
    }
    if (point <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = point; i < 0; i++)
            *out++ = '0';
    }
    for (int i = 0; i < n || i < point; i++) {
        if (i > 0 && i == point)
            *out++ = '.';
        *out++ = i < n ? digits[i] : '0';
    }
    return out;
}

static size_t float_text(float value, const struct mysqldb_wire_column *column,
                         char out[FLOAT_TEXT_MAX])
{
    size_t len;

    if (!isfinite(value)) {
        out[0] = '0';
        len = 1;
    } else if (column->decimals >= DECIMALS_ANY) {
        len = (size_t)(put_short_float(out, value) - out);
    } else {
        len = (size_t)snprintf(out, FLOAT_TEXT_MAX, "%.*f", column->decimals, value);
    }
    assert(len < 100);
    if ((column->flags & ZEROFILL_FLAG) && column->length > len && column->length < 300) {
        size_t zeros = column->length - len;
        memmove(out + zeros, out, len);
        memset(out, '0', zeros);
        len = column->length;
    }
    return len;
}

// ---- rows

// The n bytes of a text; NULL when they are not there.
static const uint8_t *take_text(struct mysqldb_cursor *c, uint64_t n)
{
    const uint8_t *text = c->p;

#ifndef PLANT_MYSQL_WIRE // a mistake for the fuzzer to find (meson -Dplant=mysql_wire)
    if (c->bad || n > cursor_left(c)) {
        c->bad = true;
        return NULL;
    }
#endif
    c->p += n;
    return text;
}

static void keep_int(struct mysqldb_row *row, struct mysqldb_field *field,
                     const struct mysqldb_wire_column *column, uint64_t bits, int bytes)
{
    bool is_unsigned = column->flags & UNSIGNED_FLAG;

    if (!is_unsigned && bytes < 8 && (bits >> (8 * bytes - 1)))
        bits |= UINT64_MAX << (8 * bytes);
    if (is_unsigned && bits > INT64_MAX) {
        char text[24];
        mysqldb_row_text(row, field, text, (size_t)(put_number(text, bits, 1) - text));
        return;
    }
    field->value = (struct db_value){.type = DB_INT, .i = (int64_t)bits};
}

static void keep_float(struct mysqldb_row *row, struct mysqldb_field *field,
                       const struct mysqldb_wire_column *column, uint32_t bits)
{
    char text[FLOAT_TEXT_MAX];
    float value;

    static_assert(sizeof(value) == sizeof(bits), "FLOAT has four bytes");
    memcpy(&value, &bits, sizeof(value));
    mysqldb_row_text(row, field, text, float_text(value, column, text));
}

static void keep_double(struct mysqldb_field *field, uint64_t bits)
{
    double value;

    static_assert(sizeof(value) == sizeof(bits), "DOUBLE has eight bytes");
    memcpy(&value, &bits, sizeof(value));
    field->value = (struct db_value){.type = DB_DOUBLE, .d = value};
}

static void keep_date(struct mysqldb_row *row, struct mysqldb_field *field,
                      const struct mysqldb_wire_column *column, const uint8_t *value, size_t len)
{
    char text[DATE_TEXT_MAX], *end;

    if (column->type == MYSQL_TYPE_TIME)
        end = put_time(text, value, len, column->decimals);
    else
        end = put_date(text, value, len, column->decimals, column->type != MYSQL_TYPE_DATE);
    assert(end - text < DATE_TEXT_MAX);
    mysqldb_row_text(row, field, text, (size_t)(end - text));
}

// Types that are not named here, also those still unknown, come as a length and bytes.
static void keep_binary(struct mysqldb_row *row, struct mysqldb_field *field,
                        const struct mysqldb_wire_column *column, struct mysqldb_cursor *c)
{
    switch (column->type) {
    case MYSQL_TYPE_NULL:
        return;
    case MYSQL_TYPE_TINY:
        keep_int(row, field, column, cursor_int(c, 1), 1);
        return;
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_YEAR:
        keep_int(row, field, column, cursor_int(c, 2), 2);
        return;
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
        keep_int(row, field, column, cursor_int(c, 4), 4);
        return;
    case MYSQL_TYPE_LONGLONG:
        keep_int(row, field, column, cursor_int(c, 8), 8);
        return;
    case MYSQL_TYPE_FLOAT:
        keep_float(row, field, column, (uint32_t)cursor_int(c, 4));
        return;
    case MYSQL_TYPE_DOUBLE:
        keep_double(field, cursor_int(c, 8));
        return;
    }
    uint64_t len = cursor_length_known(c);
    const uint8_t *bytes = take_text(c, len);
    if (c->bad)
        return;
    switch (column->type) {
    case MYSQL_TYPE_DATE:
    case MYSQL_TYPE_TIME:
    case MYSQL_TYPE_DATETIME:
    case MYSQL_TYPE_TIMESTAMP:
        keep_date(row, field, column, bytes, len);
        return;
    }
    mysqldb_row_text(row, field, (const char *)bytes, len);
}

static void read_binary(struct mysqldb_row *row, const struct mysqldb_wire_meta *meta,
                        struct mysqldb_cursor *c)
{
    // A zero, then a bit per column that is NULL, the first two unused.
    cursor_int(c, 1);
    const uint8_t *nulls = cursor_take(c, (meta->n + 2 + 7) / 8);
    for (size_t i = 0; i < meta->n && !c->bad; i++) {
        const struct mysqldb_wire_column *column = &meta->columns[i];
        struct mysqldb_field *field = mysqldb_row_add(row, meta->names.buf + column->name);
        size_t bit = i + 2;
        if (!(nulls[bit / 8] & 1 << bit % 8))
            keep_binary(row, field, column, c);
    }
}

static void read_text(struct mysqldb_row *row, const struct mysqldb_wire_meta *meta,
                      struct mysqldb_cursor *c)
{
    for (size_t i = 0; i < meta->n && !c->bad; i++) {
        const struct mysqldb_wire_column *column = &meta->columns[i];
        bool null;
        uint64_t len = cursor_length(c, &null);
        const uint8_t *bytes = take_text(c, len);
        if (c->bad)
            return;
        mysqldb_row_parse(row, meta->names.buf + column->name, mysqldb_type(column->type),
                          null ? NULL : (const char *)bytes, len);
    }
}

int mysqldb_wire_row(struct mysqldb_row *row, const struct mysqldb_wire_meta *meta, bool binary,
                     const uint8_t *body, size_t len)
{
    struct mysqldb_cursor c = {.p = body, .end = body + len};

    assert(meta->n <= WIRE_COLUMNS_MAX);
    mysqldb_row_begin(row, (int)meta->n);
    if (binary)
        read_binary(row, meta, &c);
    else
        read_text(row, meta, &c);
    if (c.bad || c.p != c.end) {
        row->n = 0;
        return -1;
    }
    mysqldb_row_end(row);
    return 0;
}
