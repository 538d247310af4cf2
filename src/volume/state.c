#include "volume/state.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/checksum.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "base/text.h"
#include "base/tree.h"
#include "base/units.h"
#include "volume/manifest.h"

#define DROP_CACHES "/proc/sys/vm/drop_caches"
#define NEW_PREFIX  ".new-"
#define GONE_PREFIX ".gone-"

struct state {
    char *dir, *name, *key;
    char *path;               // DIR/NAME, or where it is being made
    struct manifest manifest; // of what is being saved
    struct leftovers *leftovers;
    const volatile sig_atomic_t *stop;
    int lock_fd;    // -1: not locked
    int tree_id;    // in the registry while it is made; 0
    char *image[2]; // by order of asking; freed at the end
    int n_images;
};

static char *default_name(const char *key)
{
    struct checksum sum;

    checksum_init(&sum);
    checksum_add(&sum, key, strlen(key));
    return mem_printf("%016" PRIx64, checksum_end(&sum));
}

static struct state *state_new(const char *dir, const char *name, const char *key)
{
    struct state *state = mem_calloc(1, sizeof(*state));
    char *real = realpath(dir, NULL);

    state->dir = real ? real : mem_strdup(dir);
    state->name = name ? mem_strdup(name) : default_name(key);
    state->key = mem_strdup(key ? key : "");
    state->path = mem_printf("%s/%s", state->dir, state->name);
    state->manifest = (struct manifest)MANIFEST_INIT;
    state->lock_fd = -1;
    return state;
}

void state_close(struct state *state)
{
    if (!state)
        return;
    if (state->lock_fd >= 0)
        close(state->lock_fd);
    if (state->tree_id > 0)
        (void)leftovers_undo(state->leftovers, state->tree_id, NULL);
    for (int i = 0; i < state->n_images; i++)
        free(state->image[i]);
    manifest_release(&state->manifest);
    free(state->dir);
    free(state->name);
    free(state->key);
    free(state->path);
    free(state);
}

const char *state_name(const struct state *state)
{
    return state->name;
}

const char *state_path(const struct state *state)
{
    return state->path;
}

// ---- files of text

static int read_text(const char *dir, const char *name, struct str *out, struct err *err)
{
    char *path = mem_printf("%s/%s", dir, name);
    char buf[8192];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;

    while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
        str_addn(out, buf, (size_t)n);
    if (n < 0)
        rc = err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

static int write_text(const char *dir, const char *name, const char *text, struct err *err)
{
    char *path = mem_printf("%s/%s", dir, name);
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), rc = 0;

    for (size_t done = 0; fd >= 0 && rc == 0 && done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0)
            rc = -1;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || rc < 0)
        rc = err_set(err, ERR_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

// ---- room

static int check_room(const char *dir, int64_t bytes, const char *what, struct err *err)
{
    char needed[UNITS_MAX], there[UNITS_MAX];
    struct statvfs st;

    if (statvfs(dir, &st) < 0)
        return 0; // who writes there will be told
    int64_t room = (int64_t)st.f_bavail * (int64_t)st.f_frsize;
    if (bytes <= room)
        return 0;
    return err_set(err, ERR_USAGE, "%s takes about %s and %s has %s free: use another place (%s)",
                   what, units_format_bytes(bytes, needed), dir, units_format_bytes(room, there),
                   "--state DIR/NAME, or another volume");
}

// What all below a directory takes on disk; of one file that.
static int64_t room_of(const char *path)
{
    struct stat st;
    int64_t bytes = 0;

    if (lstat(path, &st) < 0)
        return 0;
    bytes = (int64_t)st.st_blocks * 512;
    DIR *dir = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *below = mem_printf("%s/%s", path, entry->d_name);
        bytes += room_of(below);
        free(below);
    }
    if (dir)
        closedir(dir);
    return bytes;
}

int64_t state_bytes(const struct state *state)
{
    return room_of(state->path);
}

static char *part_path(const struct state *state, const char *place, const char *kind)
{
    return mem_printf("%s/%s.%s", state->path, place, kind);
}

int state_check_room(const struct state *state, const char *place, const char *dir, struct err *err)
{
    char *image = part_path(state, place, "image"), *files = part_path(state, place, "files");
    int rc = check_room(dir, room_of(image) + room_of(files), "the saved state", err);

    free(image);
    free(files);
    return rc;
}

// ---- found

static int lock(struct state *state, int how)
{
    state->lock_fd = open(state->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (state->lock_fd >= 0 && flock(state->lock_fd, how | LOCK_NB) == 0)
        return 0;
    return -errno;
}

// "volume.data loop:...": the first line that is not in both.
static void add_difference(const char *is, const char *wanted, struct str *out)
{
    for (;;) {
        size_t n = strcspn(is, "\n"), m = strcspn(wanted, "\n");
        if (n != m || memcmp(is, wanted, n) != 0) {
            str_addf(out, "%.*s, not %.*s", (int)n, n ? is : "nothing", (int)m,
                     m ? wanted : "nothing");
            return;
        }
        if (!is[n] || !wanted[m])
            return;
        is += n + 1;
        wanted += m + 1;
    }
}

int state_open(struct state **ret, const char *dir, const char *name, struct err *err)
{
    struct state *state;
    struct str key = STR_INIT;

    if (volume_check_name(name, err) < 0)
        return err_prefix(err, "state");
    state = state_new(dir, name, NULL);
    int error = lock(state, LOCK_SH), rc = 0;
    if (error == -EWOULDBLOCK)
        rc = err_set(err, ERR_USAGE, "the state %s is being forgotten by another prony", name);
    else if (error < 0)
        rc = err_set(err, ERR_USAGE, "there is no state %s in %s: %s", name, dir, strerror(-error));
    if (rc == 0)
        rc = read_text(state->path, "key", &key, err);
    free(state->key);
    state->key = str_detach(&key);
    if (rc < 0)
        state_close(state);
    else
        *ret = state;
    return rc;
}

int state_find(struct state **ret, const struct state_wish *wish, struct err *err)
{
    char *name = wish->name ? mem_strdup(wish->name) : default_name(wish->key);
    char *path = mem_printf("%s/%s", wish->dir, name);
    struct str difference = STR_INIT;
    struct state *state = NULL;
    int rc = volume_check_name(name, err) < 0 ? -1 : access(path, F_OK) == 0;

    if (rc == 1 && state_open(&state, wish->dir, name, err) < 0)
        rc = -1;
    if (rc == 1)
        add_difference(state->key, wish->key, &difference);
    if (difference.len) {
        rc =
            err_set(err, ERR_USAGE,
                    "the state %s is of another set-up (%s): give this one another name, or `prony "
                    "state forget %s`",
                    name, difference.buf, name);
        state_close(state);
    }
    if (rc == 1) {
        state->stop = wish->stop;
        *ret = state;
    }
    str_release(&difference);
    free(name);
    free(path);
    return rc;
}

// ---- saved

static int make_dir(const char *dir, struct err *err)
{
    if (mkdir(dir, 0755) == 0)
        sudo_give_path(dir);
    else if (errno != EEXIST)
        return err_set(err, ERR_USAGE, "cannot make the directory of states %s: %s", dir,
                       strerror(errno));
    return 0;
}

int state_make_room(const char *dir, int64_t bytes, struct err *err)
{
    if (make_dir(dir, err) < 0)
        return -1;
    if (access(dir, W_OK | X_OK) < 0)
        return err_set(err, ERR_USAGE, "the directory of states %s: %s", dir, strerror(errno));
    return check_room(dir, bytes, "the state to be saved", err);
}

int state_begin(struct state **ret, const struct state_wish *wish, struct err *err)
{
    if ((wish->name && volume_check_name(wish->name, err) < 0) ||
        state_make_room(wish->dir, 0, err) < 0)
        return -1;
    struct state *state = state_new(wish->dir, wish->name, wish->key);

    assert(wish->leftovers);
    free(state->path);
    state->path = mem_printf("%s/" NEW_PREFIX "%s-%d", state->dir, state->name, (int)getpid());
    state->leftovers = wish->leftovers;
    state->stop = state->manifest.stop = wish->stop;
    state->tree_id = leftovers_add_tree(state->leftovers, state->path, err);
    int rc = state->tree_id < 0 ? -1 : 0;
    if (rc == 0 && mkdir(state->path, 0700) < 0) {
        rc = err_set(err, ERR_USAGE, "cannot make %s: %s", state->path, strerror(errno));
        leftovers_drop(state->leftovers, state->tree_id);
        state->tree_id = 0;
    }
    if (rc < 0)
        state_close(state);
    else
        *ret = state;
    return rc;
}

int state_note(struct state *state, const char *place, const char *dir, struct err *err)
{
    if (manifest_add_tree(&state->manifest, dir, place, err) < 0)
        return -1;
    return check_room(state->dir, state->manifest.room, "the state to be saved", err);
}

int state_add_image(struct state *state, const char *place, struct volume *at_rest, struct err *err)
{
    char *path = part_path(state, place, "image");
    char *name = mem_printf("%s.image", place);
    int rc = volume_save(at_rest, path, err);

    if (rc == 0)
        rc = manifest_add_image(&state->manifest, path, name, err);
    free(path);
    free(name);
    return rc;
}

static void plan_copy(struct plan_of_volume *plan, const char *from, const char *to, bool shares)
{
    struct plan_step *step =
        plan_command(plan, "cp", "--archive", shares ? STATE_SHARES : "--reflink=never",
                     "--no-target-directory", from, to, NULL);

    step->is_long = true;
}

int state_add_files(struct state *state, const char *place, const char *dir, struct err *err)
{
    struct volume_wish wish = {.leftovers = state->leftovers, .stop = state->stop};
    struct plan_of_volume plan = {.lock_fd = -1};
    char *to = part_path(state, place, "files");

    plan_copy(&plan, dir, to, false);
    int rc = plan_run(&plan, &wish, err);
    plan_release(&plan);
    free(to);
    return rc;
}

// The file system that holds it has it on its disk when this returns.
static int sync_path(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 || syncfs(fd) < 0 ? -1 : 0;

    if (rc < 0)
        err_set(err, ERR_FAILED, "cannot write %s through to its disk: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

int state_commit(struct state *state, struct err *err)
{
    char *path = mem_printf("%s/%s", state->dir, state->name);
    int rc = -1;

    assert(state->tree_id > 0);
    if (write_text(state->path, "manifest", state->manifest.text.buf, err) < 0 ||
        write_text(state->path, "key", state->key, err) < 0 || sync_path(state->path, err) < 0)
        goto out;
    if (state->stop && *state->stop) {
        err_set(err, ERR_FAILED, "interrupted");
        goto out;
    }
    sudo_give_path(state->path);
    if (rename(state->path, path) == 0) {
        leftovers_drop(state->leftovers, state->tree_id);
        state->tree_id = 0;
        (void)sync_path(state->dir, NULL);
    } else if (errno == EEXIST || errno == ENOTEMPTY) {
        (void)leftovers_undo(state->leftovers, state->tree_id, NULL); // another's is there by now
        state->tree_id = 0;
    } else {
        err_set(err, ERR_FAILED, "cannot name %s: %s", path, strerror(errno));
        goto out;
    }
    free(state->path);
    state->path = mem_strdup(path);
    int error = lock(state, LOCK_SH);
    rc = error < 0 ? err_set(err, ERR_FAILED, "cannot use %s: %s", path, strerror(-error)) : 0;
    struct str key = STR_INIT;
    if (rc == 0)
        rc = read_text(state->path, "key", &key, err);
    if (rc == 0 && strcmp(key.len ? key.buf : "", state->key) != 0)
        rc = err_set(err, ERR_USAGE,
                     "the state %s was made meanwhile for another set-up: give this one another "
                     "name",
                     state->name);
    str_release(&key);
out:
    free(path);
    return rc;
}

// ---- restored

const char *state_image(const struct state *state, const char *place)
{
    struct state *mine = (struct state *)state; // only to remember what is to be freed
    char *path = part_path(state, place, "image");

    if (access(path, F_OK) < 0) {
        free(path);
        return NULL;
    }
    for (int i = 0; i < mine->n_images; i++)
        if (strcmp(mine->image[i], path) == 0) {
            free(path);
            return mine->image[i];
        }
    assert(mine->n_images < 2);
    return mine->image[mine->n_images++] = path;
}

void state_plan_files(const struct state *state, const char *place, const char *to, bool shares,
                      struct plan_of_volume *plan)
{
    char *from = part_path(state, place, "files");
    struct plan_step *step = plan_command(plan, "mkdir", "--mode=755", to, NULL);

    step->exclusive = true;
    plan_undo(step, PLAN_TREE, to, NULL);
    plan_copy(plan, from, to, shares);
    free(from);
}

int state_verify(const struct state *state, const char *place, const char *dir, struct err *err)
{
    struct manifest now = MANIFEST_INIT;
    struct str saved = STR_INIT;
    char *prefix = mem_printf("%s/", place);

    now.stop = state->stop;
    int rc = read_text(state->path, "manifest", &saved, err);
    if (rc == 0)
        rc = manifest_add_tree(&now, dir, place, err);
    char *name = rc == 0 ? manifest_difference(saved.buf, now.text.buf, prefix) : NULL;
    if (name)
        rc = err_set(err, ERR_FAILED, "the restored state %s is not what was saved: %s differs",
                     state->name, name);
    free(name);
    free(prefix);
    manifest_release(&now);
    str_release(&saved);
    return rc;
}

// Lines of places that were saved as files are found again there; the others have an image's line.
// What was saved of a place must be there at all.
static int check_parts(const struct state *state, const struct str *saved, struct err *err)
{
    static const char *const places[] = {"data", "log"};
    int rc = saved->len ? 0
                        : err_set(err, ERR_FAILED, "the state %s is damaged: its manifest is empty",
                                  state->name);

    for (size_t i = 0; i < ARR_LEN(places) && rc == 0; i++) {
        char *image = part_path(state, places[i], "image"),
             *files = part_path(state, places[i], "files");
        char *first = manifest_difference(saved->buf, "", places[i]);
        if (first && access(image, F_OK) < 0 && access(files, F_OK) < 0)
            rc = err_set(err, ERR_FAILED, "the state %s is damaged: its %s is missing", state->name,
                         places[i]);
        free(first);
        free(image);
        free(files);
    }
    return rc;
}

int state_check(const struct state *state, const volatile sig_atomic_t *stop, struct err *err)
{
    struct manifest now = MANIFEST_INIT;
    struct str saved = STR_INIT;
    DIR *dir = opendir(state->path);
    int rc = dir ? read_text(state->path, "manifest", &saved, err)
                 : err_set(err, ERR_FAILED, "%s: %s", state->path, strerror(errno));

    now.stop = stop;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && rc == 0; entry = readdir(dir)) {
        char *dot = strchr(entry->d_name, '.');
        bool is_image = dot && strcmp(dot, ".image") == 0;
        bool is_files = dot && strcmp(dot, ".files") == 0;
        if (entry->d_name[0] == '.' || (!is_image && !is_files))
            continue;
        char *path = mem_printf("%s/%s", state->path, entry->d_name);
        char *place = mem_strndup(entry->d_name, (size_t)(dot - entry->d_name));
        char *prefix = is_image ? mem_strdup(entry->d_name) : mem_printf("%s/", place);
        str_clear(&now.text);
        rc = is_image ? manifest_add_image(&now, path, entry->d_name, err)
                      : manifest_add_tree(&now, path, place, err);
        char *name = rc == 0 ? manifest_difference(saved.buf, now.text.buf, prefix) : NULL;
        if (name)
            rc = err_set(err, ERR_FAILED, "the state %s is damaged: %s is not what was saved",
                         state->name, name);
        free(name);
        free(path);
        free(place);
        free(prefix);
    }
    if (dir)
        closedir(dir);
    if (rc == 0)
        rc = check_parts(state, &saved, err);
    manifest_release(&now);
    str_release(&saved);
    return rc;
}

void state_settle(const char *const *dirs, struct kvs *facts)
{
    int fd, error = 0;

    for (; *dirs; dirs++)
        (void)sync_path(*dirs, NULL);
    fd = open(DROP_CACHES, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "3", 1) != 1)
        error = errno;
    if (fd >= 0)
        close(fd);
    if (error)
        kvs_addf(facts, "state.cache", "as restored: %s: %s", DROP_CACHES, strerror(error));
    else
        kvs_add(facts, "state.cache", "dropped");
}

void state_record(const struct state *state, struct kvs *facts)
{
    kvs_add(facts, "state.name", state->name);
    kvs_add(facts, "state.path", state->path);
    for (const char *line = state->key; *line;) {
        size_t len = strcspn(line, "\n"), name_len = strcspn(line, " \n");
        char *key = mem_printf("state.of.%.*s", (int)name_len, line);
        char *value =
            mem_strndup(line + name_len + (name_len < len), len - name_len - (name_len < len));
        kvs_add(facts, key, value);
        free(key);
        free(value);
        line += len + (line[len] == '\n');
    }
}

// ---- all of them

static int is_state(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

struct state_info *state_list(const char *dir, size_t *ret_n)
{
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_state, alphasort);
    struct state_info *list = mem_calloc(n > 0 ? (size_t)n : 1, sizeof(*list));

    *ret_n = 0;
    for (int i = 0; i < n; i++) {
        char *path = mem_printf("%s/%s", dir, entries[i]->d_name);
        char *key_path = mem_printf("%s/key", path);
        struct str key = STR_INIT;
        struct stat st;
        if (stat(key_path, &st) == 0 && read_text(path, "key", &key, NULL) == 0)
            list[(*ret_n)++] = (struct state_info){
                .name = mem_strdup(entries[i]->d_name),
                .key = str_detach(&key),
                .bytes = room_of(path),
                .saved_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec,
            };
        str_release(&key);
        free(key_path);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return list;
}

void state_list_free(struct state_info *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free(list[i].key);
    }
    free(list);
}

int state_forget(const char *dir, const char *name, struct leftovers *leftovers, struct err *err)
{
    struct state *state;
    int rc = state_open(&state, dir, name, err);

    if (rc < 0)
        return rc;
    char *gone = mem_printf("%s/" GONE_PREFIX "%s-%d", state->dir, name, (int)getpid());
    if (flock(state->lock_fd, LOCK_EX | LOCK_NB) < 0)
        rc = err_set(err, ERR_USAGE, "the state %s is in use by another prony", name);
    // What only looks like one is somebody's.
    struct str manifest = STR_INIT;
    struct err none = ERR_INIT;
    if (rc == 0 && read_text(state->path, "manifest", &manifest, &none) < 0)
        rc = err_set(err, ERR_USAGE, "%s is no state that prony saved", state->path);
    str_release(&manifest);
    int id = rc < 0 ? -1 : leftovers_add_tree(leftovers, gone, err);
    if (id < 0)
        rc = -1;
    // Under another name first: what is killed half way leaves no half of a state.
    if (rc == 0 && rename(state->path, gone) < 0) {
        rc = err_set(err, ERR_FAILED, "cannot remove %s: %s", state->path, strerror(errno));
        leftovers_drop(leftovers, id);
    }
    struct str report = STR_INIT;
    if (rc == 0 && leftovers_undo(leftovers, id, &report) > 0)
        rc = err_set(err, ERR_FAILED, "the state %s: %s", name, report.buf);
    str_release(&report);
    free(gone);
    state_close(state);
    return rc;
}
