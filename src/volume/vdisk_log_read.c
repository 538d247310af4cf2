// The reader of a recording. Trusts nothing that it reads: every length is checked before it is
// used, every record against its sum and its place.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "volume/vdisk_log.h"
#include "volume/vdisk_log_format.h"

struct vdisk_log_reader {
    FILE *file; // NULL: bytes in memory
    const uint8_t *memory;
    size_t memory_len, memory_at;
    char *name;
    struct log_header header;
    uint64_t sum;
    uint64_t seq;
    uint64_t at;                   // bytes read
    bool is_known[UINT16_MAX + 1]; // disks, by index
    bool ended;
    uint8_t *payload;
    size_t payload_cap;
};

// 1 when all n bytes were there, 0 at the end before the first of them, -1 when cut within.
static int read_bytes(struct vdisk_log_reader *r, void *out, size_t n)
{
    size_t got;

    if (r->file) {
        got = fread(out, 1, n, r->file);
    } else {
        got = r->memory_len - r->memory_at < n ? r->memory_len - r->memory_at : n;
        memcpy(out, r->memory + r->memory_at, got);
        r->memory_at += got;
    }
    r->at += got;
    return got == n ? 1 : got == 0 ? 0 : -1;
}

static int damaged(const struct vdisk_log_reader *r, struct err *err, const char *what)
{
    return err_set(err, ERR_FAILED,
                   "the log %s is damaged: %s after record %" PRIu64 " (byte %" PRIu64 ")", r->name,
                   what, r->seq, r->at);
}

static int read_header(struct vdisk_log_reader *r, struct err *err)
{
    struct log_header *h = &r->header;

    if (read_bytes(r, h, sizeof(*h)) != 1 || memcmp(h->magic, LOG_MAGIC, sizeof(LOG_MAGIC)) != 0)
        return err_set(err, ERR_USAGE, "%s is no log of a virtual disk", r->name);
    if (h->version != VDISK_LOG_VERSION)
        return err_set(err, ERR_USAGE, "the log %s is of version %u; this prony reads version %d",
                       r->name, h->version, VDISK_LOG_VERSION);
    if (h->reserved != 0 || h->sum != log_sum(0, h, offsetof(struct log_header, sum)))
        return err_set(err, ERR_FAILED, "the log %s is damaged: its header is", r->name);
    r->sum = h->sum;
    return 0;
}

static int open_reader(struct vdisk_log_reader **ret, struct vdisk_log_reader *r, struct err *err)
{
    if (read_header(r, err) < 0) {
        vdisk_log_reader_free(r);
        return -1;
    }
    *ret = r;
    return 0;
}

int vdisk_log_open(struct vdisk_log_reader **ret, const char *path, struct err *err)
{
    struct vdisk_log_reader *r = mem_calloc(1, sizeof(*r));

    r->name = mem_strdup(path);
    r->file = fopen(path, "re");
    if (!r->file) {
        err_set(err, ERR_USAGE, "cannot read the log %s: %s", path, strerror(errno));
        vdisk_log_reader_free(r);
        return -1;
    }
    return open_reader(ret, r, err);
}

int vdisk_log_open_bytes(struct vdisk_log_reader **ret, const void *bytes, size_t n,
                         struct err *err)
{
    struct vdisk_log_reader *r = mem_calloc(1, sizeof(*r));

    r->name = mem_strdup("in memory");
    r->memory = bytes;
    r->memory_len = n;
    return open_reader(ret, r, err);
}

// What a head says, before its payload is read. NULL, or what is wrong.
static const char *check_head(const struct vdisk_log_reader *r, const struct log_head *head)
{
    if (head->magic != LOG_RECORD_MAGIC)
        return "no record begins";
    if (head->type == 0 || head->type >= VDISK_LOG_TYPES || (head->flags & ~LOG_FLAG_LIED))
        return "a record of an unknown kind";
    if (head->seq != r->seq + 1)
        return "records are missing";
    if (head->type != VDISK_LOG_ZERO && head->length > VDISK_LOG_PAYLOAD_MAX)
        return "a record is too long";
    if (head->through >= head->seq)
        return "a record covers what came after it";
    if (head->offset + head->length < head->offset)
        return "an address beyond all disks";
    bool of_disk = head->type != VDISK_LOG_MARK && head->type != VDISK_LOG_END;
    if (of_disk && head->type != VDISK_LOG_DISK && !r->is_known[head->disk])
        return "a record of no disk";
    if (head->type == VDISK_LOG_END && head->offset != r->seq)
        return "its end counts other records";
    return NULL;
}

static int read_payload(struct vdisk_log_reader *r, const struct log_head *head, struct err *err)
{
    size_t n = head->type == VDISK_LOG_ZERO ? 0 : log_padded(head->length);
    uint64_t sum = log_sum(r->sum, head, offsetof(struct log_head, sum));

    if (n > r->payload_cap) {
        r->payload = mem_resize(r->payload, n, 1);
        r->payload_cap = n;
    }
    if (n > 0 && read_bytes(r, r->payload, n) != 1)
        return damaged(r, err, "it is cut short");
    if (n > 0)
        sum = log_sum(sum, r->payload, n);
    if (sum != head->sum)
        return damaged(r, err, "a record does not match its sum");
    return 0;
}

int vdisk_log_next(struct vdisk_log_reader *r, struct vdisk_log_record *ret, struct err *err)
{
    struct log_head head;
    char byte;

    if (r->ended)
        return 0;
    int got = read_bytes(r, &head, sizeof(head));
    if (got != 1)
        return damaged(r, err, got == 0 ? "it has no end" : "it is cut short");
    const char *wrong = check_head(r, &head);
    if (wrong)
        return damaged(r, err, wrong);
    if (read_payload(r, &head, err) < 0)
        return -1;
    r->sum = head.sum;
    r->seq = head.seq;
    if (head.type == VDISK_LOG_END) {
        if (read_bytes(r, &byte, 1) != 0)
            return damaged(r, err, "something follows its end");
        r->ended = true;
        return 0;
    }
    if (head.type == VDISK_LOG_DISK)
        r->is_known[head.disk] = true;
    *ret = (struct vdisk_log_record){
        .type = (enum vdisk_log_type)head.type,
        .disk = head.disk,
        .lied = head.flags & LOG_FLAG_LIED,
        .seq = head.seq,
        .time_ns = head.time_ns,
        .offset = head.offset,
        .length = head.length,
        .through = head.through,
        .bytes = r->payload,
    };
    return 1;
}

uint64_t vdisk_log_id(const struct vdisk_log_reader *r)
{
    return r->header.id;
}

void vdisk_log_reader_free(struct vdisk_log_reader *r)
{
    if (!r)
        return;
    if (r->file)
        fclose(r->file);
    free(r->name);
    free(r->payload);
    free(r);
}
