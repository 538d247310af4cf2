#include "cmd/study_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"

#define LOOK_NS (50 * NS_PER_MS)

// What the child said last, without its name before it.
static void last_line(const char *path, struct str *out)
{
    static const char name[] = "prony: ";
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;

    while (file && getline(&line, &cap, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (!line[0])
            continue;
        str_clear(out);
        str_add(out, strncmp(line, name, strlen(name)) == 0 ? line + strlen(name) : line);
    }
    if (file)
        fclose(file);
    free(line);
    if (out->len == 0)
        str_add(out, "it said nothing");
}

// A signal to the study is one to its run, which ends in order; a second one gives up.
static int wait_for_child(const struct study_run *run, pid_t pid)
{
    int64_t start_ns = clock_now_ns(&clock_system);
    uint64_t ticks = proc_start_ticks(pid);
    int told = 0, status = 1 << 8; // failed, where it is not told

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (*run->stop > told) {
            told = *run->stop;
            (void)proc_signal(pid, ticks, SIGINT);
        }
        int64_t now_ns = clock_now_ns(&clock_system);
        if (run->tick)
            run->tick(run->arg, (double)(now_ns - start_ns) / NS_PER_S);
        clock_sleep_until_ns(&clock_system, now_ns + LOOK_NS);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static enum err_kind kind_of(int status)
{
    return status == 2 ? ERR_USAGE : status == 4 ? ERR_ABSENT : ERR_FAILED;
}

static char **make_argv(const struct study_run *run, const char *document)
{
    char program[PATH_MAX], **argv = NULL;
    size_t n = 0, cap = 0;
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

    program[len > 0 ? len : 0] = '\0';
    *ARR_PUSH(argv, n, cap) = mem_strdup(len > 0 ? program : "prony");
    *ARR_PUSH(argv, n, cap) = mem_strdup("run");
    *ARR_PUSH(argv, n, cap) = mem_strdup("--quiet");
    *ARR_PUSH(argv, n, cap) = mem_printf("--json=%s", document);
    for (char *const *arg = run->argv; *arg; arg++)
        *ARR_PUSH(argv, n, cap) = mem_strdup(*arg);
    *ARR_PUSH(argv, n, cap) = NULL;
    return argv;
}

int study_run_do(const struct study_run *run, json_t **ret, struct err *err)
{
    char *document = mem_printf("%s/run.json", run->dir);
    char *log = mem_printf("%s/run.log", run->dir);
    char **argv = make_argv(run, document);
    struct str words = STR_INIT;
    int rc = -1;

    (void)unlink(document);
    (void)unlink(log);
    pid_t pid = proc_start(argv, log, true, err);
    if (pid < 0)
        goto out;
    int status = wait_for_child(run, pid);
    if (status != 0) {
        last_line(log, &words);
        err_set(err, kind_of(status), "%s", words.buf);
    } else if (*run->stop) {
        err_set(err, ERR_FAILED, "interrupted");
    } else {
        json_error_t why;
        *ret = json_load_file(document, 0, &why);
        rc = *ret ? 0 : err_set(err, ERR_FAILED, "its document cannot be read: %s", why.text);
    }
out:
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
    free(document);
    free(log);
    str_release(&words);
    return rc;
}
