#include "base/registry.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"

#define MAGIC "prony-leftovers 1"

enum {
    FILE_BYTES_MAX = 16 << 20, // far more than any study lists at once
    NAMES_MAX = 1000,          // names tried for a new file
};

static const char *const kind_names[] = {
    [LEFTOVER_FILE] = "file",       [LEFTOVER_TREE] = "tree",
    [LEFTOVER_PROCESS] = "process", [LEFTOVER_COMMAND] = "command",
    [LEFTOVER_MOUNT] = "mount",     [LEFTOVER_LOOP] = "loop",
    [LEFTOVER_NOTE] = "note",       [LEFTOVER_COMMAND_IF] = "command-if",
    [LEFTOVER_DIR] = "dir",
};

// Directories.

static void add_dir(char ***dirs, size_t *n, char *path)
{
    for (size_t i = 0; i < *n; i++) {
        if (strcmp((*dirs)[i], path) == 0) {
            free(path);
            return;
        }
    }
    *dirs = mem_resize(*dirs, *n + 2, sizeof(**dirs));
    (*dirs)[(*n)++] = path;
    (*dirs)[*n] = NULL;
}

static bool is_own(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

char **registry_dirs(void)
{
    char **dirs = NULL;
    size_t n = 0;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *temp = getenv("TMPDIR");
    char *user_runtime = mem_printf("/run/user/%u", (unsigned)geteuid());

    // sudo may pass on the runtime directory of the user: not the place for root's registry.
    if (runtime && runtime[0] == '/' && is_own(runtime))
        add_dir(&dirs, &n, mem_printf("%s/prony", runtime));
    if (geteuid() == 0)
        add_dir(&dirs, &n, mem_strdup("/run/prony"));
    else if (is_own(user_runtime))
        add_dir(&dirs, &n, mem_printf("%s/prony", user_runtime));
    if (temp && temp[0] == '/')
        add_dir(&dirs, &n, mem_printf("%s/prony-%u", temp, (unsigned)geteuid()));
    add_dir(&dirs, &n, mem_printf("/tmp/prony-%u", (unsigned)geteuid()));
    free(user_runtime);
    return dirs;
}

void registry_dirs_free(char **dirs)
{
    for (size_t i = 0; dirs && dirs[i]; i++)
        free(dirs[i]);
    free(dirs);
}

int registry_dir_open(const char *path, bool create)
{
    struct stat st;

    if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

// Words.

static void add_word(struct str *out, const char *word, bool blanks_too)
{
    for (const unsigned char *p = (const unsigned char *)word; *p; p++)
        if (*p < ' ' || *p == 0x7f || *p == '\\' || (blanks_too && *p == ' '))
            str_addf(out, "\\x%02x", *p);
        else
            str_addc(out, (char)*p);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// In place; false when the escapes are damaged.
static bool unescape(char *word)
{
    char *to = word;

    for (const char *p = word; *p; p++, to++) {
        *to = *p;
        if (*p != '\\')
            continue;
        int high = p[1] == 'x' ? hex_digit(p[2]) : -1;
        int low = high < 0 ? -1 : hex_digit(p[3]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to = (char)(16 * high + low);
        p += 3;
    }
    *to = '\0';
    return true;
}

static void item_release(struct leftover *item)
{
    for (size_t i = 0; i < item->n_words; i++)
        free(item->words[i]);
    free(item->words);
    item->words = NULL;
    item->n_words = item->cap_words = 0;
}

static void forget(struct registry *registry, size_t index)
{
    assert(index < registry->n_items);
    item_release(&registry->items[index]);
    registry->n_items--;
    memmove(&registry->items[index], &registry->items[index + 1],
            (registry->n_items - index) * sizeof(registry->items[0]));
}

static void item_add_word(struct leftover *item, char *word)
{
    *ARR_PUSH(item->words, item->n_words, item->cap_words) = word;
    *ARR_PUSH(item->words, item->n_words, item->cap_words) = NULL;
    item->n_words--; // the NULL is an end mark, not a word
}

// Reading.

// "KIND WORD..." after "+ ".
static bool parse_item(struct registry *registry, char *text, off_t offset)
{
    struct leftover item = {.id = registry->next_id, .offset = offset};
    char *kind = strsep(&text, " ");
    size_t k = 0;

    while (k < ARR_LEN(kind_names) && strcmp(kind, kind_names[k]) != 0)
        k++;
    if (k == ARR_LEN(kind_names))
        return false;
    item.kind = (enum leftover_kind)k;
    while (text) {
        char *word = strsep(&text, " ");
        if (!unescape(word))
            goto damaged;
        item_add_word(&item, mem_strdup(word));
    }
    if (item.n_words < 1 ||
        (item.kind == LEFTOVER_PROCESS && item.n_words != 2 && item.n_words != 3) ||
        (item.kind == LEFTOVER_COMMAND_IF && item.n_words < 2))
        goto damaged;
    *ARR_PUSH(registry->items, registry->n_items, registry->cap_items) = item;
    registry->next_id++;
    return true;
damaged:
    item_release(&item);
    return false;
}

static bool parse_line(struct registry *registry, char *line, off_t offset, int number)
{
    char boot[64];

    switch (number) {
    case 1:
        return strcmp(line, MAGIC) == 0;
    case 2:
        if (strncmp(line, "boot ", 5) != 0)
            return false;
        clock_boot_id(boot, sizeof(boot));
        registry->same_boot = strncmp(boot, "unknown", 7) != 0 && strcmp(line + 5, boot) == 0;
        return true;
    case 3:
        registry->owner = (pid_t)strtol(line + strcspn(line, " "), NULL, 10);
        return strncmp(line, "owner ", 6) == 0;
    default:
        if (strncmp(line, "+ ", 2) == 0)
            return parse_item(registry, line + 2, offset);
        return strncmp(line, "- ", 2) == 0;
    }
}

static int read_whole(struct registry *registry, struct str *text, struct err *err)
{
    char buf[8192];
    ssize_t n;

    while ((n = pread(registry->fd, buf, sizeof(buf), (off_t)text->len)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, ERR_FAILED, "cannot read %s: %s", registry->path, strerror(errno));
        str_addn(text, buf, (size_t)n);
        if (text->len > FILE_BYTES_MAX)
            return err_set(err, ERR_FAILED, "%s is too long to be a registry", registry->path);
    }
    return 0;
}

int registry_reload(struct registry *registry, struct err *err)
{
    struct str text = STR_INIT;
    int number = 0;
    int status = -1;

    while (registry->n_items > 0)
        forget(registry, registry->n_items - 1);
    if (read_whole(registry, &text, err) < 0)
        goto done;
    char *line = text.buf;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (!parse_line(registry, line, line - text.buf, ++number)) {
            err_set(err, ERR_FAILED, "%s:%d cannot be read", registry->path, number);
            goto done;
        }
        if (number == 3)
            registry->header_len = end + 1 - text.buf;
    }
    status = 0;
done:
    str_release(&text);
    return status;
}

// Writing.

// Returns the offset the text now stands at.
static off_t append(const struct registry *registry, const struct str *text, struct err *err)
{
    struct stat st = {0};
    ssize_t n = -1;

    if (fstat(registry->fd, &st) == 0)
        n = pwrite(registry->fd, text->buf, text->len, st.st_size);
    if (n == (ssize_t)text->len)
        return st.st_size;
    int error = n < 0 ? errno : ENOSPC;
    if (n > 0 && ftruncate(registry->fd, st.st_size) < 0) // half a line would spoil the next one
        error = errno;
    return err_set(err, ERR_FAILED, "cannot write %s: %s", registry->path, strerror(error));
}

int registry_add(struct registry *registry, struct leftover *item, struct err *err)
{
    struct str line = STR_INIT;

    assert(registry->fd >= 0 && item->n_words > 0);
    assert((size_t)item->kind < ARR_LEN(kind_names));
    str_addf(&line, "+ %s", kind_names[item->kind]);
    for (size_t i = 0; i < item->n_words; i++) {
        str_addc(&line, ' ');
        add_word(&line, item->words[i], true);
    }
    str_addc(&line, '\n');
    item->offset = append(registry, &line, err);
    str_release(&line);
    if (item->offset < 0) {
        item_release(item);
        return -1;
    }
    item->id = registry->next_id++;
    *ARR_PUSH(registry->items, registry->n_items, registry->cap_items) = *item;
    return item->id;
}

int registry_index(const struct registry *registry, int id)
{
    for (size_t i = 0; i < registry->n_items; i++)
        if (registry->items[i].id == id)
            return (int)i;
    return -1;
}

void registry_drop(struct registry *registry, int id)
{
    int index = registry_index(registry, id);

    if (index < 0)
        return;
    // Fails only when the medium does; then a crash before the end undoes the thing all the same.
    (void)!pwrite(registry->fd, "-", 1, registry->items[index].offset);
    forget(registry, (size_t)index);
    // A long study lists and drops thousands of things: start over whenever nothing is left.
    if (registry->n_items == 0)
        (void)!ftruncate(registry->fd, registry->header_len);
}

static int lock(int fd)
{
    int r;

    do
        r = flock(fd, LOCK_EX | LOCK_NB);
    while (r < 0 && errno == EINTR);
    return r;
}

// True when the file still has its name: whoever unlinked it held the lock before us.
static bool is_linked(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static int create_in(struct registry *registry, const char *dir)
{
    int dir_fd = registry_dir_open(dir, true);

    if (dir_fd < 0)
        return -1;
    registry->fd = -1;
    for (int i = 0; i < NAMES_MAX && registry->fd < 0; i++) {
        free(registry->path);
        registry->path = mem_printf("%s/%d-%llx-%d", dir, (int)getpid(),
                                    (unsigned long long)proc_start_ticks(getpid()), i);
        int fd = openat(dir_fd, registry->path + strlen(dir) + 1,
                        O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
        // A cleaner may see the new file before the lock and take it for a dead owner's.
        if (fd >= 0 && lock(fd) == 0 && is_linked(fd))
            registry->fd = fd;
        else if (fd >= 0)
            close(fd);
    }
    int error = errno;
    close(dir_fd);
    errno = error;
    return registry->fd < 0 ? -1 : 0;
}

int registry_create(struct registry *registry, struct err *err)
{
    struct str header = STR_INIT;
    char boot[64];
    struct err reasons = ERR_INIT;
    char **dirs = registry_dirs();

    *registry = (struct registry){.fd = -1, .owner = getpid(), .same_boot = true, .next_id = 1};
    err_set(&reasons, ERR_FAILED, "no place for the registry of leftovers");
    for (size_t i = 0; dirs[i] && registry->fd < 0; i++)
        if (create_in(registry, dirs[i]) < 0)
            err_set(&reasons, ERR_FAILED, "%s; %s: %s", reasons.text, dirs[i],
                    errno == EPERM ? "not a private directory of this user" : strerror(errno));
    registry_dirs_free(dirs);
    if (registry->fd < 0) {
        registry_close(registry);
        return err_set(err, reasons.kind, "%s", reasons.text);
    }
    clock_boot_id(boot, sizeof(boot));
    str_addf(&header, MAGIC "\nboot %s\nowner %d\n", boot, (int)registry->owner);
    registry->header_len = (off_t)header.len;
    off_t offset = append(registry, &header, err);
    str_release(&header);
    if (offset == 0)
        return 0;
    registry_close(registry);
    return -1;
}

int registry_adopt(struct registry *registry, const char *path, struct err *err)
{
    struct stat st;

    *registry = (struct registry){.fd = -1, .next_id = 1};
    registry->fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (registry->fd < 0 && (errno == ENOENT || errno == EISDIR || errno == ELOOP))
        return 0; // gone meanwhile, or not one of ours
    if (registry->fd < 0 || fstat(registry->fd, &st) < 0) {
        err_set(err, ERR_FAILED, "cannot open %s: %s", path, strerror(errno));
        goto failed;
    }
    registry->path = mem_strdup(path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0) {
        err_set(err, ERR_FAILED, "%s is not a registry that only this user writes", path);
        goto failed;
    }
    if (lock(registry->fd) < 0 || !is_linked(registry->fd)) {
        close(registry->fd);
        registry->fd = -1;
        free(registry->path);
        registry->path = NULL;
        return 0;
    }
    if (registry_reload(registry, err) == 0)
        return 1;
failed:
    if (registry->fd >= 0)
        close(registry->fd); // not registry_close: what cannot be read stays
    registry->fd = -1;
    registry_close(registry);
    return -1;
}

// Where the kept registries lie when they must outlive a login and a boot; NULL: with the others.
static char *state_dir(void)
{
    const char *state = getenv("PRONY_STATE_DIR");

    if (state && state[0] == '/')
        return mem_strdup(state);
    return geteuid() == 0 ? mem_strdup("/var/lib/prony") : NULL;
}

// The registry's text in a new file without a lasting name; its descriptor, or -1 with errno.
static int copy(struct registry *registry, int dir_fd, const char *temporary)
{
    struct str text = STR_INIT;
    int fd = -1, error = EIO;

    (void)unlinkat(dir_fd, temporary, 0);
    if (read_whole(registry, &text, NULL) == 0) {
        fd = openat(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        error = errno;
        ssize_t n = fd < 0 ? -1 : write(fd, text.buf, text.len);
        if (fd >= 0 && (n != (ssize_t)text.len || lock(fd) < 0 || fsync(fd) < 0)) {
            error = n >= 0 && n != (ssize_t)text.len ? ENOSPC : errno;
            close(fd);
            fd = -1;
            (void)unlinkat(dir_fd, temporary, 0);
        }
    }
    str_release(&text);
    errno = error;
    return fd;
}

int registry_move_to_kept(struct registry *registry, const char *name, struct err *err)
{
    char *state = state_dir();
    char *dir = state
                    ? mem_printf("%s/kept", state)
                    : mem_printf("%.*s/kept", (int)(strrchr(registry->path, '/') - registry->path),
                                 registry->path);
    char *temporary = mem_printf(".%d", (int)getpid());
    int rc = 0, fd = -1;

    if (state)
        (void)mkdir(state, 0700);
    int dir_fd = registry_dir_open(dir, true);
    if (dir_fd >= 0)
        fd = copy(registry, dir_fd, temporary);
    // Not rename, which would replace another one.
    if (fd < 0)
        rc = err_set(err, ERR_FAILED, "%s: %s", dir, strerror(errno));
    else if (linkat(dir_fd, temporary, dir_fd, name, 0) < 0)
        rc = errno == EEXIST ? err_set(err, ERR_USAGE, "there is a %s already", name)
                             : err_set(err, ERR_FAILED, "%s/%s: %s", dir, name, strerror(errno));
    if (fd >= 0)
        (void)unlinkat(dir_fd, temporary, 0);
    if (rc == 0) {
        (void)fsync(dir_fd);
        (void)!ftruncate(registry->fd, registry->header_len); // the guard reads it
        unlink(registry->path);
        close(registry->fd);
        registry->fd = fd;
        free(registry->path);
        registry->path = mem_printf("%s/%s", dir, name);
    } else if (fd >= 0) {
        close(fd);
    }
    if (dir_fd >= 0)
        close(dir_fd);
    free(temporary);
    free(dir);
    free(state);
    return rc;
}

char **registry_kept_dirs(void)
{
    char *state = state_dir();
    char **dirs = NULL;
    size_t n = 0;

    if (state)
        add_dir(&dirs, &n, state);
    else
        dirs = registry_dirs();
    for (size_t i = 0; dirs[i]; i++) {
        char *kept = mem_printf("%s/kept", dirs[i]);
        free(dirs[i]);
        dirs[i] = kept;
    }
    return dirs;
}

void registry_close(struct registry *registry)
{
    if (registry->fd >= 0 && registry->path) {
        if (registry->n_items == 0)
            unlink(registry->path);
        close(registry->fd);
    }
    while (registry->n_items > 0)
        forget(registry, registry->n_items - 1);
    free(registry->items);
    free(registry->path);
    *registry = (struct registry){.fd = -1};
}

void registry_describe(const struct leftover *item, struct str *out)
{
    size_t shown = item->kind == LEFTOVER_PROCESS ? 1 : item->n_words;

    str_add(out, kind_names[item->kind]);
    for (size_t i = 0; i < shown; i++) {
        str_addc(out, ' ');
        add_word(out, item->words[i], false);
    }
}
