// Time. Everything measured is CLOCK_MONOTONIC in nanoseconds; a clock is passed in, so that tests
// can replace it by one that moves only when told (clock_fake).
#pragma once

#include <stdint.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

struct clock {
    int64_t (*now_ns)(const struct clock *clock);
    // Returns at or after the given time (at once if it is past). A signal may end it early.
    void (*sleep_until_ns)(const struct clock *clock, int64_t when_ns);
};

extern const struct clock clock_system;

static inline int64_t clock_now_ns(const struct clock *clock)
{
    return clock->now_ns(clock);
}

static inline void clock_sleep_until_ns(const struct clock *clock, int64_t when_ns)
{
    clock->sleep_until_ns(clock, when_ns);
}

// A clock for tests: stands still at now_ns; sleeping moves it to the wanted time. One thread only.
struct clock_fake {
    struct clock base;
    int64_t now_ns;
};
void clock_fake_init(struct clock_fake *fake, int64_t start_ns);

// CLOCK_REALTIME, for records read by people (UTC). Never for measuring.
int64_t clock_real_ns(void);

// The boot id of the running kernel, or "unknown: REASON". out holds at least 64 bytes.
void clock_boot_id(char *out, int size);

// "2026-11-30T14:35:00Z" from CLOCK_REALTIME nanoseconds. out holds at least 32 bytes.
void clock_format_utc(int64_t real_ns, char *out, int size);
