// Between the files of events; nothing else includes it.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cmd/events.h"

enum what { WHAT_CHECKPOINT, WHAT_RESTART, WHAT_VOLUME, WHAT_COMMAND };

struct event {
    struct events *events;
    int64_t at_ns;
    enum what what;
    char *text;        // as typed
    struct str script; // of what happens to a volume
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

// NULL: the engine has no statement that makes it write out what is dirty.
const char *event_checkpoint_sql(const struct setup *setup);

// In the event's thread: does it, and adds to its outcome what did not go well.
void event_do(struct event *event);
void event_say_too_late(struct event *event);
