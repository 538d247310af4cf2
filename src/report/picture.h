// Small pictures in characters, for terminals and tickets.
#pragma once

#include "base/str.h"
#include "report/report.h"

// One row of columns, each the mean of an equal share of the values; scaled from 0 to the largest
// column. Appends no newline. *ret_top (optional) is the value of a full column.
void picture_line(struct str *out, const double *values, int n, int width, bool unicode,
                  double *ret_top);

// How many columns such a row has.
int picture_width(int n, int width);

// A horizontal bar of `share` (0..1) of width, in eighths of a character where unicode.
void picture_bar(struct str *out, double share, int width, bool unicode);

// The latency distribution: one line per band of durations (bands grow by a constant factor), with
// its share of transactions as bar and percentage. At most `lines` lines; bands below 0.05 % at the
// edges are joined.
void picture_histogram(struct str *out, const struct hist_sparse *hist, int lines,
                       const struct report_style *style);
