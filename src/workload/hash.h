// The hash functions and the permutation of scripts. They give the same numbers as pgbench, so that
// keys chosen by either tool are the same keys.
#pragma once

#include <stddef.h>
#include <stdint.h>

// FNV-1a, 64 bits, of the eight bytes of value from the lowest on; the seed changes the offset
// basis.
int64_t hash_fnv1a(int64_t value, int64_t seed);

// MurmurHash2, 64 bits (variant A), of the eight bytes of value.
int64_t hash_murmur2(int64_t value, int64_t seed);

// Where value (modulo size) goes in a pseudorandom permutation of 0 .. size - 1. size > 0.
int64_t hash_permute(int64_t value, int64_t size, int64_t seed);

// FNV-1a of any bytes, to be continued: begin with HASH_START.
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n);
