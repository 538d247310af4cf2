// Blocks by io_uring: one system call hands over what is next and waits for the first to complete.
//
// A ring lives for one job; making it costs some 100 us, before the first block's clock runs.
#include "volume/io.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"

#define REAP 16

struct uring_job {
    const struct io_job *job;
    struct io_count *count;
    struct io_uring ring;
    struct rng rng;
    int64_t begun; // blocks handed over so far
    int in_flight;
    int64_t since_ns[IO_DEPTH_MAX]; // when the slot's block was handed over
    bool failed;
};

// The flags that cost least, then none: a kernel that does not know them says EINVAL.
static int make_ring(struct io_uring *ring, unsigned entries)
{
    static const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0};
    int rc = -EINVAL;

    for (size_t i = 0; i < ARR_LEN(flags) && rc == -EINVAL; i++)
        rc = io_uring_queue_init(entries, ring, flags[i]);
    return rc;
}

static int uring_check(struct err *err)
{
    struct io_uring ring;
    int rc = make_ring(&ring, 2);

    if (rc < 0)
        return err_set(err, ERR_ABSENT,
                       "io_uring cannot be had: %s (an old kernel, a container's filter, or "
                       "kernel.io_uring_disabled)",
                       strerror(-rc));
    io_uring_queue_exit(&ring);
    return 0;
}

static void begin(struct uring_job *u, int slot, int64_t now_ns)
{
    const struct io_job *job = u->job;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    char *buffer = job->buffers + slot * job->block_bytes;
    int64_t place = io_place(job, u->begun, &u->rng);

    assert(sqe && slot < job->depth); // there are as many entries as slots
    if (job->write) {
        io_stamp(job, buffer, u->begun);
        io_uring_prep_write(sqe, job->fd, buffer, (unsigned)job->block_bytes, (uint64_t)place);
    } else {
        io_uring_prep_read(sqe, job->fd, buffer, (unsigned)job->block_bytes, (uint64_t)place);
    }
    io_uring_sqe_set_data64(sqe, (uint64_t)slot);
    u->since_ns[slot] = now_ns;
    u->begun++;
    u->in_flight++;
}

// Counts a block; the next one takes its slot.
static void complete(struct uring_job *u, int slot, int res, int64_t now_ns, struct err *err)
{
    const struct io_job *job = u->job;

    assert(slot >= 0 && slot < job->depth && u->in_flight > 0);
    u->in_flight--;
    if (res != job->block_bytes) {
        if (!u->failed)
            io_error(job, res, err);
        u->failed = true;
        return;
    }
    u->count->blocks++;
    hist_record(u->count->latency, now_ns - u->since_ns[slot]);
    if (!u->failed && io_may_begin(job, u->begun, now_ns))
        begin(u, slot, now_ns);
}

static void reap(struct uring_job *u, struct err *err)
{
    struct io_uring_cqe *cqes[REAP];
    unsigned n;

    while ((n = io_uring_peek_batch_cqe(&u->ring, cqes, REAP)) > 0) {
        int64_t now_ns = clock_now_ns(&clock_system);
        for (unsigned i = 0; i < n; i++)
            complete(u, (int)cqes[i]->user_data, cqes[i]->res, now_ns, err);
        io_uring_cq_advance(&u->ring, n);
    }
}

static int uring_run(const struct io_job *job, struct io_count *count, struct err *err)
{
    struct uring_job u = {.job = job, .count = count};

    assert(job->depth >= 1 && job->depth <= IO_DEPTH_MAX && job->n_blocks > 0);
    rng_init(&u.rng, job->seed, 0, RNG_PROBE);
    int rc = make_ring(&u.ring, IO_DEPTH_MAX);
    if (rc < 0)
        return err_set(err, ERR_FAILED, "io_uring: %s", strerror(-rc));
    int64_t now_ns = clock_now_ns(&clock_system);
    for (int slot = 0; slot < job->depth && io_may_begin(job, u.begun, now_ns); slot++)
        begin(&u, slot, now_ns);
    while (u.in_flight > 0) {
        rc = io_uring_submit_and_wait(&u.ring, 1);
        // A signal only wakes; what is under way completes in any case.
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
            u.failed = true;
            err_set(err, ERR_FAILED, "io_uring: %s", strerror(-rc));
            break;
        }
        reap(&u, err);
    }
    io_uring_queue_exit(&u.ring);
    return u.failed ? -1 : 0;
}

const struct io_engine io_uring_engine = {
    .name = "io_uring",
    .check = uring_check,
    .run = uring_run,
};
