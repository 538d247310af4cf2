#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t timespec_ns(struct timespec ts)
{
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int64_t system_now_ns(const struct clock *clock)
{
    struct timespec ts;

    (void)clock;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return timespec_ns(ts);
}

static void system_sleep_until_ns(const struct clock *clock, int64_t when_ns)
{
    struct timespec ts = {.tv_sec = when_ns / NS_PER_S, .tv_nsec = when_ns % NS_PER_S};

    (void)clock;
    if (when_ns > 0)
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

const struct clock clock_system = {
    .now_ns = system_now_ns,
    .sleep_until_ns = system_sleep_until_ns,
};

static int64_t fake_now_ns(const struct clock *clock)
{
    return ((const struct clock_fake *)clock)->now_ns;
}

static void fake_sleep_until_ns(const struct clock *clock, int64_t when_ns)
{
    struct clock_fake *fake = (struct clock_fake *)clock;

    if (fake->now_ns < when_ns)
        fake->now_ns = when_ns;
}

void clock_fake_init(struct clock_fake *fake, int64_t start_ns)
{
    fake->base.now_ns = fake_now_ns;
    fake->base.sleep_until_ns = fake_sleep_until_ns;
    fake->now_ns = start_ns;
}

int64_t clock_real_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return timespec_ns(ts);
}

void clock_boot_id(char *out, int size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!f || !fgets(out, size, f))
        snprintf(out, (size_t)size, "unknown: %s", strerror(errno));
    out[strcspn(out, "\n")] = '\0';
    if (f)
        fclose(f);
}

void clock_format_utc(int64_t real_ns, char *out, int size)
{
    time_t t = real_ns / NS_PER_S;
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(out, (size_t)size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
