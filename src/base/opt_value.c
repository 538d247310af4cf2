// One row's value: from text, to text, against its default.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/opt_internal.h"
#include "base/text.h"
#include "base/units.h"

// From here on a bound is "no bound" and not worth telling.
#define UNBOUNDED 1e18

static void *value_at(const struct opt_row *row, void *values)
{
    return (char *)values + row->offset;
}

static const void *value_of(const struct opt_row *row, const void *values)
{
    return (const char *)values + row->offset;
}

const struct opt_row *opt_find(const struct opt_row *rows, const char *name, size_t len)
{
    for (; rows->name; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    return NULL;
}

static bool has_range(const struct opt_row *row)
{
    return row->min != 0 || row->max != 0;
}

static void add_bound(const struct opt_row *row, double bound, struct str *out)
{
    char text[UNITS_MAX];

    if (row->type == OPT_DURATION)
        str_add(out, units_format_duration_exact(llround(bound * 1e9), text));
    else if (row->type == OPT_SIZE)
        str_add(out, units_format_bytes_exact(llround(bound), text));
    else
        str_addf(out, "%.15g", bound);
}

// "between 1 and 100000", "at least 1s", "at most 8kB".
static void add_range(const struct opt_row *row, struct str *out)
{
    double unbounded = row->type == OPT_DURATION ? UNBOUNDED / 1e9 : UNBOUNDED;
    bool has_min = row->min > -unbounded, has_max = row->max < unbounded;

    assert(has_range(row) && row->min <= row->max);
    str_add(out, has_min && has_max ? "between " : has_min ? "at least " : "at most ");
    if (has_min)
        add_bound(row, row->min, out);
    if (has_min && has_max)
        str_add(out, " and ");
    if (has_max)
        add_bound(row, row->max, out);
}

void opt_row_add_arg(const struct opt_row *row, struct str *out)
{
    static const char *const names[] = {
        [OPT_INT] = "N",     [OPT_DOUBLE] = "X",  [OPT_DURATION] = "DURATION", [OPT_SIZE] = "SIZE",
        [OPT_TEXT] = "TEXT", [OPT_LIST] = "TEXT", [OPT_CUSTOM] = "VALUE",
    };

    assert(row->type != OPT_FLAG);
    if (row->arg)
        str_add(out, row->arg);
    else if (row->type == OPT_CHOICE)
        for (size_t i = 0; row->choices[i]; i++)
            str_addf(out, "%s%s", i > 0 ? "|" : "", row->choices[i]);
    else
        str_add(out, names[row->type]);
}

void opt_row_add_allowed(const struct opt_row *row, struct str *out)
{
    switch (row->type) {
    case OPT_FLAG:
        str_add(out, "yes or no");
        return;
    case OPT_INT:
        str_add(out, UNITS_INT_WORDS);
        break;
    case OPT_DOUBLE:
        str_add(out, UNITS_DOUBLE_WORDS);
        break;
    case OPT_DURATION:
        str_add(out, UNITS_DURATION_WORDS);
        break;
    case OPT_SIZE:
        str_add(out, UNITS_SIZE_WORDS);
        break;
    case OPT_CHOICE:
        text_add_words(out, row->choices);
        return;
    case OPT_TEXT:
    case OPT_LIST:
    case OPT_CUSTOM:
        opt_row_add_arg(row, out);
        return;
    }
    if (has_range(row)) {
        str_add(out, row->type == OPT_INT || row->type == OPT_DOUBLE ? " " : ", ");
        add_range(row, out);
    }
}

// "TEXT: must be ALLOWED[; did you mean NEAR?]"
static int refuse(const struct opt_row *row, const char *text, bool parsed, const char *near_miss,
                  struct err *err)
{
    struct str out = STR_INIT;

    text_add_value(&out, text);
    str_add(&out, ": must be ");
    if (parsed)
        add_range(row, &out);
    else
        opt_row_add_allowed(row, &out);
    if (near_miss)
        str_addf(&out, "; did you mean %s?", near_miss);
    err_set(err, ERR_USAGE, "%s", out.buf);
    str_release(&out);
    return -1;
}

static int set_flag(const struct opt_row *row, bool *value, const char *text, struct err *err)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (size_t i = 0; i < ARR_LEN(words); i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2;
            return 0;
        }
    return refuse(row, text, false, NULL, err);
}

static int set_integer(const struct opt_row *row, int64_t *value, const char *text, struct err *err)
{
    double unit = row->type == OPT_DURATION ? 1e9 : 1;
    int64_t n = 0;
    int rc = row->type == OPT_INT        ? units_parse_int(text, &n, NULL)
             : row->type == OPT_DURATION ? units_parse_duration(text, NS_PER_S, &n, NULL)
                                         : units_parse_size(text, &n, NULL);

    if (rc < 0)
        return refuse(row, text, false, NULL, err);
    if (has_range(row) && ((double)n < row->min * unit || (double)n > row->max * unit))
        return refuse(row, text, true, NULL, err);
    *value = n;
    return 0;
}

static int set_double(const struct opt_row *row, double *value, const char *text, struct err *err)
{
    double x;

    if (units_parse_double(text, &x, NULL) < 0)
        return refuse(row, text, false, NULL, err);
    if (has_range(row) && (x < row->min || x > row->max))
        return refuse(row, text, true, NULL, err);
    *value = x;
    return 0;
}

static int set_choice(const struct opt_row *row, int *value, const char *text, struct err *err)
{
    for (int i = 0; row->choices[i]; i++)
        if (strcmp(text, row->choices[i]) == 0) {
            *value = i;
            return 0;
        }
    return refuse(row, text, false, text_near_miss(text, row->choices), err);
}

// The value is named once, whether parse's own text begins with it or not.
static int set_custom(const struct opt_row *row, void *value, const char *text, struct err *err)
{
    struct err why = ERR_INIT;

    if (row->parse(text, value, &why) >= 0)
        return 0;
    assert(why.kind != ERR_NONE);
    struct str shown = STR_INIT;
    text_add_value(&shown, text);
    str_add(&shown, ": ");
    if (strncmp(why.text, shown.buf, shown.len) == 0)
        str_clear(&shown);
    err_set(err, why.kind, "%s%s", shown.buf, why.text);
    str_release(&shown);
    return -1;
}

int opt_row_set(const struct opt_row *row, void *values, const char *text, struct err *err)
{
    void *value = value_at(row, values);

    if (!*text)
        return refuse(row, text, false, NULL, err);
    switch (row->type) {
    case OPT_FLAG:
        return set_flag(row, value, text, err);
    case OPT_INT:
    case OPT_DURATION:
    case OPT_SIZE:
        return set_integer(row, value, text, err);
    case OPT_DOUBLE:
        return set_double(row, value, text, err);
    case OPT_CHOICE:
        return set_choice(row, value, text, err);
    case OPT_TEXT:
        free(*(char **)value);
        *(char **)value = mem_strdup(text);
        return 0;
    case OPT_LIST: {
        struct opt_list *list = value;
        *ARR_PUSH(list->items, list->n, list->cap) = mem_strdup(text);
        return 0;
    }
    case OPT_CUSTOM:
        return set_custom(row, value, text, err);
    }
    return -1;
}

static void assert_row(const struct opt_row *rows, const struct opt_row *row)
{
    assert(row->help && (row->group || row != rows));
    assert(row->help[0] && row->help[strlen(row->help) - 1] != '.');
    assert(row->type != OPT_CHOICE || (row->choices && row->choices[0]));
    assert(row->type != OPT_CUSTOM || row->parse);
    assert(row->type != OPT_LIST || !row->standard);
    assert(!row->pair || (row->type == OPT_LIST && row->arg));
    assert(row->min <= row->max);
    for (const struct opt_row *other = rows; other != row; other++) {
        assert(strcmp(other->name, row->name) != 0);
        assert(!row->letter || other->letter != row->letter);
    }
    (void)rows;
}

void opt_defaults(const struct opt_row *rows, void *values)
{
    for (const struct opt_row *row = rows; row->name; row++) {
        assert_row(rows, row);
        if (!row->standard)
            continue;
        struct err err = ERR_INIT;
        int rc = opt_row_set(row, values, row->standard, &err);
        assert(rc >= 0 && "a default must be a value its own row allows");
        (void)rc;
    }
}

int opt_set(const struct opt_row *rows, void *values, const char *name, const char *text,
            struct err *err)
{
    const struct opt_row *row = opt_find(rows, name, strlen(name));

    if (row) {
        struct err why = ERR_INIT;
        int rc = opt_row_set(row, values, text, &why);
        return rc < 0 ? err_set(err, why.kind, "%s %s", name, why.text) : 0;
    }
    const char **names = NULL;
    size_t n = 0, cap = 0;
    for (; rows->name; rows++)
        *ARR_PUSH(names, n, cap) = rows->name;
    *ARR_PUSH(names, n, cap) = NULL;
    (void)text_unknown("option", name, names, err);
    free(names);
    return -1;
}

bool opt_is_changed(const struct opt_row *row, const void *values)
{
    const void *value = value_of(row, values);
    // The default is read into a value of its own, by the same parser.
    union {
        bool flag;
        int64_t integer;
        double real;
        int choice;
    } standard = {0};
    struct opt_row at_zero = *row;

    at_zero.offset = 0;
    if (row->standard && row->type != OPT_TEXT && row->type != OPT_LIST && row->type != OPT_CUSTOM)
        (void)opt_row_set(&at_zero, &standard, row->standard, NULL);
    switch (row->type) {
    case OPT_FLAG:
        return *(const bool *)value != standard.flag;
    case OPT_INT:
    case OPT_DURATION:
    case OPT_SIZE:
        return *(const int64_t *)value != standard.integer;
    case OPT_DOUBLE:
        return *(const double *)value != standard.real;
    case OPT_CHOICE:
        return *(const int *)value != standard.choice;
    case OPT_LIST:
        return ((const struct opt_list *)value)->n > 0;
    case OPT_TEXT: {
        const char *text = *(char *const *)value;
        return text && row->standard ? strcmp(text, row->standard) != 0 : text != row->standard;
    }
    case OPT_CUSTOM: {
        char text[256] = "";
        if (!row->print)
            return false;
        row->print(value, text, sizeof(text));
        return strcmp(text, row->standard ? row->standard : "") != 0;
    }
    }
    return false;
}

// The shortest decimal that reads back to x.
static void add_double(double x, struct str *out)
{
    for (int digits = 15; digits <= 17; digits++) {
        str_clear(out);
        str_addf(out, "%.*g", digits, x);
        if (strtod(out->buf, NULL) == x)
            return;
    }
}

// False when there is nothing to record.
static bool row_text(const struct opt_row *row, const void *value, struct str *out)
{
    char text[256] = "";

    str_clear(out);
    switch (row->type) {
    case OPT_FLAG:
        str_add(out, *(const bool *)value ? "yes" : "no");
        return true;
    case OPT_INT:
        str_addf(out, "%lld", (long long)*(const int64_t *)value);
        return true;
    case OPT_DURATION:
        str_add(out, units_format_duration_exact(*(const int64_t *)value, text));
        return true;
    case OPT_SIZE:
        str_add(out, units_format_bytes_exact(*(const int64_t *)value, text));
        return true;
    case OPT_DOUBLE:
        add_double(*(const double *)value, out);
        return true;
    case OPT_CHOICE:
        str_add(out, row->choices[*(const int *)value]);
        return true;
    case OPT_TEXT:
        if (!*(char *const *)value)
            return false;
        text_add_redacted(out, *(char *const *)value);
        return true;
    case OPT_LIST:
        return false; // an entry per item, by the caller
    case OPT_CUSTOM:
        if (!row->print)
            return false;
        row->print(value, text, sizeof(text));
        text_add_redacted(out, text);
        return out->len > 0;
    }
    return false;
}

void opt_record(const struct opt_row *rows, const void *values, struct kvs *out)
{
    struct str text = STR_INIT;

    for (const struct opt_row *row = rows; row->name; row++) {
        const void *value = value_of(row, values);
        if (row->unrecorded)
            continue;
        if (row_text(row, value, &text))
            kvs_add(out, row->name, text.buf);
        if (row->type != OPT_LIST)
            continue;
        const struct opt_list *list = value;
        for (size_t i = 0; i < list->n; i++) {
            str_clear(&text);
            text_add_redacted(&text, list->items[i]);
            kvs_add(out, row->name, text.buf);
        }
    }
    str_release(&text);
}

void opt_release(const struct opt_row *rows, void *values)
{
    for (const struct opt_row *row = rows; row->name; row++) {
        void *value = value_at(row, values);
        if (row->type == OPT_TEXT) {
            free(*(char **)value);
            *(char **)value = NULL;
        } else if (row->type == OPT_LIST) {
            struct opt_list *list = value;
            for (size_t i = 0; i < list->n; i++)
                free(list->items[i]);
            free(list->items);
            *list = (struct opt_list){0};
        }
    }
}
