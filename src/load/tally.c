#include "load/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

_Static_assert(HIST_BUCKETS <= 1 << 16, "a key holds the bucket in 16 bits");

#define SLOTS_START_LOG2 6

static void slots_alloc(struct tally *t, int log2)
{
    t->n_slots = 1U << log2;
    t->shift = 32 - log2;
    t->slots = mem_calloc_lines(t->n_slots, sizeof(*t->slots));
}

struct tally *tally_new(int n_channels)
{
    assert(n_channels >= TALLY_STATEMENTS && n_channels <= 1 << 16);
    struct tally *t = mem_calloc_lines(1, sizeof(*t) + (size_t)n_channels * sizeof(t->channels[0]));
    t->n_channels = n_channels;
    slots_alloc(t, SLOTS_START_LOG2);
    for (int i = 0; i < n_channels; i++)
        t->channels[i].m.min_ns = INT64_MAX;
    return t;
}

void tally_free(struct tally *t)
{
    if (!t)
        return;
    slowest_release(&t->slowest);
    free(t->slots);
    free(t);
}

void tally_clear(struct tally *t)
{
    if (t->n_used > 0)
        memset(t->slots, 0, t->n_slots * sizeof(*t->slots));
    t->n_used = 0;
    for (int i = 0; i < t->n_channels; i++)
        t->channels[i] = (struct tally_channel){.m.min_ns = INT64_MAX};
    t->next = NULL;
    t->second = 0;
    t->done = t->errors = t->lock_wait_ns = 0;
    slowest_clear(&t->slowest);
}

void tally_grow(struct tally *t)
{
    struct tally_slot *old = t->slots;
    uint32_t n_old = t->n_slots;
    uint32_t n_used = t->n_used;

    slots_alloc(t, 32 - t->shift + 1);
    t->n_used = 0;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].count > 0)
            tally_count(t, (int)(old[i].key >> 16), (int)(old[i].key & 0xffff), old[i].count);
    assert(t->n_used == n_used);
    free(old);
}

static void moments_add(struct hist_moments *to, const struct hist_moments *from)
{
    to->count += from->count;
    to->min_ns = from->min_ns < to->min_ns ? from->min_ns : to->min_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    to->sum_ns += from->sum_ns;
    to->sum_sq += from->sum_sq;
}

void tally_add(struct tally *to, const struct tally *from)
{
    assert(to != from && to->n_channels == from->n_channels);
    to->done += from->done;
    to->errors += from->errors;
    to->lock_wait_ns += from->lock_wait_ns;
    for (int i = 0; i < from->n_channels; i++) {
        moments_add(&to->channels[i].m, &from->channels[i].m);
        to->channels[i].rows += from->channels[i].rows;
        to->channels[i].failed += from->channels[i].failed;
    }
    for (uint32_t i = 0; from->n_used > 0 && i < from->n_slots; i++)
        if (from->slots[i].count > 0)
            tally_count(to, (int)(from->slots[i].key >> 16), (int)(from->slots[i].key & 0xffff),
                        from->slots[i].count);
}
