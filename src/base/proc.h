// Child processes. Arguments are vectors, never a shell line. A child gets its own process group,
// an empty stdin, no descriptors but the standard ones, and dies with prony unless told otherwise.
// Reading its output never blocks past the deadline: then the whole group is killed.
//
// Linux ends a child that dies with its parent when the *thread* that started it ends: start such
// children from a thread that lives on.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct proc_result {
    int status;        // exit status; 128 + signal when killed; 124 when the deadline passed
    struct str out;    // stdout, at most PROC_OUTPUT_MAX bytes
    struct str errors; // stderr, likewise
};
#define PROC_OUTPUT_MAX (1 << 20)

// Runs argv[0] (searched in PATH) to its end. 0 when it ran, whatever its status; negative when it
// could not be started (err names the program; ERR_ABSENT when it is not installed). deadline_ns:
// time allowed from now; 0 means 60 s. Descendants that outlive argv[0] are not waited for. The
// caller releases the result either way.
int proc_run(char *const *argv, int64_t deadline_ns, struct proc_result *ret, struct err *err);
// The same with a differing child, as of proc_start_as.
struct proc_as;
int proc_run_as(char *const *argv, int64_t deadline_ns, const struct proc_as *as,
                struct proc_result *ret, struct err *err);
void proc_result_release(struct proc_result *result);

// Starts a long-lived child with stdout and stderr appended to log_path (NULL: /dev/null), made
// with mode 0600. die_with_parent: SIGKILL when prony dies (PR_SET_PDEATHSIG); otherwise it gets a
// session of its own. Returns the pid, or -1 with err.
pid_t proc_start(char *const *argv, const char *log_path, bool die_with_parent, struct err *err);

// How a child differs from one of proc_start. Zeroed: in nothing.
struct proc_as {
    bool changes_user; // to uid and gid, without other groups; only root may
    uid_t uid;
    gid_t gid;
    const char *dir;  // working directory; NULL: prony's
    char *const *env; // its whole environment, NAME=VALUE, ends with NULL; NULL: prony's
    int log_fd;       // an open file of the caller's instead of log_path; 0: none
    // Called when the pid is known and before the program begins: what must be written down first
    // (leftovers_add_process). If it fails, or prony is killed meanwhile, the program never begins.
    int (*enter)(void *arg, pid_t pid, struct err *err);
    void *arg;
    // proc_run_as: looked at several times a second; not 0: the group is killed. NULL: nobody asks.
    const volatile sig_atomic_t *stop;
    void (*look)(void *arg); // proc_run_as: called with arg several times a second; NULL: not
};
pid_t proc_start_as(char *const *argv, const char *log_path, bool die_with_parent,
                    const struct proc_as *as, struct err *err);

// The start time of a process in clock ticks since boot (/proc/PID/stat field 22), which with the
// pid names a process for good; 0 when there is no such process. A zombie still has its time.
uint64_t proc_start_ticks(pid_t pid);

// Whether that process still runs. A zombie does not: all that is left of it is its status.
bool proc_is_alive(pid_t pid, uint64_t start_ticks);

// Sends the signal to the process only if it is still the one that started at start_ticks.
// Returns 0, or negative errno (-ESRCH: gone).
int proc_signal(pid_t pid, uint64_t start_ticks, int signal_number);

// SIGTERM (signal_number 0) or the given signal, wait, then after grace_ns proc_kill_family; reaps
// it if it is our child. SIGKILL as the signal goes there at once. Never touches another process
// that got the same pid. Returns 0 when it is gone, else negative errno (-EPERM; -ETIMEDOUT:
// survives SIGKILL).
int proc_stop(pid_t pid, uint64_t start_ticks, int signal_number, int64_t grace_ns);

// SIGKILL to a process, its whole group if it leads one, and all its descendants, which are stopped
// first so that none of them starts another or tidies up. Waits until all are gone; results as of
// proc_stop.
int proc_kill_family(pid_t pid, uint64_t start_ticks);

// Sees to it that this process may have so many files open, as far as it may raise its own limit.
// Returns the limit that holds then.
int64_t proc_allow_files(int64_t wanted);

// Where this program lies, for a command that it shall run: also when another one was put there
// meanwhile, which then does the work. The caller frees it.
char *proc_own_program(void);
