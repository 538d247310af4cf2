// A checksum of 64 bits: tells whether bytes are the same after an accident (a torn copy, a disk
// that returned others), not whether somebody meant to deceive. Several bytes per cycle. The same
// on every machine, however the bytes were cut into pieces; it is kept in files.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_LANES 4

struct checksum {
    uint64_t lanes[CHECKSUM_LANES];
    uint64_t n; // bytes so far
    uint8_t rest[8 * CHECKSUM_LANES];
    size_t n_rest;
};

void checksum_init(struct checksum *sum);
void checksum_add(struct checksum *sum, const void *bytes, size_t n);
uint64_t checksum_end(const struct checksum *sum); // more may be added afterwards
