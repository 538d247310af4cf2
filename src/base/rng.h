// Seeded random numbers. Every client has one stream per purpose, derived from the run's seed, so
// that a run can be repeated and drawing more for one purpose never shifts another.
// Generator: xoshiro256** (Blackman and Vigna, 2018), seeded through splitmix64. Not for secrets.
#pragma once

#include <stdint.h>

enum rng_purpose {
    RNG_CHOICE = 1, // which script runs next
    RNG_SCRIPT,     // random() and friends inside scripts
    RNG_ARRIVAL,    // planned starts under --rate
    RNG_THINK,      // think times
    RNG_BACKOFF,    // waits before a retry or a reconnect
    RNG_DRIVER,     // what a driver invents (null: latency, failures; sqlite: busy waits)
    RNG_DATA,       // rows made by init
    RNG_PROBE,      // places and order of a storage probe
    RNG_STUDY,      // the order of cells within a block
};

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *rng, uint64_t seed, uint64_t stream, enum rng_purpose purpose);
uint64_t rng_u64(struct rng *rng);

// Uniform in [low, high], every value equally likely (rejection, no modulo bias). low <= high.
int64_t rng_range(struct rng *rng, int64_t low, int64_t high);

// Uniform in [0, 1), 53 bits.
double rng_double(struct rng *rng);

// Exponential with the given mean (> 0); always finite.
double rng_exponential(struct rng *rng, double mean);
