// What all clients of a run share: the plan, when it ends, the schedule, and the first words of
// each kind of trouble. Written before the start, but for what says otherwise.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "load/arrivals.h"
#include "load/outage.h"
#include "load/plan.h"

#define SHARED_REASON_MAX 384

struct shared {
    const struct plan *plan;
    const struct workload *workload;
    unsigned caps; // of the target
    double weight_total;
    int64_t start_ns;
    struct arrivals *arrivals; // NULL: closed loop

    // Read at every step, moved by the main thread: earlier, or from "never" (INT64_MAX).
    _Alignas(64) _Atomic int64_t end_ns; // no transaction begins from then on
    _Atomic int64_t cut_ns;              // running ones are given up from then on

    _Alignas(64) struct outage outage;
    pthread_mutex_t lock; // for the texts
    _Atomic bool has_reason[DB_CLASS_COUNT];
    char reasons[DB_CLASS_COUNT][SHARED_REASON_MAX]; // the first of the run
};

void shared_init(struct shared *s, const struct plan *plan);
void shared_release(struct shared *s);

// Sets the start, and the end where the plan has a time.
void shared_start(struct shared *s, int64_t start_ns);

static inline int64_t shared_end_ns(const struct shared *s)
{
    return atomic_load_explicit(&s->end_ns, memory_order_relaxed);
}

static inline int64_t shared_cut_ns(const struct shared *s)
{
    return atomic_load_explicit(&s->cut_ns, memory_order_relaxed);
}

// Keeps the words of the first trouble of each class: "tpcb:5: no such table (42P01)". where may be
// NULL. Later ones cost a load.
void shared_reason(struct shared *s, enum db_class class, const struct statement_origin *where,
                   const struct db_result *result);
void shared_reason_text(struct shared *s, enum db_class class, const char *text);
