// btrfs: - a subvolume in a btrfs that is there. Only the subvolume is made and removed.
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "volume/fs.h"
#include "volume/type.h"

static const char *const yes_no[] = {"yes", "no", NULL};
enum { YES, NO };

static const struct volume_key keys[] = {
    {"in", "PATH", "a directory of the btrfs"},
    {"datacow", "yes|no", "no: files are overwritten in place, without checksums (yes)"},
    {NULL, NULL, NULL},
};

static int check_place(const char *in, const char *dir, struct err *err)
{
    struct statfs st;

    if (!dir)
        return err_set(err, ERR_USAGE, "in=%s: %s", in, strerror(errno));
    if (statfs(dir, &st) < 0 || (unsigned long)st.f_type != BTRFS_SUPER_MAGIC)
        return err_set(err, ERR_USAGE,
                       "in=%s is not on a btrfs: for one of its own use loop:fs=btrfs", in);
    if (!fs_is_installed("btrfs"))
        return err_set(err, ERR_ABSENT, "btrfs is not installed: install the package btrfs-progs");
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT, "only root may remove a subvolume: use sudo, or dir:PATH");
    return 0;
}

static int plan_btrfs(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    const char *in = volume_value(volume, "in");
    char *dir = in ? realpath(in, NULL) : NULL, *path = NULL;
    struct stat st;
    int datacow, rc = -1;

    if (!in) {
        err_set(err, ERR_USAGE, "name a directory of the btrfs: btrfs:in=/srv");
        goto out;
    }
    if (volume_choice(volume, "datacow", yes_no, YES, &datacow, err) < 0 ||
        check_place(in, dir, err) < 0)
        goto out;
    path = mem_printf("%s/prony-%s", strcmp(dir, "/") == 0 ? "" : dir, volume->name);
    if (lstat(path, &st) == 0) {
        err_set(err, ERR_USAGE, "%s is there already: give this volume another name", path);
        goto out;
    }
    struct plan_step *step = plan_command(plan, "btrfs", "subvolume", "create", path, NULL);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND_IF, path, "btrfs", "subvolume", "delete", path, NULL);
    if (datacow == NO)
        plan_command(plan, "chattr", "+C", path, NULL);
    plan->path = mem_strdup(path);
    rc = 0;
out:
    free(dir);
    free(path);
    return rc;
}

const struct volume_type volume_type_btrfs = {
    .name = "btrfs",
    .summary = "a subvolume in a btrfs that is there",
    .example = "btrfs:in=/srv,datacow=no",
    .keys = keys,
    .fresh = true,
    .plan = plan_btrfs,
};
