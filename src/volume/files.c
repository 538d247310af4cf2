#include "volume/files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"

char *files_dir(const char *key, const char *given, struct err *err)
{
    const char *named = given ? given : ".";
    char *dir = realpath(named, NULL);
    struct stat st;

    if (!dir) {
        err_set(err, ERR_USAGE, "%s=%s: %s", key, named, strerror(errno));
    } else if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_USAGE, "%s=%s is not a directory", key, named);
        free(dir);
        dir = NULL;
    }
    return dir;
}

char *files_new(const char *dir, const char *name, struct err *err)
{
    char *file = mem_printf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name);
    struct stat st;

    if (lstat(file, &st) == 0) {
        err_set(err, ERR_USAGE,
                "%s is there already: take that volume down, or give this one another name", file);
        free(file);
        file = NULL;
    }
    return file;
}

int files_check_room(const char *dir, const char *key, int64_t bytes, bool full, struct err *err)
{
    char wanted[UNITS_MAX], there[UNITS_MAX];
    struct statvfs st;

    if (statvfs(dir, &st) < 0)
        return 0; // whatever it is, making the file will say so
    int64_t room = (int64_t)(full ? st.f_bavail : st.f_blocks) * (int64_t)st.f_frsize;
    if (bytes <= room)
        return 0;
    return err_set(err, ERR_USAGE, "%s=%s: %s has %s%s: use a smaller size, or another directory",
                   key, units_format_bytes_exact(bytes, wanted), dir,
                   units_format_bytes(room, there), full ? " free" : "");
}

void files_plan_make(struct plan_of_volume *plan, const char *file, int64_t bytes)
{
    struct plan_step *step =
        plan_command(plan, "sh", "-c", "umask 077; set -C; : >\"$0\"", file, NULL);
    char *size = mem_printf("%lld", (long long)bytes);

    step->exclusive = true; // set -C: what is there already fails
    plan_undo(step, PLAN_FILE, file, NULL);
    plan_command(plan, "truncate", "--size", size, file, NULL);
    free(size);
}

void files_plan_attach(struct plan_of_volume *plan, const char *file, const char *variable)
{
    struct plan_step *step =
        plan_command(plan, "losetup", "--find", "--show", "--direct-io=on", file, NULL);

    step->variable = mem_strdup(variable);
    plan_undo(step, PLAN_DETACH, file, NULL);
}

int files_check_loops(struct err *err)
{
    if (geteuid() != 0)
        return err_set(err, ERR_ABSENT,
                       "a loop volume is attached and mounted, which only root may: use sudo, or "
                       "dir:PATH");
    if (access("/dev/loop-control", R_OK | W_OK) < 0)
        return err_set(err, ERR_ABSENT,
                       "there are no loop devices here (/dev/loop-control: %s): load the module "
                       "loop, or use dir:PATH",
                       strerror(errno));
    return 0;
}
