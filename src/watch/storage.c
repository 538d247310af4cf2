#include "watch/storage.h"

#include <errno.h>
#include <libmount/libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "watch/blockdev.h"

// The path itself, or its nearest parent that exists: a database about to be made counts as there.
static bool resolve(const char *path, char out[PATH_MAX])
{
    char *copy = mem_strdup(path);

    while (!realpath(copy, out)) {
        char *slash = strrchr(copy, '/');
        if (errno != ENOENT && errno != ENOTDIR)
            break;
        if (!slash) {
            free(copy);
            return realpath(".", out) != NULL;
        }
        slash[slash == copy ? 1 : 0] = '\0';
        if (slash == copy && copy[1] == '\0' && !realpath(copy, out))
            break;
    }
    bool found = realpath(copy, out) != NULL;
    free(copy);
    return found;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

static void classify(struct storage *s)
{
    static const char *const memory[] = {"tmpfs", "ramfs", "hugetlbfs", NULL};
    static const char *const overlay[] = {"overlay", "aufs", "unionfs", NULL};
    static const char *const network[] = {"nfs",       "nfs4",   "cifs",       "smb3",
                                          "ceph",      "9p",     "virtiofs",   "afs",
                                          "glusterfs", "lustre", "fuse.sshfs", NULL};

    s->in_memory = is_one_of(s->fs, memory);
    s->is_overlay = is_one_of(s->fs, overlay);
    s->is_network = is_one_of(s->fs, network);
}

// Options of the mount and of the file system, each once.
static void join_options(char *out, size_t size, const char *vfs, const char *fs)
{
    struct str all = STR_INIT;
    char *rest = mem_strdup(fs ? fs : ""), *save = NULL;

    str_add(&all, vfs ? vfs : "");
    for (char *option = strtok_r(rest, ",", &save); option; option = strtok_r(NULL, ",", &save)) {
        char *found = NULL;
        size_t len = strlen(option);
        for (char *at = all.buf; (found = strstr(at, option)); at = found + 1)
            if ((found == all.buf || found[-1] == ',') && (found[len] == ',' || !found[len]))
                break;
        if (!found)
            str_addf(&all, "%s%s", all.len ? "," : "", option);
    }
    snprintf(out, size, "%s", all.buf);
    free(rest);
    str_release(&all);
}

static bool find_mount(struct storage *s)
{
    struct libmnt_table *table = mnt_new_table_from_file("/proc/self/mountinfo");
    struct libmnt_fs *fs = NULL;

    if (table) {
        // The nearest mount point above the path; of several on one directory the last covers.
        char *point = mem_strdup(s->path);
        for (;;) {
            fs = mnt_table_find_target(table, point, MNT_ITER_BACKWARD);
            char *slash = strrchr(point, '/');
            if (fs || !slash || strcmp(point, "/") == 0)
                break;
            slash[slash == point ? 1 : 0] = '\0';
        }
        free(point);
    }
    if (fs) {
        const char *source =
            mnt_fs_get_srcpath(fs) ? mnt_fs_get_srcpath(fs) : mnt_fs_get_source(fs);
        snprintf(s->fs, sizeof(s->fs), "%s", mnt_fs_get_fstype(fs));
        snprintf(s->source, sizeof(s->source), "%s", source ? source : "none");
        snprintf(s->mount_point, sizeof(s->mount_point), "%s", mnt_fs_get_target(fs));
        join_options(s->mount_options, sizeof(s->mount_options), mnt_fs_get_vfs_options(fs),
                     mnt_fs_get_fs_options(fs));
    }
    mnt_unref_table(table);
    return fs != NULL;
}

void storage_describe(const char *path, struct storage *ret)
{
    struct statvfs vfs;
    struct stat st;

    memset(ret, 0, sizeof(*ret));
    ret->fs_bytes = ret->free_bytes = -1;
    if (!resolve(path, ret->path)) {
        snprintf(ret->path, sizeof(ret->path), "%s", path);
        snprintf(ret->fs, sizeof(ret->fs), "unknown: %s", strerror(errno));
        snprintf(ret->unknown, sizeof(ret->unknown), "the path cannot be read: %s",
                 strerror(errno));
        return;
    }
    if (stat(ret->path, &st) == 0)
        ret->device = st.st_dev;
    if (statvfs(ret->path, &vfs) == 0) {
        ret->fs_bytes = (int64_t)vfs.f_blocks * (int64_t)vfs.f_frsize;
        ret->free_bytes = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize;
    }
    if (!find_mount(ret)) {
        snprintf(ret->fs, sizeof(ret->fs), "unknown: not in mountinfo");
        snprintf(ret->unknown, sizeof(ret->unknown), "the mount was not found");
        return;
    }
    classify(ret);
    blockdev_stack(ret, 0);
}

bool storage_shares_device(const struct storage *a, const struct storage *b)
{
    if (a->device && a->device == b->device)
        return true;
    for (int i = 0; i < a->n_layers; i++)
        for (int j = 0; j < b->n_layers; j++)
            if (strcmp(a->layers[i].kind, "disk") == 0 && strcmp(b->layers[j].kind, "disk") == 0 &&
                strcmp(a->layers[i].name, b->layers[j].name) == 0)
                return true;
    return false;
}

// ---- words

static void add_layer_words(const struct storage_layer *layer, struct str *out)
{
    str_addf(out, "%s", layer->name);
    if (strcmp(layer->kind, "disk") != 0 && strcmp(layer->kind, "partition") != 0)
        str_addf(out, " (%s)", layer->kind);
}

// The stack from the file system down to the first disk, then what that disk is.
void storage_summary(const struct storage *s, char *out, int size)
{
    const struct storage_layer *disk = NULL;
    struct str text = STR_INIT;

    str_add(&text, s->fs);
    if (s->in_memory)
        str_add(&text, " (in memory)");
    for (int i = 0; i < s->n_layers && !disk; i++) {
        str_add(&text, " on ");
        add_layer_words(&s->layers[i], &text);
        if (strcmp(s->layers[i].kind, "disk") == 0)
            disk = &s->layers[i];
    }
    if (s->n_layers == 0 && !s->in_memory)
        str_addf(&text, " on %s", s->source);
    int disks = 0;
    for (int i = 0; i < s->n_layers; i++)
        disks += strcmp(s->layers[i].kind, "disk") == 0;
    if (disks > 1)
        str_addf(&text, " and %d more", disks - 1);
    if (disk) {
        char bytes[UNITS_MAX];
        str_addf(&text, " (%s", disk->model[0] ? disk->model : "unnamed disk");
        if (disk->bytes > 0)
            str_addf(&text, ", %s", units_format_bytes(disk->bytes, bytes));
        if (disk->rotational >= 0)
            str_addf(&text, ", %s", disk->rotational ? "rotational" : "not rotational");
        if (disk->write_cache[0])
            str_addf(&text, ", %s cache", disk->write_cache);
        str_add(&text, ")");
    }
    snprintf(out, (size_t)size, "%s", text.buf);
    str_release(&text);
}

static void record(struct kvs *environment, const char *prefix, const char *name, const char *value)
{
    char *key = mem_printf("%s.%s", prefix, name);

    kvs_add(environment, key, value);
    free(key);
}

static void record_layer(struct kvs *environment, const char *prefix, int i,
                         const struct storage_layer *layer)
{
    char *base = mem_printf("%s.device.%d", prefix, i);
    char text[UNITS_MAX];

    snprintf(text, sizeof(text), "%d", layer->depth);
    record(environment, base, "depth", text);
    record(environment, base, "kind", layer->kind);
    record(environment, base, "name", layer->name);
    snprintf(text, sizeof(text), "%lld", (long long)layer->bytes);
    record(environment, base, "bytes", layer->bytes >= 0 ? text : "unknown: no size in sysfs");
    if (strcmp(layer->kind, "disk") == 0)
        record(environment, base, "model",
               layer->model[0] ? layer->model : "unknown: the device tells none");
    if (layer->rotational >= 0)
        record(environment, base, "rotational", layer->rotational ? "1" : "0");
    if (layer->scheduler[0])
        record(environment, base, "scheduler", layer->scheduler);
    if (layer->write_cache[0])
        record(environment, base, "write_cache", layer->write_cache);
    free(base);
}

void storage_record(const struct storage *s, const char *prefix, struct kvs *environment)
{
    char text[512];

    record(environment, prefix, "path", s->path);
    storage_summary(s, text, sizeof(text));
    record(environment, prefix, "summary", text);
    record(environment, prefix, "filesystem", s->fs);
    record(environment, prefix, "source", s->source[0] ? s->source : "unknown: no mount found");
    record(environment, prefix, "mount_point",
           s->mount_point[0] ? s->mount_point : "unknown: no mount found");
    record(environment, prefix, "mount_options",
           s->mount_options[0] ? s->mount_options : "unknown: no mount found");
    snprintf(text, sizeof(text), "%lld", (long long)s->fs_bytes);
    record(environment, prefix, "filesystem_bytes", s->fs_bytes >= 0 ? text : "unknown: statvfs");
    snprintf(text, sizeof(text), "%lld", (long long)s->free_bytes);
    record(environment, prefix, "free_bytes", s->free_bytes >= 0 ? text : "unknown: statvfs");
    for (int i = 0; i < s->n_layers; i++)
        record_layer(environment, prefix, i, &s->layers[i]);
    if (s->unknown[0]) {
        snprintf(text, sizeof(text), "unknown: %s", s->unknown);
        record(environment, prefix, "device", text);
    }
}
