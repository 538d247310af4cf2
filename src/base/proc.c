#include "base/proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    STATUS_DEADLINE = 124, // as timeout(1)
    STATUS_SIGNAL = 128,   // as the shell
};

#define DEADLINE_STANDARD_NS (60 * NS_PER_S)
#define POLL_SLICE_NS        (50 * NS_PER_MS) // how late the end of a child may be noticed
#define KILL_WAIT_NS         (5 * NS_PER_S)   // a killed process may still sit in a system call

// What a child is given. The fields are read after fork, so everything is prepared before.
struct launch {
    char *const *argv;
    int out_fd;
    int errors_fd;
    bool die_with_parent;
};

struct stat_line {
    char state;
    uint64_t start_ticks;
};

// Grows from 0.2 to 20 ms, so that short waits end soon and long ones cost little.
static void wait_a_little(int64_t *pause_ns, int64_t until_ns)
{
    int64_t now_ns = clock_now_ns(&clock_system);

    if (*pause_ns == 0)
        *pause_ns = 200 * NS_PER_US;
    int64_t wake_ns = now_ns + *pause_ns;
    clock_sleep_until_ns(&clock_system, wake_ns < until_ns ? wake_ns : until_ns);
    if (*pause_ns < 20 * NS_PER_MS)
        *pause_ns += *pause_ns / 2;
}

// Only async-signal-safe calls: other threads of the parent may have held any lock.
static _Noreturn void child_exec(const struct launch *launch, pid_t parent, int report_fd)
{
    sigset_t none;
    int error = 0;

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

// Returns the pid once the program runs; on failure no child is left.
static pid_t launch_program(const struct launch *launch, struct err *err)
{
    const char *name = launch->argv[0];
    int report[2] = {-1, -1};
    int error = 0;
    ssize_t n;

    if (pipe_open(report) < 0) {
        err_set(err, ERR_FAILED, "cannot start %s: %s", name, strerror(errno));
        pipe_close(report);
        return -1;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child_exec(launch, parent, report[1]);
    if (pid < 0) {
        err_set(err, ERR_FAILED, "cannot start %s: %s", name, strerror(errno));
        pipe_close(report);
        return -1;
    }
    if (launch->die_with_parent)
        setpgid(pid, pid); // also here, so that the group exists when we return
    close(report[1]);
    report[1] = -1;
    do
        n = read(report[0], &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    pipe_close(report);
    if (n == 0)
        return pid;

    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof(error))
        return err_set(err, ERR_FAILED, "cannot start %s", name);
    if (error == ENOENT && strchr(name, '/'))
        return err_set(err, ERR_ABSENT, "there is no program %s", name);
    if (error == ENOENT)
        return err_set(err, ERR_ABSENT, "the program %s is not installed (not found in PATH)",
                       name);
    return err_set(err, ERR_FAILED, "cannot start %s: %s", name, strerror(error));
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

// Reads both streams until the child has ended. Returns its status; 124 when the deadline passed.
// A descendant that keeps a stream open after the child's end is not waited for.
static int collect(pid_t pid, int out_fd, int errors_fd, int64_t until_ns,
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
        if (left_ns <= 0 && late)
            return STATUS_DEADLINE; // stuck in the kernel: not worth waiting for
        if (left_ns <= 0) {
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL); // it may have left its group
            late = true;
            until_ns = clock_now_ns(&clock_system) + KILL_WAIT_NS;
        } else if (fds[0].fd < 0 && fds[1].fd < 0) {
            wait_a_little(&pause_ns, until_ns);
        } else {
            int64_t slice_ns = left_ns < POLL_SLICE_NS ? left_ns : POLL_SLICE_NS;
            (void)poll(fds, 2, (int)(slice_ns / NS_PER_MS) + 1);
        }
    }
}

int proc_run(char *const *argv, int64_t deadline_ns, struct proc_result *ret, struct err *err)
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
    struct launch launch = {argv, out[1], errors[1], true};
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
    ret->status = collect(pid, out[0], errors[0], until_ns, ret);
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
    const char *path = log_path ? log_path : "/dev/null";

    assert(argv && argv[0]);
    int fd = fd_above_standard(open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    if (fd < 0)
        return err_set(err, ERR_FAILED, "cannot write the log %s of %s: %s", path, argv[0],
                       strerror(errno));
    struct launch launch = {argv, fd, fd, die_with_parent};
    pid_t pid = launch_program(&launch, err);
    close(fd);
    return pid;
}

// Reads fields 3 and 22 of /proc/PID/stat. Field 2, the name, may hold blanks and parentheses, so
// counting starts after the last ')'.
static int stat_read(pid_t pid, struct stat_line *line)
{
    char path[32];
    char text[1024];

    if (pid <= 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    if (!p || p[1] != ' ')
        return -1;
    line->state = p[2];
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (!p)
        return -1;
    line->start_ticks = strtoull(p + 1, NULL, 10);
    return line->start_ticks ? 0 : -1;
}

uint64_t proc_start_ticks(pid_t pid)
{
    struct stat_line line;

    return stat_read(pid, &line) < 0 ? 0 : line.start_ticks;
}

bool proc_is_alive(pid_t pid, uint64_t start_ticks)
{
    struct stat_line line;

    if (stat_read(pid, &line) < 0)
        return false;
    return line.start_ticks == start_ticks && line.state != 'Z' && line.state != 'X';
}

int proc_signal(pid_t pid, uint64_t start_ticks, int signal_number)
{
    if (pid <= 0 || start_ticks == 0)
        return -ESRCH;
    // With the pidfd opened first, a pid that is reused after the check cannot be hit.
    int fd = pidfd_open(pid, 0);
    int error = 0;
    if (proc_start_ticks(pid) != start_ticks)
        error = ESRCH;
    else if (fd >= 0)
        error = pidfd_send_signal(fd, signal_number, NULL, 0) < 0 ? errno : 0;
    else // a container may forbid pidfds
        error = kill(pid, signal_number) < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return -error;
}

// True when the process has ended within the time; reaps it when it is our child.
static bool wait_gone(pid_t pid, uint64_t start_ticks, int64_t wait_ns)
{
    int64_t until_ns = clock_now_ns(&clock_system) + wait_ns;
    int64_t pause_ns = 0;

    for (;;) {
        if (proc_start_ticks(pid) != start_ticks)
            return true;
        bool alive = proc_is_alive(pid, start_ticks); // asked first: what is dead now can be reaped
        if (waitpid(pid, NULL, WNOHANG) == pid || !alive)
            return true;
        if (clock_now_ns(&clock_system) >= until_ns)
            return false;
        wait_a_little(&pause_ns, until_ns);
    }
}

int proc_stop(pid_t pid, uint64_t start_ticks, int signal_number, int64_t grace_ns)
{
    assert(grace_ns >= 0);
    if (pid <= 0 || start_ticks == 0)
        return 0;
    if (wait_gone(pid, start_ticks, 0))
        return 0;
    int r = proc_signal(pid, start_ticks, signal_number ? signal_number : SIGTERM);
    if (r == 0 && wait_gone(pid, start_ticks, grace_ns))
        return 0;
    if (r < 0 && r != -ESRCH)
        return r;

    // What it started itself goes with it, if it leads a group of its own as our children do.
    if (getpgid(pid) == pid && proc_is_alive(pid, start_ticks))
        kill(-pid, SIGKILL);
    r = proc_signal(pid, start_ticks, SIGKILL);
    if (r < 0 && r != -ESRCH)
        return r;
    return wait_gone(pid, start_ticks, KILL_WAIT_NS) ? 0 : -ETIMEDOUT;
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
