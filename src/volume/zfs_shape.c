// The keys of zfs: as the files, devices and properties they stand for.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/units.h"
#include "volume/device.h"
#include "volume/files.h"
#include "volume/zfs.h"

#define SIZE_STANDARD (1LL << 30)
#define SIZE_MIN      (64LL << 20) // ZFS takes no smaller one
#define DISKS_MAX     256

const char *const zfs_roles[] = {"disk", "log", "cache", NULL};
const char *const zfs_layouts[] = {"stripe", "mirror", "raidz", "raidz2", "raidz3", NULL};
static const int least[] = {1, 2, 3, 4, 5}; // disks, by layout

// Properties of a pool; all others are a dataset's.
static const char *const pool_words[] = {
    "ashift",        "autoexpand",    "autoreplace", "autotrim",          "comment",
    "compatibility", "bootfs",        "dedupditto",  "delegation",        "failmode",
    "version",       "listsnapshots", "multihost",   "dedup_table_quota", NULL,
};

static bool is_word(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(*words, word) == 0)
            return true;
    return false;
}

static int read_properties(const struct volume *volume, struct zfs_shape *shape, struct err *err)
{
    static const char *const ours[] = {"mountpoint", "canmount", "altroot", "cachefile", NULL};

    for (size_t i = 0; i < volume->spec.params.n; i++) {
        const struct kv *item = &volume->spec.params.items[i];
        const struct volume_key *key = volume_type_zfs.keys;
        while (key->name && strcmp(key->name, item->key) != 0)
            key++;
        if (key->name)
            continue;
        if (is_word(item->key, ours))
            return err_set(err, ERR_USAGE,
                           "%s is for prony to set; at=PATH says where it is "
                           "mounted",
                           item->key);
        bool of_pool = is_word(item->key, pool_words) || strncmp(item->key, "feature@", 8) == 0;
        if (of_pool && !shape->own)
            return err_set(err, ERR_USAGE, "%s is a property of the pool, which is there already",
                           item->key);
        kvs_add(of_pool ? &shape->of_pool : &shape->of_dataset, item->key, item->value);
    }
    return 0;
}

// ---- a pool that is there

static int read_place(const struct volume *volume, const char *in, struct zfs_shape *shape,
                      struct err *err)
{
    static const char *const of_own[] = {"layout", "size", "disks", "dir",         "dev",
                                         "group",  "log",  "cache", "replacement", NULL};
    const char *p = in;

    for (const char *const *key = of_own; *key; key++)
        if (volume_value(volume, *key))
            return err_set(err, ERR_USAGE, "%s is of a pool that is made, in=%s is there already",
                           *key, in);
    while (isalnum((unsigned char)*p) || (*p && strchr("-_.:/", *p)))
        p++;
    if (*p || !isalpha((unsigned char)in[0]) || p[-1] == '/' || strstr(in, "//"))
        return err_set(err, ERR_USAGE, "in=%s is no name of a pool or dataset", in);
    shape->pool = mem_strndup(in, strcspn(in, "/"));
    shape->dataset = mem_printf("%s/prony-%s", in, volume->name);
    return 0;
}

// ---- one of our own

static struct zfs_part *add_part(struct zfs_shape *shape, enum zfs_role role)
{
    struct zfs_part *part = ARR_PUSH(shape->parts, shape->n_parts, shape->cap_parts);

    part->role = role;
    return part;
}

static void add_file(struct zfs_shape *shape, enum zfs_role role, int64_t bytes)
{
    size_t number = zfs_shape_count(shape, role) + 1;
    struct zfs_part *part = add_part(shape, role);

    part->path = mem_printf("%s/%s%zu", shape->dir, zfs_roles[role], number);
    part->bytes = bytes;
}

static int check_size(const char *key, const char *text, int64_t bytes, struct err *err)
{
    if (bytes < SIZE_MIN || bytes % 4096)
        return err_set(err, ERR_USAGE, "%s=%s: must be a multiple of 4kB, at least 64MB", key,
                       text);
    return 0;
}

static int read_devices(const struct volume *volume, struct plan_of_volume *plan,
                        struct zfs_shape *shape, int64_t *ret_n, struct err *err)
{
    char **devices;

    if (volume_value(volume, "size") || volume_value(volume, "disks"))
        return err_set(err, ERR_USAGE, "size and disks are of files, dev names the disks");
    if (device_add_list(plan, "dev", volume_value(volume, "dev"), &devices, err) < 0)
        return -1;
    for (*ret_n = 0; devices[*ret_n]; (*ret_n)++)
        add_part(shape, ZFS_DISK)->path = devices[*ret_n];
    free(devices); // its words are the shape's
    return 0;
}

static int read_files(const struct volume *volume, struct zfs_shape *shape, int64_t *n,
                      struct err *err)
{
    const char *disks = volume_value(volume, "disks");
    int64_t bytes;

    *n = least[shape->layout];
    if (disks && (units_parse_int(disks, n, NULL) < 0 || *n < 1 || *n > DISKS_MAX))
        return err_set(err, ERR_USAGE, "disks=%s: must be a whole number between 1 and %d", disks,
                       DISKS_MAX);
    if (volume_size(volume, "size", SIZE_STANDARD, &bytes, err) < 0 ||
        check_size("size", volume_value(volume, "size"), bytes, err) < 0)
        return -1;
    for (int64_t i = 0; i < *n; i++)
        add_file(shape, ZFS_DISK, bytes);
    return 0;
}

static int read_disks(const struct volume *volume, struct plan_of_volume *plan,
                      struct zfs_shape *shape, struct err *err)
{
    const char *group = volume_value(volume, "group");
    const char *layout = zfs_layouts[shape->layout];
    int64_t n;

    if ((volume_value(volume, "dev") ? read_devices(volume, plan, shape, &n, err)
                                     : read_files(volume, shape, &n, err)) < 0)
        return -1;
    // ZFS itself makes a raidz of as many disks as it has parities and one more.
    int fewest = shape->layout > ZFS_MIRROR ? least[shape->layout] - 1 : least[shape->layout];
    shape->group = n;
    if (group && shape->layout == ZFS_STRIPE)
        return err_set(err, ERR_USAGE, "group is of mirrors and raidz: name a layout");
    if (group && (units_parse_int(group, &shape->group, NULL) < 0 || shape->group < 1 ||
                  n % shape->group != 0))
        return err_set(err, ERR_USAGE, "group=%s: must divide the %lld disks", group, (long long)n);
    if (shape->group < fewest)
        return err_set(err, ERR_USAGE, "layout=%s: takes at least %d disks, not %lld", layout,
                       fewest, (long long)shape->group);
    return 0;
}

// log={mirror /dev/sdX /dev/sdY}, log=512M, cache=/dev/sdZ
static int read_aside(const struct volume *volume, struct plan_of_volume *plan, enum zfs_role role,
                      struct zfs_shape *shape, struct err *err)
{
    const char *key = zfs_roles[role], *value = volume_value(volume, key);
    char *copy = mem_strdup(value), *rest = copy;
    int rc = 0;

    for (char *word; rc == 0 && (word = strsep(&rest, " \t\n,"));) {
        int64_t bytes;
        if (!*word)
            continue;
        if (strcmp(word, "mirror") == 0 && role == ZFS_LOG && zfs_shape_count(shape, role) == 0) {
            shape->mirrored = true;
        } else if (*word == '/') {
            char *device = device_add(plan, key, word, err);
            if (device)
                add_part(shape, role)->path = device;
            rc = device ? 0 : -1;
        } else if (units_parse_size(word, &bytes, NULL) < 0) {
            rc = err_set(err, ERR_USAGE,
                         "%s=%s: must be devices, as /dev/sdX, or the size of a "
                         "file",
                         key, value);
        } else {
            rc = check_size(key, word, bytes, err);
            if (rc == 0)
                add_file(shape, role, bytes);
        }
    }
    if (rc == 0 && zfs_shape_count(shape, role) < (shape->mirrored && role == ZFS_LOG ? 2U : 1U))
        rc = err_set(err, ERR_USAGE, "%s=%s: names too few devices", key, value);
    free(copy);
    return rc;
}

static int read_own(const struct volume *volume, struct plan_of_volume *plan,
                    struct zfs_shape *shape, struct err *err)
{
    char *dir = files_dir("dir", volume_value(volume, "dir"), err);
    int64_t bytes = 0;

    if (!dir || volume_choice(volume, "layout", zfs_layouts, ZFS_STRIPE, &shape->layout, err) < 0)
        goto fail;
    shape->own = true;
    shape->pool = mem_printf("prony-%s", volume->name);
    shape->dataset = mem_printf("%s/data", shape->pool);
    shape->dir = mem_printf("%s/prony-%s.zfs", strcmp(dir, "/") == 0 ? "" : dir, volume->name);
    if (read_disks(volume, plan, shape, err) < 0)
        goto fail;
    for (enum zfs_role role = ZFS_LOG; role < ZFS_ROLES; role++)
        if (volume_value(volume, zfs_roles[role]) && read_aside(volume, plan, role, shape, err) < 0)
            goto fail;
    for (size_t i = 0; i < shape->n_parts; i++)
        bytes += shape->parts[i].bytes;
    if (files_check_room(dir, "size", bytes, false, err) < 0)
        goto fail;
    if (bytes == 0) {
        free(shape->dir);
        shape->dir = NULL;
    }
    free(dir);
    return 0;
fail:
    free(dir);
    return -1;
}

int zfs_shape_read(const struct volume *volume, struct plan_of_volume *plan, struct zfs_shape *ret,
                   struct err *err)
{
    const char *in = volume_value(volume, "in");

    *ret = (struct zfs_shape){0};
    if ((in ? read_place(volume, in, ret, err) : read_own(volume, plan, ret, err)) < 0)
        return -1;
    return read_properties(volume, ret, err);
}

size_t zfs_shape_count(const struct zfs_shape *shape, enum zfs_role role)
{
    size_t n = 0;

    for (size_t i = 0; i < shape->n_parts; i++)
        n += shape->parts[i].role == role;
    return n;
}

void zfs_shape_release(struct zfs_shape *shape)
{
    for (size_t i = 0; i < shape->n_parts; i++)
        free(shape->parts[i].path);
    free(shape->parts);
    free(shape->pool);
    free(shape->dataset);
    free(shape->dir);
    kvs_release(&shape->of_pool);
    kvs_release(&shape->of_dataset);
    *shape = (struct zfs_shape){0};
}
