// prony vdisk serve, up, down. `serve` owns what it made and takes it down at its end; what `up`
// made stays until `down` or `stop`.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/leftovers.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sudo.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/vdisk_call.h"
#include "volume/vdisk.h"
#include "volume/vdisk_control.h"

#define RECORD_NS (600 * NS_PER_S) // the contents of all disks are its base

// A path that means the same from another directory. The last part need not be there.
char *vdisk_whole_path(const char *path)
{
    char *given = mem_strdup(path);
    size_t n = strlen(given);

    while (n > 1 && given[n - 1] == '/')
        given[--n] = '\0';
    char *slash = strrchr(given, '/');
    const char *parent = !slash ? "." : slash == given ? "/" : given;
    if (slash && slash != given)
        *slash = '\0';
    char *dir = realpath(parent, NULL);
    const char *last = slash ? slash + 1 : given;
    char *whole =
        dir ? mem_printf("%s%s%s", dir, strcmp(dir, "/") == 0 ? "" : "/", last) : mem_strdup(path);
    free(dir);
    free(given);
    return whole;
}

struct wanted {
    char *name;
    struct vdisk_spec spec;
    char device[VDISK_DEVICE_MAX];
};

static void wanted_free(struct wanted *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(wanted[i].name);
        vdisk_spec_release(&wanted[i].spec);
    }
    free(wanted);
}

static int read_disks(const struct opt_list *list, struct wanted *wanted, struct err *err)
{
    if (list->n == 0)
        return err_set(err, ERR_USAGE, "serve needs a disk: --disk data:size=1G");
    for (size_t i = 0; i < list->n; i++) {
        const char *colon = strchr(list->items[i], ':');
        vdisk_spec_init(&wanted[i].spec);
        if (!colon)
            return err_set(err, ERR_USAGE, "--disk %s: must be NAME:KEY=VALUE,...", list->items[i]);
        wanted[i].name = mem_strndup(list->items[i], (size_t)(colon - list->items[i]));
        if (vdisk_name_check(wanted[i].name, err) < 0 ||
            vdisk_spec_parse(&wanted[i].spec, colon + 1, false, err) < 0)
            return err_prefix(err, "--disk %s", wanted[i].name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(wanted[k].name, wanted[i].name) == 0)
                return err_set(err, ERR_USAGE, "--disk %s is given twice", wanted[i].name);
        if (wanted[i].spec.media) {
            char *path = vdisk_whole_path(wanted[i].spec.media); // the daemon is elsewhere
            free(wanted[i].spec.media);
            wanted[i].spec.media = path;
        }
    }
    return 0;
}

// A line of news: serve says them on stdout, up on stderr, for its stdout is the device alone.
static void say(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(FILE *out, const char *fmt, ...)
{
    struct str text = STR_INIT, safe = STR_INIT;
    va_list args;

    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    text_add_safe(&safe, text.buf);
    fprintf(out, "%s\n", safe.buf);
    str_release(&text);
    str_release(&safe);
}

static void say_disk(FILE *out, const struct wanted *wanted, char *marks)
{
    struct str spec = STR_INIT;
    char *line;

    vdisk_spec_print(&wanted->spec, &spec);
    say(out, "disk %s: %s, %s", wanted->name, wanted->device, spec.buf);
    while ((line = strsep(&marks, "\n")) && *line)
        say(out, "disk %s: %s", wanted->name, line);
    str_release(&spec);
}

// The path is the same for all.
static int set_floors(const struct call *c, const struct wanted *wanted, size_t n, FILE *out)
{
    int64_t floor_ns[VDISK_OPS];
    char text[3][UNITS_MAX];
    struct str marks = STR_INIT;
    int status = vdisk_measure_floor(c->dir, floor_ns, c->err);

    if (status == 0)
        say(out, "floor of the path: read %s, write %s, flush %s (subtracted)",
            units_format_duration(floor_ns[VDISK_READ], text[0]),
            units_format_duration(floor_ns[VDISK_WRITE], text[1]),
            units_format_duration(floor_ns[VDISK_FLUSH], text[2]));
    for (size_t i = 0; i < n && status == 0; i++) {
        str_clear(&marks);
        status = vdisk_check_floor(&wanted[i].spec, floor_ns, &marks, c->err);
        if (status < 0)
            err_prefix(c->err, "--disk %s", wanted[i].name);
        else
            status = vdisk_set_floor(c->dir, wanted[i].name, floor_ns, c->err);
        if (status == 0)
            say_disk(out, &wanted[i], marks.buf);
    }
    str_release(&marks);
    return status;
}

int vdisk_record(const struct call *c, const char *file)
{
    char *path = vdisk_whole_path(file);
    char *command = mem_printf("record %s", path);
    int status = vdisk_command(c->dir, command, RECORD_NS, NULL, NULL, c->err);

    if (status == 0)
        sudo_give_path(path);
    free(command);
    free(path);
    return status;
}

// Until a signal, or the end of the daemon by `prony vdisk stop` (0) or by itself (1).
static int wait_for_end(const struct call *c, int pid, volatile sig_atomic_t *signals)
{
    struct pollfd end = {.fd = pidfd_open(pid, 0), .events = POLLIN};

    if (end.fd < 0)
        return err_set(c->err, ERR_FAILED, "the daemon has ended at once");
    while (*signals == 0 && poll(&end, 1, 200) <= 0)
        ;
    bool has_ended = poll(&end, 1, 0) > 0;
    close(end.fd);
    if (*signals || !has_ended)
        return 0;
    // `stop` takes the directory away, one that died leaves it.
    for (int i = 0; i < 50 && access(c->dir, F_OK) == 0; i++)
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 20 * NS_PER_MS);
    if (access(c->dir, F_OK) != 0)
        return 0;
    return err_set(c->err, ERR_FAILED, "the daemon has died; whoever uses its disks gets errors");
}

// What a command made so far, listed so that it can be undone.
struct made {
    struct leftovers *lo;
    int *ids;
    size_t n_ids, cap_ids;
};

static int note(struct made *made, int id)
{
    *ARR_PUSH(made->ids, made->n_ids, made->cap_ids) = id;
    return id < 0 ? -1 : 0;
}

static int start(const struct call *c, struct made *made)
{
    char **stop = vdisk_stop_argv(c->dir);
    int status = vdisk_check_here(c->err);

    // In reverse order: all is taken down, then what is left of the directory goes.
    if (status == 0 && access(c->dir, F_OK) == 0)
        status = rmdir(c->dir) == 0
                     ? 0
                     : err_set(c->err, ERR_USAGE, "%s must be an empty directory, or not there: %s",
                               c->args[1], strerror(errno));
    if (status == 0 && (note(made, leftovers_add_tree(made->lo, c->dir, c->err)) < 0 ||
                        note(made, leftovers_add_command(made->lo, stop, c->err)) < 0))
        status = -1;
    if (status == 0)
        status = vdisk_start(c->dir, c->options->hang_ns, c->err);
    vdisk_argv_free(stop);
    return status;
}

static bool has_disk(const char *dir, const char *name)
{
    struct err none = ERR_INIT;
    char **names = vdisk_names(dir, &none);
    bool has = false;

    for (size_t i = 0; names && names[i]; i++) {
        has |= strcmp(names[i], name) == 0;
        free(names[i]);
    }
    free(names);
    return has;
}

// Lists a disk that is about to be made in a daemon of others.
static int note_disk(const struct call *c, struct made *made, const char *name)
{
    if (has_disk(c->dir, name))
        return err_set(c->err, ERR_USAGE, "there is a disk %s already", name);
    char **stop = vdisk_stop_argv(c->dir);
    char *down[] = {stop[0], stop[1], (char *)"down", stop[3], (char *)name, NULL};
    int status = note(made, leftovers_add_command(made->lo, down, c->err));
    vdisk_argv_free(stop);
    return status;
}

// Makes the disks, tells them the floor, begins the recording. is_shared: the daemon was there
// before, so what is undone is each disk.
static int bring_up(struct call *c, struct wanted *wanted, size_t n, struct made *made,
                    bool is_shared, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        if (is_shared && note_disk(c, made, wanted[i].name) < 0)
            return -1;
        if (vdisk_add(c->dir, wanted[i].name, &wanted[i].spec, wanted[i].device, c->err) == 0)
            continue;
        if (is_shared && c->err->kind == ERR_USAGE) // refused: one of that name is another's
            leftovers_drop(made->lo, made->ids[made->n_ids - 1]);
        return -1;
    }
    if (is_shared && note_disk(c, made, VDISK_FLOOR_NAME) < 0)
        return -1;
    if (set_floors(c, wanted, n, out) < 0)
        return -1;
    return c->options->log ? vdisk_record(c, c->options->log) : 0;
}

// Undoes what is listed. Returns the status to end with.
static int undo(struct call *c, struct made *made, int status)
{
    struct str report = STR_INIT;

    leftovers_close(made->lo, &report);
    if (report.len)
        fputs(report.buf, stderr);
    if (report.len && status == 0)
        status = err_set(c->err, ERR_FAILED, "not everything could be undone");
    str_release(&report);
    free(made->ids);
    return status;
}

// What serve and up begin with: nothing is made yet.
static int begin(struct call *c, struct wanted *wanted, struct made *made)
{
    if (read_disks(&c->options->disks, wanted, c->err) < 0 || vdisk_check_here(c->err) < 0)
        return -1;
    cmd_clean_leftovers();
    return leftovers_open(&made->lo, c->err);
}

int vdisk_serve(struct call *c)
{
    size_t n = c->options->disks.n;
    struct wanted *wanted = mem_calloc(n + 1, sizeof(*wanted));
    volatile sig_atomic_t *signals = cmd_catch_signals();
    struct made made = {0};
    int pid = 0, status = -1;

    if (begin(c, wanted, &made) < 0 || start(c, &made) < 0)
        goto out;
    if (bring_up(c, wanted, n, &made, false, stdout) < 0)
        goto out;
    if (vdisk_command(c->dir, "ping", 0, NULL, &pid, c->err) < 0)
        goto out;
    cmd_print_safe("ready: prony vdisk stop %s, or Ctrl-C, ends it", c->args[1]);
    status = cmd_finish_output(0);
    if (status == 0)
        status = wait_for_end(c, pid, signals);
out:
    status = undo(c, &made, status);
    wanted_free(wanted, n);
    return status;
}

static bool is_served(const char *dir)
{
    struct err none = ERR_INIT;

    return vdisk_command(dir, "ping", 0, NULL, NULL, &none) == 0;
}

// Takes one disk away, the daemon too when it was the last.
static int take_down(const char *dir, const char *name, struct err *err)
{
    char device[VDISK_DEVICE_MAX];
    // What is not there, or only half, is taken down all the same: so this can undo any `up`.
    if (!is_served(dir))
        return vdisk_stop(dir, false, err);
    int status =
        has_disk(dir, name) || vdisk_device(dir, name, device) ? vdisk_remove(dir, name, err) : 0;
    char **names = status == 0 ? vdisk_names(dir, err) : NULL;

    if (status == 0 && !names)
        status = -1;
    if (names && !names[0])
        status = vdisk_stop(dir, false, err);
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
    return status;
}

// All it prints to stdout is the device of each disk. What it made stays once all is made.
int vdisk_up(struct call *c)
{
    size_t n = c->options->disks.n;
    struct wanted *wanted = mem_calloc(n + 1, sizeof(*wanted));
    volatile sig_atomic_t *signals = cmd_catch_signals();
    struct made made = {0};
    bool is_shared = false;
    int status = -1;

    status = begin(c, wanted, &made);
    if (status < 0)
        goto out;
    is_shared = is_served(c->dir);
    if (!is_shared)
        status = start(c, &made);
    if (status == 0 && *signals == 0)
        status = bring_up(c, wanted, n, &made, is_shared, stderr);
    if (*signals) {
        if (status == 0 && is_shared && c->options->log) // what is recorded cannot be taken down
            (void)vdisk_command(c->dir, "record-end", 0, NULL, NULL, c->err);
        status = err_set(c->err, ERR_FAILED, "interrupted");
    }
    for (size_t i = 0; i < made.n_ids && status == 0; i++)
        leftovers_drop(made.lo, made.ids[i]);
    for (size_t i = 0; i < n && status == 0; i++)
        cmd_print_safe("%s", wanted[i].device);
out:
    status = undo(c, &made, status);
    wanted_free(wanted, n);
    return status;
}

int vdisk_down(struct call *c)
{
    return take_down(c->dir, c->args[2], c->err);
}
