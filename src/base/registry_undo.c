// How each kind of thing is undone, and all of them in their order.
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attached.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/registry.h"
#include "base/tree.h"

static int undo_file(const char *path, struct err *err)
{
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return err_set(err, ERR_FAILED, "%s", strerror(errno));
}

// What somebody has put into it is not ours: it stays.
static int undo_dir(const char *path, struct err *err)
{
    if (rmdir(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return err_set(err, ERR_FAILED, "%s", strerror(errno));
}

static int undo_process(const struct leftover *item, const struct undo_limits *limits,
                        struct err *err)
{
    pid_t pid = (pid_t)strtol(item->words[0], NULL, 10);
    uint64_t ticks = strtoull(item->words[1], NULL, 10);
    int signal_number = item->n_words > 2 ? (int)strtol(item->words[2], NULL, 10) : 0;

    if (signal_number < 0 || signal_number >= NSIG)
        return err_set(err, ERR_FAILED, "no such signal: %s", item->words[2]);
    int r = proc_stop(pid, ticks, signal_number, limits->process_ns);

    return r == 0 ? 0 : err_set(err, ERR_FAILED, "%s", strerror(-r));
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static int undo_command(char *const *argv, const struct undo_limits *limits, struct err *err)
{
    int64_t until_ns = clock_now_ns(&clock_system) + limits->retry_ns;

    for (;;) {
        struct proc_result result;
        struct err start = ERR_INIT;
        bool ran = proc_run(argv, limits->command_ns, &result, &start) == 0;
        bool done = ran && result.status == 0;
        bool last = !ran || clock_now_ns(&clock_system) >= until_ns;
        if (!done && last && !ran)
            err_set(err, start.kind, "%s", start.text);
        else if (!done && last)
            err_set(err, ERR_FAILED, "status %d%s%s", result.status, result.errors.len ? ": " : "",
                    result.errors.buf);
        proc_result_release(&result);
        if (done || last)
            return done ? 0 : -1;
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 100 * NS_PER_MS);
    }
}

bool registry_is_moot(const struct registry *registry, const struct leftover *item)
{
    if (item->kind == LEFTOVER_NOTE)
        return true;
    switch (item->kind) {
    case LEFTOVER_FILE:
    case LEFTOVER_TREE:
    case LEFTOVER_DIR:
    case LEFTOVER_COMMAND_IF: // a thing that is there, as a logical volume
        return false;
    default:
        return !registry->same_boot;
    }
}

int registry_undo(const struct registry *registry, size_t index, const struct undo_limits *limits,
                  struct err *err)
{
    assert(index < registry->n_items);
    const struct leftover *item = &registry->items[index];
    if (registry_is_moot(registry, item))
        return 0;
    switch (item->kind) {
    case LEFTOVER_FILE:
        return undo_file(item->words[0], err);
    case LEFTOVER_TREE:
        return tree_remove(item->words[0], err);
    case LEFTOVER_DIR:
        return undo_dir(item->words[0], err);
    case LEFTOVER_PROCESS:
        return undo_process(item, limits, err);
    case LEFTOVER_COMMAND:
        return undo_command(item->words, limits, err);
    case LEFTOVER_COMMAND_IF:
        return exists(item->words[0]) ? undo_command(item->words + 1, limits, err) : 0;
    case LEFTOVER_MOUNT:
        return attached_unmount(item->words[0], limits->command_ns, limits->retry_ns, err);
    case LEFTOVER_LOOP:
        return attached_detach(item->words[0], limits->retry_ns, err);
    case LEFTOVER_NOTE:
        return 0;
    }
    return err_set(err, ERR_FAILED, "unknown kind %d", (int)item->kind);
}

bool registry_undo_told(struct registry *registry, size_t index, const struct undo_limits *limits,
                        struct str *report)
{
    struct err err = ERR_INIT;

    if (registry_undo(registry, index, limits, &err) == 0)
        return true;
    if (report) {
        str_add(report, "could not undo ");
        registry_describe(&registry->items[index], report);
        str_addf(report, ": %s\n", err.text);
    }
    return false;
}

// May older things lie below it?
static bool carries(const struct leftover *item)
{
    return item->kind == LEFTOVER_MOUNT || item->kind == LEFTOVER_LOOP ||
           item->kind == LEFTOVER_COMMAND || item->kind == LEFTOVER_COMMAND_IF;
}

static void tell(const struct registry *registry, const struct leftover *item, const char *before,
                 const char *behind, struct str *report)
{
    if (!report || registry_is_moot(registry, item))
        return;
    str_add(report, before);
    registry_describe(item, report);
    str_add(report, behind);
}

int registry_undo_all(struct registry *registry, const struct undo_limits *limits,
                      struct str *report)
{
    bool is_held = false;
    int n_stay = 0;

    for (size_t i = registry->n_items; i-- > 0;) {
        const struct leftover *item = &registry->items[i];
        if (item->kind == LEFTOVER_NOTE)
            continue;
        if (is_held && (limits->strict || item->kind != LEFTOVER_PROCESS)) {
            tell(registry, item, "not undone before that: ", "\n", report);
            n_stay++;
        } else if (!registry_undo_told(registry, i, limits, report)) {
            is_held = is_held || limits->strict || carries(item);
            n_stay++;
        } else {
            char *left = mem_printf(", left by prony process %d\n", (int)registry->owner);
            if (limits->tells)
                tell(registry, item, "undone: ", left, report);
            free(left);
            registry_drop(registry, item->id);
        }
    }
    while (n_stay == 0 && registry->n_items > 0)
        registry_drop(registry, registry->items[0].id);
    return n_stay;
}
