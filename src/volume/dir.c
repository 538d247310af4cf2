// dir:PATH - a directory that is there. Nothing is made and nothing removed; only what uses it
// does.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "volume/type.h"

static const struct volume_key keys[] = {
    {"path", "PATH", "the directory; dir:PATH is short for it"},
    {NULL, NULL, NULL},
};

static int plan_dir(const struct volume *volume, struct plan_of_volume *plan, struct err *err)
{
    const char *path = volume_value(volume, "path");
    struct stat st;

    if (!path || !*path)
        return err_set(err, ERR_USAGE, "name the directory: dir:/srv/data");
    plan->path = realpath(path, NULL);
    if (!plan->path)
        return err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
    if (stat(plan->path, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, "%s is not a directory", path);
    plan->lock = strdup(plan->path);
    return 0;
}

const struct volume_type volume_type_dir = {
    .name = "dir",
    .summary = "a directory that is there",
    .example = "dir:/srv/data",
    .keys = keys,
    .plan = plan_dir,
};
