#include "load/connector.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "db/driver.h"

#define STACK_BYTES (1 << 20) // TLS handshakes and name service

struct connector {
    struct db_target *target;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct connector_job *first, **last;
    bool stopping;
    pthread_t *threads;
    int n_threads;
};

static void do_job(struct connector *c, struct connector_job *job)
{
    char why[DB_MESSAGE_MAX] = "";

    db_wire_release(job->wire);
    db_disconnect(job->session);
    job->wire = NULL;
    job->session = NULL;
    if (db_connect(c->target, job->client, &job->session, &job->result) != DB_OK)
        return;
    job->wire = db_wire_adopt(job->session, why, sizeof(why));
    if (!job->wire) {
        db_disconnect(job->session);
        job->session = NULL;
        job->is_not_adopted = true;
        db_fail(&job->result, DB_OTHER, "", "the ring cannot take this connection over: %s", why);
    }
}

static struct connector_job *take(struct connector *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->first && !c->stopping)
        pthread_cond_wait(&c->more, &c->lock);
    struct connector_job *job = c->first;
    if (job) {
        c->first = job->next;
        if (!c->first)
            c->last = &c->first;
    }
    pthread_mutex_unlock(&c->lock);
    return job;
}

static void *work(void *arg)
{
    struct connector *c = arg;
    struct connector_job *job;

    while ((job = take(c))) {
        do_job(c, job);
        job->done(job);
    }
    return NULL;
}

int connector_start(struct connector **ret, struct db_target *target, int n_threads,
                    struct err *err)
{
    struct connector *c = mem_calloc(1, sizeof(*c));
    pthread_attr_t attr;
    sigset_t all, old;
    int error = 0;

    assert(n_threads > 0);
    c->target = target;
    c->last = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->more, NULL);
    c->threads = mem_calloc((size_t)n_threads, sizeof(*c->threads));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all); // signals are for the main thread
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (c->n_threads < n_threads && error == 0) {
        error = pthread_create(&c->threads[c->n_threads], &attr, work, c);
        if (error == 0)
            c->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (c->n_threads == 0) {
        err_set(err, ERR_USAGE, "no thread for connecting can be started: %s", strerror(error));
        connector_stop(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void connector_submit(struct connector *c, struct connector_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&c->lock);
    assert(!c->stopping);
    *c->last = job;
    c->last = &job->next;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
}

void connector_stop(struct connector *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->more);
    pthread_mutex_unlock(&c->lock);
    for (int i = 0; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    free(c->threads);
    free(c);
}
