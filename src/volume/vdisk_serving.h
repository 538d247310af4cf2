// What the threads of the daemon share; between vdisk_daemon.c, vdisk_fuse.c and vdisk_control.c.
#pragma once

#define FUSE_USE_VERSION 35

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "volume/vdisk_house.h"
#include "volume/vdisk_queue.h"
#include "volume/vdisk_watch.h"

// A request whose time has not come. Owned by the queue until the timer takes it.
struct serving_request {
    struct vdisk_waiting waiting; // first, so that one pointer is the other
    fuse_req_t fuse;
    struct vdisk_disk *disk;
    enum vdisk_op op;
    uint64_t offset, length;
    struct house_flush flush;
    int error;     // decided when it arrived or when the power was cut; 0: carry it out
    uint8_t *data; // what to write, or what was read
    void *memory;  // to free: data lies in it; NULL: nothing
};

// How late replies are, by thread timer.
struct serving_lateness {
    uint64_t n;
    int64_t sum_ns, max_ns; // after what was due
    int64_t early_ns;       // the most that one was early
};

struct serving {
    char *dir, *disks_dir, *socket_path;
    pthread_mutex_t lock; // around house, queue, lateness, opens
    pthread_cond_t wake;  // of the timer: the first one due has changed
    struct vdisk_house house;
    struct vdisk_queue queue;
    struct serving_lateness lateness;
    int64_t lead_ns; // what waking takes, on the average: the timer rises earlier by it
    bool is_stopping;
    atomic_bool control_ends;
    struct fuse_session *session;
    struct fuse_buf buffer; // of the request being read
    bool buffer_is_taken;   // by a request that waits
    int fuse_fd, control_fd;
    struct vdisk_watch *watch;
    pid_t guard;
    bool memory_is_locked, is_prompt; // what was allowed
};

// vdisk_fuse.c
extern const struct fuse_lowlevel_ops serving_ops;
// Carries a request out (lock held), and replies (lock not held).
void serving_carry_out(struct serving *s, struct serving_request *r, int64_t now_ns);
void serving_reply(struct serving_request *r);

// vdisk_timer.c
void *serving_timer_thread(void *context);
// Looks again at all that waits, after a disk has changed: of a dead disk all fail at once, of one
// that stalls no longer all are due. Lock held.
void serving_review(struct serving *s);

// vdisk_control.c
int serving_control_open(struct serving *s, struct err *err);
void *serving_control_thread(void *context);
