// prony vdisk: virtual disks by hand. `serve` owns what it made and takes it down at its end; the
// other actions talk to the daemon of a directory.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/sudo.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/vdisk_call.h"
#include "volume/vdisk.h"
#include "volume/vdisk_control.h"
#include "volume/vdisk_media.h"
#include "volume/vdisk_replay.h"
#ifdef HAVE_FUSE
#include "volume/vdisk_daemon.h"
#endif

#define FORGET_NS (600 * NS_PER_S) // the two layers become one

#define AT(member) offsetof(struct vdisk_options, member)

static const struct opt_row rows[] = {
    {"disk", 0, OPT_LIST, AT(disks), .group = "serve, up", .arg = "NAME:KEY=VALUE,...",
     .help = "a disk, such as data:size=2G,model=hdd-7200 (keys: prony vdisk keys)"},
    {"log", 0, OPT_TEXT, AT(log), .arg = "FILE", .help = "records all disks from the start"},
    {"hang", 0, OPT_DURATION, AT(hang_ns), "15s", .min = 1, .max = 3600,
     .help = "a daemon that hangs so long is ended by its guard"},
    {"survivors", 0, OPT_CHOICE, AT(survivors), "drop", .group = "cut, replay",
     .choices = vdisk_survivor_names, .arg = "KIND",
     .help = "which unflushed writes survive: drop, prefix, random or keep"},
    {"seed", 0, OPT_INT, AT(seed), "1", .min = 0, .max = (double)INT64_MAX,
     .help = "chooses among them"},
    {"at", 0, OPT_INT, AT(at), "-1", .min = -1, .max = (double)INT64_MAX, .group = "replay",
     .arg = "RECORD", .help = "cuts after this record of the log; -1: the last one"},
    {"unit", 0, OPT_INT, AT(unit), "4096", .min = 0, .max = 4096,
     .help = "bytes that are whole or lost: 4096, 512 or 0 (whole writes)"},
    {"output", 'o', OPT_TEXT, AT(output), .arg = "FILE", .help = "the image to make"},
    {"share", 0, OPT_FLAG, AT(share), .group = "restore",
     .help = "FILE is not copied, but read where nothing was written since"},
    {"json", 0, OPT_FLAG, AT(json), .group = "Others", .help = "stats as JSON"},
    {"abort", 0, OPT_FLAG, AT(abort),
     .help = "stop: whoever uses the disks gets errors, whatever the daemon does"},
    {NULL},
};

static const struct opt_command vdisk_command_line = {
    .name = "vdisk",
    .usage = "serve DIR --disk NAME:KEY=VALUE,... | up DIR --disk NAME:KEY=VALUE,... | "
             "down DIR NAME | stats DIR [NAME] | cut DIR NAME|all | "
             "power DIR NAME|all | save DIR NAME [FILE] | restore DIR NAME [FILE] | "
             "forget DIR NAME | set DIR NAME|all KEY=VALUE,... | record DIR FILE|off | "
             "mark DIR TEXT | stop DIR | replay LOG NAME -o FILE | keys",
    .summary = "disks in software with a cache, a speed and a power cord",
    .example = "prony vdisk serve /run/vd --disk data:size=1G,model=hdd-7200 &",
    .rows = rows,
    .min_args = 1,
    .max_args = 4,
};

static const char *disk_arg(const struct call *c, int at)
{
    const char *name = at < c->n_args ? c->args[at] : "*";

    return strcmp(name, "all") == 0 ? "*" : name;
}

// Reads a number that belongs to a word at the start of a line.
static long long answer_number(const struct str *answer, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = answer->buf; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    }
    return -1;
}

// ---- the daemon

static int action_daemon(struct call *c)
{
#ifdef HAVE_FUSE
    return vdisk_daemon_run(c->dir, c->options->hang_ns, c->err);
#else
    return vdisk_check_here(c->err);
#endif
}

// ---- talking to it

static json_t *number_or_text(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);

    return *text && !*end ? json_integer(number) : json_string(text);
}

static void print_json(char *lines)
{
    json_t *all = json_object(), *disks = json_array(), *into = all;
    char *line;

    while ((line = strsep(&lines, "\n"))) {
        char *value = strchr(line, ' ');
        if (!value)
            continue;
        *value++ = '\0';
        if (strcmp(line, "disk") == 0) {
            into = json_object();
            json_array_append_new(disks, into);
            json_object_set_new(into, "name", json_string(value));
        } else {
            json_object_set_new(into, line, number_or_text(value));
        }
    }
    json_object_set_new(all, "disks", disks);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

static void print_lines(char *lines)
{
    bool in_disk = false;
    char *line;

    while ((line = strsep(&lines, "\n")) && *line) {
        char *value = strchr(line, ' ');
        bool heads = strncmp(line, "disk ", 5) == 0;
        if (value)
            *value++ = '\0';
        in_disk |= heads;
        if (heads)
            cmd_print_safe("disk %s", value);
        else
            cmd_print_safe("%s%-18s %s", in_disk ? "  " : "", line, value ? value : "");
    }
}

static int action_stats(struct call *c)
{
    struct str answer = STR_INIT;
    char *command = mem_printf("stats %s", disk_arg(c, 2));
    int status = vdisk_command(c->dir, command, 0, &answer, NULL, c->err);

    if (status == 0 && c->options->json)
        print_json(answer.buf);
    else if (status == 0)
        print_lines(answer.buf);
    free(command);
    str_release(&answer);
    return status;
}

static int action_cut(struct call *c)
{
    struct str answer = STR_INIT;
    int status = vdisk_cut(c->dir, disk_arg(c, 2), (enum vdisk_survivors)c->options->survivors,
                           (uint64_t)c->options->seed, &answer, c->err);

    if (status == 0)
        print_lines(answer.buf);
    str_release(&answer);
    return status;
}

static int power_one(struct call *c, const char *name)
{
    char device[VDISK_DEVICE_MAX];

    if (vdisk_power(c->dir, name, device, c->err) < 0)
        return -1;
    cmd_print_safe("disk %s: %s", name, device);
    return 0;
}

// Whether a disk is without power.
static bool is_cut(struct call *c, const char *name)
{
    char *command = mem_printf("stats %s", name);
    struct str answer = STR_INIT;
    struct err none = ERR_INIT;
    bool is = vdisk_command(c->dir, command, 0, &answer, NULL, &none) == 0 &&
              strstr(answer.buf, "\npower cut\n");

    free(command);
    str_release(&answer);
    return is;
}

static int action_power(struct call *c)
{
    const char *wanted = disk_arg(c, 2);
    int status = 0;

    if (strcmp(wanted, "*") != 0)
        return power_one(c, wanted);
    char **names = vdisk_names(c->dir, c->err);
    if (!names)
        return -1;
    for (size_t i = 0; names[i]; i++) {
        if (status == 0 && is_cut(c, names[i]))
            status = power_one(c, names[i]);
        free(names[i]);
    }
    free(names);
    return status;
}

static int action_save(struct call *c)
{
    char *path = c->n_args > 3 ? vdisk_whole_path(c->args[3]) : NULL;
    int status = vdisk_save(c->dir, c->args[2], path, c->err);

    if (status == 0 && path)
        sudo_give_path(path);
    free(path);
    return status;
}

// All it prints is the device.
static int action_restore(struct call *c)
{
    char device[VDISK_DEVICE_MAX];
    char *path = c->n_args > 3 ? vdisk_whole_path(c->args[3]) : NULL;
    int status = 0;

    if (c->options->share && !path)
        status = err_set(c->err, ERR_USAGE, "--share is for a FILE");
    if (status == 0)
        status = vdisk_restore(c->dir, c->args[2], path, c->options->share, device, c->err);
    if (status == 0)
        cmd_print_safe("%s", device);
    free(path);
    return status;
}

static int action_forget(struct call *c)
{
    char *command = mem_printf("forget %s", c->args[2]);
    int status = vdisk_command(c->dir, command, FORGET_NS, NULL, NULL, c->err);

    free(command);
    return status;
}

static int action_set(struct call *c)
{
    char *command = mem_printf("set %s %s", disk_arg(c, 2), c->args[3]);
    int status = vdisk_command(c->dir, command, 0, NULL, NULL, c->err);

    free(command);
    return status;
}

static int action_record(struct call *c)
{
    struct str answer = STR_INIT;
    int status;

    if (strcmp(c->args[2], "off") == 0) {
        status = vdisk_command(c->dir, "record-end", 0, &answer, NULL, c->err);
        if (status == 0)
            cmd_print_safe("%lld records", answer_number(&answer, "records"));
    } else {
        status = vdisk_record(c, c->args[2]);
    }
    str_release(&answer);
    return status;
}

static int action_mark(struct call *c)
{
    char *command = mem_printf("mark %s", c->args[2]);
    int status = vdisk_command(c->dir, command, 0, NULL, NULL, c->err);

    free(command);
    return status;
}

static int action_stop(struct call *c)
{
    return vdisk_stop(c->dir, c->options->abort, c->err);
}

// ---- the recording

static int action_replay(struct call *c)
{
    struct vdisk_fate fate = {.survivors = (enum vdisk_survivors)c->options->survivors,
                              .seed = (uint64_t)c->options->seed,
                              .unit = (uint32_t)c->options->unit};
    uint64_t at = c->options->at < 0 ? UINT64_MAX : (uint64_t)c->options->at;
    const char *output = c->options->output;
    struct vdisk_replay replay;
    uint16_t disk;
    int64_t size;

    if (!output)
        return err_set(c->err, ERR_USAGE, "replay needs --output FILE");
    if (fate.unit != 0 && fate.unit != 512 && fate.unit != 4096)
        return err_set(c->err, ERR_USAGE, "--unit %u: must be 4096, 512 or 0", fate.unit);
    if (vdisk_replay_find(c->args[1], c->args[2], &disk, &size, c->err) < 0)
        return -1;
    if (access(output, F_OK) == 0)
        return err_set(c->err, ERR_USAGE, "%s is there already", output);
    int fd = vdisk_media_open(output, size, c->err);
    if (fd < 0)
        return -1;
    struct vdisk_medium medium = vdisk_media_of(&fd);
    int status = vdisk_replay_disk(c->args[1], disk, at, &fate, &medium, &replay, c->err);
    if (close(fd) < 0 && status == 0)
        status = err_set(c->err, ERR_FAILED, "cannot write %s: %s", output, strerror(errno));
    if (status < 0)
        unlink(output);
    else
        cmd_print_safe("after record %" PRIu64 ": %" PRIu64 " writes pending, %" PRIu64
                       " units survived, %" PRIu64 " lost",
                       replay.last_seq, replay.cut.pending_writes, replay.cut.survived_units,
                       replay.cut.lost_units);
    return status;
}

static int action_keys(struct call *c)
{
    struct str text = STR_INIT;

    (void)c;
    vdisk_spec_describe_keys(&text);
    fputs(text.buf, stdout);
    str_release(&text);
    return 0;
}

static const struct action {
    const char *name;
    int min_args, max_args; // after the action
    int (*run)(struct call *c);
} actions[] = {
    {"serve", 1, 1, vdisk_serve},
    {"stats", 1, 2, action_stats},
    {"cut", 2, 2, action_cut},
    {"power", 2, 2, action_power},
    {"set", 3, 3, action_set},
    {"record", 2, 2, action_record},
    {"mark", 2, 2, action_mark},
    {"stop", 1, 1, action_stop},
    {"replay", 2, 2, action_replay},
    {"keys", 0, 0, action_keys},
    {"up", 1, 1, vdisk_up},
    {"down", 2, 2, vdisk_down},
    {"save", 2, 3, action_save},
    {"forget", 2, 2, action_forget},
    {"restore", 2, 3, action_restore},
    {"daemon", 1, 1, action_daemon}, // what serve starts; of no use by hand
};

static const struct action *find_action(char **args, int n_args, struct err *err)
{
    const char *names[ARR_LEN(actions) + 1] = {NULL};

    for (size_t i = 0; i < ARR_LEN(actions); i++) {
        if (strcmp(actions[i].name, args[0]) != 0)
            continue;
        if (n_args - 1 >= actions[i].min_args && n_args - 1 <= actions[i].max_args)
            return &actions[i];
        err_set(err, ERR_USAGE, "vdisk %s has the wrong number of arguments: prony vdisk --help",
                args[0]);
        return NULL;
    }
    for (size_t i = 0; i + 1 < ARR_LEN(actions); i++)
        names[i] = actions[i].name;
    text_unknown("action", args[0], names, err);
    return NULL;
}

static int vdisk_main(int argc, char **argv)
{
    struct vdisk_options options = {0};
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    struct call call = {.options = &options, .args = args, .err = &err};
    int status = 0;

    call.n_args = cmd_parse(&vdisk_command_line, argc, argv, &options, args, &status);
    if (call.n_args < 0)
        goto out;
    const struct action *action = find_action(args, call.n_args, &err);
    if (action) {
        call.dir = call.n_args > 1 ? vdisk_whole_path(args[1]) : NULL;
        (void)action->run(&call);
        free(call.dir);
    }
    status = err.kind ? cmd_fail(&err) : 0;
out:
    opt_release(rows, &options);
    free(args);
    return status ? status : cmd_finish_output(0);
}

const struct command command_vdisk = {&vdisk_command_line, vdisk_main};
