#include "server/place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/text.h"
#include "base/url.h"
#include "server/kind.h"

#define DATA_PREFIX ".prony-server-"
#define RUN_PREFIX  "prony-"
#define LETTERS     6
#define TRIES       20
#define LINK_DEPTH  2 // directories under the top: base/OID

// ---- as typed

static int make_absolute(const char *key, const char *path, char out[PATH_MAX], struct err *err)
{
    char dir[PATH_MAX] = "";

    if (path[0] != '/' && !getcwd(dir, sizeof(dir)))
        return err_set(err, ERR_FAILED, "cannot name the working directory: %s", strerror(errno));
    int n = path[0] == '/' ? snprintf(out, PATH_MAX, "%s", path)
                           : snprintf(out, PATH_MAX, "%s/%s", strcmp(dir, "/") ? dir : "", path);
    if (n >= PATH_MAX)
        return err_set(err, ERR_USAGE, "%s=: the path is too long", key);
    while (n > 1 && out[n - 1] == '/') // tidy enough to be compared and shown
        out[--n] = '\0';
    char *real = realpath(out, NULL);
    if (real)
        snprintf(out, PATH_MAX, "%s", real);
    free(real);
    return 0;
}

int place_of_text(const char *key, const char *text, char out[PATH_MAX], struct err *err)
{
    struct spec spec = {0};
    const char *path = text;
    size_t type_len = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    int rc = 0;

    if (type_len > 0 && text[type_len] == ':') {
        if (spec_parse(&spec, text, err) < 0)
            return err_prefix(err, "%s=", key);
        path = kvs_get(&spec.params, "path");
        if (strcmp(spec.type, "dir") != 0)
            rc = err_set(err, ERR_USAGE,
                         "%s=%s: a server's files lie in a directory: PATH or "
                         "dir:PATH",
                         key, text);
        else if (!path || spec.params.n != 1)
            rc = err_set(err, ERR_USAGE, "%s=%s: write dir:PATH", key, text);
    }
    if (rc == 0)
        rc = make_absolute(key, path, out, err);
    spec_release(&spec);
    return rc;
}

// ---- what is there

static bool has(const char *dir, const char *name)
{
    char path[PATH_MAX * 2];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &st) == 0;
}

// Directories of ours, and what a file system makes for itself.
static bool may_stand_beside(const char *name)
{
    if (strcmp(name, "lost+found") == 0)
        return true;
    for (int i = 0; server_kinds[i]; i++) {
        size_t len = strlen(server_kinds[i]->name);
        if (strncmp(name, server_kinds[i]->name, len) == 0 &&
            (!name[len] || strcmp(name + len, "-log") == 0))
            return true;
    }
    return false;
}

// Something that is neither empty nor ours is not built upon.
static int check_free(const char *key, const char *dir, const struct server_kind *kind,
                      struct err *err)
{
    DIR *d = opendir(dir);
    struct str shown = STR_INIT;

    if (!d)
        return err_set(err, ERR_USAGE, "%s=%s: %s", key, dir, strerror(errno));
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !may_stand_beside(entry->d_name)) {
            text_add_value(&shown, entry->d_name);
            break;
        }
    closedir(d);
    if (shown.len)
        err_set(err, ERR_USAGE,
                "%s=%s: other files are there (%s), and no data directory of %s: name one, an "
                "empty directory, or a new one",
                key, dir, shown.buf, kind->title);
    bool taken = shown.len > 0;
    str_release(&shown);
    return taken ? -1 : 0;
}

static int join(const char *key, const char *dir, const char *name, char out[PATH_MAX],
                struct err *err)
{
    if (snprintf(out, PATH_MAX, "%s/%s", strcmp(dir, "/") ? dir : "", name) >= PATH_MAX)
        return err_set(err, ERR_USAGE, "%s=: the path is too long", key);
    return 0;
}

int place_find_data(const struct server_kind *kind, const char *dir, char out[PATH_MAX],
                    enum place_state *ret, struct err *err)
{
    struct stat st;

    snprintf(out, PATH_MAX, "%s", dir);
    *ret = PLACE_NEW;
    if (stat(dir, &st) < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_USAGE, "data=%s: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_USAGE, "data=%s: this is no directory", dir);
    if (has(dir, kind->mark)) {
        *ret = PLACE_EXISTING;
        return 0;
    }
    if (join("data", dir, kind->name, out, err) < 0 || check_free("data", dir, kind, err) < 0)
        return -1;
    if (has(out, kind->mark))
        *ret = PLACE_EXISTING;
    else if (has(dir, kind->name))
        return err_set(err, ERR_USAGE,
                       "data=%s: %s is there and is no whole data directory of %s: remove it, or "
                       "name another place",
                       dir, out, kind->title);
    return 0;
}

// The log of an existing data directory is where it is.
static int find_existing_log(const struct server_kind *kind, const char *dir, const char *data,
                             char out[PATH_MAX], struct err *err)
{
    char is[PATH_MAX];
    bool told = kind->log_of(data, is);

    if (told && !is[0])
        return err_set(err, ERR_USAGE,
                       "log=%s: the log of %s is inside it; leave log= away, or copy it with from=",
                       dir, data);
    if (told ? strcmp(is, dir) == 0 : kind->is_log(dir)) {
        snprintf(out, PATH_MAX, "%s", dir);
        return 0;
    }
    char name[64];
    snprintf(name, sizeof(name), "%s-log", kind->name);
    if (join("log", dir, name, out, err) < 0)
        return -1;
    if (told ? strcmp(is, out) == 0 : kind->is_log(out))
        return 0;
    return err_set(err, ERR_USAGE, "log=%s: the log of %s is not there%s%s", dir, data,
                   told ? " but in " : "", told ? is : "");
}

int place_find_log(const struct server_kind *kind, const char *dir, const char *data,
                   enum place_state state, char out[PATH_MAX], struct err *err)
{
    char name[64];
    struct stat st;

    if (state == PLACE_EXISTING)
        return find_existing_log(kind, dir, data, out, err);
    snprintf(out, PATH_MAX, "%s", dir);
    if (stat(dir, &st) < 0)
        return errno == ENOENT ? 0 : err_set(err, ERR_USAGE, "log=%s: %s", dir, strerror(errno));
    snprintf(name, sizeof(name), "%s-log", kind->name);
    if (join("log", dir, name, out, err) < 0 || check_free("log", dir, kind, err) < 0)
        return -1;
    if (has(dir, name))
        return err_set(err, ERR_USAGE,
                       "log=%s: %s is there already, of another data directory: remove it, or name "
                       "another place",
                       dir, out);
    return 0;
}

int place_check_idle(const struct server_kind *kind, const char *data, struct err *err)
{
    pid_t pid = kind->runs_on(data);

    if (pid == 0)
        return 0;
    if (pid < 0)
        return err_set(err, ERR_USAGE, "a server runs on %s: stop it first", data);
    return err_set(err, ERR_USAGE, "a server runs on %s (process %d): stop it first", data,
                   (int)pid);
}

// ---- sources

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

// At the top of a directory of PostgreSQL a link is no harm where the server only reads what it
// leads to: settings and certificates. The log of its own is copied too.
static bool may_be_link(const char *path, const char *name)
{
    static const char *const read_only[] = {".conf", ".crt", ".key", ".pem"};
    struct stat target;

    if (strcmp(name, "pg_wal") == 0)
        return true;
    for (size_t i = 0; i < ARR_LEN(read_only); i++)
        if (ends_with(name, read_only[i]))
            return stat(path, &target) < 0 || !S_ISDIR(target.st_mode);
    return false;
}

// What lies elsewhere would be written by both servers: cp keeps links, and InnoDB's .isl files are
// links of another kind.
static int check_links(const char *dir, int depth, bool may_link, struct err *err)
{
    DIR *d = opendir(dir);
    int rc = 0;

    if (!d)
        return err_set(err, ERR_USAGE, "from=: %s: %s", dir, strerror(errno));
    for (struct dirent *entry = readdir(d); entry && rc == 0; entry = readdir(d)) {
        const char *name = entry->d_name;
        char path[PATH_MAX];
        struct stat st;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
            lstat(path, &st) < 0)
            continue;
        bool is_link = S_ISLNK(st.st_mode) && !(may_link && may_be_link(path, name));
        if (is_link || ends_with(name, ".isl"))
            rc = err_set(err, ERR_USAGE,
                         "from=: %s leads to another place, which a copy would share: only data "
                         "directories that are whole are copied",
                         path);
        else if (S_ISDIR(st.st_mode) && depth > 0)
            rc = check_links(path, depth - 1, false, err);
    }
    closedir(d);
    return rc;
}

int place_find_source(const struct server_kind *kind, const char *text, char out[PATH_MAX],
                      char log[PATH_MAX], struct err *err)
{
    char dir[PATH_MAX];
    enum place_state state;

    if (place_of_text("from", text, dir, err) < 0)
        return -1;
    if (place_find_data(kind, dir, out, &state, err) < 0 || state != PLACE_EXISTING)
        return err_set(err, ERR_USAGE, "from=%s: this is no data directory of %s%s", dir,
                       kind->title, access(dir, R_OK | X_OK) < 0 ? ", or it cannot be read" : "");
    if (place_check_idle(kind, out, err) < 0)
        return err_prefix(err, "from=");
    if (!kind->log_of(out, log))
        return err_set(err, ERR_USAGE,
                       "from=: the redo log of %s is not inside it: only data directories that are "
                       "whole are copied",
                       out);
    return check_links(out, LINK_DEPTH, strcmp(kind->name, "postgres") == 0, err);
}

// ---- made

int place_make(struct leftovers *lo, const struct account *account, const char *path,
               struct err *err)
{
    char parent[PATH_MAX];

    assert(path[0] == '/' && path[1]);
    snprintf(parent, sizeof(parent), "%s", path);
    char *slash = strrchr(parent, '/');
    slash[slash == parent] = '\0';
    if (account_can_enter(account, parent, err) < 0)
        return -1;
    // What is there must not be in the registry: it is not ours to remove.
    if (access(path, F_OK) == 0)
        return err_set(err, ERR_USAGE, "%s: %s", path, strerror(EEXIST));
    int id = leftovers_add_tree(lo, path, err);
    if (id < 0)
        return -1;
    if (mkdir(path, 0700) < 0) {
        leftovers_drop(lo, id);
        return err_set(err, ERR_USAGE, "cannot make %s: %s", path, strerror(errno));
    }
    if (account->changes && chown(path, account->uid, account->gid) < 0) {
        err_set(err, ERR_USAGE, "cannot give %s to the user %s: %s", path, account->name,
                strerror(errno));
        (void)leftovers_undo(lo, id, NULL);
        return -1;
    }
    return id;
}

// PARENT/PREFIXxxxxxx
static int make_named(struct leftovers *lo, const struct account *account, const char *parent,
                      const char *prefix, char out[PATH_MAX], struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char random[LETTERS];
    char name[LETTERS + 1] = "";
    int id = -1;

    for (int i = 0; i < TRIES && id < 0; i++) {
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
            return err_set(err, ERR_FAILED, "no random numbers: %s", strerror(errno));
        for (int k = 0; k < LETTERS; k++)
            name[k] = letters[random[k] % (sizeof(letters) - 1)];
        if (snprintf(out, PATH_MAX, "%s/%s%s", strcmp(parent, "/") ? parent : "", prefix, name) >=
            PATH_MAX)
            return err_set(err, ERR_USAGE, "%s: the path is too long", parent);
        if (access(out, F_OK) == 0)
            continue;
        id = place_make(lo, account, out, err);
        if (id < 0 && access(out, F_OK) < 0)
            return -1; // not for its name
    }
    return id;
}

static bool is_directory(const char *path, struct stat *st)
{
    return path && path[0] == '/' && stat(path, st) == 0 && S_ISDIR(st->st_mode);
}

int place_make_temporary(struct leftovers *lo, const struct account *account, char out[PATH_MAX],
                         struct err *err)
{
    const char *const others[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    char here[PATH_MAX];
    struct stat st, other;

    if (!getcwd(here, sizeof(here)) || stat(here, &st) < 0)
        return err_set(err, ERR_FAILED, "cannot name the working directory: %s", strerror(errno));
    struct err why = ERR_INIT;
    int id = make_named(lo, account, here, DATA_PREFIX, out, &why);
    for (size_t i = 0; i < ARR_LEN(others) && id < 0; i++)
        if (is_directory(others[i], &other) && other.st_dev == st.st_dev)
            id = make_named(lo, account, others[i], DATA_PREFIX, out, NULL);
    if (id < 0)
        err_set(err, why.kind,
                "no place for a data directory: %s; go to another directory, or name data=DIR",
                why.text);
    return id;
}

int place_make_run(struct leftovers *lo, const struct account *account, const char *socket,
                   char out[PATH_MAX], struct err *err)
{
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/run"};
    struct err why = ERR_INIT;
    struct stat st;
    int id = -1;

    for (size_t i = 0; i < ARR_LEN(parents) && id < 0; i++)
        if (is_directory(parents[i], &st) &&
            strlen(parents[i]) + strlen("/" RUN_PREFIX "/") + LETTERS + strlen(socket) <=
                SOCKET_PATH_MAX)
            id = make_named(lo, account, parents[i], RUN_PREFIX, out, &why);
    if (id < 0)
        err_set(err, ERR_USAGE, "no place for the server's socket%s%s: set TMPDIR to a short path",
                why.kind ? ": " : "", why.text);
    return id;
}
