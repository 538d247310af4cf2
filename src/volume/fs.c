// File systems: what formats and mounts them. Nothing here knows more of one than how its mkfs is
// kept from asking, from working in the background later, and how it names what it made.
#include "volume/fs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "volume/journal.h"
#include "volume/precondition.h"
#include "volume/type.h"

#define LAZY_NOTHING "lazy_itable_init=0,lazy_journal_init=0"

static const struct fs_facts file_systems[] = {
    // name, Debian package, quiet, extended, kept, force, label and its length
    // Tables that ext4 would write in the background after the mount would disturb what is
    // measured.
    {"ext2", "e2fsprogs", "-q", NULL, "nodiscard", "-F", "-L", 16},
    {"ext3", "e2fsprogs", "-q", LAZY_NOTHING, "nodiscard", "-F", "-L", 16},
    {"ext4", "e2fsprogs", "-q", LAZY_NOTHING, "nodiscard", "-F", "-L", 16},
    {"xfs", "xfsprogs", "-q", NULL, "-K", "-f", "-L", 12},
    {"btrfs", "btrfs-progs", "-q", NULL, "-K", "-f", "-L", 255},
    {"jfs", "jfsutils", "-q", NULL, NULL, NULL, "-L", 16},
    {"f2fs", "f2fs-tools", "-q", NULL, "-t 0", "-f", "-l", 512},
    {"nilfs2", "nilfs-tools", "-q", NULL, "-K", "-f", "-L", 80},
    {"reiserfs", "reiserfsprogs", "-q", NULL, NULL, NULL, "-l", 16},
    {"bcachefs", "bcachefs-tools", "-q", NULL, "--no-discard", "-f", "-L", 32},
    {"exfat", "exfatprogs", NULL, NULL, NULL, NULL, "-L", 11},
    {"vfat", "dosfstools", NULL, NULL, NULL, NULL, "-n", 11},
    {"ntfs", "ntfs-3g", "-q -f", NULL, NULL, "-F", "-L", 32},
    {"udf", "udftools", NULL, NULL, NULL, NULL, "-l", 30},
    {"minix", "util-linux", NULL, NULL, NULL, NULL, NULL, 0},
};

const struct fs_facts *fs_find(const char *name)
{
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++)
        if (strcmp(file_systems[i].name, name) == 0)
            return &file_systems[i];
    return NULL;
}

bool fs_is_installed(const char *program)
{
    const char *path = getenv("PATH");
    char *dirs = mem_strdup(path ? path : "/usr/bin:/bin:/usr/sbin:/sbin");
    char *rest = dirs;
    bool found = false;

    for (char *dir; !found && (dir = strsep(&rest, ":"));) {
        char *file = mem_printf("%s/%s", *dir ? dir : ".", program);
        found = access(file, X_OK) == 0;
        free(file);
    }
    free(dirs);
    return found;
}

static int check(const char *name, struct err *err)
{
    const struct fs_facts *facts = fs_find(name);
    const char *p = name;

    while (isalnum((unsigned char)*p) || *p == '_' || *p == '-')
        p++;
    if (!*name || *p || *name == '-')
        return err_set(err, ERR_USAGE, "fs=%s: name a file system, as ext4, xfs or btrfs", name);
    char *program = mem_printf("mkfs.%s", name);
    bool there = fs_is_installed(program);
    free(program);
    if (there)
        return 0;
    if (facts)
        return err_set(err, ERR_ABSENT, "fs=%s: mkfs.%s is not installed: install the package %s",
                       name, name, facts->package);
    return err_set(err, ERR_USAGE,
                   "fs=%s: unknown file system, there is no mkfs.%s here; ext4, xfs and btrfs are "
                   "common ones",
                   name, name);
}

// Has the user set this option of mkfs himself? It is the first of a word: "-E", "-Lname".
static bool has_option(const char *options, const char *option)
{
    size_t len = strlen(option);

    for (const char *p = options; p && *p;) {
        p += strspn(p, " \t\n");
        if (strncmp(p, option, len) == 0)
            return true;
        p += strcspn(p, " \t\n");
    }
    return false;
}

void plan_mount_point(struct plan_of_volume *plan, const struct volume *volume, const char *point)
{
    if (!volume_value(volume, "at"))
        plan_command(plan, "mkdir", "-p", "-m", "755", VOLUME_MOUNT_DIR, NULL);
    struct plan_step *step = plan_command(plan, "mkdir", "-m", "755", point, NULL);
    step->exclusive = true;
    plan_undo(step, PLAN_DIR, point, NULL);
}

static void add_own_options(struct plan_step *step, const struct fs_facts *facts, unsigned flags,
                            const char *users)
{
    const char *kept = flags & PLAN_FS_ALLOCATED ? facts->kept : NULL;
    bool is_extended = kept && *kept != '-'; // of -E, as the lazy ones

    if (facts->quiet)
        plan_words(step, facts->quiet);
    // A second -E would replace the first.
    if ((facts->extended || is_extended) && !has_option(users, "-E")) {
        char *argument =
            mem_printf("%s%s%s", facts->extended ? facts->extended : "",
                       facts->extended && is_extended ? "," : "", is_extended ? kept : "");
        plan_word(step, "-E");
        plan_word(step, argument);
        free(argument);
    }
    if (kept && !is_extended)
        plan_words(step, kept);
    if (flags & PLAN_FS_OVERWRITE && facts->force)
        plan_word(step, facts->force);
    if (flags & (PLAN_FS_OVERWRITE | PLAN_FS_LABELLED) && facts->label &&
        !has_option(users, facts->label)) {
        plan_word(step, facts->label);
        plan_word(step, FS_LABEL);
    }
}

static void plan_mkfs(struct plan_of_volume *plan, const char *name, const char *device,
                      unsigned flags, const char *options)
{
    const struct fs_facts *facts = fs_find(name);
    char *program = mem_printf("mkfs.%s", name);
    struct plan_step *step = plan_command(plan, program, NULL);

    free(program);
    step->deadline_ns = FS_MKFS_DEADLINE_NS;
    step->destroys = flags & PLAN_FS_OVERWRITE;
    if (facts)
        add_own_options(step, facts, flags, options);
    if (plan->journal)
        journal_add_mkfs(plan, step, name, options);
    if (options)
        plan_words(step, options);
    plan_word(step, device);
}

int plan_file_system(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                     unsigned flags, const char *mount_point, struct err *err)
{
    const char *name = volume_value(volume, "fs");
    const char *options = volume_value(volume, "mkfs");
    const char *mount = volume_value(volume, "mount");

    if (!name)
        name = "ext4";
    bool discards;
    if (check(name, err) < 0 || discard_plan(volume, &flags, &discards, err) < 0 ||
        (!volume->wish.image && precondition_plan(plan, volume, device, &flags, err) < 0) ||
        (plan->journal && journal_make(plan, name, options, err) < 0))
        return -1;
    if (!volume->wish.image) // which brings its file system along
        plan_mkfs(plan, name, device, flags, options);

    struct plan_step *step = plan_command(plan, "mount", "-t", name, NULL);
    char *journal = journal_mount_option(plan, name); // last, for a variable ends its word
    const char *of_mount[] = {mount && *mount ? mount : NULL, discards ? "discard" : NULL, journal};
    struct str all = STR_INIT;
    for (size_t i = 0; i < ARR_LEN(of_mount); i++)
        if (of_mount[i])
            str_addf(&all, "%s%s", all.len ? "," : "", of_mount[i]);
    if (all.len) {
        plan_word(step, "-o");
        plan_word(step, all.buf);
    }
    str_release(&all);
    free(journal);
    plan_word(step, device);
    plan_word(step, mount_point);
    plan_undo(step, PLAN_UNMOUNT, mount_point, NULL);
    return 0;
}
