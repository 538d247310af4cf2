#include "volume/vdisk_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/tree.h"
#include "volume/vdisk_serving.h"

// Memory must not have to be fetched, nor written back through a disk that this process serves.
static void be_robust(struct serving *s)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    // Buffers of a megabyte come and go: not each by a system call.
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    s->memory_is_locked = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
    if (fd >= 0) {
        if (write(fd, "-1000", 5) != 5)
            fprintf(stderr, "may be ended when memory is short: %s\n", strerror(errno));
        close(fd);
    }
    if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
        fprintf(stderr, "may wait for memory that only its own disks can free: %s\n",
                strerror(errno));
}

// A disk answers when it is ready, not when the scheduler has time for it.
static bool make_prompt(pthread_t thread)
{
    struct sched_param param = {.sched_priority = 1};

    return pthread_setschedparam(thread, SCHED_FIFO, &param) == 0;
}

static int mount_fuse(struct serving *s, struct err *err)
{
    char *options;

    s->fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (s->fuse_fd < 0)
        return err_set(err, ERR_ABSENT, "cannot open /dev/fuse: %s", strerror(errno));
    options =
        mem_printf("fd=%d,rootmode=40000,user_id=%u,group_id=%u", s->fuse_fd, geteuid(), getegid());
    int status = mount("prony-vdisk", s->disks_dir, "fuse.prony-vdisk",
                       MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, options);
    free(options);
    if (status < 0)
        return err_set(err, ERR_FAILED, "cannot mount %s: %s", s->disks_dir, strerror(errno));
    int connection = vdisk_connection_of(s->disks_dir, err);
    if (connection < 0)
        return -1;
    atomic_store(&s->watch->connection, (unsigned)connection + 1);
    return 0;
}

static int open_session(struct serving *s, struct err *err)
{
    char *argv[] = {(char *)"prony-vdisk", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    char device[32];

    s->session = fuse_session_new(&args, &serving_ops, sizeof(serving_ops), s);
    fuse_opt_free_args(&args);
    if (!s->session)
        return err_set(err, ERR_FAILED, "cannot make a FUSE session");
    snprintf(device, sizeof(device), "/dev/fd/%d", s->fuse_fd);
    if (fuse_session_mount(s->session, device) < 0)
        return err_set(err, ERR_FAILED, "libfuse does not take the mounted device");
    return 0;
}

// The reader. Ends when the file system is unmounted or its connection ended.
static void serve(struct serving *s)
{
    while (!fuse_session_exited(s->session)) {
        int n = fuse_session_receive_buf(s->session, &s->buffer);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            break;
        s->buffer_is_taken = false;
        fuse_session_process_buf(s->session, &s->buffer);
        if (s->buffer_is_taken)
            memset(&s->buffer, 0, sizeof(s->buffer));
    }
}

static void beat(void *context)
{
    vdisk_watch_beat(context);
}

// What still waits has nobody to answer to, but its memory must go.
static void drain(struct serving *s)
{
    struct vdisk_waiting *first;

    while ((first = vdisk_queue_first(&s->queue))) {
        struct serving_request *r = (struct serving_request *)first;
        vdisk_queue_take_first(&s->queue);
        r->error = -EIO;
        serving_reply(r);
        free(r->memory);
        free(r);
    }
    vdisk_queue_release(&s->queue);
}

static void init(struct serving *s, const char *dir)
{
    pthread_mutexattr_t attributes;

    s->dir = mem_strdup(dir);
    s->disks_dir = mem_printf("%s/disks", dir);
    s->socket_path = mem_printf("%s/socket", dir);
    s->fuse_fd = s->control_fd = -1;
    s->guard = -1;
    pthread_mutexattr_init(&attributes);
    // The threads that are prompt must not wait for one that is not.
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&s->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    pthread_cond_init(&s->wake, NULL);
    house_init(&s->house);
}

static void release(struct serving *s)
{
    drain(s);
    house_release(&s->house);
    if (s->session)
        fuse_session_destroy(s->session);
    else if (s->fuse_fd >= 0)
        close(s->fuse_fd);
    free(s->buffer.mem);
    if (s->control_fd >= 0) {
        close(s->control_fd);
        unlink(s->socket_path);
    }
    if (s->watch)
        munmap(s->watch, sizeof(*s->watch));
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s->dir);
    free(s->disks_dir);
    free(s->socket_path);
}

// Threads run from here on.
static int run_threads(struct serving *s, struct err *err)
{
    pthread_t timer, control;
    int error = pthread_create(&timer, NULL, serving_timer_thread, s);

    if (error)
        return err_set(err, ERR_FAILED, "cannot start a thread: %s", strerror(error));
    s->is_prompt = make_prompt(timer) && make_prompt(pthread_self());
    error = pthread_create(&control, NULL, serving_control_thread, s);
    if (error == 0) {
        serve(s);
        atomic_store(&s->control_ends, true);
        pthread_join(control, NULL);
    }
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(timer, NULL);
    return error ? err_set(err, ERR_FAILED, "cannot start a thread: %s", strerror(error)) : 0;
}

int vdisk_daemon_run(const char *dir, int64_t hang_ns, struct err *err)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct serving s = {0};
    int status = -1;

    // Whoever uses the disks must not lose them to a signal meant for a group or a terminal.
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    init(&s, dir);
    if (chdir("/") < 0) {
        err_set(err, ERR_FAILED, "cannot leave the working directory: %s", strerror(errno));
        goto out;
    }
    s.watch = vdisk_watch_start(hang_ns, &s.guard, err);
    if (!s.watch)
        goto out;
    s.house.beat = beat;
    s.house.beat_context = s.watch;
    be_robust(&s);
    if (mount_fuse(&s, err) < 0 || open_session(&s, err) < 0 || serving_control_open(&s, err) < 0)
        goto out;
    status = run_threads(&s, err);
out:
    if (status < 0 && s.fuse_fd >= 0)
        (void)umount2(s.disks_dir, 0);
    release(&s);
    return status;
}
