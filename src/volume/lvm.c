// lvm: - a logical volume in a volume group that is there, formatted and mounted. Only the volume
// is made and removed; the group and what else is in it are not touched.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/fs.h"
#include "volume/type.h"

#define SIZE_STANDARD (1LL << 30)
#define STRIPES_MAX   128
#define SECTOR        512

static const struct volume_key keys[] = {
    {"vg", "NAME", "the volume group"},
    {"size", "SIZE", "of the logical volume (1GB)"},
    {"stripes", "N", "physical volumes it is spread over"},
    {"stripesize", "SIZE", "that goes to one before the next"},
    {"fs", "NAME", "file system: whatever mkfs.NAME and the kernel offer (ext4)"},
    {"mkfs", "{OPTION...}", "options for mkfs.NAME, cut at blanks"},
    {"mount", "{OPTION,...}", "mount options"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)"},
    {NULL, NULL, NULL},
};

static int check_group(const char *name, struct err *err)
{
    const char *p = name;

    if (!name || !*name)
        return err_set(err, ERR_USAGE, "name the volume group: lvm:vg=vol0,size=10G");
    while (isalnum((unsigned char)*p) || (*p && strchr("+_.-", *p)))
        p++;
    if (*p || *name == '-' || *name == '.')
        return err_set(err, ERR_USAGE, "vg=%s is no name of a volume group", name);
    return 0;
}

static int add_stripes(struct plan_step *step, const struct volume *volume, struct err *err)
{
    const char *stripes = volume_value(volume, "stripes");
    int64_t n, bytes;
    char text[32];

    if (volume_value(volume, "stripesize") && !stripes)
        return err_set(err, ERR_USAGE, "stripesize needs stripes=N");
    if (!stripes)
        return 0;
    if (units_parse_int(stripes, &n, NULL) < 0 || n < 1 || n > STRIPES_MAX)
        return err_set(err, ERR_USAGE, "stripes=%s: must be a whole number between 1 and %d",
                       stripes, STRIPES_MAX);
    plan_word(step, "--stripes");
    plan_word(step, stripes);
    if (!volume_value(volume, "stripesize"))
        return 0;
    if (volume_size(volume, "stripesize", 0, &bytes, err) < 0)
        return -1;
    if (bytes < 4096 || (bytes & (bytes - 1)))
        return err_set(err, ERR_USAGE, "stripesize=%s: must be a power of two, at least 4kB",
                       volume_value(volume, "stripesize"));
    snprintf(text, sizeof(text), "%lldk", (long long)(bytes / 1024));
    plan_word(step, "--stripesize");
    plan_word(step, text);
    return 0;
}

static int plan_lvm(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    const char *group = volume_value(volume, "vg");
    char *name = mem_printf("prony-%s", volume->name), *device = NULL, *point = NULL, size[32];
    char *full = NULL;
    struct stat st;
    int64_t bytes;
    int rc = -1;

    if (check_group(group, err) < 0 || volume_size(volume, "size", SIZE_STANDARD, &bytes, err) < 0)
        goto out;
    device = mem_printf("/dev/%s/%s", group, name);
    full = mem_printf("%s/%s", group, name);
    if (bytes < 1 << 20 || bytes % SECTOR) {
        err_set(err, ERR_USAGE, "size=%s: must be a multiple of 512 bytes, at least 1MB",
                volume_value(volume, "size"));
        goto out;
    }
    if (lstat(device, &st) == 0) {
        err_set(err, ERR_USAGE, "%s is there already: give this volume another name", device);
        goto out;
    }
    if (!fs_is_installed("lvcreate")) {
        err_set(err, ERR_ABSENT, "lvcreate is not installed: install the package lvm2");
        goto out;
    }
    if (geteuid() != 0) {
        err_set(err, ERR_ABSENT, "only root may make a logical volume: use sudo, or dir:PATH");
        goto out;
    }
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    snprintf(size, sizeof(size), "%lldb", (long long)bytes);
    plan_mount_point(plan, volume, point);
    struct plan_step *step = plan_command(plan, "lvcreate", "--yes", "--wipesignatures", "y",
                                          "--name", name, "--size", size, NULL);
    if (add_stripes(step, volume, err) < 0)
        goto out;
    plan_word(step, group);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND_IF, device, "lvremove", "--yes", full, NULL);
    rc = plan_file_system(plan, volume, device, 0, point, err);
    plan->path = mem_strdup(point);
out:
    free(full);
    free(name);
    free(device);
    free(point);
    return rc;
}

const struct volume_type volume_type_lvm = {
    .name = "lvm",
    .summary = "a logical volume in a group that is there, formatted and mounted",
    .example = "lvm:vg=vol0,size=10G,stripes=4,stripesize=64k,fs=xfs",
    .keys = keys,
    .fresh = true,
    .plan = plan_lvm,
};
