// Waiting for a lock. The library's own handler waits 1, 2, 5, 10, ... 100 ms: who has just lost
// waits ever longer while the winner comes back at once, so that one of several writers does nearly
// all the work. Here every wait is short and drawn at random from the same range however long it
// already lasts, so that every waiting client is as likely to be next as any other.
//
// The first tries come quickly: a reader that is just leaving holds its lock for microseconds.
// Waits of up to 1 or 4 ms were tried: between two transactions of a busy client the lock is free
// for some ten microseconds only, and who waits longer misses it nearly always (figures in
// README.md).
#include <assert.h>

#include "db/sqlite.h"

#define WAIT_FIRST_NS (20 * NS_PER_US)
#define WAIT_MIN_NS   (50 * NS_PER_US)
#define WAIT_MAX_NS   (500 * NS_PER_US)
#define QUICK_TRIES   2

void sqlite_busy_init(struct sqlite_busy *busy, const struct sqlite_target *target, int client,
                      uint64_t nth)
{
    busy->clock = target->base.options.clock;
    busy->limit_ns = target->busy_ns;
    rng_init(&busy->rng, target->base.options.seed, (uint32_t)client | nth << 32, RNG_DRIVER);
}

int sqlite_busy_handler(void *arg, int count)
{
    struct sqlite_busy *busy = arg;
    int64_t now_ns = clock_now_ns(busy->clock);

    if (count == 0) {
        busy->begin_ns = now_ns;
        busy->waits++;
    }
    int64_t end_ns = busy->begin_ns + busy->limit_ns;
    if (now_ns >= end_ns || atomic_load_explicit(&busy->cancelled, memory_order_relaxed))
        return 0;
    int64_t wait_ns = count < QUICK_TRIES ? rng_range(&busy->rng, 1, WAIT_FIRST_NS)
                                          : rng_range(&busy->rng, WAIT_MIN_NS, WAIT_MAX_NS);
    if (now_ns + wait_ns < end_ns)
        end_ns = now_ns + wait_ns;
    clock_sleep_until_ns(busy->clock, end_ns);
    int64_t waited_ns = clock_now_ns(busy->clock) - now_ns;
    assert(waited_ns >= 0);
    busy->waited_ns += waited_ns;
    busy->waited_total_ns += (uint64_t)waited_ns;
    return 1;
}
