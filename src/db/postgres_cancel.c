// Stopping a request from another thread.
//
// The server is asked by a connection of its own (PQcancel), and that can hang as the server can:
// behind a frozen postmaster it waits for ever. So it happens in a helper thread, and a second one
// watches: a request that still runs GRACE_NS later loses its socket, and the blocked call returns
// DB_LOST. Helpers are detached; what they use is counted and outlives the session.
//
// A request to cancel names the session, not the statement: one that is still under way when the
// statement has ended would hit the next. So the session waits for it (SETTLE_NS at most) first.
#include "db/postgres.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"

#define GRACE_NS     (3 * NS_PER_S)
#define ASK_AGAIN_NS (200 * NS_PER_MS) // the first may have come before the statement did
#define SETTLE_NS    (1 * NS_PER_S)
#define LOOK_NS      (20 * NS_PER_MS)
#define HELPER_STACK (128 * 1024)

struct postgres_cancel {
    pthread_mutex_t lock; // guards the next four
    int refs;             // the session and each helper
    int fd;               // the session's socket; -1: closed, the number may be another's
    bool watched;         // a helper is at work
    bool asking;          // the server is being asked
    PGcancel *handle;
    uint64_t serial; // odd while a request runs; written by the session's thread only
    uint64_t asked;  // the request that was last to be stopped
};

struct postgres_cancel *postgres_cancel_create(PGconn *conn)
{
    PGcancel *handle = PQgetCancel(conn);

    if (!handle)
        return NULL;
    struct postgres_cancel *cancel = mem_calloc(1, sizeof(*cancel));
    pthread_mutex_init(&cancel->lock, NULL);
    cancel->refs = 1;
    cancel->fd = PQsocket(conn);
    cancel->handle = handle;
    return cancel;
}

static void acquire(struct postgres_cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    assert(cancel->refs > 0);
    cancel->refs++;
    pthread_mutex_unlock(&cancel->lock);
}

void postgres_cancel_release(struct postgres_cancel *cancel)
{
    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    assert(cancel->refs > 0);
    bool last = --cancel->refs == 0;
    pthread_mutex_unlock(&cancel->lock);
    if (!last)
        return;
    PQfreeCancel(cancel->handle);
    pthread_mutex_destroy(&cancel->lock);
    free(cancel);
}

void postgres_cancel_detach(struct postgres_cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    cancel->fd = -1;
    pthread_mutex_unlock(&cancel->lock);
}

void postgres_cancel_busy(struct postgres_cancel *cancel)
{
    assert(cancel->serial % 2 == 0);
    __atomic_store_n(&cancel->serial, cancel->serial + 1, __ATOMIC_RELEASE);
}

static bool is_asking(struct postgres_cancel *cancel)
{
    pthread_mutex_lock(&cancel->lock);
    bool asking = cancel->asking && cancel->fd >= 0;
    pthread_mutex_unlock(&cancel->lock);
    return asking;
}

void postgres_cancel_idle(struct postgres_cancel *cancel)
{
    assert(cancel->serial % 2 == 1);
    bool asked = postgres_cancel_asked(cancel);
    __atomic_store_n(&cancel->serial, cancel->serial + 1, __ATOMIC_RELEASE);
    if (!asked)
        return;
    int64_t deadline_ns = clock_now_ns(&clock_system) + SETTLE_NS;
    while (is_asking(cancel) && clock_now_ns(&clock_system) < deadline_ns)
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + NS_PER_MS);
}

void postgres_cancel_prefetch(const struct postgres_cancel *cancel)
{
    mem_prefetch(&cancel->serial, 1);
}

bool postgres_cancel_asked(const struct postgres_cancel *cancel)
{
    return __atomic_load_n(&cancel->asked, __ATOMIC_ACQUIRE) == cancel->serial;
}

static void *ask(void *arg)
{
    struct postgres_cancel *cancel = arg;
    char message[256];

    // A failure needs no words: the watcher deals with whatever goes on.
    (void)PQcancel(cancel->handle, message, sizeof(message));
    pthread_mutex_lock(&cancel->lock);
    cancel->asking = false;
    pthread_mutex_unlock(&cancel->lock);
    postgres_cancel_release(cancel);
    return NULL;
}

// Detached, small, and deaf to signals, which are for the program's own threads.
static int start_helper(struct postgres_cancel *cancel, void *(*run)(void *))
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;

    acquire(cancel);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, HELPER_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, &attr, run, cancel);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (r != 0)
        postgres_cancel_release(cancel);
    return r == 0 ? 0 : -1;
}

// With the lock held. The session's end takes the lock too, so the socket is still its own.
static void cut(struct postgres_cancel *cancel, uint64_t serial)
{
    if (cancel->fd >= 0 && __atomic_load_n(&cancel->serial, __ATOMIC_ACQUIRE) == serial)
        shutdown(cancel->fd, SHUT_RDWR);
}

// Asking is begun under the lock and only while the request runs, so the session waits for its end.
static void ask_again(struct postgres_cancel *cancel, uint64_t serial)
{
    pthread_mutex_lock(&cancel->lock);
    bool start = !cancel->asking && __atomic_load_n(&cancel->serial, __ATOMIC_ACQUIRE) == serial;
    cancel->asking |= start;
    pthread_mutex_unlock(&cancel->lock);
    if (!start || start_helper(cancel, ask) == 0)
        return;
    pthread_mutex_lock(&cancel->lock);
    cancel->asking = false;
    pthread_mutex_unlock(&cancel->lock);
}

static void *watch(void *arg)
{
    struct postgres_cancel *cancel = arg;
    uint64_t serial = cancel->asked; // not written again while watched
    int64_t now_ns = clock_now_ns(&clock_system);
    int64_t deadline_ns = now_ns + GRACE_NS;
    int64_t again_ns = now_ns + ASK_AGAIN_NS;

    if (start_helper(cancel, ask) == 0) {
        while (__atomic_load_n(&cancel->serial, __ATOMIC_ACQUIRE) == serial &&
               now_ns < deadline_ns) {
            clock_sleep_until_ns(&clock_system, now_ns + LOOK_NS);
            now_ns = clock_now_ns(&clock_system);
            if (now_ns < again_ns)
                continue;
            ask_again(cancel, serial);
            again_ns = now_ns + ASK_AGAIN_NS;
        }
        pthread_mutex_lock(&cancel->lock);
    } else {
        pthread_mutex_lock(&cancel->lock);
        cancel->asking = false;
    }
    cut(cancel, serial); // does nothing when the request has ended
    cancel->watched = false;
    pthread_mutex_unlock(&cancel->lock);
    postgres_cancel_release(cancel);
    return NULL;
}

void postgres_cancel(struct db_session *base)
{
    struct postgres_cancel *cancel = postgres_session(base)->cancel;

    assert(cancel); // also tells gcc, which warns otherwise when it sanitizes
    pthread_mutex_lock(&cancel->lock);
    uint64_t serial = __atomic_load_n(&cancel->serial, __ATOMIC_ACQUIRE);
    bool start = serial % 2 == 1 && !cancel->watched && !cancel->asking;
    if (start) {
        cancel->watched = true;
        cancel->asking = true;
        __atomic_store_n(&cancel->asked, serial, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&cancel->lock);
    if (!start || start_helper(cancel, watch) == 0)
        return;
    pthread_mutex_lock(&cancel->lock);
    cancel->asking = false;
    cancel->watched = false;
    cut(cancel, serial);
    pthread_mutex_unlock(&cancel->lock);
}
