// bare [--loop epoll|uring] [--clients N] [--time DURATION] SOCKET: the least that a client of
// PostgreSQL can do. Logs in (without a password), prepares one SELECT, and then only sends the
// same bytes that execute it and waits for the end of the answer, on each of N sessions, from one
// thread. No statistics, nothing decoded: what this costs is the floor under any load generator on
// sockets. A real server has less to do for a row that it has just read: --keys N asks for rows 1
// to N at random.
//
// Ends with one line of JSON: what the loop did and what it cost, without logging in.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"

#define SQL           "SELECT abalance FROM pgbench_accounts WHERE aid = $1"
#define KEY_DIGITS    5
#define KEY_AT        16 // in the bytes of an execution
#define REQUEST_BYTES 38
#define BUFFER_BYTES  1024 // of the welcome; an answer has about 60
#define ENTRIES_MAX   16384
#define EVENTS        512
#define WAIT_NS       (100 * NS_PER_MS) // between looks at the clock when nothing comes

enum loop { LOOP_EPOLL, LOOP_URING };
static const char *const loop_names[] = {"epoll", "uring", NULL};

struct options {
    int loop;
    int64_t clients, time_ns, keys;
    char *user, *database;
};

#define AT(member) offsetof(struct options, member)

static const struct opt_row rows[] = {
    {"loop", 0, OPT_CHOICE, AT(loop), "epoll", .choices = loop_names, .arg = "NAME",
     .group = "Options", .help = "how it waits and sends"},
    {"clients", 'c', OPT_INT, AT(clients), "16", 1, 100000, .help = "sessions"},
    {"time", 'T', OPT_DURATION, AT(time_ns), "5s", .help = "length of the loop"},
    {"keys", 0, OPT_INT, AT(keys), "0", 0, 99999, .help = "rows to ask for; 0: always the same"},
    {"user", 'U', OPT_TEXT, AT(user), "prony", .arg = "NAME", .help = "who logs in"},
    {"database", 'd', OPT_TEXT, AT(database), "prony", .arg = "NAME", .help = "where"},
    {NULL},
};

static const struct opt_command command = {
    .name = "bare",
    .usage = "SOCKET",
    .summary = "the floor: prepared SELECTs over raw sockets",
    .example = "bare --loop uring -c 128 /tmp/.s.PGSQL.5432",
    .rows = rows,
    .min_args = 1,
    .max_args = 1,
};

struct client {
    int fd;                      // -1: not open
    char request[REQUEST_BYTES]; // one execution
    char buffer[BUFFER_BYTES];
};

struct bare {
    int n;
    struct client *clients;
    uint64_t keys, random;
    int64_t statements;
    int64_t end_ns;
};

// ---- bytes

static void add_message(struct str *out, char type, const char *body, size_t n)
{
    uint32_t len = htonl((uint32_t)n + 4);

    if (type)
        str_addc(out, type);
    str_addn(out, (const char *)&len, sizeof(len));
    str_addn(out, body, n);
}

#define ADD(out, type, body) add_message((out), (type), (body), sizeof(body) - 1)

static void make_request(char request[REQUEST_BYTES])
{
    struct str out = STR_INIT;

    // Portal, statement, formats, one parameter of five bytes, formats of the result.
    ADD(&out, 'B',
        "\0s\0\0\0\0\1\0\0\0\5"
        "12345"
        "\0\0");
    ADD(&out, 'E', "\0\0\0\0\0");
    ADD(&out, 'S', "");
    assert(out.len == REQUEST_BYTES && memcmp(out.buf + KEY_AT, "12345", KEY_DIGITS) == 0);
    memcpy(request, out.buf, REQUEST_BYTES);
    str_release(&out);
}

static void choose_key(struct bare *b, struct client *c)
{
    if (b->keys == 0)
        return;
    b->random = b->random * 6364136223846793005ULL + 1442695040888963407ULL; // Knuth, MMIX
    uint64_t key = 1 + (b->random >> 33) % b->keys;
    for (int i = KEY_DIGITS; i-- > 0; key /= 10)
        c->request[KEY_AT + i] = (char)('0' + key % 10);
}

// The last message of any answer is ReadyForQuery, whose last byte tells of the transaction.
static bool is_whole(const char *bytes, size_t n)
{
    return n >= 6 && memcmp(bytes + n - 6, "Z\0\0\0\5", 5) == 0;
}

static bool is_error(const char *bytes)
{
    return bytes[0] == 'E';
}

// ---- logging in, by blocking calls

static int fail_errno(const char *what, struct err *err)
{
    return err_set(err, ERR_FAILED, "%s: %s", what, strerror(errno));
}

static int ask(struct client *c, const struct str *bytes, struct err *err)
{
    size_t len = 0;

    if (write(c->fd, bytes->buf, bytes->len) != (ssize_t)bytes->len)
        return fail_errno("write", err);
    do {
        ssize_t n = read(c->fd, c->buffer + len, sizeof(c->buffer) - len);
        if (n < 0)
            return fail_errno("read", err);
        len += (size_t)n;
        if (n == 0 || len == sizeof(c->buffer) || is_error(c->buffer))
            return err_set(err, ERR_FAILED, "the server refuses, or wants a password");
    } while (!is_whole(c->buffer, len));
    return 0;
}

static int client_open(struct client *c, const struct sockaddr_un *address, const struct options *o,
                       struct err *err)
{
    struct str message = STR_INIT, body = STR_INIT;

    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return fail_errno("socket", err);
    if (connect(c->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return fail_errno(address->sun_path, err);
    str_addn(&body, "\0\3\0\0user", 9);
    str_addn(&body, o->user, strlen(o->user) + 1);
    str_addn(&body, "database", 9);
    str_addn(&body, o->database, strlen(o->database) + 2);
    add_message(&message, 0, body.buf, body.len);
    int rc = ask(c, &message, err);
    str_clear(&message);
    ADD(&message, 'P', "s\0" SQL "\0\0\0");
    ADD(&message, 'S', "");
    if (rc == 0)
        rc = ask(c, &message, err);
    str_release(&message);
    str_release(&body);
    return rc;
}

static int open_all(struct bare *b, const char *path, const struct options *o, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(err, ERR_USAGE, "%s: too long for a socket", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    for (int i = 0; i < b->n; i++)
        if (client_open(&b->clients[i], &address, o, err) < 0)
            return -1;
    return 0;
}

// ---- the loops

// An answer has come; true when it is whole. An answer is far below a socket's buffer, so that the
// stub's comes in one piece; another server's may come in two.
static bool on_bytes(struct bare *b, struct client *c, ssize_t n, struct err *err)
{
    if (n <= 0 || is_error(c->buffer)) {
        err_set(err, ERR_FAILED, n < 0 ? "receiving failed" : "the server has had enough");
        return false;
    }
    if (!is_whole(c->buffer, (size_t)n))
        return false;
    b->statements++;
    return true;
}

static int send_one(struct bare *b, struct client *c, struct err *err)
{
    choose_key(b, c);
    if (send(c->fd, c->request, REQUEST_BYTES, MSG_NOSIGNAL) != REQUEST_BYTES)
        return fail_errno("send", err);
    return 0;
}

static int loop_epoll(struct bare *b, struct err *err)
{
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0)
        return fail_errno("epoll_create1", err);
    for (int i = 0; i < b->n && err->kind == ERR_NONE; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &b->clients[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, b->clients[i].fd, &event) < 0)
            fail_errno("epoll_ctl", err);
        else
            send_one(b, &b->clients[i], err);
    }
    while (err->kind == ERR_NONE && clock_now_ns(&clock_system) < b->end_ns) {
        int n = epoll_wait(epoll, events, EVENTS, (int)(WAIT_NS / NS_PER_MS));
        for (int i = 0; i < n && err->kind == ERR_NONE; i++) {
            struct client *c = events[i].data.ptr;
            if (on_bytes(b, c, recv(c->fd, c->buffer, BUFFER_BYTES, MSG_DONTWAIT), err))
                send_one(b, c, err);
        }
    }
    close(epoll);
    return err->kind == ERR_NONE ? 0 : -1;
}

static struct io_uring_sqe *new_sqe(struct io_uring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

    if (!sqe) { // full
        io_uring_submit(ring);
        sqe = io_uring_get_sqe(ring);
    }
    assert(sqe);
    return sqe;
}

static void queue_receive(struct io_uring *ring, struct client *c)
{
    struct io_uring_sqe *sqe = new_sqe(ring);

    io_uring_prep_recv(sqe, c->fd, c->buffer, BUFFER_BYTES, 0);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST; // it is not there yet
    io_uring_sqe_set_data(sqe, c);
}

static void queue_send(struct bare *b, struct io_uring *ring, struct client *c)
{
    struct io_uring_sqe *sqe = new_sqe(ring);

    choose_key(b, c);
    io_uring_prep_send(sqe, c->fd, c->request, REQUEST_BYTES, MSG_NOSIGNAL);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data(sqe, NULL);
}

static int ring_open(struct io_uring *ring, int n, struct err *err)
{
    static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0};
    unsigned entries = 64;
    int rc = -1;

    while (entries < 2 * (unsigned)n && entries < ENTRIES_MAX)
        entries *= 2;
    for (int i = 0; i < 2 && rc < 0; i++)
        rc = io_uring_queue_init(entries, ring, flags[i]);
    if (rc < 0)
        return err_set(err, ERR_ABSENT, "io_uring cannot be had here: %s", strerror(-rc));
    return 0;
}

static int loop_uring(struct bare *b, struct err *err)
{
    struct __kernel_timespec wait = {.tv_nsec = WAIT_NS};
    struct io_uring_cqe *cqe;
    struct io_uring ring;

    if (ring_open(&ring, b->n, err) < 0)
        return -1;
    for (int i = 0; i < b->n; i++) {
        queue_send(b, &ring, &b->clients[i]);
        queue_receive(&ring, &b->clients[i]);
    }
    while (err->kind == ERR_NONE && clock_now_ns(&clock_system) < b->end_ns) {
        unsigned head, n = 0;
        io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &wait, NULL);
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            struct client *c = io_uring_cqe_get_data(cqe);
            n++;
            if (!c && cqe->res < 0)
                err_set(err, ERR_FAILED, "send: %s", strerror(-cqe->res));
            if (!c)
                continue;
            if (on_bytes(b, c, cqe->res, err))
                queue_send(b, &ring, c);
            queue_receive(&ring, c);
        }
        io_uring_cq_advance(&ring, n);
    }
    io_uring_queue_exit(&ring);
    return err->kind == ERR_NONE ? 0 : -1;
}

// ---- the whole

static double cpu_s(const struct timeval *from, const struct timeval *to)
{
    return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_usec - from->tv_usec) / 1e6;
}

static int measure(struct bare *b, const struct options *o, struct err *err)
{
    struct rusage before, after;
    int64_t start_ns = clock_now_ns(&clock_system);

    b->end_ns = start_ns + o->time_ns;
    getrusage(RUSAGE_SELF, &before);
    int rc = o->loop == LOOP_URING ? loop_uring(b, err) : loop_epoll(b, err);
    getrusage(RUSAGE_SELF, &after);
    if (rc < 0)
        return -1;
    printf("{\"loop\": \"%s\", \"clients\": %d, \"statements\": %" PRId64 ", \"seconds\": %.6f, "
           "\"user_s\": %.6f, \"sys_s\": %.6f}\n",
           loop_names[o->loop], b->n, b->statements,
           (double)(clock_now_ns(&clock_system) - start_ns) / NS_PER_S,
           cpu_s(&before.ru_utime, &after.ru_utime), cpu_s(&before.ru_stime, &after.ru_stime));
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct err err = ERR_INIT;
    struct bare b = {0};
    char *args[argc];
    int status = 0;

    opt_defaults(rows, &o);
    int n = opt_parse(&command, argc, argv, &o, args, &err);
    if (n == -2) {
        opt_print_help(&command, stdout);
        goto out;
    }
    if (n >= 0) {
        b.n = (int)o.clients;
        b.clients = mem_calloc((size_t)b.n, sizeof(*b.clients));
        b.keys = (uint64_t)o.keys;
        for (int i = 0; i < b.n; i++) {
            b.clients[i].fd = -1;
            make_request(b.clients[i].request);
        }
        if (open_all(&b, args[0], &o, &err) == 0)
            measure(&b, &o, &err);
    }
    if (err.kind != ERR_NONE) {
        fprintf(stderr, "bare: %s\n", err.text);
        status = err_exit_status(&err);
    }
out:
    for (int i = 0; i < b.n; i++)
        if (b.clients[i].fd >= 0)
            close(b.clients[i].fd);
    free(b.clients);
    opt_release(rows, &o);
    return status;
}
