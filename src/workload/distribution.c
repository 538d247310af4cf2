#include "workload/distribution.h"

#include <assert.h>
#include <math.h>

#define BELOW_ONE 0x1.fffffffffffffp-1 // the largest double below 1

// Value number floor(n * x) of the range, for x in [0, 1). In large ranges the product can round up
// to n.
static int64_t at_fraction(int64_t low, int64_t high, double x)
{
    double n = (double)(high - low) + 1;
    double offset = floor(n * x);

    assert(low <= high && x >= 0 && x < 1);
    if (offset >= (double)(high - low))
        return high;
    return low + (int64_t)offset;
}

int64_t draw_exponential(struct rng *rng, int64_t low, int64_t high, double param)
{
    assert(param > 0);
    // Inversion of the distribution cut off at 1: u in (0, 1] gives x in [0, 1).
    double cut = exp(-param);
    double u = 1.0 - rng_double(rng);
    if (cut == 1.0) // too flat for a double to tell from uniform
        return at_fraction(low, high, 1.0 - u);
    double x = -log(cut + (1.0 - cut) * u) / param;
    return at_fraction(low, high, fmax(0, fmin(x, BELOW_ONE)));
}

// A standard normal variate by Marsaglia's polar method. The second one of each pair is dropped, so
// that the stream of uniform numbers is the whole state.
static double draw_normal(struct rng *rng)
{
    double u, v, s;

    do {
        u = 2 * rng_double(rng) - 1;
        v = 2 * rng_double(rng) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

int64_t draw_gaussian(struct rng *rng, int64_t low, int64_t high, double param)
{
    double z;

    assert(param >= GAUSSIAN_PARAM_MIN);
    do // at most one in 22 is outside
        z = draw_normal(rng);
    while (z < -param || z >= param);
    return at_fraction(low, high, fmin((z + param) / (2 * param), BELOW_ONE));
}

// Devroye, Non-Uniform Random Variate Generation (Springer 1986), pages 550 and 551: rejection from
// floor(U^(-1/(a-1))), for the distribution without an upper bound; values beyond it are rejected
// too. Near a = 1 nearly all of them are: about one in 400 is kept for ten values and a = 1.001.
int64_t draw_zipfian(struct rng *rng, int64_t low, int64_t high, double param)
{
    double n = (double)(high - low) + 1;
    double a = param - 1;
    double b = pow(2, a);

    assert(param >= ZIPFIAN_PARAM_MIN && param <= ZIPFIAN_PARAM_MAX);
    if (low == high)
        return low;
    for (;;) {
        double u = 1.0 - rng_double(rng);
        double v = rng_double(rng);
        double x = floor(pow(u, -1 / a));
        double t = pow(1 + 1 / x, a);
        if (x <= n && v * x * (t - 1) / (b - 1) <= t / b)
            return x >= n ? high : low + (int64_t)x - 1;
    }
}
