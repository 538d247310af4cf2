// Settings of the machine, on a tree of files that stands for /proc/sys and /sys.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/tree.h"
#include "volume/host.h"

struct place {
    char *dir, *claims;
    struct leftovers *leftovers;
};

static char *path_of(const struct place *place, const char *name)
{
    return mem_printf("%s%s", place->dir, name);
}

static void put(const struct place *place, const char *name, const char *text)
{
    char *path = path_of(place, name);
    int fd;

    for (char *slash = path + strlen(place->dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    free(path);
}

static char *get(const struct place *place, const char *name)
{
    char *path = path_of(place, name), *text = mem_calloc(1, 256);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(read(fd, text, 255) >= 0);
    close(fd);
    free(path);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void assert_is(const struct place *place, const char *name, const char *wanted)
{
    char *text = get(place, name);

    assert_string_equal(text, wanted);
    free(text);
}

static void lead(const struct place *place, const char *name, const char *target)
{
    put(place, name, "");
    char *path = path_of(place, name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

#define RATIO   "/proc/sys/vm/dirty_ratio"
#define BYTES   "/proc/sys/vm/dirty_bytes"
#define RMEM    "/proc/sys/net/ipv4/tcp_rmem"
#define VLAN    "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"
#define ARC     "/sys/module/zfs/parameters/zfs_arc_max"
#define FLAG    "/sys/module/m/parameters/flag"
#define THP     "/sys/kernel/mm/transparent_hugepage/enabled"
#define CPU(n)  "/sys/devices/system/cpu/cpu" n "/cpufreq/scaling_governor"
#define IGNORES "/proc/sys/vm/ignores"
#define NEVER   "/proc/sys/vm/never"

static int place_make(void **state)
{
    struct place *place = mem_calloc(1, sizeof(*place));

    place->dir = mem_strdup("/tmp/prony-test-host-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    setenv("XDG_RUNTIME_DIR", place->dir, 1);
    place->claims = path_of(place, "/claims");
    put(place, RATIO, "20\n");
    put(place, BYTES, "0\n");
    put(place, RMEM, "4096\t131072\t6291456\n");
    put(place, VLAN, "0\n");
    put(place, ARC, "0\n");
    put(place, FLAG, "N\n");
    put(place, THP, "always [madvise] never\n");
    put(place, CPU("0"), "powersave\n");
    put(place, CPU("1"), "schedutil\n");
    lead(place, IGNORES, "/dev/null");
    lead(place, NEVER, "/dev/full");
    assert_int_equal(leftovers_open(&place->leftovers, NULL), 0);
    *state = place;
    return 0;
}

static int place_clear(void **state)
{
    struct place *place = *state;

    leftovers_close(place->leftovers, NULL);
    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->claims);
    free(place);
    return 0;
}

static int set(struct place *place, struct host_settings **ret, const char *const *items, size_t n,
               struct err *err)
{
    struct host_wish wish = {
        .items = (char *const *)items,
        .n = n,
        .leftovers = place->leftovers,
        .root = place->dir,
        .claims = place->claims,
    };

    return host_set(ret, &wish, err);
}

static void each_kind_of_key_has_its_file(void **state)
{
    static const struct {
        const char *item, *file, *is, *was;
    } cases[] = {
        {"vm.dirty_ratio=5", RATIO, "5", "20"},
        {"vm/dirty_ratio=5", RATIO, "5", "20"},
        {"net/ipv4/conf/eth0.1/rp_filter=1", VLAN, "1", "0"},
        {"net.ipv4.conf.eth0/1.rp_filter=1", VLAN, "1", "0"},
        {"zfs.arc_max=64MB", ARC, "67108864", "0"},
        {"zfs.zfs_arc_max=7", ARC, "7", "0"},
        {"module.m.flag=Y", FLAG, "Y", "N"},
        {"/sys/module/m/parameters/flag=Y", FLAG, "Y", "N"},
        {"/proc/sys/vm/dirty_ratio=6", RATIO, "6", "20"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct host_settings *settings;
        struct err err = ERR_INIT;
        if (set(place, &settings, &cases[i].item, 1, &err) < 0)
            fail_msg("%s: %s", cases[i].item, err.text);
        assert_is(place, cases[i].file, cases[i].is);
        assert_int_equal(host_put_back(settings, NULL), 0);
        assert_is(place, cases[i].file, cases[i].was);
    }
}

static void all_are_told_and_put_back(void **state)
{
    static const char *const items[] = {"vm.dirty_ratio=5", "net.ipv4.tcp_rmem=1 2 3",
                                        "governor=performance"};
    struct place *place = *state;
    struct host_settings *settings;
    struct kvs facts = KVS_INIT;
    struct str text = STR_INIT;
    struct err err = ERR_INIT;

    if (set(place, &settings, items, ARR_LEN(items), &err) < 0)
        fail_msg("%s", err.text);
    assert_is(place, CPU("0"), "performance");
    assert_is(place, CPU("1"), "performance");
    host_describe(settings, &text);
    assert_string_equal(text.buf, "vm.dirty_ratio=5 (was 20), net.ipv4.tcp_rmem=1 2 3 (was 4096 "
                                  "131072 6291456), governor=performance (was powersave)");
    host_record_settings(settings, &facts);
    assert_string_equal(kvs_get(&facts, "host.set.vm.dirty_ratio"), "5");
    assert_string_equal(kvs_get(&facts, "host.was.vm.dirty_ratio"), "20");
    assert_int_equal(facts.n, 6);
    assert_int_equal(host_put_back(settings, NULL), 0);
    assert_is(place, RATIO, "20");
    assert_is(place, RMEM, "4096 131072 6291456");
    assert_is(place, CPU("0"), "powersave");
    assert_is(place, CPU("1"), "schedutil");
    assert_int_equal(rmdir(place->claims), 0); // empty
    kvs_release(&facts);
    str_release(&text);
}

// A choice is shown with all its words; one that is as wanted is not written.
static void a_choice_that_is_so_stays(void **state)
{
    static const char *const items[] = {"thp=madvise", "module.m.flag=0"};
    struct place *place = *state;
    struct host_settings *settings;
    struct err err = ERR_INIT;

    if (set(place, &settings, items, ARR_LEN(items), &err) < 0)
        fail_msg("%s", err.text);
    assert_is(place, THP, "always [madvise] never");
    assert_is(place, FLAG, "N");
    assert_int_equal(host_put_back(settings, NULL), 0);
}

static void what_cannot_be_is_told_and_nothing_stays(void **state)
{
    static const struct {
        const char *second;
        enum err_kind kind;
        const char *says;
    } cases[] = {
        {"x", ERR_USAGE, "must be KEY=VALUE"},
        {"=1", ERR_USAGE, "must be KEY=VALUE"},
        {"vm.x=", ERR_USAGE, "must be KEY=VALUE"},
        {"vm.x=1\n2", ERR_USAGE, "must be KEY=VALUE"},
        {"vm.dirty_byte=1", ERR_USAGE, "did you mean dirty_bytes?"},
        {"nothing.at.all=1", ERR_USAGE, "there is no "},
        {"module.none.x=1", ERR_ABSENT, "the module none is not loaded"},
        {"vm.dirty_ratio=6", ERR_USAGE, "given twice"},
        {"/proc/sys/vm/dirty_ratio=6", ERR_USAGE, "given twice"},
        {"vm.dirty_bytes=4096", ERR_USAGE, "the kernel keeps only one of"},
        {"vm.ignores=1", ERR_USAGE, "the kernel made  of it"},
        {"vm.never=1", ERR_USAGE, "No space left on device"},
        {"/etc/passwd=1", ERR_USAGE, "must be a sysctl"},
        {"/proc/sys/../../etc/passwd=1", ERR_USAGE, "must be a sysctl"},
        {"vm...x=1", ERR_USAGE, "must be a sysctl"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        const char *items[] = {"vm.dirty_ratio=5", cases[i].second};
        struct host_settings *settings;
        struct err err = ERR_INIT;
        assert_int_equal(set(place, &settings, items, 2, &err), -1);
        if (err.kind != cases[i].kind || !strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].second, err.text);
        assert_is(place, RATIO, "20");
    }
    (void)rmdir(place->claims); // where it was made
    assert_int_equal(access(place->claims, F_OK), -1);
}

// The kernel shows 0 for the one that the other has replaced, and does not take it back.
static void of_a_pair_the_one_that_counts_is_put_back(void **state)
{
    static const char *const item = "vm.dirty_bytes=64MB";
    struct place *place = *state;
    struct host_settings *settings;

    assert_int_equal(set(place, &settings, &item, 1, NULL), 0);
    assert_is(place, BYTES, "67108864");
    put(place, RATIO, "0\n"); // as the kernel does
    assert_int_equal(host_put_back(settings, NULL), 0);
    assert_is(place, RATIO, "20");
}

static void one_that_another_has_set_is_refused(void **state)
{
    static const char *const item = "vm.dirty_ratio=5", *const other = "vm.dirty_bytes=4096";
    struct place *place = *state;
    struct host_settings *settings;
    struct err err = ERR_INIT;
    int ready[2], status;
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct place theirs = *place;
        setenv("XDG_RUNTIME_DIR", place->dir, 1);
        if (leftovers_open(&theirs.leftovers, NULL) < 0 ||
            set(&theirs, &settings, &item, 1, NULL) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_is(place, RATIO, "5");
    char *owner = mem_printf("process %d", (int)child);
    assert_int_equal(set(place, &settings, &item, 1, &err), -1);
    assert_non_null(strstr(err.text, owner));
    assert_int_equal(set(place, &settings, &other, 1, &err), -1); // of the same pair
    assert_non_null(strstr(err.text, owner));
    assert_is(place, RATIO, "5");
    free(owner);

    // After kill -9 it is put back, and then free.
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    int set_in_the_end = -1;
    for (int i = 0; i < 6000 && set_in_the_end < 0; i++) {
        set_in_the_end = set(place, &settings, &item, 1, &err);
        if (set_in_the_end < 0)
            clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 10 * NS_PER_MS);
    }
    assert_int_equal(set_in_the_end, 0);
    assert_int_equal(host_put_back(settings, NULL), 0);
    assert_is(place, RATIO, "20");
    close(ready[0]);
    close(ready[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_kind_of_key_has_its_file),
        TEST(all_are_told_and_put_back),
        TEST(a_choice_that_is_so_stays),
        TEST(what_cannot_be_is_told_and_nothing_stays),
        TEST(of_a_pair_the_one_that_counts_is_put_back),
        TEST(one_that_another_has_set_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
