// Lines of a page for terminals. Text from outside is made safe here where it says so.
#pragma once

#include "base/str.h"
#include "report/report.h"

void page_emphasise(struct str *out, const struct report_style *style, const char *text);

// An empty line, then the heading.
void page_heading(struct str *out, const struct report_style *style, const char *text);

// first, then text wrapped at blanks to the page's width, later lines after indent.
void page_wrap(struct str *out, const struct report_style *style, const char *first,
               const char *indent, const char *text);

// "  NAME          words": wrapped beside the name, made safe.
void page_fact(struct str *out, const struct report_style *style, const char *name,
               const char *words);

// "  ID: text": wrapped, made safe.
void page_doubt(struct str *out, const struct report_style *style, const char *id,
                const char *text);
