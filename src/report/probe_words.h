// Sentences about a probe.
#pragma once

#include "base/kv.h"
#include "base/str.h"
#include "report/probe.h"

// "1600 flushes/s: at most about 1600 commits/s at one client, 5200 at eight"
void probe_words_answer(const struct report_probe *report, struct str *out);

// "512 MiB laid out, 8 rounds of 10 measurements in 20.1 s, io_uring past the page cache"
void probe_words_setup(const struct report_probe *report, struct str *out);

// What the figures mean to a database, each with a stable id; the most important first. Of memory
// nothing.
void probe_words_meaning(const struct report_probe *report, struct kvs *out);

// Reasons to doubt them, each with a stable id and a remedy (docs/doubts.md).
void probe_words_doubts(const struct report_probe *report, struct kvs *out);
