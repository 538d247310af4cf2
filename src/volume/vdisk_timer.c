// The thread that replies when the time has come. It rises a little earlier than that, by what
// waking took lately, so that replies are neither late nor early on the average; and it beats for
// the guard.
#include "volume/vdisk_serving.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"

#define BEAT_NS     (50 * NS_PER_MS)
#define LEAD_MAX_NS (200 * NS_PER_US)
#define LEAD_WEIGHT 32 // of the past against one waking

static void count_lateness(struct serving_lateness *lateness, int64_t late_ns)
{
    lateness->n++;
    lateness->sum_ns += late_ns;
    if (late_ns > lateness->max_ns)
        lateness->max_ns = late_ns;
    if (-late_ns > lateness->early_ns)
        lateness->early_ns = -late_ns;
}

static void sleep_until(struct serving *s, int64_t when_ns)
{
    struct timespec when = {.tv_sec = when_ns / NS_PER_S, .tv_nsec = when_ns % NS_PER_S};

    if (pthread_cond_clockwait(&s->wake, &s->lock, CLOCK_MONOTONIC, &when) == 0)
        return; // woken, which says nothing about the clock
    int64_t late_ns = clock_now_ns(&clock_system) - when_ns;
    // A thread that had to wait for the processor is no measure of what waking takes.
    if (late_ns < 0 || late_ns > LEAD_MAX_NS)
        return;
    s->lead_ns += (late_ns - s->lead_ns) / LEAD_WEIGHT;
}

// Replies to the first one if it is due. Called and left with the lock held, let go for the reply.
static bool serve_first(struct serving *s)
{
    struct serving_request *r = (struct serving_request *)vdisk_queue_first(&s->queue);

    if (!r)
        return false;
    int64_t now_ns = clock_now_ns(&clock_system);
    if (r->waiting.due_ns > now_ns + s->lead_ns)
        return false;
    vdisk_queue_take_first(&s->queue);
    if (r->error == 0)
        count_lateness(&s->lateness, now_ns - r->waiting.due_ns);
    serving_carry_out(s, r, now_ns);
    pthread_mutex_unlock(&s->lock);
    serving_reply(r);
    free(r->memory);
    free(r);
    pthread_mutex_lock(&s->lock);
    return true;
}

void *serving_timer_thread(void *context)
{
    struct serving *s = context;

    prctl(PR_SET_TIMERSLACK, 1UL);
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping) {
        vdisk_watch_beat(s->watch);
        if (serve_first(s))
            continue;
        const struct vdisk_waiting *first = vdisk_queue_first(&s->queue);
        int64_t when_ns = clock_now_ns(&clock_system) + BEAT_NS;
        if (first && first->due_ns - s->lead_ns < when_ns)
            when_ns = first->due_ns - s->lead_ns;
        sleep_until(s, when_ns);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void review_one(struct vdisk_waiting *waiting, void *context)
{
    struct serving_request *r = (struct serving_request *)waiting;
    const int64_t *now_ns = context;

    if (atomic_load(&r->disk->dead) && r->error == 0)
        r->error = -EIO;
    if (r->error < 0 || (waiting->due_ns == INT64_MAX && !r->disk->spec.stall))
        waiting->due_ns = *now_ns;
}

void serving_review(struct serving *s)
{
    int64_t now_ns = clock_now_ns(&clock_system);

    vdisk_queue_each(&s->queue, review_one, &now_ns);
    pthread_cond_signal(&s->wake);
}
