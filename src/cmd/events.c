#include "cmd/events.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/events_internal.h"
#include "load/event.h"
#include "volume/volume.h"

static const char *const words[] = {"checkpoint",    "restart",     "offline:disk",  "offline:log",
                                    "offline:cache", "online:disk", "online:log",    "online:cache",
                                    "replace:disk",  "replace:log", "replace:cache", NULL};
static const char *const names[] = {"checkpoint", "restart", NULL};

// ---- as typed

static int parse_event(struct events *events, const char *item, struct err *err)
{
    size_t len = strcspn(item, " ");
    const char *what = item + len + strspn(item + len, " ");
    char *when = mem_strndup(item, len);
    struct event event = {.events = events, .from_ns = -1, .script = STR_INIT, .outcome = STR_INIT};

    int rc = units_parse_duration(when, NS_PER_S, &event.at_ns, err);
    free(when);
    if (rc < 0)
        return err_prefix(err, "--at");
    if (!*what)
        return err_set(err, ERR_USAGE,
                       "--at %s: what shall happen? checkpoint, restart, offline:disk and the "
                       "like, or a command",
                       item);
    event.what = WHAT_COMMAND;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], what) == 0)
            event.what = (enum what)i;
    if (event.what == WHAT_COMMAND && volume_is_event(what))
        event.what = WHAT_VOLUME;
    const char *near = strpbrk(what, " /") ? NULL : text_near_miss(what, words);
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

// "offline:disk" happens to the volume of data=, or, when that knows no events, to that of log=;
// "offline:disk@log" says which.
static int write_script(struct event *event, const struct setup *setup, struct err *err)
{
    const struct volume *data = setup->places.data.one.volume, *log = setup->places.log.one.volume;
    const char *at = strrchr(event->text, '@');
    char *what = mem_strndup(event->text, at ? (size_t)(at - event->text) : strlen(event->text));
    struct err first = ERR_INIT;
    int rc;

    if (at && strcmp(at, "@data") != 0 && strcmp(at, "@log") != 0)
        rc = err_set(err, ERR_USAGE, "%s: must be @data or @log", at);
    else if (at ? !(at[1] == 'd' ? data : log) : !data && !log)
        rc = err_set(err, ERR_USAGE, "%s: the target has no volume of prony's there", event->text);
    else if (at || !data || !log)
        rc = volume_event_script(at     ? (at[1] == 'd' ? data : log)
                                 : data ? data
                                        : log,
                                 what, &event->script, err);
    else if (volume_event_script(data, what, &event->script, &first) == 0 ||
             volume_event_script(log, what, &event->script, NULL) == 0)
        rc = 0;
    else
        rc = err_set(err, first.kind, "%s", first.text);
    free(what);
    return rc;
}

int events_check(struct events *events, const struct setup *setup, int64_t time_ns, struct err *err)
{
    if (!events)
        return 0;
    events->setup = setup;
    for (size_t i = 0; i < events->n_items; i++) {
        struct event *event = &events->items[i];
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
        if (event->what == WHAT_VOLUME && write_script(event, setup, err) < 0)
            return err_prefix(err, "--at %s", text);
        if (event->what == WHAT_CHECKPOINT && !event_checkpoint_sql(setup))
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

static void event_run(struct event *event)
{
    int64_t start_ns = event->events->start_ns;

    if (!wait_until_due(event)) {
        event_say_too_late(event);
        return;
    }
    event->from_ns = clock_now_ns(&clock_system) - start_ns;
    event_do(event);
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
        str_release(&events->items[i].script);
        str_release(&events->items[i].outcome);
    }
    free(events->items);
    pthread_mutex_destroy(&events->registry_lock);
    pthread_mutex_destroy(&events->restart_lock);
    pthread_mutex_destroy(&events->session_lock);
    free(events);
}
