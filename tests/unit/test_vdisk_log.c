// Recordings: what is written is read back, what is damaged is refused, and the disk of a moment is
// what the disks were at that moment.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "volume/vdisk_house.h"
#include "volume/vdisk_log.h"
#include "volume/vdisk_media.h"
#include "volume/vdisk_replay.h"

#define SIZE (64 * VDISK_BLOCK)

static char *new_path(void)
{
    char template[] = "/tmp/prony-vdisk-log-XXXXXX";
    int fd = mkstemp(template);

    assert_true(fd >= 0);
    close(fd);
    unlink(template);
    return mem_strdup(template);
}

static uint8_t *slurp(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *ret_n = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = mem_calloc(*ret_n + 1, 1);
    assert_int_equal(fread(bytes, 1, *ret_n, file), *ret_n);
    fclose(file);
    return bytes;
}

// A log of every kind of record, with payloads of many lengths.
static void write_sample(const char *path, int n)
{
    struct vdisk_log *log;
    struct err err = ERR_INIT;
    uint8_t bytes[1000];

    assert_int_equal(vdisk_log_create(&log, path, &err), 0);
    const char *text = "d size=256kB";
    struct vdisk_log_record disk = {
        .type = VDISK_LOG_DISK, .offset = SIZE, .length = strlen(text), .bytes = text};
    assert_int_equal(vdisk_log_put(log, &disk), 0);
    for (int i = 0; i < n; i++) {
        memset(bytes, i + 1, sizeof(bytes));
        struct vdisk_log_record record = {
            .type = (enum vdisk_log_type)(VDISK_LOG_WRITE + i % (VDISK_LOG_END - VDISK_LOG_WRITE)),
            .lied = i % 5 == 0,
            .time_ns = i * 1000,
            .offset = (uint64_t)i * 512,
            .through = (uint64_t)i / 2,
            .length = (uint64_t)i * 7 % sizeof(bytes),
            .bytes = bytes};
        assert_int_equal(vdisk_log_put(log, &record), 0);
        assert_int_equal(record.seq, (uint64_t)i + 2);
    }
    assert_int_equal(vdisk_log_close(log, &err), 0);
}

// Number of records, or -1 - number of sound ones when it is refused.
static int read_all(const void *bytes, size_t n, struct err *err)
{
    struct vdisk_log_reader *reader;
    struct vdisk_log_record record;
    int count = 0, got;

    if (vdisk_log_open_bytes(&reader, bytes, n, err) < 0)
        return -1;
    while ((got = vdisk_log_next(reader, &record, err)) > 0)
        count++;
    vdisk_log_reader_free(reader);
    return got == 0 ? count : -1 - count;
}

static void what_is_written_is_read_back(void **state)
{
    char *path = new_path();
    struct vdisk_log_reader *reader;
    struct vdisk_log_record r;
    struct err err = ERR_INIT;

    (void)state;
    write_sample(path, 60);
    assert_int_equal(vdisk_log_open(&reader, path, &err), 0);
    assert_int_equal(vdisk_log_next(reader, &r, &err), 1);
    assert_int_equal(r.type, VDISK_LOG_DISK);
    assert_int_equal(r.seq, 1);
    assert_memory_equal(r.bytes, "d size=256kB", 12);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(vdisk_log_next(reader, &r, &err), 1);
        assert_int_equal(r.type, VDISK_LOG_WRITE + i % (VDISK_LOG_END - VDISK_LOG_WRITE));
        assert_int_equal(r.seq, i + 2);
        assert_int_equal(r.lied, i % 5 == 0);
        assert_int_equal(r.time_ns, i * 1000);
        assert_int_equal(r.offset, i * 512);
        assert_int_equal(r.through, i / 2);
        assert_int_equal(r.length, i * 7 % 1000);
        for (uint64_t k = 0; r.type != VDISK_LOG_ZERO && k < r.length; k++)
            assert_int_equal(((const uint8_t *)r.bytes)[k], i + 1);
    }
    assert_int_equal(vdisk_log_next(reader, &r, &err), 0);
    assert_int_equal(vdisk_log_next(reader, &r, &err), 0);
    vdisk_log_reader_free(reader);
    assert_int_equal(err.kind, ERR_NONE);
    unlink(path);
    free(path);
}

static void a_log_is_never_written_over(void **state)
{
    char *path = new_path();
    struct vdisk_log *log;
    struct err err = ERR_INIT;

    (void)state;
    write_sample(path, 1);
    assert_int_equal(vdisk_log_create(&log, path, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, path));
    unlink(path);
    free(path);
}

static void any_flipped_bit_is_seen(void **state)
{
    char *path = new_path();
    size_t n;
    struct err err = ERR_INIT;

    (void)state;
    write_sample(path, 12);
    uint8_t *bytes = slurp(path, &n);
    assert_int_equal(read_all(bytes, n, &err), 13);
    for (size_t bit = 0; bit < n * 8; bit++) {
        struct err seen = ERR_INIT;
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int count = read_all(bytes, n, &seen);
        if (count >= 0)
            fail_msg("bit %zu of byte %zu is not missed", bit % 8, bit / 8);
        assert_int_not_equal(seen.kind, ERR_NONE);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
    unlink(path);
    free(path);
}

static void any_cut_is_seen_and_what_came_before_is_sound(void **state)
{
    char *path = new_path();
    size_t n;

    (void)state;
    write_sample(path, 12);
    uint8_t *bytes = slurp(path, &n);
    int most = 0;
    for (size_t len = 0; len < n; len++) {
        struct err err = ERR_INIT;
        uint8_t *part = mem_resize(NULL, len + !len, 1); // so that sanitizers see its end
        memcpy(part, bytes, len);
        int count = read_all(part, len, &err);
        assert_true(count < 0);
        assert_true(-1 - count >= most); // never less than with a byte less
        most = -1 - count;
        free(part);
    }
    assert_int_equal(most, 13);
    struct err err = ERR_INIT;
    uint8_t *longer = mem_calloc(n + 1, 1);
    memcpy(longer, bytes, n);
    assert_int_equal(read_all(longer, n + 1, &err), -1 - 13);
    free(longer);
    free(bytes);
    unlink(path);
    free(path);
}

// Records keep their sums when they are moved whole, but the sums are chained.
static void records_left_out_doubled_or_swapped_are_seen(void **state)
{
    enum { HEADER = 56, HEAD = 56 };
    char *path = new_path();
    size_t n;
    struct vdisk_log *log;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(vdisk_log_create(&log, path, &err), 0);
    for (int i = 0; i < 6; i++) {
        struct vdisk_log_record r = {.type = VDISK_LOG_MARK};
        assert_int_equal(vdisk_log_put(log, &r), 0);
    }
    assert_int_equal(vdisk_log_close(log, &err), 0);
    uint8_t *bytes = slurp(path, &n);
    assert_int_equal(n, HEADER + 7 * HEAD);
    uint8_t *changed = mem_calloc(n + HEAD, 1);
    memcpy(changed, bytes, HEADER + 2 * HEAD); // left out: the third
    memcpy(changed + HEADER + 2 * HEAD, bytes + HEADER + 3 * HEAD, 4 * HEAD);
    assert_int_equal(read_all(changed, n - HEAD, &err), -3);
    memcpy(changed, bytes, HEADER + 3 * HEAD); // doubled
    memcpy(changed + HEADER + 3 * HEAD, bytes + HEADER + 2 * HEAD, 5 * HEAD);
    assert_int_equal(read_all(changed, n + HEAD, &err), -4);
    memcpy(changed, bytes, n); // swapped
    memcpy(changed + HEADER + 2 * HEAD, bytes + HEADER + 3 * HEAD, HEAD);
    memcpy(changed + HEADER + 3 * HEAD, bytes + HEADER + 2 * HEAD, HEAD);
    assert_int_equal(read_all(changed, n, &err), -3);
    free(changed);
    free(bytes);
    unlink(path);
    free(path);
}

static void random_bytes_are_refused(void **state)
{
    struct rng rng;
    char *path = new_path();
    size_t n;

    (void)state;
    write_sample(path, 8);
    uint8_t *bytes = slurp(path, &n);
    rng_init(&rng, 11, 0, RNG_DATA);
    for (int round = 0; round < 20000; round++) {
        struct err err = ERR_INIT;
        uint8_t *junk = mem_resize(NULL, n, 1);
        memcpy(junk, bytes, n);
        // From a random place on, or a few bytes anywhere: also heads whose sum is not reached.
        size_t at = (size_t)rng_range(&rng, 0, (int64_t)n - 1);
        size_t end = rng_range(&rng, 0, 1) ? n : at + 1;
        bool differs = false;
        for (; at < end; at++) {
            uint8_t old = junk[at];
            junk[at] = (uint8_t)rng_range(&rng, 0, 255);
            differs |= junk[at] != old;
        }
        assert_true(read_all(junk, n, &err) < 0 || !differs);
        free(junk);
    }
    free(bytes);
    unlink(path);
    free(path);
}

static void other_files_and_versions_are_named(void **state)
{
    struct vdisk_log_reader *reader;
    struct err err = ERR_INIT;
    char *path = new_path();
    size_t n;

    (void)state;
    assert_int_equal(vdisk_log_open(&reader, "/nonexistent/log", &err), -1);
    assert_non_null(strstr(err.text, "/nonexistent/log"));
    assert_int_equal(vdisk_log_open_bytes(&reader, "SQLite format 3", 15, &err), -1);
    assert_non_null(strstr(err.text, "no log of a virtual disk"));
    write_sample(path, 1);
    uint8_t *bytes = slurp(path, &n);
    bytes[16] = 9;
    assert_int_equal(vdisk_log_open_bytes(&reader, bytes, n, &err), -1);
    assert_non_null(strstr(err.text, "version 9"));
    free(bytes);
    unlink(path);
    free(path);
}

// ---- disks, their recording and its replay

static struct vdisk_disk *add(struct vdisk_house *h, const char *name, const char *text)
{
    struct vdisk_spec spec;
    struct err err = ERR_INIT;

    vdisk_spec_init(&spec);
    if (vdisk_spec_parse(&spec, text, false, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(house_add(h, name, &spec, 0, &err), 0);
    return house_find(h, name);
}

static void random_request(struct vdisk_house *h, struct vdisk_disk *disk, struct rng *rng)
{
    uint8_t bytes[16 * 512];
    uint64_t offset = (uint64_t)rng_range(rng, 0, SIZE / 512 - 16) * 512;
    size_t n = (size_t)rng_range(rng, 1, 16) * 512;
    struct house_flush flush;

    memset(bytes, (int)rng_range(rng, 1, 255), sizeof(bytes));
    int64_t what = rng_range(rng, 0, 20);
    if (what < 16) {
        assert_int_equal(house_write(h, disk, offset, bytes, n, 0), 0);
    } else if (what < 18) {
        assert_int_equal(house_zero(h, disk, offset, n, 0), 0);
    } else {
        assert_int_equal(house_flush_begin(h, disk, 0, &flush), 0);
        for (int64_t i = rng_range(rng, 0, 2); i > 0; i--)
            assert_int_equal(house_write(h, disk, offset, bytes, n, 0), 0);
        assert_int_equal(house_flush_end(h, disk, &flush, 0), 0);
    }
}

static void assert_replayed(const char *path, const char *name, uint64_t cut_seq,
                            const struct vdisk_fate *fate, const uint8_t *wanted)
{
    struct err err = ERR_INIT;
    struct vdisk_replay replay;
    uint16_t index;
    int64_t size;
    uint8_t got[SIZE];

    assert_int_equal(vdisk_replay_find(path, name, &index, &size, &err), 0);
    assert_int_equal(size, SIZE);
    int fd = vdisk_media_open(NULL, size, &err);
    assert_true(fd >= 0);
    struct vdisk_medium medium = vdisk_media_of(&fd);
    if (vdisk_replay_disk(path, index, cut_seq, fate, &medium, &replay, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(medium.read(medium.context, 0, got, SIZE), 0);
    assert_memory_equal(got, wanted, SIZE);
    close(fd);
}

// Disks with all kinds of caches run, are cut and run on; at each cut the replay of the log up to
// there must give the disk that the live cut left.
static void a_replay_gives_the_disk_that_a_live_cut_left(void **state)
{
    static const char *const specs[] = {"size=256k", "size=256k,cache=64k,torn=512",
                                        "size=256k,lying=yes", "size=256k,protected=yes",
                                        "size=256k,cache=0"};
    static const enum vdisk_survivors kinds[] = {VDISK_DROP, VDISK_PREFIX, VDISK_RANDOM};
    uint8_t *live = mem_calloc(SIZE, 1);

    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct vdisk_house h;
        struct rng rng;
        struct err err = ERR_INIT;
        char *path = new_path();
        rng_init(&rng, seed, 0, RNG_DATA);
        house_init(&h);
        struct vdisk_disk *disk = add(&h, "a", specs[seed % ARR_LEN(specs)]);
        struct vdisk_disk *other = add(&h, "b", "size=256k");
        for (int i = 0; i < 30; i++) // from before the recording
            random_request(&h, disk, &rng);
        assert_int_equal(house_record(&h, path, 0, &err), 0);
        for (int cuts = 0; cuts < 4; cuts++) {
            int64_t steps = rng_range(&rng, 1, 200);
            for (int64_t i = 0; i < steps; i++)
                random_request(&h, rng_range(&rng, 0, 2) ? disk : other, &rng);
            struct vdisk_fate fate = {kinds[rng_range(&rng, 0, 2)], rng_u64(&rng),
                                      (uint32_t)disk->spec.torn};
            struct vdisk_cut cut;
            uint64_t at = h.seq;
            assert_int_equal(house_cut(&h, disk, &fate, 0, &cut, &err), 0);
            assert_int_equal(house_read(disk, 0, live, SIZE), 0);
            assert_replayed(path, "a", at, &fate, live);
            assert_int_equal(house_power(&h, disk, 0, &err), 0);
        }
        assert_int_equal(house_record_end(&h, &err), 0);
        assert_int_equal(house_read(disk, 0, live, SIZE), 0);
        struct vdisk_fate drop = {VDISK_DROP, 0, 512};
        assert_replayed(path, "a", UINT64_MAX, &drop, live);
        house_release(&h);
        unlink(path);
        free(path);
    }
    free(live);
}

static void numbers_of_removed_disks_are_no_gap(void **state)
{
    struct vdisk_house h;
    struct err err = ERR_INIT;
    char *path = new_path();
    uint8_t image[SIZE];

    (void)state;
    house_init(&h);
    add(&h, "a", "size=256k");
    add(&h, "b", "size=256k");
    struct vdisk_disk *c = add(&h, "c", "size=256k");
    assert_int_equal(house_remove(&h, house_find(&h, "a"), &err), 0);
    assert_int_equal(house_remove(&h, house_find(&h, "b"), &err), 0);
    assert_null(house_find(&h, "b"));
    struct vdisk_disk *d = add(&h, "d", "size=256k");
    assert_int_equal(d->index, 0); // the place is free again
    memset(image, 'c', sizeof(image));
    assert_int_equal(house_write(&h, c, 0, image, sizeof(image), 0), 0);
    assert_int_equal(house_record(&h, path, 0, &err), 0);
    assert_int_equal(house_remove(&h, d, &err), -1);
    assert_int_equal(house_record_end(&h, &err), 0);
    struct vdisk_fate drop = {VDISK_DROP, 0, 512};
    assert_replayed(path, "c", UINT64_MAX, &drop, image);
    memset(image, 0, sizeof(image));
    assert_replayed(path, "d", UINT64_MAX, &drop, image);
    house_release(&h);
    unlink(path);
    free(path);
}

static void a_lying_disk_loses_what_it_said_was_flushed(void **state)
{
    static const struct {
        const char *spec;
        int after; // what the block holds after write, flush and cut
    } cases[] = {
        {"size=256k", 'x'},
        {"size=256k,lying=yes", 0},
        {"size=256k,lying=yes,protected=yes", 'x'},
        {"size=256k,lying=yes,cache=0", 'x'},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct vdisk_house h;
        struct err err = ERR_INIT;
        struct house_flush flush;
        struct vdisk_cut cut;
        uint8_t block[VDISK_BLOCK];
        house_init(&h);
        struct vdisk_disk *disk = add(&h, "a", cases[i].spec);
        memset(block, 'x', sizeof(block));
        assert_int_equal(house_write(&h, disk, 0, block, sizeof(block), 0), 0);
        assert_int_equal(house_flush_begin(&h, disk, 0, &flush), 0);
        assert_int_equal(house_flush_end(&h, disk, &flush, 0), 0);
        struct vdisk_fate fate = {VDISK_DROP, 1, 4096};
        assert_int_equal(house_cut(&h, disk, &fate, 0, &cut, &err), 0);
        assert_int_equal(house_read(disk, 0, block, sizeof(block)), 0);
        assert_int_equal(block[0], cases[i].after);
        house_release(&h);
    }
}

static void requests_are_refused_as_the_faults_say(void **state)
{
    struct vdisk_house h;
    struct err err = ERR_INIT;

    (void)state;
    house_init(&h);
    struct vdisk_disk *disk = add(&h, "a", "size=256k,eio-after=2,eio=write");
    assert_int_equal(house_admit(disk, VDISK_READ, 0, 512), 0);
    assert_int_equal(house_admit(disk, VDISK_WRITE, 0, 512), 0);
    assert_int_equal(house_admit(disk, VDISK_WRITE, 0, 512), 0);
    assert_int_equal(house_admit(disk, VDISK_WRITE, 0, 512), -5);
    assert_int_equal(house_admit(disk, VDISK_WRITE, 0, 512), -5);
    assert_int_equal(house_admit(disk, VDISK_READ, 0, 512), 0);
    assert_int_equal(house_admit(disk, VDISK_FLUSH, 0, 0), 0);
    assert_int_equal(disk->counters.eio, 2);
    assert_int_equal(house_set(&h, disk, "eio-after=-1", 0, &err), 0);
    assert_int_equal(house_admit(disk, VDISK_WRITE, 0, 512), 0);
    assert_int_equal(house_admit(disk, VDISK_WRITE, SIZE - 512, 1024), -22);
    assert_int_equal(house_admit(disk, VDISK_READ, UINT64_MAX - 511, 1024), -22);
    assert_int_equal(house_due_ns(disk, VDISK_READ, 0, 512, 7), 7);
    assert_int_equal(house_set(&h, disk, "delay=2us", 0, &err), 0);
    assert_int_equal(house_due_ns(disk, VDISK_READ, 0, 512, 7), 2007);
    assert_int_equal(house_set(&h, disk, "stall=yes", 0, &err), 0);
    assert_true(house_due_ns(disk, VDISK_READ, 0, 512, 7) == INT64_MAX);
    assert_int_equal(house_set(&h, disk, "size=1M", 0, &err), -1);
    assert_non_null(strstr(err.text, "size of a disk that runs"));
    house_release(&h);
}

static void what_the_path_takes_is_subtracted(void **state)
{
    struct vdisk_house h;
    int64_t floor_ns[VDISK_OPS] = {[VDISK_READ] = 70000, [VDISK_FLUSH] = 60000};

    (void)state;
    house_init(&h);
    struct vdisk_disk *disk = add(&h, "a", "size=256k,read=400us,flush=2ms,channels=1");
    assert_int_equal(house_due_ns(disk, VDISK_READ, 0, 512, 0), 0); // not before it is measured
    house_set_floor(disk, floor_ns);
    assert_int_equal(house_due_ns(disk, VDISK_READ, 8192, 512, 0), 330000);
    // The channel is busy for all of its time, so the next one ends 400 us later, not 330.
    assert_int_equal(house_due_ns(disk, VDISK_READ, 65536, 512, 0), 730000);
    assert_int_equal(house_due_ns(disk, VDISK_FLUSH, 0, 0, 10000000), 11940000);
    // With nothing else under way the next one comes after what was done, if only by a little.
    assert_int_equal(house_due_ns(disk, VDISK_FLUSH, 0, 0, 11940000), 12000000 + 20000 + 1940000);
    house_release(&h);
}

// The path is measured once and faster later, so replies come too early: no head start for that.
static void a_log_on_a_hard_disk_gets_no_more_than_a_flush_a_turn(void **state)
{
    static const int64_t floors_ns[] = {1, 100000, 2000000, 7000000};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(floors_ns); i++) {
        struct vdisk_house h;
        int64_t floor_ns[VDISK_OPS] = {floors_ns[i], floors_ns[i], floors_ns[i]};
        int64_t now_ns = 0;
        int n = 200;
        house_init(&h);
        struct vdisk_disk *disk = add(&h, "a", "size=64M,model=hdd-7200");
        house_set_floor(disk, floor_ns);
        for (int k = 0; k < n; k++) { // a path that takes nothing
            now_ns = house_due_ns(disk, VDISK_WRITE, (uint64_t)k * 8192, 8192, now_ns);
            now_ns = house_due_ns(disk, VDISK_FLUSH, 0, 0, now_ns);
        }
        double per_s = n * 1e9 / (double)now_ns;
        if (per_s < 115 || per_s > 125)
            fail_msg("%g flushes a second with a floor of %lld ns", per_s, (long long)floors_ns[i]);
        house_release(&h);
    }
}

static void specs_round_trip_and_wrong_ones_are_named(void **state)
{
    static const char *const good[] = {
        "size=1GB",
        "size=1GB,model=hdd-7200,capacity=1TB,seed=4",
        "size=8kB,model=ssd-sata,read=500us,channels=4,near-floor=yes,torn=512",
        "size=8kB,media={/tmp/a b,c},lying=yes,eio-after=5,eio=flush,delay=1ms,stall=yes",
    };
    static const struct {
        const char *text;
        const char *says[2];
    } bad[] = {
        {"model=none", {"size", "4096"}},
        {"size=1000", {"size", "4096"}},
        {"size=1G,model=hdd-7201", {"hdd-7201", "did you mean hdd-7200?"}},
        {"size=1G,modle=none", {"modle", "did you mean model?"}},
        {"size=1G,torn=1024", {"torn 1024", "512"}},
        {"size=1G,channels=0", {"channels", "between 1 and 64"}},
        {"size=1G,read=fast", {"read", "fast"}},
        {"size=1G,read=5", {"read", "5"}},
        {"size=1G,lying=perhaps", {"lying", "yes or no"}},
        {"size=1G,rpm=7200", {"rate", "hard disk"}},
        {"size=1G,model=hdd-15k,capacity=1M", {"capacity", "size"}},
        {"size=1G,seek-full=2ms", {"seek-full", "rpm"}},
        {"size=1G,cache=1k", {"cache", "64k"}},
        {"size=1G,size=2G", {"size", "twice"}},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(good); i++) {
        struct vdisk_spec spec;
        struct str text = STR_INIT;
        struct err err = ERR_INIT;
        vdisk_spec_init(&spec);
        if (vdisk_spec_parse(&spec, good[i], false, &err) < 0)
            fail_msg("%s", err.text);
        vdisk_spec_print(&spec, &text);
        assert_string_equal(text.buf, good[i]);
        vdisk_spec_release(&spec);
        str_release(&text);
    }
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        struct vdisk_spec spec;
        struct err err = ERR_INIT;
        vdisk_spec_init(&spec);
        assert_int_equal(vdisk_spec_parse(&spec, bad[i].text, false, &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
        for (int k = 0; k < 2; k++)
            if (!strstr(err.text, bad[i].says[k]))
                fail_msg("%s: %s", bad[i].text, err.text);
        vdisk_spec_release(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_log_is_never_written_over),
        cmocka_unit_test(any_flipped_bit_is_seen),
        cmocka_unit_test(any_cut_is_seen_and_what_came_before_is_sound),
        cmocka_unit_test(records_left_out_doubled_or_swapped_are_seen),
        cmocka_unit_test(random_bytes_are_refused),
        cmocka_unit_test(other_files_and_versions_are_named),
        cmocka_unit_test(a_replay_gives_the_disk_that_a_live_cut_left),
        cmocka_unit_test(numbers_of_removed_disks_are_no_gap),
        cmocka_unit_test(a_lying_disk_loses_what_it_said_was_flushed),
        cmocka_unit_test(requests_are_refused_as_the_faults_say),
        cmocka_unit_test(what_the_path_takes_is_subtracted),
        cmocka_unit_test(a_log_on_a_hard_disk_gets_no_more_than_a_flush_a_turn),
        cmocka_unit_test(specs_round_trip_and_wrong_ones_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
