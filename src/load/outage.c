#include "load/outage.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arr.h"
#include "base/clock.h"

void outage_init(struct outage *o, int clients)
{
    *o = (struct outage){.active = clients, .since_ns = -1};
    atomic_init(&o->up, clients);
    pthread_mutex_init(&o->lock, NULL);
}

void outage_release(struct outage *o)
{
    pthread_mutex_destroy(&o->lock);
    free(o->items);
    o->items = NULL;
}

void outage_start(struct outage *o, int64_t start_ns)
{
    o->start_ns = o->latest_ns = start_ns;
}

static void close_present(struct outage *o, int64_t now_ns)
{
    if (now_ns > o->since_ns)
        *ARR_PUSH(o->items, o->n, o->cap) = (struct result_outage){
            .from_s = (double)(o->since_ns - o->start_ns) / NS_PER_S,
            .to_s = (double)(now_ns - o->start_ns) / NS_PER_S,
        };
    o->since_ns = -1;
}

// Under the lock. Threads read the clock before they come here, so times may arrive out of order;
// the latest one counts.
static void change(struct outage *o, int up, int active, int64_t now_ns)
{
    up += atomic_load_explicit(&o->up, memory_order_relaxed);
    assert(up >= 0 && o->active + active >= 0 && up <= o->active + active);
    atomic_store_explicit(&o->up, up, memory_order_relaxed);
    o->active += active;
    o->latest_ns = now_ns > o->latest_ns ? now_ns : o->latest_ns;
    bool is_outage = up == 0 && o->active > 0;
    if (is_outage && o->since_ns < 0)
        o->since_ns = o->latest_ns;
    else if (!is_outage && o->since_ns >= 0)
        close_present(o, o->latest_ns);
}

static void change_locked(struct outage *o, int up, int active, int64_t now_ns)
{
    pthread_mutex_lock(&o->lock);
    change(o, up, active, now_ns);
    pthread_mutex_unlock(&o->lock);
}

void outage_down(struct outage *o, int64_t now_ns)
{
    change_locked(o, -1, 0, now_ns);
}

void outage_up(struct outage *o, int64_t now_ns)
{
    change_locked(o, 1, 0, now_ns);
}

void outage_leave(struct outage *o, bool was_up, int64_t now_ns)
{
    change_locked(o, was_up ? -1 : 0, -1, now_ns);
}

void outage_finish(struct outage *o, int64_t end_ns)
{
    if (o->since_ns >= 0)
        close_present(o, end_ns);
    for (int i = o->n - 1; i >= 0; i--) { // what was noticed after the end lies outside
        double end_s = (double)(end_ns - o->start_ns) / NS_PER_S;
        if (o->items[i].to_s > end_s)
            o->items[i].to_s = end_s;
        if (o->items[i].from_s >= o->items[i].to_s)
            o->n--;
    }
}

int outage_clients_up(const struct outage *o)
{
    return atomic_load_explicit(&o->up, memory_order_relaxed);
}

double outage_sum_s(const struct outage *o)
{
    double sum_s = 0;

    for (int i = 0; i < o->n; i++)
        sum_s += o->items[i].to_s - o->items[i].from_s;
    return sum_s;
}
