#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream, enum rng_purpose purpose)
{
    // Mix each part through splitmix64 before combining, so that near seeds give far streams.
    uint64_t state = seed;
    uint64_t mixed = splitmix64(&state) ^ (stream + 1);
    state = splitmix64(&mixed) ^ ((uint64_t)purpose << 32);

    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix64(&state);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

int64_t rng_range(struct rng *rng, int64_t low, int64_t high)
{
    assert(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low + 1; // 0 means all 2^64 values
    if (span == 0)
        return (int64_t)rng_u64(rng);
    // Lemire's multiply-and-reject: the high half of x * span, redrawn in the uneven remainder.
    __uint128_t m = (__uint128_t)rng_u64(rng) * span;
    if ((uint64_t)m < span) {
        uint64_t floor = -span % span;
        while ((uint64_t)m < floor)
            m = (__uint128_t)rng_u64(rng) * span;
    }
    return (int64_t)((uint64_t)low + (uint64_t)(m >> 64));
}

double rng_double(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1.0p-53;
}

double rng_exponential(struct rng *rng, double mean)
{
    assert(mean > 0);
    return -mean * log(1.0 - rng_double(rng)); // 1 - u is in (0, 1]: the logarithm is finite
}
