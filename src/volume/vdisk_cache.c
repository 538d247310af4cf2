#include "volume/vdisk_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"

struct pending {
    uint64_t seq;
    uint64_t offset;
    size_t n;
    uint8_t *bytes;
};

// A block that pending writes touched.
struct block {
    uint64_t number;
    uint64_t last_seq;  // of the newest of them
    uint8_t *durable;   // VDISK_BLOCK bytes
    struct block *next; // in its bucket
};

struct vdisk_cache {
    struct vdisk_medium medium;
    uint64_t limit_bytes;
    struct pending *writes; // a queue: from first, ascending in seq
    size_t n_writes, cap_writes, first;
    uint64_t pending_bytes;
    struct block **buckets;
    size_t n_buckets; // a power of two
    size_t n_blocks;
    struct block *spare; // released ones with their memory, so that writes seldom allocate
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

bool vdisk_fate_coin(uint64_t seed, uint64_t seq, uint64_t unit)
{
    return mix(mix(mix(seed + 0x9e3779b97f4a7c15ULL) ^ seq) + unit) & 1;
}

struct vdisk_cache *vdisk_cache_new(const struct vdisk_medium *medium, uint64_t limit_bytes)
{
    struct vdisk_cache *c = mem_calloc(1, sizeof(*c));

    c->medium = *medium;
    c->limit_bytes = limit_bytes;
    c->n_buckets = 1024;
    c->buckets = mem_calloc(c->n_buckets, sizeof(struct block *));
    return c;
}

static void blocks_free(struct block *block)
{
    while (block) {
        struct block *next = block->next;
        free(block->durable);
        free(block);
        block = next;
    }
}

static void forget_all(struct vdisk_cache *c)
{
    for (size_t i = c->first; i < c->n_writes; i++)
        free(c->writes[i].bytes);
    c->first = c->n_writes = 0;
    c->pending_bytes = 0;
    for (size_t i = 0; c->n_blocks > 0 && i < c->n_buckets; i++) {
        while (c->buckets[i]) {
            struct block *block = c->buckets[i];
            c->buckets[i] = block->next;
            block->next = c->spare;
            c->spare = block;
            c->n_blocks--;
        }
    }
    assert(c->n_blocks == 0);
}

void vdisk_cache_free(struct vdisk_cache *c)
{
    if (!c)
        return;
    forget_all(c);
    blocks_free(c->spare);
    free(c->buckets);
    free(c->writes);
    free(c);
}

// The place of the pointer to a block in its bucket's list; *place is NULL when there is none.
static struct block **block_place(const struct vdisk_cache *c, uint64_t number)
{
    struct block **place = &c->buckets[mix(number) & (c->n_buckets - 1)];

    while (*place && (*place)->number != number)
        place = &(*place)->next;
    return place;
}

static void grow(struct vdisk_cache *c)
{
    struct block **old = c->buckets;
    size_t n_old = c->n_buckets;

    c->n_buckets *= 4;
    c->buckets = mem_calloc(c->n_buckets, sizeof(struct block *));
    for (size_t i = 0; i < n_old; i++) {
        while (old[i]) {
            struct block *block = old[i];
            old[i] = block->next;
            struct block **place = &c->buckets[mix(block->number) & (c->n_buckets - 1)];
            block->next = *place;
            *place = block;
        }
    }
    free(old);
}

static struct block *block_new(struct vdisk_cache *c, uint64_t number)
{
    struct block *block = c->spare;

    if (block) {
        c->spare = block->next;
    } else {
        block = mem_calloc(1, sizeof(*block));
        block->durable = mem_calloc(1, VDISK_BLOCK);
    }
    block->number = number;
    return block;
}

static void block_release(struct vdisk_cache *c, struct block **place)
{
    struct block *block = *place;

    *place = block->next;
    block->next = c->spare;
    c->spare = block;
    c->n_blocks--;
}

static uint64_t first_block(uint64_t offset)
{
    return offset / VDISK_BLOCK;
}

static uint64_t end_block(uint64_t offset, uint64_t n)
{
    return (offset + n + VDISK_BLOCK - 1) / VDISK_BLOCK;
}

static uint64_t charge(const struct pending *write)
{
    return (end_block(write->offset, write->n) - first_block(write->offset)) * VDISK_BLOCK;
}

// Keeps what is durable under the blocks of a range, before it is written over.
static int keep_durable(struct vdisk_cache *c, uint64_t seq, uint64_t offset, size_t n)
{
    for (uint64_t number = first_block(offset); number < end_block(offset, n); number++) {
        struct block **place = block_place(c, number);
        if (*place) {
            (*place)->last_seq = seq;
            continue;
        }
        struct block *block = block_new(c, number);
        int error =
            c->medium.read(c->medium.context, number * VDISK_BLOCK, block->durable, VDISK_BLOCK);
        if (error < 0) {
            block->next = c->spare;
            c->spare = block;
            return error;
        }
        block->last_seq = seq;
        block->next = NULL;
        *place = block;
        if (++c->n_blocks > 2 * c->n_buckets)
            grow(c);
    }
    return 0;
}

int vdisk_cache_write(struct vdisk_cache *c, uint64_t seq, uint64_t offset, const void *bytes,
                      size_t n)
{
    assert(n > 0);
    assert(c->first == c->n_writes || seq > c->writes[c->n_writes - 1].seq);
    if (c->limit_bytes > 0) {
        int error = keep_durable(c, seq, offset, n);
        if (error < 0)
            return error;
    }
    int error = c->medium.write(c->medium.context, offset, bytes, n);
    if (error < 0 || c->limit_bytes == 0)
        return error;
    if (c->first > 1024 && c->first > c->n_writes / 2) {
        c->n_writes -= c->first;
        memmove(c->writes, c->writes + c->first, c->n_writes * sizeof(*c->writes));
        c->first = 0;
    }
    struct pending *write = ARR_PUSH(c->writes, c->n_writes, c->cap_writes);
    *write =
        (struct pending){.seq = seq, .offset = offset, .n = n, .bytes = mem_resize(NULL, n, 1)};
    memcpy(write->bytes, bytes, n);
    c->pending_bytes += charge(write);
    return 0;
}

uint64_t vdisk_cache_overflow(const struct vdisk_cache *c)
{
    uint64_t bytes = c->pending_bytes;
    uint64_t seq = 0;

    for (size_t i = c->first; bytes > c->limit_bytes; i++) {
        assert(i < c->n_writes);
        bytes -= charge(&c->writes[i]);
        seq = c->writes[i].seq;
    }
    return seq;
}

uint64_t vdisk_cache_newest(const struct vdisk_cache *c, uint64_t offset, uint64_t n)
{
    for (size_t i = c->n_writes; i-- > c->first;) {
        const struct pending *write = &c->writes[i];
        if (write->offset < offset + n && offset < write->offset + write->n)
            return write->seq;
    }
    return 0;
}

// The part of a write that lies in a block becomes durable there.
static void settle_block(struct vdisk_cache *c, const struct pending *write, uint64_t number,
                         uint64_t seq)
{
    struct block **place = block_place(c, number);

    if (!*place) // its newest write is durable, so this one was settled with it
        return;
    if ((*place)->last_seq <= seq) {
        block_release(c, place);
        return;
    }
    uint64_t start = number * VDISK_BLOCK;
    uint64_t from = write->offset > start ? write->offset : start;
    uint64_t end = write->offset + write->n;
    uint64_t to = end < start + VDISK_BLOCK ? end : start + VDISK_BLOCK;
    memcpy((*place)->durable + (from - start), write->bytes + (from - write->offset), to - from);
}

size_t vdisk_cache_settle(struct vdisk_cache *c, uint64_t seq)
{
    size_t n = 0;

    // Everything, and so much that a walk over the table is shorter than one over the writes.
    if (c->n_blocks > c->n_buckets / 8 && c->writes[c->n_writes - 1].seq <= seq) {
        n = c->n_writes - c->first;
        forget_all(c);
        return n;
    }
    while (c->first < c->n_writes && c->writes[c->first].seq <= seq) {
        struct pending *write = &c->writes[c->first];
        for (uint64_t b = first_block(write->offset); b < end_block(write->offset, write->n); b++)
            settle_block(c, write, b, seq);
        c->pending_bytes -= charge(write);
        free(write->bytes);
        c->first++;
        n++;
    }
    return n;
}

int vdisk_cache_zero(struct vdisk_cache *c, uint64_t offset, uint64_t n)
{
    assert(vdisk_cache_newest(c, offset, n) == 0);
    // A block at the edge may have pending neighbours in it; what is durable there is zero too.
    for (int edge = 0; edge < 2; edge++) {
        uint64_t number = edge ? end_block(offset, n) - 1 : first_block(offset);
        struct block *block = *block_place(c, number);
        uint64_t start = number * VDISK_BLOCK;
        uint64_t from = offset > start ? offset : start;
        uint64_t to = offset + n < start + VDISK_BLOCK ? offset + n : start + VDISK_BLOCK;
        if (block && to > from)
            memset(block->durable + (from - start), 0, to - from);
    }
    return c->medium.zero(c->medium.context, offset, n);
}

// ---- the cut

// Writes the units of a write that survive; `whole` units from its start when not by coin.
static int survive(const struct vdisk_cache *c, const struct pending *write,
                   const struct vdisk_fate *fate, bool by_coin, uint64_t whole,
                   struct vdisk_cut *cut)
{
    for (size_t done = 0; done < write->n;) {
        uint64_t at = write->offset + done;
        size_t n = fate->unit ? fate->unit - at % fate->unit : write->n;
        uint64_t unit = fate->unit ? at / fate->unit : 0;
        n = n < write->n - done ? n : write->n - done;
        bool survives = by_coin ? vdisk_fate_coin(fate->seed, write->seq, unit) : whole > 0;
        if (survives) {
            int error = c->medium.write(c->medium.context, at, write->bytes + done, n);
            if (error < 0)
                return error;
            cut->survived_units++;
        } else {
            cut->lost_units++;
        }
        whole -= whole > 0;
        done += n;
    }
    return 0;
}

static int put_durable_back(const struct vdisk_cache *c)
{
    for (size_t i = 0; i < c->n_buckets; i++) {
        for (const struct block *block = c->buckets[i]; block; block = block->next) {
            int error = c->medium.write(c->medium.context, block->number * VDISK_BLOCK,
                                        block->durable, VDISK_BLOCK);
            if (error < 0)
                return error;
        }
    }
    return 0;
}

int vdisk_cache_cut(struct vdisk_cache *c, uint64_t cut_seq, const struct vdisk_fate *fate,
                    struct vdisk_cut *ret)
{
    size_t n = c->n_writes - c->first;
    struct vdisk_cut cut = {.pending_writes = n};
    uint64_t choice = mix(mix(fate->seed + 1) ^ cut_seq);
    size_t prefix = n ? choice % (n + 1) : 0; // writes that survive whole in VDISK_PREFIX
    int error = put_durable_back(c);

    for (size_t i = 0; i < n && error == 0; i++) {
        const struct pending *write = &c->writes[c->first + i];
        uint64_t units = fate->unit ? (write->offset + write->n - 1) / fate->unit -
                                          write->offset / fate->unit + 1
                                    : 1;
        uint64_t whole = 0;
        if (fate->survivors == VDISK_KEEP || (fate->survivors == VDISK_PREFIX && i < prefix))
            whole = units;
        else if (fate->survivors == VDISK_PREFIX && i == prefix)
            whole = mix(choice) % units;
        cut.pending_bytes += write->n;
        error = survive(c, write, fate, fate->survivors == VDISK_RANDOM, whole, &cut);
    }
    forget_all(c);
    *ret = cut;
    return error;
}

uint64_t vdisk_cache_pending_bytes(const struct vdisk_cache *c)
{
    return c->pending_bytes;
}

uint64_t vdisk_cache_pending_writes(const struct vdisk_cache *c)
{
    return c->n_writes - c->first;
}
