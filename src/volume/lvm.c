// lvm: - a logical volume, formatted and mounted. In a group that is there only the volume is made
// and removed; the group and what else is in it are not touched. Or the group is made, too, over
// disks that the user names, and all is taken apart at the end.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/device.h"
#include "volume/fs.h"
#include "volume/disk.h"
#include "volume/type.h"

#define SIZE_STANDARD (1LL << 30)
#define STRIPES_MAX   128
#define SECTOR        512

static const struct volume_key keys[] = {
    {"vg", "NAME", "the volume group; with dev its name (prony-NAME)"},
    {"dev", "{DEVICE...}", "disks to make the group of, cut at blanks; each needs --destroy"},
    {"size", "SIZE|N%", "of the logical volume, or of what the group has left (1GB)"},
    {"stripes", "N", "physical volumes it is spread over"},
    {"stripesize", "SIZE", "that goes to one before the next"},
    DISK_KEYS,
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
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

// "10G" as bytes, "100%" as a share of what the group has left.
static int add_size(struct plan_step *step, const struct volume *volume, struct err *err)
{
    const char *value = volume_value(volume, "size");
    size_t len = value ? strlen(value) : 0;
    int64_t bytes, share;
    char text[32];

    if (len > 0 && value[len - 1] == '%') {
        char *number = mem_strndup(value, len - 1);
        bool good = units_parse_int(number, &share, NULL) == 0 && share >= 1 && share <= 100;
        free(number);
        if (!good)
            return err_set(err, ERR_USAGE, "size=%s: must be between 1%% and 100%% of the group",
                           value);
        snprintf(text, sizeof(text), "%lld%%FREE", (long long)share);
        plan_word(step, "--extents");
        plan_word(step, text);
        return 0;
    }
    if (volume_size(volume, "size", SIZE_STANDARD, &bytes, err) < 0)
        return -1;
    if (bytes < 1 << 20 || bytes % SECTOR)
        return err_set(err, ERR_USAGE, "size=%s: must be a multiple of 512 bytes, at least 1MB",
                       value);
    snprintf(text, sizeof(text), "%lldb", (long long)bytes);
    plan_word(step, "--size");
    plan_word(step, text);
    return 0;
}

// What was not made needs no undoing, and fails.
static const char remove_group[] = "vgremove --yes \"$0\" || ! vgs \"$0\"";
static const char remove_disk[] = "pvremove --yes \"$0\" || ! pvs \"$0\"";

static void make_group(struct plan_of_volume *plan, const char *group, char *const *devices)
{
    struct plan_step *step;

    device_plan_wipe(plan, devices, NULL);
    for (char *const *device = devices; *device; device++) {
        step = plan_command(plan, "pvcreate", "--yes", *device, NULL);
        plan_undo(step, PLAN_COMMAND, "sh", "-c", remove_disk, *device, NULL);
    }
    step = plan_command(plan, "vgcreate", "--yes", group, NULL);
    for (char *const *device = devices; *device; device++)
        plan_word(step, *device);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND, "sh", "-c", remove_group, group, NULL);
}

static int check_here(const char *device, struct err *err)
{
    struct stat st;

    if (lstat(device, &st) == 0)
        return err_set(err, ERR_USAGE, "%s is there already: give this volume another name",
                       device);
    if (!fs_is_installed("lvcreate"))
        return err_set(err, ERR_ABSENT, "lvcreate is not installed: install the package lvm2");
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT,
                       "only root may make a logical volume: use sudo, or dir:PATH");
    return 0;
}

static int make_volume(struct plan_of_volume *plan, const struct volume *volume, const char *group,
                       const char *name, const char *device, struct err *err)
{
    char *full = mem_printf("%s/%s", group, name);
    struct plan_step *step =
        plan_command(plan, "lvcreate", "--yes", "--wipesignatures", "y", "--name", name, NULL);
    int rc = add_size(step, volume, err) < 0 || add_stripes(step, volume, err) < 0 ? -1 : 0;

    plan_word(step, group);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND_IF, device, "lvremove", "--yes", full, NULL);
    free(full);
    return rc;
}

// A journal of a size is a second logical volume in the group.
static int make_journal(struct plan_of_volume *plan, const struct volume *volume, const char *group,
                        struct err *err)
{
    const char *value = volume_value(volume, "journal");
    char *name, *full, size[32];
    int64_t bytes;

    if (!value || value[0] == '/')
        return 0; // as every disk has it
    if (volume_size(volume, "journal", 0, &bytes, err) < 0)
        return -1;
    if (bytes < 4 << 20 || bytes % SECTOR)
        return err_set(err, ERR_USAGE, "journal=%s: must be a multiple of 512 bytes, at least 4MB",
                       value);
    name = mem_printf("prony-%s-journal", volume->name);
    full = mem_printf("%s/%s", group, name);
    plan->journal = mem_printf("/dev/%s", full);
    snprintf(size, sizeof(size), "%lldb", (long long)bytes);
    struct plan_step *step = plan_command(plan, "lvcreate", "--yes", "--wipesignatures", "y",
                                          "--name", name, "--size", size, group, NULL);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND_IF, plan->journal, "lvremove", "--yes", full, NULL);
    free(full);
    free(name);
    return 0;
}

static int plan_lvm(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    const char *dev = volume_value(volume, "dev"), *given = volume_value(volume, "vg");
    char *name = mem_printf("prony-%s", volume->name), *device = NULL, *point = NULL;
    char *group = mem_strdup(given || !dev ? given : name), **devices = NULL;
    int rc = -1;

    if (check_group(group, err) < 0)
        goto out;
    device = mem_printf("/dev/%s/%s", group, name);
    if (dev && device_add_list(plan, "dev", dev, &devices, err) < 0)
        goto out;
    if (devices && !devices[0]) {
        err_set(err, ERR_USAGE, "dev names no disk: lvm:dev={/dev/sdX /dev/sdY}");
        goto out;
    }
    if (check_here(device, err) < 0)
        goto out;
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    plan_mount_point(plan, volume, point);
    if (devices)
        make_group(plan, group, devices);
    // The journal first: a share of what is left is of what the journal leaves.
    if (make_journal(plan, volume, group, err) < 0 ||
        make_volume(plan, volume, group, name, device, err) < 0)
        goto out;
    rc = disk_plan(plan, volume, device, 0, point, err);
out:
    device_free(devices);
    free(group);
    free(name);
    free(device);
    free(point);
    return rc;
}

const struct volume_type volume_type_lvm = {
    .name = "lvm",
    .summary = "a logical volume, in a group that is there or made of disks, formatted, mounted",
    .example = "lvm:vg=vol0,size=10G,stripes=4,stripesize=64k,fs=xfs",
    .keys = keys,
    .fresh = true,
    .plan = plan_lvm,
    .before = device_before,
};
