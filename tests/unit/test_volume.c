// Volumes as text, names, the table of types, and what a device may carry.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/tree.h"
#include "volume/device.h"
#include "volume/type.h"
#include "volume_place.h"

// Opens a volume where only the programs of the place are installed.
static int open_there(const struct place *place, struct volume **ret, const char *text,
                      const struct volume_wish *wish, struct err *err)
{
    setenv("PATH", place->dir, 1);
    int rc = volume_open(ret, text, wish, err);
    setenv("PATH", place->path, 1);
    return rc;
}

static void names_are_plain_words(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"a", true},
        {"fast", true},
        {"4711-data", true},
        {"a.b_c-d", true},
        {"", false},
        {"-a", false},
        {".a", false},
        {"a/b", false},
        {"a b", false},
        {"a=b", false},
        {"..", false},
        {"\xc3\xa4", false},
        {"01234567890123456789012345678901", true},
        {"012345678901234567890123456789012", false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(volume_check_name(cases[i].name, &err) == 0, cases[i].good);
        if (!cases[i].good)
            assert_non_null(strstr(err.text, "1 to 32 letters"));
    }
}

static void descriptions_are_named_once(void **state)
{
    struct kvs names = KVS_INIT;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(volume_add_name(&names, "fast=loop:size=2G,fs=ext4", &err), 0);
    assert_string_equal(kvs_get(&names, "fast"), "loop:size=2G,fs=ext4");
    assert_int_equal(volume_add_name(&names, "fast=dir:/", &err), -1);
    assert_string_equal(err.text, "--volume fast is given twice");
    static const char *const bad[] = {"fast", "loop:size=2G", "=dir:/", "a b=dir:/"};
    for (size_t i = 0; i < ARR_LEN(bad); i++)
        assert_int_equal(volume_add_name(&names, bad[i], &err), -1);
    assert_int_equal(names.n, 1);
    kvs_release(&names);
}

static void a_volume_is_told_from_a_path(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"@fast", true},        {"dir:/srv", true}, {"loop:", true},   {"LOOP:size=1G", true},
        {"/srv/data", false},   {"loop", false},    {"loops:", false}, {"./dir:x", false},
        {"nosuchtype:", false}, {"", false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_int_equal(volume_is_text(cases[i].text), cases[i].is);
}

static void every_type_says_what_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; volume_types[i]; i++) {
        const struct volume_type *type = volume_types[i];
        struct spec spec;
        assert_non_null(type->plan);
        assert_non_null(type->summary);
        assert_int_equal(spec_parse(&spec, type->example, NULL), 0); // and it is of its own keys
        assert_string_equal(spec.type, type->name);
        for (size_t p = 0; p < spec.params.n; p++) {
            const struct volume_key *key = type->keys;
            while (key->name && strcmp(key->name, spec.params.items[p].key) != 0)
                key++;
            assert_true(key->name || type->others);
        }
        for (const struct volume_key *key = type->keys; key->name; key++)
            assert_true(key->arg && key->help);
        spec_release(&spec);
    }
}

static void a_directory_is_a_volume_without_commands(void **state)
{
    struct kvs names = KVS_INIT;
    struct volume_wish wish = {.name = "x", .names = &names};
    struct volume *volume;
    struct str out = STR_INIT;
    struct kvs record = KVS_INIT;

    (void)state;
    kvs_add(&names, "here", "dir:/usr/../tmp/.");
    assert_int_equal(volume_open(&volume, "@here", &wish, NULL), 0);
    assert_string_equal(volume_path(volume), "/tmp");
    assert_string_equal(volume_text(volume), "dir:/usr/../tmp/.");
    assert_false(volume_is_fresh(volume));
    assert_false(volume_is_kept(volume));
    volume_print_up(volume, &out);
    volume_print_down(volume, &out);
    assert_string_equal(out.buf, "");
    volume_record(volume, "v", &record);
    assert_int_equal(record.n, 2);
    assert_string_equal(kvs_get(&record, "v.text"), "dir:/usr/../tmp/.");
    assert_string_equal(kvs_get(&record, "v.path"), "/tmp");
    volume_free(volume);
    kvs_release(&record);
    kvs_release(&names);
    str_release(&out);
}

// ---- plans, word for word

// Written by hand from lvcreate(8), lvremove(8), losetup(8), fallocate(1).
static void plans_are_those_of_the_manual_pages(void **state)
{
    static const struct place_plan cases[] = {
        {"lvm:vg=vol0,size=10G,stripes=4,stripesize=64k,fs=xfs,mount={noatime}",
         "mkdir -p -m 755 /run/prony-volumes\n"
         "mkdir -m 755 /run/prony-volumes/t\n"
         "lvcreate --yes --wipesignatures y --name prony-t --size 10737418240b --stripes 4 "
         "--stripesize 64k vol0\n"
         "mkfs.xfs -q /dev/vol0/prony-t\n"
         "mount -t xfs -o noatime /dev/vol0/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "lvremove --yes vol0/prony-t\n"
         "rmdir /run/prony-volumes/t\n"},
        {"lvm:vg=a.b-c,at=/tmp/t",
         "mkdir -m 755 /tmp/t\n"
         "lvcreate --yes --wipesignatures y --name prony-t --size 1073741824b a.b-c\n"
         "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/a.b-c/prony-t\n"
         "mount -t ext4 /dev/a.b-c/prony-t /tmp/t\n",
         "umount /tmp/t\n"
         "lvremove --yes a.b-c/prony-t\n"
         "rmdir /tmp/t\n"},
        {"loop:size=64M,in=/tmp,alloc=full,fs=xfs,mkfs={-d agcount=2}",
         "mkdir -p -m 755 /run/prony-volumes\n"
         "mkdir -m 755 /run/prony-volumes/t\n"
         "sh -c 'umask 077; set -C; : >\"$0\"' /tmp/prony-t.img\n"
         "fallocate --length 67108864 /tmp/prony-t.img\n"
         "LOOP=$(losetup --find --show --direct-io=on /tmp/prony-t.img)\n"
         "mkfs.xfs -q -K -d agcount=2 \"$LOOP\"\n"
         "mount -t xfs \"$LOOP\" /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "losetup --detach \"$LOOP\"\n"
         "rm -f /tmp/prony-t.img\n"
         "rmdir /run/prony-volumes/t\n"},
    };

    for (size_t i = 0; i < ARR_LEN(cases); i++)
        place_assert_plan(*state, &cases[i], NULL);
}

// An image brings its file system along; the rest is as ever.
static void a_plan_may_begin_from_an_image(void **state)
{
    static const struct {
        const char *text;
        bool shares;
        const char *made; // between the empty file and losetup
    } cases[] = {
        {"loop:size=64M,in=/tmp,fs=xfs", false,
         "cp --sparse=always --reflink=never --no-target-directory /s/data.image /tmp/prony-t.img\n"
         "sync /tmp/prony-t.img\n"},
        {"loop:size=64M,in=/tmp,fs=xfs", true,
         "cp --sparse=auto --reflink=always --no-target-directory /s/data.image /tmp/prony-t.img\n"
         "sync /tmp/prony-t.img\n"},
        {"loop:size=64M,in=/tmp,fs=xfs,alloc=full", false,
         "cp --sparse=always --reflink=never --no-target-directory /s/data.image /tmp/prony-t.img\n"
         "sync /tmp/prony-t.img\n"
         "fallocate --length 67108864 /tmp/prony-t.img\n"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct volume_wish wish = {
            .name = "t", .image = "/s/data.image", .shares_image = cases[i].shares};
        struct str up = STR_INIT, wanted = STR_INIT;
        struct err err = ERR_INIT;
        struct volume *volume;
        int rc = open_there(place, &volume, cases[i].text, &wish, &err);
        if (rc < 0 && err.kind == ERR_ABSENT)
            skip();
        if (rc < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        str_addf(&wanted,
                 "mkdir -p -m 755 /run/prony-volumes\n"
                 "mkdir -m 755 /run/prony-volumes/t\n"
                 "sh -c 'umask 077; set -C; : >\"$0\"' /tmp/prony-t.img\n"
                 "%s"
                 "LOOP=$(losetup --find --show --direct-io=on /tmp/prony-t.img)\n"
                 "mount -t xfs \"$LOOP\" /run/prony-volumes/t\n",
                 cases[i].made);
        volume_print_up(volume, &up);
        assert_string_equal(up.buf, wanted.buf);
        assert_true(volume_has_image(volume));
        volume_free(volume);
        str_release(&up);
        str_release(&wanted);
    }
}

static void the_shape_of_a_volume_is_without_where_and_how_fast(void **state)
{
    static const struct {
        const char *text, *shape;
    } cases[] = {
        {"dir:/tmp", "dir:/tmp"},
        {"loop:fs=ext4,size=64M,in=/tmp,at=/tmp/t,scheduler=none,mount={noatime},mkfs={-b 4096}",
         "loop:fs=ext4,size=64M,mount=noatime,mkfs={-b 4096}"},
        {"vdisk:size=1G,fs=ext4,model=hdd-7200,with=a,flush=9ms,readahead=0,torn=512",
         "vdisk:size=1G,fs=ext4"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct volume_wish wish = {.name = "t"};
        struct str shape = STR_INIT;
        struct err err = ERR_INIT;
        struct volume *volume;
        int rc = open_there(place, &volume, cases[i].text, &wish, &err);
        if (rc < 0 && err.kind == ERR_ABSENT)
            continue; // not root, or no such devices here
        if (rc < 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        volume_shape(volume, &shape);
        assert_string_equal(shape.buf, cases[i].shape);
        volume_free(volume);
        str_release(&shape);
    }
}

static void what_is_missing_or_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"lvm:", "name the volume group"},
        {"lvm:vg=a/b", "vg=a/b is no name of a volume group"},
        {"lvm:vg=-x", "vg=-x is no name"},
        {"lvm:vg=a,stripesize=64k", "stripesize needs stripes=N"},
        {"lvm:vg=a,stripes=0", "stripes=0: must be a whole number between 1 and 128"},
        {"lvm:vg=a,stripes=2,stripesize=5000", "must be a power of two"},
        {"lvm:vg=a,size=100", "at least 1MB"},
        {"lvm:vg=a,fs=f2fs", "install the package f2fs-tools"},
        {"btrfs:", "name a directory of the btrfs"},
        {"btrfs:in=/proc", "in=/proc is not on a btrfs"},
        {"btrfs:in=/nowhere", "in=/nowhere: No such file"},
        {"btrfs:in=/proc,datacow=maybe", "datacow=maybe: must be yes or no"},
    };
    struct place *place = *state;
    struct volume_wish wish = {.name = "t"};

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        place_assert_refused(place, cases[i].text, cases[i].says);
    setenv("PATH", "/nowhere", 1);
    struct err err = ERR_INIT;
    struct volume *volume;
    assert_int_equal(volume_open(&volume, "lvm:vg=a", &wish, &err), -1);
    setenv("PATH", place->path, 1);
    assert_int_equal(err.kind, ERR_ABSENT);
    assert_string_equal(err.text,
                        "volume lvm: lvcreate is not installed: install the package lvm2");
}

// ---- what a device carries; a file does for one

static bool make_file_system(const char *path, const char *label)
{
    char *argv[] = {(char *)"mkfs.ext4", (char *)"-q", (char *)"-F", (char *)"-L",
                    (char *)label,       (char *)path, NULL};
    struct proc_result result;
    bool made = proc_run(argv, 0, &result, NULL) == 0 && result.status == 0;

    proc_result_release(&result);
    return made;
}

static void write_at(const char *path, off_t at, const char *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
}

static void assert_signature(const char *path, const char *says)
{
    struct err err = ERR_INIT;
    int rc = device_check_signature(path, &err);

    if (err.kind == ERR_ABSENT)
        skip(); // built without libblkid
    assert_int_equal(rc, says ? -1 : 0);
    if (says)
        assert_non_null(strstr(err.text, says));
}

static void only_what_prony_made_may_go(void **state)
{
    char path[] = "/tmp/prony-test-signature-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 16 << 20), 0);
    close(fd);
    assert_signature(path, NULL);
    // A partition table of the oldest kind, with one partition.
    write_at(path, 446, "\0\0\2\0\x83\0\3\0\0\x08\0\0\0\x10\0\0", 16);
    write_at(path, 510, "\x55\xaa", 2);
    assert_signature(path, "carries a partition table (dos)");
    write_at(path, 510, "\0\0", 2);
    write_at(path, 0, "LABELONE", 8); // half of LVM's mark is nothing
    assert_signature(path, NULL);
    if (make_file_system(path, "prony")) {
        assert_signature(path, NULL);
        assert_true(make_file_system(path, "mine"));
        assert_signature(path, "carries ext4, labelled mine that prony did not make");
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_plain_words),
        cmocka_unit_test(descriptions_are_named_once),
        cmocka_unit_test(a_volume_is_told_from_a_path),
        cmocka_unit_test(every_type_says_what_it_is),
        cmocka_unit_test(a_directory_is_a_volume_without_commands),
        cmocka_unit_test_setup_teardown(plans_are_those_of_the_manual_pages, place_make,
                                        place_clear),
        cmocka_unit_test_setup_teardown(a_plan_may_begin_from_an_image, place_make, place_clear),
        cmocka_unit_test_setup_teardown(the_shape_of_a_volume_is_without_where_and_how_fast,
                                        place_make, place_clear),
        cmocka_unit_test_setup_teardown(what_is_missing_or_wrong_is_named, place_make, place_clear),
        cmocka_unit_test(only_what_prony_made_may_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
