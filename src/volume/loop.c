// loop: - a file on a file system that is there, attached to a loop device past the page cache,
// formatted and mounted. All of it is removed again.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/block.h"
#include "volume/device.h"
#include "volume/files.h"
#include "volume/disk.h"
#include "volume/state.h"
#include "volume/type.h"

#define SIZE_STANDARD (1LL << 30)
#define SIZE_MIN      (1LL << 20)

static const char *const allocations[] = {"sparse", "full", NULL};
enum { SPARSE, FULL };

static const struct volume_key keys[] = {
    {"size", "SIZE", "of the file (1GB)"},
    DISK_KEYS,
    BLOCK_KEYS,
    {"in", "PATH", "where the file lies (the working directory)", true},
    {"alloc", "sparse|full", "full takes the space of the file at once (sparse)"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {NULL, NULL, NULL},
};

// A copied image takes what it takes where it is.
static int check_room_of_image(const struct volume *volume, const char *dir, struct err *err)
{
    char wanted[UNITS_MAX], there[UNITS_MAX];
    struct statvfs fs;
    struct stat st;

    if (!volume->wish.image || volume->wish.shares_image || stat(volume->wish.image, &st) < 0 ||
        statvfs(dir, &fs) < 0)
        return 0;
    int64_t bytes = (int64_t)st.st_blocks * 512;
    int64_t room = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    if (bytes <= room)
        return 0;
    return err_set(err, ERR_USAGE, "the saved image takes %s and %s has %s free: use in=PATH",
                   units_format_bytes(bytes, wanted), dir, units_format_bytes(room, there));
}

// The file, as the kernel will name it.
static char *file_path(const struct volume *volume, int64_t bytes, int allocation, struct err *err)
{
    char *dir = files_dir("in", volume_value(volume, "in"), err);
    char *name = mem_printf("prony-%s.img", volume->name), *file = NULL;

    if (dir && check_room_of_image(volume, dir, err) == 0 &&
        files_check_room(dir, "size", bytes, allocation == FULL, err) == 0)
        file = files_new(dir, name, err);
    free(name);
    free(dir);
    return file;
}

// What was written goes to the disk before anything is measured; a copy may be long.
static void plan_copy_of_image(struct plan_of_volume *plan, const char *from, bool shares,
                               const char *to)
{
    // What is shared has the holes of the other.
    struct plan_step *step = plan_command(plan, "cp", shares ? "--sparse=auto" : "--sparse=always",
                                          shares ? STATE_SHARES : "--reflink=never",
                                          "--no-target-directory", from, to, NULL);

    step->is_long = true;
    step = plan_command(plan, "sync", to, NULL);
    step->is_long = true;
}

static int plan_loop(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    char *file = NULL, *point = NULL, size[32];
    int64_t bytes;
    int allocation, rc = -1;

    if (volume_size(volume, "size", SIZE_STANDARD, &bytes, err) < 0 ||
        volume_choice(volume, "alloc", allocations, SPARSE, &allocation, err) < 0)
        return -1;
    if (bytes < SIZE_MIN || bytes % 4096)
        return err_set(err, ERR_USAGE, "size=%s: must be a multiple of 4kB, at least 1MB",
                       volume_value(volume, "size"));
    file = file_path(volume, bytes, allocation, err);
    if (!file || files_check_loops(err) < 0)
        goto out;
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    snprintf(size, sizeof(size), "%lld", (long long)bytes);

    // The mount point comes first: mkdir lets only one of two volumes of a name go on.
    plan_mount_point(plan, volume, point);
    struct plan_step *step =
        plan_command(plan, "sh", "-c", "umask 077; set -C; : >\"$0\"", file, NULL);
    step->exclusive = true; // set -C: what is there already fails
    plan_undo(step, PLAN_FILE, file, NULL);
    if (volume->wish.image)
        plan_copy_of_image(plan, volume->wish.image, volume->wish.shares_image, file);
    if (allocation == FULL)
        plan_command(plan, "fallocate", "--length", size, file, NULL);
    else if (!volume->wish.image)
        plan_command(plan, "truncate", "--size", size, file, NULL);
    plan->n_rest = plan->n_steps;
    files_plan_attach(plan, file, "LOOP");
    rc = disk_plan(plan, volume, "$LOOP", allocation == FULL ? PLAN_FS_ALLOCATED : 0, point, err);
    plan->file = mem_strdup(file);
out:
    free(file);
    free(point);
    return rc;
}

static int plan_save_loop(const struct volume *volume, const char *path,
                          struct plan_of_volume *plan, struct err *err)
{
    (void)err;
    plan_copy_of_image(plan, volume->plan.file, false, path);
    return 0;
}

const struct volume_type volume_type_loop = {
    .name = "loop",
    .summary = "a file, attached as a disk, formatted and mounted",
    .example = "loop:size=2G,fs=ext4,mount={noatime}",
    .keys = keys,
    .fresh = true,
    .plan = plan_loop,
    .plan_save = plan_save_loop,
    .before = device_before, // of a journal
};
