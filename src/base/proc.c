#include "base/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc_internal.h"

enum {
    STATUS_DEADLINE = 124, // as timeout(1)
    STATUS_SIGNAL = 128,   // as the shell
};

#define DEADLINE_STANDARD_NS (60 * NS_PER_S)
#define POLL_SLICE_NS        (50 * NS_PER_MS) // how late the end of a child may be noticed

// What a child is given. The fields are read after fork, so everything is prepared before.
struct launch {
    char *const *argv;
    int out_fd;
    int errors_fd;
    bool die_with_parent;
    struct proc_as as;
};

// Waits for the parent's word that the child is written down; its death is a refusal.
static void child_wait_for_entry(int hold[2])
{
    char byte;
    ssize_t n;

    if (hold[0] < 0)
        return;
    close(hold[1]);
    do
        n = read(hold[0], &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(127);
}

// By system call: the C library's functions would look for other threads.
static int child_change_user(const struct proc_as *as)
{
    if (!as->changes_user)
        return 0;
    return syscall(SYS_setgroups, 0, NULL) < 0 ||
                   syscall(SYS_setresgid, as->gid, as->gid, as->gid) < 0 ||
                   syscall(SYS_setresuid, as->uid, as->uid, as->uid) < 0
               ? -1
               : 0;
}

// Only async-signal-safe calls: other threads of the parent may have held any lock.
static _Noreturn void child_exec(const struct launch *launch, pid_t parent, int report_fd,
                                 int hold[2])
{
    sigset_t none;
    int error = 0;

    child_wait_for_entry(hold);
    if (child_change_user(&launch->as) < 0) // takes away the signal at the parent's death: first
        goto failed;
    if (launch->die_with_parent) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) // the parent died before prctl took effect
            _exit(STATUS_SIGNAL + SIGKILL);
    } else {
        setsid(); // a group of its own too, and no terminal that could hang up on it
    }
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL); // fails for those that cannot be ignored
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    if (launch->as.dir && chdir(launch->as.dir) < 0)
        goto failed;
    if (launch->as.env)
        environ = (char **)launch->as.env;
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(launch->out_fd, STDOUT_FILENO) < 0 ||
        dup2(launch->errors_fd, STDERR_FILENO) < 0)
        goto failed;
    // Libraries open descriptors without O_CLOEXEC; no child has a use for them.
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execvp(launch->argv[0], launch->argv);
failed:
    error = errno;
    if (write(report_fd, &error, sizeof(error)) != (ssize_t)sizeof(error))
        _exit(126);
    _exit(127);
}

// The standard descriptors of the parent may be closed; then pipe() hands out 0, 1 or 2, which the
// child's dup2 would overwrite. Takes over fd; -1 on failure.
static int fd_above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return moved;
}

static int pipe_open(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    ends[0] = fd_above_standard(ends[0]);
    ends[1] = fd_above_standard(ends[1]);
    return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

static void pipe_close(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    ends[0] = ends[1] = -1;
}

// The child is written down by its starter, then may begin. On failure it ends without.
static int launch_enter(const struct launch *launch, pid_t pid, int hold[2], struct err *err)
{
    int rc = 0;

    if (hold[0] < 0)
        return 0;
    close(hold[0]);
    hold[0] = -1;
    if (launch->as.enter(launch->as.arg, pid, err) < 0)
        rc = -1;
    else if (write(hold[1], "", 1) != 1) // a broken pipe: it was killed
        rc = err_set(err, ERR_FAILED, "%s was killed before it began", launch->argv[0]);
    close(hold[1]);
    hold[1] = -1;
    return rc;
}

// Waits for the word from the child that the program could not be started; none: it runs.
static int launch_report(const struct launch *launch, int report_fd, struct err *err)
{
    const char *name = launch->argv[0];
    int error = 0;
    ssize_t n;

    do
        n = read(report_fd, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof(error))
        return err_set(err, ERR_FAILED, "cannot start %s", name);
    if (error == ENOENT && strchr(name, '/'))
        return err_set(err, ERR_ABSENT, "there is no program %s", name);
    if (error == ENOENT)
        return err_set(err, ERR_ABSENT, "the program %s is not installed (not found in PATH)",
                       name);
    return err_set(err, ERR_FAILED, "cannot start %s: %s", name, strerror(error));
}

// Returns the pid once the program runs; on failure no child is left.
static pid_t launch_program(const struct launch *launch, struct err *err)
{
    const char *name = launch->argv[0];
    int report[2] = {-1, -1};
    int hold[2] = {-1, -1};
    pid_t parent = getpid(), pid = -1;

    if (pipe_open(report) == 0 && (!launch->as.enter || pipe_open(hold) == 0))
        pid = fork();
    if (pid == 0)
        child_exec(launch, parent, report[1], hold);
    if (pid < 0) {
        err_set(err, ERR_FAILED, "cannot start %s: %s", name, strerror(errno));
        pipe_close(report);
        pipe_close(hold);
        return -1;
    }
    if (launch->die_with_parent)
        setpgid(pid, pid); // also here, so that the group exists when we return
    close(report[1]);
    report[1] = -1;
    bool runs =
        launch_enter(launch, pid, hold, err) == 0 && launch_report(launch, report[0], err) == 0;
    pipe_close(report);
    if (runs)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -1;
}

static int exit_status(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return STATUS_SIGNAL + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}

// Takes what is there, at most one pipe's worth per call. Returns false at the end of the stream.
static bool drain(int fd, struct str *out)
{
    char buf[16384];

    for (int i = 0; i < 8; i++) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n == 0)
            return false;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        size_t room = out->len < PROC_OUTPUT_MAX ? PROC_OUTPUT_MAX - out->len : 0;
        str_addn(out, buf, (size_t)n < room ? (size_t)n : room); // the rest is read and dropped
    }
    return true;
}

// Reads both streams until the child has ended. Returns its status; 124 when the deadline passed or
// it was told to stop.
// A descendant that keeps a stream open after the child's end is not waited for.
static int collect(pid_t pid, int out_fd, int errors_fd, int64_t until_ns, const struct proc_as *as,
                   struct proc_result *result)
{
    struct pollfd fds[2] = {{out_fd, POLLIN, 0}, {errors_fd, POLLIN, 0}};
    struct str *texts[2] = {&result->out, &result->errors};
    int64_t pause_ns = 0;
    int wait_status = 0;
    bool late = false;

    for (;;) {
        pid_t ended = waitpid(pid, &wait_status, WNOHANG);
        for (int i = 0; i < 2; i++)
            if (fds[i].fd >= 0 && !drain(fds[i].fd, texts[i]))
                fds[i].fd = -1; // poll skips it
        if (ended == pid)
            return late ? STATUS_DEADLINE : exit_status(wait_status);
        if (ended < 0 && errno != EINTR)
            return STATUS_SIGNAL; // somebody else reaped it: its status is lost

        int64_t left_ns = until_ns - clock_now_ns(&clock_system);
        if (as->look)
            as->look(as->arg);
        if (!late && as->stop && *as->stop)
            left_ns = 0;
        if (left_ns <= 0 && late)
            return STATUS_DEADLINE; // stuck in the kernel: not worth waiting for
        if (left_ns <= 0) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL); // it may have left its group
            late = true;
            until_ns = clock_now_ns(&clock_system) + PROC_KILL_WAIT_NS;
        } else if (fds[0].fd < 0 && fds[1].fd < 0) {
            proc_pause(&pause_ns, until_ns);
        } else {
            int64_t slice_ns = left_ns < POLL_SLICE_NS ? left_ns : POLL_SLICE_NS;
            (void)poll(fds, 2, (int)(slice_ns / NS_PER_MS) + 1);
        }
    }
}

int proc_run(char *const *argv, int64_t deadline_ns, struct proc_result *ret, struct err *err)
{
    return proc_run_as(argv, deadline_ns, &(struct proc_as){0}, ret, err);
}

int proc_run_as(char *const *argv, int64_t deadline_ns, const struct proc_as *as,
                struct proc_result *ret, struct err *err)
{
    int out[2] = {-1, -1};
    int errors[2] = {-1, -1};
    int status = -1;

    assert(argv && argv[0] && deadline_ns >= 0);
    *ret = (struct proc_result){.out = STR_INIT, .errors = STR_INIT};
    if (pipe_open(out) < 0 || pipe_open(errors) < 0) {
        err_set(err, ERR_FAILED, "cannot start %s: %s", argv[0], strerror(errno));
        goto done;
    }
    struct launch launch = {argv, out[1], errors[1], true, *as};
    int64_t until_ns =
        clock_now_ns(&clock_system) + (deadline_ns ? deadline_ns : DEADLINE_STANDARD_NS);
    pid_t pid = launch_program(&launch, err);
    if (pid < 0)
        goto done;
    close(out[1]);
    close(errors[1]);
    out[1] = errors[1] = -1;
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    ret->status = collect(pid, out[0], errors[0], until_ns, as, ret);
    status = 0;
done:
    pipe_close(out);
    pipe_close(errors);
    return status;
}

void proc_result_release(struct proc_result *result)
{
    if (!result)
        return;
    str_release(&result->out);
    str_release(&result->errors);
}

pid_t proc_start(char *const *argv, const char *log_path, bool die_with_parent, struct err *err)
{
    return proc_start_as(argv, log_path, die_with_parent, &(struct proc_as){0}, err);
}

// The directory may be another user's, who may have put a link or a pipe there.
static int open_log(const char *path)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return fd;
}

pid_t proc_start_as(char *const *argv, const char *log_path, bool die_with_parent,
                    const struct proc_as *as, struct err *err)
{
    const char *path = log_path ? log_path : "/dev/null";

    assert(argv && argv[0] && as->log_fd >= 0 && !(log_path && as->log_fd));
    int fd = fd_above_standard(as->log_fd ? fcntl(as->log_fd, F_DUPFD_CLOEXEC, 3)
                               : log_path ? open_log(path)
                                          : open(path, O_WRONLY | O_CLOEXEC));
    if (fd < 0)
        return err_set(err, ERR_FAILED, "cannot write the log %s of %s: %s", path, argv[0],
                       strerror(errno));
    struct launch launch = {argv, fd, fd, die_with_parent, *as};
    pid_t pid = launch_program(&launch, err);
    close(fd);
    return pid;
}

int64_t proc_allow_files(int64_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return INT64_MAX; // who cannot be asked will refuse what is too much
    if (limit.rlim_cur < (rlim_t)wanted && limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = limit;
        raised.rlim_cur = (rlim_t)wanted < limit.rlim_max ? (rlim_t)wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)limit.rlim_cur;
}

char *proc_own_program(void)
{
    static const char gone[] = " (deleted)";
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
    size_t len = n > 0 && n < (ssize_t)sizeof(path) ? (size_t)n : 0;

    if (len > strlen(gone) && memcmp(path + len - strlen(gone), gone, strlen(gone)) == 0)
        len -= strlen(gone);
    return len ? mem_strndup(path, len) : mem_strdup("prony");
}
