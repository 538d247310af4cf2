#include "report/events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *text_of(const struct result *result, int i, const char *key)
{
    char name[64];

    snprintf(name, sizeof(name), "event.%d.%s", i + 1, key);
    return kvs_get(&result->environment, name);
}

static double number_of(const struct result *result, int i, const char *key)
{
    const char *text = text_of(result, i, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : NAN;

    return text && end != text && !*end ? value : NAN;
}

bool report_event_at(const struct result *result, int i, struct report_event *ret)
{
    const char *what = text_of(result, i, "what");
    const char *outcome = text_of(result, i, "outcome");

    if (!what)
        return false;
    *ret = (struct report_event){
        .what = what,
        .outcome = outcome ? outcome : "unknown: not recorded",
        .at_s = number_of(result, i, "at_s"),
        .from_s = number_of(result, i, "from_s"),
        .to_s = number_of(result, i, "to_s"),
        .before_tps = number_of(result, i, "tps_before"),
        .during_tps = number_of(result, i, "tps_during"),
        .after_tps = number_of(result, i, "tps_after"),
    };
    return true;
}
