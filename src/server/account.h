// Who runs a server: servers refuse root, so under root another user does.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct server_kind;

struct account {
    bool changes; // prony is root: to this user
    uid_t uid;
    gid_t gid;
    char name[64];
};

// user: as typed, or NULL: the owner of an existing data directory (NULL: there is none), else the
// user that the package makes.
int account_choose(struct account *account, const struct server_kind *kind, const char *user,
                   const char *data, struct err *err);

// Whether the account can come into a directory: 0, or -1 with err naming the one that keeps it
// out. By owner, group and mode; finer access lists are not looked at.
int account_can_enter(const struct account *account, const char *dir, struct err *err);
