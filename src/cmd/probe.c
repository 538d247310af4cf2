// prony probe: what the storage under a directory can give a database.
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/leftovers.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "cmd/version.h"
#include "cmd/volumes.h"
#include "report/probe.h"
#include "volume/io.h"
#include "volume/probe.h"
#include "watch/host.h"
#include "watch/storage.h"

struct probe_options {
    int64_t time_ns;
    int64_t bytes;
    int io;
    struct volumes_options volumes;
    char *json;
    bool quiet;
};

#define AT(member) offsetof(struct probe_options, member)

static const struct opt_row rows[] = {
    {"time", 'T', OPT_DURATION, AT(time_ns), "20s", 2, 86400, .arg = "DURATION", .group = "Probe",
     .help = "for all of it; seconds if bare"},
    {"size", 0, OPT_SIZE, AT(bytes), .arg = "SIZE",
     .help = "of the data file, else a quarter of what is free, 512MB at most"},
    {"io", 0, OPT_CHOICE, AT(io), "auto", .choices = io_names, .arg = "NAME",
     .help = "what moves blocks: auto, io_uring, threads"},
    VOLUMES_ROWS(AT(volumes)),

    {"json", 0, OPT_TEXT, AT(json), .arg = "FILE", .group = "Output", .unrecorded = true,
     .help = "write the result as JSON (- is the terminal)"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .unrecorded = true, .help = "print errors only"},
    {NULL},
};

// What hands type that learned fio.
static const struct opt_peer peers[] = {
    {"--runtime", "--time"},
    {"--duration", "--time"},
    {"--filesize", "--size"},
    {"--ioengine", "--io"},
    {"--directory", "the directory as the argument: prony probe /srv/data"},
    {"--filename", "the directory as the argument; files in it are made and removed"},
    {"--bs", "nothing: blocks are 8 KiB, and 1 MiB one after the other"},
    {"--iodepth", "nothing: 1 and 32 are both measured"},
    {"--direct", "nothing: the page cache is always gone past where that can be"},
    {"--output", "--json"},
    {NULL, NULL},
};

static const struct opt_command probe_command = {
    .name = "probe",
    .usage = "PATH | VOLUME",
    .summary = "measure what the storage under a directory can give a database",
    .example = "prony probe /var/lib/postgresql\n"
               "prony probe loop:size=4G,fs=xfs --time 60s --json probe.json",
    .rows = rows,
    .peers = peers,
    .min_args = 1,
    .max_args = 1,
};

// Everything one probe holds open.
struct probe_door {
    struct probe_options options;
    struct leftovers *leftovers;
    struct volumes_one volume;
    FILE *json;
    bool json_made; // there was no such file
    char *command;
    struct probe_result *result;
    struct storage place;
    struct kvs environment;
};

static int measure(struct probe_door *door, const char *path, volatile sig_atomic_t *stop,
                   struct err *err)
{
    const struct probe_options *o = &door->options;
    struct progress progress = {.quiet = o->quiet};
    char dir[PATH_MAX];
    uint64_t seed = 0;

    if (!path[0])
        return err_set(err, ERR_USAGE,
                       "the path is empty: name a directory on the storage to probe");
    if (!volume_is_text(path) && !realpath(path, dir))
        return err_set(err, ERR_USAGE, "%s: %s; name a directory on the storage to probe", path,
                       strerror(errno));
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint64_t)clock_real_ns();
    if (leftovers_open(&door->leftovers, err) < 0)
        return -1;
    if (volumes_open(&door->volume, volume_is_text(path) ? path : NULL, "probe", &o->volumes,
                     door->leftovers, stop, err) < 0)
        return -1;
    if (door->volume.volume) {
        if (volume_up(door->volume.volume, err) < 0)
            return -1;
        snprintf(dir, sizeof(dir), "%s", volume_path(door->volume.volume));
    }
    struct probe_wish wish = {
        .dir = dir,
        .time_ns = o->time_ns,
        .bytes = o->bytes,
        .io = io_names[o->io],
        .seed = seed,
        .leftovers = door->leftovers,
        .stop = stop,
        .tick = progress_probe_tick,
        .arg = &progress,
    };
    int rc = probe_run(&wish, &door->result, err);
    progress_end(&progress);
    return rc;
}

static void look_around(struct probe_door *door, int argc, char **argv)
{
    struct str command = STR_INIT;

    str_add(&command, "prony ");
    text_add_command(&command, argc, argv);
    door->command = str_detach(&command);
    storage_describe(door->result->dir, &door->place);
    host_record(&door->environment);
    if (door->volume.volume)
        volume_record(door->volume.volume, "volume.place", &door->environment);
    storage_record(&door->place, "place", &door->environment);
}

static int tell(struct probe_door *door)
{
    const struct probe_options *o = &door->options;
    struct report_probe report = {
        .probe = door->result,
        .place = &door->place,
        .environment = &door->environment,
        .version = PRONY_VERSION,
        .command = door->command,
    };
    struct err err = ERR_INIT;
    int status = 0;

    if (!o->quiet && door->json != stdout) {
        struct report_style style = report_style_for(stdout);
        report_probe_text(&report, &style, stdout);
    }
    if (door->json) {
        cmd_empty_output(door->json);
        if (report_probe_json(&report, door->json) < 0)
            status = 1;
        FILE *file = door->json;
        door->json = NULL;
        if (cmd_close_output(file, o->json, &err) < 0) {
            status = cmd_fail(&err);
            if (door->json_made) // half a document helps nobody
                unlink(o->json);
        }
    }
    return cmd_finish_output(status);
}

static void release(struct probe_door *door)
{
    struct str report = STR_INIT;

    volumes_close(&door->volume, &report);
    if (door->leftovers)
        leftovers_close(door->leftovers, &report);
    if (report.len)
        fprintf(stderr, "prony: not everything could be undone:\n%s", report.buf);
    str_release(&report);
    if (door->json && door->json != stdout) {
        fclose(door->json);
        if (door->json_made)
            unlink(door->options.json); // it was never written
    }
    probe_free(door->result);
    kvs_release(&door->environment);
    free(door->command);
    opt_release(rows, &door->options);
}

static int probe_main(int argc, char **argv)
{
    struct probe_door door = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;

    if (cmd_parse(&probe_command, argc, argv, &door.options, args, &status) < 0)
        goto out;
    cmd_clean_leftovers();
    volatile sig_atomic_t *stop = cmd_catch_signals();
    if (door.options.json) {
        door.json = cmd_open_output(door.options.json, &door.json_made, &err);
        if (!door.json) {
            status = cmd_fail(&err);
            goto out;
        }
    }
    if (measure(&door, args[0], stop, &err) < 0) {
        status = cmd_fail(&err);
        goto out;
    }
    look_around(&door, argc, argv);
    status = tell(&door);
out:
    release(&door);
    free(args);
    return status;
}

const struct command command_probe = {&probe_command, probe_main};
