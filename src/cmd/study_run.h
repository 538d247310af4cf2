// One run of a study: `prony run` as a process of its own, so that whatever becomes of it the study
// goes on, and its leftovers are undone by its own guard.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/err.h"

struct study_run {
    char *const *argv; // of prony run, without --json; argv[0] is put by study_run_do
    const char *dir;   // private, for the log and the document
    const volatile sig_atomic_t *stop;
    void (*tick)(void *arg, double seconds); // several times a second
    void *arg;
};

// 0 and *ret, the run's document, which the caller frees with json_decref. Negative with err: it
// failed (the last line it said), with the kind that its exit status means; or *stop ended it.
int study_run_do(const struct study_run *run, json_t **ret, struct err *err);
