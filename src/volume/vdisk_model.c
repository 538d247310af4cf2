#include "volume/vdisk_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"

#define MIB          (1LL << 20)
#define ZONES        16
#define AHEAD_BYTES  MIB        // read ahead of a sequential stream
#define DESTAGE_PART 4          // a full cache is written out by this part of it
#define MEAN_ROOT    (8.0 / 15) // of the root of the distance of two random places
#define MEAN_READ    4096

// Round numbers of the data sheets of such disks.
static const struct {
    const char *name;
    struct vdisk_model_spec spec;
} models[] = {
    {"none", {.cache_bytes = 256 * MIB}},
    {"hdd-7200",
     {.rpm = 7200,
      .seek_track_ns = 600 * NS_PER_US,
      .seek_full_ns = 16 * NS_PER_MS,
      .rate = 200 * MIB,
      .rate_inner = 100 * MIB,
      .link_rate = 550 * MIB,
      .channels = 1,
      .cache_bytes = 64 * MIB}},
    {"hdd-10k",
     {.rpm = 10000,
      .seek_track_ns = 300 * NS_PER_US,
      .seek_full_ns = 9 * NS_PER_MS,
      .rate = 170 * MIB,
      .rate_inner = 110 * MIB,
      .link_rate = 550 * MIB,
      .channels = 1,
      .cache_bytes = 64 * MIB}},
    {"hdd-15k",
     {.rpm = 15000,
      .seek_track_ns = 200 * NS_PER_US,
      .seek_full_ns = 7 * NS_PER_MS,
      .rate = 200 * MIB,
      .rate_inner = 130 * MIB,
      .link_rate = 550 * MIB,
      .channels = 1,
      .cache_bytes = 64 * MIB}},
    {"ssd-sata",
     {.read_ns = 100 * NS_PER_US,
      .flush_ns = 1 * NS_PER_MS,
      .rate = 500 * MIB,
      .link_rate = 550 * MIB,
      .channels = 8,
      .cache_bytes = 64 * MIB}},
};

const char *const vdisk_model_names[] = {"none",    "hdd-7200", "hdd-10k",
                                         "hdd-15k", "ssd-sata", NULL};

struct channel {
    int64_t free_ns;
    int64_t position; // of the arm: where its last access ended
};

struct extent {
    int64_t offset;
    int64_t length;
};

// Room in the cache that writing out makes.
struct room {
    int64_t at_ns;
    int64_t bytes;
};

struct vdisk_model {
    struct vdisk_model_spec spec;
    int64_t size;
    bool flush_is_free;
    int64_t period_ns; // of a turn
    int64_t phase_ns;  // where the platter stood at time 0
    struct channel channels[VDISK_CHANNELS_MAX];
    int n_channels;
    int64_t bus_free_ns;   // solid state: the shared transfer
    int64_t link_free_ns;  // into the cache
    int64_t stream_offset; // where the last read ended; -1: none
    int64_t stream_ns;     // when the medium was there
    struct extent *dirty;  // in the cache, oldest first
    size_t n_dirty, cap_dirty;
    int64_t dirty_bytes; // of the extents above, and of rooms still to come
    struct room *rooms;  // in time order, from first_room
    size_t n_rooms, cap_rooms, first_room;
};

const struct vdisk_model_spec *vdisk_model_find(const char *name)
{
    static_assert(ARR_LEN(models) + 1 == ARR_LEN(vdisk_model_names), "every model is listed");
    for (size_t i = 0; i < ARR_LEN(models); i++)
        if (strcmp(name, models[i].name) == 0)
            return &models[i].spec;
    return NULL;
}

struct vdisk_model *vdisk_model_new(const struct vdisk_model_spec *spec, int64_t size,
                                    bool flush_is_free, uint64_t seed)
{
    struct vdisk_model *m = mem_calloc(1, sizeof(*m));
    struct rng rng;

    assert(size > 0);
    assert(spec->channels >= 0 && spec->channels <= VDISK_CHANNELS_MAX);
    assert(spec->rpm == 0 || spec->rate > 0); // else a track holds nothing
    m->spec = *spec;
    m->size = size;
    m->flush_is_free = flush_is_free;
    if (m->spec.capacity < size)
        m->spec.capacity = size;
    if (m->spec.rate_inner == 0)
        m->spec.rate_inner = m->spec.rate;
    m->n_channels = spec->channels ? (int)spec->channels : 1;
    if (spec->rpm) {
        m->period_ns = 60 * NS_PER_S / spec->rpm;
        rng_init(&rng, seed, 0, RNG_DRIVER);
        m->phase_ns = rng_range(&rng, 0, m->period_ns - 1);
    }
    vdisk_model_reset(m);
    return m;
}

void vdisk_model_free(struct vdisk_model *m)
{
    if (!m)
        return;
    free(m->dirty);
    free(m->rooms);
    free(m);
}

void vdisk_model_set_flush_is_free(struct vdisk_model *m, bool is_free)
{
    m->flush_is_free = is_free;
}

void vdisk_model_reset(struct vdisk_model *m)
{
    memset(m->channels, 0, sizeof(m->channels));
    m->bus_free_ns = m->link_free_ns = m->stream_ns = 0;
    m->stream_offset = -1;
    m->n_dirty = m->n_rooms = m->first_room = 0;
    m->dirty_bytes = 0;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Bytes at a rate; the product does not fit 64 bits for gigabytes.
static int64_t transfer_ns(int64_t bytes, int64_t rate)
{
    return rate ? (int64_t)((__int128)bytes * NS_PER_S / rate) : 0;
}

// Addresses begin outside. Zones are equal parts of the capacity.
static int64_t zone_of(const struct vdisk_model *m, int64_t offset)
{
    return (int64_t)((__int128)offset * ZONES / m->spec.capacity);
}

static int64_t zone_rate(const struct vdisk_model *m, int64_t offset)
{
    int64_t zone = zone_of(m, offset);

    return m->spec.rate - (m->spec.rate - m->spec.rate_inner) * zone / (ZONES - 1);
}

static int64_t seek_ns(const struct vdisk_model *m, int64_t from, int64_t to)
{
    if (from == to)
        return 0;
    double distance = (double)llabs(to - from) / (double)m->spec.capacity;
    double more = (double)(m->spec.seek_full_ns - m->spec.seek_track_ns);
    return m->spec.seek_track_ns + (int64_t)(more * sqrt(distance));
}

// Sectors lie along one spiral per zone, so that a long transfer never waits for a turn.
static int64_t turn_wait_ns(const struct vdisk_model *m, int64_t offset, int64_t now_ns)
{
    int64_t zone = zone_of(m, offset);
    int64_t start = (int64_t)(((__int128)zone * m->spec.capacity + ZONES - 1) / ZONES);
    int64_t track = (int64_t)((__int128)zone_rate(m, offset) * m->period_ns / NS_PER_S);
    int64_t sector_ns = (int64_t)((__int128)((offset - start) % track) * m->period_ns / track);
    int64_t head_ns = (now_ns + m->phase_ns) % m->period_ns;

    int64_t wait_ns = (sector_ns - head_ns + m->period_ns) % m->period_ns;
    // Where the head stands just so, rounding must not cost a turn.
    return wait_ns > m->period_ns - m->period_ns / 1000 ? 0 : wait_ns;
}

static struct channel *first_free(struct vdisk_model *m)
{
    struct channel *first = &m->channels[0];

    for (int i = 1; i < m->n_channels; i++)
        if (m->channels[i].free_ns < first->free_ns)
            first = &m->channels[i];
    return first;
}

// One access of the medium that starts at earliest_ns or when a channel is free.
static int64_t access_ns(struct vdisk_model *m, int64_t offset, int64_t length, int64_t access,
                         int64_t earliest_ns)
{
    struct channel *channel = first_free(m);
    int64_t now_ns = later(earliest_ns, channel->free_ns);

    if (m->spec.rpm) {
        now_ns += access + seek_ns(m, channel->position, offset);
        now_ns += turn_wait_ns(m, offset, now_ns);
        now_ns += transfer_ns(length, zone_rate(m, offset));
    } else {
        // The access time has the transfer in it, as far as it goes: what is configured for a
        // small read is what a small read takes.
        int64_t transfer = transfer_ns(length, m->spec.rate);
        int64_t begin_ns = later(now_ns, now_ns + access - transfer);
        if (transfer) {
            begin_ns = later(begin_ns, m->bus_free_ns);
            m->bus_free_ns = begin_ns + transfer;
        }
        now_ns = later(now_ns + access, begin_ns + transfer);
    }
    channel->position = offset + length;
    channel->free_ns = now_ns;
    return now_ns;
}

// Goes on where the read before ended: the medium has been read ahead since, as far as its buffer
// holds.
static int64_t read_on_ns(struct vdisk_model *m, int64_t offset, int64_t length, int64_t arrival_ns)
{
    int64_t rate = m->spec.rpm ? zone_rate(m, offset) : m->spec.rate;
    int64_t medium_ns = later(m->stream_ns, arrival_ns - transfer_ns(AHEAD_BYTES, rate));
    int64_t done_ns = medium_ns + transfer_ns(length, rate);

    if (m->spec.rpm) {
        struct channel *channel = first_free(m);
        // Another access took the arm away: it must come back.
        if (channel->position != offset)
            return -1;
        channel->position = offset + length;
        channel->free_ns = later(channel->free_ns, done_ns);
    } else {
        done_ns = later(done_ns, m->bus_free_ns + transfer_ns(length, rate));
        m->bus_free_ns = done_ns;
    }
    m->stream_ns = done_ns;
    return later(done_ns, arrival_ns + transfer_ns(length, m->spec.link_rate));
}

static int64_t read_ns(struct vdisk_model *m, int64_t offset, int64_t length, int64_t arrival_ns)
{
    int64_t done_ns = -1;

    if (offset == m->stream_offset)
        done_ns = read_on_ns(m, offset, length, arrival_ns);
    if (done_ns < 0) {
        done_ns = access_ns(m, offset, length, m->spec.read_ns, arrival_ns);
        m->stream_ns = done_ns;
    }
    m->stream_offset = offset + length;
    return done_ns;
}

// ---- the write cache

static void take_room(struct vdisk_model *m, int64_t now_ns)
{
    while (m->first_room < m->n_rooms && m->rooms[m->first_room].at_ns <= now_ns)
        m->dirty_bytes -= m->rooms[m->first_room++].bytes;
    if (m->first_room == m->n_rooms)
        m->first_room = m->n_rooms = 0;
    assert(m->dirty_bytes >= 0);
}

static int by_offset(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

// Writes the n oldest extents to the medium in one sweep upwards from where the arm stands;
// returns when the last is there. What was written several times is written once.
static int64_t write_out_ns(struct vdisk_model *m, size_t n, int64_t earliest_ns)
{
    int64_t done_ns = earliest_ns;
    size_t first = 0;

    if (m->first_room < m->n_rooms)
        done_ns = later(done_ns, m->rooms[m->n_rooms - 1].at_ns);
    qsort(m->dirty, n, sizeof(*m->dirty), by_offset);
    while (first < n && m->dirty[first].offset < m->channels[0].position)
        first++;
    for (size_t k = 0; k < n;) {
        size_t at = (first + k) % n;
        struct extent whole = m->dirty[at];
        int64_t bytes = whole.length;
        for (k++; k < n && at + 1 < n && m->dirty[at + 1].offset <= whole.offset + whole.length;
             k++) {
            at++;
            int64_t end = m->dirty[at].offset + m->dirty[at].length;
            bytes += m->dirty[at].length;
            whole.length = later(whole.length, end - whole.offset);
        }
        done_ns = later(done_ns, access_ns(m, whole.offset, whole.length, 0, earliest_ns));
        *ARR_PUSH(m->rooms, m->n_rooms, m->cap_rooms) = (struct room){done_ns, bytes};
    }
    m->n_dirty -= n;
    memmove(m->dirty, m->dirty + n, m->n_dirty * sizeof(*m->dirty));
    return done_ns;
}

// Writes the oldest part of the cache out.
static void destage(struct vdisk_model *m, int64_t now_ns)
{
    int64_t part = 0;
    size_t n = 0;

    while (n < m->n_dirty && part < m->spec.cache_bytes / DESTAGE_PART)
        part += m->dirty[n++].length;
    if (n > 0)
        write_out_ns(m, n, now_ns);
}

// Makes room for length bytes; when it is there. Writing out begins a part before the cache is
// full, so that the medium works while the link does.
static int64_t room_ns(struct vdisk_model *m, int64_t length, int64_t now_ns)
{
    int64_t limit = m->spec.cache_bytes;

    take_room(m, now_ns);
    if (m->first_room == m->n_rooms && m->dirty_bytes + length > limit - limit / DESTAGE_PART)
        destage(m, now_ns);
    while (m->dirty_bytes > 0 && m->dirty_bytes + length > limit) {
        if (m->first_room == m->n_rooms)
            destage(m, now_ns);
        assert(m->first_room < m->n_rooms);
        now_ns = later(now_ns, m->rooms[m->first_room].at_ns);
        take_room(m, now_ns);
    }
    return now_ns;
}

static int64_t write_ns(struct vdisk_model *m, int64_t offset, int64_t length, int64_t arrival_ns)
{
    if (m->spec.cache_bytes == 0)
        return access_ns(m, offset, length, m->spec.write_ns, arrival_ns);
    bool costs_nothing = !m->spec.rpm && !m->spec.rate; // to write out, so the cache is never full
    int64_t now_ns = costs_nothing ? arrival_ns : room_ns(m, length, arrival_ns);
    now_ns = later(now_ns, m->link_free_ns) + transfer_ns(length, m->spec.link_rate);
    m->link_free_ns = now_ns;
    if (costs_nothing)
        return now_ns + m->spec.write_ns;
    *ARR_PUSH(m->dirty, m->n_dirty, m->cap_dirty) = (struct extent){offset, length};
    m->dirty_bytes += length;
    return now_ns + m->spec.write_ns;
}

static int64_t flush_ns(struct vdisk_model *m, int64_t arrival_ns)
{
    int64_t done_ns = arrival_ns;

    if (m->flush_is_free)
        return arrival_ns;
    take_room(m, arrival_ns);
    if (m->first_room < m->n_rooms) // being written out already
        done_ns = m->rooms[m->n_rooms - 1].at_ns;
    if (m->n_dirty)
        done_ns = later(done_ns, write_out_ns(m, m->n_dirty, arrival_ns));
    return done_ns + m->spec.flush_ns;
}

static void forget(struct vdisk_model *m, int64_t offset, int64_t length)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->n_dirty; i++) {
        struct extent *e = &m->dirty[i];
        if (e->offset >= offset && e->offset + e->length <= offset + length)
            m->dirty_bytes -= e->length;
        else
            m->dirty[kept++] = *e;
    }
    m->n_dirty = kept;
}

int64_t vdisk_model_done_ns(struct vdisk_model *m, enum vdisk_op op, int64_t offset, int64_t length,
                            int64_t arrival_ns)
{
    assert(offset >= 0 && length >= 0 && offset + length <= m->size);
    int64_t done_ns = arrival_ns;

    switch (op) {
    case VDISK_READ:
        done_ns = read_ns(m, offset, length, arrival_ns);
        break;
    case VDISK_WRITE:
        done_ns = write_ns(m, offset, length, arrival_ns);
        break;
    case VDISK_FLUSH:
        done_ns = flush_ns(m, arrival_ns);
        break;
    case VDISK_DISCARD:
        forget(m, offset, length);
        break;
    case VDISK_OPS:
        assert(!"no operation");
    }
    assert(done_ns >= arrival_ns);
    return done_ns;
}

int64_t vdisk_model_dirty_bytes(struct vdisk_model *m, int64_t now_ns)
{
    take_room(m, now_ns);
    return m->dirty_bytes;
}

int64_t vdisk_model_claim_ns(const struct vdisk_model_spec *spec, enum vdisk_op op)
{
    int64_t mechanics_ns = 0;

    if (spec->rpm) {
        double more = (double)(spec->seek_full_ns - spec->seek_track_ns) * MEAN_ROOT;
        mechanics_ns = spec->seek_track_ns + (int64_t)more + 30 * NS_PER_S / spec->rpm;
    }
    switch (op) {
    case VDISK_READ:
        return spec->read_ns + mechanics_ns +
               (mechanics_ns || spec->read_ns ? transfer_ns(MEAN_READ, spec->rate) : 0);
    case VDISK_WRITE:
        return spec->write_ns + (spec->cache_bytes ? 0 : mechanics_ns);
    case VDISK_FLUSH:
        return spec->flush_ns;
    default:
        return 0;
    }
}
