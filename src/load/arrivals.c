#include "load/arrivals.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

// The first of the even ones is at 0, so that T seconds at rate R hold T * R of them.
static int64_t source_next_ns(struct arrivals_source *source)
{
    int64_t k = source->n++;

    if (source->kind == PLAN_EVEN)
        return (int64_t)nearbyint((double)k * source->mean_ns);
    source->at_ns += rng_exponential(&source->rng, source->mean_ns);
    return (int64_t)source->at_ns;
}

void arrivals_init(struct arrivals *a, double rate_tps, enum plan_arrival kind, uint64_t seed,
                   int n_clients)
{
    assert(rate_tps > 0 && isfinite(rate_tps) && n_clients > 0);
    *a = (struct arrivals){.source = {.kind = kind, .mean_ns = (double)NS_PER_S / rate_tps}};
    rng_init(&a->source.rng, seed, 0, RNG_ARRIVAL);
    // Room to count back over everything that idle clients hold (see arrivals_due).
    for (a->size = 1024; a->size < 4 * ARRIVALS_BATCH + 2LL * n_clients;)
        a->size *= 2;
    a->ring = mem_calloc((size_t)a->size, sizeof(*a->ring));
    pthread_mutex_init(&a->lock, NULL);
    a->start_ns = -1;
}

void arrivals_release(struct arrivals *a)
{
    pthread_mutex_destroy(&a->lock);
    free(a->ring);
    a->ring = NULL;
}

void arrivals_start(struct arrivals *a, int64_t start_ns)
{
    assert(start_ns >= 0 && a->start_ns < 0 && atomic_load(&a->made) == 0);
    a->start_ns = start_ns;
}

// Under the lock. A slot is written again only when head has passed it: whoever read its old value
// fails to advance the head, or has done so already.
static void make_batch(struct arrivals *a)
{
    int64_t made = atomic_load_explicit(&a->made, memory_order_relaxed);
    int64_t head = atomic_load_explicit(&a->head, memory_order_acquire);
    int64_t until = made + ARRIVALS_BATCH;

    assert(made >= head && a->start_ns >= 0);
    if (until > head + a->size)
        until = head + a->size;
    for (; made < until; made++) {
        int64_t at_ns = a->start_ns + source_next_ns(&a->source);
        assert(at_ns >= a->last_ns);
        a->last_ns = at_ns;
        atomic_store_explicit(&a->ring[made & (a->size - 1)], at_ns, memory_order_relaxed);
    }
    atomic_store_explicit(&a->made, made, memory_order_release);
}

int64_t arrivals_take(struct arrivals *a)
{
    int64_t head = atomic_load_explicit(&a->head, memory_order_acquire);

    for (;;) {
        int64_t made = atomic_load_explicit(&a->made, memory_order_acquire);
        if (head >= made) {
            pthread_mutex_lock(&a->lock);
            if (atomic_load(&a->head) == atomic_load(&a->made))
                make_batch(a);
            pthread_mutex_unlock(&a->lock);
            head = atomic_load_explicit(&a->head, memory_order_acquire);
            continue;
        }
        int64_t planned_ns =
            atomic_load_explicit(&a->ring[head & (a->size - 1)], memory_order_relaxed);
        if (!atomic_compare_exchange_weak_explicit(&a->head, &head, head + 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        if (made - head <= ARRIVALS_BATCH && pthread_mutex_trylock(&a->lock) == 0) {
            if (atomic_load(&a->made) - head <= ARRIVALS_BATCH)
                make_batch(a);
            pthread_mutex_unlock(&a->lock);
        }
        return planned_ns;
    }
}

int64_t arrivals_due(struct arrivals *a, int64_t before_ns)
{
    struct arrivals_source source = a->source;
    int64_t n = atomic_load(&a->made);
    int64_t ring_begin = n > a->size ? n - a->size : 0;

    if (n > 0 && a->last_ns >= before_ns) {
        // Taken ones from then on are held by idle clients, at most one each: all are still here.
        while (n > ring_begin && atomic_load(&a->ring[(n - 1) & (a->size - 1)]) >= before_ns)
            n--;
        assert(n == 0 || n > ring_begin);
        return n;
    }
    while (a->start_ns + source_next_ns(&source) < before_ns)
        n++;
    return n;
}
