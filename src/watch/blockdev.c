#include "watch/blockdev.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "watch/sysfs.h"

// Loop devices on files on loop devices: deeper than this is no set-up but a mistake.
#define DEPTH_MAX 12

static struct storage_layer *add_layer(struct storage *s, int depth, const char *kind,
                                       const char *name)
{
    if (s->n_layers == STORAGE_LAYERS_MAX || depth > DEPTH_MAX) {
        snprintf(s->unknown, sizeof(s->unknown), "more than %d devices", STORAGE_LAYERS_MAX);
        return NULL;
    }
    struct storage_layer *layer = &s->layers[s->n_layers++];
    *layer = (struct storage_layer){.depth = depth, .rotational = -1, .bytes = -1};
    snprintf(layer->kind, sizeof(layer->kind), "%s", kind);
    snprintf(layer->name, sizeof(layer->name), "%s", name);
    return layer;
}

// "none [mq-deadline] kyber" -> "mq-deadline"
static void chosen_word(char *out, int size, const char *line)
{
    const char *open = strchr(line, '[');

    if (open)
        snprintf(out, (size_t)size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
    else
        snprintf(out, (size_t)size, "%s", line);
}

static void read_queue(struct storage_layer *layer, const char *dev)
{
    char line[256];

    snprintf(layer->device, sizeof(layer->device), "%s", dev);
    layer->rotational = (int)sysfs_number(-1, "/sys/class/block/%s/queue/rotational", dev);
    if (sysfs_line(line, sizeof(line), "/sys/class/block/%s/queue/scheduler", dev))
        chosen_word(layer->scheduler, sizeof(layer->scheduler), line);
    if (sysfs_line(line, sizeof(line), "/sys/class/block/%s/queue/write_cache", dev))
        snprintf(layer->write_cache, sizeof(layer->write_cache), "%.15s", line);
    int64_t sectors = sysfs_number(-1, "/sys/class/block/%s/size", dev);
    layer->bytes = sectors >= 0 ? sectors * 512 : -1;
}

static void read_model(struct storage_layer *layer, const char *dev)
{
    char vendor[48] = "", model[48] = "", driver[32];

    sysfs_line(vendor, sizeof(vendor), "/sys/class/block/%s/device/vendor", dev);
    sysfs_line(model, sizeof(model), "/sys/class/block/%s/device/model", dev);
    if (vendor[0] == '0' && vendor[1] == 'x') // virtio: a number that says nothing
        vendor[0] = '\0';
    if (model[0])
        snprintf(layer->model, sizeof(layer->model), "%s%s%s", vendor, vendor[0] ? " " : "", model);
    else if (sysfs_link_name(driver, sizeof(driver), "/sys/class/block/%s/device/driver", dev))
        snprintf(layer->model, sizeof(layer->model), "%s", driver);
}

static void add_device(struct storage *s, int depth, const char *dev);

// The devices a mapped device, RAID or cache is made of.
static bool add_slaves(struct storage *s, int depth, const char *dev)
{
    char path[PATH_MAX];
    struct dirent *entry;
    bool any = false;

    snprintf(path, sizeof(path), "/sys/class/block/%s/slaves", dev);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        add_device(s, depth, entry->d_name);
        any = true;
    }
    if (dir)
        closedir(dir);
    return any;
}

// "CRYPT-LUKS2-..." -> "dm-crypt", "LVM-..." -> "lvm"
static void mapped_kind(char *out, size_t size, const char *dev)
{
    char uuid[160];

    sysfs_line(uuid, sizeof(uuid), "/sys/class/block/%s/dm/uuid", dev);
    if (strncmp(uuid, "LVM-", 4) == 0) {
        snprintf(out, size, "lvm");
        return;
    }
    snprintf(out, size, "dm-%.*s", (int)strcspn(uuid, "-"), uuid[0] ? uuid : "mapped");
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

// A loop device stands on a file, which lies on a file system of its own.
static void add_loop(struct storage *s, int depth, const char *dev, const char *backing)
{
    struct storage_layer *layer = add_layer(s, depth, "loop", dev);
    struct storage *under;

    if (!layer)
        return;
    read_queue(layer, dev);
    layer = add_layer(s, depth + 1, "file", backing);
    if (!layer || depth + 2 > DEPTH_MAX)
        return;
    under = calloc(1, sizeof(*under));
    if (!under)
        return;
    storage_describe(backing, under);
    snprintf(layer->model, sizeof(layer->model), "on %.60s", under->fs);
    layer->bytes = s->layers[s->n_layers - 2].bytes;
    for (int i = 0; i < under->n_layers; i++) {
        struct storage_layer *copy = add_layer(s, depth + 2, "", "");
        if (!copy)
            break;
        *copy = under->layers[i];
        copy->depth += depth + 2;
    }
    free(under);
}

static void add_partition(struct storage *s, int depth, const char *dev)
{
    char link[PATH_MAX], target[PATH_MAX];
    struct storage_layer *layer = add_layer(s, depth, "partition", dev);

    if (!layer)
        return;
    int64_t sectors = sysfs_number(-1, "/sys/class/block/%s/size", dev);
    layer->bytes = sectors >= 0 ? sectors * 512 : -1;
    snprintf(link, sizeof(link), "/sys/class/block/%s", dev);
    if (!realpath(link, target))
        return;
    *strrchr(target, '/') = '\0'; // .../block/vda/vda2 -> .../block/vda
    add_device(s, depth + 1, strrchr(target, '/') + 1);
}

static void add_device(struct storage *s, int depth, const char *dev)
{
    char text[PATH_MAX], kind[24];
    struct storage_layer *layer;

    if (depth > DEPTH_MAX)
        return;
    if (sysfs_number(-1, "/sys/class/block/%s/partition", dev) >= 0) {
        add_partition(s, depth, dev);
    } else if (sysfs_line(text, sizeof(text), "/sys/class/block/%s/loop/backing_file", dev)) {
        add_loop(s, depth, dev, text);
    } else if (sysfs_line(text, sizeof(text), "/sys/class/block/%s/dm/name", dev)) {
        mapped_kind(kind, sizeof(kind), dev);
        layer = add_layer(s, depth, kind, text);
        if (layer) {
            read_queue(layer, dev);
            add_slaves(s, depth + 1, dev);
        }
    } else if (sysfs_line(text, sizeof(text), "/sys/class/block/%s/md/level", dev)) {
        layer = add_layer(s, depth, text, dev);
        if (layer) {
            read_queue(layer, dev);
            add_slaves(s, depth + 1, dev);
        }
    } else {
        layer = add_layer(s, depth, "disk", dev);
        if (!layer)
            return;
        read_queue(layer, dev);
        read_model(layer, dev);
        if (add_slaves(s, depth + 1, dev)) // bcache and the like
            snprintf(s->layers[layer - s->layers].kind, sizeof(layer->kind), "stacked");
    }
}

// All members of a btrfs that spans devices; found by one of them.
static bool add_btrfs_members(struct storage *s, int depth, const char *dev)
{
    char path[PATH_MAX];
    struct dirent *fs_entry, *entry;
    DIR *all = opendir("/sys/fs/btrfs");
    bool found = false;

    while (all && !found && (fs_entry = readdir(all))) {
        if (fs_entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/sys/fs/btrfs/%s/devices", fs_entry->d_name);
        DIR *devices = opendir(path);
        while (devices && (entry = readdir(devices)))
            found = found || strcmp(entry->d_name, dev) == 0;
        if (found) {
            rewinddir(devices);
            while ((entry = readdir(devices)))
                if (entry->d_name[0] != '.')
                    add_device(s, depth, entry->d_name);
        }
        if (devices)
            closedir(devices);
    }
    if (all)
        closedir(all);
    return found;
}

// The kernel's name of the block device a file system is mounted from.
static bool device_name(const struct storage *s, char *out, int size)
{
    struct stat st;
    dev_t device = s->device;

    if (s->source[0] == '/' && stat(s->source, &st) == 0 && S_ISBLK(st.st_mode))
        device = st.st_rdev;
    return sysfs_link_name(out, size, "/sys/dev/block/%u:%u", major(device), minor(device));
}

void blockdev_stack(struct storage *s, int depth)
{
    char dev[64];

    if (s->in_memory)
        return;
    if (s->is_network) {
        snprintf(s->unknown, sizeof(s->unknown), "%.31s lies on another machine", s->fs);
        return;
    }
    if (strcmp(s->fs, "zfs") == 0 || strcmp(s->fs, "fuse.zfs") == 0) {
        char pool[64];
        snprintf(pool, sizeof(pool), "%.*s", (int)strcspn(s->source, "/"), s->source);
        add_layer(s, depth, "zpool", pool);
        snprintf(s->unknown, sizeof(s->unknown), "the devices of pool %.60s (see zpool status)",
                 pool);
        return;
    }
    if (!device_name(s, dev, sizeof(dev))) {
        snprintf(s->unknown, sizeof(s->unknown), "%.31s is not on a block device that sysfs shows",
                 s->fs);
        return;
    }
    if (strcmp(s->fs, "btrfs") == 0 && add_btrfs_members(s, depth, dev))
        return;
    add_device(s, depth, dev);
}
