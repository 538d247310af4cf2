// The first row of an answer, where the script reads it: names and types from RowDescription, texts
// from DataRow.
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "db/postgres_wire.h"

// Behind the name in RowDescription: table, attribute, type, length, modifier, format.
#define FIELD_LEN   18
#define FIELD_TYPE  6
#define FIELD_COUNT 2 // bytes of the number of fields, in both messages

static size_t add(struct postgres_row *row, const char *bytes, size_t n)
{
    size_t at = row->bytes.len;

    str_reserve(&row->bytes, n + 1);
    memcpy(row->bytes.buf + at, bytes, n);
    row->bytes.buf[at + n] = '\0';
    row->bytes.len = at + n + 1;
    row->bytes.buf[row->bytes.len] = '\0';
    return at;
}

static void set_columns(struct postgres_row *row, int n)
{
    if (n > row->cap) {
        row->columns = mem_resize(row->columns, (size_t)n, sizeof(*row->columns));
        row->cap = n;
    }
    row->n = n;
}

int postgres_row_describe(struct postgres_row *row, const char *body, size_t n)
{
    const char *p = body + FIELD_COUNT, *end = body + n;

    if (n < FIELD_COUNT)
        return -1;
    // A field takes a name's terminator at least: the number is bounded by the bytes that came.
    int n_columns = (int)postgres_get16(body);
    if ((size_t)n_columns * (FIELD_LEN + 1) > n)
        return -1;
    str_clear(&row->bytes);
    set_columns(row, n_columns);
    for (int i = 0; i < n_columns; i++) {
        const char *stop = memchr(p, '\0', (size_t)(end - p));
        if (!stop || end - stop - 1 < FIELD_LEN) {
            row->n = 0;
            return -1;
        }
        row->columns[i] = (struct postgres_column){
            .name = add(row, p, (size_t)(stop - p)),
            .len = -1,
            .type = postgres_get32(stop + 1 + FIELD_TYPE),
        };
        p = stop + 1 + FIELD_LEN;
    }
    return p == end ? 0 : -1;
}

int postgres_row_fill(struct postgres_row *row, const char *body, size_t n)
{
    const char *p = body + FIELD_COUNT, *end = body + n;

    if (n < FIELD_COUNT || (int)postgres_get16(body) != row->n)
        return -1;
    for (int i = 0; i < row->n; i++) {
        if (end - p < 4)
            return -1;
        int32_t len = (int32_t)postgres_get32(p);
        p += 4;
#ifndef PLANT_POSTGRES_WIRE // a mistake for the fuzzer to find (meson -Dplant=postgres_wire)
        if (len < -1 || len > end - p)
            return -1;
#endif
        row->columns[i].len = len;
        row->columns[i].value = 0;
        if (len < 0)
            continue;
        row->columns[i].value = add(row, p, (size_t)len);
        p += len;
    }
    return p == end ? 0 : -1;
}

void postgres_row_clear(struct postgres_row *row)
{
    row->n = 0;
    str_clear(&row->bytes);
    if (row->bytes.cap > POSTGRES_WIRE_SPARE_MAX)
        str_release(&row->bytes);
    if ((size_t)row->cap * sizeof(*row->columns) > POSTGRES_WIRE_SPARE_MAX) {
        free(row->columns);
        row->columns = NULL;
        row->cap = 0;
    }
}

void postgres_row_release(struct postgres_row *row)
{
    str_release(&row->bytes);
    free(row->columns);
    *row = (struct postgres_row){.bytes = STR_INIT};
}
