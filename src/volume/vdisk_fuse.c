// The file system: a directory of disks, each a file of fixed size. Everything but reads, writes,
// flushes and discards of a disk is answered at once.
#include "volume/vdisk_serving.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define FIRST_INODE     2 // of the disk of index 0
#define WAITING_MAX     512
#define ATTRIBUTE_AGE_S 3600.0 // sizes do not change

// ---- requests

void serving_carry_out(struct serving *s, struct serving_request *r, int64_t now_ns)
{
    if (r->error < 0)
        return;
    switch (r->op) {
    case VDISK_READ: // was read when it arrived
        break;
    case VDISK_WRITE:
        r->error = house_write(&s->house, r->disk, r->offset, r->data, r->length, now_ns);
        break;
    case VDISK_FLUSH:
        r->error = house_flush_end(&s->house, r->disk, &r->flush, now_ns);
        break;
    case VDISK_DISCARD:
        r->error = house_zero(&s->house, r->disk, r->offset, r->length, now_ns);
        break;
    case VDISK_OPS:
        assert(!"no operation");
    }
}

void serving_reply(struct serving_request *r)
{
    if (r->error < 0)
        fuse_reply_err(r->fuse, -r->error);
    else if (r->op == VDISK_READ)
        fuse_reply_buf(r->fuse, (const char *)r->data, r->length);
    else if (r->op == VDISK_WRITE)
        fuse_reply_write(r->fuse, r->length);
    else
        fuse_reply_err(r->fuse, 0);
}

// A request that must wait keeps the memory it lies in.
static void put_off(struct serving *s, const struct serving_request *r)
{
    struct serving_request *kept = mem_calloc(1, sizeof(*kept));

    *kept = *r;
    if (r->op == VDISK_WRITE) {
        assert(!s->buffer_is_taken);
        kept->memory = s->buffer.mem;
        s->buffer_is_taken = true;
    }
    vdisk_queue_put(&s->queue, &kept->waiting);
    if (vdisk_queue_first(&s->queue) == &kept->waiting)
        pthread_cond_signal(&s->wake);
}

static void arrive(struct serving *s, struct serving_request *r)
{
    bool waits = false;

    if (r->op == VDISK_READ)
        r->memory = r->data = mem_resize(NULL, r->length + !r->length, 1);
    pthread_mutex_lock(&s->lock);
    int64_t now_ns = clock_now_ns(&clock_system);
    r->error = house_admit(r->disk, r->op, r->offset, r->length);
    if (r->error == 0 && r->op == VDISK_FLUSH)
        r->error = house_flush_begin(&s->house, r->disk, now_ns, &r->flush);
    if (r->error == 0 && r->op == VDISK_READ)
        r->error = house_read(r->disk, r->offset, r->data, r->length);
    if (r->error == 0) {
        r->waiting.due_ns = house_due_ns(r->disk, r->op, r->offset, r->length, now_ns);
        waits = r->waiting.due_ns > now_ns + s->lead_ns;
    }
    if (waits)
        put_off(s, r);
    else
        serving_carry_out(s, r, now_ns);
    pthread_mutex_unlock(&s->lock);
    if (!waits) {
        serving_reply(r);
        free(r->memory);
    }
}

// ---- operations

static struct vdisk_disk *disk_of(struct serving *s, fuse_ino_t inode)
{
    uint64_t index = inode - FIRST_INODE;

    return inode >= FIRST_INODE && index < (uint64_t)s->house.n_disks ? s->house.disks[index]
                                                                      : NULL;
}

static void fill_root(struct stat *st)
{
    *st = (struct stat){.st_ino = FUSE_ROOT_ID,
                        .st_mode = S_IFDIR | 0700,
                        .st_nlink = 2,
                        .st_uid = geteuid(),
                        .st_gid = getegid()};
}

static void fill_disk(const struct vdisk_disk *disk, struct stat *st)
{
    *st = (struct stat){
        .st_ino = FIRST_INODE + disk->index,
        .st_mode = S_IFREG | 0600,
        .st_nlink = 1,
        .st_uid = geteuid(),
        .st_gid = getegid(),
        .st_size = disk->spec.size,
        .st_blocks = disk->spec.size / 512,
        .st_blksize = VDISK_BLOCK,
    };
}

static void op_init(void *context, struct fuse_conn_info *connection)
{
    (void)context;
    connection->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    connection->want |= connection->capable & FUSE_CAP_ASYNC_DIO;
    connection->max_background = WAITING_MAX;
    connection->congestion_threshold = WAITING_MAX;
    connection->max_write = 1 << 20;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct serving *s = fuse_req_userdata(req);
    struct fuse_entry_param entry = {.attr_timeout = ATTRIBUTE_AGE_S};

    pthread_mutex_lock(&s->lock);
    struct vdisk_disk *disk = parent == FUSE_ROOT_ID ? house_find(&s->house, name) : NULL;
    if (disk) {
        entry.ino = FIRST_INODE + disk->index;
        fill_disk(disk, &entry.attr);
    }
    pthread_mutex_unlock(&s->lock);
    if (disk)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, ENOENT);
}

static void op_getattr(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *file)
{
    struct serving *s = fuse_req_userdata(req);
    struct stat st;

    (void)file;
    pthread_mutex_lock(&s->lock);
    struct vdisk_disk *disk = disk_of(s, inode);
    if (disk)
        fill_disk(disk, &st);
    else
        fill_root(&st);
    pthread_mutex_unlock(&s->lock);
    if (disk || inode == FUSE_ROOT_ID)
        fuse_reply_attr(req, &st, ATTRIBUTE_AGE_S);
    else
        fuse_reply_err(req, ENOENT);
}

// Size, owner and mode are what they are.
static void op_setattr(fuse_req_t req, fuse_ino_t inode, struct stat *attr, int to_set,
                       struct fuse_file_info *file)
{
    (void)inode, (void)attr, (void)to_set, (void)file;
    fuse_reply_err(req, EPERM);
}

static void op_open(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *file)
{
    struct serving *s = fuse_req_userdata(req);

    pthread_mutex_lock(&s->lock);
    struct vdisk_disk *disk = disk_of(s, inode);
    if (disk)
        disk->opens++;
    pthread_mutex_unlock(&s->lock);
    file->fh = (uintptr_t)disk;
    if (disk)
        fuse_reply_open(req, file);
    else
        fuse_reply_err(req, ENOENT);
}

static void op_release(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *file)
{
    struct serving *s = fuse_req_userdata(req);
    struct vdisk_disk *disk = (struct vdisk_disk *)(uintptr_t)file->fh;

    (void)inode;
    pthread_mutex_lock(&s->lock);
    disk->opens--;
    pthread_mutex_unlock(&s->lock);
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *file)
{
    struct serving_request r = {.fuse = req,
                                .disk = (struct vdisk_disk *)(uintptr_t)file->fh,
                                .op = VDISK_READ,
                                .offset = (uint64_t)offset,
                                .length = size};
    uint64_t end = (uint64_t)r.disk->spec.size;

    (void)inode;
    if (r.offset >= end || r.length > end - r.offset) // as any file: short at its end
        r.length = r.offset >= end ? 0 : end - r.offset;
    if (r.length == 0) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    arrive(fuse_req_userdata(req), &r);
}

static void op_write(fuse_req_t req, fuse_ino_t inode, const char *bytes, size_t size, off_t offset,
                     struct fuse_file_info *file)
{
    struct serving_request r = {.fuse = req,
                                .disk = (struct vdisk_disk *)(uintptr_t)file->fh,
                                .op = VDISK_WRITE,
                                .offset = (uint64_t)offset,
                                .length = size,
                                .data = (uint8_t *)bytes};

    (void)inode;
    arrive(fuse_req_userdata(req), &r);
}

static void op_fsync(fuse_req_t req, fuse_ino_t inode, int datasync, struct fuse_file_info *file)
{
    struct serving_request r = {
        .fuse = req, .disk = (struct vdisk_disk *)(uintptr_t)file->fh, .op = VDISK_FLUSH};

    (void)inode, (void)datasync;
    arrive(fuse_req_userdata(req), &r);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t inode, int mode, off_t offset, off_t length,
                         struct fuse_file_info *file)
{
    struct serving_request r = {.fuse = req,
                                .disk = (struct vdisk_disk *)(uintptr_t)file->fh,
                                .op = VDISK_DISCARD,
                                .offset = (uint64_t)offset,
                                .length = (uint64_t)length};

    (void)inode;
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        arrive(fuse_req_userdata(req), &r);
    else
        fuse_reply_err(req, EOPNOTSUPP);
}

static void op_readdir(fuse_req_t req, fuse_ino_t inode, size_t size, off_t offset,
                       struct fuse_file_info *file)
{
    struct serving *s = fuse_req_userdata(req);
    char *buffer = mem_calloc(size, 1);
    size_t used = 0;

    (void)inode, (void)file;
    pthread_mutex_lock(&s->lock);
    for (off_t at = offset; at < s->house.n_disks; at++) {
        struct stat st;
        if (!s->house.disks[at])
            continue;
        fill_disk(s->house.disks[at], &st);
        size_t n = fuse_add_direntry(req, buffer + used, size - used, s->house.disks[at]->name, &st,
                                     at + 1);
        if (n > size - used)
            break;
        used += n;
    }
    pthread_mutex_unlock(&s->lock);
    fuse_reply_buf(req, buffer, used);
    free(buffer);
}

const struct fuse_lowlevel_ops serving_ops = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .open = op_open,
    .release = op_release,
    .read = op_read,
    .write = op_write,
    .fsync = op_fsync,
    .fallocate = op_fallocate,
    .readdir = op_readdir,
};
