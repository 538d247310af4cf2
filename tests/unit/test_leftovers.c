// Owners are forked processes that may be killed; each test has a runtime directory of its own.
#include "base/leftovers.h"

#include <dirent.h>
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/registry.h"
#include "base/tree.h"

#define ODD_NAME "a b\nc\\x20d\t\xff"

struct place {
    char *dir;      // private directory; also XDG_RUNTIME_DIR
    char *registry; // directory of the registry files
    char *odd;      // a path with everything that needs escaping
    char *tree;
    char *log; // commands that undo write here
};

static int place_make(void **state)
{
    struct place *place = mem_calloc(1, sizeof(*place));

    place->dir = mem_strdup("/tmp/prony-test-leftovers-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    setenv("XDG_RUNTIME_DIR", place->dir, 1);
    place->registry = mem_printf("%s/prony", place->dir);
    place->odd = mem_printf("%s/" ODD_NAME, place->dir);
    place->tree = mem_printf("%s/tree", place->dir);
    place->log = mem_printf("%s/log", place->dir);
    *state = place;
    return 0;
}

static int place_clear(void **state)
{
    struct place *place = *state;

    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->registry);
    free(place->odd);
    free(place->tree);
    free(place->log);
    free(place);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static void make_tree(const char *path)
{
    char *inner = mem_printf("%s/inner", path);

    assert_int_equal(mkdir(path, 0700), 0);
    make_file(inner);
    free(inner);
}

static char *file_text(const char *path)
{
    struct str text = STR_INIT;
    FILE *f = fopen(path, "re");

    for (int c = f ? fgetc(f) : EOF; c != EOF; c = fgetc(f))
        str_addc(&text, (char)c);
    if (f)
        fclose(f);
    return str_detach(&text);
}

// The one file in the registry's directory, or NULL; more than one fails.
static char *registry_file(const struct place *place)
{
    char *path = NULL;
    DIR *dir = opendir(place->registry);

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.')
            continue;
        assert_null(path);
        path = mem_printf("%s/%s", place->registry, entry->d_name);
    }
    if (dir)
        closedir(dir);
    return path;
}

static bool registry_is_empty(const struct place *place)
{
    char *path = registry_file(place);
    bool empty = path == NULL;

    free(path);
    return empty;
}

static bool comes_true_within(bool (*question)(const struct place *), const struct place *place,
                              int64_t wait_ns)
{
    int64_t until_ns = clock_now_ns(&clock_system) + wait_ns;

    while (!question(place)) {
        if (clock_now_ns(&clock_system) > until_ns)
            return false;
        usleep(2000);
    }
    return true;
}

// The guard is the only child of an owner that starts no other process first.
static pid_t child_of(pid_t parent)
{
    char *path = mem_printf("/proc/%d/task/%d/children", (int)parent, (int)parent);
    char *text = file_text(path);
    pid_t pid = (pid_t)strtol(text, NULL, 10);

    free(text);
    free(path);
    return pid;
}

static int add_log_command(struct leftovers *lo, const struct place *place, const char *word)
{
    char *script = mem_printf("printf '%%s;' \"$1\" >> %s", place->log);
    char *argv[] = {(char *)"sh", (char *)"-c", script, (char *)"sh", (char *)word, NULL};
    int id = leftovers_add_command(lo, argv, NULL);

    assert_true(id > 0);
    free(script);
    return id;
}

// One of each kind. Returns the pid of the process.
static pid_t make_one_of_each(struct leftovers *lo, const struct place *place)
{
    char *argv[] = {(char *)"sleep", (char *)"60", NULL};

    assert_true(leftovers_add_file(lo, place->odd, NULL) > 0);
    make_file(place->odd);
    assert_true(leftovers_add_tree(lo, place->tree, NULL) > 0);
    make_tree(place->tree);
    pid_t pid = proc_start(argv, NULL, false, NULL);
    assert_true(pid > 0);
    assert_true(leftovers_add_process(lo, pid, NULL) > 0);
    add_log_command(lo, place, "one of each");
    return pid;
}

enum end { END_WAITS, END_EXITS, END_CLOSES };

struct owner {
    pid_t pid;
    pid_t guard;
    uint64_t guard_ticks;
    pid_t process; // that it has started
    uint64_t process_ticks;
};

// Forks a process that opens the registry, makes one of each, and then waits to be killed or ends.
static struct owner owner_start(const struct place *place, enum end end)
{
    struct owner owner = {0};
    int report[2];

    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    owner.pid = fork();
    if (owner.pid == 0) {
        struct leftovers *lo;
        if (leftovers_open(&lo, NULL) < 0)
            _exit(1);
        pid_t pids[2] = {child_of(getpid()), make_one_of_each(lo, place)};
        if (write(report[1], pids, sizeof(pids)) != (ssize_t)sizeof(pids))
            _exit(1);
        if (end == END_CLOSES)
            leftovers_close(lo, NULL);
        while (end == END_WAITS)
            pause();
        _exit(0);
    }
    pid_t pids[2] = {0, 0};
    close(report[1]);
    assert_int_equal(read(report[0], pids, sizeof(pids)), sizeof(pids));
    close(report[0]);
    owner.guard = pids[0];
    owner.process = pids[1];
    owner.guard_ticks = proc_start_ticks(owner.guard);
    owner.process_ticks = proc_start_ticks(owner.process);
    return owner;
}

static void owner_kill(const struct owner *owner)
{
    assert_int_equal(kill(owner->pid, SIGKILL), 0);
    assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
}

static void guard_kill(const struct owner *owner)
{
    assert_int_equal(kill(owner->guard, SIGKILL), 0);
    for (int i = 0; i < 1000 && proc_is_alive(owner->guard, owner->guard_ticks); i++)
        usleep(2000);
    assert_false(proc_is_alive(owner->guard, owner->guard_ticks));
}

static void assert_all_undone(const struct place *place, const struct owner *owner)
{
    assert_false(exists(place->odd));
    assert_false(exists(place->tree));
    assert_false(proc_is_alive(owner->process, owner->process_ticks));
    char *log = file_text(place->log);
    assert_string_equal(log, "one of each;");
    free(log);
    assert_true(registry_is_empty(place));
}

static void assert_nothing_undone(const struct place *place, const struct owner *owner)
{
    assert_true(exists(place->odd));
    assert_true(exists(place->tree));
    assert_true(proc_is_alive(owner->process, owner->process_ticks));
    assert_false(exists(place->log));
}

static void all_is_undone_in_reverse_at_the_end(void **state)
{
    struct place *place = *state;
    struct leftovers *lo;
    struct str report = STR_INIT;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    pid_t guard = child_of(getpid());
    uint64_t guard_ticks = proc_start_ticks(guard);
    add_log_command(lo, place, "first");
    assert_true(leftovers_add_file(lo, place->odd, NULL) > 0);
    make_file(place->odd);
    add_log_command(lo, place, "second");
    int dropped = add_log_command(lo, place, "dropped");
    int alone = add_log_command(lo, place, "alone");
    add_log_command(lo, place, "");
    assert_int_equal(leftovers_undo(lo, alone, &report), 0);
    assert_int_equal(leftovers_undo(lo, alone, &report), 0); // nothing to do any more
    leftovers_drop(lo, dropped);
    leftovers_drop(lo, dropped);
    assert_true(exists(place->odd));
    leftovers_close(lo, &report);

    char *log = file_text(place->log);
    assert_string_equal(log, "alone;;second;first;");
    free(log);
    assert_false(exists(place->odd));
    assert_string_equal(report.buf, "");
    assert_true(registry_is_empty(place));
    assert_int_equal(proc_start_ticks(guard), 0); // ended and reaped
    assert_true(guard_ticks > 0);
    str_release(&report);
    leftovers_close(NULL, NULL);
}

static void what_cannot_be_undone_is_reported_and_tried_again_later(void **state)
{
    struct place *place = *state;
    struct leftovers *lo;
    struct str report = STR_INIT;
    char *script = mem_printf("test -e %s || { echo 'not yet' >&2; exit 32; }", place->tree);
    char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    add_log_command(lo, place, "before");
    assert_true(leftovers_add_command(lo, argv, NULL) > 0);
    add_log_command(lo, place, "after");
    leftovers_close(lo, &report);
    assert_non_null(strstr(report.buf, "could not undo command sh -c test -e "));
    assert_non_null(strstr(report.buf, "status 32: not yet\n"));
    char *log = file_text(place->log);
    assert_string_equal(log, "after;"); // what is older may be what the failed one is about
    assert_non_null(strstr(report.buf, "not undone before that: command "));
    free(log);

    str_clear(&report);
    leftovers_clean_dead(&report);
    char *file = registry_file(place);
    assert_non_null(file);
    assert_non_null(strstr(report.buf, "not yet"));
    assert_non_null(strstr(report.buf, file));
    free(file);

    make_tree(place->tree);
    str_clear(&report);
    leftovers_clean_dead(&report);
    assert_non_null(strstr(report.buf, "undone: command sh -c test -e "));
    log = file_text(place->log);
    assert_string_equal(log, "after;before;");
    free(log);
    assert_true(registry_is_empty(place));
    str_release(&report);
    free(script);
}

static void a_busy_command_is_tried_again_for_a_while(void **state)
{
    struct place *place = *state;
    struct leftovers *lo;
    struct str report = STR_INIT;
    char *script = mem_printf("echo x >> %s; test $(wc -l < %s) -ge 4", place->log, place->log);
    char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_command(lo, argv, NULL) > 0);
    assert_int_equal(leftovers_undo_all(lo, &report), 0);
    assert_string_equal(report.buf, "");
    leftovers_close(lo, NULL);
    str_release(&report);
    free(script);
}

static void the_guard_undoes_at_once_after_kill_9(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_WAITS);

    assert_nothing_undone(place, &owner);
    owner_kill(&owner);
    assert_true(comes_true_within(registry_is_empty, place, 2 * NS_PER_S));
    assert_all_undone(place, &owner);
}

static void the_guard_undoes_what_an_exit_forgot(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_EXITS);

    assert_int_equal(waitpid(owner.pid, NULL, 0), owner.pid);
    assert_true(comes_true_within(registry_is_empty, place, 2 * NS_PER_S));
    assert_all_undone(place, &owner);
}

static void an_orderly_end_leaves_the_guard_nothing_to_do(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_CLOSES);

    assert_int_equal(waitpid(owner.pid, NULL, 0), owner.pid);
    assert_all_undone(place, &owner);
    assert_false(proc_is_alive(owner.guard, owner.guard_ticks));
}

static void signals_of_the_terminal_do_not_end_the_guard(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct place *place = *state;
    struct owner owner = owner_start(place, END_WAITS);

    for (size_t i = 0; i < ARR_LEN(signals); i++)
        assert_int_equal(kill(owner.guard, signals[i]), 0);
    usleep(50000);
    assert_true(proc_is_alive(owner.guard, owner.guard_ticks));
    assert_int_equal(getsid(owner.guard), owner.guard);
    assert_nothing_undone(place, &owner);
    owner_kill(&owner);
    assert_true(comes_true_within(registry_is_empty, place, 2 * NS_PER_S));
    assert_all_undone(place, &owner);
}

static void the_guard_holds_no_descriptor_and_no_directory_of_the_owner(void **state)
{
    struct place *place = *state;
    int output[2];
    char byte;
    char target[64];

    assert_int_equal(pipe(output), 0); // inherited by owner and guard, as the pipe of a shell is
    assert_int_equal(chdir(place->dir), 0);
    struct owner owner = owner_start(place, END_WAITS);
    close(output[1]);
    char *cwd = mem_printf("/proc/%d/cwd", (int)owner.guard);
    assert_int_equal(readlink(cwd, target, sizeof(target)), 1); // "/"
    assert_int_equal(kill(owner.guard, SIGSTOP), 0);            // it shall live on
    owner_kill(&owner);
    assert_int_equal(read(output[0], &byte, 1), 0);
    assert_int_equal(kill(owner.guard, SIGCONT), 0);
    assert_true(comes_true_within(registry_is_empty, place, 2 * NS_PER_S));
    close(output[0]);
    free(cwd);
    assert_int_equal(chdir("/"), 0);
}

static void the_next_command_undoes_when_the_guard_was_killed_too(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_WAITS);
    struct str report = STR_INIT;

    guard_kill(&owner);
    owner_kill(&owner);
    assert_nothing_undone(place, &owner);
    leftovers_clean_dead(&report);
    assert_all_undone(place, &owner);
    const char *const parts[] = {"undone: file ", "a b\\x0ac\\x5cx20d\\x09", "undone: tree ",
                                 "undone: process ", "undone: command sh -c "};
    for (size_t i = 0; i < ARR_LEN(parts); i++)
        assert_non_null(strstr(report.buf, parts[i]));
    char *from = mem_printf("left by prony process %d\n", (int)owner.pid);
    assert_non_null(strstr(report.buf, from));

    str_clear(&report);
    leftovers_clean_dead(&report);
    assert_null(strstr(report.buf, from));
    free(from);
    str_release(&report);
}

static void a_living_owners_things_are_never_touched(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_WAITS);
    struct str report = STR_INIT;

    for (int guard_lives = 1; guard_lives >= 0; guard_lives--) {
        leftovers_clean_dead(&report);
        assert_nothing_undone(place, &owner);
        assert_false(registry_is_empty(place));
        if (guard_lives)
            guard_kill(&owner);
    }
    assert_null(strstr(report.buf, place->dir));
    owner_kill(&owner);
    leftovers_clean_dead(&report);
    assert_all_undone(place, &owner);
    str_release(&report);
}

static void a_guard_at_work_is_not_disturbed(void **state)
{
    struct place *place = *state;
    struct owner owner = owner_start(place, END_WAITS);
    struct str report = STR_INIT;

    assert_int_equal(kill(owner.guard, SIGSTOP), 0);
    owner_kill(&owner);
    leftovers_clean_dead(&report);
    assert_nothing_undone(place, &owner);
    assert_null(strstr(report.buf, place->dir));
    assert_int_equal(kill(owner.guard, SIGCONT), 0);
    assert_true(comes_true_within(registry_is_empty, place, 2 * NS_PER_S));
    assert_all_undone(place, &owner);
    str_release(&report);
}

// A registry as a dead owner would have left it. "%b" stands for the boot id of now.
static char *write_registry(const struct place *place, const char *text)
{
    char boot[64];
    struct str whole = STR_INIT;
    char *path = mem_printf("%s/4711-1-0", place->registry);

    clock_boot_id(boot, sizeof(boot));
    const char *hole = strstr(text, "%b");
    str_addn(&whole, text, hole ? (size_t)(hole - text) : strlen(text));
    if (hole) {
        str_add(&whole, boot);
        str_add(&whole, hole + 2);
    }
    (void)mkdir(place->registry, 0700);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, whole.buf, whole.len), whole.len);
    close(fd);
    str_release(&whole);
    return path;
}

static void only_paths_are_undone_after_a_reboot(void **state)
{
    struct place *place = *state;
    char *argv[] = {(char *)"sleep", (char *)"60", NULL};
    pid_t pid = proc_start(argv, NULL, true, NULL);
    uint64_t ticks = proc_start_ticks(pid);
    struct str report = STR_INIT;

    make_tree(place->tree);
    make_file(place->odd);
    char *text =
        mem_printf("prony-leftovers 1\nboot 11111111-2222-3333-4444-555555555555\n"
                   "owner 4711\n+ tree %s\n+ process %d %llu\n+ command touch %s\n"
                   "+ file %s/a\\x20b\\x0ac\\x5cx20d\\x09\xff\n",
                   place->tree, (int)pid, (unsigned long long)ticks, place->log, place->dir);
    free(write_registry(place, text));
    leftovers_clean_dead(&report);
    assert_false(exists(place->tree));
    assert_false(exists(place->odd));
    assert_true(proc_is_alive(pid, ticks));
    assert_false(exists(place->log));
    assert_null(strstr(report.buf, "undone: process")); // not claimed either
    assert_null(strstr(report.buf, "undone: command touch"));
    assert_true(registry_is_empty(place));
    assert_int_equal(proc_stop(pid, ticks, SIGKILL, NS_PER_S), 0);
    free(text);
    str_release(&report);
}

static void a_reused_pid_is_recognised_by_its_start_time(void **state)
{
    struct place *place = *state;
    char *argv[] = {(char *)"sleep", (char *)"60", NULL};
    pid_t pid = proc_start(argv, NULL, true, NULL);
    uint64_t ticks = proc_start_ticks(pid);
    struct str report = STR_INIT;

    for (int same = 0; same <= 1; same++) {
        char *text = mem_printf("prony-leftovers 1\nboot %%b\nowner 4711\n+ process %d %llu\n",
                                (int)pid, (unsigned long long)(same ? ticks : ticks - 1));
        free(write_registry(place, text));
        free(text);
        leftovers_clean_dead(&report);
        assert_int_equal(proc_is_alive(pid, ticks), !same);
        assert_true(registry_is_empty(place));
    }
    str_release(&report);
}

static void a_process_is_stopped_by_the_signal_it_was_listed_with(void **state)
{
    struct place *place = *state;
    static const int signals[] = {SIGTERM, SIGQUIT, SIGINT};

    for (size_t i = 0; i < ARR_LEN(signals); i++) {
        char *script = mem_printf("trap 'echo TERM >> %s; exit' TERM; trap 'echo QUIT >> %s; exit' "
                                  "QUIT; trap 'echo INT >> %s; exit' INT; touch %s; while :; do "
                                  "sleep 0.01; done",
                                  place->log, place->log, place->log, place->odd);
        char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};
        struct leftovers *lo = NULL;
        struct str report = STR_INIT;

        assert_int_equal(leftovers_open(&lo, NULL), 0);
        pid_t pid = proc_start(argv, NULL, true, NULL);
        assert_true(leftovers_add_process_signal(lo, pid, signals[i], NULL) > 0);
        for (int k = 0; k < 1000 && !exists(place->odd); k++)
            usleep(5000);
        leftovers_close(lo, &report);
        assert_string_equal(report.buf, "");
        unlink(place->odd);
        free(script);
        str_release(&report);
    }
    FILE *file = fopen(place->log, "re");
    char text[64] = "";
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, "TERM\nQUIT\nINT\n");
    unlink(place->log);
}

static void registries_cut_short_or_damaged(void **state)
{
    static const struct {
        const char *text; // %t: the tree
        bool tree_removed, file_stays;
        const char *report;
    } cases[] = {
        {"", false, false, ""},
        {"prony-left", false, false, ""},
        {"prony-leftovers 1\nboot %b\n", false, false, ""},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ tree %t", false, false, ""}, // never done
        {"prony-leftovers 1\nboot %b\nowner 9\n- tree %t\n", false, false, ""},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ tree %t\n+ tr", true, false, "undone: tree "},
        {"prony-leftovers 2\nboot %b\nowner 9\n+ tree %t\n", false, true, ":1 cannot be read"},
        {"prony-leftovers 1\nboot %b\nowner 9\n* tree %t\n", false, true, ":4 cannot be read"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ lamp /\n+ tree %t\n", false, true, ":4 cannot"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ tree /x\\x2\n", false, true, ":4 cannot be read"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ tree\n", false, true, ":4 cannot be read"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ process 1\n", false, true, ":4 cannot be read"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ process 1 2 3 4\n", false, true, ":4 cannot be"},
        {"prony-leftovers 1\nboot %b\nowner 9\n+ tree /\n", false, true, "not an absolute path of"},
    };
    struct place *place = *state;

    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str text = STR_INIT;
        struct str report = STR_INIT;
        const char *hole = strstr(cases[i].text, "%t");
        str_add(&text, cases[i].text);
        if (hole) {
            text.len = (size_t)(hole - cases[i].text);
            str_add(&text, place->tree);
            str_add(&text, hole + 2);
        }
        if (!exists(place->tree))
            make_tree(place->tree);
        char *path = write_registry(place, text.buf);
        leftovers_clean_dead(&report);
        assert_int_equal(exists(place->tree), !cases[i].tree_removed);
        assert_int_equal(exists(path), cases[i].file_stays);
        assert_non_null(strstr(report.buf, cases[i].report));
        if (cases[i].report[0] == '\0')
            assert_null(strstr(report.buf, place->dir));
        unlink(path);
        free(path);
        str_release(&text);
        str_release(&report);
    }
}

static void a_directory_others_could_write_is_not_trusted(void **state)
{
    struct place *place = *state;
    char *link = mem_printf("%s/link", place->dir);
    static const struct {
        mode_t mode;
        bool trusted;
    } cases[] = {{0700, true}, {0770, false}, {0707, false}, {0755, false}};

    make_tree(place->tree);
    free(write_registry(place, "prony-leftovers 1\nboot x\nowner 9\n"));
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_int_equal(chmod(place->registry, cases[i].mode), 0);
        int fd = registry_dir_open(place->registry, true);
        assert_int_equal(fd >= 0, cases[i].trusted);
        if (fd >= 0)
            close(fd);
    }
    assert_int_equal(chmod(place->registry, 0700), 0);
    assert_int_equal(symlink(place->registry, link), 0);
    assert_int_equal(registry_dir_open(link, true), -1);

    // A file that others may write.
    char *path = mem_printf("%s/4711-1-0", place->registry);
    struct str report = STR_INIT;
    assert_int_equal(chmod(path, 0666), 0);
    leftovers_clean_dead(&report);
    assert_non_null(strstr(report.buf, "is not a registry that only this user writes"));
    assert_true(exists(path));
    str_release(&report);
    free(path);
    free(link);
}

static void the_registry_stays_small_however_much_is_made(void **state)
{
    struct place *place = *state;
    struct leftovers *lo;
    struct stat st;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    char *path = registry_file(place);
    assert_non_null(path);
    for (int i = 0; i < 3000; i++) {
        int id = leftovers_add_file(lo, place->odd, NULL);
        assert_true(id > 0);
        leftovers_drop(lo, id);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 4096);
    assert_int_equal(st.st_mode & 07777, 0600);
    leftovers_close(lo, NULL);
    free(path);
}

static void nothing_may_be_done_when_the_registry_cannot_be_written(void **state)
{
    struct place *place = *state;

    int wait_status;
    pid_t pid = fork();
    if (pid == 0) {
        struct leftovers *lo;
        struct err err = ERR_INIT;
        struct rlimit limit = {200, 200};
        if (leftovers_open(&lo, NULL) < 0)
            _exit(1);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit); // as a full disk
        int id;
        int written = 0;
        while ((id = leftovers_add_file(lo, place->odd, &err)) > 0)
            written++;
        if (!strstr(err.text, "cannot write ") || written == 0)
            _exit(2);
        make_file(place->odd);
        if (leftovers_undo_all(lo, NULL) != 0 || exists(place->odd))
            _exit(3); // half a line spoilt what stood before it
        if (leftovers_add_file(lo, place->odd, &err) < 0)
            _exit(4); // there is room again
        leftovers_close(lo, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_int_equal(wait_status, 0);
    assert_true(registry_is_empty(place));
}

static void relative_paths_mean_the_working_directory_of_then(void **state)
{
    struct place *place = *state;
    struct leftovers *lo;

    assert_int_equal(chdir(place->dir), 0);
    make_file(place->odd);
    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_file(lo, ODD_NAME, NULL) > 0);
    assert_int_equal(chdir("/"), 0);
    leftovers_close(lo, NULL);
    assert_false(exists(place->odd));
}

static void a_process_that_has_ended_is_refused(void **state)
{
    struct leftovers *lo;
    struct err err = ERR_INIT;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_process(lo, pid, &err) < 0);
    assert_non_null(strstr(err.text, "has ended already"));
    leftovers_close(lo, NULL);
}

int main(void)
{
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_clear)
    const struct CMUnitTest tests[] = {
        IN_PLACE(all_is_undone_in_reverse_at_the_end),
        IN_PLACE(what_cannot_be_undone_is_reported_and_tried_again_later),
        IN_PLACE(a_busy_command_is_tried_again_for_a_while),
        IN_PLACE(the_guard_undoes_at_once_after_kill_9),
        IN_PLACE(the_guard_undoes_what_an_exit_forgot),
        IN_PLACE(an_orderly_end_leaves_the_guard_nothing_to_do),
        IN_PLACE(signals_of_the_terminal_do_not_end_the_guard),
        IN_PLACE(the_guard_holds_no_descriptor_and_no_directory_of_the_owner),
        IN_PLACE(the_next_command_undoes_when_the_guard_was_killed_too),
        IN_PLACE(a_living_owners_things_are_never_touched),
        IN_PLACE(a_guard_at_work_is_not_disturbed),
        IN_PLACE(only_paths_are_undone_after_a_reboot),
        IN_PLACE(a_reused_pid_is_recognised_by_its_start_time),
        IN_PLACE(registries_cut_short_or_damaged),
        IN_PLACE(a_directory_others_could_write_is_not_trusted),
        IN_PLACE(the_registry_stays_small_however_much_is_made),
        IN_PLACE(nothing_may_be_done_when_the_registry_cannot_be_written),
        IN_PLACE(relative_paths_mean_the_working_directory_of_then),
        IN_PLACE(a_process_that_has_ended_is_refused),
        IN_PLACE(a_process_is_stopped_by_the_signal_it_was_listed_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
