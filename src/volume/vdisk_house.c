#include "volume/vdisk_house.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "volume/vdisk_media.h"

#define BASE_CHUNK (1u << 20)
#define HOST_NS    20000  // from a reply to the next request, at least
#define EARLY_NS   200000 // by so much a reply may come before it is due

void house_init(struct vdisk_house *h)
{
    memset(h, 0, sizeof(*h));
}

static void disk_free(struct vdisk_disk *disk)
{
    if (!disk)
        return;
    vdisk_layers_release(&disk->contents);
    vdisk_model_free(disk->model);
    vdisk_cache_free(disk->cache);
    vdisk_spec_release(&disk->spec);
    free(disk);
}

void house_release(struct vdisk_house *h)
{
    (void)house_record_end(h, NULL);
    for (int i = 0; i < h->n_disks; i++)
        disk_free(h->disks[i]);
    h->n_disks = 0;
}

// Gives the record the next sequence number and logs it if a recording runs.
static int note(struct vdisk_house *h, struct vdisk_log_record *record)
{
    if (h->log) {
        int error = vdisk_log_put(h->log, record);
        if (error < 0)
            return error;
        h->seq = record->seq;
    } else {
        record->seq = ++h->seq;
    }
    return 0;
}

static int note_disk(struct vdisk_house *h, const struct vdisk_disk *disk, int64_t now_ns)
{
    struct str text = STR_INIT;

    str_addf(&text, "%s ", disk->name);
    vdisk_spec_print(&disk->spec, &text);
    struct vdisk_log_record record = {.type = VDISK_LOG_DISK,
                                      .disk = disk->index,
                                      .time_ns = now_ns,
                                      .offset = (uint64_t)disk->spec.size,
                                      .length = text.len,
                                      .bytes = text.buf};
    int error = note(h, &record);
    str_release(&text);
    return error;
}

// The place of a disk that was removed, or a new one. In a recording no number is given out again;
// but there no disk is removed either.
static int free_index(const struct vdisk_house *h)
{
    int index = 0;

    while (index < h->n_disks && h->disks[index])
        index++;
    return index;
}

int house_add(struct vdisk_house *h, const char *name, struct vdisk_spec *spec, int64_t now_ns,
              struct err *err)
{
    struct vdisk_disk *disk = mem_calloc(1, sizeof(*disk));

    disk->spec = *spec;
    vdisk_layers_init(&disk->contents, -1, (uint64_t)spec->size);
    memset(spec, 0, sizeof(*spec));
    if (vdisk_name_check(name, err) < 0)
        goto failed;
    if (house_find(h, name)) {
        err_set(err, ERR_USAGE, "there is a disk %s already", name);
        goto failed;
    }
    int index = free_index(h);
    if (index == VDISK_DISKS_MAX) {
        err_set(err, ERR_USAGE, "there are %d disks already", index);
        goto failed;
    }
    memcpy(disk->name, name, strlen(name) + 1);
    disk->index = (uint16_t)index;
    disk->contents.fd = vdisk_media_open(disk->spec.media, disk->spec.size, err);
    if (disk->contents.fd < 0)
        goto failed;
    disk->contents.beat = h->beat;
    disk->contents.beat_context = h->beat_context;
    struct vdisk_medium medium = vdisk_layers_medium(&disk->contents);
    disk->cache = vdisk_cache_new(&medium, (uint64_t)disk->spec.model.cache_bytes);
    disk->model =
        vdisk_model_new(&disk->spec.model, disk->spec.size,
                        disk->spec.is_protected || disk->spec.lying, (uint64_t)disk->spec.seed);
    if (h->log) {
        int error = note_disk(h, disk, now_ns);
        if (error < 0) {
            err_set(err, ERR_FAILED, "cannot write the log: %s", strerror(-error));
            goto failed;
        }
    }
    h->disks[index] = disk;
    if (index == h->n_disks)
        h->n_disks++;
    return 0;
failed:
    disk_free(disk);
    return -1;
}

int house_remove(struct vdisk_house *h, struct vdisk_disk *disk, struct err *err)
{
    if (disk->opens > 0)
        return err_set(err, ERR_FAILED, "the disk %s is in use: detach its loop device first",
                       disk->name);
    if (h->log)
        return err_set(err, ERR_FAILED, "the disk %s is being recorded: end that first",
                       disk->name);
    h->disks[disk->index] = NULL;
    disk_free(disk);
    return 0;
}

struct vdisk_disk *house_find(struct vdisk_house *h, const char *name)
{
    for (int i = 0; i < h->n_disks; i++)
        if (h->disks[i] && strcmp(h->disks[i]->name, name) == 0)
            return h->disks[i];
    return NULL;
}

int house_set(struct vdisk_house *h, struct vdisk_disk *disk, const char *text, int64_t now_ns,
              struct err *err)
{
    struct vdisk_spec changed = disk->spec; // faults own no memory

    if (vdisk_spec_parse(&changed, text, true, err) < 0)
        return -1;
    disk->spec = changed;
    vdisk_model_set_flush_is_free(disk->model, changed.is_protected || changed.lying);
    int error = h->log ? note_disk(h, disk, now_ns) : 0;
    return error < 0 ? err_set(err, ERR_FAILED, "cannot write the log: %s", strerror(-error)) : 0;
}

void house_set_floor(struct vdisk_disk *disk, const int64_t floor_ns[VDISK_OPS])
{
    memcpy(disk->floor_ns, floor_ns, sizeof(disk->floor_ns));
    memset(&disk->counters, 0, sizeof(disk->counters));
    vdisk_model_reset(disk->model);
    disk->last_due_ns = disk->last_done_ns = 0;
    disk->is_timed = true;
}

static bool fails_by_fault(struct vdisk_disk *disk, enum vdisk_op op)
{
    static const enum vdisk_op op_of[] = {
        [VDISK_EIO_READ] = VDISK_READ,
        [VDISK_EIO_WRITE] = VDISK_WRITE,
        [VDISK_EIO_FLUSH] = VDISK_FLUSH,
    };

    if (disk->spec.eio_after < 0 ||
        (disk->spec.eio != VDISK_EIO_ALL && op_of[disk->spec.eio] != op))
        return false;
    if (disk->spec.eio_after == 0)
        return true;
    disk->spec.eio_after--;
    return false;
}

int house_admit(struct vdisk_disk *disk, enum vdisk_op op, uint64_t offset, uint64_t length)
{
    uint64_t size = (uint64_t)disk->spec.size;

    assert(op < VDISK_OPS);
    if (offset > size || length > size - offset)
        return -EINVAL;
    if (atomic_load(&disk->dead) || fails_by_fault(disk, op)) {
        disk->counters.eio++;
        return -EIO;
    }
    disk->counters.requests[op]++;
    disk->counters.bytes[op] += length;
    return 0;
}

// When a request arrives for the model. Replies leave before the model is done, by what the path
// takes; where the path is faster than that, the next request would come before its cause was done,
// and the head of a hard disk would stand just where it is wanted. So when nothing else is under
// way, it comes after all that was, by what a host takes at least.
static int64_t model_arrival_ns(const struct vdisk_disk *disk, int64_t arrival_ns)
{
    int64_t after_ns = disk->last_done_ns + HOST_NS;

    if (disk->last_done_ns == 0 || arrival_ns + EARLY_NS < disk->last_due_ns)
        return arrival_ns;
    return arrival_ns > after_ns ? arrival_ns : after_ns;
}

int64_t house_due_ns(struct vdisk_disk *disk, enum vdisk_op op, uint64_t offset, uint64_t length,
                     int64_t arrival_ns)
{
    int64_t due_ns = arrival_ns;

    if (disk->is_timed) {
        int64_t done_ns = vdisk_model_done_ns(disk->model, op, (int64_t)offset, (int64_t)length,
                                              model_arrival_ns(disk, arrival_ns));
        due_ns = done_ns - disk->floor_ns[op];
        due_ns = due_ns > arrival_ns ? due_ns : arrival_ns;
        disk->last_due_ns = due_ns > disk->last_due_ns ? due_ns : disk->last_due_ns;
        disk->last_done_ns = done_ns > disk->last_done_ns ? done_ns : disk->last_done_ns;
    }
    return disk->spec.stall ? INT64_MAX : due_ns + disk->spec.delay_ns;
}

int house_read(struct vdisk_disk *disk, uint64_t offset, void *bytes, size_t n)
{
    struct vdisk_medium medium = vdisk_layers_medium(&disk->contents);

    return medium.read(medium.context, offset, bytes, n);
}

// Pending writes through seq become durable, with a word in the log before.
static int destage(struct vdisk_house *h, struct vdisk_disk *disk, uint64_t seq, int64_t now_ns)
{
    struct vdisk_log_record record = {
        .type = VDISK_LOG_DESTAGED, .disk = disk->index, .time_ns = now_ns, .through = seq};
    int error = note(h, &record);

    if (error == 0)
        disk->counters.destaged += vdisk_cache_settle(disk->cache, seq);
    return error;
}

int house_write(struct vdisk_house *h, struct vdisk_disk *disk, uint64_t offset, const void *bytes,
                size_t n, int64_t now_ns)
{
    struct vdisk_log_record record = {.type = VDISK_LOG_WRITE,
                                      .disk = disk->index,
                                      .time_ns = now_ns,
                                      .offset = offset,
                                      .length = n,
                                      .bytes = bytes};

    if (atomic_load(&disk->dead))
        return -EIO;
    if (n == 0)
        return 0;
    int error = note(h, &record);
    if (error < 0)
        return -EIO; // what cannot be recorded is not done
    error = vdisk_cache_write(disk->cache, record.seq, offset, bytes, n);
    if (error < 0)
        return error;
    uint64_t through = vdisk_cache_overflow(disk->cache);
    return through && destage(h, disk, through, now_ns) < 0 ? -EIO : 0;
}

int house_zero(struct vdisk_house *h, struct vdisk_disk *disk, uint64_t offset, uint64_t n,
               int64_t now_ns)
{
    struct vdisk_log_record record = {.type = VDISK_LOG_ZERO,
                                      .disk = disk->index,
                                      .time_ns = now_ns,
                                      .offset = offset,
                                      .length = n};

    if (atomic_load(&disk->dead))
        return -EIO;
    if (n == 0)
        return 0;
    uint64_t newest = vdisk_cache_newest(disk->cache, offset, n);
    if (newest && destage(h, disk, newest, now_ns) < 0)
        return -EIO;
    if (note(h, &record) < 0)
        return -EIO;
    return vdisk_cache_zero(disk->cache, offset, n);
}

int house_flush_begin(struct vdisk_house *h, struct vdisk_disk *disk, int64_t now_ns,
                      struct house_flush *ret)
{
    struct vdisk_log_record record = {
        .type = VDISK_LOG_FLUSH, .disk = disk->index, .time_ns = now_ns, .through = h->seq};

    *ret = (struct house_flush){.covers = h->seq, .epoch = h->epoch};
    return note(h, &record) < 0 ? -EIO : 0;
}

int house_flush_end(struct vdisk_house *h, struct vdisk_disk *disk, const struct house_flush *flush,
                    int64_t now_ns)
{
    // What came before a recording began was written out then.
    uint64_t covers = flush->epoch == h->epoch ? flush->covers : 0;
    struct vdisk_log_record record = {.type = VDISK_LOG_FLUSHED,
                                      .disk = disk->index,
                                      .time_ns = now_ns,
                                      .through = covers,
                                      .lied = disk->spec.lying};

    if (atomic_load(&disk->dead) || note(h, &record) < 0)
        return -EIO;
    if (disk->spec.lying)
        disk->counters.lied++;
    else
        vdisk_cache_settle(disk->cache, covers);
    return 0;
}

int house_cut(struct vdisk_house *h, struct vdisk_disk *disk, const struct vdisk_fate *wanted,
              int64_t now_ns, struct vdisk_cut *ret, struct err *err)
{
    struct vdisk_fate fate = *wanted;
    struct str text = STR_INIT;

    atomic_store(&disk->dead, true);
    if (disk->spec.is_protected)
        fate.survivors = VDISK_KEEP;
    vdisk_fate_print(&fate, &text);
    struct vdisk_log_record record = {.type = VDISK_LOG_CUT,
                                      .disk = disk->index,
                                      .time_ns = now_ns,
                                      .through = h->seq,
                                      .length = text.len,
                                      .bytes = text.buf};
    int error = note(h, &record);
    // Also when the log is broken: the cut itself comes first.
    int failed = vdisk_cache_cut(disk->cache, record.through, &fate, ret);
    str_release(&text);
    vdisk_model_reset(disk->model);
    disk->counters.cuts++;
    if (failed < 0 || error < 0)
        return err_set(err, ERR_FAILED, "the power of %s is cut, but %s: %s", disk->name,
                       failed < 0 ? "its contents are not as they should be" : "it is not logged",
                       strerror(-(failed < 0 ? failed : error)));
    return 0;
}

int house_power(struct vdisk_house *h, struct vdisk_disk *disk, int64_t now_ns, struct err *err)
{
    struct vdisk_log_record record = {
        .type = VDISK_LOG_POWER, .disk = disk->index, .time_ns = now_ns};

    if (!atomic_load(&disk->dead))
        return err_set(err, ERR_USAGE, "the power of %s is on", disk->name);
    // What the kernel keeps of it is from before the cut.
    if (disk->opens > 0)
        return err_set(err, ERR_USAGE, "the disk %s is in use: detach its loop device first",
                       disk->name);
    int error = note(h, &record);
    if (error < 0)
        return err_set(err, ERR_FAILED, "cannot write the log: %s", strerror(-error));
    atomic_store(&disk->dead, false);
    return 0;
}

// ---- a saved state

static int save_to_file(struct vdisk_disk *disk, const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_set(err, ERR_USAGE, "cannot make %s: %s", path, strerror(errno));
    int error = vdisk_layers_write_to(&disk->contents, fd);
    if (error == 0 && fsync(fd) < 0)
        error = -errno;
    close(fd);
    if (error == 0)
        return 0;
    (void)unlink(path);
    return err_set(err, ERR_FAILED, "cannot write %s: %s", path, strerror(-error));
}

int house_save(struct vdisk_house *h, struct vdisk_disk *disk, const char *path, struct err *err)
{
    if (atomic_load(&disk->dead))
        return err_set(err, ERR_USAGE, "the power of %s is cut", disk->name);
    if (!path && disk->spec.media)
        return err_set(err, ERR_USAGE, "the disk %s lies in a file: name one to save to",
                       disk->name);
    if (!h->log) // else they stay pending, as its reader will think
        vdisk_cache_settle(disk->cache, UINT64_MAX);
    if (path)
        return save_to_file(disk, path, err);
    int error = vdisk_layers_save(&disk->contents);
    return error < 0 ? err_set(err, ERR_FAILED, "cannot save %s: %s", disk->name, strerror(-error))
                     : 0;
}

static int restore_file(struct vdisk_disk *disk, const char *path, bool shares, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), error = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != disk->spec.size) {
        err_set(err, ERR_USAGE, "%s: %s", path,
                fd < 0 ? strerror(errno) : "this is no image of a disk of that size");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (shares)
        error = vdisk_layers_put_below(&disk->contents, fd);
    else
        error = vdisk_layers_read_from(&disk->contents, fd);
    if (!shares || error < 0)
        close(fd);
    return error;
}

int house_restore(struct vdisk_house *h, struct vdisk_disk *disk, const char *path, bool shares,
                  struct err *err)
{
    int error;

    if (disk->opens > 0)
        return err_set(err, ERR_USAGE, "the disk %s is in use: detach its loop device first",
                       disk->name);
    if (h->log)
        return err_set(err, ERR_USAGE, "the disk %s is being recorded: end that first", disk->name);
    if (atomic_load(&disk->dead))
        return err_set(err, ERR_USAGE, "the power of %s is cut", disk->name);
    if (shares && disk->spec.media)
        return err_set(err, ERR_USAGE, "the disk %s lies in a file, which can share nothing",
                       disk->name);
    vdisk_cache_settle(disk->cache, UINT64_MAX);
    error = path ? restore_file(disk, path, shares, err) : vdisk_layers_restore(&disk->contents);
    vdisk_model_reset(disk->model);
    if (error == -ENOENT && !path)
        return err_set(err, ERR_USAGE, "the disk %s has no saved state", disk->name);
    if (error < 0 && err->kind == ERR_NONE)
        return err_set(err, ERR_FAILED, "cannot restore %s: %s", disk->name, strerror(-error));
    return error < 0 ? -1 : 0;
}

int house_forget(struct vdisk_disk *disk, struct err *err)
{
    int error = vdisk_layers_forget(&disk->contents);

    if (error == -ENOENT)
        return err_set(err, ERR_USAGE, "the disk %s has no saved state", disk->name);
    return error < 0 ? err_set(err, ERR_FAILED, "cannot forget the state of %s: %s", disk->name,
                               strerror(-error))
                     : 0;
}

// ---- recording

// The contents of a disk, but for what is zero.
static int put_base(struct vdisk_house *h, struct vdisk_disk *disk, int64_t now_ns)
{
    uint8_t *chunk = mem_calloc(BASE_CHUNK, 1);
    uint64_t size = (uint64_t)disk->spec.size;
    int error = 0;

    for (uint64_t at = 0; at < size && error == 0; at += BASE_CHUNK) {
        at = vdisk_layers_next_data(&disk->contents, at, BASE_CHUNK);
        if (at >= size)
            break;
        size_t n = size - at < BASE_CHUNK ? (size_t)(size - at) : BASE_CHUNK;
        struct vdisk_medium medium = vdisk_layers_medium(&disk->contents);
        error = medium.read(medium.context, at, chunk, n);
        if (error == 0 && (chunk[0] || memcmp(chunk, chunk + 1, n - 1) != 0)) {
            struct vdisk_log_record record = {.type = VDISK_LOG_BASE,
                                              .disk = disk->index,
                                              .time_ns = now_ns,
                                              .offset = at,
                                              .length = n,
                                              .bytes = chunk};
            error = note(h, &record);
        }
        if (h->beat)
            h->beat(h->beat_context);
    }
    free(chunk);
    return error;
}

int house_record(struct vdisk_house *h, const char *path, int64_t now_ns, struct err *err)
{
    struct vdisk_log *log;
    int error = 0;

    if (h->log)
        return err_set(err, ERR_USAGE, "a recording runs already: %s", h->log_path);
    if (vdisk_log_create(&log, path, err) < 0)
        return -1;
    h->log = log;
    h->seq = 0;
    h->epoch++;
    free(h->log_path);
    h->log_path = mem_strdup(path);
    for (int i = 0; i < h->n_disks && error == 0; i++) {
        struct vdisk_disk *disk = h->disks[i];
        if (!disk)
            continue;
        vdisk_cache_settle(disk->cache, UINT64_MAX); // numbers begin anew
        error = note_disk(h, disk, now_ns);
        if (error == 0)
            error = put_base(h, disk, now_ns);
    }
    if (error < 0) {
        (void)house_record_end(h, NULL);
        (void)unlink(path);
        return err_set(err, ERR_FAILED, "cannot write the log %s: %s", path, strerror(-error));
    }
    return 0;
}

int house_record_end(struct vdisk_house *h, struct err *err)
{
    int status = vdisk_log_close(h->log, err);

    h->log = NULL;
    free(h->log_path);
    h->log_path = NULL;
    return status;
}

int house_mark(struct vdisk_house *h, const char *text, int64_t now_ns, struct err *err)
{
    struct vdisk_log_record record = {
        .type = VDISK_LOG_MARK, .time_ns = now_ns, .length = strlen(text), .bytes = text};
    int error = h->log ? note(h, &record) : -ENOENT;

    if (error == -ENOENT)
        return err_set(err, ERR_USAGE, "no recording runs");
    return error < 0 ? err_set(err, ERR_FAILED, "cannot write the log: %s", strerror(-error)) : 0;
}

void house_stats(const struct vdisk_disk *disk, int64_t now_ns, struct str *out)
{
    static const char *const names[] = {"read", "write", "flush", "discard"};
    static const char *const plurals[] = {"reads", "writes", "flushes", "discards"};
    const struct vdisk_counters *n = &disk->counters;
    struct str text = STR_INIT;

    static_assert(ARR_LEN(names) == VDISK_OPS, "every operation has a name");
    vdisk_spec_print(&disk->spec, &text);
    str_addf(out, "spec %s\n", text.buf);
    str_release(&text);
    str_addf(out, "size %" PRId64 "\npower %s\n", disk->spec.size,
             atomic_load(&disk->dead) ? "cut" : "on");
    str_addf(out, "saved_state %s\n", disk->contents.below_fd >= 0 ? "yes" : "no");
    for (int op = 0; op < VDISK_OPS; op++)
        str_addf(out, "%s %" PRIu64 "\n", plurals[op], n->requests[op]);
    str_addf(out, "read_bytes %" PRIu64 "\nwrite_bytes %" PRIu64 "\ndiscard_bytes %" PRIu64 "\n",
             n->bytes[VDISK_READ], n->bytes[VDISK_WRITE], n->bytes[VDISK_DISCARD]);
    str_addf(out, "eio %" PRIu64 "\ndestaged %" PRIu64 "\nlied %" PRIu64 "\ncuts %" PRIu64 "\n",
             n->eio, n->destaged, n->lied, n->cuts);
    str_addf(out, "unflushed_writes %" PRIu64 "\nunflushed_bytes %" PRIu64 "\n",
             vdisk_cache_pending_writes(disk->cache), vdisk_cache_pending_bytes(disk->cache));
    str_addf(out, "model_dirty_bytes %" PRId64 "\n", vdisk_model_dirty_bytes(disk->model, now_ns));
    for (int op = 0; op < VDISK_DISCARD; op++)
        str_addf(out, "floor_%s_ns %" PRId64 "\n", names[op], disk->floor_ns[op]);
}
