#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sudo.h"
#include "base/text.h"

int cmd_fail(const struct err *err)
{
    fflush(stdout);
    fprintf(stderr, "prony: %s\n", err->text);
    return err_exit_status(err);
}

void cmd_print_safe(const char *fmt, ...)
{
    struct str line = STR_INIT, safe = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&line, fmt, ap);
    va_end(ap);
    text_add_safe(&safe, line.buf);
    printf("%s\n", safe.buf);
    str_release(&line);
    str_release(&safe);
}

int cmd_parse(const struct opt_command *command, int argc, char **argv, void *values, char **args,
              int *ret_status)
{
    struct err err = ERR_INIT;

    opt_defaults(command->rows, values);
    int n = opt_parse(command, argc, argv, values, args, &err);
    if (n == -2) {
        opt_print_help(command, stdout);
        *ret_status = cmd_finish_output(0);
    } else if (n < 0) {
        *ret_status = cmd_fail(&err);
    }
    return n;
}

// ---- signals

static volatile sig_atomic_t stop_count; // raised by the handler, read by the load

static void on_signal(int number)
{
    stop_count++;
    if (stop_count >= 2)
        signal(number, SIG_DFL); // the third ends the program whatever it hangs on
}

volatile sig_atomic_t *cmd_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction catch = {.sa_handler = on_signal}, old;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &catch, NULL);
    signal(SIGPIPE, SIG_IGN);
    return &stop_count;
}

void cmd_clean_leftovers(void)
{
    struct str report = STR_INIT;

    leftovers_clean_dead(&report);
    if (report.len)
        fprintf(stderr, "prony: an earlier run was killed; cleaned up after it:\n%s", report.buf);
    str_release(&report);
}

// ---- output

int cmd_finish_output(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE)
            fprintf(stderr, "prony: writing the output: %s\n", strerror(errno));
        return status ? status : 1;
    }
    return status;
}

FILE *cmd_open_output(const char *path, bool *ret_made, struct err *err)
{
    *ret_made = false;
    if (strcmp(path, "-") == 0)
        return stdout;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    *ret_made = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        err_set(err, ERR_USAGE, "%s cannot be written: %s", path, strerror(errno));
        return NULL;
    }
    if (*ret_made)
        sudo_give(fd);
    FILE *file = fdopen(fd, "w");
    if (!file)
        abort();
    return file;
}

void cmd_empty_output(FILE *file)
{
    // Only a file has something to lose; a pipe refuses.
    if (file != stdout && ftruncate(fileno(file), 0) != 0)
        return;
}

int cmd_close_output(FILE *file, const char *path, struct err *err)
{
    bool failed = fflush(file) != 0 || ferror(file);

    if (file != stdout && fclose(file) != 0)
        failed = true;
    return failed ? err_set(err, ERR_FAILED, "writing %s: %s", path, strerror(errno)) : 0;
}

// ---- progress

bool cmd_wants_progress(bool quiet)
{
    const char *term = getenv("TERM");

    return !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void cmd_progress(const char *line)
{
    struct winsize size;
    int columns = 80;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        columns = size.ws_col;
    // Carriage return, the line, erase to its end: nothing is left of a longer one before.
    fprintf(stderr, "\r%.*s\033[K", columns - 1, line ? line : "");
    fflush(stderr);
}

int cmd_run_verb(const struct opt_command *command, int argc, char **argv, void *values,
                 cmd_verb_fn *verb)
{
    struct err err = ERR_INIT;
    char **args = mem_calloc((size_t)argc, sizeof(*args));
    int status = 0;
    int n = cmd_parse(command, argc, argv, values, args, &status);

    if (n >= 0) {
        cmd_clean_leftovers();
        if (verb(n, args, values, cmd_catch_signals(), &err) < 0)
            status = cmd_fail(&err);
    }
    opt_release(command->rows, values);
    free(args);
    return status ? status : cmd_finish_output(0);
}
