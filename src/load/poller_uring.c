// io_uring: every send and receive of a wake-up goes to the kernel in the call that waits for the
// next.
//
// Each slot always has one receive under way, into its own buffer. A send of up to INLINE_BYTES is
// taken by the kernel in that call (the socket's buffer is empty but for it), so its completion is
// not asked for; a longer one is, and what comes after it waits in `pending`. A slot that is
// removed has its receive cancelled, and is free when that has been reaped.
// The socket is polled before it is read: the answer cannot be there yet.
// Multishot receives and registered files were measured and gained nothing here.
#include "load/poller.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define RECEIVE_BYTES 4096
#define INLINE_BYTES  4096
#define ENTRIES_MAX   4096
#define REAP          256

// user_data: the slot, and what completed.
enum { DONE_RECEIVE, DONE_SEND, DONE_WAKE, DONE_CANCEL };
#define USER_DATA(slot, what) ((uint64_t)(uint32_t)(slot) << 2 | (what))

struct uring_slot {
    int fd; // -1: none
    bool receiving, sending, removing;
    bool queued; // in the list of slots that need a receive
    char *buffer;
    struct str active;  // being sent
    struct str pending; // to be sent after it
};

struct uring_poller {
    struct poller base;
    struct io_uring ring;
    bool has_ring;
    int wake;
    uint64_t wake_count; // where the read of the eventfd goes
    int n_slots;
    struct uring_slot *slots;
    int *to_receive; // slots whose receive must be started before the next wait
    int n_to_receive;
};

static struct uring_poller *own(struct poller *poller)
{
    assert(poller->ops == &poller_uring);
    return (struct uring_poller *)poller;
}

static struct io_uring_sqe *next_sqe(struct uring_poller *p)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&p->ring);

    if (!sqe) { // the queue is full: hand over what is there
        io_uring_submit(&p->ring);
        sqe = io_uring_get_sqe(&p->ring);
    }
    assert(sqe);
    return sqe;
}

static void read_wake(struct uring_poller *p)
{
    struct io_uring_sqe *sqe = next_sqe(p);

    io_uring_prep_read(sqe, p->wake, &p->wake_count, sizeof(p->wake_count), 0);
    io_uring_sqe_set_data64(sqe, USER_DATA(0, DONE_WAKE));
}

static void uring_destroy(struct poller *poller)
{
    struct uring_poller *p = own(poller);

    if (p->has_ring)
        io_uring_queue_exit(&p->ring);
    if (p->wake >= 0)
        close(p->wake);
    for (int i = 0; i < p->n_slots; i++) {
        free(p->slots[i].buffer);
        str_release(&p->slots[i].active);
        str_release(&p->slots[i].pending);
    }
    free(p->slots);
    free(p->to_receive);
    free(p);
}

// The best set of flags the kernel knows, then fewer.
static int make_ring(struct uring_poller *p, unsigned entries)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CQSIZE,
        IORING_SETUP_CQSIZE,
    };
    int rc = -EINVAL;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && rc == -EINVAL; i++) {
        // Every slot may have a receive, and a few sends, complete at once.
        struct io_uring_params params = {.flags = flags[i],
                                         .cq_entries = (unsigned)p->n_slots * 2 + 64};
        rc = io_uring_queue_init_params(entries, &p->ring, &params);
        if (rc == 0 && !(params.features & IORING_FEAT_CQE_SKIP)) {
            io_uring_queue_exit(&p->ring);
            rc = -ENOSYS;
        }
    }
    return rc;
}

// The ring is made by the thread that will use it (IORING_SETUP_SINGLE_ISSUER).
static int uring_create(struct poller **ret, int n_slots, struct err *err)
{
    struct uring_poller *p = mem_calloc(1, sizeof(*p));
    unsigned entries = 64;

    p->base.ops = &poller_uring;
    p->n_slots = n_slots;
    p->slots = mem_calloc((size_t)n_slots, sizeof(*p->slots));
    p->to_receive = mem_calloc((size_t)n_slots, sizeof(*p->to_receive));
    for (int i = 0; i < n_slots; i++) {
        p->slots[i].fd = -1;
        str_init(&p->slots[i].active);
        str_init(&p->slots[i].pending);
    }
    while (entries < (unsigned)n_slots * 2 && entries < ENTRIES_MAX)
        entries *= 2;
    p->wake = eventfd(0, EFD_CLOEXEC);
    int rc = p->wake < 0 ? -errno : make_ring(p, entries);
    if (rc < 0) {
        err_set(err, ERR_ABSENT,
                "io_uring cannot be had: %s (a kernel before 5.19, a container's filter, or "
                "kernel.io_uring_disabled); --loop ring-epoll does without",
                strerror(-rc));
        uring_destroy(&p->base);
        return -1;
    }
    p->has_ring = true;
    read_wake(p);
    *ret = &p->base;
    return 0;
}

// ---- slots

static void queue_receive(struct uring_poller *p, int slot)
{
    struct uring_slot *s = &p->slots[slot];

    if (s->queued || s->receiving || s->removing)
        return;
    s->queued = true;
    p->to_receive[p->n_to_receive++] = slot;
}

static int uring_add(struct poller *poller, int slot, int fd)
{
    struct uring_poller *p = own(poller);
    struct uring_slot *s = &p->slots[slot];

    assert(slot >= 0 && slot < p->n_slots && s->fd < 0 && !s->receiving && !s->sending);
    if (!s->buffer)
        s->buffer = mem_calloc(1, RECEIVE_BYTES);
    s->fd = fd;
    s->removing = false;
    str_clear(&s->active);
    str_clear(&s->pending);
    queue_receive(p, slot);
    return 0;
}

static void cancel(struct uring_poller *p, uint64_t user_data)
{
    struct io_uring_sqe *sqe = next_sqe(p);

    io_uring_prep_cancel64(sqe, user_data, 0);
    io_uring_sqe_set_data64(sqe, USER_DATA(0, DONE_CANCEL));
}

static bool uring_remove(struct poller *poller, int slot)
{
    struct uring_poller *p = own(poller);
    struct uring_slot *s = &p->slots[slot];

    assert(s->fd >= 0 && !s->removing);
    if (!s->receiving && !s->sending) {
        // Short sends may be queued: they go now, before another file gets the descriptor's number.
        io_uring_submit(&p->ring);
        s->fd = -1;
        return true;
    }
    s->removing = true;
    cancel(p, s->receiving ? USER_DATA(slot, DONE_RECEIVE) : USER_DATA(slot, DONE_SEND));
    if (s->receiving && s->sending)
        cancel(p, USER_DATA(slot, DONE_SEND));
    return false;
}

static void start_send(struct uring_poller *p, int slot)
{
    struct uring_slot *s = &p->slots[slot];
    struct io_uring_sqe *sqe = next_sqe(p);
    bool is_short = s->active.len <= INLINE_BYTES;

    io_uring_prep_send(sqe, s->fd, s->active.buf, s->active.len, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, USER_DATA(slot, DONE_SEND));
    if (is_short)
        io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
    s->sending = !is_short;
}

static void uring_send(struct poller *poller, int slot, const char *bytes, size_t n)
{
    struct uring_poller *p = own(poller);
    struct uring_slot *s = &p->slots[slot];

    assert(s->fd >= 0);
    if (s->removing)
        return;
    if (s->sending) {
        str_addn(&s->pending, bytes, n);
        return;
    }
    str_clear(&s->active);
    str_addn(&s->active, bytes, n);
    start_send(p, slot);
}

static void start_receives(struct uring_poller *p)
{
    for (int i = 0; i < p->n_to_receive; i++) {
        int slot = p->to_receive[i];
        struct uring_slot *s = &p->slots[slot];
        s->queued = false;
        if (s->fd < 0 || s->removing || s->receiving)
            continue;
        struct io_uring_sqe *sqe = next_sqe(p);
        io_uring_prep_recv(sqe, s->fd, s->buffer, RECEIVE_BYTES, 0);
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
        io_uring_sqe_set_data64(sqe, USER_DATA(slot, DONE_RECEIVE));
        s->receiving = true;
    }
    p->n_to_receive = 0;
}

// ---- completions

static void free_if_gone(struct uring_poller *p, int slot, poller_fn *fn, void *arg)
{
    struct uring_slot *s = &p->slots[slot];

    if (!s->removing || s->receiving || s->sending)
        return;
    s->removing = false;
    s->fd = -1;
    fn(arg, &(struct poller_event){.slot = slot, .kind = POLLER_GONE});
}

static void received(struct uring_poller *p, int slot, int res, poller_fn *fn, void *arg)
{
    struct uring_slot *s = &p->slots[slot];
    struct poller_event event = {.slot = slot, .kind = POLLER_BYTES};

    s->receiving = false;
    if (s->removing) {
        free_if_gone(p, slot, fn, arg);
        return;
    }
    if (res == -EINTR || res == -EAGAIN) {
        queue_receive(p, slot);
        return;
    }
    if (res <= 0) {
        event.kind = POLLER_CLOSED;
        event.error = -res;
    } else {
        event.bytes = s->buffer;
        event.n = (size_t)res;
    }
    fn(arg, &event);
    if (s->fd >= 0 && event.kind == POLLER_BYTES)
        queue_receive(p, slot);
}

// Short sends complete here only when they fail; the receive then tells the same.
static void sent(struct uring_poller *p, int slot, poller_fn *fn, void *arg)
{
    struct uring_slot *s = &p->slots[slot];

    s->sending = false;
    if (s->removing) {
        free_if_gone(p, slot, fn, arg);
        return;
    }
    if (s->fd >= 0 && s->pending.len > 0) {
        struct str swap = s->active;
        s->active = s->pending;
        s->pending = swap;
        str_clear(&s->pending);
        start_send(p, slot);
    }
}

// What handling the event of the slot will touch, in two steps: the second needs the first.
static void fetch_ahead(struct uring_poller *p, struct io_uring_cqe **cqes, unsigned n, void *arg)
{
    if (n > POLLER_AHEAD) {
        int slot = (int)(cqes[POLLER_AHEAD]->user_data >> 2);
        mem_prefetch(&p->slots[slot], sizeof(p->slots[slot]));
        if (p->base.soon)
            p->base.soon(arg, slot);
    }
    if (n > POLLER_AHEAD / 2) {
        const struct uring_slot *s = &p->slots[cqes[POLLER_AHEAD / 2]->user_data >> 2];
        mem_prefetch(s->buffer, 64);
        mem_prefetch(s->active.buf, 64);
    }
}

static void reap(struct uring_poller *p, poller_fn *fn, void *arg)
{
    struct io_uring_cqe *cqes[REAP];
    unsigned n;

    while ((n = io_uring_peek_batch_cqe(&p->ring, cqes, REAP)) > 0) {
        for (unsigned i = 0; i < n; i++) {
            uint64_t data = cqes[i]->user_data;
            fetch_ahead(p, cqes + i, n - i, arg);
            int slot = (int)(data >> 2);
            switch (data & 3) {
            case DONE_RECEIVE:
                received(p, slot, cqes[i]->res, fn, arg);
                break;
            case DONE_SEND:
                sent(p, slot, fn, arg);
                break;
            case DONE_WAKE:
                read_wake(p);
                break;
            case DONE_CANCEL: // what was cancelled completes by itself
                break;
            }
        }
        io_uring_cq_advance(&p->ring, n);
        if (n < REAP)
            break;
    }
}

static void uring_wait(struct poller *poller, int64_t until_ns, poller_fn *fn, void *arg)
{
    struct uring_poller *p = own(poller);
    struct io_uring_cqe *cqe;
    struct __kernel_timespec limit = {0};
    int64_t left_ns = 0;

    start_receives(p);
    if (until_ns != INT64_MAX) {
        left_ns = until_ns - clock_now_ns(&clock_system);
        limit.tv_sec = left_ns / NS_PER_S;
        limit.tv_nsec = left_ns % NS_PER_S;
    }
    if (until_ns == INT64_MAX)
        io_uring_submit_and_wait(&p->ring, 1);
    else if (left_ns > 0)
        io_uring_submit_and_wait_timeout(&p->ring, &cqe, 1, &limit, NULL);
    else
        io_uring_submit_and_get_events(&p->ring);
    reap(p, fn, arg);
}

static void uring_wake(struct poller *poller)
{
    struct uring_poller *p = own(poller);
    uint64_t one = 1;

    if (write(p->wake, &one, sizeof(one)) < 0)
        return; // the counter is full: it will wake all the same
}

const struct poller_ops poller_uring = {
    .name = "ring-uring",
    .create = uring_create,
    .destroy = uring_destroy,
    .add = uring_add,
    .send = uring_send,
    .remove = uring_remove,
    .wait = uring_wait,
    .wake = uring_wake,
};
