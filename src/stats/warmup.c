// Where a run's warm-up ends, and whether the rest is steady.
//
// 1. Blocks. The seconds are grouped into at most BLOCKS_MAX blocks; a block is worth the mean of
//    its middle half, so that a second of checkpoint vanishes in it.
// 2. Warm-up. MSER (White 1997; on blocks: White, Cobb and Spratt 2000): cut where the squared
//    standard error of the mean of what is left is smallest, at most half of the run. Bare MSER
//    cuts at random in plain noise and is drawn to outliers; so values are limited to a few robust
//    deviations around the level of the later half, and a cut must gain more than noise does by
//    chance.
// 3. Late step. Of all splits of the later half the one with the largest standardised difference is
//    a step if it is large and significant and fits far better than a slope. The warm-up is then
//    sought before it.
// 4. Trend of the rest. Mann-Kendall, its variance corrected for autocorrelation (the idea of Hamed
//    and Rao 1998, first lag only), and the slope of Theil and Sen: significant, and large enough
//    to matter. A cut that leaves a trend moves on until none is left or half of the run is gone.
//
// References in full, and how often this errs on runs of known shape: docs/statistics.md.
#include "stats/warmup.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/order.h"

#define SECONDS_MIN  10 // below, nothing tells noise from a trend
#define BLOCKS_MIN   10
#define BLOCKS_MAX   300  // the resolution is 1/300 of the run
#define ONE_S_UP_TO  150  // runs this long have blocks of one second, longer ones of three or more
#define BLOCK_TX_MIN 10.0 // transactions in a block; fewer are no measure of a rate

#define SCALE_MIN    0.01 // of the level: the noise is never taken for less
#define LIMIT        4.0  // robust deviations a block may count for
#define OWN_VARIANCE 0.1  // of a block's variance
#define LONER        3.0  // a block farther off than this, between two that are not, is an event
#define SECOND_LIMIT 4.0  // a leading second farther off than this is cut
#define LEVEL_S_MAX  3600 // seconds that the level for leading seconds is taken from

// In units of one block's variance: what a cut must gain, and the least that a later cut must still
// gain to move it on. Plain noise exceeds them in 1 % and 10 % of runs.
#define GAIN_MIN  12.0
#define GAIN_LEFT 3.0

#define STEP_MIN         0.10 // of the level before
#define STEP_Z           5.0
#define STEP_SHARP       0.8 // squared error of two levels over that of a slope
#define STEP_SECONDS_MIN 5   // shorter at the end is a dip, not a step
#define STEP_TAIL_MIN    0.1 // of the run

#define TREND_GROUPS_MAX 40
#define TREND_MIN        0.05 // of the level, from end to end
#define TREND_Z          3.0  // above: a trend
#define TREND_Z_CLEAR    1.5  // below: none; what a cut that moved on must reach

// For normal noise.
#define IQR_TO_SD        0.7413 // standard deviation over interquartile range
#define MEDIAN_VARIANCE  1.571  // of a median over that of the mean
#define MEDIAN3_VARIANCE 0.449  // of the median of three over that of one value

struct blocks {
    double *rate; // per second, of each block
    int n;
    int seconds; // in each
};

static double median3(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

// Robust standard deviation, at least `least`, from the middle half of the values: a rate that
// changes between two levels has a median deviation of nothing half of the time, its quartiles see
// both. Of few values it comes out too small too often, hence the last factor.
static double spread(const double *v, int n, double least)
{
    double *sorted = order_copy(v, n);
    order_sort(sorted, n);
    double sd = IQR_TO_SD * (sorted[n - 1 - n / 4] - sorted[n / 4]) * (1 + 3.0 / n);
    free(sorted);
    return fmax(sd, least);
}

// Correlation of neighbours around the least-squares line, 0 when not significant at 5 %. Capped: a
// few points cannot tell more from a drift.
static double correlation(const double *v, int n)
{
    assert(n > 1);
    double mean = 0;
    double slope = 0;
    double squares = 0;
    double lagged = 0;
    double before = 0;
    for (int i = 0; i < n; i++) {
        mean += v[i] / n;
        slope += v[i] * (i - (n - 1) / 2.0) * 12 / (n * ((double)n * n - 1));
    }
    for (int i = 0; i < n; i++) {
        double x = v[i] - mean - slope * (i - (n - 1) / 2.0);
        squares += x * x;
        lagged += x * before;
        before = x;
    }
    double r = squares > 0 ? lagged / squares : 0;
    return r > 1.645 / sqrt(n) ? fmin(r, 0.8) : 0;
}

// The same of sums of `size` neighbours, for a first-order autoregression.
static double correlation_of_groups(double r, int size)
{
    double tail = 1 - pow(r, size);
    return r * tail * tail / (size * (1 - r * r) - 2 * r * tail);
}

// By how much it raises the variance of a mean.
static double inflation(double r)
{
    return (1 + r) / (1 - r);
}

// Sorts v. Few transactions (counts of 0 and 1) have no middle worth the name: all are taken.
static double block_rate(double *v, int n, bool few)
{
    int drop = few || n < 3 ? 0 : (n + 3) / 4;
    if (drop > 0) {
        order_sort(v, n);
    }
    double sum = 0;
    for (int i = drop; i < n - drop; i++) {
        sum += v[i];
    }
    return sum / (n - 2 * drop);
}

// What is left over at the end of the run stays unused.
static struct blocks blocks_make(const double *tps, int n, int seconds, bool few)
{
    struct blocks b = {.n = n / seconds, .seconds = seconds};
    assert(seconds > 0 && b.n >= BLOCKS_MIN);
    b.rate = mem_calloc((size_t)b.n, sizeof(*b.rate));
    double *part = mem_calloc((size_t)seconds, sizeof(*part));
    for (int i = 0; i < b.n; i++) {
        memcpy(part, &tps[i * seconds], (size_t)seconds * sizeof(*part));
        b.rate[i] = block_rate(part, seconds, few);
    }
    free(part);
    return b;
}

// Half a transaction in a block: counts are whole numbers.
static double least_spread(const struct blocks *b, double level)
{
    return fmax(SCALE_MIN * level, 0.5 / b->seconds);
}

// The first `end` blocks as deviations from the level of their later half, limited. ret_least: the
// variance that noise is never taken for less than, in the same unit.
static double *deviations(const struct blocks *b, int end, double *ret_least)
{
    int half = end / 2;
    double mid = order_median(&b->rate[half], end - half);
    double least = least_spread(b, mid);
    double sd = spread(&b->rate[half], end - half, least);
    double *raw = order_copy(b->rate, end);
    for (int i = 0; i < end; i++) {
        raw[i] = (raw[i] - mid) / sd;
    }
    double *ret = order_copy(raw, end);
    for (int i = 1; i < end - 1; i++) { // a first one far off is a warm-up
        double around = median3(raw[i - 1], raw[i], raw[i + 1]);
        ret[i] = fabs(raw[i]) > LONER && fabs(around) <= LONER ? around : raw[i];
    }
    for (int i = 0; i < end; i++) {
        ret[i] = fmin(fmax(ret[i], -LIMIT), LIMIT);
    }
    free(raw);
    *ret_least = least * least / (sd * sd);
    return ret;
}

// MSER: blocks to cut from the first `end`, at most half.
//
// With S(d) the sum of squares of the m = end - d blocks left after a cut of d around their mean,
// it minimises S(d) / m^2. In plain noise its logarithm times m is a random walk with a drift
// upwards (Wang and Glynn 2016): that it falls by x somewhere has a probability of about exp(-0.4
// x), however strong the noise, which makes it a test as well.
static int cut_find(const struct blocks *b, int end)
{
    int half = end / 2;
    double least;
    double *y = deviations(b, end, &least);
    double *mser = mem_calloc((size_t)half + 1, sizeof(*mser)); // logs
    double noise = inflation(correlation(&y[half], end - half));
    // A little variance of their own makes few blocks that happen to agree no better than many; and
    // differences below the least noise do not count.
    double own = fmax(OWN_VARIANCE, least);
    double sum = 0;
    double squares = 0;
    double best = DBL_MAX;
    for (int d = end - 1; d >= 0; d--) {
        sum += y[d];
        squares += y[d] * y[d];
        if (d <= half) {
            double m = end - d;
            mser[d] = log((fmax(squares - sum * sum / m, 0) + own * m) / (m * m));
            best = fmin(best, mser[d]);
        }
    }
    int cut = 0;
    if (end * (mser[0] - best) > GAIN_MIN * noise) {
        while ((end - cut) * (mser[cut] - best) > GAIN_LEFT * noise) {
            cut++;
        }
    }
    assert(cut <= half);
    free(mser);
    free(y);
    return cut;
}

// Running sums over blocks, so that any range is fitted in constant time; x of the first i.
struct sums {
    double *x, *xx, *ix;
};

static struct sums sums_make(const double *v, int n)
{
    struct sums s = {.x = mem_calloc(3 * (size_t)(n + 1), sizeof(*s.x))};
    s.xx = s.x + n + 1;
    s.ix = s.xx + n + 1;
    for (int i = 0; i < n; i++) {
        s.x[i + 1] = s.x[i] + v[i];
        s.xx[i + 1] = s.xx[i] + v[i] * v[i];
        s.ix[i + 1] = s.ix[i] + i * v[i];
    }
    return s;
}

static void sums_release(struct sums *s)
{
    free(s->x);
}

// Squared error of [from, to) around its mean.
static double error_of_level(const struct sums *s, int from, int to)
{
    double x = s->x[to] - s->x[from];
    return fmax(s->xx[to] - s->xx[from] - x * x / (to - from), 0);
}

// ... around its least-squares line.
static double error_of_line(const struct sums *s, int from, int to)
{
    double n = to - from;
    double x = s->x[to] - s->x[from];
    double covariance = s->ix[to] - s->ix[from] - (from + to - 1) / 2.0 * x;
    return fmax(error_of_level(s, from, to) - covariance * covariance * 12 / (n * (n * n - 1)), 0);
}

// A step at `at` is judged against this much before it: a slow warm-up is longer ago.
static int step_window(int from, int at)
{
    return from > at / 2 ? from : at / 2;
}

// The split with the largest standardised difference, or -1.
static int step_candidate(const struct sums *s, const struct blocks *b, int from)
{
    int tail = (int)ceil(fmax(STEP_TAIL_MIN * b->n, (double)STEP_SECONDS_MIN / b->seconds));
    tail = tail > 3 ? tail : 3;
    double least = least_spread(b, s->x[b->n] / b->n);
    double best = 0;
    int ret = -1;
    for (int at = (b->n + 1) / 2; at <= b->n - tail; at++) {
        int start = step_window(from, at);
        double n1 = at - start;
        double n2 = b->n - at;
        if (n1 < 3) {
            continue;
        }
        double error = error_of_level(s, start, at) + error_of_level(s, at, b->n);
        double var = error / (n1 + n2 - 2) + least * least;
        double diff = (s->x[b->n] - s->x[at]) / n2 - (s->x[at] - s->x[start]) / n1;
        double z = fabs(diff) / sqrt(var * (1 / n1 + 1 / n2));
        if (z > best) {
            best = z;
            ret = at;
        }
    }
    return ret;
}

// Standard error of the difference of the medians before and after. `error` is the squared error of
// the smoothed blocks around the two levels: what it exceeds the robust spread by are not events
// but noise with two modes.
static double step_error(const struct blocks *b, int start, int at, double before, double after,
                         double error)
{
    int n = b->n - start;
    double *rest = order_copy(&b->rate[start], n);
    for (int i = 0; i < n; i++) {
        rest[i] -= start + i < at ? before : after;
    }
    double sd = spread(rest, n, least_spread(b, fmax(before, after)));
    double var = MEDIAN_VARIANCE * fmax(sd * sd, error / (n - 2) / MEDIAN3_VARIANCE) *
                 inflation(correlation(rest, n));
    free(rest);
    return sqrt(var * (1.0 / (at - start) + 1.0 / (b->n - at)));
}

// Large, sharp and significant. A dip that recovers makes what follows look like noise of strong
// correlation, and is not.
static bool step_is_real(const struct sums *s, const struct blocks *b, int from, int at,
                         double *ret_ratio)
{
    int start = step_window(from, at);
    double before = order_median(&b->rate[start], at - start);
    double after = order_median(&b->rate[at], b->n - at);
    if (before <= 0 || fabs(after - before) <= STEP_MIN * before) {
        return false;
    }
    double error = error_of_level(s, start, at) + error_of_level(s, at, b->n);
    *ret_ratio = after / before;
    return error <= STEP_SHARP * error_of_line(s, start, b->n) &&
           fabs(after - before) > STEP_Z * step_error(b, start, at, before, after, error);
}

// A lasting change of level in the later half, after `from`: its block, or -1.
static int step_find(const struct blocks *b, int from, double *ret_ratio)
{
    double *smooth = order_copy(b->rate, b->n); // a running median keeps edges and drops events
    for (int i = 1; i < b->n - 1; i++) {
        smooth[i] = median3(b->rate[i - 1], b->rate[i], b->rate[i + 1]);
    }
    struct sums s = sums_make(smooth, b->n);
    int at = step_candidate(&s, b, from);
    if (at >= 0 && !step_is_real(&s, b, from, at, ret_ratio)) {
        at = -1;
    }
    sums_release(&s);
    free(smooth);
    return at;
}

struct trend {
    double z;      // significance
    double change; // from end to end, of the level
};

static double theil_sen(const double *v, int n)
{
    double *slopes = mem_calloc((size_t)n * (size_t)n / 2, sizeof(*slopes));
    int k = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            slopes[k++] = (v[j] - v[i]) / (j - i);
        }
    }
    double ret = order_median_sort(slopes, k);
    free(slopes);
    return ret;
}

// Mann-Kendall's S as a standard normal deviate. Ties are not sorted out: they only matter where
// nearly all values are equal, and S is small then.
static double mann_kendall(const double *v, int n, double r)
{
    int s = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            s += (v[j] > v[i]) - (v[j] < v[i]);
        }
    }
    double var = n * (n - 1.0) * (2.0 * n + 5) / 18 * inflation(r);
    return fmax(abs(s) - 1, 0) / sqrt(var);
}

static struct trend trend_after(const struct blocks *b, int from)
{
    int size = (b->n - from + TREND_GROUPS_MAX - 1) / TREND_GROUPS_MAX;
    int n = (b->n - from) / size;
    assert(n > 1 && n <= TREND_GROUPS_MAX);
    double groups[TREND_GROUPS_MAX] = {0};
    for (int i = 0; i < n * size; i++) {
        groups[i / size] += b->rate[from + i] / size;
    }
    // The noise is taken from the later half: a curve that has not flattened yet looks correlated.
    int late = from + (b->n - from) / 2;
    double r = correlation(&b->rate[late], b->n - late);
    double level = order_median(groups, n);
    double slope = theil_sen(groups, n);
    return (struct trend){
        .z = mann_kendall(groups, n, correlation_of_groups(r, size)),
        .change = level > 0 ? slope * (n - 1) / level : 0,
    };
}

// The cut, moved on to where no trend follows; -1 when half of the run does not reach that.
//
// Only the tail of a warm-up justifies moving, so there must be one (cut > 0): a run that grows or
// falls throughout would else pass with its later half, where the same slope is harder to see.
static int trend_end(const struct blocks *b, int cut)
{
    struct trend whole = trend_after(b, cut);
    if (whole.z <= TREND_Z || fabs(whole.change) <= TREND_MIN) {
        return cut;
    }
    int step = (b->n + TREND_GROUPS_MAX - 1) / TREND_GROUPS_MAX;
    for (int from = cut + step; cut > 0 && from < b->n / 2; from += step) {
        struct trend rest = trend_after(b, from);
        if (rest.z <= TREND_Z_CLEAR || fabs(rest.change) <= TREND_MIN) {
            return from;
        }
    }
    return -1;
}

// Seconds from `cut` on that are far off the level of the later half: what blocks are too coarse
// for, as connections that all open in the first second of an hour.
static int leading_seconds(const double *tps, int cut, int end)
{
    int from = cut > end / 2 ? cut : end / 2;
    int n = end - from < LEVEL_S_MAX ? end - from : LEVEL_S_MAX;
    double mid = order_median(&tps[from], n);
    double sd = spread(&tps[from], n, fmax(SCALE_MIN * mid, 0.5));
    int at = cut;
    while (at < end / 2 && fabs(tps[at] - mid) > SECOND_LIMIT * sd) {
        at++;
    }
    return at - cut;
}

// Seconds per block.
static double block_seconds(int n, double rate)
{
    double ret = n <= ONE_S_UP_TO ? 1 : fmax(3, ceil((double)n / BLOCKS_MAX));
    return fmax(ret, ceil(BLOCK_TX_MIN / rate));
}

void warmup_find(const double *tps, int n, struct warmup *ret)
{
    *ret = (struct warmup){.too_short = n < SECONDS_MIN};
    double sum = 0;
    double later = 0;
    for (int i = 0; i < n; i++) {
        assert(tps[i] >= 0);
        sum += tps[i];
        later += i >= n / 2 ? tps[i] : 0;
    }
    if (ret->too_short || sum <= 0) {
        return;
    }
    double seconds = block_seconds(n, sum / n);
    bool few = sum / n < BLOCK_TX_MIN;
    ret->too_short = n / seconds < BLOCKS_MIN;
    if (ret->too_short || later <= 0) { // what died in its first half did not warm up
        return;
    }
    struct blocks b = blocks_make(tps, n, (int)seconds, few);
    int cut = cut_find(&b, b.n);
    bool at_limit = cut >= b.n / 2 - 1;
    double ratio = 1;
    int step = step_find(&b, cut, &ratio);
    if (step >= 0) {
        cut = cut_find(&b, step);
    } else if (!at_limit) {
        int end = trend_end(&b, cut);
        ret->settled = end >= 0;
        cut = end >= 0 ? end : cut;
    }
    int end_s = step >= 0 ? step * b.seconds : n;
    ret->seconds = cut * b.seconds;
    ret->seconds += few ? 0 : leading_seconds(tps, ret->seconds, end_s);
    if (step >= 0 && ratio < 1) {
        ret->stepped_down = true;
        ret->step_at_s = step * b.seconds;
        ret->step_ratio = ratio;
    }
    assert(ret->seconds >= 0 && ret->seconds <= n / 2);
    free(b.rate);
}
