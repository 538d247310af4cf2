// The checksum: whatever differs is seen, however the bytes come in, and values that are in files
// stay what they are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/checksum.h"
#include "base/rng.h"

static uint64_t sum_of(const void *bytes, size_t n)
{
    struct checksum sum;

    checksum_init(&sum);
    checksum_add(&sum, bytes, n);
    return checksum_end(&sum);
}

// Kept in manifests: a change would make every saved state look damaged.
static void values_stay(void **state)
{
    static const struct {
        const char *text;
        uint64_t sum;
    } cases[] = {
        {"", 0x884d1668d4144e34ULL},
        {"a", 0x5ebe83fb49dc9c27ULL},
        {"0123456789abcdef0123456789abcdef", 0x93aa8af930af94c0ULL},
        {"0123456789abcdef0123456789abcdef0", 0x34c8fb4127042e45ULL},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        uint64_t sum = sum_of(cases[i].text, strlen(cases[i].text));
        if (sum != cases[i].sum)
            fail_msg("\"%s\": 0x%llxULL", cases[i].text, (unsigned long long)sum);
    }
}

static void pieces_do_not_matter(void **state)
{
    uint8_t bytes[301];
    struct rng rng;

    (void)state;
    rng_init(&rng, 1, 1, RNG_DATA);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_u64(&rng);
    for (int round = 0; round < 200; round++) {
        struct checksum sum;
        checksum_init(&sum);
        for (size_t done = 0; done < sizeof(bytes);) {
            size_t n = rng_u64(&rng) % 70;
            n = n < sizeof(bytes) - done ? n : sizeof(bytes) - done;
            checksum_add(&sum, bytes + done, n);
            done += n;
        }
        assert_true(checksum_end(&sum) == sum_of(bytes, sizeof(bytes)));
    }
}

static void every_bit_and_the_length_count(void **state)
{
    uint8_t bytes[97] = {0};
    uint64_t is = sum_of(bytes, sizeof(bytes));

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(sum_of(bytes, sizeof(bytes)) != is);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t n = 0; n < sizeof(bytes); n++)
        assert_true(sum_of(bytes, n) != is);
}

// Blocks that changed places are what a broken disk gives.
static void order_counts(void **state)
{
    uint8_t bytes[256], swapped[256];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i / 32);
    for (size_t a = 0; a < 8; a++)
        for (size_t b = 0; b < a; b++) {
            memcpy(swapped, bytes, sizeof(bytes));
            memcpy(swapped + 32 * a, bytes + 32 * b, 32);
            memcpy(swapped + 32 * b, bytes + 32 * a, 32);
            assert_true(sum_of(swapped, sizeof(bytes)) != sum_of(bytes, sizeof(bytes)));
        }
}

// A bit of the input changes about half of those of the sum, wherever it stands.
static void a_bit_reaches_all_of_the_sum(void **state)
{
    uint8_t bytes[64] = {0};
    int changed = 0;

    (void)state;
    uint64_t is = sum_of(bytes, sizeof(bytes));
    for (size_t bit = 0; bit < 512; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int n = __builtin_popcountll(is ^ sum_of(bytes, sizeof(bytes)));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(n >= 8);
        changed += n;
    }
    assert_in_range(changed, 512 * 28, 512 * 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stay),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(every_bit_and_the_length_count),
        cmocka_unit_test(order_counts),
        cmocka_unit_test(a_bit_reaches_all_of_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
