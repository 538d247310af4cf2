#include "stats/changes.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "stats/order.h"

#define ORDERS      999    // random ones; with the true one 1000
#define P_MAX       0.01   // of one search
#define LIMIT       6.0    // robust deviations that a value may be from the median
#define NOISE_MIN   0.002  // 0.2 %: smaller differences are nobody's change
#define DECAY       0.7071 // of the lengths of intervals from layer to layer
#define RANDOM_SEED 5

struct split {
    int at;
    double size; // standardised difference
};

// Pulls far values to within LIMIT robust deviations of the median. That does not depend on the
// order, so the true order and random ones are treated alike.
static void limit_far_values(double *logs, int n)
{
    double *work = order_copy(logs, n);
    double median = order_median_sort(work, n);

    for (int i = 0; i < n; i++)
        work[i] = fabs(logs[i] - median);
    double far = LIMIT * fmax(order_median_sort(work, n) / 0.6745, NOISE_MIN);
    for (int i = 0; i < n; i++)
        logs[i] = fmax(median - far, fmin(median + far, logs[i]));
    free(work);
}

static struct split best_in(const double *sums, int from, int to)
{
    struct split best = {.at = -1};

    for (int at = from + CHANGES_SIDE_MIN; at <= to - CHANGES_SIDE_MIN; at++) {
        double left = at - from, right = to - at;
        double gap = (sums[to] - sums[at]) / right - (sums[at] - sums[from]) / left;
        double size = fabs(gap) * sqrt(left * right / (left + right));
        if (size > best.size)
            best = (struct split){.at = at, .size = size};
    }
    return best;
}

// The noise of one value, from the mean square of the steps between neighbours (von Neumann 1941):
// in the true order changes hardly raise it, in a random order they do.
static double step_noise(const double *logs, int n)
{
    double sum_sq = 0;

    for (int i = 1; i < n; i++)
        sum_sq += (logs[i] - logs[i - 1]) * (logs[i] - logs[i - 1]);
    return fmax(sqrt(sum_sq / 2 / (n - 1)), NOISE_MIN);
}

// The largest standardised difference, over the whole and overlapping intervals of shorter and
// shorter lengths.
static struct split best_split(const double *logs, int n)
{
    double *sums = mem_calloc((size_t)n + 1, sizeof(*sums));
    double length = n;
    struct split best = {.at = -1};

    for (int i = 0; i < n; i++)
        sums[i + 1] = sums[i] + logs[i];
    for (; length >= 2 * CHANGES_SIDE_MIN; length *= DECAY) {
        int size = (int)ceil(length), count = 2 * (int)ceil(n / length) - 1;
        for (int i = 0; i < count; i++) {
            int from = count > 1 ? (int)((double)i * (n - size) / (count - 1)) : 0;
            struct split found = best_in(sums, from, from + size);
            best = found.size > best.size ? found : best;
        }
    }
    free(sums);
    best.size /= step_noise(logs, n);
    return best;
}

static void shuffle(double *values, int n, struct rng *rng)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_range(rng, 0, i);
        double swap = values[i];
        values[i] = values[j];
        values[j] = swap;
    }
}

// How many of the random orders show as much as the true one, in parts; 1 as soon as it is too
// many.
static double share_as_large(const double *logs, int n, double size, struct rng *rng)
{
    double *mixed = order_copy(logs, n);
    int as_large = 1;

    for (int i = 0; i < ORDERS && as_large <= P_MAX * (ORDERS + 1); i++) {
        shuffle(mixed, n, rng);
        as_large += best_split(mixed, n).size >= size * (1 - 1e-9);
    }
    free(mixed);
    double share = (double)as_large / (ORDERS + 1);
    return share <= P_MAX ? share : 1;
}

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static double mean_of(const double *v, int from, int to)
{
    double sum = 0;

    assert(to > from);
    for (int i = from; i < to; i++)
        sum += v[i];
    return sum / (to - from);
}

// Searches [from, to) and, when it finds a change, both sides of it.
static int search(const double *logs, int from, int to, struct rng *rng, struct change *ret)
{
    int n = to - from, found = 0;

    if (n < 2 * CHANGES_SIDE_MIN)
        return 0;
    struct split split = best_split(&logs[from], n);
    double p = split.at < 0 ? 1 : share_as_large(&logs[from], n, split.size, rng);
    if (p > P_MAX)
        return 0;
    ret[found++] = (struct change){.at = from + split.at, .p = p};
    found += search(logs, from, from + split.at, rng, &ret[found]);
    found += search(logs, from + split.at, to, rng, &ret[found]);
    return found;
}

int changes_find(const double *values, int n, struct change *ret)
{
    struct rng rng;

    if (n < 2 * CHANGES_SIDE_MIN)
        return 0;
    double *logs = mem_calloc((size_t)n, sizeof(*logs));
    for (int i = 0; i < n; i++) {
        assert(values[i] > 0 && isfinite(values[i]));
        logs[i] = log(values[i]);
    }
    double *limited = order_copy(logs, n);
    limit_far_values(limited, n);
    rng_init(&rng, RANDOM_SEED, (uint64_t)n, RNG_DATA);
    int found = search(limited, 0, n, &rng, ret);
    qsort(ret, (size_t)found, sizeof(*ret), compare_changes);
    for (int i = 0; i < found; i++) {
        int from = i ? ret[i - 1].at : 0, to = i + 1 < found ? ret[i + 1].at : n;
        ret[i].ratio = exp(mean_of(logs, ret[i].at, to) - mean_of(logs, from, ret[i].at));
    }
    assert(found <= n / CHANGES_SIDE_MIN);
    free(limited);
    free(logs);
    return found;
}
