// The life of a server: prepared, started, watched until it takes connections, stopped, undone.
#include "server/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/sudo.h"
#include "base/text.h"
#include "base/units.h"
#include "db/db.h"
#include "server/child.h"
#include "server/kind.h"
#include "server/prepare.h"

#define STOP_NS    (600 * NS_PER_S) // what is dirty has to be written
#define KILLED_NS  (10 * NS_PER_S)
#define PROBE_NS   (30 * NS_PER_MS)
#define PATIENT_NS (5 * NS_PER_S) // then it is said that one waits
#define TAIL_MAX   4096           // of the server's log, in the store
#define WORDS_MAX  65536          // of it, on the terminal

static const char *const stop_names[] = {"", "fast", "immediate", "kill"};

const char *server_url(const struct server *server)
{
    return server->url;
}

const char *server_display(const struct server *server)
{
    return server->wish.display;
}

bool server_is_temporary(const struct server *server)
{
    return (!server->wish.data && !server->options.data_dir) || server->options.data_goes;
}

bool server_is_alive(const struct server *server)
{
    return server->pid > 0 && proc_is_alive(server->pid, server->start_ticks);
}

const char *server_socket(const struct server *server)
{
    return server->socket;
}

const char *server_data(const struct server *server)
{
    return server->plan.data;
}

int64_t server_pid(const struct server *server)
{
    return server->pid;
}

void server_keep(struct server *server)
{
    if (server_is_temporary(server) || server->kept)
        return;
    server->kept = true;
    if (server->log_id > 0)
        leftovers_drop(server->options.leftovers, server->log_id);
    if (server->data_id > 0)
        leftovers_drop(server->options.leftovers, server->data_id);
    server->log_id = server->data_id = 0;
}

// ---- start

static bool is_interrupted(const struct server *server)
{
    return server->options.stop && *server->options.stop > 0;
}

// It ended before it took connections: its own words are the message.
static int say_death(const struct server *server, struct str *words, struct err *err)
{
    struct str log = STR_INIT, fault = STR_INIT;
    enum err_kind kind = server->wish.settings.n ? ERR_USAGE : ERR_FAILED;

    child_read_log(server->log_file, WORDS_MAX, &log);
    child_fault(server->wish.kind, log.buf, &fault);
    err_set(err, kind, "%s did not start: %s", server->wish.display,
            fault.len ? fault.buf : "it ended without a word");
    if (words && strchr(log.buf, '\n') && strchr(log.buf, '\n')[1])
        str_add(words, log.buf);
    str_release(&log);
    str_release(&fault);
    return -1;
}

static int start_process(struct server *server, struct err *err)
{
    const struct server_kind *kind = server->wish.kind;
    struct words argv = {0};
    // After kill -9 of prony: at once where that is in order, for nobody waits for a checkpoint.
    struct child child = {
        .leftovers = server->options.leftovers,
        .registry_lock = server->registry_lock,
        .account = &server->account,
        .dir = server->plan.run,
        .log_path = server->log_file,
        .signal_number = kind->signals[SIGNAL_IMMEDIATE],
    };

    kind->plan_start(&server->plan, &argv);
    int rc = child_start(&child, &argv, err);
    words_release(&argv);
    if (rc < 0)
        return rc;
    server->pid = child.pid;
    server->start_ticks = child.start_ticks;
    server->process_id = child.id;
    return 0;
}

// One look whether it takes connections: 1 yes, 0 not yet, -1 it does, and refuses us.
static int probe(struct db_target *target, struct db_session **session, struct err *err)
{
    struct db_result result;
    enum db_class class = db_connect(target, -1, session, &result);

    if (class == DB_OK)
        return 1;
    if (db_class_is_lost(class))
        return 0;
    return err_set(err, ERR_USAGE, "the server is there and lets nobody in: %s (role=, database=)",
                   result.message);
}

static int wait_ready(struct server *server, struct db_target *target, struct db_session **session,
                      struct str *words, struct err *err)
{
    int64_t begin_ns = clock_now_ns(&clock_system);
    bool told = false;
    char text[UNITS_MAX];

    for (;;) {
        bool worth =
            !server->plan.kind->is_up || server->plan.kind->is_up(server->plan.data, server->pid);
        int rc = worth ? probe(target, session, err) : 0;
        if (rc != 0)
            return rc > 0 ? 0 : -1;
        if (!server_is_alive(server))
            return say_death(server, words, err);
        if (is_interrupted(server))
            return err_set(err, ERR_FAILED, "interrupted");
        int64_t now_ns = clock_now_ns(&clock_system);
        if (now_ns - begin_ns > server->wish.wait_ns) {
            child_read_log(server->log_file, WORDS_MAX, words);
            return err_set(err, ERR_FAILED,
                           "%s takes no connections after %s: give it more time with wait=, or "
                           "look at what it says",
                           server->wish.display, units_format_duration(server->wish.wait_ns, text));
        }
        if (!told && now_ns - begin_ns > PATIENT_NS) {
            prepare_say(server, "  wait   it takes no connections yet (Ctrl-C ends the waiting)");
            told = true;
        }
        clock_sleep_until_ns(&clock_system, now_ns + PROBE_NS);
    }
}

static int make_database(const struct server *server, struct db_session *session, struct err *err)
{
    const struct server_wish *wish = &server->wish;
    struct db_result result;
    struct str sql = STR_INIT;

    if (!wish->kind->creates_database)
        return 0;
    str_add(&sql, "CREATE DATABASE IF NOT EXISTS `");
    for (const char *p = wish->database ? wish->database : wish->kind->database; *p; p++)
        str_addf(&sql, *p == '`' ? "``" : "%c", *p);
    str_addc(&sql, '`');
    enum db_class class = db_query(session, sql.buf, false, &result);
    str_release(&sql);
    return class == DB_OK ? 0 : err_set(err, ERR_FAILED, "%s", result.message);
}

// Starts the process and waits until a session can be had.
static int bring_up(struct server *server, struct str *words, struct err *err)
{
    struct db_open_options options = {.clock = &clock_system, .protocol = DB_SIMPLE};
    struct db_target *target = NULL;
    struct db_session *session = NULL;
    struct str url = STR_INIT;
    int64_t begin_ns = clock_now_ns(&clock_system);
    char text[UNITS_MAX];

    server->wish.kind->url(&server->plan, false, &url);
    int rc = db_open(&target, url.buf, &options, err);
    if (rc == 0)
        rc = start_process(server, err);
    if (rc == 0)
        rc = wait_ready(server, target, &session, words, err);
    if (rc == 0)
        rc = make_database(server, session, err);
    if (rc == 0)
        prepare_say(server, "  ready  after %s, socket in %s",
                    units_format_duration(clock_now_ns(&clock_system) - begin_ns, text),
                    server->plan.run);
    db_disconnect(session);
    db_close(target);
    str_release(&url);
    return rc;
}

int server_start(struct server **ret, const char *url, const struct server_options *options,
                 struct str *words, struct err *err)
{
    struct server *server = mem_calloc(1, sizeof(*server));
    struct str text = STR_INIT;

    assert(options->leftovers && server_is_target(url));
    server->options = *options;
    if (server_wish_parse(&server->wish, url, err) < 0 || prepare_find(server, err) < 0)
        goto failed;
    prepare_say(server, "starting %s", server->wish.display);
    prepare_say(server, "  server %s %s, %s%s%s", server->wish.kind->title, server->plan.version,
                server->plan.programs[0], server->account.changes ? ", as user " : "",
                server->account.changes ? server->account.name : "");
    if (prepare_make(server, words, err) < 0 || bring_up(server, words, err) < 0)
        goto failed;
    server->wish.kind->url(&server->plan, true, &text);
    server->url = str_detach(&text);
    server->socket = server->plan.kind->names_directory
                         ? mem_strdup(server->plan.run)
                         : mem_printf("%s/%s", server->plan.run, server->plan.kind->socket);
    *ret = server;
    return 0;
failed:
    server_close(server, false, words);
    return -1;
}

// ---- stop

static enum server_stop way_to_stop(const struct server *server)
{
    bool stays = (server->kept || server->state == PLACE_EXISTING) && !server->options.data_goes;

    if (server->wish.stop != SERVER_STOP_UNSET)
        return server->wish.stop;
    return stays ? SERVER_STOP_FAST : SERVER_STOP_IMMEDIATE;
}

// In order, with time for what has to be written; a second Ctrl-C does not wait for it.
static void ask_to_stop(const struct server *server, enum server_stop way)
{
    const int *signals = server->wish.kind->signals;
    int number = signals[way == SERVER_STOP_FAST        ? SIGNAL_FAST
                         : way == SERVER_STOP_IMMEDIATE ? SIGNAL_IMMEDIATE
                                                        : SIGNAL_KILL];
    int64_t until_ns =
        clock_now_ns(&clock_system) + (way == SERVER_STOP_FAST ? STOP_NS : KILLED_NS);

    if (number != SIGKILL)
        (void)proc_signal(server->pid, server->start_ticks, number);
    while (number != SIGKILL && server_is_alive(server) && clock_now_ns(&clock_system) < until_ns &&
           !(server->options.stop && *server->options.stop >= 2))
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 5 * NS_PER_MS);
}

static int stop_process(struct server *server, enum server_stop way)
{
    ask_to_stop(server, way);
    int rc = proc_kill_family(server->pid, server->start_ticks); // reaps what ended by itself
    if (rc == 0) {
        if (server->registry_lock)
            pthread_mutex_lock(server->registry_lock);
        leftovers_drop(server->options.leftovers, server->process_id);
        if (server->registry_lock)
            pthread_mutex_unlock(server->registry_lock);
        server->pid = 0;
    }
    return rc;
}

int server_finish(struct server *server, struct err *err)
{
    if (!server_is_alive(server))
        return err_set(err, ERR_FAILED, "%s has died", server->wish.display);
    ask_to_stop(server, SERVER_STOP_FAST);
    if (server_is_alive(server))
        return err_set(err, ERR_FAILED, "%s does not stop", server->wish.display);
    if (stop_process(server, SERVER_STOP_KILL) < 0)
        return err_set(err, ERR_FAILED, "%s does not stop", server->wish.display);
    server->is_finished = true;
    return 0;
}

static int restart(struct server *server, struct err *err)
{
    struct str words = STR_INIT;
    char *socket;

    if (stop_process(server, SERVER_STOP_FAST) < 0)
        return err_set(err, ERR_FAILED, "%s does not stop", server->wish.display);
    socket = mem_printf("%s/%s", server->plan.run, server->plan.kind->socket);
    unlink(socket); // of a server that had to be killed
    free(socket);
    int rc = bring_up(server, &words, err);
    str_release(&words);
    return rc;
}

int server_restart(struct server *server, pthread_mutex_t *registry_lock, struct err *err)
{
    server->options.say = NULL; // the load's progress is on the terminal
    server->registry_lock = registry_lock;
    int rc = restart(server, err);
    server->registry_lock = NULL;
    return rc;
}

// PATH of a new file in the working directory; -1 when none can be made there.
static int open_kept_log(char *path, size_t size)
{
    char stamp[32];
    int fd = -1;

    clock_format_utc(clock_real_ns(), stamp, sizeof(stamp));
    for (char *p = stamp; *p; p++)
        if (*p == ':')
            *p = '-';
    for (int i = 0; i < 100 && fd < 0; i++) {
        snprintf(path, size, "prony-server-%s%s%.0d.log", stamp, i ? "-" : "", i);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static void keep_log(const struct server *server, struct str *report)
{
    char path[96], buf[8192];
    struct stat st;
    ssize_t n;

    // The directory is the server's account's: what is there now need not be what prony made.
    int from = open(server->log_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_log = from >= 0 && fstat(from, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    int to = is_log ? open_kept_log(path, sizeof(path)) : -1;
    bool whole = to >= 0;
    while (whole && (n = read(from, buf, sizeof(buf))) > 0)
        whole = write(to, buf, (size_t)n) == n;
    if (to >= 0)
        sudo_give(to);
    if (report && to >= 0)
        str_addf(report, "the server's log is kept%s: %s\n", whole ? "" : " in part", path);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
}

static void server_free(struct server *server)
{
    for (int i = 0; i < SERVER_PROGRAMS_MAX; i++)
        free(server->plan.programs[i]);
    free(server->plan.data);
    free(server->plan.log);
    free(server->plan.run);
    kvs_release(&server->plan.settings);
    server_wish_release(&server->wish);
    free(server->from);
    free(server->from_log);
    free(server->log_file);
    free(server->url);
    free(server->socket);
    free(server);
}

void server_close(struct server *server, bool failed, struct str *report)
{
    struct leftovers *lo;

    if (!server)
        return;
    lo = server->options.leftovers;
    bool was_ready = server->url != NULL;
    bool died = was_ready && !server->is_finished && !server_is_alive(server);
    if (server->pid > 0 && stop_process(server, way_to_stop(server)) < 0 && report)
        str_addf(report, "the server, process %d, could not be stopped\n", (int)server->pid);
    if (was_ready && (failed || died))
        keep_log(server, report);
    if (server->log_id > 0)
        (void)leftovers_undo(lo, server->log_id, report);
    if (server->data_id > 0)
        (void)leftovers_undo(lo, server->data_id, report);
    if (server->run_id > 0)
        (void)leftovers_undo(lo, server->run_id, report);
    server_free(server);
}

// ---- the record

void server_record(const struct server *server, struct kvs *environment)
{
    const struct server_plan *plan = &server->plan;
    struct str log = STR_INIT, safe = STR_INIT;

    kvs_add(environment, "server.kind", plan->kind->name);
    kvs_add(environment, "server.program", plan->programs[0]);
    kvs_add(environment, "server.version", plan->version);
    kvs_add(environment, "server.user", server->account.name);
    kvs_add(environment, "server.data", plan->data);
    kvs_add(environment, "server.log", plan->log ? plan->log : "with the data");
    if (server->from)
        kvs_addf(environment, "server.made", "a copy of %s", server->from);
    else
        kvs_add(environment, "server.made",
                server->options.is_restored       ? "a saved state"
                : server->state == PLACE_EXISTING ? "was there"
                                                  : "new");
    if (server->wish.n_make_args) {
        struct str text = STR_INIT;
        text_add_command(&text, (int)server->wish.n_make_args, server->wish.make_args);
        kvs_add(environment, "server.initdb", text.buf);
        str_release(&text);
    }
    kvs_add(environment, "server.stop", stop_names[way_to_stop(server)]);
    kvs_add(environment, "server.tune", server->options.tune == SERVER_TUNE_OLTP ? "oltp" : "none");
    for (size_t i = 0; i < plan->settings.n; i++) {
        char *key = mem_printf("server.setting.%s", plan->settings.items[i].key);
        struct str value = STR_INIT;
        text_add_redacted(&value, plan->settings.items[i].value);
        kvs_add(environment, key, value.len ? value.buf : "''");
        str_release(&value);
        free(key);
    }
    child_read_log(server->log_file, TAIL_MAX, &log);
    for (char *line = log.buf, *end; *line; line = end) { // text_add_safe would take its line ends
        end = line + strcspn(line, "\n");
        bool more = *end == '\n';
        *end = '\0';
        text_add_safe(&safe, line);
        if (more) {
            str_addc(&safe, '\n');
            end++;
        }
    }
    if (safe.len)
        kvs_add(environment, "server.log_tail", safe.buf);
    str_release(&log);
    str_release(&safe);
}
