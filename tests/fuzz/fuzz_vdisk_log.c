// Any bytes as a recording of virtual disks: the reader refuses or reads it, and what it reads
// keeps its promises. The first byte tells whether the sums of header and records are put right
// before, so that fuzzing comes past them to what they protect.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "volume/vdisk_log.h"
#include "volume/vdisk_log_format.h"
#include "volume/vdisk_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(holds)                                                    \
    do {                                                                \
        if (!(holds)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                    \
        }                                                               \
    } while (0)

// Goes through the bytes as the reader would and makes every sum fit.
static void mend_sums(uint8_t *bytes, size_t n)
{
    struct log_header header;
    size_t at = sizeof(header);

    if (n < sizeof(header))
        return;
    memcpy(&header, bytes, sizeof(header));
    header.sum = log_sum(0, &header, offsetof(struct log_header, sum));
    memcpy(bytes, &header, sizeof(header));
    for (uint64_t sum = header.sum; n - at >= sizeof(struct log_head);) {
        struct log_head head;
        memcpy(&head, bytes + at, sizeof(head));
        if (head.length > VDISK_LOG_PAYLOAD_MAX)
            return;
        size_t payload = head.type == VDISK_LOG_ZERO ? 0 : log_padded(head.length);
        if (payload > n - at - sizeof(head))
            return;
        sum = log_sum(sum, &head, offsetof(struct log_head, sum));
        sum = log_sum(sum, bytes + at + sizeof(head), payload);
        head.sum = sum;
        memcpy(bytes + at, &head, sizeof(head));
        at += sizeof(head) + payload;
    }
}

static void read_log(const uint8_t *bytes, size_t n)
{
    struct vdisk_log_reader *reader;
    struct vdisk_log_record r;
    struct err err = ERR_INIT;
    uint64_t seq = 0;
    int got;

    if (vdisk_log_open_bytes(&reader, bytes, n, &err) < 0) {
        CHECK(err.kind != ERR_NONE && err.text[0]);
        return;
    }
    while ((got = vdisk_log_next(reader, &r, &err)) > 0) {
        CHECK(r.seq == ++seq);
        CHECK(r.through < r.seq);
        CHECK(r.type > 0 && r.type < VDISK_LOG_END);
        CHECK(r.offset + r.length >= r.offset);
        uint64_t sum = 0; // every byte that is promised can be read
        for (uint64_t i = 0; r.type != VDISK_LOG_ZERO && i < r.length; i++)
            sum += ((const uint8_t *)r.bytes)[i];
        CHECK(r.type == VDISK_LOG_ZERO || sum <= 255 * r.length);
        if (r.type == VDISK_LOG_CUT) {
            struct vdisk_fate fate;
            (void)vdisk_fate_parse(r.bytes, (size_t)r.length, &fate);
        }
    }
    CHECK((got < 0) == (err.kind != ERR_NONE));
    CHECK(got < 0 || vdisk_log_next(reader, &r, &err) == 0);
    vdisk_log_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *bytes = mem_resize(NULL, size, 1);
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1)
        mend_sums(bytes, size - 1);
    read_log(bytes, size - 1);
    free(bytes);
    return 0;
}
