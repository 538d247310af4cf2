#include "load/shared.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void shared_init(struct shared *s, const struct plan *plan)
{
    assert(plan->clients > 0 && plan->max_tries >= 1);
    assert(plan->time_ns > 0 || plan->transactions > 0);
    *s = (struct shared){
        .plan = plan,
        .workload = plan->workload,
    };
    for (int i = 0; i < plan->workload->n_scripts; i++)
        s->weight_total += plan->workload->scripts[i].weight;
    assert(s->weight_total > 0);
    atomic_init(&s->end_ns, INT64_MAX);
    atomic_init(&s->cut_ns, INT64_MAX);
    outage_init(&s->outage, plan->clients);
    pthread_mutex_init(&s->lock, NULL);
    if (plan->rate_tps > 0) {
        s->arrivals = mem_calloc_lines(1, sizeof(*s->arrivals));
        arrivals_init(s->arrivals, plan->rate_tps, plan->arrival, plan->seed, plan->clients);
    }
}

void shared_release(struct shared *s)
{
    if (s->arrivals)
        arrivals_release(s->arrivals);
    free(s->arrivals);
    s->arrivals = NULL;
    pthread_mutex_destroy(&s->lock);
    outage_release(&s->outage);
}

void shared_start(struct shared *s, int64_t start_ns)
{
    const struct plan *plan = s->plan;

    s->start_ns = start_ns;
    s->caps = db_caps(plan->target); // some are known only once the clients are connected
    outage_start(&s->outage, start_ns);
    if (s->arrivals)
        arrivals_start(s->arrivals, start_ns);
    if (plan->time_ns > 0) {
        atomic_store(&s->end_ns, start_ns + plan->time_ns);
        atomic_store(&s->cut_ns, start_ns + plan->time_ns + plan->finish_for_ns);
    }
}

void shared_reason_text(struct shared *s, enum db_class class, const char *text)
{
    assert(class > DB_OK && class < DB_CLASS_COUNT);
    if (atomic_load_explicit(&s->has_reason[class], memory_order_relaxed))
        return;
    pthread_mutex_lock(&s->lock);
    if (!atomic_load(&s->has_reason[class])) {
        snprintf(s->reasons[class], sizeof(s->reasons[class]), "%s", text);
        atomic_store(&s->has_reason[class], true);
    }
    pthread_mutex_unlock(&s->lock);
}

void shared_reason(struct shared *s, enum db_class class, const struct statement_origin *where,
                   const struct db_result *result)
{
    char text[SHARED_REASON_MAX];
    const char *open = result->native[0] ? " (" : "";
    const char *close = result->native[0] ? ")" : "";

    if (atomic_load_explicit(&s->has_reason[class], memory_order_relaxed))
        return;
    if (where)
        snprintf(text, sizeof(text), "%s:%d: %s%s%s%s", s->workload->scripts[where->script].name,
                 where->line, result->message, open, result->native, close);
    else
        snprintf(text, sizeof(text), "%s%s%s%s", result->message, open, result->native, close);
    shared_reason_text(s, class, text);
}
