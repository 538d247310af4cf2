// The daemon's side of the commands. Everything is read into words here, at the border; what comes
// out of a command is "ok", "usage" or "failed" and a text.
#include "volume/vdisk_control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "volume/vdisk_mounts.h"
#include "volume/vdisk_serving.h"

#define LISTEN_MS 100
#define CLIENT_MS 5000

int serving_control_open(struct serving *s, struct err *err)
{
    struct sockaddr_un address;
    int dir_fd = vdisk_address(s->dir, &address, err);

    if (dir_fd < 0)
        return -1;
    s->control_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool good = s->control_fd >= 0 &&
                bind(s->control_fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
                listen(s->control_fd, 16) == 0;
    int error = errno;
    close(dir_fd);
    return good ? 0
                : err_set(err, ERR_FAILED, "cannot open the socket in %s: %s", s->dir,
                          strerror(error));
}

// ---- commands: each gets what follows its name; called with the lock held

struct command_call {
    struct serving *s;
    char *rest;
    int64_t now_ns;
    struct str *answer;
    struct err *err;
};

static char *next_word(struct command_call *c)
{
    char *word = strsep(&c->rest, " ");

    return word ? word : (char *)"";
}

// Calls with the disk of a name, or with all of "*".
static int each_disk(struct command_call *c,
                     int (*call)(struct command_call *, struct vdisk_disk *))
{
    char *name = next_word(c);
    char *rest = c->rest;
    int status = 0;

    if (strcmp(name, "*") != 0) {
        struct vdisk_disk *disk = house_find(&c->s->house, name);
        return disk ? call(c, disk) : err_set(c->err, ERR_USAGE, "there is no disk %s", name);
    }
    for (int i = 0; i < c->s->house.n_disks && status == 0; i++) {
        c->rest = rest;
        if (c->s->house.disks[i])
            status = call(c, c->s->house.disks[i]);
    }
    return status;
}

static int command_ping(struct command_call *c)
{
    str_addf(c->answer, "pid %d\n", (int)getpid());
    return 0;
}

static int command_add(struct command_call *c)
{
    struct vdisk_spec spec;
    const char *name = next_word(c);

    vdisk_spec_init(&spec);
    if (!c->rest)
        return err_set(c->err, ERR_USAGE, "add needs a name and a specification");
    if (vdisk_spec_parse(&spec, c->rest, false, c->err) < 0) {
        vdisk_spec_release(&spec);
        return -1;
    }
    return house_add(&c->s->house, name, &spec, c->now_ns, c->err);
}

static int remove_disk(struct command_call *c, struct vdisk_disk *disk)
{
    return house_remove(&c->s->house, disk, c->err);
}

static int command_remove(struct command_call *c)
{
    return each_disk(c, remove_disk);
}

static int set_floor(struct command_call *c, struct vdisk_disk *disk)
{
    int64_t floor_ns[VDISK_OPS] = {0};
    long long read_ns, write_ns, flush_ns;

    if (!c->rest || sscanf(c->rest, "%lld %lld %lld", &read_ns, &write_ns, &flush_ns) != 3)
        return err_set(c->err, ERR_USAGE, "floor needs three numbers");
    floor_ns[VDISK_READ] = read_ns;
    floor_ns[VDISK_WRITE] = write_ns;
    floor_ns[VDISK_FLUSH] = flush_ns;
    house_set_floor(disk, floor_ns);
    memset(&c->s->lateness, 0, sizeof(c->s->lateness));
    return 0;
}

static int command_floor(struct command_call *c)
{
    return each_disk(c, set_floor);
}

static int set_fault(struct command_call *c, struct vdisk_disk *disk)
{
    if (!c->rest)
        return err_set(c->err, ERR_USAGE, "set needs KEY=VALUE");
    return house_set(&c->s->house, disk, c->rest, c->now_ns, c->err);
}

static int command_set(struct command_call *c)
{
    int status = each_disk(c, set_fault);

    serving_review(c->s);
    return status;
}

static int cut_disk(struct command_call *c, struct vdisk_disk *disk)
{
    struct vdisk_fate fate = {.unit = (uint32_t)disk->spec.torn};
    const char *word = next_word(c);
    int64_t seed = 0;
    struct vdisk_cut cut;
    int kind = 0;

    while (vdisk_survivor_names[kind] && strcmp(vdisk_survivor_names[kind], word) != 0)
        kind++;
    if (!vdisk_survivor_names[kind] || !c->rest || units_parse_int(c->rest, &seed, NULL) < 0)
        return err_set(c->err, ERR_USAGE,
                       "cut needs drop, prefix, random or keep, and a whole number as seed");
    fate.survivors = (enum vdisk_survivors)kind;
    fate.seed = (uint64_t)seed;
    uint64_t seq = c->s->house.seq;
    if (house_cut(&c->s->house, disk, &fate, c->now_ns, &cut, c->err) < 0)
        return -1;
    str_addf(c->answer,
             "disk %s\nafter_record %" PRIu64 "\npending_writes %" PRIu64 "\npending_bytes %" PRIu64
             "\nsurvived_units %" PRIu64 "\nlost_units %" PRIu64 "\n",
             disk->name, seq, cut.pending_writes, cut.pending_bytes, cut.survived_units,
             cut.lost_units);
    return 0;
}

static int command_cut(struct command_call *c)
{
    int status = each_disk(c, cut_disk);

    serving_review(c->s);
    return status;
}

static int power_disk(struct command_call *c, struct vdisk_disk *disk)
{
    return house_power(&c->s->house, disk, c->now_ns, c->err);
}

static int command_power(struct command_call *c)
{
    return each_disk(c, power_disk);
}

// Whether a path lies on a disk of this daemon: writing there would wait for itself.
static bool is_on_own_disk(const struct serving *s, const char *path)
{
    char name[64], backing[4200] = "";
    struct stat st;
    char *dir = mem_strdup(path);
    char *slash = strrchr(dir, '/');
    size_t n = strlen(s->disks_dir);

    if (slash)
        *slash = '\0';
    bool known = stat(dir[0] ? dir : "/", &st) == 0;
    free(dir);
    if (!known)
        return false;
    snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/loop/backing_file", major(st.st_dev),
             minor(st.st_dev));
    FILE *file = fopen(name, "re");
    if (file) {
        if (!fgets(backing, sizeof(backing), file))
            backing[0] = '\0';
        fclose(file);
    }
    return strncmp(backing, s->disks_dir, n) == 0 && backing[n] == '/';
}

static int save_disk(struct command_call *c, struct vdisk_disk *disk)
{
    if (c->rest && c->rest[0] != '/')
        return err_set(c->err, ERR_USAGE, "save needs an absolute path");
    if (c->rest && is_on_own_disk(c->s, c->rest))
        return err_set(c->err, ERR_USAGE, "%s lies on a disk of the same daemon", c->rest);
    return house_save(&c->s->house, disk, c->rest, c->err);
}

static int command_save(struct command_call *c)
{
    return each_disk(c, save_disk);
}

static int restore_disk(struct command_call *c, struct vdisk_disk *disk)
{
    if (!c->rest)
        return house_restore(&c->s->house, disk, NULL, false, c->err);
    const char *how = next_word(c);
    bool shares = strcmp(how, "share") == 0;
    if ((!shares && strcmp(how, "copy") != 0) || !c->rest || c->rest[0] != '/')
        return err_set(c->err, ERR_USAGE, "restore needs copy or share, and an absolute path");
    if (is_on_own_disk(c->s, c->rest))
        return err_set(c->err, ERR_USAGE, "%s lies on a disk of the same daemon", c->rest);
    return house_restore(&c->s->house, disk, c->rest, shares, c->err);
}

static int command_restore(struct command_call *c)
{
    return each_disk(c, restore_disk);
}

static int forget_disk(struct command_call *c, struct vdisk_disk *disk)
{
    return house_forget(disk, c->err);
}

static int command_forget(struct command_call *c)
{
    return each_disk(c, forget_disk);
}

static int command_record(struct command_call *c)
{
    if (!c->rest || c->rest[0] != '/')
        return err_set(c->err, ERR_USAGE, "record needs an absolute path");
    if (is_on_own_disk(c->s, c->rest))
        return err_set(c->err, ERR_USAGE, "%s lies on a disk that it would record", c->rest);
    return house_record(&c->s->house, c->rest, c->now_ns, c->err);
}

static int command_record_end(struct command_call *c)
{
    if (!c->s->house.log)
        return err_set(c->err, ERR_USAGE, "no recording runs");
    str_addf(c->answer, "records %" PRIu64 "\n", vdisk_log_seq(c->s->house.log));
    return house_record_end(&c->s->house, c->err);
}

static int command_mark(struct command_call *c)
{
    return house_mark(&c->s->house, c->rest ? c->rest : "", c->now_ns, c->err);
}

static int stats_disk(struct command_call *c, struct vdisk_disk *disk)
{
    str_addf(c->answer, "disk %s\n", disk->name);
    house_stats(disk, c->now_ns, c->answer);
    return 0;
}

static int command_stats(struct command_call *c)
{
    struct serving *s = c->s;
    const struct serving_lateness *l = &s->lateness;

    str_addf(c->answer, "pid %d\nguard %d\nguard_armed %s\n", (int)getpid(), (int)s->guard,
             atomic_load(&s->watch->is_armed) ? "yes" : "no");
    str_addf(c->answer, "memory_locked %s\nprompt %s\n", s->memory_is_locked ? "yes" : "no",
             s->is_prompt ? "yes" : "no");
    str_addf(c->answer, "waiting %zu\nreplies_timed %" PRIu64 "\nlate_mean_ns %" PRId64 "\n",
             s->queue.n, l->n, l->n ? l->sum_ns / (int64_t)l->n : 0);
    str_addf(c->answer, "late_max_ns %" PRId64 "\nearly_max_ns %" PRId64 "\nlead_ns %" PRId64 "\n",
             l->max_ns, l->early_ns, s->lead_ns);
    str_addf(c->answer, "sequence %" PRIu64 "\n", s->house.seq);
    if (s->house.log)
        str_addf(c->answer, "log %s\nlog_bytes %" PRIu64 "\nlog_state %s\n", s->house.log_path,
                 vdisk_log_size(s->house.log),
                 vdisk_log_error(s->house.log) < 0 ? "broken" : "good");
    if (!c->rest)
        c->rest = (char *)"*";
    return each_disk(c, stats_disk);
}

static int command_stop(struct command_call *c)
{
    for (int i = 0; i < c->s->house.n_disks; i++) {
        const struct vdisk_disk *disk = c->s->house.disks[i];
        if (disk && disk->opens > 0)
            return err_set(c->err, ERR_FAILED,
                           "the disk %s is in use: detach its loop device first", disk->name);
    }
    return 0; // unmounting is left until the lock is free
}

static const struct {
    const char *name;
    int (*run)(struct command_call *c);
} commands[] = {
    {"ping", command_ping},   {"add", command_add},         {"remove", command_remove},
    {"floor", command_floor}, {"set", command_set},         {"stats", command_stats},
    {"cut", command_cut},     {"power", command_power},     {"record", command_record},
    {"mark", command_mark},   {"stop", command_stop},       {"record-end", command_record_end},
    {"save", command_save},   {"restore", command_restore}, {"forget", command_forget},
};

// The dead are marked before the lock is waited for: else a busy disk would always be cut just
// after a flush, and what is unsafe would look safe.
static void mark_dead(struct serving *s, const char *rest)
{
    size_t n = strcspn(rest, " ");

    for (int i = 0; i < s->house.n_disks; i++) {
        struct vdisk_disk *disk = s->house.disks[i]; // only this thread adds and removes
        bool meant = disk && ((n == 1 && rest[0] == '*') ||
                              (strncmp(disk->name, rest, n) == 0 && disk->name[n] == '\0'));
        if (meant)
            atomic_store(&disk->dead, true);
    }
}

static bool is_good_cut(const char *rest)
{
    char word[16], end;
    long long seed;

    if (sscanf(rest, "%*31s %15s %lld%c", word, &seed, &end) != 2)
        return false;
    for (int i = 0; vdisk_survivor_names[i]; i++)
        if (strcmp(vdisk_survivor_names[i], word) == 0)
            return true;
    return false;
}

static int obey(struct serving *s, char *text, struct str *answer, struct err *err)
{
    struct command_call c = {.s = s, .rest = text, .answer = answer, .err = err};
    const char *name = next_word(&c);
    size_t i = 0;

    while (i < ARR_LEN(commands) && strcmp(commands[i].name, name) != 0)
        i++;
    if (i == ARR_LEN(commands))
        return err_set(err, ERR_USAGE, "unknown command %s", name);
    if (commands[i].run == command_cut && c.rest && is_good_cut(c.rest))
        mark_dead(s, c.rest);
    pthread_mutex_lock(&s->lock);
    c.now_ns = clock_now_ns(&clock_system);
    int status = commands[i].run(&c);
    pthread_mutex_unlock(&s->lock);
    if (status == 0 && commands[i].run == command_stop && umount2(s->disks_dir, 0) < 0)
        return err_set(err, ERR_FAILED, "cannot unmount %s: %s", s->disks_dir, strerror(errno));
    return status;
}

static bool may_command(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

static void serve_client(struct serving *s, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char text[VDISK_COMMAND_MAX + 1];
    struct str answer = STR_INIT, whole = STR_INIT;
    struct err err = ERR_INIT;

    if (!may_command(fd) || poll(&ready, 1, CLIENT_MS) <= 0)
        goto out;
    ssize_t n = recv(fd, text, VDISK_COMMAND_MAX, MSG_DONTWAIT);
    if (n <= 0)
        goto out;
    text[n] = '\0';
    if (obey(s, text, &answer, &err) == 0)
        str_addf(&whole, "ok\n%s", answer.buf);
    else
        str_addf(&whole, "%s\n%s", err.kind == ERR_USAGE ? "usage" : "failed", err.text);
    if (whole.len > VDISK_ANSWER_MAX)
        whole.len = VDISK_ANSWER_MAX;
    (void)send(fd, whole.buf, whole.len, MSG_NOSIGNAL | MSG_DONTWAIT);
out:
    str_release(&answer);
    str_release(&whole);
}

void *serving_control_thread(void *context)
{
    struct serving *s = context;
    struct pollfd ready = {.fd = s->control_fd, .events = POLLIN};

    while (!atomic_load(&s->control_ends)) {
        if (poll(&ready, 1, LISTEN_MS) <= 0)
            continue;
        int fd = accept4(s->control_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        serve_client(s, fd);
        close(fd);
    }
    return NULL;
}
