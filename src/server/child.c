#include "server/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/proc.h"

extern char **environ;

static void registry_lock(struct child *child)
{
    if (child->registry_lock)
        pthread_mutex_lock(child->registry_lock);
}

static void registry_unlock(struct child *child)
{
    if (child->registry_lock)
        pthread_mutex_unlock(child->registry_lock);
}

static int write_down(void *arg, pid_t pid, struct err *err)
{
    struct child *child = arg;

    child->pid = pid;
    child->start_ticks = proc_start_ticks(pid);
    registry_lock(child);
    child->id = leftovers_add_process_signal(child->leftovers, pid, child->signal_number, err);
    registry_unlock(child);
    return child->id < 0 ? -1 : 0;
}

// Without what steers clients and servers, in the C locale: messages are then in one language.
static void make_environment(const struct child *child, struct words *env)
{
    static const char *const dropped[] = {"PG",   "MYSQL", "MARIADB", "LC_",
                                          "LANG", "HOME=", "TMPDIR="};

    for (char **entry = environ; *entry; entry++) {
        bool drop = false;
        for (size_t i = 0; i < ARR_LEN(dropped) && !drop; i++)
            drop = strncmp(*entry, dropped[i], strlen(dropped[i])) == 0;
        if (!drop)
            words_add(env, *entry);
    }
    words_add(env, "LC_ALL=C");
    words_addf(env, "HOME=%s", child->dir);
    words_addf(env, "TMPDIR=%s", child->dir);
}

int child_start(struct child *child, const struct words *argv, struct err *err)
{
    const struct account *account = child->account;
    struct words env = {0};

    assert(argv->n_items > 0 && child->dir && child->signal_number > 0);
    make_environment(child, &env);
    struct proc_as as = {
        .changes_user = account && account->changes,
        .uid = account ? account->uid : 0,
        .gid = account ? account->gid : 0,
        .dir = child->dir,
        .env = env.items,
        .enter = write_down,
        .arg = child,
    };
    child->id = -1;
    pid_t pid = proc_start_as(argv->items, child->log_path, false, &as, err);
    words_release(&env);
    if (pid > 0)
        return 0;
    registry_lock(child);
    if (child->id >= 0)
        leftovers_drop(child->leftovers, child->id);
    registry_unlock(child);
    return -1;
}

static int wait_for_end(struct child *child, const volatile sig_atomic_t *stop, int *ret_status)
{
    int64_t pause_ns = NS_PER_MS;

    for (;;) {
        pid_t ended = waitpid(child->pid, ret_status, WNOHANG);
        if (ended == child->pid || (ended < 0 && errno != EINTR))
            return 0;
        if (stop && *stop > 0) {
            (void)proc_kill_family(child->pid, child->start_ticks);
            return -1;
        }
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + pause_ns);
        if (pause_ns < 20 * NS_PER_MS)
            pause_ns += pause_ns / 2;
    }
}

int child_run(struct child *child, const struct words *argv, const volatile sig_atomic_t *stop,
              bool *ret_ran, struct err *err)
{
    const char *name = strrchr(argv->items[0], '/');
    int status = 0;

    name = name ? name + 1 : argv->items[0];
    *ret_ran = false;
    if (stop && *stop > 0)
        return err_set(err, ERR_FAILED, "interrupted");
    if (child_start(child, argv, err) < 0)
        return -1;
    int rc = wait_for_end(child, stop, &status);
    leftovers_drop(child->leftovers, child->id);
    if (rc < 0)
        return err_set(err, ERR_FAILED, "interrupted");
    *ret_ran = true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFSIGNALED(status))
        return err_set(err, ERR_FAILED, "%s was killed by signal %d", name, WTERMSIG(status));
    return err_set(err, ERR_FAILED, "%s failed (status %d)", name, WEXITSTATUS(status));
}

void child_read_log(const char *path, size_t most, struct str *out)
{
    char buf[8192];
    struct stat st;
    ssize_t n;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    off_t from = fstat(fd, &st) == 0 && st.st_size > (off_t)most ? st.st_size - (off_t)most : 0;
    bool cut = from > 0;
    size_t begin = out->len;
    while ((n = pread(fd, buf, sizeof(buf), from)) > 0 && out->len - begin < most) {
        str_addn(out, buf, (size_t)n);
        from += n;
    }
    close(fd);
    const char *line = cut ? strchr(out->buf + begin, '\n') : NULL;
    if (line) {
        size_t gone = (size_t)(line + 1 - (out->buf + begin));
        memmove(out->buf + begin, line + 1, out->len - begin - gone + 1);
        out->len -= gone;
    }
}

void child_fault(const struct server_kind *kind, const char *log, struct str *out)
{
    const char *const marks[] = {kind->fault, "PANIC", "error:", "ERROR", "unrecognized"};
    const char *found = NULL;

    for (size_t i = 0; i < ARR_LEN(marks) && !found; i++)
        found = strstr(log, marks[i]);
    if (found && strncmp(found, kind->fault, strlen(kind->fault)) != 0)
        while (found > log && found[-1] != '\n')
            found--;
    for (const char *line = log; !found && *line;
         line += strcspn(line, "\n"), line += *line == '\n')
        if (!strchr(line, '\n') || line[strcspn(line, "\n") + 1] == '\0')
            found = line;
    if (found)
        str_addn(out, found, strcspn(found, "\n"));
}
