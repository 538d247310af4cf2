// The device of a journal is a file under a loop device, or one of the user's, which is wiped of
// what the volume put there. Only ext3 and ext4 want it made a journal before; xfs and jfs do so in
// mkfs.
#include "volume/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/device.h"
#include "volume/files.h"

#define VARIABLE   "JOURNAL"
#define SIZE_MIN   (4LL << 20)
#define BLOCK_SIZE "4096" // of ext: journal and file system must have the same

static bool is_ext(const char *fs)
{
    return strcmp(fs, "ext3") == 0 || strcmp(fs, "ext4") == 0;
}

static int plan_device_of_user(struct plan_of_volume *plan, const char *value, struct err *err)
{
    char **devices;

    if (device_add_list(plan, "journal", value, &devices, err) < 0)
        return -1;
    if (devices[0] && !devices[1]) {
        device_plan_wipe(plan, devices, "jbd,xfs_external_log,jfs");
        plan->journal = mem_strdup(devices[0]);
    } else {
        err_set(err, ERR_USAGE, "journal=%s: must be one device", value);
    }
    device_free(devices);
    return plan->journal ? 0 : -1;
}

static int plan_file(struct plan_of_volume *plan, const struct volume *volume, const char *value,
                     struct err *err)
{
    char *dir = NULL, *name = mem_printf("prony-%s-journal.img", volume->name), *file = NULL;
    int64_t bytes;
    int rc = -1;

    if (units_parse_size(value, &bytes, NULL) < 0) {
        err_set(err, ERR_USAGE, "journal=%s: must be a size, or a device as /dev/sdX", value);
        goto out;
    }
    if (bytes < SIZE_MIN || bytes % 4096) {
        err_set(err, ERR_USAGE, "journal=%s: must be a multiple of 4kB, at least 4MB", value);
        goto out;
    }
    dir = files_dir("in", volume_value(volume, "in"), err);
    if (!dir || files_check_room(dir, "journal", bytes, false, err) < 0)
        goto out;
    file = files_new(dir, name, err);
    if (!file || files_check_loops(err) < 0)
        goto out;
    files_plan_make(plan, file, bytes);
    files_plan_attach(plan, file, VARIABLE);
    plan->journal = mem_strdup("$" VARIABLE);
    rc = 0;
out:
    free(dir);
    free(name);
    free(file);
    return rc;
}

int journal_plan(struct plan_of_volume *plan, const struct volume *volume, struct err *err)
{
    const char *value = volume_value(volume, "journal");

    if (!value)
        return 0;
    return value[0] == '/' ? plan_device_of_user(plan, value, err)
                           : plan_file(plan, volume, value, err);
}

// Finds the value of a one-letter option among those of the user, "-b 1024" or "-b1024"; NULL:
// none. The caller frees it.
static char *option_value(const char *users, const char *option)
{
    const size_t len = strlen(option);

    for (const char *p = users; p && *p;) {
        p += strspn(p, " \t\n");
        if (strncmp(p, option, len) == 0) {
            p += len;
            p += strspn(p, " \t\n");
            return mem_strndup(p, strcspn(p, " \t\n"));
        }
        p += strcspn(p, " \t\n");
    }
    return NULL;
}

int journal_make(struct plan_of_volume *plan, const char *fs, const char *users, struct err *err)
{
    if (!is_ext(fs) && strcmp(fs, "xfs") != 0 && strcmp(fs, "jfs") != 0)
        return err_set(err, ERR_USAGE,
                       "journal: ext3, ext4, xfs and jfs can have it apart, %s cannot", fs);
    char *own = is_ext(fs) ? option_value(users, "-J") : NULL;
    bool two = own != NULL;
    free(own);
    if (two)
        return err_set(err, ERR_USAGE,
                       "journal and the option -J of mkfs are two words for one "
                       "thing: leave one away");
    if (!is_ext(fs))
        return 0;
    char *block = option_value(users, "-b");
    plan_command(plan, "mke2fs", "-q", "-F", "-O", "journal_dev", "-b", block ? block : BLOCK_SIZE,
                 plan->journal, NULL);
    free(block);
    return 0;
}

void journal_add_mkfs(const struct plan_of_volume *plan, struct plan_step *step, const char *fs,
                      const char *users)
{
    char *value = NULL;

    if (is_ext(fs)) {
        char *block = option_value(users, "-b");
        if (!block)
            plan_words(step, "-b " BLOCK_SIZE);
        free(block);
        value = mem_printf("device=%s", plan->journal);
        plan_word(step, "-J");
    } else if (strcmp(fs, "xfs") == 0) {
        value = mem_printf("logdev=%s", plan->journal);
        plan_word(step, "-l");
    } else {
        value = mem_strdup(plan->journal);
        plan_word(step, "-j");
    }
    plan_word(step, value);
    free(value);
}

char *journal_mount_option(const struct plan_of_volume *plan, const char *fs)
{
    return plan->journal && strcmp(fs, "xfs") == 0 ? mem_printf("logdev=%s", plan->journal) : NULL;
}
