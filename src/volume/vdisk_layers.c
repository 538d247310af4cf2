#include "volume/vdisk_layers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "volume/vdisk_media.h"

#define CHUNK (64u * 1024) // the finer, the sparser what is copied
static_assert(CHUNK % VDISK_BLOCK == 0, "blocks are copied whole");

void vdisk_layers_init(struct vdisk_layers *l, int fd, uint64_t size)
{
    *l = (struct vdisk_layers){.fd = fd, .below_fd = -1, .size = size};
    assert(size % VDISK_BLOCK == 0);
}

static void drop_below(struct vdisk_layers *l)
{
    if (l->below_fd >= 0)
        close(l->below_fd);
    l->below_fd = -1;
    free(l->bits);
    l->bits = NULL;
}

void vdisk_layers_release(struct vdisk_layers *l)
{
    drop_below(l);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static size_t bits_size(const struct vdisk_layers *l)
{
    return l->size / VDISK_BLOCK / 8 + 1;
}

static bool is_above(const struct vdisk_layers *l, uint64_t block)
{
    return !l->bits || (l->bits[block / 8] >> block % 8 & 1);
}

// ---- reading and writing

static int layers_read(void *context, uint64_t offset, void *bytes, size_t n)
{
    struct vdisk_layers *l = context;
    struct vdisk_medium above = vdisk_media_of(&l->fd), below = vdisk_media_of(&l->below_fd);

    for (size_t done = 0; done < n;) {
        uint64_t at = offset + done;
        bool from_above = is_above(l, at / VDISK_BLOCK);
        uint64_t end = l->bits ? (at / VDISK_BLOCK + 1) * VDISK_BLOCK : offset + n;
        while (end < offset + n && is_above(l, end / VDISK_BLOCK) == from_above)
            end += VDISK_BLOCK;
        size_t part = end < offset + n ? (size_t)(end - at) : n - done;
        const struct vdisk_medium *medium = from_above ? &above : &below;
        int error = medium->read(medium->context, at, (char *)bytes + done, part);
        if (error < 0)
            return error;
        done += part;
    }
    return 0;
}

// A block that will be written in part is brought up before.
static int bring_up(struct vdisk_layers *l, uint64_t block)
{
    struct vdisk_medium above = vdisk_media_of(&l->fd);
    char bytes[VDISK_BLOCK];

    if (is_above(l, block))
        return 0;
    int error = layers_read(l, block * VDISK_BLOCK, bytes, sizeof(bytes));
    return error < 0 ? error
                     : above.write(above.context, block * VDISK_BLOCK, bytes, sizeof(bytes));
}

static int prepare(struct vdisk_layers *l, uint64_t offset, uint64_t n)
{
    int error = 0;

    if (!l->bits || n == 0)
        return 0;
    if (offset % VDISK_BLOCK)
        error = bring_up(l, offset / VDISK_BLOCK);
    if (error == 0 && (offset + n) % VDISK_BLOCK)
        error = bring_up(l, (offset + n) / VDISK_BLOCK);
    return error;
}

static void mark_above(struct vdisk_layers *l, uint64_t offset, uint64_t n)
{
    if (!l->bits || n == 0)
        return;
    for (uint64_t block = offset / VDISK_BLOCK; block <= (offset + n - 1) / VDISK_BLOCK; block++)
        l->bits[block / 8] |= (uint8_t)(1u << block % 8);
}

static int layers_write(void *context, uint64_t offset, const void *bytes, size_t n)
{
    struct vdisk_layers *l = context;
    struct vdisk_medium above = vdisk_media_of(&l->fd);
    int error = prepare(l, offset, n);

    if (error == 0)
        error = above.write(above.context, offset, bytes, n);
    if (error == 0)
        mark_above(l, offset, n);
    return error;
}

static int layers_zero(void *context, uint64_t offset, uint64_t n)
{
    struct vdisk_layers *l = context;
    struct vdisk_medium above = vdisk_media_of(&l->fd);
    int error = prepare(l, offset, n);

    if (error == 0)
        error = above.zero(above.context, offset, n);
    if (error == 0)
        mark_above(l, offset, n);
    return error;
}

struct vdisk_medium vdisk_layers_medium(struct vdisk_layers *l)
{
    return (struct vdisk_medium){layers_read, layers_write, layers_zero, l};
}

uint64_t vdisk_layers_next_data(const struct vdisk_layers *l, uint64_t offset, uint64_t chunk)
{
    uint64_t above = vdisk_media_next_data(l->fd, offset, chunk);
    uint64_t below = l->below_fd < 0 ? above : vdisk_media_next_data(l->below_fd, offset, chunk);

    return below < above ? below : above;
}

// ---- whole contents

// Copies what is not zero, a chunk at a time. to is empty.
static int copy(struct vdisk_layers *from, const struct vdisk_medium *to)
{
    struct vdisk_medium medium = vdisk_layers_medium(from);
    uint8_t *chunk = mem_calloc(CHUNK, 1);
    int error = 0;

    for (uint64_t at = 0; at < from->size && error == 0; at += CHUNK) {
        at = vdisk_layers_next_data(from, at, CHUNK);
        if (at >= from->size)
            break;
        size_t n = from->size - at < CHUNK ? (size_t)(from->size - at) : CHUNK;
        error = medium.read(medium.context, at, chunk, n);
        if (error == 0 && (chunk[0] || memcmp(chunk, chunk + 1, n - 1) != 0))
            error = to->write(to->context, at, chunk, n);
        if (from->beat)
            from->beat(from->beat_context);
    }
    free(chunk);
    return error;
}

// Memory for a layer; a negative errno.
static int new_layer(const struct vdisk_layers *l)
{
    int fd = vdisk_media_open(NULL, (int64_t)l->size, NULL);

    return fd < 0 ? -ENOMEM : fd;
}

int vdisk_layers_forget(struct vdisk_layers *l)
{
    if (l->below_fd < 0)
        return -ENOENT;
    int fd = new_layer(l);
    if (fd < 0)
        return fd;
    struct vdisk_medium medium = vdisk_media_of(&fd);
    int error = copy(l, &medium);
    if (error < 0) {
        close(fd);
        return error;
    }
    drop_below(l);
    close(l->fd);
    l->fd = fd;
    return 0;
}

int vdisk_layers_save(struct vdisk_layers *l)
{
    int error = l->below_fd >= 0 ? vdisk_layers_forget(l) : 0;

    if (error < 0)
        return error;
    int fd = new_layer(l);
    if (fd < 0)
        return fd;
    l->below_fd = l->fd;
    l->fd = fd;
    l->bits = mem_calloc(bits_size(l), 1);
    return 0;
}

int vdisk_layers_restore(struct vdisk_layers *l)
{
    if (l->below_fd < 0)
        return -ENOENT;
    if (ftruncate(l->fd, 0) < 0 || ftruncate(l->fd, (off_t)l->size) < 0)
        return -errno;
    memset(l->bits, 0, bits_size(l));
    return 0;
}

int vdisk_layers_write_to(struct vdisk_layers *l, int file_fd)
{
    struct vdisk_medium medium = vdisk_media_of(&file_fd);

    return ftruncate(file_fd, (off_t)l->size) < 0 ? -errno : copy(l, &medium);
}

int vdisk_layers_read_from(struct vdisk_layers *l, int file_fd)
{
    struct vdisk_layers file;
    struct vdisk_medium medium = vdisk_media_of(&l->fd);

    vdisk_layers_init(&file, file_fd, l->size);
    file.beat = l->beat;
    file.beat_context = l->beat_context;
    drop_below(l);
    if (ftruncate(l->fd, 0) < 0 || ftruncate(l->fd, (off_t)l->size) < 0)
        return -errno;
    return copy(&file, &medium);
}

int vdisk_layers_put_below(struct vdisk_layers *l, int file_fd)
{
    int fd = new_layer(l);

    if (fd < 0)
        return fd;
    drop_below(l);
    close(l->fd);
    l->fd = fd;
    l->below_fd = file_fd;
    l->bits = mem_calloc(bits_size(l), 1);
    return 0;
}
