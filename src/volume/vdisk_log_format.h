// The bytes of a recording, shared by writer and reader (vdisk_log.h); nothing else includes it.
#pragma once

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#define LOG_MAGIC        "prony-vdisk-log"
#define LOG_RECORD_MAGIC 0x76526431u
#define LOG_FLAG_LIED    1u

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a log is little-endian");

struct log_header {
    char magic[16];
    uint32_t version;
    uint32_t reserved; // 0
    uint64_t id;
    int64_t start_ns;      // CLOCK_MONOTONIC
    int64_t start_real_ns; // CLOCK_REALTIME
    uint64_t sum;          // of what stands before it
};
static_assert(sizeof(struct log_header) == 56, "no padding");

struct log_head {
    uint32_t magic;
    uint8_t type;
    uint8_t flags;
    uint16_t disk;
    uint64_t seq;
    int64_t time_ns;
    uint64_t offset;
    uint64_t length;
    uint64_t through;
    uint64_t sum; // of the record before, what stands before it here, and the padded payload
};
static_assert(sizeof(struct log_head) == 56, "no padding");

// Every step is a bijection of the state, so a change within one word of eight bytes changes the
// sum for certain, any other with probability 1 - 2^-64.
static inline uint64_t log_sum(uint64_t sum, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;

    assert(n % 8 == 0);
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, sizeof(word));
        sum = (sum ^ word) * 0x9fb21c651e98df25ULL;
        sum ^= sum >> 29;
    }
    return sum;
}

static inline size_t log_padded(uint64_t length)
{
    return (size_t)((length + 7) & ~7ULL);
}
