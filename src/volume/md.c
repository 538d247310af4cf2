// md: - a RAID over disks that the user names, made by mdadm, formatted and mounted. Taken apart
// again at the end: the array is stopped and its marks are removed from the disks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/device.h"
#include "volume/fs.h"
#include "volume/disk.h"
#include "volume/type.h"

#define CHUNK_MIN 4096
#define RESYNC_NS (48 * 3600 * 1000000000LL) // of large disks

static const char *const levels[] = {"0", "1", "4", "5", "6", "10", "linear", NULL};
static const int least[] = {1, 2, 2, 2, 4, 2, 1}; // disks, by level
enum { LEVEL_0, LEVEL_1, LEVEL_4, LEVEL_5, LEVEL_6, LEVEL_10, LEVEL_LINEAR };

static const char *const formats[] = {"0.90", "1.0", "1.1", "1.2", NULL};
enum { FORMAT_STANDARD = 3 };

static const char *const bitmaps[] = {"internal", "none", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};
enum { YES, NO };

static const struct volume_key keys[] = {
    {"dev", "{DEVICE...}", "the disks, cut at blanks; each needs --destroy"},
    {"level", "N", "0, 1, 4, 5, 6, 10 or linear (0)"},
    {"chunk", "SIZE", "that goes to one disk before the next (as mdadm chooses)"},
    {"layout", "WORD", "of level 5, 6 or 10, as left-symmetric or n2 (as mdadm chooses)"},
    {"metadata", "VERSION", "of the marks on the disks: 0.90, 1.0, 1.1 or 1.2 (1.2)"},
    {"bitmap", "internal|none", "notes which parts are being written (as mdadm chooses)"},
    {"assume-clean", "yes|no", "yes: no first resync; no: it is waited for (no)"},
    DISK_KEYS,
    {"readahead", "SIZE", "how far the kernel reads ahead; 0 not at all"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {NULL, NULL, NULL},
};

struct wish {
    int level, format, bitmap, assume_clean; // bitmap < 0: as mdadm chooses
    int64_t chunk;                           // 0: as mdadm chooses
    const char *layout;
    char **devices;
    size_t n;
};

static int read_wish(const struct volume *volume, struct plan_of_volume *plan, struct wish *ret,
                     struct err *err)
{
    const char *devices = volume_value(volume, "dev");

    if (volume_choice(volume, "level", levels, LEVEL_0, &ret->level, err) < 0 ||
        volume_choice(volume, "metadata", formats, FORMAT_STANDARD, &ret->format, err) < 0 ||
        volume_choice(volume, "bitmap", bitmaps, -1, &ret->bitmap, err) < 0 ||
        volume_choice(volume, "assume-clean", yes_no, NO, &ret->assume_clean, err) < 0 ||
        volume_size(volume, "chunk", 0, &ret->chunk, err) < 0)
        return -1;
    bool mirrors = ret->level == LEVEL_1;
    ret->layout = volume_value(volume, "layout");
    if (ret->chunk % CHUNK_MIN || (volume_value(volume, "chunk") && ret->chunk == 0))
        return err_set(err, ERR_USAGE, "chunk=%s: must be a multiple of 4kB",
                       volume_value(volume, "chunk"));
    if (ret->chunk && mirrors)
        return err_set(err, ERR_USAGE, "chunk: level 1 has none, for every disk holds all");
    if (ret->layout && ret->level != LEVEL_5 && ret->level != LEVEL_6 && ret->level != LEVEL_10)
        return err_set(err, ERR_USAGE, "layout is of level 5, 6 or 10");
    if (!devices)
        return err_set(err, ERR_USAGE, "name the disks: md:level=1,dev={/dev/sdX /dev/sdY}");
    if (device_add_list(plan, "dev", devices, &ret->devices, err) < 0)
        return -1;
    while (ret->devices[ret->n])
        ret->n++;
    if (ret->n < (size_t)least[ret->level])
        return err_set(err, ERR_USAGE, "level=%s takes at least %d disks, not %zu",
                       levels[ret->level], least[ret->level], ret->n);
    return 0;
}

static void add_option(struct plan_step *step, const char *fmt, const char *value)
{
    char *word = mem_printf("--%s=%s", fmt, value);

    plan_word(step, word);
    free(word);
}

static void make_array(struct plan_of_volume *plan, const struct wish *wish, const char *array)
{
    char number[32];

    device_plan_wipe(plan, wish->devices, "linux_raid_member");
    // --run: asks nothing.
    struct plan_step *step = plan_command(plan, "mdadm", "--create", array, "--run", NULL);
    add_option(step, "metadata", formats[wish->format]);
    add_option(step, "level", levels[wish->level]);
    snprintf(number, sizeof(number), "%zu", wish->n);
    add_option(step, "raid-devices", number);
    if (wish->n == 1)
        plan_word(step, "--force"); // one disk is thought to be a mistake
    if (wish->chunk) {
        snprintf(number, sizeof(number), "%lldK", (long long)(wish->chunk / 1024));
        add_option(step, "chunk", number);
    }
    if (wish->layout)
        add_option(step, "layout", wish->layout);
    if (wish->bitmap >= 0)
        add_option(step, "bitmap", bitmaps[wish->bitmap]);
    if (wish->assume_clean == YES)
        plan_word(step, "--assume-clean");
    for (size_t i = 0; i < wish->n; i++)
        plan_word(step, wish->devices[i]);
    plan_undo(step, PLAN_COMMAND_IF, array, "mdadm", "--stop", array, NULL);
    // What works in the background would disturb what is measured. It fails where nothing does.
    if (wish->assume_clean == NO && wish->level != LEVEL_0 && wish->level != LEVEL_LINEAR) {
        step = plan_command(plan, "sh", "-c", "mdadm --wait \"$0\" || true", array, NULL);
        step->deadline_ns = RESYNC_NS;
    }
}

static int plan_md(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    struct wish wish = {0};
    char *array = mem_printf("/dev/md/prony-%s", volume->name), *point = NULL;
    int rc = -1;

    if (read_wish(volume, plan, &wish, err) < 0)
        goto out;
    if (!fs_is_installed("mdadm")) {
        err_set(err, ERR_ABSENT, "mdadm is not installed: install the package mdadm");
        goto out;
    }
    if (geteuid() != 0) {
        err_set(err, ERR_ABSENT, "only root may make a RAID: use sudo, or dir:PATH");
        goto out;
    }
    if (access(array, F_OK) == 0) {
        err_set(err, ERR_USAGE, "%s is there already: give this volume another name", array);
        goto out;
    }
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    plan_mount_point(plan, volume, point);
    make_array(plan, &wish, array);
    rc = disk_plan(plan, volume, array, PLAN_FS_LABELLED, point, err);
out:
    device_free(wish.devices);
    free(array);
    free(point);
    return rc;
}

const struct volume_type volume_type_md = {
    .name = "md",
    .summary = "a RAID over disks (needs --destroy for each), formatted and mounted",
    .example = "md:level=10,dev={/dev/sdW /dev/sdX /dev/sdY /dev/sdZ},chunk=64k,fs=xfs",
    .keys = keys,
    .fresh = true,
    .plan = plan_md,
    .before = device_before,
};
