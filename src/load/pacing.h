// Waking up on time for a planned start. Sleeping threads wake up late, by 50 to 100 us on a
// virtual machine, and under a rate that would count as latency of the server. So a thread sleeps
// until a little earlier and spins for the rest. How much earlier follows from how late it has
// woken up so far: enough for four of five. Spinning takes CPU from a server on the same machine:
// all clients together may spin for a tenth of one processor. Think times, back-offs and \sleep do
// not need this and do not get it.
#pragma once

#include <stdint.h>

struct pacing {        // how late this thread wakes up
    double lead_ns;    // how long before its time it means to wake up
    double spun_ns;    // running mean per arrival
    double allowed_ns; // limit for it; 0: sleep only
};

void pacing_init(struct pacing *p, double rate_tps);

// The thread meant to wake up lead_ns before its time, was late by late_ns, and spun for spun_ns.
void pacing_learn(struct pacing *p, int64_t late_ns, int64_t spun_ns);

// One turn of a spin.
static inline void pacing_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}
