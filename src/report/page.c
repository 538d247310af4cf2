#include "report/page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void page_emphasise(struct str *out, const struct report_style *style, const char *text)
{
    if (style->colour)
        str_addf(out, "\033[1m%s\033[0m", text);
    else
        str_add(out, text);
}

void page_heading(struct str *out, const struct report_style *style, const char *text)
{
    str_addc(out, '\n');
    page_emphasise(out, style, text);
    str_addc(out, '\n');
}

void page_wrap(struct str *out, const struct report_style *style, const char *first,
               const char *indent, const char *text)
{
    int at = text_columns(first);
    bool begun = false; // a word stands on this line

    str_add(out, first);
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        size_t len = strcspn(word, " ");
        char *copy = mem_strndup(word, len);
        int columns = text_columns(copy);
        if (begun && at + 1 + columns > style->columns) {
            str_addf(out, "\n%s", indent);
            at = text_columns(indent);
            begun = false;
        }
        str_addf(out, "%s%s", begun ? " " : "", copy);
        at += columns + (begun ? 1 : 0);
        begun = true;
        word += len;
        free(copy);
    }
    str_addc(out, '\n');
}

void page_fact(struct str *out, const struct report_style *style, const char *name,
               const char *words)
{
    struct str first = STR_INIT, safe = STR_INIT;

    str_addf(&first, "  %-13s ", name);
    text_add_safe(&safe, words);
    page_wrap(out, style, first.buf, "                ", safe.buf);
    str_release(&safe);
    str_release(&first);
}

void page_doubt(struct str *out, const struct report_style *style, const char *id, const char *text)
{
    struct str safe = STR_INIT, first = STR_INIT;

    str_add(&first, "  ");
    text_add_safe(&first, id);
    str_add(&first, ": ");
    text_add_safe(&safe, text);
    page_wrap(out, style, first.buf, "    ", safe.buf);
    str_release(&safe);
    str_release(&first);
}
