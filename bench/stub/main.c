#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/opt.h"
#include "stub.h"

struct options {
    char *postgres, *mysql;
    int64_t scale, seed;
    struct delay_law delay;
    struct error_told error;
    double drop;
    struct stall_told stall;
    bool tear;
    char *record, *counters;
};

#define AT(member) offsetof(struct options, member)

static const struct opt_row rows[] = {
    {"postgres", 0, OPT_TEXT, AT(postgres), .arg = "PATH|PORT", .group = "Where",
     .help = "speak PostgreSQL on a UNIX socket, or on a port of 127.0.0.1"},
    {"mysql", 0, OPT_TEXT, AT(mysql), .arg = "PATH|PORT", .help = "speak MySQL there"},
    {"scale", 0, OPT_INT, AT(scale), "1", 1, 1000000, .help = "of pgbench's tables, as it tells"},
    {"delay", 0, OPT_CUSTOM, AT(delay), .parse = delay_parse, .arg = "LAW", .group = "Faults",
     .help = "of each statement: fixed:2ms, exponential:2ms, bimodal:0.01,100ms,1ms"},
    {"error", 0, OPT_CUSTOM, AT(error), .parse = error_parse, .arg = "RATE/SQLSTATE",
     .help = "share of statements that fail"},
    {"drop", 0, OPT_DOUBLE, AT(drop), NULL, 0, 1, .arg = "RATE",
     .help = "share of statements at which the session is cut, half of them in mid-answer"},
    {"stall", 0, OPT_CUSTOM, AT(stall), .parse = stall_parse, .arg = "AT,FOR",
     .help = "stand still once, counted from the first statement"},
    {"tear", 0, OPT_FLAG, AT(tear), .help = "send each byte alone, when the last has been read"},
    {"seed", 0, OPT_INT, AT(seed), "1", 0, 1e18, .help = "of what is random"},
    {"record", 0, OPT_TEXT, AT(record), .arg = "FILE", .group = "Output",
     .help = "at the end: what was really done, as JSON"},
    {"counters", 0, OPT_TEXT, AT(counters), .arg = "FILE",
     .help = "numbers to look at meanwhile (stub.h)"},
    {NULL},
};

static const struct opt_command stub_command = {
    .name = "stub",
    .usage = "--postgres PATH|PORT --mysql PATH|PORT",
    .summary = "answer like PostgreSQL and MariaDB, without a database",
    .example = "stub --postgres /tmp/x/.s.PGSQL.5432 --delay exponential:2ms",
    .rows = rows,
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

// Signals are let through only while waiting, so that none is missed. ret: the mask for that.
static void catch_signals(sigset_t *ret)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, ret);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static int map_counters(const char *path, struct counters **ret, struct err *err)
{
    size_t size = sizeof(**ret);

    if (!path) {
        *ret = mem_calloc(1, size);
        return 0;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    close(fd);
    *ret = mapped;
    return 0;
}

static void open_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int listen_all(struct stub *stub, const struct options *o, struct err *err)
{
    const struct {
        const char *where;
        const struct protocol *protocol;
    } all[] = {{o->postgres, &protocol_postgres}, {o->mysql, &protocol_mysql}};
    int port;

    if (!o->postgres && !o->mysql)
        return err_set(err, ERR_USAGE, "give --postgres, --mysql or both");
    for (int i = 0; i < 2; i++) {
        if (!all[i].where)
            continue;
        if (stub_listen(stub, all[i].where, all[i].protocol, &port, err) < 0)
            return -1;
        if (port)
            printf("%s%s=%d", i && all[0].where ? " " : "ready: ", all[i].protocol->name, port);
        else
            printf("%s%s=%s", i && all[0].where ? " " : "ready: ", all[i].protocol->name,
                   all[i].where);
    }
    printf("\n");
    fflush(stdout);
    return 0;
}

static int write_record(const struct stub *stub, const char *path, struct err *err)
{
    if (!path)
        return 0;
    FILE *out = fopen(path, "we");
    if (!out)
        return err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    faults_write(&stub->faults, (int64_t)stub->counters->statements,
                 (int64_t)stub->counters->sessions_total, stub->reads, out);
    if (fclose(out) != 0)
        return err_set(err, ERR_FAILED, "%s: %s", path, strerror(errno));
    return 0;
}

static void remove_sockets(const struct options *o)
{
    const char *all[] = {o->postgres, o->mysql};

    for (int i = 0; i < 2; i++)
        if (all[i] && strchr(all[i], '/'))
            unlink(all[i]);
}

int main(int argc, char **argv)
{
    static struct stub stub = {.epoll = -1, .stop = &stop}; // 36 KiB of histogram
    struct options o = {0};
    struct err err = ERR_INIT;
    char *args[argc];
    sigset_t signals;
    int status = 0;

    opt_defaults(rows, &o);
    int n = opt_parse(&stub_command, argc, argv, &o, args, &err);
    if (n == -2) {
        opt_print_help(&stub_command, stdout);
        goto out;
    }
    if (n < 0)
        goto fail;
    stub.scale = o.scale;
    stub.tear = o.tear;
    stub.faults.delay = o.delay;
    stub.faults.error = o.error;
    stub.faults.drop = o.drop;
    stub.faults.stall = o.stall;
    rng_init(&stub.faults.rng, (uint64_t)o.seed, 0, RNG_DRIVER);
    catch_signals(&signals);
    open_many_files();
    prctl(PR_SET_TIMERSLACK, 1UL); // delays end when they are due, not 50 us later
    if (map_counters(o.counters, &stub.counters, &err) < 0 || stub_init(&stub, &err) < 0 ||
        listen_all(&stub, &o, &err) < 0)
        goto fail;
    stub_serve(&stub, &signals);
    remove_sockets(&o);
    if (write_record(&stub, o.record, &err) < 0)
        goto fail;
    goto out;
fail:
    fprintf(stderr, "stub: %s\n", err.text);
    status = err_exit_status(&err);
out:
    stub_release(&stub);
    if (!o.counters)
        free(stub.counters);
    opt_release(rows, &o);
    return status;
}
