// Running a plan: each step is listed with what undoes it, then run; the first that fails ends it,
// and all is undone.
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "volume/mount_reason.h"
#include "volume/plan.h"
#include "volume/progress.h"
#include "volume/volume.h"

#define READY_PAUSE_NS   (20 * NS_PER_MS)
#define LOCK_PATIENCE_NS (5 * NS_PER_S)

// What a word stands for. The caller frees it.
static char *resolve_word(const struct plan_of_volume *plan, const char *word)
{
    size_t step;
    const char *dollar = plan_variable(plan, word, &step);

    if (!dollar || !plan->values[step])
        return mem_strdup(word);
    return mem_printf("%.*s%s", (int)(dollar - word), word, plan->values[step]);
}

// The words of a step, where they stand for what an earlier one printed. Freed by free_words.
static char **resolve(const struct plan_of_volume *plan, char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    char **real = mem_calloc(n + 1, sizeof(*real));
    for (size_t i = 0; i < n; i++)
        real[i] = resolve_word(plan, words[i]);
    return real;
}

static void free_words(char **words)
{
    for (size_t i = 0; words[i]; i++)
        free(words[i]);
    free(words);
}

// 0 when nothing needs to be listed, the id, or -1.
static int list(const struct plan_of_volume *plan, const struct plan_step *step,
                struct leftovers *leftovers, struct err *err)
{
    char **words;
    int id;

    switch (step->undo) {
    case PLAN_FILE:
        return leftovers_add_file(leftovers, step->undo_words[0], err);
    case PLAN_TREE:
        return leftovers_add_tree(leftovers, step->undo_words[0], err);
    case PLAN_DIR:
        return leftovers_add_dir(leftovers, step->undo_words[0], err);
    case PLAN_UNMOUNT:
        return leftovers_add_mount(leftovers, step->undo_words[0], err);
    case PLAN_DETACH:
        return leftovers_add_loop(leftovers, step->undo_words[0], err);
    case PLAN_COMMAND:
        words = resolve(plan, step->undo_words);
        id = leftovers_add_command(leftovers, words, err);
        free_words(words);
        return id;
    case PLAN_COMMAND_IF:
        words = resolve(plan, step->undo_words);
        id = leftovers_add_command_if(leftovers, words[0], words + 1, err);
        free_words(words);
        return id;
    case PLAN_PROCESS: // listed when it has its pid
    case PLAN_NOTHING:
        break;
    }
    return 0;
}

// What a command said, on one line. The reason stands before the usage that some print after it.
static void one_line(struct str *text)
{
    const size_t most = 300;

    while (text->len > 0 && isspace((unsigned char)text->buf[text->len - 1]))
        text->buf[--text->len] = '\0';
    if (text->len > most) {
        text->len = most;
        text->buf[most] = '\0';
        str_add(text, " ...");
    }
    for (char *p = text->buf; *p; p++)
        if (*p == '\n')
            *p = ' ';
}

static int fail(const struct plan_of_volume *plan, size_t index, char *const *argv,
                struct proc_result *result, struct err *err)
{
    struct str command = STR_INIT, why = STR_INIT;

    plan_print_step(plan, index, &command);
    if (result->status == 124)
        str_add(&why, "it has not ended in time");
    else {
        one_line(&result->errors);
        one_line(&result->out);
        str_add(&why, result->errors.len ? result->errors.buf : result->out.buf);
        if (!why.len)
            str_addf(&why, "it ended with status %d", result->status);
        if (strcmp(argv[0], "mount") == 0)
            mount_reason(argv, &why);
    }
    err_set(err, ERR_FAILED, "%s: %s", command.buf, why.buf);
    str_release(&command);
    str_release(&why);
    return -1;
}

static int64_t deadline_of(const struct plan_step *step)
{
    if (step->deadline_ns)
        return step->deadline_ns;
    return step->is_long ? PLAN_LONG_NS : PLAN_DEADLINE_NS;
}

struct listed_child {
    struct leftovers *leftovers;
    int signal_number; // SIGKILL takes all descendants along
    int id;
    struct progress *progress; // NULL: none
};

static int list_child(void *arg, pid_t pid, struct err *err)
{
    struct listed_child *child = arg;

    child->id = leftovers_add_process_signal(child->leftovers, pid, child->signal_number, err);
    return child->id < 0 ? -1 : 0;
}

static void look_at_child(void *arg)
{
    struct listed_child *child = arg;

    if (child->progress)
        progress_tell(child->progress);
}

// While it runs it is the last thing listed. If prony is killed, its end is so waited for before
// what it makes is looked for: one that was in the kernel (mount) is not gone at once.
static int run_command(struct plan_of_volume *plan, size_t index, char *const *argv,
                       const struct volume_wish *wish, struct err *err)
{
    struct leftovers *leftovers = wish->leftovers;
    const struct plan_step *step = &plan->steps[index];
    struct listed_child child = {leftovers, step->tidies ? SIGTERM : SIGKILL, 0, NULL};
    struct proc_as as = {.enter = list_child, .arg = &child, .look = look_at_child};
    struct proc_result result;

    if (step->is_long)
        as.stop = wish->stop;
    if (step->moves && wish->progress) {
        char *device = resolve_word(plan, step->moves);
        child.progress = progress_begin(device, wish);
        free(device);
    }
    int rc = proc_run_as(argv, deadline_of(step), &as, &result, err);
    free(child.progress);

    // One that is stuck in the kernel behind its deadline stays listed.
    if (child.id > 0 && !(rc == 0 && result.status == 124))
        leftovers_drop(leftovers, child.id);
    if (rc == 0 && result.status != 0 && as.stop && *as.stop)
        rc = err_set(err, ERR_FAILED, "interrupted");
    else if (rc == 0 && result.status != 0)
        rc = fail(plan, index, argv, &result, err);
    if (rc == 0 && step->variable) {
        one_line(&result.out);
        plan->values[index] = str_detach(&result.out);
    }
    proc_result_release(&result);
    return rc;
}

static int run_process(struct plan_of_volume *plan, size_t index, char *const *argv,
                       struct leftovers *leftovers, struct err *err)
{
    const struct plan_step *step = &plan->steps[index];
    int64_t until_ns = clock_now_ns(&clock_system) + deadline_of(step);
    pid_t pid = proc_start(argv, NULL, false, err);

    if (pid < 0)
        return -1;
    uint64_t ticks = proc_start_ticks(pid);
    int id = leftovers_add_process(leftovers, pid, err);
    if (id < 0) {
        (void)proc_stop(pid, ticks, 0, NS_PER_S);
        return -1;
    }
    plan->leftovers[index] = id;
    while (step->ready_path && access(step->ready_path, F_OK) < 0) {
        if (!proc_is_alive(pid, ticks))
            return err_set(err, ERR_FAILED, "%s ended before it was ready", argv[0]);
        if (clock_now_ns(&clock_system) > until_ns)
            return err_set(err, ERR_FAILED, "%s was not ready in time", argv[0]);
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + READY_PAUSE_NS);
    }
    return 0;
}

static int run_step(struct plan_of_volume *plan, size_t index, const struct volume_wish *wish,
                    struct err *err)
{
    const struct plan_step *step = &plan->steps[index];

    if (wish->stop && *wish->stop)
        return err_set(err, ERR_FAILED, "interrupted");
    if (wish->say) {
        struct str line = STR_INIT;
        plan_print_step(plan, index, &line);
        wish->say(wish->arg, line.buf, step->destroys);
        str_release(&line);
    }
    int id = list(plan, step, wish->leftovers, err);
    if (id < 0)
        return -1;
    plan->leftovers[index] = id;
    char **argv = resolve(plan, step->argv);
    int rc = step->started ? run_process(plan, index, argv, wish->leftovers, err)
                           : run_command(plan, index, argv, wish, err);
    free_words(argv);
    if (rc < 0 && step->exclusive) {
        leftovers_drop(wish->leftovers, id);
        plan->leftovers[index] = 0;
    }
    return rc;
}

// udev holds a lock on a block device for as long as it looks at it.
static int lock_patiently(int fd)
{
    int64_t until_ns = clock_now_ns(&clock_system) + LOCK_PATIENCE_NS;
    struct stat st;
    bool is_device = fstat(fd, &st) == 0 && S_ISBLK(st.st_mode);
    int rc;

    while ((rc = flock(fd, LOCK_EX | LOCK_NB)) < 0 && errno == EWOULDBLOCK && is_device &&
           clock_now_ns(&clock_system) < until_ns)
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + READY_PAUSE_NS);
    return rc;
}

// Returns the open and locked file, or -1.
static int lock_one(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
    if (lock_patiently(fd) == 0)
        return fd;
    int error = errno;
    close(fd);
    return error == EWOULDBLOCK
               ? err_set(err, ERR_USAGE,
                         "%s is in use by another prony: wait for its end, or name another place",
                         path)
               : err_set(err, ERR_FAILED, "%s cannot be locked: %s", path, strerror(error));
}

int plan_lock(struct plan_of_volume *plan, struct err *err)
{
    size_t n = 0;

    assert(plan->lock_fd < 0 && !plan->device_fds);
    if (plan->lock && (plan->lock_fd = lock_one(plan->lock, err)) < 0)
        return -1;
    while (plan->devices && plan->devices[n])
        n++;
    if (n == 0)
        return 0;
    plan->device_fds = mem_calloc(n, sizeof(*plan->device_fds));
    for (size_t i = 0; i < n; i++)
        plan->device_fds[i] = -1;
    for (size_t i = 0; i < n; i++) {
        plan->device_fds[i] = lock_one(plan->devices[i], err);
        if (plan->device_fds[i] < 0) {
            plan_unlock(plan);
            return -1;
        }
    }
    return 0;
}

void plan_unlock(struct plan_of_volume *plan)
{
    if (plan->lock_fd >= 0)
        close(plan->lock_fd);
    plan->lock_fd = -1;
    for (size_t i = 0; plan->device_fds && plan->devices[i]; i++)
        if (plan->device_fds[i] >= 0)
            close(plan->device_fds[i]);
    free(plan->device_fds);
    plan->device_fds = NULL;
}

int plan_run(struct plan_of_volume *plan, const struct volume_wish *wish, struct err *err)
{
    int rc = 0;

    assert(wish->leftovers || plan->n_steps == 0);
    assert(!plan->leftovers);
    plan->values = mem_calloc(plan->n_steps + 1, sizeof(*plan->values));
    plan->leftovers = mem_calloc(plan->n_steps + 1, sizeof(*plan->leftovers));
    for (size_t i = 0; rc == 0 && i < plan->n_steps; i++)
        rc = run_step(plan, i, wish, err);
    return rc;
}

int plan_undo_all(struct plan_of_volume *plan, struct leftovers *leftovers, struct str *report)
{
    return plan_undo_from(plan, 0, leftovers, report);
}

int plan_undo_from(struct plan_of_volume *plan, size_t first, struct leftovers *leftovers,
                   struct str *report)
{
    int failures = 0;

    // An open directory would keep its file system mounted. Devices are ours to the end.
    if (plan->lock_fd >= 0)
        close(plan->lock_fd);
    plan->lock_fd = -1;
    for (size_t i = plan->n_steps; plan->leftovers && i-- > first;) {
        // Each stands on the ones before it.
        if (plan->leftovers[i] && failures == 0)
            failures += leftovers_undo(leftovers, plan->leftovers[i], report);
        plan->leftovers[i] = 0;
    }
    plan_unlock(plan);
    return failures;
}
