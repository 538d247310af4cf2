#include "load/recorder.h"

#include <stddef.h>

#include "base/clock.h"

static void push(_Atomic(struct tally *) *chain, struct tally *t)
{
    t->next = atomic_load_explicit(chain, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(chain, &t->next, t, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static struct tally *take_all(_Atomic(struct tally *) *chain)
{
    if (!atomic_load_explicit(chain, memory_order_relaxed))
        return NULL;
    return atomic_exchange_explicit(chain, NULL, memory_order_acquire);
}

void recorder_init(struct recorder *r, int n_channels, const _Atomic int64_t *end,
                   const _Atomic int64_t *floor)
{
    *r = (struct recorder){.end = end, .floor = floor, .n_channels = n_channels};
    r->tally = tally_new(n_channels);
    r->own_spare = tally_new(n_channels);
    atomic_init(&r->ready, NULL);
    atomic_init(&r->spare, NULL);
}

void recorder_start(struct recorder *r, int64_t start_ns)
{
    r->start_ns = start_ns;
    r->second_ns = start_ns;
    r->tally->second = 0;
}

static void free_chain(struct tally *t)
{
    while (t) {
        struct tally *next = t->next;
        tally_free(t);
        t = next;
    }
}

void recorder_release(struct recorder *r)
{
    tally_free(r->tally);
    free_chain(r->own_spare);
    free_chain(take_all(&r->ready));
    free_chain(take_all(&r->spare));
    *r = (struct recorder){0};
}

static struct tally *fresh_tally(struct recorder *r)
{
    if (!r->own_spare)
        r->own_spare = take_all(&r->spare);
    struct tally *t = r->own_spare;
    if (!t)
        return tally_new(r->n_channels);
    r->own_spare = t->next;
    t->next = NULL;
    return t;
}

struct tally *recorder_turn(struct recorder *r, int64_t at_ns)
{
    assert(at_ns >= r->start_ns);
    bool late = at_ns >= atomic_load_explicit(r->end, memory_order_relaxed);
    int64_t t_s = (at_ns - r->start_ns) / NS_PER_S;

    assert(t_s < TALLY_LATE);
    int32_t second = late ? TALLY_LATE : (int32_t)t_s;
    if (second != r->tally->second) {
        push(&r->ready, r->tally);
        r->tally = fresh_tally(r);
        r->tally->second = second;
    }
    // Far away for the late one, so that every call comes here and is checked against the end.
    r->second_ns = late ? INT64_MAX : r->start_ns + t_s * NS_PER_S;
    return r->tally;
}

void recorder_statement(struct recorder *r, int64_t at_ns, const struct recorder_statement *s)
{
    struct tally *t = recorder_at(r, at_ns);
    int channel = TALLY_STATEMENTS + s->index;

    assert(channel < t->n_channels);
    tally_record(t, channel, s->ns);
    t->channels[channel].rows += s->rows;
    t->channels[channel].failed += s->failed;
    t->lock_wait_ns += s->lock_wait_ns;
    if (s->given_ns > 0)
        tally_record(t, TALLY_GIVEN, s->given_ns);
}

void recorder_error(struct recorder *r, int64_t at_ns)
{
    recorder_at(r, at_ns)->errors++;
}

void recorder_done(struct recorder *r, int64_t at_ns, int64_t service_ns,
                   const struct result_slow *slow)
{
    struct tally *t = recorder_at(r, at_ns);

    t->done++;
    tally_record(t, TALLY_LATENCY, slow->latency_ns);
    if (service_ns >= 0)
        tally_record(t, TALLY_SERVICE, service_ns);
    if (slowest_wants(&t->slowest, slow->latency_ns) &&
        slow->latency_ns >= atomic_load_explicit(r->floor, memory_order_relaxed))
        slowest_offer(&t->slowest, slow);
}

void recorder_close(struct recorder *r)
{
    push(&r->ready, r->tally);
    r->tally = NULL;
}

struct tally *recorder_take(struct recorder *r)
{
    return take_all(&r->ready);
}

void recorder_give(struct recorder *r, struct tally *t)
{
    tally_clear(t);
    push(&r->spare, t);
}
