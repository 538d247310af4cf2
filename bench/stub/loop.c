#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/units.h"
#include "stub.h"

#define BUFFER_BYTES  (256 << 10)
#define EVENTS        512
#define SEND_FROM     (8 << 10) // as PostgreSQL does: what has grown so long is sent unasked
#define BACKLOG       4096
#define KEEP_BYTES    (16 << 10) // a longer buffer is not kept
#define TEAR_PAUSE_NS (20 * NS_PER_US)

// ---- delayed statements: a heap by due_ns

static void heap_put(struct stub *stub, int i, struct session *s)
{
    stub->heap[i] = s;
    s->heap_index = i;
}

static void heap_up(struct stub *stub, int i, struct session *s)
{
    while (i > 0 && stub->heap[(i - 1) / 2]->due_ns > s->due_ns) {
        heap_put(stub, i, stub->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(stub, i, s);
}

static void heap_down(struct stub *stub, int i, struct session *s)
{
    for (;;) {
        int child = 2 * i + 1;
        if (child + 1 < stub->n_heap && stub->heap[child + 1]->due_ns < stub->heap[child]->due_ns)
            child++;
        if (child >= stub->n_heap || stub->heap[child]->due_ns >= s->due_ns)
            break;
        heap_put(stub, i, stub->heap[child]);
        i = child;
    }
    heap_put(stub, i, s);
}

static void heap_remove(struct stub *stub, struct session *s)
{
    int i = s->heap_index;

    assert(i >= 0 && i < stub->n_heap && stub->heap[i] == s);
    s->heap_index = -1;
    struct session *last = stub->heap[--stub->n_heap];
    if (last == s)
        return;
    if (i > 0 && stub->heap[(i - 1) / 2]->due_ns > last->due_ns)
        heap_up(stub, i, last);
    else
        heap_down(stub, i, last);
}

static void heap_add(struct stub *stub, struct session *s)
{
    assert(s->heap_index < 0);
    *ARR_PUSH(stub->heap, stub->n_heap, stub->cap_heap) = s;
    heap_up(stub, stub->n_heap - 1, s);
}

// ---- sessions

static void session_end(struct session *s)
{
    struct stub *stub = s->stub;

    if (s->gone)
        return;
    s->gone = true;
    if (s->heap_index >= 0)
        heap_remove(stub, s);
    if (s->has_begun)
        stub->counters->sessions--;
    close(s->fd); // leaves the epoll too
    if (s->prev)
        s->prev->next = s->next;
    else
        stub->sessions = s->next;
    if (s->next)
        s->next->prev = s->prev;
    s->next = stub->gone; // events of this turn may still name it
    stub->gone = s;
}

static void free_session(struct session *s)
{
    s->protocol->release(s);
    str_release(&s->in);
    str_release(&s->out);
    free(s);
}

static void free_gone(struct stub *stub)
{
    while (stub->gone) {
        struct session *s = stub->gone;
        stub->gone = s->next;
        free_session(s);
    }
}

void session_ready(struct session *s)
{
    struct counters *c = s->stub->counters;
    uint64_t now_ns = (uint64_t)clock_now_ns(&clock_system);

    assert(!s->has_begun);
    s->has_begun = true;
    c->sessions_total++;
    if (++c->sessions == 2)
        c->rise_ns = now_ns;
    c->ready_ns = now_ns;
}

// ---- sending

static void watch(struct session *s, bool want_write)
{
    if (s->want_write == want_write)
        return;
    struct epoll_event event = {.events = want_write ? EPOLLOUT : EPOLLIN, .data.ptr = s};
    s->want_write = want_write;
    epoll_ctl(s->stub->epoll, EPOLL_CTL_MOD, s->fd, &event);
}

static void sent_all(struct session *s)
{
    s->n_sent = 0;
    s->send_now = false;
    if (s->out.cap > KEEP_BYTES)
        str_release(&s->out);
    else
        str_clear(&s->out);
    if (s->ending)
        session_end(s);
    else
        watch(s, false);
}

static void tear_later(struct session *s)
{
    if (!s->is_torn) {
        s->is_torn = true;
        s->torn_next = s->stub->torn;
        s->stub->torn = s;
    }
}

// Sends what there is. While the socket is full nothing more is read from it, so that out is
// bounded by what one buffer of input can ask for.
static void session_send(struct session *s)
{
    if (s->n_sent == s->out.len && s->ending) {
        session_end(s);
        return;
    }
    if (s->stub->tear) {
        tear_later(s);
        return;
    }
    while (s->n_sent < s->out.len) {
        ssize_t n = send(s->fd, s->out.buf + s->n_sent, s->out.len - s->n_sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            watch(s, true);
            return;
        }
        if (n < 0) { // the client has vanished
            session_end(s);
            return;
        }
        s->n_sent += (size_t)n;
    }
    sent_all(s);
}

// --tear: one byte, as soon as the one before it has been read.
static bool tear_one(struct session *s)
{
    int unread = 0;

    if (s->gone || s->n_sent == s->out.len)
        return false;
    if (ioctl(s->fd, SIOCOUTQ, &unread) == 0 && unread > 0)
        return true;
    ssize_t n = send(s->fd, s->out.buf + s->n_sent, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        session_end(s);
        return false;
    }
    s->n_sent += n > 0;
    if (s->n_sent < s->out.len)
        return true;
    sent_all(s);
    return false;
}

static void tear_all(struct stub *stub)
{
    struct session **link = &stub->torn;

    while (*link) {
        struct session *s = *link;
        if (tear_one(s)) {
            link = &s->torn_next;
        } else {
            *link = s->torn_next;
            s->is_torn = false;
        }
    }
}

// ---- statements

bool session_begin(struct session *s, bool is_setup, enum sql_transaction transaction)
{
    struct stub *stub = s->stub;
    int64_t delay_ns;

    s->fate = FATE_ANSWER;
    s->cancelled = false;
    if (is_setup)
        return false;
    stub->counters->statements++;
    if (!stub->first_ns)
        stub->first_ns = clock_now_ns(&clock_system);
    if (!faults_any(&stub->faults))
        return false;
    s->fate = faults_draw(&stub->faults, transaction != SQL_ROLLS_BACK, &delay_ns);
    if (delay_ns <= 0)
        return false;
    s->due_ns = s->start_ns + delay_ns;
    heap_add(stub, s);
    return true;
}

void session_drop(struct session *s, size_t out_before)
{
    size_t whole = s->out.len - out_before;

    assert(s->fate == FATE_DROP_BEFORE || s->fate == FATE_DROP_WITHIN);
    s->out.len = out_before + (s->fate == FATE_DROP_WITHIN ? whole / 2 : 0);
    s->ending = s->send_now = true;
}

void stub_cancel(struct stub *stub, const struct protocol *protocol, uint32_t number, bool end)
{
    for (struct session *s = stub->sessions; s; s = s->next) {
        if (s->number != number || s->protocol != protocol)
            continue;
        if (end) {
            session_end(s);
        } else if (s->heap_index >= 0) {
            s->cancelled = true;
            heap_remove(stub, s);
            s->due_ns = 0; // at once, but not within another session's turn
            heap_add(stub, s);
        }
        return;
    }
}

// ---- receiving

// Gives the protocol what there is; the rest is kept in s->in.
static void session_take(struct session *s, const char *bytes, size_t n)
{
    bool own = bytes == s->in.buf;
    ssize_t taken = s->heap_index >= 0 || s->ending ? 0 : s->protocol->take(s, bytes, n);

    if (s->gone)
        return;
    if (taken < 0) {
        session_end(s);
        return;
    }
    assert((size_t)taken <= n);
    n -= (size_t)taken;
    if (own) {
        memmove(s->in.buf, s->in.buf + taken, n);
        s->in.len = n;
        if (n == 0 && s->in.cap > KEEP_BYTES)
            str_release(&s->in);
    } else if (n > 0) {
        str_addn(&s->in, bytes + taken, n);
    }
    if (s->out.len > s->n_sent && (s->send_now || s->out.len > SEND_FROM))
        session_send(s);
    else if (s->ending)
        session_send(s);
}

static void session_receive(struct session *s)
{
    struct stub *stub = s->stub;
    ssize_t n = recv(s->fd, stub->buffer, BUFFER_BYTES, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        session_end(s);
        return;
    }
    stub->reads++;
    if (s->heap_index < 0)
        s->start_ns = stub->woken_ns;
    if (s->in.len == 0) {
        session_take(s, stub->buffer, (size_t)n);
        return;
    }
    str_addn(&s->in, stub->buffer, (size_t)n);
    if (s->in.len > MESSAGE_MAX + BUFFER_BYTES)
        session_end(s);
    else
        session_take(s, s->in.buf, s->in.len);
}

static void session_resume(struct session *s)
{
    struct faults *faults = &s->stub->faults;

    s->protocol->resume(s);
    if (s->gone)
        return;
    // What is held up next counts from here, and sending is the client's wait already.
    int64_t now_ns = clock_now_ns(&clock_system);
    bool answered = s->fate == FATE_ANSWER || s->fate == FATE_ERROR;
    if (faults->delay.kind != DELAY_NONE && answered && !s->cancelled)
        hist_record(&faults->delays, now_ns - s->start_ns);
    s->start_ns = now_ns;
    if (s->in.len > 0 && s->heap_index < 0)
        session_take(s, s->in.buf, s->in.len);
    else if (s->send_now || s->ending)
        session_send(s);
}

// ---- listening

static struct session *session_new(struct stub *stub, const struct protocol *protocol, int fd)
{
    struct session *s = mem_calloc(1, protocol->size);

    assert(protocol->size >= sizeof(*s));
    *s = (struct session){.stub = stub, .protocol = protocol, .fd = fd, .heap_index = -1};
    str_init(&s->in);
    str_init(&s->out);
    return s;
}

static void accept_all(struct stub *stub, const struct session *listener)
{
    int fd;

    for (;;) {
        fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) // until somebody leaves
            clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + NS_PER_MS);
        if (fd < 0)
            return;
        struct session *s = session_new(stub, listener->protocol, fd);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
        s->number = ++stub->next_number;
        s->protocol->open(s);
        if (epoll_ctl(stub->epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
            close(fd);
            free_session(s);
            return;
        }
        s->next = stub->sessions;
        if (s->next)
            s->next->prev = s;
        stub->sessions = s;
        if (s->out.len > 0)
            session_send(s);
    }
}

static int listen_path(const char *path, struct err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return err_set(err, ERR_USAGE, "%s: too long for a socket", path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, ERR_FAILED, "socket: %s", strerror(errno));
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0) {
        err_set(err, ERR_USAGE, "%s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int listen_port(int64_t port, int *ret_port, struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_set(err, ERR_FAILED, "socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    // What is accepted inherits it.
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        err_set(err, ERR_USAGE, "port %d: %s", (int)port, strerror(errno));
        close(fd);
        return -1;
    }
    *ret_port = ntohs(address.sin_port);
    return fd;
}

int stub_listen(struct stub *stub, const char *where, const struct protocol *protocol,
                int *ret_port, struct err *err)
{
    int64_t port;

    *ret_port = 0;
    bool is_port = units_parse_int(where, &port, NULL) == 0 && port >= 0 && port <= 65535;
    int fd = is_port ? listen_port(port, ret_port, err) : listen_path(where, err);
    if (fd < 0)
        return -1;
    assert(stub->n_listeners < (int)ARR_LEN(stub->listeners));
    struct session *listener = session_new(stub, protocol, fd);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
    stub->listeners[stub->n_listeners++] = listener;
    if (epoll_ctl(stub->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_set(err, ERR_FAILED, "epoll_ctl: %s", strerror(errno));
    return 0;
}

// ---- the loop

static bool must_stall(const struct stub *stub)
{
    const struct faults *f = &stub->faults;

    return f->stall.for_ns > 0 && stub->first_ns && f->stalled_for_ns == 0;
}

// Nothing is read, answered or accepted meanwhile.
static void stall_when_due(struct stub *stub)
{
    struct faults *f = &stub->faults;

    if (!must_stall(stub))
        return;
    int64_t now_ns = clock_now_ns(&clock_system);
    if (now_ns < stub->first_ns + f->stall.at_ns)
        return;
    f->stalled_at_ns = now_ns - stub->first_ns;
    clock_sleep_until_ns(&clock_system, now_ns + f->stall.for_ns);
    f->stalled_for_ns = clock_now_ns(&clock_system) - now_ns;
}

// How long to wait for events; NULL: for ever.
static const struct timespec *time_left(const struct stub *stub, struct timespec *ts)
{
    int64_t until_ns = stub->n_heap > 0 ? stub->heap[0]->due_ns : INT64_MAX;

    if (must_stall(stub) && stub->first_ns + stub->faults.stall.at_ns < until_ns)
        until_ns = stub->first_ns + stub->faults.stall.at_ns;
    if (until_ns == INT64_MAX && !stub->torn)
        return NULL;
    int64_t left_ns = stub->torn ? TEAR_PAUSE_NS : INT64_MAX;
    if (until_ns != INT64_MAX) {
        int64_t due_in_ns = until_ns - clock_now_ns(&clock_system);
        left_ns = due_in_ns < left_ns ? due_in_ns : left_ns;
    }
    left_ns = left_ns < 0 ? 0 : left_ns;
    *ts = (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    return ts;
}

static void resume_due(struct stub *stub)
{
    if (stub->n_heap == 0)
        return;
    int64_t now_ns = clock_now_ns(&clock_system);
    while (stub->n_heap > 0 && stub->heap[0]->due_ns <= now_ns) {
        struct session *s = stub->heap[0];
        heap_remove(stub, s);
        session_resume(s);
    }
}

static void on_event(struct stub *stub, const struct epoll_event *event)
{
    struct session *s = event->data.ptr;

    if (s->gone)
        return;
    if (s->number == 0) {
        accept_all(stub, s);
    } else if (s->want_write && (event->events & EPOLLOUT)) {
        session_send(s);
        if (!s->gone && !s->want_write && s->in.len > 0) // input that came before
            session_take(s, s->in.buf, s->in.len);
    } else {
        session_receive(s);
    }
}

int stub_init(struct stub *stub, struct err *err)
{
    stub->buffer = mem_calloc(1, BUFFER_BYTES);
    stub->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (stub->epoll < 0)
        return err_set(err, ERR_FAILED, "epoll_create1: %s", strerror(errno));
    hist_init(&stub->faults.delays);
    return 0;
}

void stub_serve(struct stub *stub, const sigset_t *signals)
{
    struct epoll_event events[EVENTS];
    struct timespec ts;

    while (!*stub->stop) {
        int n = epoll_pwait2(stub->epoll, events, EVENTS, time_left(stub, &ts), signals);
        if (n > 0 && faults_any(&stub->faults))
            stub->woken_ns = clock_now_ns(&clock_system);
        stall_when_due(stub);
        for (int i = 0; i < n; i++)
            on_event(stub, &events[i]);
        resume_due(stub);
        tear_all(stub);
        free_gone(stub);
    }
}

void stub_release(struct stub *stub)
{
    while (stub->sessions)
        session_end(stub->sessions);
    free_gone(stub);
    for (int i = 0; i < stub->n_listeners; i++) {
        close(stub->listeners[i]->fd);
        free(stub->listeners[i]);
    }
    if (stub->epoll >= 0)
        close(stub->epoll);
    free(stub->heap);
    free(stub->buffer);
}
