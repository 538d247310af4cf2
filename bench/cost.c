// cost FILE COMMAND [ARGUMENT...]: runs a command to its end and writes what it cost into FILE:
//
//     {"status": 0, "wall_s": 5.012, "user_s": 1.730, "sys_s": 2.115, "max_rss_kib": 11180}
//
// A small process of its own because of the peak memory: Linux lets a program inherit the peak of
// whoever forked it, and bench/run is larger than what it measures.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds(const struct timeval *tv)
{
    return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

static volatile pid_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

// The status that a shell would show.
static int shell_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const int passed[] = {SIGINT, SIGTERM, SIGHUP};
    struct rusage usage;
    pid_t pid;
    int status;

    if (argc < 3) {
        fprintf(stderr, "usage: cost FILE COMMAND [ARGUMENT...]\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "we");
    if (!out) {
        fprintf(stderr, "cost: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        signal(passed[i], pass_on);
    double start_s = now_s();
    int rc = posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ);
    if (rc != 0) {
        fprintf(stderr, "cost: %s: %s\n", argv[2], strerror(rc));
        return 127;
    }
    child = pid;
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            fprintf(stderr, "cost: wait4: %s\n", strerror(errno));
            return 1;
        }
    }
    fprintf(out,
            "{\"status\": %d, \"wall_s\": %.6f, \"user_s\": %.6f, \"sys_s\": %.6f, "
            "\"max_rss_kib\": %ld}\n",
            shell_status(status), now_s() - start_s, seconds(&usage.ru_utime),
            seconds(&usage.ru_stime), usage.ru_maxrss);
    if (fclose(out) != 0) {
        fprintf(stderr, "cost: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    return shell_status(status);
}
