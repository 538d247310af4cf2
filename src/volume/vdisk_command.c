// The side of whoever commands.
#include "volume/vdisk_control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define DEADLINE_STANDARD_NS (10 * NS_PER_S)

int vdisk_address(const char *dir, struct sockaddr_un *ret, struct err *err)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, ERR_USAGE, "no virtual disks are served in %s: %s", dir,
                       strerror(errno));
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    // An address has room for 107 bytes, a path for 4095.
    snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/socket", fd);
    return fd;
}

static int no_daemon(const char *dir, int error, struct err *err)
{
    if (error == ENOENT || error == ECONNREFUSED)
        return err_set(err, ERR_USAGE, "no virtual disks are served in %s", dir);
    return err_set(err, ERR_FAILED, "cannot reach the daemon of %s: %s", dir, strerror(error));
}

static void set_deadline(int fd, int64_t ns)
{
    struct timeval time = {.tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / NS_PER_US};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

// The answer begins with "ok", "failed" or "usage", then a newline and the rest.
static int read_answer(const char *text, struct str *answer, struct err *err)
{
    const char *rest = strchr(text, '\n');

    rest = rest ? rest + 1 : "";
    if (strncmp(text, "ok\n", 3) == 0) {
        if (answer)
            str_add(answer, rest);
        return 0;
    }
    return err_set(err, strncmp(text, "usage\n", 6) == 0 ? ERR_USAGE : ERR_FAILED, "%s", rest);
}

int vdisk_command(const char *dir, const char *command, int64_t deadline_ns, struct str *answer,
                  int *ret_pid, struct err *err)
{
    struct sockaddr_un address;
    struct ucred peer = {0};
    socklen_t peer_len = sizeof(peer);
    char *text = mem_calloc(VDISK_ANSWER_MAX + 1, 1);
    int status = -1;
    int fd = -1, dir_fd = vdisk_address(dir, &address, err);

    if (dir_fd < 0)
        goto out;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        err_set(err, ERR_FAILED, "cannot make a socket: %s", strerror(errno));
        goto out;
    }
    set_deadline(fd, deadline_ns ? deadline_ns : DEADLINE_STANDARD_NS);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        no_daemon(dir, errno, err);
        goto out;
    }
    if (ret_pid && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0)
        *ret_pid = peer.pid;
    ssize_t n = send(fd, command, strlen(command), MSG_NOSIGNAL);
    if (n >= 0)
        n = recv(fd, text, VDISK_ANSWER_MAX, 0);
    if (n > 0) {
        status = read_answer(text, answer, err);
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        err_set(err, ERR_FAILED,
                "the daemon of %s does not answer; prony vdisk stop --abort %s ends it", dir, dir);
    } else {
        err_set(err, ERR_FAILED, "the daemon of %s has ended", dir);
    }
out:
    if (fd >= 0)
        close(fd);
    if (dir_fd >= 0)
        close(dir_fd);
    free(text);
    return status;
}
