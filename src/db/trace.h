// Tracing: one line per call of the layer, for any driver, written to a file chosen at run time.
// Tab-separated, with a heading: time_s (since open), client, call, class, rows, duration_us, text
// (the statement's first 80 characters), error. Rows of a bulk load are not listed one by one:
// bulk_end tells their number.
//
// Threads write whole lines, each with one write(2) in append mode.
#pragma once

#include "db/driver.h"

struct db_trace;

int db_trace_open(struct db_trace **ret, const char *path, const struct clock *clock,
                  struct err *err);
void db_trace_close(struct db_trace *trace); // NULL allowed

// Tells of a call that began at start_ns and has just ended. text and result may be NULL.
void db_trace_call(struct db_trace *trace, int client, const char *call, const char *text,
                   int64_t start_ns, const struct db_result *result);
