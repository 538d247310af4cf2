#include "load/slowest.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

// Total order: by latency, then the earlier one counts as the slower.
static bool is_slower(const struct result_slow *a, const struct result_slow *b)
{
    if (a->latency_ns != b->latency_ns)
        return a->latency_ns > b->latency_ns;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns;
    if (a->client != b->client)
        return a->client < b->client;
    return a->number < b->number;
}

static void swap(struct result_slow *a, struct result_slow *b)
{
    struct result_slow t = *a;

    *a = *b;
    *b = t;
}

static void sift_up(struct result_slow *items, int i)
{
    while (i > 0 && is_slower(&items[(i - 1) / 2], &items[i])) {
        swap(&items[(i - 1) / 2], &items[i]);
        i = (i - 1) / 2;
    }
}

static void sift_down(struct result_slow *items, int n, int i)
{
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (is_slower(&items[least], &items[child]))
                least = child;
        if (least == i)
            return;
        swap(&items[i], &items[least]);
        i = least;
    }
}

void slowest_offer(struct slowest *s, const struct result_slow *slow)
{
    assert(s->n >= 0 && s->n <= SLOWEST_MAX);
    if (s->n == SLOWEST_MAX) {
        if (!is_slower(slow, &s->items[0]))
            return;
        s->items[0] = *slow;
        sift_down(s->items, s->n, 0);
        return;
    }
    if (s->n == s->cap) {
        s->cap = s->cap ? 4 * s->cap : 16;
        s->cap = s->cap > SLOWEST_MAX ? SLOWEST_MAX : s->cap;
        s->items = mem_resize(s->items, (size_t)s->cap, sizeof(*s->items));
    }
    s->items[s->n++] = *slow;
    sift_up(s->items, s->n - 1);
}

void slowest_merge(struct slowest *to, const struct slowest *from)
{
    assert(to != from);
    for (int i = 0; i < from->n; i++)
        if (slowest_wants(to, from->items[i].latency_ns))
            slowest_offer(to, &from->items[i]);
}

int64_t slowest_floor_ns(const struct slowest *s)
{
    return s->n < SLOWEST_MAX ? -1 : s->items[0].latency_ns;
}

static int compare_slower_first(const void *a, const void *b)
{
    return is_slower(a, b) ? -1 : is_slower(b, a) ? 1 : 0;
}

void slowest_sort(struct slowest *s)
{
    if (s->n > 0)
        qsort(s->items, (size_t)s->n, sizeof(*s->items), compare_slower_first);
}

void slowest_clear(struct slowest *s)
{
    s->n = 0;
}

void slowest_release(struct slowest *s)
{
    free(s->items);
    *s = (struct slowest){0};
}
