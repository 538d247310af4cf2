#include "workload/hash.h"

#include <assert.h>

#define FNV_PRIME UINT64_C(0x100000001b3)

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * FNV_PRIME;
    return hash;
}

int64_t hash_fnv1a(int64_t value, int64_t seed)
{
    uint64_t hash = HASH_START ^ (uint64_t)seed;

    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ ((uint64_t)value >> shift & 0xff)) * FNV_PRIME;
    return (int64_t)hash;
}

int64_t hash_murmur2(int64_t value, int64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t k = (uint64_t)value * m;
    uint64_t hash = (uint64_t)seed ^ (8 * m); // 8: the length of the key

    k = (k ^ (k >> 47)) * m;
    hash = (hash ^ k) * m;
    hash = (hash ^ (hash >> 47)) * m;
    return (int64_t)(hash ^ (hash >> 47));
}

// ---- permutation

// The generator behind the permutation: xoroshiro128** (Blackman and Vigna, 2018), seeded through
// splitmix64. Not base/rng.h's, because the numbers must be pgbench's.
struct permute_rng {
    uint64_t a, b;
};

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t permute_next(struct permute_rng *rng)
{
    uint64_t a = rng->a;
    uint64_t b = rng->b ^ a;
    uint64_t result = rotl(a * 5, 7) * 9;

    rng->a = rotl(a, 24) ^ b ^ (b << 16);
    rng->b = rotl(b, 37);
    return result;
}

// Uniform in [0, last]: the highest bits, as many as last has, drawn again while they exceed it.
static uint64_t permute_upto(struct permute_rng *rng, uint64_t last)
{
    assert(last > 0);
    int shift = __builtin_clzll(last);
    uint64_t value;

    do
        value = permute_next(rng) >> shift;
    while (value > last);
    return value;
}

// One bijection of the numbers 0 .. mask, which leaves larger ones alone: times an odd number
// modulo the power of two, exclusive or, rotation by one bit.
static uint64_t permute_mix(uint64_t v, uint64_t mask, uint64_t factor, uint64_t flip)
{
    if (v > mask)
        return v;
    int bits = 64 - __builtin_clzll(mask);
    v = (v * ((factor & mask) | 1) ^ (flip & mask)) & mask;
    return (v << 1 & mask) | v >> (bits - 1);
}

// Six rounds of: mix the lower power of two of the range, mix the upper one (they overlap unless
// size is a power of two), shift all by a random offset.
int64_t hash_permute(int64_t value, int64_t size, int64_t seed)
{
    uint64_t n = (uint64_t)size;
    uint64_t v = (uint64_t)value % n;
    uint64_t state = (uint64_t)seed;
    struct permute_rng rng;

    assert(size > 0);
    if (n == 1)
        return 0;
    rng.a = splitmix64(&state);
    rng.b = splitmix64(&state);
    uint64_t mask = (UINT64_C(1) << (63 - __builtin_clzll(n))) - 1;
    for (int round = 0; round < 6; round++) {
        uint64_t factor = permute_next(&rng);
        uint64_t flip = permute_next(&rng);
        v = permute_mix(v, mask, factor, flip);
        factor = permute_next(&rng);
        flip = permute_next(&rng);
        v = n - 1 - permute_mix(n - 1 - v, mask, factor, flip);
        v = (v + permute_upto(&rng, n - 1)) % n;
    }
    assert(v < n);
    return (int64_t)v;
}
