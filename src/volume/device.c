// device:/dev/... - a disk or partition of this machine, formatted and mounted. What is on it is
// lost: it must be named once more with --destroy, nobody may use it, and it may carry nothing but
// a file system that an earlier prony made there.
#include "volume/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "volume/block.h"
#include "volume/fs.h"
#include "volume/disk.h"
#include "volume/type.h"

#ifdef HAVE_BLKID
#include <blkid.h>
#endif

static const struct volume_key keys[] = {
    {"path", "DEVICE", "the disk or partition; device:/dev/sdX is short for it"},
    DISK_KEYS,
    BLOCK_KEYS,
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {NULL, NULL, NULL},
};

#ifdef HAVE_BLKID

// Value of a tag that the probe found, or NULL.
static const char *tag(blkid_probe probe, const char *name)
{
    const char *value = NULL;

    return blkid_probe_lookup_value(probe, name, &value, NULL) == 0 ? value : NULL;
}

int device_check_signature(const char *path, struct err *err)
{
    blkid_probe probe = blkid_new_probe_from_filename(path);
    int rc = 0;

    if (!probe)
        return err_set(err, ERR_USAGE, "%s cannot be read: %s", path, strerror(errno));
    blkid_probe_enable_partitions(probe, 1);
    blkid_probe_enable_superblocks(probe, 1);
    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL);
    int found = blkid_do_safeprobe(probe); // 0: something, 1: nothing, -2: several things
    const char *type = found == 0 ? tag(probe, "TYPE") : NULL;
    const char *table = found == 0 ? tag(probe, "PTTYPE") : NULL;
    const char *label = found == 0 ? tag(probe, "LABEL") : NULL;
    if (found == -2)
        rc = err_set(err, ERR_USAGE, "%s carries signatures of more than one kind", path);
    else if (found < 0)
        rc = err_set(err, ERR_FAILED, "%s cannot be looked at for what it carries", path);
    else if (table)
        rc = err_set(err, ERR_USAGE, "%s carries a partition table (%s)", path, table);
    else if (type && (!label || strcmp(label, FS_LABEL) != 0))
        rc = err_set(err, ERR_USAGE, "%s carries %s%s%s", path, type, label ? ", labelled " : "",
                     label ? label : "");
    blkid_free_probe(probe);
    if (rc < 0 && err && err->kind == ERR_USAGE)
        err_set(err, ERR_USAGE,
                "%s that prony did not make: if it is really to go, remove it yourself (wipefs "
                "--all %s)",
                err->text, path);
    return rc;
}

#else

int device_check_signature(const char *path, struct err *err)
{
    return err_set(err, ERR_ABSENT,
                   "%s: this prony was built without libblkid, so it cannot tell what the device "
                   "carries",
                   path);
}

#endif

// The kernel lets only one claim a device: mounts, swap, RAID, LVM and partitions in use do.
static int check_free(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);

    if (fd < 0)
        return errno == EBUSY ? err_set(err, ERR_USAGE,
                                        "%s is in use (mounted, swap, or part of "
                                        "something larger)",
                                        path)
                              : err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

static bool is_spelled_out(const struct volume *volume, const char *path)
{
    bool found = false;

    for (char *const *name = volume->wish.destroy; !found && name && *name; name++) {
        char *real = realpath(*name, NULL);
        found = real && strcmp(real, path) == 0;
        free(real);
    }
    return found;
}

static int check_device(const struct volume *volume, const char *path, struct err *err)
{
    if (!is_spelled_out(volume, path))
        return err_set(err, ERR_USAGE,
                       "all that is on %s would be lost: if it may, add --destroy %s", path, path);
    if (check_free(path, err) < 0)
        return -1;
    return device_check_signature(path, err);
}

int device_before(const struct volume *volume, struct err *err)
{
    for (char *const *path = volume->plan.devices; path && *path; path++)
        if (check_device(volume, *path, err) < 0)
            return -1;
    return 0;
}

// ---- as named in a text

char *device_add(struct plan_of_volume *plan, const char *key, const char *given, struct err *err)
{
    char *path = realpath(given, NULL);
    struct stat st;

    if (!path || stat(path, &st) < 0) {
        err_set(err, ERR_USAGE, "%s=%s: %s", key, given, strerror(errno));
        goto fail;
    }
    if (!S_ISBLK(st.st_mode)) {
        err_set(err, ERR_USAGE, "%s=%s is not a block device", key, given);
        goto fail;
    }
    for (char *const *other = plan->devices; other && *other; other++) {
        if (strcmp(*other, path) == 0) {
            err_set(err, ERR_USAGE, "%s=%s: %s stands there twice", key, given, path);
            goto fail;
        }
    }
    plan_device(plan, path);
    return path;
fail:
    free(path);
    return NULL;
}

int device_add_list(struct plan_of_volume *plan, const char *key, const char *given, char ***ret,
                    struct err *err)
{
    static const char between[] = " \t\n,";
    char *copy = mem_strdup(given), *rest = copy;
    size_t n = 0;

    *ret = mem_calloc(strlen(given) / 2 + 2, sizeof(**ret)); // words have blanks between them
    for (char *word; (word = strsep(&rest, between));) {
        if (!*word)
            continue;
        (*ret)[n] = device_add(plan, key, word, err);
        if (!(*ret)[n++]) {
            device_free(*ret);
            *ret = NULL;
            free(copy);
            return -1;
        }
    }
    free(copy);
    return 0;
}

void device_free(char **devices)
{
    for (size_t i = 0; devices && devices[i]; i++)
        free(devices[i]);
    free(devices);
}

static void add_words(char ***words, size_t *n, char *const *more)
{
    for (; *more; more++) {
        *words = mem_resize(*words, *n + 2, sizeof(**words));
        (*words)[(*n)++] = *more;
        (*words)[*n] = NULL;
    }
}

void device_plan_wipe(struct plan_of_volume *plan, char *const *devices, const char *types)
{
    struct plan_step *step = plan_command(plan, "wipefs", "--quiet", "--all", NULL);
    char **undo = NULL;
    size_t n = 0;

    step->destroys = true;
    add_words(&undo, &n, (char *[]){"wipefs", "--quiet", "--all", "--types", (char *)types, NULL});
    add_words(&undo, &n, devices);
    for (char *const *device = devices; *device; device++)
        plan_word(step, *device);
    if (types)
        plan_undo_argv(step, PLAN_COMMAND, undo);
    free(undo);
}

// ---- the type

static int plan_device_type(const struct volume *volume, struct plan_of_volume *plan,
                            struct err *err)
{
    const char *given = volume_value(volume, "path");
    char *device = NULL, *point = NULL;
    int rc = -1;

    if (!given || !*given)
        return err_set(err, ERR_USAGE, "name the device: device:/dev/sdX,fs=ext4");
    device = device_add(plan, "path", given, err);
    if (!device)
        goto out;
    if (geteuid() != 0) {
        err_set(err, ERR_ABSENT, "only root may format and mount a device: use sudo, or dir:PATH");
        goto out;
    }
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    plan_mount_point(plan, volume, point);
    rc = disk_plan(plan, volume, device, PLAN_FS_OVERWRITE, point, err);
out:
    free(device);
    free(point);
    return rc;
}

const struct volume_type volume_type_device = {
    .name = "device",
    .summary = "a disk or partition, formatted (needs --destroy) and mounted",
    .example = "device:/dev/sdX,fs=xfs",
    .keys = keys,
    .fresh = true,
    .plan = plan_device_type,
    .before = device_before,
};
