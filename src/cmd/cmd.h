// Front doors: what all commands share. A command is one file, one row in main.c's table, and the
// only place that prints. Exit statuses: 0 done, 1 failed, 2 wrong usage or set-up, 3 looked at and
// the verdict is bad, 4 not run here, 5 measured but it cannot be decided.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/opt.h"

struct command {
    const struct opt_command *options;
    int (*run)(int argc, char **argv); // argv[0] is the command's name; returns the exit status
};

// The table, in the order of --help; ends with NULL.
extern const struct command *const commands[];

extern const struct command command_compare, command_baseline, command_history, command_run,
    command_study, command_init, command_check, command_list, command_show, command_sql,
    command_export, command_import, command_probe, command_state, command_volume, command_vdisk;

// Prints "prony: TEXT" to stderr and returns the error's exit status.
int cmd_fail(const struct err *err);

// A line on stdout whose parts came from elsewhere: what could steer the terminal is shown instead.
void cmd_print_safe(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Parses a command line into values, which are zeroed and set to their defaults first. Returns the
// number of arguments, or negative when the command ends here (help was printed, or the line was
// wrong): then *ret_status is its exit status.
int cmd_parse(const struct opt_command *command, int argc, char **argv, void *values, char **args,
              int *ret_status);

// A whole command whose first argument is a verb: parses into values (zeroed), undoes what dead
// owners left, catches signals, calls verb with the arguments and ends. Returns the exit status.
typedef int cmd_verb_fn(int n, char **args, void *values, const volatile sig_atomic_t *stop,
                        struct err *err);
int cmd_run_verb(const struct opt_command *command, int argc, char **argv, void *values,
                 cmd_verb_fn *verb);

// Makes SIGINT, SIGTERM and SIGHUP count up the number returned instead of ending the program; the
// third SIGINT ends it as if nothing had been caught. What was ignored stays so (nohup, jobs in the
// background). SIGPIPE is ignored.
volatile sig_atomic_t *cmd_catch_signals(void);

// Undoes what dead owners left behind and says so on stderr.
void cmd_clean_leftovers(void);

// Flushes stdout; a full disk or a closed pipe is an error worth an exit status.
int cmd_finish_output(int status);

// A file to write for the user: "-" is stdout. Under sudo it is given to the user. What was in it
// stays until cmd_empty_output; *ret_made tells that there was none.
FILE *cmd_open_output(const char *path, bool *ret_made, struct err *err);
void cmd_empty_output(FILE *file); // just before the first write
int cmd_close_output(FILE *file, const char *path, struct err *err);

// Is there a person looking at stderr who would like a progress line?
bool cmd_wants_progress(bool quiet);

// Redraws the progress line on stderr (cut to the terminal's width), or wipes it with NULL.
void cmd_progress(const char *line);
