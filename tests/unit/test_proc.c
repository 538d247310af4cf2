// Child processes, with real ones: /bin/sh and its like stand in for whatever prony runs.
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"

#define SH(script)                                         \
    (char *const[])                                        \
    {                                                      \
        (char *)"sh", (char *)"-c", (char *)(script), NULL \
    }

static char *temp_file(void)
{
    char *path = mem_strdup("/tmp/prony-test-proc-XXXXXX");
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    return path;
}

static char *file_text(const char *path)
{
    struct str text = STR_INIT;
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    for (int c = fgetc(f); c != EOF; c = fgetc(f))
        str_addc(&text, (char)c);
    fclose(f);
    return str_detach(&text);
}

// The first number in a file that a child writes, waited for at most 5 s.
static pid_t pid_in_file(const char *path)
{
    for (int i = 0; i < 500; i++) {
        char *text = file_text(path);
        bool whole = strchr(text, '\n') != NULL;
        pid_t pid = (pid_t)strtol(text, NULL, 10);
        free(text);
        if (whole)
            return pid;
        usleep(10000);
    }
    fail_msg("nothing was written to %s", path);
    return -1;
}

static bool gone_within(pid_t pid, uint64_t ticks, int64_t wait_ns)
{
    int64_t until_ns = clock_now_ns(&clock_system) + wait_ns;

    while (clock_now_ns(&clock_system) < until_ns) {
        if (!proc_is_alive(pid, ticks))
            return true;
        usleep(5000);
    }
    return false;
}

static void run_gives_status_and_both_streams(void **state)
{
    static const struct {
        const char *script, *out, *errors;
        int status;
    } cases[] = {
        {"exit 0", "", "", 0},
        {"echo out; echo bad >&2; exit 3", "out\n", "bad\n", 3},
        {"printf 'a\\nb'", "a\nb", "", 0},
        {"kill -9 $$", "", "", 128 + SIGKILL},
        {"kill -TERM $$", "", "", 128 + SIGTERM},
        {"cat", "", "", 0}, // stdin is empty, not the terminal
        {"exit 255", "", "", 255},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct proc_result result;
        struct err err = ERR_INIT;
        assert_int_equal(proc_run(SH(cases[i].script), 0, &result, &err), 0);
        assert_int_equal(result.status, cases[i].status);
        assert_string_equal(result.out.buf, cases[i].out);
        assert_string_equal(result.errors.buf, cases[i].errors);
        assert_int_equal(err.kind, ERR_NONE);
        proc_result_release(&result);
    }
}

static void arguments_reach_the_program_unchanged(void **state)
{
    char *argv[] = {(char *)"printf", (char *)"<%s>", (char *)"a b", (char *)"$HOME; `id`",
                    (char *)"",       (char *)"*\n'", NULL};
    struct proc_result result;

    (void)state;
    assert_int_equal(proc_run(argv, 0, &result, NULL), 0);
    assert_string_equal(result.out.buf, "<a b><$HOME; `id`><><*\n'>");
    proc_result_release(&result);
}

static void a_missing_program_is_named(void **state)
{
    static const struct {
        const char *name, *text;
        enum err_kind kind;
    } cases[] = {
        {"no-such-program-here", "the program no-such-program-here is not installed", ERR_ABSENT},
        {"/no/such/program", "there is no program /no/such/program", ERR_ABSENT},
        {"/etc/passwd", "cannot start /etc/passwd", ERR_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *argv[] = {(char *)cases[i].name, NULL};
        struct proc_result result;
        struct err err = ERR_INIT;
        assert_true(proc_run(argv, 0, &result, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_int_equal(err.kind, cases[i].kind);
        proc_result_release(&result);
        err = (struct err)ERR_INIT;
        assert_true(proc_start(argv, NULL, true, &err) < 0);
        assert_non_null(strstr(err.text, cases[i].text));
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no zombie of the failed starts
    assert_int_equal(errno, ECHILD);
}

static void a_late_child_is_killed_with_its_group(void **state)
{
    char *path = temp_file();
    char *script = mem_printf("echo before; sleep 60 & echo $! > %s; wait", path);
    struct proc_result result;

    (void)state;
    int64_t start_ns = clock_now_ns(&clock_system);
    assert_int_equal(proc_run(SH(script), 300 * NS_PER_MS, &result, NULL), 0);
    int64_t took_ns = clock_now_ns(&clock_system) - start_ns;
    assert_int_equal(result.status, 124);
    assert_string_equal(result.out.buf, "before\n");
    assert_true(took_ns >= 300 * NS_PER_MS && took_ns < 3 * NS_PER_S);
    pid_t sleeper = pid_in_file(path);
    assert_true(gone_within(sleeper, proc_start_ticks(sleeper), 2 * NS_PER_S));
    proc_result_release(&result);
    unlink(path);
    free(script);
    free(path);
}

static void a_descendant_that_keeps_the_stream_is_not_waited_for(void **state)
{
    struct proc_result result;

    (void)state;
    int64_t start_ns = clock_now_ns(&clock_system);
    assert_int_equal(proc_run(SH("sleep 20 & echo $!"), 15 * NS_PER_S, &result, NULL), 0);
    assert_true(clock_now_ns(&clock_system) - start_ns < 5 * NS_PER_S);
    assert_int_equal(result.status, 0);
    pid_t sleeper = (pid_t)strtol(result.out.buf, NULL, 10);
    assert_true(sleeper > 0);
    assert_int_equal(proc_signal(sleeper, proc_start_ticks(sleeper), SIGKILL), 0);
    proc_result_release(&result);
}

static void output_is_bounded_and_the_rest_does_not_block(void **state)
{
    struct proc_result result;

    (void)state;
    assert_int_equal(
        proc_run(SH("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2"), 0, &result, NULL), 0);
    assert_int_equal(result.status, 0);
    assert_int_equal(result.out.len, PROC_OUTPUT_MAX);
    assert_int_equal(result.out.buf[PROC_OUTPUT_MAX - 1], 'x');
    assert_string_equal(result.errors.buf, "end\n");
    proc_result_release(&result);
}

static void a_child_sees_no_descriptor_of_ours(void **state)
{
    struct proc_result result;

    (void)state;
    int fd = open("/dev/null", O_RDONLY); // without O_CLOEXEC, as libraries do
    int high = fcntl(fd, F_DUPFD, 200);
    assert_true(fd >= 0 && high >= 200);
    assert_int_equal(proc_run(SH("ls /proc/$$/fd"), 0, &result, NULL), 0);
    assert_string_equal(result.out.buf, "0\n1\n2\n");
    close(fd);
    close(high);
    proc_result_release(&result);
}

static void ignored_signals_are_given_back_to_the_child(void **state)
{
    static const int signals[] = {SIGINT, SIGXFSZ};
    struct proc_result result;
    sigset_t set;

    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (size_t i = 0; i < ARR_LEN(signals); i++)
        signal(signals[i], SIG_IGN);
    assert_int_equal(proc_run(SH("exec cat /proc/self/status"), 0, &result, NULL), 0);
    for (size_t i = 0; i < ARR_LEN(signals); i++)
        signal(signals[i], SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    assert_non_null(strstr(result.out.buf, "SigBlk:\t0000000000000000\n"));
    const char *ignored = strstr(result.out.buf, "SigIgn:\t");
    assert_non_null(ignored);
    for (size_t i = 0; i < ARR_LEN(signals); i++) // others may come ignored to us by our caller
        assert_false(strtoull(ignored + 8, NULL, 16) >> (signals[i] - 1) & 1);
    proc_result_release(&result);
}

static void start_appends_to_a_private_log(void **state)
{
    char *path = temp_file();
    struct stat st;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 2; i++) {
        pid_t pid = proc_start(SH("echo out; echo bad >&2"), path, true, &err);
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    char *text = file_text(path);
    assert_string_equal(text, "out\nbad\nout\nbad\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    unlink(path);
    free(text);
    free(path);

    assert_true(proc_start(SH("true"), "/no/such/dir/log", true, &err) < 0);
    assert_non_null(strstr(err.text, "/no/such/dir/log"));
}

static void start_writes_to_no_link_and_no_pipe(void **state)
{
    char *path = temp_file(), *other = temp_file();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_true(proc_start(SH("echo out"), path, true, &err) < 0);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_true(proc_start(SH("echo out"), path, true, &err) < 0);
    close(reader);
    char *text = file_text(other);
    assert_string_equal(text, "");
    unlink(path);
    unlink(other);
    free(text);
    free(path);
    free(other);
}

// A parent that is killed -9 right after starting a child that writes its pid.
static pid_t orphan(bool die_with_parent, uint64_t *ticks)
{
    char *path = temp_file();
    char *script = mem_printf("echo $$ > %s; exec sleep 60", path);
    int gate[2];

    assert_int_equal(pipe(gate), 0);
    pid_t parent = fork();
    if (parent == 0) {
        char byte;
        proc_start(SH(script), NULL, die_with_parent, NULL);
        if (read(gate[0], &byte, 1) < 0) // until killed
            _exit(1);
        _exit(0);
    }
    pid_t child = pid_in_file(path);
    *ticks = proc_start_ticks(child);
    assert_true(*ticks > 0);
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    close(gate[0]);
    close(gate[1]);
    unlink(path);
    free(script);
    free(path);
    return child;
}

static void a_child_dies_with_its_parent_when_told(void **state)
{
    uint64_t ticks;

    (void)state;
    pid_t child = orphan(true, &ticks);
    assert_true(gone_within(child, ticks, 2 * NS_PER_S));
}

static void a_child_outlives_its_parent_when_told(void **state)
{
    uint64_t ticks;

    (void)state;
    pid_t child = orphan(false, &ticks);
    assert_false(gone_within(child, ticks, 200 * NS_PER_MS));
    assert_int_equal(getsid(child), child);
    assert_int_equal(proc_stop(child, ticks, 0, NS_PER_S), 0);
    assert_true(gone_within(child, ticks, NS_PER_S));
}

static void start_ticks_name_a_process_for_good(void **state)
{
    (void)state;
    assert_true(proc_start_ticks(getpid()) > 0);
    assert_true(proc_start_ticks(getpid()) >= proc_start_ticks(1));
    assert_int_equal(proc_start_ticks(0), 0);
    assert_int_equal(proc_start_ticks(-1), 0);
    assert_int_equal(proc_start_ticks(0x7fffffff), 0);

    // A name with blanks and parentheses, which stands unescaped before the numbers.
    uint64_t before = proc_start_ticks(getpid());
    prctl(PR_SET_NAME, ") R 1 2 (x");
    assert_int_equal(proc_start_ticks(getpid()), before);
    prctl(PR_SET_NAME, "test_proc");
}

static void a_reused_pid_is_never_touched(void **state)
{
    pid_t pid = proc_start(SH("exec sleep 60"), NULL, true, NULL);
    uint64_t ticks = proc_start_ticks(pid);

    (void)state;
    assert_true(pid > 0 && ticks > 1);
    assert_int_equal(proc_signal(pid, ticks - 1, SIGKILL), -ESRCH);
    assert_int_equal(proc_stop(pid, ticks - 1, SIGKILL, 0), 0);
    assert_int_equal(proc_signal(pid, ticks, 0), 0);
    assert_true(proc_is_alive(pid, ticks));
    assert_false(proc_is_alive(pid, ticks - 1));
    assert_int_equal(proc_stop(pid, ticks, SIGKILL, NS_PER_S), 0);
    assert_int_equal(proc_signal(pid, ticks, 0), -ESRCH);
    assert_int_equal(proc_signal(-1, ticks, 0), -ESRCH); // never a group, never everything
}

static void stop_lets_end_in_order_and_kills_what_does_not(void **state)
{
    static const struct {
        const char *script; // tells by a file that it is ready
        int signal_number;
        bool killed;
    } cases[] = {
        {"trap 'exit 0' TERM; echo $$ > %s; while :; do sleep 0.05; done", 0, false},
        {"trap 'exit 0' INT; echo $$ > %s; while :; do sleep 0.05; done", SIGINT, false},
        {"trap '' TERM; echo $$ > %s; while :; do sleep 0.05; done", 0, true},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *path = temp_file();
        struct str script = STR_INIT;
        const char *hole = strstr(cases[i].script, "%s");
        str_addn(&script, cases[i].script, (size_t)(hole - cases[i].script));
        str_add(&script, path);
        str_add(&script, hole + 2);
        pid_t pid = proc_start(SH(script.buf), NULL, true, NULL);
        assert_int_equal(pid_in_file(path), pid);
        uint64_t ticks = proc_start_ticks(pid);
        int64_t start_ns = clock_now_ns(&clock_system);
        assert_int_equal(proc_stop(pid, ticks, cases[i].signal_number,
                                   cases[i].killed ? NS_PER_S / 2 : 5 * NS_PER_S),
                         0);
        int64_t took_ns = clock_now_ns(&clock_system) - start_ns;
        assert_int_equal(took_ns >= NS_PER_S / 2, cases[i].killed);
        assert_int_equal(kill(pid, 0), -1); // reaped
        unlink(path);
        str_release(&script);
        free(path);
    }
}

// ---- children that differ

struct entry {
    const char *path; // of a file that the child makes
    bool began;       // it was there when the child was written down
    bool refuse;
    pid_t pid;
};

static int write_down(void *arg, pid_t pid, struct err *err)
{
    struct entry *entry = arg;

    entry->pid = pid;
    entry->began = access(entry->path, F_OK) == 0;
    assert_true(proc_start_ticks(pid) > 0);
    return entry->refuse ? err_set(err, ERR_FAILED, "no room to write it down") : 0;
}

static void a_child_is_written_down_before_it_begins(void **state)
{
    (void)state;
    for (int refuse = 0; refuse < 2; refuse++) {
        char *path = temp_file();
        struct entry entry = {.path = path, .refuse = refuse};
        struct proc_as as = {.enter = write_down, .arg = &entry};
        struct err err = ERR_INIT;

        unlink(path);
        char *script = mem_printf("echo > %s", path);
        pid_t pid = proc_start_as(SH(script), NULL, false, &as, &err);
        assert_false(entry.began);
        assert_true(entry.pid > 0);
        if (refuse) {
            assert_int_equal(pid, -1);
            assert_string_equal(err.text, "no room to write it down");
            assert_int_equal(proc_start_ticks(entry.pid), 0); // not even a zombie
        } else {
            assert_int_equal(pid, entry.pid);
            assert_int_equal(waitpid(pid, NULL, 0), pid);
        }
        assert_int_equal(access(path, F_OK) == 0, !refuse);
        unlink(path);
        free(script);
        free(path);
    }
}

static int die_in_the_middle(void *arg, pid_t pid, struct err *err)
{
    (void)arg, (void)pid, (void)err;
    return raise(SIGKILL);
}

static void a_child_is_not_begun_for_a_dead_parent(void **state)
{
    char *path = temp_file();

    (void)state;
    unlink(path);
    pid_t parent = fork();
    if (parent == 0) {
        struct proc_as as = {.enter = die_in_the_middle};
        char *script = mem_printf("echo > %s", path);
        _exit(proc_start_as(SH(script), NULL, false, &as, NULL) > 0);
    }
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    usleep(100000);
    assert_int_not_equal(access(path, F_OK), 0);
    unlink(path);
    free(path);
}

static void a_child_has_the_directory_and_environment_it_is_given(void **state)
{
    char *path = temp_file();
    struct proc_as as = {
        .dir = "/usr",
        .env = (char *const[]){(char *)"ONLY=this", (char *)"PATH=/usr/bin:/bin", NULL}};

    (void)state;
    pid_t pid = proc_start_as(SH("echo $ONLY $HOME; pwd; ulimit -c 0"), path, true, &as, NULL);
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    char *text = file_text(path);
    assert_string_equal(text, "this\n/usr\n");
    free(text);
    unlink(path);
    free(path);
}

static void a_child_runs_as_another_user_and_still_dies_with_its_parent(void **state)
{
    char *path = temp_file();
    struct proc_as as = {.changes_user = true, .uid = 65534, .gid = 65534};

    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can change the user\n");
        unlink(path);
        free(path);
        skip();
    }
    pid_t parent = fork();
    if (parent == 0) {
        pid_t pid =
            proc_start_as(SH("id -u; id -G; echo $$; exec sleep 30"), path, true, &as, NULL);
        for (int i = 0; i < 500 && pid > 0; i++) {
            char *text = file_text(path);
            int lines = 0;
            for (const char *p = text; *p; p++)
                lines += *p == '\n';
            free(text);
            if (lines == 3)
                _exit(0);
            usleep(10000);
        }
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    char *text = file_text(path);
    assert_int_equal(strncmp(text, "65534\n65534\n", 12), 0);
    pid_t pid = (pid_t)strtol(text + 12, NULL, 10);
    uint64_t ticks = proc_start_ticks(pid);
    for (int i = 0; i < 500 && proc_is_alive(pid, ticks); i++)
        usleep(10000);
    assert_false(proc_is_alive(pid, ticks));
    free(text);
    unlink(path);
    free(path);
}

static void a_family_dies_whole(void **state)
{
    static const struct {
        const char *what;
        const char *script; // writes the pid of a descendant, then waits
    } cases[] = {
        {"a child with a session of its own", "setsid sleep 30 & echo $! > $0; wait"},
        {"a grandchild with one", "sh -c 'setsid sleep 30 & echo $! > $0; wait' $0 & wait"},
        {"an orphan in the group", "(sleep 30 & echo $! > $0); sleep 30"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *path = temp_file();
        char *argv[] = {(char *)"sh", (char *)"-c", (char *)cases[i].script, path, NULL};
        pid_t pid = proc_start(argv, NULL, true, NULL);
        assert_true(pid > 0);
        pid_t descendant = pid_in_file(path);
        uint64_t ticks = proc_start_ticks(descendant);
        assert_true(ticks > 0);
        assert_int_equal(proc_stop(pid, proc_start_ticks(pid), SIGKILL, 0), 0);
        for (int k = 0; k < 500 && proc_is_alive(descendant, ticks); k++)
            usleep(10000); // the orphan's end is not waited for
        if (proc_is_alive(descendant, ticks))
            fail_msg("%s lives on", cases[i].what);
        unlink(path);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_gives_status_and_both_streams),
        cmocka_unit_test(arguments_reach_the_program_unchanged),
        cmocka_unit_test(a_missing_program_is_named),
        cmocka_unit_test(a_late_child_is_killed_with_its_group),
        cmocka_unit_test(a_descendant_that_keeps_the_stream_is_not_waited_for),
        cmocka_unit_test(output_is_bounded_and_the_rest_does_not_block),
        cmocka_unit_test(a_child_sees_no_descriptor_of_ours),
        cmocka_unit_test(ignored_signals_are_given_back_to_the_child),
        cmocka_unit_test(start_appends_to_a_private_log),
        cmocka_unit_test(start_writes_to_no_link_and_no_pipe),
        cmocka_unit_test(a_child_dies_with_its_parent_when_told),
        cmocka_unit_test(a_child_outlives_its_parent_when_told),
        cmocka_unit_test(start_ticks_name_a_process_for_good),
        cmocka_unit_test(a_reused_pid_is_never_touched),
        cmocka_unit_test(stop_lets_end_in_order_and_kills_what_does_not),
        cmocka_unit_test(a_child_is_written_down_before_it_begins),
        cmocka_unit_test(a_child_is_not_begun_for_a_dead_parent),
        cmocka_unit_test(a_child_has_the_directory_and_environment_it_is_given),
        cmocka_unit_test(a_child_runs_as_another_user_and_still_dies_with_its_parent),
        cmocka_unit_test(a_family_dies_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
