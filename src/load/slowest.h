// The slowest transactions of a run: a heap of at most SLOWEST_MAX, the least slow at its root.
//
// Each second of each worker collects its own, and the main thread merges them; what it publishes
// as the floor spares the workers everything that can no longer be among them. Memory grows on
// demand up to the maximum. Equal latencies are ordered by time and client, so that the outcome
// does not depend on the order of merging.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/result.h"

#define SLOWEST_MAX 1000

struct slowest { // zeroed memory is an empty one
    struct result_slow *items;
    int n;
    int cap;
};

// Cheap test before slowest_offer: false when the transaction certainly does not belong here.
static inline bool slowest_wants(const struct slowest *s, int64_t latency_ns)
{
    return s->n < SLOWEST_MAX || latency_ns >= s->items[0].latency_ns;
}

void slowest_offer(struct slowest *s, const struct result_slow *slow);
void slowest_merge(struct slowest *to, const struct slowest *from);

// Transactions faster than this need not be offered; -1 while there is room for any.
int64_t slowest_floor_ns(const struct slowest *s);

// Slowest first. The heap is gone: after this only slowest_clear and slowest_release are allowed.
void slowest_sort(struct slowest *s);

void slowest_clear(struct slowest *s); // keeps the memory
void slowest_release(struct slowest *s);
