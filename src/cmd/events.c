#include "cmd/events.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/units.h"
#include "load/event.h"

enum what { WHAT_CHECKPOINT, WHAT_RESTART, WHAT_COMMAND };

static const char *const names[] = {"checkpoint", "restart", NULL};

struct event {
    struct events *events;
    int64_t at_ns;
    enum what what;
    char *text; // as typed
    pthread_t thread;
    bool has_thread;
    // Written by the thread.
    int64_t from_ns, to_ns; // since the load began; from_ns < 0: it never began
    struct str outcome;
    int id;                     // of a command in the registry
    struct db_session *session; // while a statement runs on it; under session_lock
    _Atomic bool over;
};

struct events {
    struct event *items;
    size_t n_items, cap_items;
    const struct setup *setup;
    int64_t start_ns;
    _Atomic bool ended;
    // The registry is not for threads; while the load runs it is ours. Held for single calls only.
    pthread_mutex_t registry_lock;
    pthread_mutex_t restart_lock; // one restart at a time
    pthread_mutex_t session_lock;
};

// ---- as typed

static int parse_event(struct events *events, const char *item, struct err *err)
{
    size_t len = strcspn(item, " ");
    const char *what = item + len + strspn(item + len, " ");
    char *when = mem_strndup(item, len);
    struct event event = {.events = events, .from_ns = -1, .outcome = STR_INIT};

    int rc = units_parse_duration(when, NS_PER_S, &event.at_ns, err);
    free(when);
    if (rc < 0)
        return err_prefix(err, "--at");
    if (!*what)
        return err_set(err, ERR_USAGE,
                       "--at %s: what shall happen? checkpoint, restart, or a "
                       "command",
                       item);
    event.what = WHAT_COMMAND;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], what) == 0)
            event.what = (enum what)i;
    const char *near = strpbrk(what, " /") ? NULL : text_near_miss(what, names);
    if (event.what == WHAT_COMMAND && near)
        return err_set(err, ERR_USAGE, "--at %s: did you mean %s? (a command of that name: ./%s)",
                       item, near, what);
    event.text = mem_strdup(what);
    *ARR_PUSH(events->items, events->n_items, events->cap_items) = event;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct event *left = a, *right = b;

    return (left->at_ns > right->at_ns) - (left->at_ns < right->at_ns);
}

int events_parse(struct events **ret, const struct opt_list *items, struct err *err)
{
    struct events *events;

    *ret = NULL;
    if (items->n == 0)
        return 0;
    if (items->n > EVENTS_MAX)
        return err_set(err, ERR_USAGE, "--at: at most %d events", EVENTS_MAX);
    events = mem_calloc(1, sizeof(*events));
    pthread_mutex_init(&events->registry_lock, NULL);
    pthread_mutex_init(&events->restart_lock, NULL);
    pthread_mutex_init(&events->session_lock, NULL);
    for (size_t i = 0; i < items->n; i++)
        if (parse_event(events, items->items[i], err) < 0) {
            events_free(events);
            return -1;
        }
    qsort(events->items, events->n_items, sizeof(events->items[0]), by_time);
    *ret = events;
    return 0;
}

// The statement that makes the engine write out what is dirty; NULL: it has none.
static const char *checkpoint_sql(const struct setup *setup)
{
    static const struct {
        const char *engine, *sql;
    } rows[] = {
        {"postgres", "CHECKPOINT"},
        {"sqlite", "PRAGMA wal_checkpoint(TRUNCATE)"},
    };

    for (size_t i = 0; i < ARR_LEN(rows); i++)
        if (strcmp(rows[i].engine, db_engine(setup->target)) == 0)
            return rows[i].sql;
    return NULL;
}

int events_check(struct events *events, const struct setup *setup, int64_t time_ns, struct err *err)
{
    if (!events)
        return 0;
    events->setup = setup;
    for (size_t i = 0; i < events->n_items; i++) {
        const struct event *event = &events->items[i];
        char text[UNITS_MAX];
        units_format_duration_exact(event->at_ns, text);
        if (time_ns > 0 && event->at_ns >= time_ns)
            return err_set(err, ERR_USAGE, "--at %s %s: the load ends before that (--time)", text,
                           event->text);
        if (event->what == WHAT_RESTART && !setup->places.server)
            return err_set(err, ERR_USAGE,
                           "--at %s restart: %s is not prony's to stop; a server: target can be "
                           "restarted, and any command can be run",
                           text, db_display(setup->target));
        if (event->what == WHAT_CHECKPOINT && !checkpoint_sql(setup))
            return err_set(err, ERR_USAGE,
                           "--at %s checkpoint: %s has no statement for it that every server of "
                           "that kind knows",
                           text, db_engine(setup->target));
    }
    return 0;
}

void events_describe(const struct events *events, struct str *out)
{
    char text[UNITS_MAX];

    for (size_t i = 0; events && i < events->n_items; i++) {
        str_addf(out, "%s%s ", i ? ", " : "",
                 units_format_duration_exact(events->items[i].at_ns, text));
        text_add_redacted(out, events->items[i].text);
    }
}

// ---- while the load runs

static bool wait_until_due(const struct event *event)
{
    const struct events *events = event->events;
    int64_t due_ns = events->start_ns + event->at_ns;

    for (;;) {
        int64_t now_ns = clock_now_ns(&clock_system);
        if (atomic_load(&events->ended))
            return false;
        if (now_ns >= due_ns)
            return true;
        int64_t wake_ns = now_ns + 20 * NS_PER_MS; // how late the end of the load is seen
        clock_sleep_until_ns(&clock_system, wake_ns < due_ns ? wake_ns : due_ns);
    }
}

static void say_too_late(struct event *event)
{
    event->from_ns = -1;
    str_add(&event->outcome, "not begun: the load was over");
}

// What events_end may cancel; NULL: nothing. False: the load is over.
static bool show_session(struct event *event, struct db_session *session)
{
    struct events *events = event->events;

    pthread_mutex_lock(&events->session_lock);
    bool goes_on = !atomic_load(&events->ended);
    event->session = goes_on ? session : NULL;
    pthread_mutex_unlock(&events->session_lock);
    return goes_on;
}

static void do_checkpoint(struct event *event)
{
    struct db_session *session;
    struct db_result result;

    if (db_connect(event->events->setup->target, -1, &session, &result) != DB_OK) {
        str_addf(&event->outcome, "failed: %s", result.message);
        return;
    }
    if (!show_session(event, session)) {
        say_too_late(event);
    } else {
        const char *sql = checkpoint_sql(event->events->setup);
        enum db_class class = db_query(session, sql, false, &result);
        bool goes_on = show_session(event, NULL);
        if (!goes_on && (class == DB_CANCELLED || db_class_is_lost(class)))
            str_add(&event->outcome, "cut off by the end of the load");
        else if (class != DB_OK)
            str_addf(&event->outcome, "failed: %s", result.message);
    }
    db_disconnect(session);
}

static void do_restart(struct event *event)
{
    struct events *events = event->events;
    struct err err = ERR_INIT;

    pthread_mutex_lock(&events->restart_lock);
    if (atomic_load(&events->ended))
        say_too_late(event);
    else if (server_restart(events->setup->places.server, &events->registry_lock, &err) < 0)
        str_addf(&event->outcome, "failed: %s", err.text);
    pthread_mutex_unlock(&events->restart_lock);
}

static int write_down(void *arg, pid_t pid, struct err *err)
{
    struct event *event = arg;
    struct events *events = event->events;

    pthread_mutex_lock(&events->registry_lock);
    event->id = leftovers_add_process_signal(events->setup->leftovers, pid, SIGKILL, err);
    pthread_mutex_unlock(&events->registry_lock);
    return event->id < 0 ? -1 : 0;
}

// Returns the status, or -1 when the load ended first.
static int wait_for_command(const struct event *event, pid_t pid)
{
    uint64_t ticks = proc_start_ticks(pid);
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (atomic_load(&event->events->ended)) {
            (void)proc_kill_family(pid, ticks);
            return -1;
        }
        clock_sleep_until_ns(&clock_system, clock_now_ns(&clock_system) + 5 * NS_PER_MS);
    }
    return status;
}

// The first line of what a command that failed has said.
static void add_first_line(struct str *out, int fd)
{
    char text[200];

    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (text[0]) {
        str_add(out, ": ");
        text_add_safe(out, text);
    }
}

// The program's own, and where the server is.
static char **make_environment(const struct server *server)
{
    size_t n = 0;

    while (environ[n])
        n++;
    char **env = mem_calloc(n + 3, sizeof(*env));
    for (size_t i = 0; i < n; i++)
        env[i] = mem_strdup(environ[i]);
    if (server) {
        env[n] = mem_printf("PRONY_SERVER_SOCKET=%s", server_socket(server));
        env[n + 1] = mem_printf("PRONY_SERVER_DATA=%s", server_data(server));
    }
    return env;
}

static void free_environment(char **env)
{
    for (size_t i = 0; env[i]; i++)
        free(env[i]);
    free(env);
}

static void do_command(struct event *event)
{
    struct events *events = event->events;
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", event->text, NULL};
    char **env = make_environment(events->setup->places.server);
    struct err err = ERR_INIT;
    int fd = memfd_create("prony-event", MFD_CLOEXEC); // what it says
    struct proc_as as = {.env = env, .log_fd = fd > 0 ? fd : 0, .enter = write_down, .arg = event};

    pid_t pid = proc_start_as(argv, NULL, false, &as, &err);
    free_environment(env);
    int status = pid > 0 ? wait_for_command(event, pid) : 0;
    if (pid < 0)
        str_addf(&event->outcome, "failed: %s", err.text);
    else if (status < 0)
        str_add(&event->outcome, "cut off by the end of the load");
    else if (WIFSIGNALED(status))
        str_addf(&event->outcome, "failed: killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        str_addf(&event->outcome, "failed: status %d", WEXITSTATUS(status));
    if (pid > 0 && status > 0)
        add_first_line(&event->outcome, fd);
    pthread_mutex_lock(&events->registry_lock);
    if (pid > 0)
        leftovers_drop(events->setup->leftovers, event->id);
    pthread_mutex_unlock(&events->registry_lock);
    if (fd >= 0)
        close(fd);
}

static void event_run(struct event *event)
{
    int64_t start_ns = event->events->start_ns;

    if (!wait_until_due(event)) {
        say_too_late(event);
        return;
    }
    event->from_ns = clock_now_ns(&clock_system) - start_ns;
    if (event->what == WHAT_CHECKPOINT)
        do_checkpoint(event);
    else if (event->what == WHAT_RESTART)
        do_restart(event);
    else
        do_command(event);
    event->to_ns = clock_now_ns(&clock_system) - start_ns;
    if (event->outcome.len == 0)
        str_add(&event->outcome, "done");
}

static void *event_main(void *arg)
{
    struct event *event = arg;

    event_run(event);
    atomic_store(&event->over, true);
    return NULL;
}

void events_begin(struct events *events, int64_t start_ns)
{
    sigset_t all, before;

    if (!events)
        return;
    events->start_ns = start_ns;
    sigfillset(&all); // signals are the main thread's
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < events->n_items; i++) {
        struct event *event = &events->items[i];
        event->has_thread = pthread_create(&event->thread, NULL, event_main, event) == 0;
        if (!event->has_thread)
            str_add(&event->outcome, "failed: no thread could be started");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// A cancel may come before the statement does, so it is repeated; the driver cuts the connection of
// a server that does not obey.
static void cancel_until_over(struct event *event)
{
    int64_t due_ns = 0;

    while (!atomic_load(&event->over)) {
        int64_t now_ns = clock_now_ns(&clock_system);
        if (now_ns >= due_ns) {
            pthread_mutex_lock(&event->events->session_lock);
            if (event->session)
                db_cancel(event->session);
            pthread_mutex_unlock(&event->events->session_lock);
            due_ns = now_ns + NS_PER_S;
        }
        clock_sleep_until_ns(&clock_system, now_ns + 5 * NS_PER_MS);
    }
}

void events_end(struct events *events)
{
    if (!events)
        return;
    atomic_store(&events->ended, true);
    for (size_t i = 0; i < events->n_items; i++)
        if (events->items[i].has_thread && events->items[i].what == WHAT_CHECKPOINT)
            cancel_until_over(&events->items[i]);
    for (size_t i = 0; i < events->n_items; i++)
        if (events->items[i].has_thread)
            pthread_join(events->items[i].thread, NULL);
    for (size_t i = 0; i < events->n_items; i++)
        events->items[i].has_thread = false;
}

// ---- the record

static void add_number(struct kvs *out, size_t number, const char *key, double value)
{
    char *name = mem_printf("event.%zu.%s", number, key);

    if (isfinite(value))
        kvs_addf(out, name, "%.6g", value);
    else
        kvs_add(out, name, "unknown: no whole second of the load is left for it");
    free(name);
}

static void add_text(struct kvs *out, size_t number, const char *key, const char *value)
{
    char *name = mem_printf("event.%zu.%s", number, key);
    struct str shown = STR_INIT;

    text_add_redacted(&shown, value);
    kvs_add(out, name, shown.buf);
    str_release(&shown);
    free(name);
}

void events_record(const struct events *events, struct result *result)
{
    struct event_span spans[EVENTS_MAX];
    int n = 0;

    if (!events)
        return;
    for (size_t i = 0; i < events->n_items; i++)
        if (events->items[i].from_ns >= 0)
            spans[n++] = (struct event_span){(double)events->items[i].from_ns / 1e9,
                                             (double)events->items[i].to_ns / 1e9};
    n = 0;
    for (size_t i = 0; i < events->n_items; i++) {
        const struct event *event = &events->items[i];
        struct kvs *out = &result->environment;
        add_text(out, i + 1, "what", event->text);
        add_number(out, i + 1, "at_s", (double)event->at_ns / 1e9);
        add_text(out, i + 1, "outcome", event->outcome.buf);
        if (event->from_ns < 0)
            continue;
        n++;
        struct event_rates rates;
        int n_begun = 0;
        for (size_t k = 0; k < events->n_items; k++)
            n_begun += events->items[k].from_ns >= 0;
        event_rates(result, spans, n_begun, n - 1, &rates);
        add_number(out, i + 1, "from_s", spans[n - 1].from_s);
        add_number(out, i + 1, "to_s", spans[n - 1].to_s);
        add_number(out, i + 1, "tps_before", rates.before_tps);
        add_number(out, i + 1, "tps_during", rates.during_tps);
        add_number(out, i + 1, "tps_after", rates.after_tps);
    }
}

void events_free(struct events *events)
{
    if (!events)
        return;
    for (size_t i = 0; i < events->n_items; i++) {
        assert(!events->items[i].has_thread);
        free(events->items[i].text);
        str_release(&events->items[i].outcome);
    }
    free(events->items);
    pthread_mutex_destroy(&events->registry_lock);
    pthread_mutex_destroy(&events->restart_lock);
    pthread_mutex_destroy(&events->session_lock);
    free(events);
}
