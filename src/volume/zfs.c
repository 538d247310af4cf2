// zfs: - a pool of prony's own over files or devices, or a dataset in one that is there, mounted.
//
// The pool is in no cache file and is never imported: after a reboot or the end of zfs-fuse nothing
// but its files is left. Datasets are unmounted by umount, as any file system, never by force.
#include "volume/zfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "volume/device.h"
#include "volume/files.h"

#define LOOK_NS (30 * NS_PER_S)

static const struct volume_key keys[] = {
    {"layout", "NAME", "stripe, mirror, raidz, raidz2 or raidz3 (stripe)"},
    {"size", "SIZE", "of each file that stands for a disk (1GB)"},
    {"disks", "N", "files (as few as the layout takes)"},
    {"dir", "PATH", "where the files lie (the working directory)", true},
    {"dev", "{DEVICE...}", "disks instead of files, cut at blanks; each needs --destroy"},
    {"group", "N", "disks in each mirror or raidz (all in one)"},
    {"log", "SIZE|{DEVICE...}", "a log apart: a file or devices; {mirror A B} mirrors it"},
    {"cache", "SIZE|{DEVICE...}", "second-level cache: a file or devices"},
    {"in", "POOL", "a pool or dataset that is there: only a dataset is made and removed"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {NULL, NULL, NULL},
};

// What one that is not there, or whose daemon is dead, needs.
static const char destroy_pool[] = "zpool destroy \"$0\" || ! zpool list \"$0\"";
static const char destroy_dataset[] = "zfs destroy \"$0\" || ! zfs list \"$0\"";

// ---- the plan

static void add_properties(struct plan_step *step, const struct kvs *properties)
{
    for (size_t i = 0; i < properties->n; i++) {
        char *word = mem_printf("%s=%s", properties->items[i].key, properties->items[i].value);
        plan_word(step, "-o");
        plan_word(step, word);
        free(word);
    }
}

// Returns whether there are any.
static bool wipe_devices(struct plan_of_volume *plan, const struct zfs_shape *shape)
{
    char **devices = mem_calloc(shape->n_parts + 1, sizeof(*devices));
    size_t n = 0;

    for (size_t i = 0; i < shape->n_parts; i++)
        if (shape->parts[i].bytes == 0)
            devices[n++] = shape->parts[i].path;
    // A kernel's ZFS makes partitions on whole disks.
    if (n > 0)
        device_plan_wipe(plan, devices, "zfs_member,gpt,PMBR");
    free(devices);
    return n > 0;
}

// The name of the variable that holds the loop device of a cache file, for ZFS takes no file there.
static char *cache_variable(size_t number)
{
    return mem_printf("CACHE%zu", number);
}

static void make_files(struct plan_of_volume *plan, const struct zfs_shape *shape)
{
    struct plan_step *step = plan_command(plan, "mkdir", "-m", "700", shape->dir, NULL);
    size_t n_caches = 0;

    step->exclusive = true;
    plan_undo(step, PLAN_TREE, shape->dir, NULL);
    for (size_t i = 0; i < shape->n_parts;) {
        char size[32];
        int64_t bytes = shape->parts[i].bytes;
        if (bytes == 0) {
            i++;
            continue;
        }
        snprintf(size, sizeof(size), "%lld", (long long)bytes);
        step = plan_command(plan, "truncate", "--size", size, NULL);
        for (; i < shape->n_parts && shape->parts[i].bytes == bytes; i++)
            plan_word(step, shape->parts[i].path);
    }
    for (size_t i = 0; i < shape->n_parts; i++) {
        const struct zfs_part *part = &shape->parts[i];
        if (part->role != ZFS_CACHE || part->bytes == 0)
            continue;
        step = plan_command(plan, "losetup", "--find", "--show", "--partscan", "--direct-io=on",
                            part->path, NULL);
        step->variable = cache_variable(++n_caches);
        plan_undo(step, PLAN_DETACH, part->path, NULL);
    }
}

static void add_disks(struct plan_step *step, const struct zfs_shape *shape)
{
    int64_t n = 0;

    for (size_t i = 0; i < shape->n_parts; i++) {
        if (shape->parts[i].role != ZFS_DISK)
            continue;
        if (shape->layout != ZFS_STRIPE && n++ % shape->group == 0)
            plan_word(step, zfs_layouts[shape->layout]);
        plan_word(step, shape->parts[i].path);
    }
}

static void add_aside(struct plan_step *step, const struct zfs_shape *shape, enum zfs_role role)
{
    size_t n_files = 0;

    if (zfs_shape_count(shape, role) == 0)
        return;
    plan_word(step, zfs_roles[role]);
    if (role == ZFS_LOG && shape->mirrored)
        plan_word(step, "mirror");
    for (size_t i = 0; i < shape->n_parts; i++) {
        const struct zfs_part *part = &shape->parts[i];
        if (part->role != role)
            continue;
        if (role == ZFS_CACHE && part->bytes > 0) {
            char *name = cache_variable(++n_files), *word = mem_printf("$%s", name);
            plan_word(step, word);
            free(word);
            free(name);
        } else {
            plan_word(step, part->path);
        }
    }
}

static void make_pool(struct plan_of_volume *plan, const struct zfs_shape *shape,
                      enum zfs_kind kind)
{
    bool has_devices = wipe_devices(plan, shape);
    if (shape->dir)
        make_files(plan, shape);
    struct plan_step *step =
        plan_command(plan, "zpool", "create", "-o", "cachefile=none", "-m", "none", NULL);
    // What is left of the labels of a pool that was never destroyed, for its machine went down.
    if (has_devices)
        plan_word(step, "-f");
    add_properties(step, &shape->of_pool);
    plan_word(step, shape->pool);
    add_disks(step, shape);
    add_aside(step, shape, ZFS_LOG);
    add_aside(step, shape, ZFS_CACHE);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND_IF, zfs_control(kind), "sh", "-c", destroy_pool, shape->pool,
              NULL);
}

static void make_dataset(struct plan_of_volume *plan, const struct zfs_shape *shape,
                         enum zfs_kind kind, const char *point)
{
    char *mountpoint = mem_printf("mountpoint=%s", point);
    struct plan_step *step =
        plan_command(plan, "zfs", "create", "-o", "canmount=noauto", "-o", mountpoint, NULL);

    add_properties(step, &shape->of_dataset);
    plan_word(step, shape->dataset);
    if (!shape->own) {
        step->exclusive = true;
        plan_undo(step, PLAN_COMMAND_IF, zfs_control(kind), "sh", "-c", destroy_dataset,
                  shape->dataset, NULL);
    }
    step = plan_command(plan, "zfs", "mount", shape->dataset, NULL);
    plan_undo(step, PLAN_UNMOUNT, point, NULL);
    free(mountpoint);
}

static int check_new(const struct zfs_shape *shape, struct err *err)
{
    char *dir = shape->dir
                    ? mem_strndup(shape->dir, (size_t)(strrchr(shape->dir, '/') - shape->dir))
                    : NULL;
    char *free_name = dir ? files_new(dir, strrchr(shape->dir, '/') + 1, err) : NULL;
    int rc = dir && !free_name ? -1 : 0;

    if (rc == 0)
        for (size_t i = 0; i < shape->n_parts && rc == 0; i++)
            if (shape->parts[i].role == ZFS_CACHE && shape->parts[i].bytes > 0)
                rc = files_check_loops(err);
    free(free_name);
    free(dir);
    return rc;
}

static int plan_zfs(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    struct zfs_shape shape;
    enum zfs_kind kind;
    char *point = NULL;
    int rc = -1;

    if (zfs_shape_read(volume, plan, &shape, err) < 0 || zfs_find(&kind, err) < 0 ||
        check_new(&shape, err) < 0)
        goto out;
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    plan_mount_point(plan, volume, point);
    if (kind == ZFS_FUSE && zfs_fuse_plan(plan, volume->name, err) < 0)
        goto out;
    if (shape.own)
        make_pool(plan, &shape, kind);
    make_dataset(plan, &shape, kind, point);
    plan->path = mem_strdup(point);
    rc = 0;
out:
    free(point);
    zfs_shape_release(&shape);
    return rc;
}

// ---- what it has become

// Properties that matter to a database, beside those that were given.
static bool is_told(const struct zfs_shape *shape, const char *property)
{
    static const char *const words[] = {"recordsize",     "compression", "primarycache",
                                        "secondarycache", "logbias",     "atime",
                                        "sync",           "checksum",    NULL};

    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], property) == 0)
            return true;
    return kvs_get(&shape->of_dataset, property) != NULL;
}

static void tell_version(struct kvs *facts)
{
    char text[64] = "";
    int fd = open("/sys/module/zfs/version", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    if (fd >= 0)
        close(fd);
    if (n > 0)
        text[strcspn(text, "\n")] = '\0';
    kvs_addf(facts, "zfs.implementation", "%s%s", n > 0 ? "kernel module " : "zfs-fuse", text);
}

static int ready_zfs(const struct volume *volume, struct kvs *facts, struct err *err)
{
    struct plan_of_volume scratch = {.lock_fd = -1};
    struct zfs_shape shape;
    struct proc_result result;
    int rc = zfs_shape_read(volume, &scratch, &shape, err);

    if (rc == 0) {
        char *argv[] = {"zfs", "get", "-H", "-o", "property,value", "all", shape.dataset, NULL};
        rc = proc_run(argv, LOOK_NS, &result, err);
        if (rc == 0 && result.status != 0)
            rc = err_set(err, ERR_FAILED, "zfs get: %s", result.errors.buf);
        char *rest = result.out.buf;
        for (char *line; rc == 0 && (line = strsep(&rest, "\n"));) {
            char *property = strsep(&line, "\t");
            if (line && is_told(&shape, property)) {
                char *key = mem_printf("zfs.%s", property);
                kvs_add(facts, key, line);
                free(key);
            }
        }
        proc_result_release(&result);
    }
    if (rc == 0)
        tell_version(facts);
    zfs_shape_release(&shape);
    plan_release(&scratch);
    return rc;
}

const struct volume_type volume_type_zfs = {
    .name = "zfs",
    .summary = "a ZFS pool over files or devices, or a dataset in a pool that is there",
    .example = "zfs:layout=mirror,size=2G,log=512M,recordsize=8k",
    .keys = keys,
    .others = "any property of zfs(8), as recordsize=8k, or of a pool, as ashift=12",
    .fresh = true,
    .plan = plan_zfs,
    .before = device_before,
    .ready = ready_zfs,
    .event = zfs_event,
};
