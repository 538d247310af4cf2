#include "server/prepare.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/units.h"
#include "server/child.h"
#include "server/find.h"
#include "server/tune.h"

#define WORDS_MAX 65536 // of a program that failed

void prepare_say(const struct server *server, const char *fmt, ...)
{
    struct str line = STR_INIT;
    va_list ap;

    if (!server->options.say)
        return;
    va_start(ap, fmt);
    str_vaddf(&line, fmt, ap);
    va_end(ap);
    server->options.say(server->options.say_arg, line.buf);
    str_release(&line);
}

// ---- found

static int check_purpose(const struct server *server, struct err *err)
{
    const struct server_wish *wish = &server->wish;
    const char *name = wish->kind->name;

    if (server->options.purpose == SERVER_FOR_INIT && !wish->data)
        return err_set(
            err, ERR_USAGE,
            "%s is a private server that ends with the command, and its data with it: "
            "name where the data shall stay, as in server:%s?data=DIR; `prony run` fills "
            "a private one by itself",
            wish->display, name);
    if (server->options.purpose == SERVER_FOR_CHECK && !wish->data && !wish->from)
        return err_set(err, ERR_USAGE,
                       "%s holds nothing to check: name its data directory, as in "
                       "server:%s?data=DIR",
                       wish->display, name);
    return 0;
}

// Where a volume is, if there is one, else what the text says.
static int place_of_volume(const char *key, const char *dir, const char *text, char out[PATH_MAX],
                           struct err *err)
{
    if (!dir)
        return place_of_text(key, text, out, err);
    snprintf(out, PATH_MAX, "%s", dir);
    return 0;
}

// It was made by what this target says, though by another run.
static int check_restored(const struct server *server, const char *dir, struct err *err)
{
    if (server->state == PLACE_EXISTING)
        return place_check_idle(server->wish.kind, server->plan.data, err);
    return err_set(err, ERR_FAILED, "the restored state in %s holds no data directory of %s", dir,
                   server->wish.kind->title);
}

static int find_data(struct server *server, struct err *err)
{
    const struct server_kind *kind = server->wish.kind;
    char given[PATH_MAX], path[PATH_MAX];

    server->state = PLACE_NEW;
    if (!server->wish.data && !server->options.data_dir)
        return 0;
    if (place_of_volume("data", server->options.data_dir, server->wish.data, given, err) < 0 ||
        place_find_data(kind, given, path, &server->state, err) < 0)
        return -1;
    server->plan.data = mem_strdup(path);
    if (server->state == PLACE_NEW && server->options.purpose == SERVER_FOR_CHECK &&
        !server->wish.from)
        return err_set(err, ERR_USAGE, "data=%s: there is no data directory of %s to check", given,
                       kind->title);
    if (server->options.is_restored)
        return check_restored(server, given, err);
    if (server->state == PLACE_NEW)
        return 0;
    if (server->wish.from)
        return err_set(
            err, ERR_USAGE,
            "data=%s is a data directory already, and from= would replace it: name a new "
            "one, or leave from= away",
            path);
    if (server->wish.n_make_args)
        return err_set(err, ERR_USAGE,
                       "initdb= is for making a data directory, and %s is one: leave it away",
                       path);
    return place_check_idle(kind, path, err);
}

// Where the places of a state are now; the data directory may think of others.
static int find_restored_log(struct server *server, struct err *err)
{
    const char *dir = server->options.log_dir;
    struct stat st;

    if (!dir)
        return 0;
    server->plan.log = mem_printf("%s/%s-log", dir, server->wish.kind->name);
    if (stat(server->plan.log, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, ERR_FAILED, "the restored state in %s holds no log of %s", dir,
                   server->wish.kind->title);
}

static int find_log(struct server *server, struct err *err)
{
    const struct server_kind *kind = server->wish.kind;
    char given[PATH_MAX], path[PATH_MAX];

    if (server->options.is_restored)
        return find_restored_log(server, err);
    if (!server->wish.log) {
        if (server->state == PLACE_EXISTING && !kind->log_of(server->plan.data, path))
            return err_set(err, ERR_USAGE,
                           "the redo log of %s is not inside it: say with log= where it is",
                           server->plan.data);
        return 0;
    }
    if (place_of_volume("log", server->options.log_dir, server->wish.log, given, err) < 0 ||
        place_find_log(kind, given, server->plan.data, server->state, path, err) < 0)
        return -1;
    if (server->plan.data && strcmp(path, server->plan.data) == 0)
        return err_set(err, ERR_USAGE, "log=%s: this is the data directory", path);
    server->plan.log = mem_strdup(path);
    return 0;
}

static int find_source(struct server *server, struct err *err)
{
    char path[PATH_MAX], log[PATH_MAX];

    if (!server->wish.from)
        return 0;
    if (place_find_source(server->wish.kind, server->wish.from, path, log, err) < 0)
        return -1;
    server->from = mem_strdup(path);
    server->from_log = mem_strdup(log);
    server->plan.is_copy = true;
    return 0;
}

int prepare_find(struct server *server, struct err *err)
{
    const struct server_kind *kind = server->wish.kind;
    char version[16] = "";

    server->plan.kind = kind;
    server->plan.wish = &server->wish;
    if (check_purpose(server, err) < 0 || find_data(server, err) < 0 || find_log(server, err) < 0 ||
        find_source(server, err) < 0)
        return -1;
    bool exists = server->state == PLACE_EXISTING;
    const char *there = exists ? server->plan.data : server->from;
    if (there)
        kind->version_of(there, version, sizeof(version));
    return find_programs(&server->plan, version, err) < 0 ||
                   account_choose(&server->account, kind, server->wish.user,
                                  exists ? server->plan.data : NULL, err) < 0
               ? -1
               : 0;
}

// ---- settings

static int64_t free_bytes(const char *path)
{
    struct statvfs vfs;

    return statvfs(path, &vfs) == 0 ? (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize : -1;
}

// The machine's memory, or what a container of it may use.
static int64_t memory_bytes(void)
{
    static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    int64_t bytes = units_ram_bytes();

    for (size_t i = 0; i < ARR_LEN(limits); i++) {
        char line[32] = "";
        int64_t limit;
        FILE *file = fopen(limits[i], "re");
        if (!file)
            continue;
        if (fgets(line, sizeof(line), file))
            line[strcspn(line, "\n")] = '\0';
        fclose(file);
        if (units_parse_int(line, &limit, NULL) == 0 && limit > 0 && limit < bytes) // not "max"
            bytes = limit;
    }
    return bytes;
}

static int64_t count_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

// The tuning first, then room for the clients, then the user's, who has the last word.
static void choose_settings(struct server *server)
{
    struct server_plan *plan = &server->plan;
    const struct kvs *typed = &server->wish.settings;
    struct kvs proposed = KVS_INIT;

    if (server->options.tune == SERVER_TUNE_OLTP) {
        struct tune_input input = {
            .ram_bytes = memory_bytes(),
            .cpus = count_cpus(),
            .clients = server->options.clients,
            .log_free_bytes = free_bytes(plan->log ? plan->log : plan->data),
        };
        plan->kind->tune(&input, &proposed);
    } else if (server->options.clients + 10 > plan->kind->max_connections) {
        kvs_addf(&proposed, "max_connections", "%lld", (long long)server->options.clients + 20);
    }
    for (size_t i = 0; i < proposed.n; i++)
        if (!settings_have(typed, proposed.items[i].key))
            kvs_add(&plan->settings, proposed.items[i].key, proposed.items[i].value);
    plan->n_proposed = plan->settings.n;
    kvs_copy(&plan->settings, typed);
    kvs_release(&proposed);
}

static void say_some_settings(const struct server *server, const char *what, size_t from, size_t to)
{
    const struct kv *items = server->plan.settings.items;
    struct str text = STR_INIT;

    for (size_t i = from; i < to; i++) {
        str_addf(&text, "%s%s=", i > from ? ", " : "", items[i].key);
        text_add_redacted(&text, items[i].value);
    }
    if (text.len)
        prepare_say(server, "  %-6s %s", what, text.buf);
    str_release(&text);
}

static void say_settings(const struct server *server)
{
    const struct server_plan *plan = &server->plan;
    bool tuned = server->options.tune != SERVER_TUNE_NONE;

    if (tuned)
        say_some_settings(server, "tune", 0, plan->n_proposed);
    say_some_settings(server, "set", tuned ? plan->n_proposed : 0, plan->settings.n);
}

static int write_file(const struct server *server, const char *name, const char *text,
                      struct err *err)
{
    char *path = mem_printf("%s/%s", server->plan.run, name);
    size_t len = strlen(text);
    int rc = 0;

    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len ||
        (server->account.changes && fchown(fd, server->account.uid, server->account.gid) < 0))
        rc = err_set(err, ERR_FAILED, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

static int write_settings(const struct server *server, struct err *err)
{
    const struct server_kind *kind = server->wish.kind;
    struct str text = STR_INIT;

    kind->settings_text(&server->plan, &text);
    int rc = write_file(server, kind->settings_file, text.buf, err);
    if (rc == 0 && kind->second_file)
        rc = write_file(server, kind->second_file, kind->second_text, err);
    str_release(&text);
    return rc;
}

// ---- made

static int make_directories(struct server *server, struct err *err)
{
    struct server_plan *plan = &server->plan;
    struct leftovers *lo = server->options.leftovers;
    const struct account *account = &server->account;
    char path[PATH_MAX];

    server->run_id = place_make_run(lo, account, plan->kind->socket, path, err);
    if (server->run_id < 0)
        return -1;
    plan->run = mem_strdup(path);
    server->log_file = mem_printf("%s/server.log", plan->run);
    if (server->state == PLACE_EXISTING)
        return account_can_enter(account, plan->data, err);
    if (plan->data) {
        server->data_id = place_make(lo, account, plan->data, err);
    } else {
        server->data_id = place_make_temporary(lo, account, path, err);
        plan->data = server->data_id < 0 ? NULL : mem_strdup(path);
    }
    if (server->data_id < 0)
        return -1;
    if (plan->log)
        server->log_id = place_make(lo, account, plan->log, err);
    return server->log_id < 0 ? -1 : 0;
}

// A program that failed has said why; what it was given is the user's when he gave something.
static int say_failure(const struct server *server, const char *log_path, bool by_user,
                       struct str *words, struct err *err)
{
    struct str log = STR_INIT, fault = STR_INIT;

    child_read_log(log_path, WORDS_MAX, &log);
    child_fault(server->wish.kind, log.buf, &fault);
    if (fault.len) {
        char *what = mem_strdup(err->text);
        err_set(err, by_user ? ERR_USAGE : ERR_FAILED, "%s: %s", what, fault.buf);
        free(what);
    }
    if (strchr(log.buf, '\n') && strchr(log.buf, '\n')[1]) // more than that line
        str_add(words, log.buf);
    str_release(&log);
    str_release(&fault);
    return -1;
}

static int run_all(struct server *server, const struct commands *commands,
                   const struct account *account, bool by_user, struct str *words, struct err *err)
{
    char *log_path = mem_printf("%s/make.log", server->plan.run);
    int rc = 0;

    for (size_t i = 0; i < commands->n_items && rc == 0; i++) {
        struct child child = {
            .leftovers = server->options.leftovers,
            .account = account,
            .dir = server->plan.run,
            .log_path = log_path,
            .signal_number = SIGKILL,
        };
        bool ran;
        rc = child_run(&child, &commands->items[i], server->options.stop, &ran, err);
        if (rc < 0 && ran)
            say_failure(server, log_path, by_user, words, err);
    }
    unlink(log_path);
    free(log_path);
    return rc;
}

static void add_chown(const struct server *server, const char *path, struct commands *commands)
{
    struct words *argv = commands_add(commands, "chown");

    words_add(argv, "-hR");
    words_addf(argv, "%u:%u", (unsigned)server->account.uid, (unsigned)server->account.gid);
    words_add(argv, path);
}

// The copy is made by prony's own user, who can read the source, and then given away. What is
// dirty in the page cache is written before anything is measured.
static int copy_data(struct server *server, struct str *words, struct err *err)
{
    const struct server_plan *plan = &server->plan;
    struct commands commands = {0};

    prepare_say(server, "  copy   %s to %s%s", server->from, plan->data,
                server->wish.data ? "" : ", removed at the end");
    plan->kind->plan_copy(plan, server->from, server->from_log, &commands);
    if (server->account.changes) {
        add_chown(server, plan->data, &commands);
        if (plan->log)
            add_chown(server, plan->log, &commands);
    }
    int rc = run_all(server, &commands, NULL, true, words, err);
    commands_release(&commands);
    int fd = rc == 0 ? open(plan->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)syncfs(fd);
        close(fd);
    }
    return rc;
}

static int make_data(struct server *server, struct str *words, struct err *err)
{
    const struct server_plan *plan = &server->plan;
    struct commands commands = {0};
    struct words argv = {0};

    plan->kind->plan_make(plan, &argv);
    const char *name = strrchr(argv.items[0], '/');
    prepare_say(server, "  make   %s%s%s with %s%s", plan->data, plan->log ? ", log " : "",
                plan->log ? plan->log : "", name ? name + 1 : argv.items[0],
                server->wish.data ? "" : ", removed at the end");
    *ARR_PUSH(commands.items, commands.n_items, commands.cap_items) = argv;
    bool by_user = server->wish.n_make_args > 0 || server->wish.settings.n > 0;
    int rc = run_all(server, &commands, &server->account, by_user, words, err);
    commands_release(&commands);
    return rc;
}

int prepare_make(struct server *server, struct str *words, struct err *err)
{
    const struct server_kind *kind = server->plan.kind;

    if (make_directories(server, err) < 0)
        return -1;
    if (server->options.is_restored && server->plan.log && kind->relink &&
        kind->relink(&server->plan, err) < 0)
        return -1;
    choose_settings(server);
    if (write_settings(server, err) < 0)
        return -1;
    if (server->from && copy_data(server, words, err) < 0)
        return -1;
    if (!server->from && server->state == PLACE_NEW && make_data(server, words, err) < 0)
        return -1;
    say_settings(server);
    return 0;
}
