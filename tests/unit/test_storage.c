// Storage is described from what this machine really has: the same facts by other means.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "watch/host.h"
#include "watch/storage.h"
#include "watch/sysfs.h"

static void the_root_has_a_file_system_and_options(void **state)
{
    struct storage s;
    char summary[256];

    (void)state;
    storage_describe("/", &s);
    assert_string_equal(s.path, "/");
    assert_string_equal(s.mount_point, "/");
    assert_true(s.fs[0] && strncmp(s.fs, "unknown", 7) != 0);
    assert_non_null(strpbrk(s.mount_options, "r")); // rw or ro
    assert_true(s.n_layers > 0 || s.unknown[0] || s.in_memory);
    storage_summary(&s, summary, sizeof(summary));
    assert_non_null(strstr(summary, s.fs));
}

static void proc_is_no_place_on_a_block_device(void **state)
{
    struct storage s;

    (void)state;
    storage_describe("/proc/sys", &s);
    assert_string_equal(s.fs, "proc");
    assert_int_equal(s.n_layers, 0);
    assert_true(s.unknown[0] != '\0');
}

static void a_file_in_shared_memory_is_in_memory(void **state)
{
    struct storage s;

    (void)state;
    if (access("/dev/shm", F_OK) != 0)
        skip();
    storage_describe("/dev/shm/not-there-yet.db", &s);
    assert_string_equal(s.path, "/dev/shm");
    assert_true(s.in_memory);
}

static void what_does_not_exist_is_judged_by_its_parent(void **state)
{
    struct storage here, there;

    (void)state;
    storage_describe("/tmp", &here);
    storage_describe("/tmp/prony-none/a/b.db", &there);
    assert_string_equal(here.path, there.path);
    storage_describe("prony-none.db", &there); // relative, no slash
    assert_true(there.path[0] == '/');
    assert_true(strncmp(there.fs, "unknown", 7) != 0);
}

static void a_device_is_shared_with_itself(void **state)
{
    struct storage a, b;

    (void)state;
    storage_describe("/tmp", &a);
    b = a;
    assert_true(storage_shares_device(&a, &b));
    storage_describe("/proc", &b);
    assert_false(storage_shares_device(&a, &b));
}

static void no_recorded_value_is_empty(void **state)
{
    struct kvs env = KVS_INIT;
    struct storage s;

    (void)state;
    storage_describe("/", &s);
    storage_record(&s, "data", &env);
    storage_describe("/proc", &s);
    storage_record(&s, "log", &env);
    host_record(&env);
    assert_non_null(kvs_get(&env, "data.filesystem"));
    assert_non_null(kvs_get(&env, "host.kernel"));
    assert_non_null(kvs_get(&env, "log.device"));
    for (size_t i = 0; i < env.n; i++)
        if (!env.items[i].value || !env.items[i].value[0] ||
            strcmp(env.items[i].value, "unknown: ") == 0)
            fail_msg("%s is empty", env.items[i].key);
    kvs_release(&env);
}

static void host_samples_move_forward(void **state)
{
    struct host_sample a, b;

    (void)state;
    host_sample_take(&a);
    usleep(20000);
    host_sample_take(&b);
    assert_true(b.mono_ns > a.mono_ns);
    assert_true(b.idle_s + b.user_s >= a.idle_s + a.user_s);
    assert_true(a.cpus >= 1);
    assert_true(a.free_memory_bytes > 0);
}

static void values_are_found_in_lines_of_any_length(void **state)
{
    static const struct {
        const char *name, *value; // NULL: none
    } cases[] = {{"flags", "fpu ... hypervisor"},
                 {"MemTotal", "12 kB"},
                 {"NAME", "Debian 12"},
                 {"fpu", NULL},
                 {"Mem", NULL},
                 {"none", NULL}};
    char path[] = "/tmp/prony-test-XXXXXX", value[8192], *end;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");

    (void)state;
    assert_non_null(file);
    fprintf(file, "MemTotal:   12 kB\nflags\t\t: fpu %2000s hypervisor\nNAME=\"Debian 12\"\n", "x");
    fclose(file);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool found = sysfs_value(value, sizeof(value), path, cases[i].name);
        assert_int_equal(found, cases[i].value != NULL);
        if (found && strstr(cases[i].value, "hypervisor")) {
            end = strstr(value, "hypervisor");
            assert_non_null(end);
            assert_string_equal(end, "hypervisor");
        } else if (found) {
            assert_string_equal(value, cases[i].value);
        }
    }
    assert_false(sysfs_value(value, sizeof(value), "/tmp/prony-none", "x"));
    unlink(path);
}

static void an_empty_file_has_a_reason(void **state)
{
    char path[] = "/tmp/prony-test-XXXXXX", line[64];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    errno = 0;
    assert_false(sysfs_line(line, sizeof(line), "%s", path));
    assert_int_not_equal(errno, 0);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_has_a_file_system_and_options),
        cmocka_unit_test(proc_is_no_place_on_a_block_device),
        cmocka_unit_test(a_file_in_shared_memory_is_in_memory),
        cmocka_unit_test(what_does_not_exist_is_judged_by_its_parent),
        cmocka_unit_test(a_device_is_shared_with_itself),
        cmocka_unit_test(no_recorded_value_is_empty),
        cmocka_unit_test(values_are_found_in_lines_of_any_length),
        cmocka_unit_test(an_empty_file_has_a_reason),
        cmocka_unit_test(host_samples_move_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
