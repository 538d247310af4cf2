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
#define LIMIT       4.0    // deviations a value may be from its neighbours' level
#define NOISE_MIN   0.002  // 0.2 %: smaller differences are nobody's change
#define DECAY       0.7071 // of the lengths of intervals from layer to layer
#define RANDOM_SEED 5

struct split {
    int at;
    double size; // standardised difference
};

// Robust standard deviation of one value, from the differences of neighbours. work: n values.
static double noise_of(const double *logs, int n, double *work)
{
    for (int i = 1; i < n; i++)
        work[i - 1] = fabs(logs[i] - logs[i - 1]);
    return fmax(order_median_sort(work, n - 1) / 0.6745 / M_SQRT2, NOISE_MIN);
}

// The median of up to five values.
static double median_of_few(const double *values, int n)
{
    double sorted[5];

    assert(n >= 1 && n <= 5);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

// Pulls single far values to within LIMIT deviations of the median of the five around them. The
// result is in `limited`.
static void limit_far_values(const double *logs, int n, double *limited)
{
    double far = LIMIT * noise_of(logs, n, limited);

    for (int i = 0; i < n; i++) {
        int from = i - 2 < 0 ? 0 : i - 2, to = i + 3 > n ? n : i + 3;
        double level = median_of_few(&logs[from], to - from);
        limited[i] = fmax(level - far, fmin(level + far, logs[i]));
    }
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
// shorter lengths. Whatever is done to the values is part of it, so that the true order and random
// ones are treated alike.
static struct split best_split(const double *logs, int n)
{
    double *limited = mem_calloc((size_t)n, sizeof(*limited));
    double *sums = mem_calloc((size_t)n + 1, sizeof(*sums));
    double length = n;
    struct split best = {.at = -1};

    limit_far_values(logs, n, limited);
    for (int i = 0; i < n; i++)
        sums[i + 1] = sums[i] + limited[i];
    for (; length >= 2 * CHANGES_SIDE_MIN; length *= DECAY) {
        int size = (int)ceil(length), count = 2 * (int)ceil(n / length) - 1;
        for (int i = 0; i < count; i++) {
            int from = count > 1 ? (int)((double)i * (n - size) / (count - 1)) : 0;
            struct split found = best_in(sums, from, from + size);
            best = found.size > best.size ? found : best;
        }
    }
    best.size /= step_noise(limited, n);
    free(limited);
    free(sums);
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
    rng_init(&rng, RANDOM_SEED, (uint64_t)n, RNG_DATA);
    int found = search(logs, 0, n, &rng, ret);
    qsort(ret, (size_t)found, sizeof(*ret), compare_changes);
    for (int i = 0; i < found; i++) {
        int from = i ? ret[i - 1].at : 0, to = i + 1 < found ? ret[i + 1].at : n;
        ret[i].ratio = exp(mean_of(logs, ret[i].at, to) - mean_of(logs, from, ret[i].at));
    }
    assert(found <= n / CHANGES_SIDE_MIN);
    free(logs);
    return found;
}
