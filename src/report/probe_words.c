#include "report/probe_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "watch/flush.h"
#include "watch/host.h"

#define GIB (1024.0 * 1024 * 1024)

static double rate(const struct report_probe *report, enum probe_kind kind)
{
    return report->probe->measures[kind].rate.mean;
}

// Two digits: what follows from a rate is no better known than so.
static char *rough(double value, char out[UNITS_MAX])
{
    double step = value > 0 ? pow(10, floor(log10(value)) - 1) : 1;

    return units_format_rate(round(value / step) * step, out);
}

static char *seconds_of(double seconds, char out[UNITS_MAX])
{
    return units_format_duration((int64_t)(seconds * NS_PER_S), out);
}

static const struct storage_layer *last_disk(const struct storage *place)
{
    return place->n_layers > 0 ? &place->layers[place->n_layers - 1] : NULL;
}

void probe_words_answer(const struct report_probe *report, struct str *out)
{
    char flushes[UNITS_MAX], one[UNITS_MAX], eight[UNITS_MAX];

    units_format_rate(rate(report, PROBE_FLUSH_1), flushes);
    if (report->place->in_memory)
        str_addf(out, "%s is memory, no storage: %s flushes/s there say nothing about a disk",
                 report->place->fs, flushes);
    else
        str_addf(out, "%s flushes/s: at most about %s commits/s at one client", flushes,
                 rough(rate(report, PROBE_FLUSH_1), one));
    if (report->probe->interrupted) // which leaves no room on the line
        str_add(out, " (interrupted)");
    else if (!report->place->in_memory)
        str_addf(out, ", %s at eight", rough(rate(report, PROBE_FLUSH_8), eight));
}

void probe_words_setup(const struct report_probe *report, struct str *out)
{
    const struct probe_result *p = report->probe;
    char text[UNITS_MAX];

    str_addf(out, "%s laid out, %d rounds of %d measurements in ",
             units_format_bytes(p->file_bytes, text), p->rounds, PROBE_KINDS);
    str_addf(out, "%s; blocks by %s%s%s%s, %s the page cache", seconds_of(p->seconds, text), p->io,
             p->io_why[0] ? " (" : "", p->io_why, p->io_why[0] ? ")" : "",
             p->through_cache[0] ? "through" : "past");
}

// ---- what it means

static void mean_flush(const struct report_probe *report, struct kvs *out)
{
    const struct probe_measure *m = &report->probe->measures[PROBE_FLUSH_1];
    char half[UNITS_MAX], slow[UNITS_MAX];

    kvs_addf(out, "flush", "a commit alone waits %s for its flush, one in a hundred %s or longer",
             units_format_duration(hist_quantile(&m->latency, 0.5), half),
             units_format_duration(hist_quantile(&m->latency, 0.99), slow));
}

static void mean_group(const struct report_probe *report, struct kvs *out)
{
    const struct probe_measure *m = &report->probe->measures[PROBE_FLUSH_8];
    double shared = m->flushes ? (double)m->operations / (double)m->flushes : 0;

    kvs_addf(out, "group",
             "eight clients that share flushes (%.1f writes in each) commit %.1f "
             "times as often as one",
             shared, rate(report, PROBE_FLUSH_8) / rate(report, PROBE_FLUSH_1));
}

// A growing file's size is a second thing to make durable. Told only when the intervals are apart.
static void mean_growth(const struct report_probe *report, struct kvs *out)
{
    const struct interval *grows = &report->probe->measures[PROBE_APPEND].rate;
    const struct interval *written = &report->probe->measures[PROBE_FLUSH_1].rate;
    char text[UNITS_MAX];

    if (grows->high < written->low && grows->mean < 0.8 * written->mean)
        kvs_addf(
            out, "growth",
            "a log file that grows gives only %s commits/s, for each flush also writes its new "
            "size: have the database recycle or preallocate its log",
            rough(rate(report, PROBE_APPEND), text));
}

static void mean_depth(const struct report_probe *report, struct kvs *out)
{
    double times = rate(report, PROBE_READ_32) / rate(report, PROBE_READ_1);

    if (times >= 1.5)
        kvs_addf(out, "depth",
                 "32 random reads at once are served %.1f times as fast as one after the other",
                 times);
    else
        kvs_add(out, "depth",
                "32 random reads at once are served no faster than one after the other");
}

static void mean_scan(const struct report_probe *report, struct kvs *out)
{
    const struct probe_measure *m = report->probe->measures;
    double read_s = 100 * GIB / (double)m[PROBE_READ_ALONG].block_bytes;
    double pages_s = GIB / (double)m[PROBE_WRITE_32].block_bytes;
    char scan[UNITS_MAX], write[UNITS_MAX];

    kvs_addf(out, "scan",
             "reading 100 GiB through takes %s; a checkpoint of 1 GiB of pages all over the data "
             "takes %s",
             seconds_of(read_s / rate(report, PROBE_READ_ALONG), scan),
             seconds_of(pages_s / rate(report, PROBE_WRITE_32), write));
}

static void mean_write_through(const struct report_probe *report, struct kvs *out)
{
    const struct storage_layer *disk = last_disk(report->place);

    if (disk && strcmp(disk->write_cache, "write through") == 0)
        kvs_addf(out, "write-through",
                 "%s says that it has no cache to lose (write through), so the kernel sends it no "
                 "flushes: a commit waits for the write alone",
                 disk->name);
}

void probe_words_meaning(const struct report_probe *report, struct kvs *out)
{
    if (report->place->in_memory)
        return;
    mean_flush(report, out);
    mean_group(report, out);
    mean_growth(report, out);
    mean_write_through(report, out);
    mean_depth(report, out);
    mean_scan(report, out);
}

// ---- doubts

static void doubt_place(const struct report_probe *report, struct kvs *out)
{
    const struct storage *place = report->place;

    if (place->in_memory)
        kvs_addf(out, "data-in-memory",
                 "%s lies on %s, which is memory: probe a directory on the disk that the data will "
                 "lie on",
                 place->path, place->fs);
    if (place->is_overlay)
        kvs_addf(out, "data-on-overlay",
                 "%s lies on a container's overlay, which syncs in its own way: probe a volume "
                 "mounted for the data",
                 place->path);
}

static void doubt_page_cache(const struct report_probe *report, struct kvs *out)
{
    const struct probe_result *p = report->probe;

    if (p->through_cache[0] && !report->place->in_memory)
        kvs_addf(out, "through-cache",
                 "blocks went through the kernel's page cache (%s), which was emptied before each "
                 "slice of reads: take their rates (marked *) for those of the two together",
                 p->through_cache);
}

static void doubt_other_cache(const struct report_probe *report, struct kvs *out)
{
    const struct storage *place = report->place;
    const char *whose = NULL;

    if (strstr(place->fs, "zfs"))
        whose = "ZFS has a cache of its own";
    else if (place->is_network)
        whose = "a file server has a cache of its own";
    else if (strncmp(place->fs, "fuse", 4) == 0)
        whose = "a file system in a program may have a cache of its own";
    if (whose)
        kvs_addf(out, "other-cache",
                 "%s, which O_DIRECT does not go past: reads tell about the storage only with a "
                 "--size well over it",
                 whose);
}

static void doubt_fast_flush(const struct report_probe *report, struct kvs *out)
{
    const struct storage_layer *disk = last_disk(report->place);
    double each_us = 1e6 / rate(report, PROBE_FLUSH_1);
    char text[UNITS_MAX];
    const char *why = flush_too_fast(each_us, report->place, host_is_virtual(report->environment));

    if (why && !report->place->in_memory)
        kvs_addf(out, "fast-flush",
                 "%s per flush on %s: a protected cache, or flushes are ignored, for %s; test with "
                 "the power cut",
                 seconds_of(each_us / 1e6, text), disk ? disk->name : report->place->source, why);
}

// Half a turn of a fast disk alone takes 2 ms. A guest does not know whether its disk rotates.
static void doubt_fast_read(const struct report_probe *report, struct kvs *out)
{
    const struct storage_layer *disk = last_disk(report->place);
    int64_t ns = hist_quantile(&report->probe->measures[PROBE_READ_1].latency, 0.5);
    char text[UNITS_MAX];

    if (disk && disk->rotational == 1 && ns < NS_PER_MS && !report->probe->through_cache[0] &&
        !host_is_virtual(report->environment))
        kvs_addf(out, "fast-read",
                 "a random read takes %s on %s, a rotating disk, which takes milliseconds: a "
                 "cache answers (the disk's or the controller's); give a --size well over it",
                 units_format_duration(ns, text), disk->name);
}

static void doubt_spread(const struct report_probe *report, struct kvs *out)
{
    const struct probe_measure *worst = NULL;
    double most = 0.1;
    int n = 0;

    for (int i = 0; i < PROBE_KINDS; i++) {
        const struct probe_measure *m = &report->probe->measures[i];
        double width = interval_relative(&m->rate);
        n += width > 0.1;
        if (width > most) {
            most = width;
            worst = m;
        }
    }
    if (worst)
        kvs_addf(
            out, "wide-interval",
            "%d of %d rates are known to no better than 10 %% (%s: %.0f %%): other work on the "
            "storage, or bursts; probe longer (--time 60s), or when it is quiet",
            n, PROBE_KINDS, worst->name, most * 100);
}

static void doubt_small(const struct report_probe *report, struct kvs *out)
{
    const struct probe_result *p = report->probe;
    char asked[UNITS_MAX], got[UNITS_MAX];

    if (p->file_bytes < p->asked_bytes)
        kvs_addf(
            out, "small-file",
            "only %s of %s could be laid out in half of the time, so places lie nearer to each "
            "other: give more with --time",
            units_format_bytes(p->file_bytes, got), units_format_bytes(p->asked_bytes, asked));
}

void probe_words_doubts(const struct report_probe *report, struct kvs *out)
{
    doubt_place(report, out);
    doubt_page_cache(report, out);
    doubt_fast_flush(report, out);
    doubt_fast_read(report, out);
    doubt_other_cache(report, out);
    doubt_spread(report, out);
    doubt_small(report, out);
}
