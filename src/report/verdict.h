// A comparison in words: *faster by 8.1 % (5.2 to 11.0)*, *no difference shown: it would take about
// 14 blocks to see 3 %*, *the same within 2 %*.
#pragma once

#include "base/str.h"
#include "stats/judge.h"

// What is said of a measure that is higher and lower.
struct verdict_words {
    const char *higher, *lower; // "faster", "slower"
    const char *times;          // "as fast": 3.4 times as fast
    const char *unit;           // what it takes more of: "blocks"
    double change;              // to be seen: 0.03; 0: the next round one below what could be seen
};
extern const struct verdict_words verdict_of_throughput, verdict_of_latency;

// How new compares with old. margin of sameness as it was judged with (0: JUDGE_MARGIN).
void verdict_add(struct str *out, const struct effect *effect, const struct judgement *judgement,
                 double margin, const struct verdict_words *words);

// "about 14 blocks", "about 1300 runs of each", "more than a million blocks".
void verdict_add_needed(struct str *out, int needed, const char *unit);

// "differ by 1.1 % (-2.0 to 4.3)": of two that should be equal.
void verdict_add_twins(struct str *out, const struct effect *effect);
