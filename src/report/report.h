// Results told to people and programs. Pure: a result in, text out; nothing is looked up or
// changed. Text that came from outside (names, server messages) is made safe for terminals and
// Markdown here.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "store/result.h"
#include "store/store.h"

struct report_style {
    bool colour;     // ANSI colours; only for terminals
    bool unicode;    // block characters in pictures; else ASCII
    int columns;     // width to fit, at least 60
    bool statements; // -r: the per-statement table
};
// From the stream and the environment (NO_COLOR, TERM, LANG/LC_ALL, COLUMNS, window size).
struct report_style report_style_for(FILE *stream);

// What a person reads at a glance: the answer, the numbers, pictures of throughput over time and of
// the latency distribution, then errors and doubts with their remedies.
void report_text(const struct result *result, const struct report_style *style, FILE *out);

// At most 30 lines to paste into a ticket: answer, numbers, doubts, set-up, version, seed, exact
// command.
void report_markdown(const struct result *result, FILE *out);

// One JSON document (docs/json.md). Returns negative when writing failed (errno is set).
int report_json(const struct result *result, FILE *out);

// What `prony list` shows, as an array of objects (docs/json.md). Negative likewise.
int report_list_json(const struct store_row *rows, int n, FILE *out);

#define REPORT_JSON_SCHEMA "prony.run/1"
