#include "volume/host.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define VALUE_MAX 4096

// One file that is written.
struct item {
    char *key, *path;
    char *value; // as wanted
    char *was;
    int claim_id, undo_id; // in the registry; 0: not there
};

struct host_settings {
    struct leftovers *leftovers;
    struct item *items;
    size_t n_items, cap_items;
};

// Of these the kernel holds one and shows 0 for the other, which cannot be written back.
static const char *const pairs[][2] = {
    {"vm/dirty_ratio", "vm/dirty_bytes"},
    {"vm/dirty_background_ratio", "vm/dirty_background_bytes"},
};

static const struct {
    const char *key, *path;
} names[] = {
    {"thp", "/sys/kernel/mm/transparent_hugepage/enabled"},
    {"thp.defrag", "/sys/kernel/mm/transparent_hugepage/defrag"},
    {"governor", "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"},
};

// ---- from the key to the file

// A sysctl's name has its dots for slashes, unless a slash comes first in it.
static char *sysctl_path(const char *key)
{
    char *path = mem_printf("/proc/sys/%s", key);
    char *name = path + strlen("/proc/sys/");
    bool is_dotted = name[strcspn(name, "./")] != '/';

    for (char *p = name; *p && is_dotted; p++)
        *p = *p == '.' ? '/' : *p == '/' ? '.' : *p;
    return path;
}

// A pattern of files, as glob takes it.
static char *pattern_of(const char *key)
{
    const char *dot;

    for (size_t i = 0; i < ARR_LEN(names); i++)
        if (strcmp(names[i].key, key) == 0)
            return mem_strdup(names[i].path);
    if (key[0] == '/')
        return mem_strdup(key);
    if (strncmp(key, "zfs.", 4) == 0)
        return mem_printf("/sys/module/zfs/parameters/%s%s",
                          strncmp(key + 4, "zfs_", 4) == 0 ? "" : "zfs_", key + 4);
    if (strncmp(key, "module.", 7) == 0 && (dot = strchr(key + 7, '.')))
        return mem_printf("/sys/module/%.*s/parameters/%s", (int)(dot - key - 7), key + 7, dot + 1);
    return sysctl_path(key);
}

// Nothing but what is under the two trees, by whatever way.
static int check_pattern(const char *key, const char *pattern, struct err *err)
{
    bool is_below = strncmp(pattern, "/proc/sys/", 10) == 0 || strncmp(pattern, "/sys/", 5) == 0;

    if (is_below && !strstr(pattern, "/../") && !strstr(pattern, "//") &&
        pattern[strlen(pattern) - 1] != '/')
        return 0;
    return err_set(
        err, ERR_USAGE,
        "host setting %s: must be a sysctl (vm.dirty_ratio), zfs.NAME, module.NAME.NAME, "
        "thp, governor, or a file under /sys or /proc/sys",
        key);
}

// What was probably meant, among what lies beside it.
static int unknown_setting(const char *key, const char *path, struct err *err)
{
    const char *base = strrchr(path, '/') + 1, *module = strstr(path, "/sys/module/");
    char *dir = mem_strndup(path, (size_t)(base - path));
    DIR *entries = opendir(dir);
    const char **words = NULL;
    size_t n = 0, cap = 0;

    if (!entries && module) {
        module += strlen("/sys/module/");
        free(dir);
        return err_set(err, ERR_ABSENT, "host setting %s: the module %.*s is not loaded", key,
                       (int)strcspn(module, "/"), module);
    }

    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry; entry = readdir(entries))
        *ARR_PUSH(words, n, cap) = mem_strdup(entry->d_name);
    *ARR_PUSH(words, n, cap) = NULL;
    const char *near = text_near_miss(base, words);
    err_set(err, ERR_USAGE, "host setting %s: there is no %s here%s%s%s", key, path,
            near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    for (size_t i = 0; i + 1 < n; i++)
        free((char *)words[i]);
    free(words);
    free(dir);
    if (entries)
        closedir(entries);
    return -1;
}

// ---- values

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

// What the kernel shows, in the form that it takes: one blank between words; of a choice
// ("always [madvise] never") the one that is.
static char *normal_form(const char *text)
{
    const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    struct str out = STR_INIT;

    if (close)
        return mem_strndup(open + 1, (size_t)(close - open - 1));
    for (const char *p = text; *p; p++)
        if (!is_blank(*p))
            str_addc(&out, *p);
        else if (out.len && p[1] && !is_blank(p[1]))
            str_addc(&out, ' ');
    return str_detach(&out);
}

// Numbers with a unit are bytes; all else is as typed.
static char *value_to_write(const char *typed)
{
    size_t digits = strspn(typed, "0123456789.");
    int64_t bytes;

    if (digits && typed[digits] && strspn(typed + digits, "kKMGTiB") == strlen(typed + digits) &&
        units_parse_size(typed, &bytes, NULL) == 0)
        return mem_printf("%lld", (long long)bytes);
    return mem_strdup(typed);
}

// Parameters of modules that are yes or no are shown as Y and N.
static bool is_same_value(const char *is, const char *wanted)
{
    static const char *const yes[] = {"Y", "1", "y"}, *const no[] = {"N", "0", "n"};

    if (strcmp(is, wanted) == 0)
        return true;
    for (size_t i = 0; i < ARR_LEN(yes); i++)
        if ((strcmp(is, "Y") == 0 && strcmp(wanted, yes[i]) == 0) ||
            (strcmp(is, "N") == 0 && strcmp(wanted, no[i]) == 0))
            return true;
    return false;
}

// 0 or a negative errno; the caller frees what is there.
static int read_value(const char *path, char **ret)
{
    char buf[VALUE_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
    int error = n < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    if (error)
        return error;
    buf[n] = '\0';
    *ret = normal_form(buf);
    return 0;
}

static int write_value(const char *path, const char *value)
{
    size_t len = strlen(value);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
    int error = fd < 0 || write(fd, value, len) != (ssize_t)len ? -errno : 0;

    if (fd >= 0 && close(fd) < 0 && error == 0)
        error = -errno;
    return error;
}

// ---- one setting

// The file that is written to put a setting back, and with what: its partner where that is what
// counts.
static char *put_back_path(const struct item *item, char **ret_value)
{
    for (size_t i = 0; i < ARR_LEN(pairs); i++)
        for (int side = 0; side < 2; side++) {
            size_t n = strlen(item->path), m = strlen(pairs[i][side]);
            if (n < m || strcmp(item->path + n - m, pairs[i][side]) != 0 ||
                strcmp(item->was, "0") != 0)
                continue;
            char *path = mem_printf("%.*s%s", (int)(n - m), item->path, pairs[i][1 - side]);
            if (read_value(path, ret_value) == 0)
                return path;
            free(path);
        }
    *ret_value = mem_strdup(item->was);
    return mem_strdup(item->path);
}

// One owner of a pair, too.
static char *claim_path(const char *claims, const char *path)
{
    char *file = mem_printf("%s/%s", claims, path[0] == '/' ? path + 1 : path);

    for (char *p = file + strlen(claims) + 1; *p; p++)
        if (*p == '/')
            *p = '-';
    char *pair = strstr(file, "-vm-dirty_");
    char *end = pair ? strstr(pair, "_bytes") : NULL;
    end = pair && !end ? strstr(pair, "_ratio") : end;
    if (end)
        *end = '\0';
    return file;
}

static int claimed(const char *key, const char *file, struct err *err)
{
    char owner[32] = "";
    FILE *stream = fopen(file, "re");

    if (stream && fgets(owner, sizeof(owner), stream))
        owner[strcspn(owner, "\n")] = '\0';
    if (stream)
        fclose(stream);
    if (strtol(owner, NULL, 10) == (long)getpid())
        return err_set(
            err, ERR_USAGE,
            "host setting %s: the kernel keeps only one of this and another that is given", key);
    return err_set(err, ERR_USAGE,
                   "host setting %s is another prony's (process %s) until it was put back (%s)",
                   key, owner[0] ? owner : "unknown", file);
}

static int claim(struct host_settings *settings, struct item *item, const char *claims,
                 struct err *err)
{
    char *file = claim_path(claims, item->path);
    char owner[32];
    int rc = -1;

    if (mkdir(claims, 0755) < 0 && errno != EEXIST) {
        err_set(err, errno == EACCES || errno == EPERM ? ERR_ABSENT : ERR_FAILED,
                "host settings: cannot make %s: %s", claims, strerror(errno));
        goto out;
    }
    if (access(file, F_OK) == 0) {
        claimed(item->key, file, err);
        goto out;
    }
    item->claim_id = leftovers_add_file(settings->leftovers, file, err);
    if (item->claim_id < 0)
        goto out;
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) { // not ours to remove
        int error = errno;
        leftovers_drop(settings->leftovers, item->claim_id);
        item->claim_id = 0;
        if (error == EEXIST)
            claimed(item->key, file, err);
        else
            err_set(err, ERR_ABSENT, "host setting %s: %s: %s", item->key, file, strerror(error));
        goto out;
    }
    int n = snprintf(owner, sizeof(owner), "%d\n", (int)getpid());
    rc = write(fd, owner, (size_t)n) == n
             ? 0
             : err_set(err, ERR_FAILED, "cannot write %s: %s", file, strerror(errno));
    close(fd);
out:
    free(file);
    return rc;
}

static int list_undo(struct host_settings *settings, struct item *item, struct err *err)
{
    char *value;
    char *path = put_back_path(item, &value);
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"printf '%s\\n' \"$0\" >\"$1\"",
                    value,        path,         NULL};

    item->undo_id = leftovers_add_command(settings->leftovers, argv, err);
    free(value);
    free(path);
    return item->undo_id < 0 ? -1 : 0;
}

static int refused(const struct item *item, int error, struct err *err)
{
    bool is_absent = error == -EACCES || error == -EPERM || error == -EROFS;

    return err_set(err, is_absent ? ERR_ABSENT : ERR_USAGE, "host setting %s=%s: %s: %s%s",
                   item->key, item->value, item->path, strerror(-error),
                   is_absent && geteuid() != 0 ? " (only root may: use sudo)" : "");
}

static int set_one(struct host_settings *settings, struct item *item, const char *claims,
                   struct err *err)
{
    char *is = NULL;
    int error = read_value(item->path, &item->was);

    if (error == 0 && access(item->path, W_OK) < 0)
        error = -errno;
    if (error < 0)
        return refused(item, error, err);
    if (claim(settings, item, claims, err) < 0)
        return -1;
    if (is_same_value(item->was, item->value))
        return 0; // and stays so, for it is claimed
    if (list_undo(settings, item, err) < 0)
        return -1;
    error = write_value(item->path, item->value);
    int rc = error < 0 ? refused(item, error, err) : 0;
    error = read_value(item->path, &is);
    if (rc == 0 && error < 0)
        rc = refused(item, error, err);
    if (rc < 0 && is && strcmp(is, item->was) == 0) { // nothing to put back
        leftovers_drop(settings->leftovers, item->undo_id);
        item->undo_id = 0;
    }
    if (rc == 0 && !is_same_value(is, item->value))
        rc = err_set(err, ERR_USAGE, "host setting %s=%s: the kernel made %s of it", item->key,
                     item->value, is);
    free(is);
    return rc;
}

// ---- all of them

static int add_items(struct host_settings *settings, const char *text, const char *root,
                     struct err *err)
{
    const char *equals = strchr(text, '=');
    char *key = mem_strndup(text, equals ? (size_t)(equals - text) : 0);
    char *pattern = pattern_of(key), *whole = mem_printf("%s%s", root, pattern);
    glob_t found = {0};
    int rc = 0;

    if (!equals || equals == text || !equals[1] || strpbrk(text, "\n\r"))
        rc = err_set(err, ERR_USAGE, "host setting %s: must be KEY=VALUE, as vm.dirty_ratio=5",
                     text);
    if (rc == 0)
        rc = check_pattern(key, pattern, err);
    bool is_many = strchr(pattern, '*') && key[0] != '/';
    if (rc == 0 && is_many && glob(whole, 0, NULL, &found) != 0)
        rc = err_set(err, ERR_ABSENT, "host setting %s: there is no %s here", key, pattern);
    if (rc == 0 && !is_many && access(whole, F_OK) < 0)
        rc = unknown_setting(key, whole, err);
    size_t n = rc < 0 ? 0 : is_many ? found.gl_pathc : 1;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const char *path = is_many ? found.gl_pathv[i] : whole;
        for (size_t k = 0; k < settings->n_items && rc == 0; k++)
            if (strcmp(settings->items[k].path, path) == 0)
                rc = err_set(err, ERR_USAGE, "host setting %s is given twice", key);
        if (rc == 0)
            *ARR_PUSH(settings->items, settings->n_items, settings->cap_items) = (struct item){
                .key = mem_strdup(key),
                .path = mem_strdup(path),
                .value = value_to_write(equals + 1),
            };
    }
    globfree(&found);
    free(key);
    free(pattern);
    free(whole);
    return rc;
}

int host_set(struct host_settings **ret, const struct host_wish *wish, struct err *err)
{
    struct host_settings *settings = mem_calloc(1, sizeof(*settings));
    struct str report = STR_INIT;
    int rc = 0;

    assert(wish->leftovers);
    settings->leftovers = wish->leftovers;
    for (size_t i = 0; i < wish->n && rc == 0; i++)
        rc = add_items(settings, wish->items[i], wish->root ? wish->root : "", err);
    for (size_t i = 0; i < settings->n_items && rc == 0; i++)
        rc = set_one(settings, &settings->items[i], wish->claims ? wish->claims : HOST_CLAIMS, err);
    if (rc == 0) {
        *ret = settings;
        return 0;
    }
    if (host_put_back(settings, &report) > 0)
        err_set(err, err->kind, "%s; then %s", err->text, report.buf);
    str_release(&report);
    return -1;
}

int host_put_back(struct host_settings *settings, struct str *report)
{
    int failures = 0;

    for (size_t i = settings ? settings->n_items : 0; i-- > 0;) {
        struct item *item = &settings->items[i];
        int failed = 0;
        if (item->undo_id > 0)
            failed = leftovers_undo(settings->leftovers, item->undo_id, report);
        // One that could not be put back stays claimed.
        if (item->claim_id > 0 && !failed)
            failed = leftovers_undo(settings->leftovers, item->claim_id, report);
        failures += failed;
        free(item->key);
        free(item->path);
        free(item->value);
        free(item->was);
    }
    if (settings)
        free(settings->items);
    free(settings);
    return failures;
}

// Files of one key are told once: those of CPUs.
static bool is_told(const struct host_settings *settings, size_t index)
{
    return index > 0 && strcmp(settings->items[index].key, settings->items[index - 1].key) == 0;
}

void host_describe(const struct host_settings *settings, struct str *out)
{
    for (size_t i = 0; settings && i < settings->n_items; i++)
        if (!is_told(settings, i))
            str_addf(out, "%s%s=%s (was %s)", i ? ", " : "", settings->items[i].key,
                     settings->items[i].value, settings->items[i].was);
}

void host_record_settings(const struct host_settings *settings, struct kvs *environment)
{
    for (size_t i = 0; settings && i < settings->n_items; i++) {
        const struct item *item = &settings->items[i];
        char *set = mem_printf("host.set.%s", item->key);
        char *was = mem_printf("host.was.%s", item->key);
        if (!is_told(settings, i)) {
            kvs_add(environment, set, item->value);
            kvs_add(environment, was, item->was[0] ? item->was : "''");
        }
        free(set);
        free(was);
    }
}
