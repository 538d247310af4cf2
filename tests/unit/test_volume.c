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
#include "volume/device.h"
#include "volume/type.h"

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
            assert_non_null(key->name);
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
        cmocka_unit_test(only_what_prony_made_may_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
