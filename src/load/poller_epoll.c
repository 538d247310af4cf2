// epoll: level-triggered, one receive per readiness into one shared buffer, sends at once.
#include "load/poller.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define RECEIVE_BYTES (64 << 10)
#define EVENTS        256
#define WAKE_SLOT     UINT32_MAX

struct epoll_slot {
    int fd;              // -1: none
    uint32_t generation; // events of an earlier descriptor are told apart by it
    bool wants_out;
    struct str pending; // not yet taken by the kernel
    size_t sent;        // of pending
};

struct epoll_poller {
    struct poller base;
    int epoll, wake;
    int n_slots;
    struct epoll_slot *slots;
    char *buffer;
};

static struct epoll_poller *own(struct poller *poller)
{
    assert(poller->ops == &poller_epoll);
    return (struct epoll_poller *)poller;
}

static void epoll_destroy(struct poller *poller)
{
    struct epoll_poller *p = own(poller);

    if (p->epoll >= 0)
        close(p->epoll);
    if (p->wake >= 0)
        close(p->wake);
    for (int i = 0; i < p->n_slots; i++)
        str_release(&p->slots[i].pending);
    free(p->slots);
    free(p->buffer);
    free(p);
}

static int epoll_create_poller(struct poller **ret, int n_slots, struct err *err)
{
    struct epoll_poller *p = mem_calloc(1, sizeof(*p));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_SLOT};

    p->base.ops = &poller_epoll;
    p->n_slots = n_slots;
    p->slots = mem_calloc((size_t)n_slots, sizeof(*p->slots));
    p->buffer = mem_calloc(1, RECEIVE_BYTES);
    for (int i = 0; i < n_slots; i++) {
        p->slots[i].fd = -1;
        str_init(&p->slots[i].pending);
    }
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->epoll < 0 || p->wake < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, p->wake, &event) < 0) {
        err_set(err, ERR_ABSENT, "epoll cannot be had: %s", strerror(errno));
        epoll_destroy(&p->base);
        return -1;
    }
    *ret = &p->base;
    return 0;
}

static int set_events(struct epoll_poller *p, int slot, int operation)
{
    struct epoll_slot *s = &p->slots[slot];
    struct epoll_event event = {
        .events = EPOLLIN | (s->wants_out ? EPOLLOUT : 0),
        .data.u64 = (uint64_t)s->generation << 32 | (uint32_t)slot,
    };

    return epoll_ctl(p->epoll, operation, s->fd, &event);
}

static int epoll_add(struct poller *poller, int slot, int fd)
{
    struct epoll_poller *p = own(poller);
    struct epoll_slot *s = &p->slots[slot];

    assert(slot >= 0 && slot < p->n_slots && s->fd < 0);
    s->fd = fd;
    s->generation++;
    s->wants_out = false;
    s->sent = 0;
    str_clear(&s->pending);
    if (set_events(p, slot, EPOLL_CTL_ADD) < 0) {
        s->fd = -1;
        return -errno;
    }
    return 0;
}

static bool epoll_remove(struct poller *poller, int slot)
{
    struct epoll_poller *p = own(poller);
    struct epoll_slot *s = &p->slots[slot];

    assert(s->fd >= 0);
    epoll_ctl(p->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->fd = -1;
    s->generation++;
    return true;
}

// Sends what is pending; a failure shows as readiness to read, where it is told.
static void flush(struct epoll_poller *p, int slot)
{
    struct epoll_slot *s = &p->slots[slot];

    while (s->sent < s->pending.len) {
        ssize_t n = send(s->fd, s->pending.buf + s->sent, s->pending.len - s->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            s->sent = s->pending.len; // broken: the receive will say so
        if (n < 0)
            break;
        s->sent += (size_t)n;
    }
    bool wants_out = s->sent < s->pending.len;
    if (!wants_out) {
        str_clear(&s->pending);
        s->sent = 0;
    }
    if (wants_out != s->wants_out) {
        s->wants_out = wants_out;
        set_events(p, slot, EPOLL_CTL_MOD);
    }
}

static void epoll_send(struct poller *poller, int slot, const char *bytes, size_t n)
{
    struct epoll_poller *p = own(poller);
    struct epoll_slot *s = &p->slots[slot];

    assert(s->fd >= 0);
    if (s->pending.len == 0) { // the common case: no copy
        ssize_t sent = send(s->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent == (ssize_t)n)
            return;
        if (sent > 0) {
            bytes += sent;
            n -= (size_t)sent;
        }
    }
    str_addn(&s->pending, bytes, n);
    flush(p, slot);
}

static void receive(struct epoll_poller *p, int slot, poller_fn *fn, void *arg)
{
    struct epoll_slot *s = &p->slots[slot];
    struct poller_event event = {.slot = slot, .kind = POLLER_BYTES};
    ssize_t n;

    do
        n = recv(s->fd, p->buffer, RECEIVE_BYTES, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        event.kind = POLLER_CLOSED;
        event.error = n < 0 ? errno : 0;
    } else {
        event.bytes = p->buffer;
        event.n = (size_t)n;
    }
    fn(arg, &event);
}

// epoll_wait counts in milliseconds; epoll_pwait2 in nanoseconds, from Linux 5.11 on.
static int wait_events(struct epoll_poller *p, struct epoll_event *events, int64_t until_ns)
{
    int64_t left_ns = until_ns == INT64_MAX ? -1 : until_ns - clock_now_ns(&clock_system);
    struct timespec limit = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    static _Atomic bool is_old_kernel;

    if (left_ns < 0 && until_ns != INT64_MAX)
        limit = (struct timespec){0};
    if (!is_old_kernel) {
        int n = epoll_pwait2(p->epoll, events, EVENTS, until_ns == INT64_MAX ? NULL : &limit, NULL);
        if (n >= 0 || errno != ENOSYS)
            return n;
        is_old_kernel = true;
    }
    int ms = until_ns == INT64_MAX ? -1 : left_ns <= 0 ? 0 : (int)(left_ns / NS_PER_MS) + 1;
    return epoll_wait(p->epoll, events, EVENTS, ms);
}

static void fetch_ahead(struct epoll_poller *p, uint32_t slot, void *arg)
{
    if (slot == WAKE_SLOT)
        return;
    mem_prefetch(&p->slots[slot], sizeof(p->slots[slot]));
    if (p->base.soon)
        p->base.soon(arg, (int)slot);
}

static void epoll_wait_poller(struct poller *poller, int64_t until_ns, poller_fn *fn, void *arg)
{
    struct epoll_poller *p = own(poller);
    struct epoll_event events[EVENTS];
    int n = wait_events(p, events, until_ns);

    for (int i = 0; i < n; i++) {
        uint32_t slot = (uint32_t)events[i].data.u64;
        if (i + POLLER_AHEAD < n)
            fetch_ahead(p, (uint32_t)events[i + POLLER_AHEAD].data.u64, arg);
        if (slot == WAKE_SLOT) {
            uint64_t count;
            if (read(p->wake, &count, sizeof(count)) < 0)
                continue; // somebody else's read: nothing is lost
            continue;
        }
        struct epoll_slot *s = &p->slots[slot];
        uint32_t generation = (uint32_t)(events[i].data.u64 >> 32);
        if (s->fd < 0 || s->generation != generation) // removed by a callback before
            continue;
        if (events[i].events & EPOLLOUT)
            flush(p, (int)slot);
        if (events[i].events & ~(uint32_t)EPOLLOUT)
            receive(p, (int)slot, fn, arg);
    }
}

static void epoll_wake(struct poller *poller)
{
    struct epoll_poller *p = own(poller);
    uint64_t one = 1;

    if (write(p->wake, &one, sizeof(one)) < 0)
        return; // the counter is full: it will wake all the same
}

const struct poller_ops poller_epoll = {
    .name = "ring-epoll",
    .create = epoll_create_poller,
    .destroy = epoll_destroy,
    .add = epoll_add,
    .send = epoll_send,
    .remove = epoll_remove,
    .wait = epoll_wait_poller,
    .wake = epoll_wake,
};
