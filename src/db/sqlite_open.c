// The URL of an sqlite target, its file, and a first connection that tells before the run whether
// the settings take. A database that does not exist is made only where asked (create_missing), and
// not before the first session: the probe of one that is to be made leaves nothing behind.
//
// Nobody in this process may open() and close() the database file by other means while sessions
// live: closing any descriptor of it drops all POSIX locks that SQLite holds through others.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "base/text.h"
#include "base/units.h"
#include "db/sqlite.h"

#define BUSY_DEFAULT_NS (10 * NS_PER_S)
#define BUSY_MAX_NS     (3600 * NS_PER_S)
#define TEMPORARY_TRIES 100

const char sqlite_params_help[] =
    "any setting of PRAGMA; busy_timeout (10s), busy_handler=prony|library, mode=rw|ro, vfs, "
    "data=VOLUME";

static const char *const own_params[] = {"busy_timeout", "busy_handler", "data",
                                         "mode",         "vfs",          NULL};
static const char *const suffixes[SQLITE_FILES] = {"", "-journal", "-wal", "-shm"};

// ---- parameters

static int parse_choice(const char *key, const char *text, const char *first, const char *second,
                        bool *ret_second, struct err *err)
{
    const char *const words[] = {first, second, NULL};

    if (strcasecmp(text, first) != 0 && strcasecmp(text, second) != 0) {
        text_unknown("value", text, words, err);
        return err_prefix(err, "sqlite: parameter %s", key);
    }
    *ret_second = strcasecmp(text, second) == 0;
    return 0;
}

static int parse_busy_timeout(struct sqlite_target *target, const char *text, struct err *err)
{
    // A bare number counts in milliseconds, as the pragma's does.
    if (units_parse_duration(text, NS_PER_MS, &target->busy_ns, err) < 0)
        return err_prefix(err, "sqlite: parameter busy_timeout");
    if (target->busy_ns > BUSY_MAX_NS)
        return err_set(err, ERR_USAGE, "sqlite: busy_timeout=%s is more than an hour", text);
    return 0;
}

static int parse_param(struct sqlite_target *target, const struct kv *kv, struct err *err)
{
    if (strcasecmp(kv->key, "busy_timeout") == 0)
        return parse_busy_timeout(target, kv->value, err);
    if (strcasecmp(kv->key, "busy_handler") == 0)
        return parse_choice(kv->key, kv->value, "prony", "library", &target->library_busy, err);
    if (strcasecmp(kv->key, "mode") == 0)
        return parse_choice(kv->key, kv->value, "rw", "ro", &target->read_only, err);
    if (strcasecmp(kv->key, "vfs") == 0) {
        if (!sqlite3_vfs_find(kv->value))
            return err_set(err, ERR_USAGE, "sqlite: this library has no vfs %s", kv->value);
        target->vfs = mem_strdup(kv->value);
        return 0;
    }
    if (strcmp(kv->key, "data") == 0) // the caller has seen to it
        return target->base.options.data_dir
                   ? 0
                   : err_set(err, ERR_USAGE,
                             "sqlite: data= names no volume: write TYPE:... or "
                             "@NAME, as in data=loop:size=1G,fs=ext4");
    if (sqlite_pragma_check(kv->key, own_params, err) < 0)
        return -1;
    kvs_add(&target->pragmas, kv->key, kv->value);
    return 0;
}

static int parse_params(struct sqlite_target *target, struct err *err)
{
    const struct kvs *params = &target->base.url.params;

    for (size_t i = 0; i < params->n; i++)
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(params->items[i].key, params->items[j].key) == 0)
                return err_set(err, ERR_USAGE, "sqlite: parameter %s stands twice",
                               params->items[i].key);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < params->n; i++)
            if (sqlite_pragma_is_first(params->items[i].key) == (pass == 0) &&
                parse_param(target, &params->items[i], err) < 0)
                return -1;
    return 0;
}

// ---- files

// Makes the empty file, which must not exist. Returns 0 or a negative errno.
static int make_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0644);

    if (fd < 0)
        return -errno;
    sudo_give(fd);
    close(fd);
    return 0;
}

static char *file_name(const char *path, int i)
{
    return mem_printf("%s%s", path, suffixes[i]);
}

static void remove_files(const char *path)
{
    for (int i = 0; i < SQLITE_FILES; i++) {
        char *name = file_name(path, i);
        (void)unlink(name);
        free(name);
    }
}

// In the volume, if one is given, else in the working directory.
static char *absolute_path(const struct sqlite_target *target, const char *path)
{
    char dir[PATH_MAX];

    if (path[0] != '/' && target->base.options.data_dir)
        return mem_printf("%s/%s", target->base.options.data_dir, path);
    if (path[0] == '/' || !getcwd(dir, sizeof(dir)))
        return mem_strdup(path);
    return mem_printf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, path);
}

// Registers the files of a temporary database, then makes it. A name that is taken already (by
// another prony) is let go again.
static int make_temporary(struct sqlite_target *target, struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct leftovers *lo = target->base.options.leftovers;
    char name[] = ".prony-XXXXXX.db";
    unsigned char random[6];
    int r = -EEXIST;

    if (!lo)
        return err_set(err, ERR_USAGE,
                       "sqlite: no temporary database is made here; "
                       "name a file: sqlite:PATH");
    for (int try = 0; r == -EEXIST && try < TEMPORARY_TRIES; try++) {
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
            return err_set(err, ERR_FAILED, "no random numbers: %s", strerror(errno));
        for (size_t i = 0; i < sizeof(random); i++)
            name[7 + i] = letters[random[i] % (sizeof(letters) - 1)];
        free(target->path);
        target->path = absolute_path(target, name);
        if (access(target->path, F_OK) == 0)
            continue;
        for (int i = 0; i < SQLITE_FILES; i++) {
            char *file = file_name(target->path, i);
            target->leftovers[i] = leftovers_add_file(lo, file, err);
            free(file);
            if (target->leftovers[i] < 0)
                return -1;
        }
        r = make_file(target->path);
        for (int i = 0; r < 0 && i < SQLITE_FILES; i++) {
            leftovers_drop(lo, target->leftovers[i]);
            target->leftovers[i] = 0;
        }
    }
    if (r < 0)
        return err_set(err, ERR_USAGE,
                       "sqlite: cannot make a temporary database in %s: %s; name a file: "
                       "sqlite:PATH",
                       target->base.options.data_dir ? target->base.options.data_dir
                                                     : "the working directory",
                       strerror(-r));
    target->base.temporary = true;
    return 0;
}

static int missing_file(const struct sqlite_target *target, struct err *err)
{
    struct str text = STR_INIT;

    text_add_value(&text, target->base.url.path);
    str_add(&text, " does not exist; make it with: prony init ");
    text_add_shell(&text, target->base.display);
    str_add(&text, " WORKLOAD");
    err_set(err, ERR_USAGE, "%s", text.buf);
    str_release(&text);
    return -1;
}

static int file_problem(const struct sqlite_target *target, const char *problem, struct err *err)
{
    struct str text = STR_INIT;

    text_add_value(&text, target->base.url.path);
    err_set(err, ERR_USAGE, "sqlite: %s %s", text.buf, problem);
    str_release(&text);
    return -1;
}

// Whether the file can be what was meant. Sets *ret_missing for one that is to be made.
static int check_file(const struct sqlite_target *target, bool *ret_missing, struct err *err)
{
    struct stat st;

    *ret_missing = false;
    if (stat(target->path, &st) < 0) {
        if (errno == ENOENT && target->base.options.create_missing && !target->read_only) {
            *ret_missing = true;
            return 0;
        }
        if (errno == ENOENT)
            return missing_file(target, err);
        return file_problem(target, strerror(errno), err);
    }
    if (S_ISDIR(st.st_mode))
        return file_problem(target, "is a directory; name a file in it", err);
    if (!S_ISREG(st.st_mode))
        return file_problem(target, "is not a regular file", err);
    if (access(target->path, R_OK) < 0)
        return file_problem(target, "may not be read by this user", err);
    return 0;
}

// ---- connections

static int open_connection(const struct sqlite_target *target, struct sqlite_busy *busy,
                           sqlite3 **ret, struct err *err)
{
    // One thread uses a connection, so SQLite need not lock it (multi-thread mode).
    int flags = (target->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(target->path, ret, flags, target->vfs);

    if (rc != SQLITE_OK)
        return file_problem(target, *ret ? sqlite3_errmsg(*ret) : "cannot be opened", err);
    if (target->library_busy)
        sqlite3_busy_timeout(*ret, (int)(target->busy_ns / NS_PER_MS));
    else
        sqlite3_busy_handler(*ret, sqlite_busy_handler, busy);
    for (size_t i = 0; i < target->pragmas.n; i++)
        if (sqlite_pragma_set(*ret, target->pragmas.items[i].key, target->pragmas.items[i].value,
                              err) < 0)
            return -1;
    // The first look into the file: is it a database at all?
    rc = sqlite3_exec(*ret, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
    if (rc == SQLITE_NOTADB)
        return file_problem(target, "is not an SQLite database", err);
    if (rc != SQLITE_OK)
        return file_problem(target, sqlite3_errmsg(*ret), err);
    return 0;
}

static int probe(struct sqlite_target *target, struct err *err)
{
    struct sqlite_busy busy = {0};
    sqlite3 *db = NULL;

    sqlite_busy_init(&busy, target, -1, 0);
    int r = open_connection(target, &busy, &db, err);
    sqlite3_close(db);
    return r;
}

static int probe_missing(struct sqlite_target *target, struct err *err)
{
    int r = make_file(target->path);

    if (r == -EEXIST) // somebody was faster
        return probe(target, err);
    if (r == -ENOENT)
        return file_problem(target, "cannot be made: its directory does not exist", err);
    if (r < 0) {
        char text[128];
        snprintf(text, sizeof(text), "cannot be made: %s", strerror(-r));
        return file_problem(target, text, err);
    }
    r = probe(target, err);
    remove_files(target->path);
    return r;
}

int sqlite_target_open(struct db_target *base, struct err *err)
{
    struct sqlite_target *target = (struct sqlite_target *)base;
    const char *path = base->url.path;
    bool missing;

    pthread_mutex_init(&target->lock, NULL);
    target->busy_ns = BUSY_DEFAULT_NS;
    if (base->url.has_authority)
        return err_set(err, ERR_USAGE,
                       "sqlite: takes a path without //, as in sqlite:bench.db "
                       "or sqlite:/var/tmp/bench.db");
    if (parse_params(target, err) < 0)
        return -1;
    if (!path || !path[0]) {
        if (target->read_only)
            return err_set(err, ERR_USAGE, "sqlite: mode=ro needs a file: sqlite:PATH?mode=ro");
        return make_temporary(target, err) < 0 ? -1 : probe(target, err);
    }
    if (strcmp(path, ":memory:") == 0)
        return err_set(err, ERR_USAGE,
                       "sqlite: every client would have a :memory: database of "
                       "its own; put a file on a tmpfs, as in "
                       "sqlite:/dev/shm/bench.db");
    if (path[0] == '/' && base->options.data_dir)
        return file_problem(target, "does not lie in the volume of data=: name a file in it", err);
    target->path = absolute_path(target, path);
    if (strlen(target->path) + sizeof("-journal") > PATH_MAX)
        return err_set(err, ERR_USAGE, "sqlite: the path is too long");
    if (check_file(target, &missing, err) < 0)
        return -1;
    return missing ? probe_missing(target, err) : probe(target, err);
}

// Before a session of a target whose file may be made.
static void make_missing(struct sqlite_target *target)
{
    if (target->base.options.create_missing && !target->read_only &&
        access(target->path, F_OK) < 0 && make_file(target->path) == 0)
        atomic_store(&target->made, true); // what is wrong with it else, opening tells
}

// No table, nor anything else.
static bool is_empty(const struct sqlite_target *target)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    bool empty = false;

    if (sqlite3_open_v2(target->path, &db, SQLITE_OPEN_READWRITE, target->vfs) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema", -1, &stmt, NULL) == SQLITE_OK)
        empty = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int64(stmt, 0) == 0;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return empty;
}

int sqlite_connect_file(struct sqlite_session *session, struct err *err)
{
    struct sqlite_target *target = (struct sqlite_target *)session->base.target;

    make_missing(target);
    return open_connection(target, &session->busy, &session->db, err);
}

void sqlite_target_close(struct db_target *base)
{
    struct sqlite_target *target = (struct sqlite_target *)base;
    struct leftovers *lo = base->options.leftovers;

    assert(!target->sessions);
    if (base->temporary || (atomic_load(&target->made) && is_empty(target)))
        remove_files(target->path);
    for (int i = 0; i < SQLITE_FILES; i++)
        if (target->leftovers[i] > 0)
            leftovers_drop(lo, target->leftovers[i]);
    kvs_release(&target->pragmas);
    free(target->path);
    free(target->vfs);
    pthread_mutex_destroy(&target->lock);
}
