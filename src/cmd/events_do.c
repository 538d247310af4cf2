// What an event does, in its own thread.
#include <fcntl.h>
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
#include "cmd/events_internal.h"

const char *event_checkpoint_sql(const struct setup *setup)
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

void event_say_too_late(struct event *event)
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
        event_say_too_late(event);
    } else {
        const char *sql = event_checkpoint_sql(event->events->setup);
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
        event_say_too_late(event);
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
    char *command = event->what == WHAT_VOLUME ? event->script.buf : event->text;
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", command, NULL};
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

void event_do(struct event *event)
{
    if (event->what == WHAT_CHECKPOINT)
        do_checkpoint(event);
    else if (event->what == WHAT_RESTART)
        do_restart(event);
    else
        do_command(event);
}
