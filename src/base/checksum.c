// Four lanes that do not wait for each other take a word each; at the end they are mixed with the
// length. Multiplying by an odd number and rotating lets every bit reach all higher ones, and then
// the lower ones.
#include "base/checksum.h"

#include <endian.h>
#include <string.h>

#define STRIDE (8 * CHECKSUM_LANES)
#define ODD_A  0x9e3779b97f4a7c15ULL // 2^64 over the golden ratio
#define ODD_B  0xd1342543de82ef95ULL // spectrally good multipliers of Steele and Vigna
#define ODD_C  0xaf251af3b0f025b5ULL

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

void checksum_init(struct checksum *sum)
{
    *sum = (struct checksum){0};
    for (int i = 0; i < CHECKSUM_LANES; i++)
        sum->lanes[i] = (uint64_t)(i + 1) * ODD_A;
}

static void add_stride(uint64_t lanes[CHECKSUM_LANES], const uint8_t *bytes)
{
    for (int i = 0; i < CHECKSUM_LANES; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, sizeof(word));
        lanes[i] = rotate(lanes[i] ^ le64toh(word) * ODD_B, 29) * ODD_C;
    }
}

void checksum_add(struct checksum *sum, const void *from, size_t n)
{
    const uint8_t *bytes = from;

    sum->n += n;
    if (sum->n_rest > 0) {
        size_t part = STRIDE - sum->n_rest < n ? STRIDE - sum->n_rest : n;
        memcpy(sum->rest + sum->n_rest, bytes, part);
        sum->n_rest += part;
        bytes += part;
        n -= part;
        if (sum->n_rest < STRIDE)
            return;
        add_stride(sum->lanes, sum->rest);
        sum->n_rest = 0;
    }
    for (; n >= STRIDE; n -= STRIDE, bytes += STRIDE)
        add_stride(sum->lanes, bytes);
    memcpy(sum->rest, bytes, n);
    sum->n_rest = n;
}

uint64_t checksum_end(const struct checksum *sum)
{
    uint64_t lanes[CHECKSUM_LANES];
    uint8_t last[STRIDE] = {0};
    uint64_t x = sum->n * ODD_A;

    memcpy(lanes, sum->lanes, sizeof(lanes));
    memcpy(last, sum->rest, sum->n_rest);
    add_stride(lanes, last);
    for (int i = 0; i < CHECKSUM_LANES; i++)
        x = rotate(x ^ lanes[i], 23) * ODD_B;
    x ^= x >> 32;
    x *= ODD_C;
    return x ^ x >> 29;
}
