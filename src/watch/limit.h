// What held the throughput back: one sentence with its evidence, or that none was found. A rule is
// a row of a table in limit.c; docs/watching.md explains each id.
#pragma once

#include "store/result.h"
#include "watch/doubts.h"

// Fills result->limit_id and limit_text from what was watched and counted. Ids: "rate", "think",
// "lock", "flush", "device", "cpu", "client", "none"; nothing is filled when nothing was done.
void limit_judge(struct result *result, const struct doubt_input *input);
