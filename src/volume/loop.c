// loop: - a file on a file system that is there, attached to a loop device past the page cache,
// formatted and mounted. All of it is removed again.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "volume/block.h"
#include "volume/state.h"
#include "volume/type.h"

#define SIZE_STANDARD (1LL << 30)
#define SIZE_MIN      (1LL << 20)

static const char *const allocations[] = {"sparse", "full", NULL};
enum { SPARSE, FULL };

static const struct volume_key keys[] = {
    {"size", "SIZE", "of the file (1GB)"},
    {"fs", "NAME", "file system: whatever mkfs.NAME and the kernel offer (ext4)"},
    {"mkfs", "{OPTION...}", "options for mkfs.NAME, cut at blanks"},
    {"mount", "{OPTION,...}", "mount options"},
    BLOCK_KEYS,
    {"in", "PATH", "where the file lies (the working directory)", true},
    {"alloc", "sparse|full", "full takes the space of the file at once (sparse)"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {NULL, NULL, NULL},
};

// The file, absolute and without symbolic links, as the kernel will name it.
static char *file_path(const struct volume *volume, struct err *err)
{
    const char *in = volume_value(volume, "in");
    char *dir = realpath(in ? in : ".", NULL);
    struct stat st;
    char *file = NULL;

    if (!dir) {
        err_set(err, ERR_USAGE, "in=%s: %s", in ? in : ".", strerror(errno));
    } else if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_USAGE, "in=%s is not a directory", in ? in : ".");
    } else {
        file = mem_printf("%s/prony-%s.img", strcmp(dir, "/") == 0 ? "" : dir, volume->name);
        if (lstat(file, &st) == 0) {
            err_set(err, ERR_USAGE,
                    "%s is there already: take that volume down, or give this one another name",
                    file);
            free(file);
            file = NULL;
        }
    }
    free(dir);
    return file;
}

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

static int check_room(const struct volume *volume, const char *file, int64_t bytes, int allocation,
                      struct err *err)
{
    char *dir = mem_strndup(file, (size_t)(strrchr(file, '/') - file) + 1);
    char wanted[UNITS_MAX], there[UNITS_MAX];
    struct statvfs st;
    int rc = check_room_of_image(volume, dir, err);

    if (rc == 0 && statvfs(dir, &st) == 0) {
        // A sparse file may be larger than what is free; but not than the whole.
        int64_t room =
            (int64_t)(allocation == FULL ? st.f_bavail : st.f_blocks) * (int64_t)st.f_frsize;
        if (bytes > room)
            rc = err_set(err, ERR_USAGE, "size=%s: %s has %s%s: use a smaller size, or in=PATH",
                         units_format_bytes_exact(bytes, wanted), dir,
                         units_format_bytes(room, there), allocation == FULL ? " free" : "");
    }
    free(dir);
    return rc;
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

// Who may attach loop devices, where there are any?
static int check_rights(struct err *err)
{
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT,
                       "a loop volume is attached and mounted, which only root may: use sudo, or "
                       "dir:PATH");
    if (access("/dev/loop-control", R_OK | W_OK) < 0)
        return err_set(err, ERR_ABSENT,
                       "there are no loop devices here (/dev/loop-control: %s): load the module "
                       "loop, or use dir:PATH",
                       strerror(errno));
    return 0;
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
    file = file_path(volume, err);
    if (!file || check_room(volume, file, bytes, allocation, err) < 0 || check_rights(err) < 0)
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
    step = plan_command(plan, "losetup", "--find", "--show", "--direct-io=on", file, NULL);
    step->variable = mem_strdup("LOOP");
    plan_undo(step, PLAN_DETACH, file, NULL);
    if (block_plan(plan, volume, "$LOOP", err) < 0)
        goto out;
    rc = plan_file_system(plan, volume, "$LOOP", allocation == FULL ? PLAN_FS_ALLOCATED : 0, point,
                          err);
    plan->path = mem_strdup(point);
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
};
