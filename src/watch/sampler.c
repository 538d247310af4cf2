#include "watch/sampler.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "watch/source.h"

#define LOOKS_PER_S 5

static const struct watch_source *const sources[] = {
    &watch_host,
    &watch_devices,
    &watch_processes,
    &watch_engine,
};

struct watch_table {
    struct result_watch *items;
    size_t n_items, cap_items;
    int second; // that ends now
};

struct sampler {
    void *selves[ARR_LEN(sources)]; // NULL: nothing to ask there
    int64_t start_ns;
    struct watch_table table; // the thread's until it has ended
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ends; // under lock
};

double watch_rate(struct watch_counter *counter, double now, double passed_s)
{
    double rate = counter->known && passed_s > 0 && now >= counter->last
                      ? (now - counter->last) / passed_s
                      : NAN;

    counter->known = true;
    counter->last = now;
    return rate;
}

static struct result_watch *find(struct watch_table *table, const char *subject, const char *name)
{
    for (size_t i = 0; i < table->n_items; i++)
        if (strcmp(table->items[i].name, name) == 0 &&
            strcmp(table->items[i].subject, subject) == 0)
            return &table->items[i];
    struct result_watch *new = ARR_PUSH(table->items, table->n_items, table->cap_items);
    *new = (struct result_watch){.subject = mem_strdup(subject), .name = mem_strdup(name)};
    return new;
}

void watch_put(struct watch_table *table, const char *subject, const char *name, double value)
{
    if (!isfinite(value))
        return;
    result_watch_set(find(table, subject, name), table->second, value);
}

// Until a moment, or the end. False: it ends.
static bool sleep_until(struct sampler *sampler, int64_t at_ns)
{
    struct timespec at = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};

    pthread_mutex_lock(&sampler->lock);
    while (!sampler->ends &&
           pthread_cond_timedwait(&sampler->changed, &sampler->lock, &at) != ETIMEDOUT)
        ;
    bool ends = sampler->ends;
    pthread_mutex_unlock(&sampler->lock);
    return !ends;
}

static void sample_all(struct sampler *sampler, double passed_s)
{
    for (size_t i = 0; i < ARR_LEN(sources); i++)
        if (sampler->selves[i])
            sources[i]->sample(sampler->selves[i], passed_s, &sampler->table);
}

static void *sampler_main(void *arg)
{
    struct sampler *sampler = arg;
    const int64_t look_ns = NS_PER_S / LOOKS_PER_S;
    int64_t last_ns = clock_now_ns(&clock_system);

    sample_all(sampler, 0);
    for (;;) {
        // A moment that was missed because a source took long is not made up for.
        int64_t now_ns = clock_now_ns(&clock_system);
        int64_t turn = (now_ns - sampler->start_ns) / look_ns + 1;
        if (!sleep_until(sampler, sampler->start_ns + turn * look_ns))
            return NULL;
        for (size_t i = 0; i < ARR_LEN(sources); i++)
            if (sampler->selves[i] && sources[i]->look)
                sources[i]->look(sampler->selves[i]);
        now_ns = clock_now_ns(&clock_system);
        if (turn % LOOKS_PER_S != 0 && now_ns - last_ns < NS_PER_S + look_ns)
            continue;
        sampler->table.second = (int)((now_ns - sampler->start_ns) / NS_PER_S) - 1;
        if (sampler->table.second < 0)
            continue;
        sample_all(sampler, (double)(now_ns - last_ns) / NS_PER_S);
        last_ns = now_ns;
    }
}

struct sampler *sampler_open(const struct sampler_options *options)
{
    struct sampler *sampler = mem_calloc(1, sizeof(*sampler));
    pthread_condattr_t attributes;

    pthread_mutex_init(&sampler->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (size_t i = 0; i < ARR_LEN(sources); i++)
        sampler->selves[i] = sources[i]->open(options);
    return sampler;
}

void sampler_begin(struct sampler *sampler, int64_t start_ns)
{
    sampler->start_ns = start_ns;
    sampler->has_thread = pthread_create(&sampler->thread, NULL, sampler_main, sampler) == 0;
}

static void end_thread(struct sampler *sampler)
{
    struct timespec at;

    pthread_mutex_lock(&sampler->lock);
    sampler->ends = true;
    pthread_cond_signal(&sampler->changed);
    pthread_mutex_unlock(&sampler->lock);
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_sec++;
        if (pthread_clockjoin_np(sampler->thread, NULL, CLOCK_MONOTONIC, &at) != ETIMEDOUT)
            return;
        for (size_t i = 0; i < ARR_LEN(sources); i++)
            if (sampler->selves[i] && sources[i]->cancel)
                sources[i]->cancel(sampler->selves[i]);
    }
}

void sampler_end(struct sampler *sampler, struct result *result)
{
    if (!sampler)
        return;
    if (sampler->has_thread)
        end_thread(sampler);
    for (size_t i = 0; i < ARR_LEN(sources); i++)
        if (sampler->selves[i])
            sources[i]->close(sampler->selves[i]);
    if (result) {
        result->watch = sampler->table.items;
        result->n_watch = (int)sampler->table.n_items;
    } else {
        for (size_t i = 0; i < sampler->table.n_items; i++)
            result_watch_release(&sampler->table.items[i]);
        free(sampler->table.items);
    }
    pthread_cond_destroy(&sampler->changed);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}
