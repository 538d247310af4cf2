// The volume type and the disks it makes know the same keys.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "volume/type.h"
#include "volume/vdisk_spec.h"

static bool has_key(const struct volume_type *type, const char *name)
{
    for (const struct volume_key *key = type->keys; key->name; key++)
        if (strcmp(key->name, name) == 0)
            return true;
    return false;
}

static void every_key_of_a_disk_is_one_of_the_volume(void **state)
{
    (void)state;
    for (size_t i = 0; vdisk_spec_key(i); i++)
        if (!has_key(&volume_type_vdisk, vdisk_spec_key(i)))
            fail_msg("%s is missing", vdisk_spec_key(i));
}

static void every_other_key_of_the_volume_is_of_its_file_system_or_daemon(void **state)
{
    static const char *const others[] = {"fs",        "mkfs",      "mount", "at", "with",
                                         "scheduler", "readahead", "queue", NULL};

    (void)state;
    for (const struct volume_key *key = volume_type_vdisk.keys; key->name; key++) {
        bool known = vdisk_spec_has_key(key->name);
        for (size_t i = 0; others[i]; i++)
            known |= strcmp(others[i], key->name) == 0;
        if (!known)
            fail_msg("%s is nobody's", key->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_a_disk_is_one_of_the_volume),
        cmocka_unit_test(every_other_key_of_the_volume_is_of_its_file_system_or_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
