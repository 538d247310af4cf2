#include "load/event.h"

#include <assert.h>
#include <math.h>

// Transactions done in a second; those without a row had none.
static double done_in(const struct result *result, int second)
{
    for (int i = 0; i < result->n_series; i++)
        if (result->series[i].t_s == second)
            return (double)result->series[i].done;
    return 0;
}

// Mean over the seconds [from, to).
static double mean(const struct result *result, int from, int to)
{
    double sum = 0;

    for (int second = from; second < to; second++)
        sum += done_in(result, second);
    return to > from ? sum / (to - from) : NAN;
}

static bool is_touched(const struct event_span *spans, int n, int i, int second)
{
    for (int k = 0; k < n; k++)
        if (k != i && second >= (int)floor(spans[k].from_s) && second <= (int)floor(spans[k].to_s))
            return true;
    return false;
}

void event_rates(const struct result *result, const struct event_span *spans, int n, int i,
                 struct event_rates *ret)
{
    int end = (int)floor(result->duration_s + 0.01); // the cut last second says nothing
    int first = (int)floor(spans[i].from_s), behind = (int)floor(spans[i].to_s) + 1;
    int low = first < end ? first : end, high = behind;

    assert(i >= 0 && i < n && spans[i].from_s <= spans[i].to_s);
    while (low > 0 && first - low < EVENT_SECONDS_MAX && !is_touched(spans, n, i, low - 1))
        low--;
    while (high < end && high - behind < EVENT_SECONDS_MAX && !is_touched(spans, n, i, high))
        high++;
    ret->before_tps = mean(result, low, first < end ? first : end);
    ret->during_tps = mean(result, first, behind < end ? behind : end);
    ret->after_tps = mean(result, behind, high);
}
