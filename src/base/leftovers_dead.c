// Cleaning after others: owners that died with their guard, and what was kept under a name.
#include "base/leftovers.h"

#include <assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/registry.h"

#define PATIENCE_NS (2 * NS_PER_S)

static const struct undo_limits kept_limits = {
    .process_ns = 10 * NS_PER_S,
    .command_ns = 60 * NS_PER_S,
    .retry_ns = 10 * NS_PER_S,
    .strict = true,
};

// What is stuck for good must not delay every command that starts.
static const struct undo_limits dead_limits = {
    .process_ns = 3 * NS_PER_S,
    .command_ns = 30 * NS_PER_S,
    .retry_ns = 0,
    .tells = true,
};

// Calls fn with the path of every registry in the directories, which are freed.
static void for_each(char **dirs, void (*fn)(const char *path, void *arg), void *arg)
{
    for (size_t i = 0; dirs[i]; i++) {
        int fd = registry_dir_open(dirs[i], false);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (fd >= 0 && !dir)
            close(fd);
        for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
            if (entry->d_name[0] == '.')
                continue;
            char *path = mem_printf("%s/%s", dirs[i], entry->d_name);
            fn(path, arg);
            free(path);
        }
        if (dir)
            closedir(dir);
    }
    registry_dirs_free(dirs);
}

// ---- dead owners

// One that is kept is left alone until the next boot.
static void clean_registry(const char *path, bool is_kept, struct str *report)
{
    struct registry registry;
    struct err err = ERR_INIT;

    int ready = registry_adopt(&registry, path, &err);
    if (ready < 0)
        str_addf(report, "%s\n", err.text);
    if (ready <= 0)
        return;
    if (is_kept && registry.same_boot) {
        registry_close(&registry);
        return;
    }
    if (registry_undo_all(&registry, &dead_limits, report) > 0)
        str_addf(report, "to forget what could not be undone, remove %s\n", path);
    registry_close(&registry);
}

static void clean_dead(const char *path, void *report)
{
    clean_registry(path, false, report);
}

static void clean_kept(const char *path, void *report)
{
    clean_registry(path, true, report);
}

void leftovers_clean_dead(struct str *report)
{
    for_each(registry_dirs(), clean_dead, report);
    for_each(registry_kept_dirs(), clean_kept, report);
}

// ---- what was kept under a name

// The words of the registry's note, if it has one.
static void take_words(const struct registry *registry, struct leftovers_kept *kept)
{
    for (size_t i = 0; i < registry->n_items; i++) {
        const struct leftover *item = &registry->items[i];
        for (size_t w = 0;
             item->kind == LEFTOVER_NOTE && w < item->n_words && w < LEFTOVERS_KEPT_WORDS; w++) {
            free(kept->words[w]);
            kept->words[w] = mem_strdup(item->words[w]);
        }
    }
}

struct list {
    struct leftovers_kept *items;
    size_t n, cap;
};

// Every prony command looks through these for a moment: that is no use of them.
static int adopt_patiently(struct registry *registry, const char *path, struct err *err)
{
    int64_t until_ns = clock_now_ns(&clock_system) + PATIENCE_NS;

    for (;;) {
        int ready = registry_adopt(registry, path, err);
        if (ready != 0 || access(path, F_OK) < 0 || clock_now_ns(&clock_system) >= until_ns)
            return ready;
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 10 * NS_PER_MS);
    }
}

static void add_kept(const char *path, void *arg)
{
    struct list *list = arg;
    struct registry registry;

    if (adopt_patiently(&registry, path, NULL) <= 0)
        return;
    if (registry.n_items > 0) {
        struct leftovers_kept *kept = ARR_PUSH(list->items, list->n, list->cap);
        kept->name = mem_strdup(strrchr(path, '/') + 1);
        kept->same_boot = registry.same_boot;
        take_words(&registry, kept);
    }
    registry_close(&registry);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct leftovers_kept *)a)->name,
                  ((const struct leftovers_kept *)b)->name);
}

struct leftovers_kept *leftovers_kept_list(size_t *ret_n)
{
    struct list list = {0};

    for_each(registry_kept_dirs(), add_kept, &list);
    if (list.n > 1)
        qsort(list.items, list.n, sizeof(*list.items), by_name);
    *ret_n = list.n;
    return list.items;
}

void leftovers_kept_free(struct leftovers_kept *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        for (size_t w = 0; w < ARR_LEN(list[i].words); w++)
            free(list[i].words[w]);
    }
    free(list);
}

int leftovers_kept_undo(const char *name, int held_fd, struct str *report, struct err *err)
{
    char **dirs = registry_kept_dirs();
    struct registry registry;
    int ready = 0, rc = 0;
    bool there = false;

    assert(name[0] && !strchr(name, '/'));
    for (size_t i = 0; dirs[i] && ready == 0; i++) {
        char *path = mem_printf("%s/%s", dirs[i], name);
        there = there || access(path, F_OK) == 0;
        ready = adopt_patiently(&registry, path, err);
        free(path);
    }
    registry_dirs_free(dirs);
    if (held_fd >= 0)
        close(held_fd);
    if (ready == 0)
        return there ? err_set(err, ERR_USAGE, "another prony is at work on %s", name)
                     : err_set(err, ERR_USAGE, "there is no %s", name);
    if (ready < 0)
        return -1;
    rc = registry_undo_all(&registry, &kept_limits, report);
    registry_close(&registry);
    return rc;
}
