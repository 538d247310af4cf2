#include "load/gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void gate_wait(struct gate *gate, uint32_t turn, int64_t until_ns)
{
    struct timespec ts = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};

    if (until_ns <= 0)
        return;
    // The time is absolute on CLOCK_MONOTONIC with this operation only.
    (void)syscall(SYS_futex, &gate->turn, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, turn, &ts, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

void gate_open(struct gate *gate)
{
    atomic_fetch_add_explicit(&gate->turn, 1, memory_order_release);
    (void)syscall(SYS_futex, &gate->turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
}
