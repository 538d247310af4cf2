// Sentences about a result that several formats share.
#pragma once

#include <stdbool.h>

#include "report/report.h"
#include "base/str.h"

// "1 372 transactions/s, p50 5.1 ms, p99 31 ms" - or why nothing succeeded.
void words_answer(const struct result *r, struct str *out);

// "tpcb, scale 10, on sqlite:x.db (sqlite 3.40.1); 8 clients, 60 s, prepared, seed 42"
void words_setup(const struct result *r, struct str *out);

// "82 331 done of 82 339 planned: 3 failed, 5 in flight; 12 needed more than one try"
void words_counts(const struct result *r, struct str *out);

// "statements were sent together, ..."; false when each waited for the answer before
bool words_pipeline(const struct result *r, struct str *out);

// "threads, as --loop ring-uring: ..."; false when nothing better was wanted
bool words_loop(const struct result *r, struct str *out);

// "busy 14, deadlock 2"; false when there were none, as the next ones.
bool words_errors(const struct result *r, struct str *out);

// "8 reconnects in 93 attempts; 5.2 s without any session (from 10.1 s to 15.3 s, ...)"
bool words_outages(const struct result *r, struct str *out);

// "3.20 us per statement, 0.40 of one core"; an engine in our own process is in it, which is said
bool words_cpu(const struct result *r, struct str *out);
