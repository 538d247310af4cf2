#include "volume/vdisk_replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

// "NAME key=value,..." of a VDISK_LOG_DISK.
static int read_disk(const struct vdisk_log_record *record, char **ret_name,
                     struct vdisk_spec *spec, struct err *err)
{
    char *text = mem_strndup(record->bytes, (size_t)record->length);
    char *blank = strchr(text, ' ');

    vdisk_spec_init(spec);
    if (!blank) {
        free(text);
        return err_set(err, ERR_FAILED, "the log has a disk without a name");
    }
    *blank = '\0';
    int status = vdisk_spec_parse(spec, blank + 1, false, err);
    if (status == 0 && record->offset != (uint64_t)spec->size)
        status = err_set(err, ERR_FAILED, "the log has a disk of two sizes");
    if (status < 0)
        vdisk_spec_release(spec);
    else
        *ret_name = mem_strdup(text);
    free(text);
    return status;
}

int vdisk_replay_find(const char *log_path, const char *name, uint16_t *ret_disk, int64_t *ret_size,
                      struct err *err)
{
    struct vdisk_log_reader *reader;
    struct vdisk_log_record record;
    bool found = false;
    int got;

    if (vdisk_log_open(&reader, log_path, err) < 0)
        return -1;
    while (!found && (got = vdisk_log_next(reader, &record, err)) > 0) {
        struct vdisk_spec spec;
        char *its_name;
        if (record.type != VDISK_LOG_DISK)
            continue;
        if (read_disk(&record, &its_name, &spec, err) < 0) {
            got = -1;
            break;
        }
        found = strcmp(its_name, name) == 0;
        *ret_disk = record.disk;
        *ret_size = spec.size;
        free(its_name);
        vdisk_spec_release(&spec);
    }
    vdisk_log_reader_free(reader);
    if (found)
        return 0;
    if (got < 0)
        return -1;
    return err_set(err, ERR_USAGE, "the log %s has no disk %s", log_path, name);
}

struct replay {
    const struct vdisk_medium *medium;
    struct vdisk_cache *cache;
    struct vdisk_spec spec; // as the log said last
    bool known;
};

// One record of the disk. 0, a negative errno of the medium, or -1 with err->kind set.
static int apply(struct replay *r, const struct vdisk_log_record *record, struct err *err)
{
    struct vdisk_fate fate;
    struct vdisk_cut cut;
    char *name;
    uint64_t size = r->known ? (uint64_t)r->spec.size : 0;
    bool moves = record->type == VDISK_LOG_BASE || record->type == VDISK_LOG_WRITE ||
                 record->type == VDISK_LOG_ZERO;

    if (moves && (record->offset > size || record->length > size - record->offset))
        return err_set(err, ERR_FAILED, "the log writes beyond the disk in record %" PRIu64,
                       record->seq);
    switch (record->type) {
    case VDISK_LOG_DISK:
        if (r->known)
            vdisk_spec_release(&r->spec);
        r->known = false;
        if (read_disk(record, &name, &r->spec, err) < 0)
            return -1;
        free(name);
        r->known = true;
        if (!r->cache)
            r->cache = vdisk_cache_new(r->medium, (uint64_t)r->spec.model.cache_bytes);
        return 0;
    case VDISK_LOG_BASE:
        return r->medium->write(r->medium->context, record->offset, record->bytes,
                                (size_t)record->length);
    case VDISK_LOG_WRITE:
        return record->length == 0 ? 0
                                   : vdisk_cache_write(r->cache, record->seq, record->offset,
                                                       record->bytes, (size_t)record->length);
    case VDISK_LOG_ZERO:
        if (vdisk_cache_newest(r->cache, record->offset, record->length))
            return err_set(err, ERR_FAILED, "the log discards what is pending in record %" PRIu64,
                           record->seq);
        return record->length == 0 ? 0 : vdisk_cache_zero(r->cache, record->offset, record->length);
    case VDISK_LOG_FLUSHED:
        if (!record->lied)
            vdisk_cache_settle(r->cache, record->through);
        return 0;
    case VDISK_LOG_DESTAGED:
        vdisk_cache_settle(r->cache, record->through);
        return 0;
    case VDISK_LOG_CUT:
        if (vdisk_fate_parse(record->bytes, (size_t)record->length, &fate) < 0)
            return err_set(err, ERR_FAILED, "the log has an unknown fate in record %" PRIu64,
                           record->seq);
        return vdisk_cache_cut(r->cache, record->through, &fate, &cut);
    default:
        return 0;
    }
}

int vdisk_replay_disk(const char *log_path, uint16_t disk, uint64_t cut_seq,
                      const struct vdisk_fate *wanted, const struct vdisk_medium *medium,
                      struct vdisk_replay *ret, struct err *err)
{
    struct replay r = {.medium = medium};
    struct vdisk_log_reader *reader;
    struct vdisk_log_record record;
    struct vdisk_fate fate = *wanted;
    uint64_t last_seq = 0;
    int got = 0, error = 0;

    if (vdisk_log_open(&reader, log_path, err) < 0)
        return -1;
    while (last_seq < cut_seq && error == 0 && (got = vdisk_log_next(reader, &record, err)) > 0) {
        last_seq = record.seq;
        if (record.disk == disk && record.type != VDISK_LOG_MARK)
            error = apply(&r, &record, err);
    }
    if (got < 0 || (error < 0 && err && err->kind))
        goto out;
    if (r.known && r.spec.is_protected)
        fate.survivors = VDISK_KEEP;
    if (error == 0 && r.cache)
        error = vdisk_cache_cut(r.cache, last_seq, &fate, &ret->cut);
    if (error < 0)
        err_set(err, ERR_FAILED, "cannot write the disk: %s", strerror(-error));
    ret->last_seq = last_seq;
    ret->size = r.known ? r.spec.size : 0;
out:
    vdisk_cache_free(r.cache);
    if (r.known)
        vdisk_spec_release(&r.spec);
    vdisk_log_reader_free(reader);
    return got < 0 || error < 0 ? -1 : 0;
}
