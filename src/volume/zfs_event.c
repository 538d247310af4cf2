// What an event of a run does to a pool of prony's: a disk, log or cache device goes offline, comes
// back, or is replaced. Shell commands, for they look at the pool when they begin: an event before
// may have replaced what it was made of.
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "volume/zfs.h"

// $old: the file or device that is meant; the last one where no number is given.
static const char find[] =
    "old=$(zpool status \"$pool\" | awk -v pool=\"$pool\" -v role=\"$role\" '\n"
    "    BEGIN { now = \"disk\" }\n"
    "    $1 == \"config:\" { inside = 1; next }\n"
    "    $1 == \"errors:\" { inside = 0 }\n"
    "    !inside || !NF || $1 == \"NAME\" || $1 == pool { next }\n"
    "    $1 == \"logs\" { now = \"log\"; next }\n"
    "    $1 == \"cache\" { now = \"cache\"; next }\n"
    "    $1 == \"spares\" { now = \"spare\"; next }\n"
    "    $1 ~ /^(mirror|raidz|replacing|spare)/ { next }\n"
    "    now == role { print $1 }' | sed -n \"${number:-$}p\")\n"
    "[ -n \"$old\" ] || { echo \"there is no $role$number in $pool\" >&2; exit 1; }\n"
    "case $old in /*) ;; *) old=/dev/$old ;; esac\n";

static const char offline[] = "exec zpool offline \"$pool\" \"$old\"\n";

#define WAIT                                                                                   \
    "while zpool status \"$pool\" | grep -Eq 'resilver in progress|replacing'; do sleep 0.1; " \
    "done\n"

static const char online[] = "zpool online \"$pool\" \"$old\" || exit\n" WAIT;

// A file makes room for a new one; a device for itself, empty, as if it had been exchanged: without
// the labels of ZFS, 512 KiB at either end, it is not known any more.
#define ZERO "dd if=/dev/zero of=\"$old\" bs=512K count=1 conv=fsync,nocreat status=none "
static const char replace[] =
    "if [ -f \"$old\" ]; then\n"
    "    new=$old.new\n"
    "    truncate --reference=\"$old\" \"$new\" || exit\n"
    "    zpool replace \"$pool\" \"$old\" \"$new\" || exit\n"
    "else\n"
    "    size=$(blockdev --getsize64 \"$old\") && zpool offline \"$pool\" \"$old\" || exit\n"
    "    " ZERO "&& " ZERO "oflag=seek_bytes seek=$((size / 262144 * 262144 - 524288)) || exit\n"
    "    wipefs --quiet --all \"$old\"\n"
    "    zpool replace -f \"$pool\" \"$old\" || exit\n"
    "fi\n" WAIT;

// A cache holds nothing that is not elsewhere.
static const char replace_cache[] = "zpool remove \"$pool\" \"$old\" || exit\n"
                                    "exec zpool add -f \"$pool\" cache \"$old\"\n";

static const char *script_of(const char *verb, size_t len, enum zfs_role role)
{
    if (strncmp(verb, "offline", len) == 0)
        return offline;
    if (strncmp(verb, "online", len) == 0)
        return online;
    return role == ZFS_CACHE ? replace_cache : replace;
}

int zfs_event(const struct volume *volume, const char *event, struct str *script, struct err *err)
{
    size_t verb_len = strcspn(event, ":");
    const char *part = event + verb_len + 1, *in = volume_value(volume, "in");
    size_t role_len = strcspn(part, "0123456789");
    const char *number = part + role_len;
    int role = 0;

    if (in)
        return err_set(err, ERR_USAGE, "%s: the pool of in=%s is not prony's to change", event, in);
    while (zfs_roles[role] &&
           (strlen(zfs_roles[role]) != role_len || strncmp(zfs_roles[role], part, role_len) != 0))
        role++;
    size_t digits = strspn(number, "0123456789");
    if (!zfs_roles[role] || number[digits] || digits > 3 || number[0] == '0')
        return err_set(err, ERR_USAGE,
                       "%s: must be disk, log or cache behind the colon, or one of them by number, "
                       "as disk2",
                       event);
    if (role != ZFS_DISK && !volume_value(volume, zfs_roles[role]))
        return err_set(err, ERR_USAGE, "%s: the pool has no %s: add %s=SIZE to the volume", event,
                       zfs_roles[role], zfs_roles[role]);
    str_addf(script, "pool=prony-%s role=%s number=%s\n%s%s", volume->name, zfs_roles[role], number,
             find, script_of(event, verb_len, (enum zfs_role)role));
    return 0;
}
