// The life of a probe: a private directory, a file laid out, rounds of slices, their intervals.
#include "volume/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "volume/probe_internal.h"

// The round that is not counted is so long in parts of one that is.
#define FIRST_ROUND 0.25

// Fewer rounds give no interval worth the name.
#define ROUNDS_MIN 2

struct clockwork {
    int64_t start_ns;
    int64_t end_ns; // planned
};

static void fill_buffers(struct probe *probe)
{
    const size_t size =
        IO_DEPTH_MAX * LOG_BLOCK > 4 * ALONG_BLOCK ? IO_DEPTH_MAX * LOG_BLOCK : 4 * ALONG_BLOCK;

    // Random, so that nothing on the way can make less of them.
    probe->buffers = aligned_alloc(IO_ALIGN, size);
    if (!probe->buffers)
        abort();
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t bits = rng_u64(&probe->rng);
        memcpy(probe->buffers + i, &bits, sizeof(bits));
    }
}

static struct probe_result *new_result(const struct probe *probe)
{
    struct probe_result *result = mem_calloc(1, sizeof(*result));

    snprintf(result->dir, sizeof(result->dir), "%s", probe->wish->dir);
    result->started_real_ns = clock_real_ns();
    result->io = probe->io->name;
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        const struct probe_method *method = &probe_methods[kind];
        struct probe_measure *measure = &result->measures[kind];
        assert(method->run && method->depth >= 1);
        measure->id = method->id;
        measure->name = method->name;
        measure->how = method->how;
        measure->block_bytes = method->block_bytes;
        measure->by_bytes = method->by_bytes;
        measure->is_block = method->run == probe_blocks_run;
        hist_init(&measure->latency);
    }
    return result;
}

// ---- rounds

static void tell(const struct probe *probe, const struct clockwork *clockwork, const char *what)
{
    int64_t past_ns = clock_now_ns(&clock_system) - clockwork->start_ns;
    double share = (double)past_ns / (double)(clockwork->end_ns - clockwork->start_ns);
    struct probe_tick tick = {.share = share > 1 ? 1 : share, .what = what};

    if (probe->wish->tick)
        probe->wish->tick(probe->wish->arg, &tick);
}

static void shuffle(struct rng *rng, int *order, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_range(rng, 0, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

// Does a slice of the kind. Its figures are counted when the round is whole.
static int run_slice(struct probe *probe, int kind, int64_t slice_ns, double *last_per_s,
                     struct probe_slice *slice, struct err *err)
{
    const struct probe_method *method = &probe_methods[kind];

    slice->for_ns = slice_ns;
    slice->max_operations =
        method->write ? probe_plan_operations(*last_per_s, slice_ns, method->first) : INT64_MAX;
    int rc = method->run(probe, method, slice, err);
    if (rc < 0 || slice->operations == 0) // stopped
        return rc;
    assert(slice->took_ns > 0);
    *last_per_s = (double)slice->operations / (double)slice->took_ns * NS_PER_S;
    return 0;
}

static void count(struct probe_result *result, const struct probe_slice *slices)
{
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        struct probe_measure *measure = &result->measures[kind];
        const struct probe_slice *slice = &slices[kind];
        double seconds = (double)slice->took_ns / NS_PER_S;
        assert(measure->n_slices < PROBE_ROUNDS);
        measure->per_s[measure->n_slices++] = (double)slice->operations / seconds;
        measure->operations += slice->operations;
        measure->flushes += slice->flushes;
        measure->seconds += seconds;
        hist_add(&measure->latency, slice->latency);
    }
    result->rounds++;
}

// One round. Returns 1 when it is whole, 0 when it was stopped.
static int run_round(struct probe *probe, const struct clockwork *clockwork, double rounds_left,
                     double part, double *per_s, struct probe_slice *slices, struct err *err)
{
    int order[PROBE_KINDS];

    for (int i = 0; i < PROBE_KINDS; i++)
        order[i] = i;
    shuffle(&probe->rng, order, PROBE_KINDS);
    for (int i = 0; i < PROBE_KINDS; i++) {
        struct probe_slice *slice = &slices[order[i]];
        hist_clear(slice->latency);
        *slice = (struct probe_slice){.latency = slice->latency};
        tell(probe, clockwork, probe_methods[order[i]].name);
        // What a slice before took too long the rest of this and all later rounds save.
        int64_t left_ns = clockwork->end_ns - clock_now_ns(&clock_system);
        double rounds = rounds_left - part * i / PROBE_KINDS;
        int64_t slice_ns = (int64_t)(part * (double)probe_plan_slice_ns(left_ns, rounds));
        if (run_slice(probe, order[i], slice_ns, &per_s[order[i]], slice, err) < 0)
            return -1;
        if (probe_is_stopped(probe))
            return 0;
        assert(slice->operations > 0);
    }
    return 1;
}

static int run_rounds(struct probe *probe, const struct clockwork *clockwork,
                      struct probe_result *result, struct err *err)
{
    struct hist *latencies = mem_calloc(PROBE_KINDS, sizeof(*latencies));
    struct probe_slice slices[PROBE_KINDS] = {0};
    double per_s[PROBE_KINDS] = {0};

    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        hist_init(&latencies[kind]);
        slices[kind].latency = &latencies[kind];
    }
    int rc =
        run_round(probe, clockwork, FIRST_ROUND + PROBE_ROUNDS, FIRST_ROUND, per_s, slices, err);
    while (rc > 0 && result->rounds < PROBE_ROUNDS) {
        rc = run_round(probe, clockwork, PROBE_ROUNDS - result->rounds, 1, per_s, slices, err);
        if (rc > 0)
            count(result, slices);
    }
    free(latencies);
    if (rc < 0)
        return -1;
    result->interrupted = result->rounds < PROBE_ROUNDS;
    if (result->rounds < ROUNDS_MIN)
        return err_set(err, ERR_FAILED, "interrupted before enough was measured");
    for (int kind = 0; kind < PROBE_KINDS; kind++) {
        struct probe_measure *measure = &result->measures[kind];
        interval_of_mean(measure->per_s, measure->n_slices, &measure->rate);
    }
    return 0;
}

// ---- all of it

static int measure(struct probe *probe, struct probe_result *result, struct err *err)
{
    int64_t start_ns = clock_now_ns(&clock_system);
    struct clockwork clockwork = {start_ns, start_ns + probe->wish->time_ns};

    if (probe_site_open(probe, err) < 0)
        return -1;
    result->asked_bytes = probe->site.sizes.data_bytes;
    tell(probe, &clockwork, "laying out");
    if (probe_site_lay_out(probe, start_ns + probe->wish->time_ns / 2, err) < 0)
        return -1;
    result->file_bytes = probe->site.file_bytes;
    result->layout_seconds = (double)(clock_now_ns(&clock_system) - start_ns) / NS_PER_S;
    if (run_rounds(probe, &clockwork, result, err) < 0)
        return -1;
    result->seconds = (double)(clock_now_ns(&clock_system) - start_ns) / NS_PER_S;
    return 0;
}

int probe_run(const struct probe_wish *wish, struct probe_result **ret, struct err *err)
{
    struct probe probe = {.wish = wish};
    char why[sizeof(((struct probe_result *)NULL)->io_why)];

    assert(wish->dir[0] == '/' && wish->time_ns >= PROBE_TIME_MIN_NS && wish->leftovers);
    probe.io = io_choose(wish->io, why, sizeof(why), err);
    if (!probe.io)
        return -1;
    rng_init(&probe.rng, wish->seed, 0, RNG_PROBE);
    fill_buffers(&probe);
    struct probe_result *result = new_result(&probe);
    snprintf(result->io_why, sizeof(result->io_why), "%s", why);
    probe.site.through_cache = result->through_cache;
    int rc = measure(&probe, result, err);
    probe_site_close(&probe);
    free(probe.buffers);
    if (rc < 0)
        probe_free(result);
    else
        *ret = result;
    return rc;
}

void probe_free(struct probe_result *result)
{
    free(result);
}
