#include "load/seconds.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"

// Before each channel's encoded histogram.
struct pack_head {
    int64_t rows;
    int64_t failed;
    int32_t channel;
    int32_t len;
};

void seconds_init(struct seconds *s, int n_channels)
{
    *s = (struct seconds){.n_channels = n_channels};
    s->recent = mem_calloc(1, sizeof(*s->recent));
    hist_init(s->recent);
    atomic_init(&s->slow_floor, -1);
}

void seconds_release(struct seconds *s)
{
    for (int i = 0; i < SECONDS_OPEN; i++)
        tally_free(s->open[i]);
    for (int i = 0; i < s->n; i++)
        free(s->items[i].packed);
    free(s->items);
    free(s->recent);
    slowest_release(&s->slowest);
    *s = (struct seconds){0};
}

// ---- packing

static int compare_slots(const void *a, const void *b)
{
    uint32_t x = ((const struct tally_slot *)a)->key;
    uint32_t y = ((const struct tally_slot *)b)->key;

    return (x > y) - (x < y);
}

static void pack_channel(struct str *out, const struct tally *t, int channel,
                         const struct tally_slot *slots, int n)
{
    const struct tally_channel *c = &t->channels[channel];
    struct hist_sparse sparse = {
        .m = c->m,
        .n = n,
        .bucket = mem_calloc((size_t)n, sizeof(*sparse.bucket)),
        .counts = mem_calloc((size_t)n, sizeof(*sparse.counts)),
    };
    struct pack_head head = {.rows = c->rows, .failed = c->failed, .channel = channel};
    size_t at = out->len;

    for (int i = 0; i < n; i++) {
        sparse.bucket[i] = (uint16_t)slots[i].key;
        sparse.counts[i] = slots[i].count;
    }
    str_addn(out, (const char *)&head, sizeof(head));
    hist_encode(&sparse, out);
    head.len = (int32_t)(out->len - at - sizeof(head));
    memcpy(out->buf + at, &head, sizeof(head));
    hist_sparse_release(&sparse);
}

static void pack(struct second *second, const struct tally *t)
{
    struct tally_slot *used = mem_calloc(t->n_used, sizeof(*used));
    struct str out = STR_INIT;
    int n = 0;

    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].count > 0)
            used[n++] = t->slots[i];
    assert((uint32_t)n == t->n_used);
    qsort(used, (size_t)n, sizeof(*used), compare_slots);
    for (int begin = 0, end; begin < n; begin = end) {
        for (end = begin; end < n && used[end].key >> 16 == used[begin].key >> 16;)
            end++;
        pack_channel(&out, t, (int)(used[begin].key >> 16), &used[begin], end - begin);
    }
    free(used);

    assert(!second->packed && out.len <= INT_MAX);
    second->done = t->done;
    second->errors = t->errors;
    second->lock_wait_ns = t->lock_wait_ns;
    second->packed_len = (int)out.len;
    if (out.len > 0) { // exactly as long: these bytes stay to the end of the run
        second->packed = mem_resize(NULL, out.len, 1);
        memcpy(second->packed, out.buf, out.len);
    }
    str_release(&out);
}

static void unpack_channel(void *arg, int channel, int64_t rows, int64_t failed,
                           const struct hist_sparse *hist)
{
    struct tally *t = arg;

    assert(t->channels[channel].m.count == 0);
    t->channels[channel] = (struct tally_channel){.m = hist->m, .rows = rows, .failed = failed};
    for (int i = 0; i < hist->n; i++)
        tally_count(t, channel, hist->bucket[i], hist->counts[i]);
}

static void unpack(struct seconds *s, int t_s, struct tally *t)
{
    struct second *second = &s->items[t_s];

    t->done = second->done;
    t->errors = second->errors;
    t->lock_wait_ns = second->lock_wait_ns;
    seconds_read(s, t_s, unpack_channel, t);
    seconds_forget(s, t_s);
}

void seconds_read(const struct seconds *s, int t, seconds_fn *fn, void *arg)
{
    assert(t >= 0 && t < s->n);
    const char *p = s->items[t].packed;
    const char *end = p + s->items[t].packed_len;

    while (p < end) {
        struct pack_head head;
        struct hist_sparse hist;
        memcpy(&head, p, sizeof(head));
        p += sizeof(head);
        int rc = hist_decode(&hist, p, head.len);
        assert(rc == 0); // written by pack_channel
        (void)rc;
        p += head.len;
        fn(arg, head.channel, head.rows, head.failed, &hist);
        hist_sparse_release(&hist);
    }
    assert(p == end);
}

void seconds_forget(struct seconds *s, int t)
{
    assert(t >= 0 && t < s->n);
    free(s->items[t].packed);
    s->items[t].packed = NULL;
    s->items[t].packed_len = 0;
}

// ---- merging

static struct tally *move_to_front(struct seconds *s, int i)
{
    struct tally *t = s->open[i];

    memmove(&s->open[1], &s->open[0], (size_t)i * sizeof(s->open[0]));
    s->open[0] = t;
    return t;
}

// The tally of a second, opened at the cost of the one not used for longest.
static struct tally *open_second(struct seconds *s, int t_s)
{
    const int last = SECONDS_OPEN - 1;

    for (int i = 0; i < SECONDS_OPEN && s->open[i]; i++)
        if (s->open[i]->second == t_s)
            return move_to_front(s, i);
    while (s->n <= t_s)
        (void)ARR_PUSH(s->items, s->n, s->cap);

    struct tally *t = s->open[last];
    if (t)
        pack(&s->items[t->second], t);
    else
        t = s->open[last] = tally_new(s->n_channels);
    tally_clear(t);
    t->second = t_s;
    unpack(s, t_s, t);
    return move_to_front(s, last);
}

static void add_recent(struct seconds *s, const struct tally *t)
{
    const struct hist_moments *m = &t->channels[TALLY_LATENCY].m;
    struct hist *to = s->recent;

    for (uint32_t i = 0; m->count > 0 && i < t->n_slots; i++)
        if (t->slots[i].count > 0 && t->slots[i].key >> 16 == TALLY_LATENCY)
            to->counts[t->slots[i].key & 0xffff] += t->slots[i].count;
    to->m.count += m->count;
    to->m.min_ns = m->min_ns < to->m.min_ns ? m->min_ns : to->m.min_ns;
    to->m.max_ns = m->max_ns > to->m.max_ns ? m->max_ns : to->m.max_ns;
}

void seconds_add(struct seconds *s, const struct tally *t)
{
    slowest_merge(&s->slowest, &t->slowest);
    atomic_store_explicit(&s->slow_floor, slowest_floor_ns(&s->slowest), memory_order_relaxed);
    if (t->second == TALLY_LATE || (t->n_used == 0 && t->errors == 0 && t->lock_wait_ns == 0))
        return;
    add_recent(s, t);
    tally_add(open_second(s, t->second), t);
}

bool seconds_take_recent(struct seconds *s, int64_t *p50_ns, int64_t *p99_ns)
{
    if (s->recent->m.count == 0)
        return false;
    *p50_ns = hist_quantile(s->recent, 0.5);
    *p99_ns = hist_quantile(s->recent, 0.99);
    hist_clear(s->recent);
    return true;
}

void seconds_pack(struct seconds *s)
{
    for (int i = 0; i < SECONDS_OPEN; i++) {
        if (s->open[i])
            pack(&s->items[s->open[i]->second], s->open[i]);
        tally_free(s->open[i]);
        s->open[i] = NULL;
    }
}
