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

// What else there may be to say of how it went: errors, lost sessions, the loop, ... In the order
// of all formats; the last has no name.
struct words_fact {
    const char *name;
    bool (*words)(const struct result *r, struct str *out); // false: nothing, out is as it was
};
extern const struct words_fact words_facts[];
