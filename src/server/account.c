#include "server/account.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "server/kind.h"

static int take(struct account *account, const struct passwd *user)
{
    account->uid = user->pw_uid;
    account->gid = user->pw_gid;
    snprintf(account->name, sizeof(account->name), "%s", user->pw_name);
    return 0;
}

static int choose_as_root(struct account *account, const struct server_kind *kind, const char *name,
                          const char *data, struct err *err)
{
    struct stat st;
    const struct passwd *user = name ? getpwnam(name) : NULL;
    struct str shown = STR_INIT;

    account->changes = true;
    if (name && !user) {
        text_add_value(&shown, name);
        err_set(err, ERR_USAGE, "user=%s: there is no such user", shown.buf);
        str_release(&shown);
        return -1;
    }
    if (!user && data && stat(data, &st) == 0 && st.st_uid != 0) {
        user = getpwuid(st.st_uid);
        if (!user) { // a number alone runs a server as well
            account->uid = st.st_uid;
            account->gid = st.st_gid;
            snprintf(account->name, sizeof(account->name), "%u", (unsigned)st.st_uid);
            return 0;
        }
    }
    if (!user)
        user = getpwnam(kind->account);
    if (!user)
        return err_set(err, ERR_USAGE,
                       "there is no user %s to run %s as, which refuses root: name one with user=",
                       kind->account, kind->title);
    if (user->pw_uid == 0)
        return err_set(err, ERR_USAGE, "user=%s: a server does not run as root", user->pw_name);
    return take(account, user);
}

int account_choose(struct account *account, const struct server_kind *kind, const char *name,
                   const char *data, struct err *err)
{
    *account = (struct account){0};
    if (geteuid() == 0)
        return choose_as_root(account, kind, name, data, err);
    const struct passwd *self = getpwuid(geteuid());
    if (name && (!self || strcmp(self->pw_name, name) != 0))
        return err_set(err, ERR_USAGE, "user=%s: only root can run a server as another user", name);
    account->uid = geteuid();
    account->gid = getegid();
    snprintf(account->name, sizeof(account->name), "%s", self ? self->pw_name : "oneself");
    return 0;
}

static bool can_search(const struct account *account, const struct stat *st)
{
    if (st->st_uid == account->uid)
        return st->st_mode & S_IXUSR;
    if (st->st_gid == account->gid)
        return st->st_mode & S_IXGRP;
    return st->st_mode & S_IXOTH;
}

int account_can_enter(const struct account *account, const char *dir, struct err *err)
{
    char *path = mem_strdup(dir);
    struct stat st;
    int rc = 0;

    assert(dir[0] == '/');
    if (!account->changes) {
        if (access(dir, X_OK) < 0)
            rc = err_set(err, ERR_USAGE, "%s: %s", dir, strerror(errno));
        goto out;
    }
    for (char *p = path + 1; rc == 0; p++) {
        if (*p && *p != '/')
            continue;
        char kept = *p;
        *p = '\0';
        if (stat(path[0] ? path : "/", &st) < 0)
            rc = err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
        else if (!can_search(account, &st))
            rc = err_set(err, ERR_USAGE,
                         "the user %s, who runs the server, cannot enter %s (mode %03o)",
                         account->name, path, (unsigned)(st.st_mode & 07777));
        *p = kept;
        if (!kept)
            break;
    }
out:
    free(path);
    return rc;
}
