// Requests that wait for the time of their reply: a heap by that time; of the same time in the
// order of arrival. Holds pointers only; no lock of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vdisk_waiting {
    int64_t due_ns;
    uint64_t order; // of arrival; set by the queue
};

struct vdisk_queue {
    struct vdisk_waiting **items;
    size_t n, cap;
    uint64_t next_order;
};

void vdisk_queue_release(struct vdisk_queue *queue); // it must be empty
void vdisk_queue_put(struct vdisk_queue *queue, struct vdisk_waiting *waiting);

// The one that is due first; NULL: none waits.
struct vdisk_waiting *vdisk_queue_first(const struct vdisk_queue *queue);
void vdisk_queue_take_first(struct vdisk_queue *queue);

// Calls change on every one that waits, which may set due_ns.
void vdisk_queue_each(struct vdisk_queue *queue,
                      void (*change)(struct vdisk_waiting *waiting, void *context), void *context);
