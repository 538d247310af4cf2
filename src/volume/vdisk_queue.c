#include "volume/vdisk_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arr.h"

static bool is_before(const struct vdisk_waiting *a, const struct vdisk_waiting *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

void vdisk_queue_release(struct vdisk_queue *q)
{
    assert(q->n == 0);
    free(q->items);
    q->items = NULL;
    q->cap = 0;
}

static void sift_up(struct vdisk_queue *q, size_t at)
{
    struct vdisk_waiting *item = q->items[at];

    for (; at > 0 && is_before(item, q->items[(at - 1) / 2]); at = (at - 1) / 2)
        q->items[at] = q->items[(at - 1) / 2];
    q->items[at] = item;
}

static void sift_down(struct vdisk_queue *q, size_t at)
{
    struct vdisk_waiting *item = q->items[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= q->n)
            break;
        if (child + 1 < q->n && is_before(q->items[child + 1], q->items[child]))
            child++;
        if (!is_before(q->items[child], item))
            break;
        q->items[at] = q->items[child];
        at = child;
    }
    q->items[at] = item;
}

void vdisk_queue_put(struct vdisk_queue *q, struct vdisk_waiting *waiting)
{
    waiting->order = q->next_order++;
    *ARR_PUSH(q->items, q->n, q->cap) = waiting;
    sift_up(q, q->n - 1);
}

struct vdisk_waiting *vdisk_queue_first(const struct vdisk_queue *q)
{
    return q->n ? q->items[0] : NULL;
}

void vdisk_queue_take_first(struct vdisk_queue *q)
{
    assert(q->n > 0);
    q->items[0] = q->items[--q->n];
    if (q->n > 0)
        sift_down(q, 0);
}

void vdisk_queue_each(struct vdisk_queue *q,
                      void (*change)(struct vdisk_waiting *waiting, void *context), void *context)
{
    for (size_t i = 0; i < q->n; i++)
        change(q->items[i], context);
    for (size_t i = q->n / 2; i-- > 0;)
        sift_down(q, i);
}
