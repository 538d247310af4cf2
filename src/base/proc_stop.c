// Naming and ending processes (declared in base/proc.h). A pid alone is never trusted: it is given
// out again; with the start time it names one process for good.
#include "base/proc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/proc_internal.h"

struct stat_line {
    char state;
    pid_t parent;
    uint64_t start_ticks;
};

void proc_pause(int64_t *pause_ns, int64_t until_ns)
{
    int64_t now_ns = clock_now_ns(&clock_system);

    if (*pause_ns == 0)
        *pause_ns = 200 * NS_PER_US;
    int64_t wake_ns = now_ns + *pause_ns;
    clock_sleep_until_ns(&clock_system, wake_ns < until_ns ? wake_ns : until_ns);
    if (*pause_ns < 20 * NS_PER_MS)
        *pause_ns += *pause_ns / 2;
}

// Reads fields 3, 4 and 22 of /proc/PID/stat. Field 2, the name, may hold blanks and parentheses,
// so counting starts after the last ')'.
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
    line->parent = (pid_t)strtol(p + 3, NULL, 10);
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
        proc_pause(&pause_ns, until_ns);
    }
}

// ---- a process and what it started

struct member {
    pid_t pid;
    uint64_t start_ticks;
};

struct family {
    struct member *members;
    size_t n_members;
    size_t cap_members;
};

static bool family_has(const struct family *family, pid_t pid)
{
    for (size_t i = 0; i < family->n_members; i++)
        if (family->members[i].pid == pid)
            return true;
    return false;
}

// One look at all processes; stops and adds the children of members. True when there were new ones.
static bool family_grow(struct family *family)
{
    bool grew = false;
    DIR *dir = opendir("/proc");

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        struct stat_line line;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || family_has(family, pid) || stat_read(pid, &line) < 0 ||
            !family_has(family, line.parent) || line.state == 'Z')
            continue;
        (void)proc_signal(pid, line.start_ticks, SIGSTOP);
        *ARR_PUSH(family->members, family->n_members, family->cap_members) =
            (struct member){pid, line.start_ticks};
        grew = true;
    }
    if (dir)
        closedir(dir);
    return grew;
}

int proc_kill_family(pid_t pid, uint64_t start_ticks)
{
    struct family family = {0};
    int rc = 0;

    if (pid <= 0 || start_ticks == 0 || wait_gone(pid, start_ticks, 0))
        return 0;
    int r = proc_signal(pid, start_ticks, SIGSTOP);
    if (r < 0)
        return r == -ESRCH ? 0 : r;
    *ARR_PUSH(family.members, family.n_members, family.cap_members) =
        (struct member){pid, start_ticks};
    while (family_grow(&family))
        ;
    // If it leads a group of its own, as our children do, those go too whose parent ended before.
    if (getpgid(pid) == pid && proc_is_alive(pid, start_ticks))
        kill(-pid, SIGKILL);
    for (size_t i = family.n_members; i-- > 0;) {
        r = proc_signal(family.members[i].pid, family.members[i].start_ticks, SIGKILL);
        if (r < 0 && r != -ESRCH && rc == 0)
            rc = r;
    }
    for (size_t i = 0; i < family.n_members && rc == 0; i++)
        if (!wait_gone(family.members[i].pid, family.members[i].start_ticks, PROC_KILL_WAIT_NS))
            rc = -ETIMEDOUT;
    free(family.members);
    return rc;
}

int proc_stop(pid_t pid, uint64_t start_ticks, int signal_number, int64_t grace_ns)
{
    assert(grace_ns >= 0);
    if (pid <= 0 || start_ticks == 0)
        return 0;
    if (wait_gone(pid, start_ticks, 0))
        return 0;
    if (signal_number != SIGKILL) {
        int r = proc_signal(pid, start_ticks, signal_number ? signal_number : SIGTERM);
        if (r == 0 && wait_gone(pid, start_ticks, grace_ns))
            return 0;
        if (r < 0 && r != -ESRCH)
            return r;
    }
    return proc_kill_family(pid, start_ticks);
}
