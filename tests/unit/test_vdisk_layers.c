// Two layers against plain arrays of bytes, over long random sequences of writes, zeros, saves and
// restores.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "volume/vdisk_house.h"
#include "volume/vdisk_media.h"

#define BLOCKS 24
#define SIZE   (BLOCKS * VDISK_BLOCK)

struct subject {
    struct vdisk_layers layers;
    uint8_t now[SIZE], saved[SIZE];
    bool has_saved;
};

static void begin(struct subject *s)
{
    int fd = vdisk_media_open(NULL, SIZE, NULL);

    memset(s, 0, sizeof(*s));
    assert_true(fd >= 0);
    vdisk_layers_init(&s->layers, fd, SIZE);
}

static void check(struct subject *s)
{
    struct vdisk_medium medium = vdisk_layers_medium(&s->layers);
    uint8_t bytes[SIZE];

    assert_int_equal(medium.read(medium.context, 0, bytes, SIZE), 0);
    assert_memory_equal(bytes, s->now, SIZE);
    for (uint64_t at = 0; at < SIZE; at += VDISK_BLOCK) {
        uint64_t next = vdisk_layers_next_data(&s->layers, at, VDISK_BLOCK);
        for (uint64_t i = at; i < next && i < SIZE; i++)
            assert_int_equal(s->now[i], 0);
    }
}

// Units of 512 as the kernel writes them; any length in reads.
static void change(struct subject *s, struct rng *rng)
{
    struct vdisk_medium medium = vdisk_layers_medium(&s->layers);
    uint64_t from = (uint64_t)rng_range(rng, 0, SIZE / 512 - 1) * 512;
    size_t n = (size_t)rng_range(rng, 1, 40) * 512;
    static uint8_t bytes[40 * 512];

    n = n < SIZE - from ? n : SIZE - from;
    if (rng_range(rng, 0, 3) == 0) {
        assert_int_equal(medium.zero(medium.context, from, n), 0);
        memset(s->now + from, 0, n);
        return;
    }
    memset(bytes, (int)rng_range(rng, 1, 255), n);
    assert_int_equal(medium.write(medium.context, from, bytes, n), 0);
    memcpy(s->now + from, bytes, n);
}

static void layers_hold_what_was_written(void **state)
{
    struct subject *s = malloc(sizeof(*s));
    struct rng rng;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin(s);
        rng_init(&rng, seed, 0, RNG_DATA);
        for (int i = 0; i < 200; i++) {
            int64_t what = rng_range(&rng, 0, 19);
            if (what == 0) {
                assert_int_equal(vdisk_layers_save(&s->layers), 0);
                memcpy(s->saved, s->now, SIZE);
                s->has_saved = true;
            } else if (what <= 2) {
                assert_int_equal(vdisk_layers_restore(&s->layers), s->has_saved ? 0 : -ENOENT);
                if (s->has_saved)
                    memcpy(s->now, s->saved, SIZE);
            } else if (what == 3) {
                assert_int_equal(vdisk_layers_forget(&s->layers), s->has_saved ? 0 : -ENOENT);
                s->has_saved = false;
            } else {
                change(s, &rng);
            }
            check(s);
        }
        vdisk_layers_release(&s->layers);
    }
    free(s);
}

static void contents_go_to_files_and_come_back(void **state)
{
    struct subject *s = malloc(sizeof(*s)), *other = malloc(sizeof(*other));
    struct rng rng;

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        bool shares = seed % 2;
        int file_fd = vdisk_media_open(NULL, SIZE, NULL);
        begin(s);
        begin(other);
        rng_init(&rng, seed, 1, RNG_DATA);
        for (int i = 0; i < 5; i++)
            change(s, &rng);
        assert_int_equal(vdisk_layers_save(&s->layers), 0);
        for (int i = 0; i < 5; i++) {
            change(s, &rng);
            change(other, &rng); // must not be seen afterwards
        }
        assert_int_equal(vdisk_layers_write_to(&s->layers, file_fd), 0);
        assert_int_equal(shares ? vdisk_layers_put_below(&other->layers, dup(file_fd))
                                : vdisk_layers_read_from(&other->layers, file_fd),
                         0);
        memcpy(other->now, s->now, SIZE);
        check(other);
        for (int i = 0; i < 10; i++) {
            change(other, &rng);
            check(other);
        }
        check(s); // and what is written there changes nothing here, nor in the file
        assert_int_equal(vdisk_layers_read_from(&other->layers, file_fd), 0);
        memcpy(other->now, s->now, SIZE);
        check(other);
        vdisk_layers_release(&s->layers);
        vdisk_layers_release(&other->layers);
        close(file_fd);
    }
    free(s);
    free(other);
}

// ---- in a daemon's hands

struct house {
    struct vdisk_house house;
    struct vdisk_disk *disk;
    char path[64];
};

static int house_make(void **state)
{
    struct house *h = calloc(1, sizeof(*h));
    struct vdisk_spec spec;

    house_init(&h->house);
    vdisk_spec_init(&spec);
    assert_int_equal(vdisk_spec_parse(&spec, "size=1MB,cache=64k", false, NULL), 0);
    assert_int_equal(house_add(&h->house, "a", &spec, 0, NULL), 0);
    h->disk = house_find(&h->house, "a");
    snprintf(h->path, sizeof(h->path), "/tmp/prony-test-layers-%d", (int)getpid());
    *state = h;
    return 0;
}

static int house_end(void **state)
{
    struct house *h = *state;

    house_release(&h->house);
    unlink(h->path);
    free(h);
    return 0;
}

static void put(struct house *h, const char *text)
{
    assert_int_equal(house_write(&h->house, h->disk, 4096, text, 512, 0), 0);
}

static void assert_holds(struct house *h, char c)
{
    char bytes[512];

    assert_int_equal(house_read(h->disk, 4096, bytes, sizeof(bytes)), 0);
    assert_int_equal(bytes[0], c);
    assert_int_equal(bytes[511], c);
}

static const char *filled(char c)
{
    static char bytes[512];

    memset(bytes, c, sizeof(bytes));
    return bytes;
}

static void a_disk_goes_back_to_its_state(void **state)
{
    struct house *h = *state;
    struct err err = ERR_INIT;

    assert_int_equal(house_restore(&h->house, h->disk, NULL, false, &err), -1);
    assert_non_null(strstr(err.text, "no saved state"));
    put(h, filled('1'));
    assert_int_equal(house_save(&h->house, h->disk, NULL, &err), 0);
    for (int i = 0; i < 3; i++) {
        put(h, filled('2'));
        assert_holds(h, '2');
        assert_int_equal(house_restore(&h->house, h->disk, NULL, false, &err), 0);
        assert_holds(h, '1');
    }
    put(h, filled('3'));
    assert_int_equal(house_forget(h->disk, &err), 0);
    assert_holds(h, '3');
}

// A cut must not bring back what was pending before the state.
static void what_is_saved_is_durable(void **state)
{
    struct house *h = *state;
    struct vdisk_fate fate = {.survivors = VDISK_DROP};
    struct vdisk_cut cut;

    put(h, filled('1'));
    assert_int_equal(house_save(&h->house, h->disk, NULL, NULL), 0);
    put(h, filled('2'));
    assert_int_equal(house_restore(&h->house, h->disk, NULL, false, NULL), 0);
    assert_int_equal(house_cut(&h->house, h->disk, &fate, 0, &cut, NULL), 0);
    assert_int_equal(cut.pending_writes, 0);
    assert_holds(h, '1');
}

static void a_state_in_a_file_is_shared_or_copied(void **state)
{
    struct house *h = *state;
    struct err err = ERR_INIT;
    struct stat st;

    put(h, filled('1'));
    assert_int_equal(house_save(&h->house, h->disk, h->path, &err), 0);
    assert_int_equal(stat(h->path, &st), 0);
    assert_int_equal(st.st_size, 1 << 20);
    assert_true(st.st_blocks * 512 < 1 << 19); // sparse
    assert_int_equal(house_save(&h->house, h->disk, h->path, &err), -1);
    assert_non_null(strstr(err.text, "File exists"));
    for (int shares = 0; shares < 2; shares++) {
        put(h, filled('2'));
        assert_int_equal(house_restore(&h->house, h->disk, h->path, shares, &err), 0);
        assert_holds(h, '1');
    }
    assert_int_equal(truncate(h->path, 4096), 0);
    err = (struct err)ERR_INIT;
    assert_int_equal(house_restore(&h->house, h->disk, h->path, false, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
}

static void a_disk_in_use_or_recorded_or_dead_is_not_restored(void **state)
{
    struct house *h = *state;
    struct vdisk_fate fate = {.survivors = VDISK_DROP};
    struct vdisk_cut cut;
    struct err err = ERR_INIT;

    assert_int_equal(house_save(&h->house, h->disk, NULL, NULL), 0);
    h->disk->opens = 1;
    assert_int_equal(house_restore(&h->house, h->disk, NULL, false, &err), -1);
    assert_non_null(strstr(err.text, "in use"));
    h->disk->opens = 0;
    assert_int_equal(house_record(&h->house, h->path, 0, NULL), 0);
    assert_int_equal(house_restore(&h->house, h->disk, NULL, false, &err), -1);
    assert_non_null(strstr(err.text, "recorded"));
    assert_int_equal(house_record_end(&h->house, NULL), 0);
    assert_int_equal(house_cut(&h->house, h->disk, &fate, 0, &cut, NULL), 0);
    assert_int_equal(house_restore(&h->house, h->disk, NULL, false, &err), -1);
    assert_non_null(strstr(err.text, "power"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_hold_what_was_written),
        cmocka_unit_test(contents_go_to_files_and_come_back),
        cmocka_unit_test_setup_teardown(a_disk_goes_back_to_its_state, house_make, house_end),
        cmocka_unit_test_setup_teardown(what_is_saved_is_durable, house_make, house_end),
        cmocka_unit_test_setup_teardown(a_state_in_a_file_is_shared_or_copied, house_make,
                                        house_end),
        cmocka_unit_test_setup_teardown(a_disk_in_use_or_recorded_or_dead_is_not_restored,
                                        house_make, house_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
