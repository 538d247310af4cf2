#include "base/sudo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"

static bool find_user(uid_t *ret_uid, gid_t *ret_gid)
{
    const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
    int64_t uid, gid;

    if (geteuid() != 0 || !uid_text || !gid_text || units_parse_int(uid_text, &uid, NULL) < 0 ||
        units_parse_int(gid_text, &gid, NULL) < 0 || uid < 0 || gid < 0 || uid >= UINT32_MAX ||
        gid >= UINT32_MAX)
        return false;
    *ret_uid = (uid_t)uid;
    *ret_gid = (gid_t)gid;
    return true;
}

void sudo_give(int fd)
{
    struct stat st;
    uid_t uid;
    gid_t gid;

    // A terminal or a pipe under a file's name was not made by us.
    if (find_user(&uid, &gid) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        (void)!fchown(fd, uid, gid);
}

void sudo_give_path(const char *path)
{
    uid_t uid;
    gid_t gid;

    if (find_user(&uid, &gid))
        (void)!lchown(path, uid, gid);
}
