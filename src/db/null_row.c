// The columns of an answer that nobody computed: named after the select list, so that scripts that
// take values by name (\gset) run against null too.
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "db/null.h"

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static bool is_word(const char *p, const char *begin, const char *word)
{
    size_t len = strlen(word);

    return strncasecmp(p, word, len) == 0 && !is_name_char(p[len]) &&
           (p == begin || !is_name_char(p[-1]));
}

// The end of one item of the list: a comma or a word that ends the list, outside parentheses and
// quotes.
static const char *item_end(const char *begin)
{
    int depth = 0;
    const char *p = begin;

    for (; *p; p++) {
        if (*p == '\'' || *p == '"') {
            const char *end = strchr(p + 1, *p);
            if (!end)
                return p + strlen(p);
            p = end;
        } else if (*p == '(') {
            depth++;
        } else if (*p == ')') {
            depth--;
        } else if (depth <= 0 && (*p == ',' || *p == ';' || is_word(p, begin, "from") ||
                                  is_word(p, begin, "into") || is_word(p, begin, "where"))) {
            break;
        }
    }
    return p;
}

// The name of an item is its last word; a function call has the function's.
static void add_name(struct str *out, const char *begin, const char *end)
{
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    if (end > begin && end[-1] == ')') {
        const char *open = memchr(begin, '(', (size_t)(end - begin));
        end = open ? open : end;
    }
    while (end > begin && !is_name_char(end[-1]))
        end--;
    const char *start = end;
    while (start > begin && is_name_char(start[-1]))
        start--;
    if (start == end)
        str_add(out, "column");
    for (; start < end; start++)
        str_addc(out, (char)tolower((unsigned char)*start));
    str_addc(out, '\0');
}

void null_columns_parse(struct null_columns *columns, const char *sql)
{
    struct str names = STR_INIT;
    const char *p = strcasestr(sql, "select");

    assert(columns->n == 0);
    if (!p) {
        add_name(&names, sql, sql);
        columns->n = 1;
    }
    for (p = p ? p + 6 : NULL; p; p = *p == ',' ? p + 1 : NULL) {
        const char *end = item_end(p);
        add_name(&names, p, end);
        columns->n++;
        p = end;
    }
    columns->names = str_detach(&names);
    assert(columns->n > 0);
}

void null_columns_release(struct null_columns *columns)
{
    free(columns->names);
    *columns = (struct null_columns){0};
}

const char *null_columns_name(const struct null_columns *columns, int i)
{
    const char *name = columns->names;

    assert(i >= 0 && i < columns->n);
    while (i-- > 0)
        name += strlen(name) + 1;
    return name;
}
