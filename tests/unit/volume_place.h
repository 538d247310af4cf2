// For tests of plans: a directory that stands for PATH, with programs that are only there and disks
// that are only named. Plans are compared word for word; "$D" in what is expected is the directory.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/tree.h"
#include "volume/type.h"

struct place {
    char *dir, *path;
    bool has_disks;
};

static inline int place_make(void **state)
{
    static const char *const names[] = {"lvcreate", "mkfs.ext4", "mkfs.ext2",
                                        "mkfs.xfs", "mkfs.jfs",  "mdadm",
                                        "zpool",    "zfs",       "zfs-fuse"};
    struct place *place = mem_calloc(1, sizeof(*place));

    place->dir = mem_strdup("/tmp/prony-test-volume-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    place->path = mem_strdup(getenv("PATH"));
    for (size_t i = 0; i < ARR_LEN(names); i++) {
        char *file = mem_printf("%s/%s", place->dir, names[i]);
        int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
        assert_true(fd >= 0);
        close(fd);
        free(file);
    }
    // Major number 240 is of nobody. Nothing opens them.
    place->has_disks = true;
    for (unsigned i = 0; i < 6; i++) {
        char *file = mem_printf("%s/sd%c", place->dir, 'a' + (int)i);
        place->has_disks &= mknod(file, S_IFBLK | 0600, makedev(240, i)) == 0;
        free(file);
    }
    *state = place;
    return 0;
}

static inline int place_clear(void **state)
{
    struct place *place = *state;

    setenv("PATH", place->path, 1);
    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->path);
    free(place);
    return 0;
}

// A volume called t, planned with the programs of the place.
static inline int place_open(const struct place *place, struct volume **ret, const char *text,
                             struct err *err)
{
    struct volume_wish wish = {.name = "t"};

    setenv("PATH", place->dir, 1);
    int rc = volume_open(ret, text, &wish, err);
    setenv("PATH", place->path, 1);
    return rc;
}

static inline char *place_expand(const struct place *place, const char *text)
{
    struct str out = STR_INIT;

    for (; *text; text++) {
        if (strncmp(text, "$D", 2) == 0) {
            str_add(&out, place->dir);
            text++;
        } else {
            str_addc(&out, *text);
        }
    }
    return str_detach(&out);
}

struct place_plan {
    const char *text, *up, *down;
};

// Lines that hold words which differ from machine to machine (NULL: none) are left out of the plan.
static inline void place_assert_plan(const struct place *place, const struct place_plan *expected,
                                     const char *without)
{
    char *text = place_expand(place, expected->text);
    const char *parts[2] = {expected->up, expected->down};
    struct err err = ERR_INIT;
    struct volume *volume;

    if (place_open(place, &volume, text, &err) < 0) {
        // Not root, or something is missing here.
        if (err.kind != ERR_ABSENT)
            fail_msg("%s: %s", text, err.text);
        free(text);
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct str all = STR_INIT, shown = STR_INIT;
        if (i == 0)
            volume_print_up(volume, &all);
        else
            volume_print_down(volume, &all);
        char *rest = all.buf, *wanted = place_expand(place, parts[i]);
        for (char *line; (line = strsep(&rest, "\n")) && (*line || rest);)
            if (!without || !strstr(line, without))
                str_addf(&shown, "%s\n", line);
        assert_string_equal(shown.buf, wanted);
        free(wanted);
        str_release(&all);
        str_release(&shown);
    }
    volume_free(volume);
    free(text);
}

static inline void place_assert_refused(const struct place *place, const char *given,
                                        const char *says)
{
    char *text = place_expand(place, given);
    struct err err = ERR_INIT;
    struct volume *volume;

    assert_int_equal(place_open(place, &volume, text, &err), -1);
    if (!strstr(err.text, says))
        fail_msg("%s: %s", text, err.text);
    free(text);
}
