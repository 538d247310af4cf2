// The owner's side and the guard. Who may undo what is settled by the
// lock on the registry file (base/registry.h): the guard inherits the owner's open file and with
// it the lock, so between the owner's death and the guard's work nobody else can come in.
#include "base/leftovers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/registry.h"

struct leftovers {
    struct registry registry;
    int lifeline_fd; // write end; only this process holds it, so that its death closes it
    pid_t guard;
    uint64_t guard_ticks;
};

static const struct undo_limits owner_limits = {
    .process_ns = 10 * NS_PER_S,
    .command_ns = 60 * NS_PER_S,
    .retry_ns = 10 * NS_PER_S,
};

// Nobody waits for the guard, but the volumes and ports it frees are wanted soon.
static const struct undo_limits guard_limits = {
    .process_ns = 1 * NS_PER_S,
    .command_ns = 30 * NS_PER_S,
    .retry_ns = 10 * NS_PER_S,
};

// The guard.

static void guard_keep_only(int a, int b)
{
    int low = a < b ? a : b;
    int high = a < b ? b : a;
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    // A reader of our output must see its end when prony ends.
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null_fd >= 0; fd++)
        if (fd != low && fd != high)
            dup2(null_fd, fd);
    unsigned first = STDERR_FILENO + 1;
    if ((unsigned)low >= first) {
        if ((unsigned)low > first)
            (void)close_range(first, (unsigned)low - 1, 0);
        first = (unsigned)low + 1;
    }
    if ((unsigned)high >= first) {
        if ((unsigned)high > first)
            (void)close_range(first, (unsigned)high - 1, 0);
        first = (unsigned)high + 1;
    }
    (void)close_range(first, ~0U, 0);
}

static _Noreturn void guard_main(struct registry *registry, int lifeline_fd)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    ssize_t n;
    char byte;

    setsid();
    for (size_t i = 0; i < ARR_LEN(ignored); i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL); // commands are waited for
    prctl(PR_SET_NAME, "prony-guard");
    if (chdir("/") < 0) // a working directory would keep its file system mounted
        _exit(1);
    guard_keep_only(lifeline_fd, registry->fd); // the owner waits for this

    do
        n = read(lifeline_fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    // The owner ends its guard with SIGKILL when all is done: to come here means that it died.
    if (registry_reload(registry, NULL) < 0)
        _exit(1);
    registry->same_boot = true; // also where the boot id cannot be read
    (void)registry_undo_all(registry, &guard_limits, NULL);
    registry_close(registry);
    _exit(0);
}

// The owner.

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

int leftovers_open(struct leftovers **ret, struct err *err)
{
    struct leftovers *lo = mem_calloc(1, sizeof(*lo));
    int lifeline[2] = {-1, -1};
    int ready[2] = {-1, -1}; // ends when the guard has closed all it inherited
    char byte;

    if (registry_create(&lo->registry, err) < 0)
        goto failed;
    if (pipe2(lifeline, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0 || (lo->guard = fork()) < 0) {
        err_set(err, ERR_FAILED, "cannot start the guard process: %s", strerror(errno));
        goto failed;
    }
    if (lo->guard == 0)
        guard_main(&lo->registry, lifeline[0]);
    close(ready[1]);
    while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
        ;
    close(ready[0]);
    close(lifeline[0]);
    lo->lifeline_fd = lifeline[1];
    lo->guard_ticks = proc_start_ticks(lo->guard);
    *ret = lo;
    return 0;
failed:
    close_pipe(lifeline);
    close_pipe(ready);
    registry_close(&lo->registry);
    free(lo);
    return -1;
}

static void add_word(struct leftover *item, const char *word)
{
    *ARR_PUSH(item->words, item->n_words, item->cap_words) = mem_strdup(word);
    *ARR_PUSH(item->words, item->n_words, item->cap_words) = NULL;
    item->n_words--; // the NULL is an end mark, not a word
}

// The guard and later commands have other working directories.
static int add_path(struct leftovers *lo, enum leftover_kind kind, const char *path,
                    struct err *err)
{
    struct leftover item = {.kind = kind};
    char *dir = NULL;

    assert(path && path[0]);
    if (path[0] != '/') {
        dir = getcwd(NULL, 0);
        if (!dir)
            return err_set(err, ERR_FAILED, "cannot name the working directory: %s",
                           strerror(errno));
    }
    char *whole =
        dir ? mem_printf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, path) : mem_strdup(path);
    add_word(&item, whole);
    free(whole);
    free(dir);
    return registry_add(&lo->registry, &item, err);
}

int leftovers_add_file(struct leftovers *lo, const char *path, struct err *err)
{
    return add_path(lo, LEFTOVER_FILE, path, err);
}

int leftovers_add_tree(struct leftovers *lo, const char *dir, struct err *err)
{
    return add_path(lo, LEFTOVER_TREE, dir, err);
}

int leftovers_add_dir(struct leftovers *lo, const char *dir, struct err *err)
{
    return add_path(lo, LEFTOVER_DIR, dir, err);
}

int leftovers_add_mount(struct leftovers *lo, const char *dir, struct err *err)
{
    return add_path(lo, LEFTOVER_MOUNT, dir, err);
}

int leftovers_add_loop(struct leftovers *lo, const char *file, struct err *err)
{
    return add_path(lo, LEFTOVER_LOOP, file, err);
}

int leftovers_add_process(struct leftovers *lo, pid_t pid, struct err *err)
{
    return leftovers_add_process_signal(lo, pid, SIGTERM, err);
}

int leftovers_add_process_signal(struct leftovers *lo, pid_t pid, int signal_number,
                                 struct err *err)
{
    struct leftover item = {.kind = LEFTOVER_PROCESS};
    uint64_t ticks = proc_start_ticks(pid);
    char *words[3];

    assert(signal_number > 0);

    if (ticks == 0)
        return err_set(err, ERR_FAILED, "process %d has ended already", (int)pid);
    words[0] = mem_printf("%d", (int)pid);
    words[1] = mem_printf("%llu", (unsigned long long)ticks);
    words[2] = mem_printf("%d", signal_number);
    for (size_t i = 0; i < ARR_LEN(words); i++) {
        add_word(&item, words[i]);
        free(words[i]);
    }
    return registry_add(&lo->registry, &item, err);
}

int leftovers_add_command(struct leftovers *lo, char *const *argv, struct err *err)
{
    struct leftover item = {.kind = LEFTOVER_COMMAND};

    assert(argv && argv[0]);
    for (char *const *arg = argv; *arg; arg++)
        add_word(&item, *arg);
    return registry_add(&lo->registry, &item, err);
}

int leftovers_add_command_if(struct leftovers *lo, const char *path, char *const *argv,
                             struct err *err)
{
    struct leftover item = {.kind = LEFTOVER_COMMAND_IF};

    assert(path[0] == '/' && argv && argv[0]);
    add_word(&item, path);
    for (char *const *arg = argv; *arg; arg++)
        add_word(&item, *arg);
    return registry_add(&lo->registry, &item, err);
}

void leftovers_drop(struct leftovers *lo, int id)
{
    registry_drop(&lo->registry, id);
}

int leftovers_undo(struct leftovers *lo, int id, struct str *report)
{
    int index = registry_index(&lo->registry, id);

    if (index < 0)
        return 0;
    if (!registry_undo_told(&lo->registry, (size_t)index, &owner_limits, report))
        return 1;
    registry_drop(&lo->registry, id);
    return 0;
}

int leftovers_undo_all(struct leftovers *lo, struct str *report)
{
    return registry_undo_all(&lo->registry, &owner_limits, report);
}

// Killed while the lifeline is still open, the guard cannot take this end for a death.
static void end(struct leftovers *lo)
{
    (void)proc_stop(lo->guard, lo->guard_ticks, SIGKILL, 5 * NS_PER_S);
    close(lo->lifeline_fd);
    registry_close(&lo->registry);
    free(lo);
}

void leftovers_close(struct leftovers *lo, struct str *report)
{
    if (!lo)
        return;
    (void)leftovers_undo_all(lo, report);
    if (lo->registry.n_items > 0 && report)
        str_addf(report, "the next prony command tries again (listed in %s)\n", lo->registry.path);
    end(lo);
}

int leftovers_keep(struct leftovers *lo, const char *name, char *const *words, struct err *err)
{
    struct leftover note = {.kind = LEFTOVER_NOTE};

    for (size_t i = 0; words[i]; i++) {
        assert(i < LEFTOVERS_KEPT_WORDS);
        add_word(&note, words[i]);
    }
    int id = registry_add(&lo->registry, &note, err);
    if (id < 0)
        return -1;
    if (registry_move_to_kept(&lo->registry, name, err) < 0) {
        registry_drop(&lo->registry, id);
        return -1;
    }
    end(lo);
    return 0;
}
