// vdisk: - a virtual disk (VDISK.md), formatted and mounted. All of it is removed again. Its daemon
// serves one disk, or those of all volumes that say with= the same.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "volume/block.h"
#include "volume/type.h"
#include "volume/vdisk.h"

#define SIZE_STANDARD "1GB"
#define HOUSE_PREFIX  "/run/prony-vdisk-"

// Of the volume first; those of the disk are in the words of vdisk_spec.c.
static const struct volume_key keys[] = {
    {"size", "SIZE", "of the disk, which lies in memory as far as it is written (1GB)"},
    {"model", "NAME", "none, hdd-7200, hdd-10k, hdd-15k or ssd-sata (none)", true},
    {"fs", "NAME", "file system: whatever mkfs.NAME and the kernel offer (ext4)"},
    {"mkfs", "{OPTION...}", "options for mkfs.NAME, cut at blanks"},
    {"mount", "{OPTION,...}", "mount options"},
    {"at", "PATH", "mount point, made and removed (/run/prony-volumes/NAME)", true},
    {"with", "NAME", "those that say the same share a daemon, and so a recording", true},
    BLOCK_KEYS,
    {"rpm", "N", "turns per minute of a hard disk; 0: solid state", true},
    {"seek-track", "DURATION", "to the next track", true},
    {"seek-full", "DURATION", "over the whole disk", true},
    {"read", "DURATION", "access time of a read", true},
    {"write", "DURATION", "accepting a write", true},
    {"flush", "DURATION", "a flush, beside what it has to write out", true},
    {"rate", "SIZE", "of the medium, per second", true},
    {"rate-inner", "SIZE", "at the end of a hard disk", true},
    {"link", "SIZE", "into the cache, per second", true},
    {"channels", "N", "arms or flash channels", true},
    {"cache", "SIZE", "write cache; 0: writes are durable at once", true},
    {"capacity", "SIZE", "of the hard disk whose outer part this is", true},
    {"near-floor", "yes|no", "keep own numbers that the path is too slow for", true},
    {"seed", "N", "of the model", true},
    {"media", "FILE", "holds the contents, kept; else memory", true},
    {"protected", "yes|no", "the cache survives a power cut", true},
    {"lying", "yes|no", "flushes are acknowledged and not done", true},
    {"torn", "4096|512|0", "bytes that a cut leaves whole", true},
    {"eio-after", "N", "that many more requests succeed, then each fails", true},
    {"eio", "KIND", "which fail: all, read, write or flush", true},
    {"delay", "DURATION", "added to every request", true},
    {"stall", "yes|no", "requests wait until it is taken back", true},
    {NULL, NULL, NULL},
};

// The disk that the keys describe, as text: what is typed, in normal form.
static char *disk_text(const struct volume *volume, struct err *err)
{
    const char *model = volume_value(volume, "model"), *size = volume_value(volume, "size");
    struct vdisk_spec spec;
    struct str text = STR_INIT;
    int rc;

    vdisk_spec_init(&spec);
    rc = vdisk_spec_set(&spec, "size", size ? size : SIZE_STANDARD, false, err);
    if (rc == 0 && model)
        rc = vdisk_spec_set(&spec, "model", model, false, err);
    for (size_t i = 0; i < volume->spec.params.n && rc == 0; i++) {
        const struct kv *item = &volume->spec.params.items[i];
        if (vdisk_spec_has_key(item->key) && strcmp(item->key, "model") != 0)
            rc = vdisk_spec_set(&spec, item->key, item->value, false, err);
    }
    if (rc == 0)
        rc = vdisk_spec_check(&spec, err);
    if (rc == 0)
        vdisk_spec_print(&spec, &text);
    vdisk_spec_release(&spec);
    return rc == 0 ? str_detach(&text) : NULL;
}

static char *house_of(const struct volume *volume)
{
    const char *with = volume_value(volume, "with");

    return mem_printf(HOUSE_PREFIX "%s", with ? with : volume->name);
}

static int plan_vdisk(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    const char *with = volume_value(volume, "with");
    char *house = house_of(volume), *text = NULL, *disk = NULL, *point = NULL;
    char **stop = vdisk_stop_argv(house);
    int rc = -1;

    if ((with && vdisk_name_check(with, err) < 0) || vdisk_name_check(volume->name, err) < 0)
        goto out;
    text = disk_text(volume, err);
    if (!text || vdisk_check_here(err) < 0)
        goto out;
    point = volume_mount_point(volume, err);
    if (!point)
        goto out;
    disk = mem_printf("%s:%s", volume->name, text);

    plan_mount_point(plan, volume, point);
    struct plan_step *step =
        plan_command(plan, stop[0], "vdisk", "up", house, "--disk", disk, NULL);
    step->variable = mem_strdup("VDISK");
    step->tidies = true;
    plan_undo(step, PLAN_COMMAND, stop[0], "vdisk", "down", house, volume->name, NULL);
    if (volume->wish.image) {
        step = plan_command(plan, stop[0], "vdisk", "restore", house, volume->name,
                            volume->wish.image, NULL);
        if (volume->wish.shares_image)
            plan_word(step, "--share");
        step->variable = mem_strdup("VDISK");
        step->is_long = true;
    }
    plan->n_rest = plan->n_steps;
    if (block_plan(plan, volume, "$VDISK", err) < 0)
        goto out;
    rc = plan_file_system(plan, volume, "$VDISK", 0, point, err);
    plan->path = mem_strdup(point);
out:
    vdisk_argv_free(stop);
    free(house);
    free(text);
    free(disk);
    free(point);
    return rc;
}

static int plan_save_vdisk(const struct volume *volume, const char *path,
                           struct plan_of_volume *plan, struct err *err)
{
    char *house = house_of(volume);
    char **stop = vdisk_stop_argv(house);
    struct plan_step *step =
        plan_command(plan, stop[0], "vdisk", "save", house, volume->name, path, NULL);

    (void)err;
    step->is_long = true;
    vdisk_argv_free(stop);
    free(house);
    return 0;
}

// A line that is no command, for whoever watches and for the record.
static void tell(const struct volume *volume, struct kvs *facts, const char *key, const char *words)
{
    char *line = mem_printf("# %s", words);

    kvs_add(facts, key, words);
    if (volume->wish.say)
        volume->wish.say(volume->wish.arg, line, false);
    free(line);
}

// The floor of its path, and what of the model it is too slow for.
static int ready_vdisk(const struct volume *volume, struct kvs *facts, struct err *err)
{
    int64_t floor_ns[VDISK_OPS];
    char text[3][UNITS_MAX];
    struct str marks = STR_INIT;
    struct vdisk_spec spec;
    char *house = house_of(volume), *disk = disk_text(volume, err);

    vdisk_spec_init(&spec);
    int rc = disk ? vdisk_spec_parse(&spec, disk, false, err) : -1;
    if (rc == 0)
        rc = vdisk_measure_floor(house, floor_ns, err); // known by now
    if (rc == 0)
        rc = vdisk_check_floor(&spec, floor_ns, &marks, err);
    if (rc == 0) {
        char *words = mem_printf("floor of the path: read %s, write %s, flush %s (subtracted)",
                                 units_format_duration(floor_ns[VDISK_READ], text[0]),
                                 units_format_duration(floor_ns[VDISK_WRITE], text[1]),
                                 units_format_duration(floor_ns[VDISK_FLUSH], text[2]));
        tell(volume, facts, "floor", words);
        free(words);
        char *rest = marks.buf, *line;
        while ((line = strsep(&rest, "\n")) && *line)
            tell(volume, facts, "near_floor", line);
    }
    vdisk_spec_release(&spec);
    str_release(&marks);
    free(house);
    free(disk);
    return rc;
}

const struct volume_type volume_type_vdisk = {
    .name = "vdisk",
    .summary = "a disk in software with a speed, a write cache and faults",
    .example = "vdisk:size=2G,fs=xfs,model=ssd-sata",
    .keys = keys,
    .fresh = true,
    .plan = plan_vdisk,
    .plan_save = plan_save_vdisk,
    .ready = ready_vdisk,
};
