#include "load/timers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void timers_init(struct timers *t, int size)
{
    *t = (struct timers){.size = size};
    t->heap = mem_calloc((size_t)size, sizeof(*t->heap));
    t->place = mem_calloc((size_t)size, sizeof(*t->place));
    t->when_ns = mem_calloc((size_t)size, sizeof(*t->when_ns));
    for (int i = 0; i < size; i++)
        t->place[i] = -1;
}

void timers_release(struct timers *t)
{
    free(t->heap);
    free(t->place);
    free(t->when_ns);
}

static void put(struct timers *t, int at, int slot)
{
    t->heap[at] = slot;
    t->place[slot] = at;
}

static void up(struct timers *t, int at)
{
    int slot = t->heap[at];

    while (at > 0 && t->when_ns[t->heap[(at - 1) / 2]] > t->when_ns[slot]) {
        put(t, at, t->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(t, at, slot);
}

static void down(struct timers *t, int at)
{
    int slot = t->heap[at];

    for (int child; (child = 2 * at + 1) < t->n; at = child) {
        if (child + 1 < t->n && t->when_ns[t->heap[child + 1]] < t->when_ns[t->heap[child]])
            child++;
        if (t->when_ns[t->heap[child]] >= t->when_ns[slot])
            break;
        put(t, at, t->heap[child]);
    }
    put(t, at, slot);
}

void timers_set(struct timers *t, int slot, int64_t when_ns)
{
    assert(slot >= 0 && slot < t->size);
    if (t->place[slot] < 0) {
        assert(t->n < t->size);
        put(t, t->n++, slot);
    }
    t->when_ns[slot] = when_ns;
    up(t, t->place[slot]);
    down(t, t->place[slot]);
}

void timers_clear(struct timers *t, int slot)
{
    int at = t->place[slot];

    if (at < 0)
        return;
    t->place[slot] = -1;
    if (at == --t->n)
        return;
    put(t, at, t->heap[t->n]);
    up(t, at);
    down(t, t->place[t->heap[at]]);
}

int64_t timers_first_ns(const struct timers *t)
{
    return t->n > 0 ? t->when_ns[t->heap[0]] : INT64_MAX;
}

int timers_take(struct timers *t, int64_t now_ns)
{
    if (t->n == 0 || t->when_ns[t->heap[0]] > now_ns)
        return -1;
    int slot = t->heap[0];
    timers_clear(t, slot);
    return slot;
}
