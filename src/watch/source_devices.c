// The block devices under data and log, from /sys/class/block/NAME/stat
// (Documentation/block/stat.rst of the kernel).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "watch/source.h"
#include "watch/sysfs.h"

#define DEVICES_MAX 16
#define SECTOR      512.0

// Fields of the file in their order. Ticks are milliseconds; flushes since Linux 5.5.
enum field {
    READS,
    READS_MERGED,
    READ_SECTORS,
    READ_TICKS,
    WRITES,
    WRITES_MERGED,
    WRITE_SECTORS,
    WRITE_TICKS,
    IN_FLIGHT,
    BUSY_TICKS,
    QUEUE_TICKS,
    DISCARDS,
    DISCARDS_MERGED,
    DISCARD_SECTORS,
    DISCARD_TICKS,
    FLUSHES,
    FLUSH_TICKS,
    FIELDS
};

struct device {
    char name[32];
    struct watch_counter fields[FIELDS];
};

struct devices {
    struct device items[DEVICES_MAX];
    int n;
};

static void add_devices(struct devices *devices, const struct storage *place)
{
    for (int i = 0; place && i < place->n_layers; i++) {
        const char *name = place->layers[i].device;
        bool is_known = !name[0] || strcmp(place->layers[i].kind, "partition") == 0;
        for (int k = 0; k < devices->n; k++)
            is_known |= strcmp(devices->items[k].name, name) == 0;
        if (!is_known && devices->n < DEVICES_MAX)
            snprintf(devices->items[devices->n++].name, sizeof(devices->items[0].name), "%s", name);
    }
}

static void *devices_open(const struct sampler_options *options)
{
    struct devices *devices = mem_calloc(1, sizeof(*devices));

    add_devices(devices, options->log); // first: commits wait for it
    add_devices(devices, options->data);
    if (devices->n > 0)
        return devices;
    free(devices);
    return NULL;
}

static void sample_device(struct device *device, double passed_s, struct watch_table *table)
{
    double rates[FIELDS];
    char line[512], *at = line, *end;

    if (!sysfs_line(line, sizeof(line), "/sys/class/block/%s/stat", device->name))
        return; // it went away
    for (int i = 0; i < FIELDS; i++, at = end) {
        double now = strtod(at, &end);
        rates[i] = end == at ? NAN : watch_rate(&device->fields[i], now, passed_s);
    }
    const struct {
        const char *name;
        double value;
    } values[] = {
        {"reads_per_s", rates[READS]},
        {"writes_per_s", rates[WRITES]},
        {"read_bytes_per_s", rates[READ_SECTORS] * SECTOR},
        {"write_bytes_per_s", rates[WRITE_SECTORS] * SECTOR},
        {"flushes_per_s", rates[FLUSHES]},
        {"queue", rates[QUEUE_TICKS] / 1000}, // requests under way, on average
        {"busy_share", fmin(1, rates[BUSY_TICKS] / 1000)},
        {"flush_share", fmin(1, rates[FLUSH_TICKS] / 1000)}, // of the time a flush was under way
        {"read_ms", rates[READ_TICKS] / rates[READS]},
        {"write_ms", rates[WRITE_TICKS] / rates[WRITES]},
        {"flush_ms", rates[FLUSH_TICKS] / rates[FLUSHES]},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        watch_put(table, device->name, values[i].name, values[i].value); // 0 / 0 is none
}

static void devices_sample(void *self, double passed_s, struct watch_table *table)
{
    struct devices *devices = self;

    for (int i = 0; i < devices->n; i++)
        sample_device(&devices->items[i], passed_s, table);
}

const struct watch_source watch_devices = {
    .open = devices_open,
    .sample = devices_sample,
    .close = free,
};
