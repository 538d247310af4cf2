// Plans: as text, and run with the registry under them. The commands are harmless ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/tree.h"
#include "volume/type.h"

struct scene {
    char *dir; // private directory; also XDG_RUNTIME_DIR
    char *log; // commands write here
    struct leftovers *lo;
    struct plan_of_volume plan;
    volatile sig_atomic_t stop;
};

static int scene_make(void **state)
{
    struct scene *s = mem_calloc(1, sizeof(*s));

    s->dir = mem_strdup("/tmp/prony-test-plan-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    setenv("XDG_RUNTIME_DIR", s->dir, 1);
    s->log = mem_printf("%s/log", s->dir);
    s->plan.lock_fd = -1;
    assert_int_equal(leftovers_open(&s->lo, NULL), 0);
    *state = s;
    return 0;
}

static int scene_clear(void **state)
{
    struct scene *s = *state;

    leftovers_close(s->lo, NULL);
    plan_release(&s->plan);
    (void)tree_remove(s->dir, NULL);
    free(s->dir);
    free(s->log);
    free(s);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

// A command that appends a word to the log, and whose undoing appends "-word".
static struct plan_step *add_logged(struct scene *s, const char *word, const char *more)
{
    char *script = mem_printf("printf '%%s;' \"$1\" >>%s; %s", s->log, more);
    char *undone = mem_printf("-%s", word);
    struct plan_step *step = plan_command(&s->plan, "sh", "-c", script, "sh", word, NULL);

    plan_undo(step, PLAN_COMMAND, "sh", "-c", script, "sh", undone, NULL);
    free(script);
    free(undone);
    return step;
}

static void assert_log(const struct scene *s, const char *want)
{
    char text[512] = "";
    FILE *file = fopen(s->log, "re");

    if (file) {
        size_t n = fread(text, 1, sizeof(text) - 1, file);
        text[n] = '\0';
        fclose(file);
    }
    assert_string_equal(text, want);
}

static int run(struct scene *s, struct err *err)
{
    struct volume_wish wish = {.name = "x", .leftovers = s->lo, .stop = &s->stop};

    return plan_run(&s->plan, &wish, err);
}

// ---- text

static void a_plan_prints_as_a_script(void **state)
{
    struct scene *s = *state;
    struct str up = STR_INIT, down = STR_INIT;

    struct plan_step *step = plan_command(&s->plan, "mkdir", "/a b", NULL);
    plan_undo(step, PLAN_TREE, "/a b", NULL);
    step = plan_command(&s->plan, "touch", "/it's", "$LOOP", NULL); // not yet a variable's place
    plan_undo(step, PLAN_FILE, "/it's", NULL);
    step = plan_command(&s->plan, "losetup", "--show", "/f", NULL);
    step->variable = mem_strdup("LOOP");
    plan_undo(step, PLAN_DETACH, "/f", NULL);
    step = plan_command(&s->plan, "mkfs.x", NULL);
    plan_words(step, "  -a\t$HOME  -b ");
    plan_word(step, "$LOOP");
    step->destroys = true;
    step = plan_command(&s->plan, "served", "-x", NULL);
    step->started = true;
    step->undo = PLAN_PROCESS;
    step = plan_command(&s->plan, "pool", "create", NULL);
    plan_undo(step, PLAN_COMMAND, "pool", "destroy", "$LOOP", NULL);
    step = plan_command(&s->plan, "mount", "$LOOP", "/m", NULL);
    plan_undo(step, PLAN_UNMOUNT, "/m", NULL);
    plan_print_up(&s->plan, &up);
    plan_print_down(&s->plan, &down);
    assert_string_equal(up.buf, "mkdir '/a b'\n"
                                "touch '/it'\\''s' \"$LOOP\"\n"
                                "LOOP=$(losetup --show /f)\n"
                                "# what is there is lost:\n"
                                "mkfs.x -a '$HOME' -b \"$LOOP\"\n"
                                "served -x &\n"
                                "pool create\n"
                                "mount \"$LOOP\" /m\n");
    assert_string_equal(down.buf, "umount /m\n"
                                  "pool destroy \"$LOOP\"\n"
                                  "kill $!\n"
                                  "losetup --detach \"$LOOP\"\n"
                                  "rm -f '/it'\\''s'\n"
                                  "rm -rf --one-file-system '/a b'\n");
    str_release(&up);
    str_release(&down);
}

// ---- running

static void steps_run_in_order_and_are_undone_in_reverse(void **state)
{
    struct scene *s = *state;
    struct str report = STR_INIT;

    add_logged(s, "a", "true");
    add_logged(s, "b", "true");
    add_logged(s, "c", "true");
    assert_int_equal(run(s, NULL), 0);
    assert_log(s, "a;b;c;");
    assert_int_equal(plan_undo_all(&s->plan, s->lo, &report), 0);
    assert_log(s, "a;b;c;-c;-b;-a;");
    assert_int_equal(plan_undo_all(&s->plan, s->lo, &report), 0); // once
    assert_log(s, "a;b;c;-c;-b;-a;");
    assert_string_equal(report.buf, "");
    str_release(&report);
}

static void the_registry_alone_undoes_them_too(void **state)
{
    struct scene *s = *state;

    add_logged(s, "a", "true");
    add_logged(s, "b", "true");
    assert_int_equal(run(s, NULL), 0);
    assert_int_equal(leftovers_undo_all(s->lo, NULL), 0);
    assert_log(s, "a;b;-b;-a;");
}

static void a_step_that_fails_is_undone_with_those_before_it(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    add_logged(s, "a", "true");
    plan_command(&s->plan, "sh", "-c", "echo first >&2; echo second >&2; exit 3", NULL);
    add_logged(s, "c", "true");
    assert_int_equal(run(s, &err), -1);
    assert_int_equal(err.kind, ERR_FAILED);
    assert_non_null(strstr(err.text, "exit 3': first second"));
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0);
    assert_log(s, "a;-a;");
}

// Else the guard would look for what a killed command makes while it is still being made.
static void a_command_is_listed_while_it_runs(void **state)
{
    struct scene *s = *state;
    char *script =
        mem_printf("grep -hc \"^+ process $$ [0-9]* 9$\" %s/prony/* >>%s", s->dir, s->log);
    char *after = mem_printf("grep -hc '^+ process' %s/prony/* >>%s", s->dir, s->log);

    plan_command(&s->plan, "sh", "-c", script, NULL);
    plan_command(&s->plan, "sh", "-c", after, NULL); // itself alone
    assert_int_equal(run(s, NULL), 0);
    assert_log(s, "1\n1\n");
    free(script);
    free(after);
}

static void what_was_anothers_is_not_undone(void **state)
{
    struct scene *s = *state;
    char *theirs = mem_printf("%s/theirs", s->dir);

    assert_int_equal(mkdir(theirs, 0700), 0);
    struct plan_step *step = plan_command(&s->plan, "mkdir", theirs, NULL);
    step->exclusive = true;
    plan_undo(step, PLAN_TREE, theirs, NULL);
    assert_int_equal(run(s, NULL), -1);
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0);
    assert_int_equal(leftovers_undo_all(s->lo, NULL), 0);
    assert_true(exists(theirs));
    free(theirs);
}

static void a_variable_stands_for_what_its_step_printed(void **state)
{
    struct scene *s = *state;
    char *script = mem_printf("printf '%%s|' \"$@\" >>%s", s->log);

    struct plan_step *step = plan_command(&s->plan, "printf", "/dev/x 1\\n\\n", NULL);
    step->variable = mem_strdup("DEV");
    step =
        plan_command(&s->plan, "sh", "-c", script, "sh", "$DEV", "$DEVS", "x$DEV", "$HOME", NULL);
    plan_undo(step, PLAN_COMMAND, "sh", "-c", script, "sh", "-", "$DEV", NULL);
    assert_int_equal(run(s, NULL), 0);
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0);
    assert_log(s, "/dev/x 1|$DEVS|x$DEV|$HOME|-|/dev/x 1|");
    free(script);
}

static void a_signal_ends_it_between_two_steps(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    s->stop = 1;
    add_logged(s, "a", "true");
    assert_int_equal(run(s, &err), -1);
    assert_string_equal(err.text, "interrupted");
    assert_log(s, "");
}

static void a_step_has_its_time(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    plan_command(&s->plan, "sleep", "600", NULL)->deadline_ns = 50 * 1000000LL;
    assert_int_equal(run(s, &err), -1);
    assert_non_null(strstr(err.text, "sleep 600: it has not ended in time"));
}

static void a_program_that_is_not_there_is_named(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    plan_command(&s->plan, "prony-no-such-program", NULL);
    assert_int_equal(run(s, &err), -1);
    assert_int_equal(err.kind, ERR_ABSENT);
    assert_non_null(strstr(err.text, "prony-no-such-program"));
}

static void a_process_that_goes_on_is_waited_for_and_ended(void **state)
{
    struct scene *s = *state;
    char *ready = mem_printf("%s/ready", s->dir);
    char *script = mem_printf("trap 'echo ended >>%s; exit' TERM; sleep 0.1; touch %s; "
                              "while :; do sleep 0.02; done",
                              s->log, ready);

    struct plan_step *step = plan_command(&s->plan, "sh", "-c", script, NULL);
    step->started = true;
    step->ready_path = mem_strdup(ready);
    step->undo = PLAN_PROCESS;
    assert_int_equal(run(s, NULL), 0);
    assert_true(exists(ready));
    assert_log(s, "");
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0);
    assert_log(s, "ended\n");
    free(script);
    free(ready);
}

static void a_process_that_ends_before_it_is_ready_is_a_failure(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    struct plan_step *step = plan_command(&s->plan, "sh", "-c", "sleep 0.1", NULL);
    step->started = true;
    step->ready_path = mem_printf("%s/never", s->dir);
    step->undo = PLAN_PROCESS;
    assert_int_equal(run(s, &err), -1);
    assert_non_null(strstr(err.text, "ended before it was ready"));
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0);
}

static void what_is_locked_by_another_is_refused(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;
    int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    s->plan.lock = mem_strdup(s->dir);
    assert_int_equal(plan_lock(&s->plan, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "in use by another prony"));
    close(fd);
    assert_int_equal(plan_lock(&s->plan, NULL), 0);
    assert_int_equal(plan_undo_all(&s->plan, s->lo, NULL), 0); // lets go
    fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
}

// ---- file systems

// mkfs.NAME of each, in a directory that stands for PATH.
static void install(const struct scene *s, const char *fs)
{
    char *path = mem_printf("%s/mkfs.%s", s->dir, fs);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

    assert_true(fd >= 0);
    close(fd);
    free(path);
}

static void assert_file_system(struct scene *s, const char *text, unsigned flags, const char *up)
{
    struct volume volume = {.plan = {.lock_fd = -1}};
    struct plan_of_volume plan = {.lock_fd = -1};
    struct str out = STR_INIT;
    struct err err = ERR_INIT;
    char *path = mem_strdup(getenv("PATH"));

    assert_int_equal(spec_parse(&volume.spec, text, NULL), 0);
    setenv("PATH", s->dir, 1);
    int rc = plan_file_system(&plan, &volume, "/dev/x", flags, "/mnt", &err);
    setenv("PATH", path, 1);
    if (rc == 0)
        plan_print_up(&plan, &out);
    assert_string_equal(rc == 0 ? out.buf : err.text, up);
    free(path);
    str_release(&out);
    plan_release(&plan);
    spec_release(&volume.spec);
}

static void file_systems_are_made_and_mounted_as_asked(void **state)
{
    static const struct {
        const char *text;
        unsigned flags;
        const char *up;
    } cases[] = {
        {"x", 0,
         "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/x\nmount -t ext4 /dev/x "
         "/mnt\n"},
        {"x:fs=ext3,mkfs={-J size=400 -O sparse_super,dir_index},mount={noatime,data=writeback}", 0,
         "mkfs.ext3 -q -E lazy_itable_init=0,lazy_journal_init=0 -J size=400 -O "
         "sparse_super,dir_index /dev/x\nmount -t ext3 -o noatime,data=writeback /dev/x /mnt\n"},
        {"x:fs=ext4,mkfs={-E stride=16}", PLAN_FS_ALLOCATED,
         "mkfs.ext4 -q -E stride=16 /dev/x\nmount -t ext4 /dev/x /mnt\n"},
        {"x:fs=ext2", PLAN_FS_ALLOCATED,
         "mkfs.ext2 -q -E nodiscard /dev/x\nmount -t ext2 /dev/x /mnt\n"},
        {"x:fs=ext4", PLAN_FS_ALLOCATED | PLAN_FS_OVERWRITE,
         "# what is there is lost:\nmkfs.ext4 -q -E "
         "lazy_itable_init=0,lazy_journal_init=0,nodiscard -F -L prony /dev/x\n"
         "mount -t ext4 /dev/x /mnt\n"},
        {"x:fs=xfs,mkfs={-d su=64k,sw=4 -l size=128m}", PLAN_FS_OVERWRITE,
         "# what is there is lost:\nmkfs.xfs -q -f -L prony -d su=64k,sw=4 -l size=128m /dev/x\n"
         "mount -t xfs /dev/x /mnt\n"},
        {"x:fs=xfs,mkfs={-L mine}", PLAN_FS_ALLOCATED | PLAN_FS_OVERWRITE,
         "# what is there is lost:\nmkfs.xfs -q -K -f -L mine /dev/x\nmount -t xfs /dev/x /mnt\n"},
        {"x:fs=btrfs,mount=nodatacow", 0,
         "mkfs.btrfs -q /dev/x\nmount -t btrfs -o nodatacow /dev/x /mnt\n"},
        {"x:fs=jfs,mount={}", 0, "mkfs.jfs -q /dev/x\nmount -t jfs /dev/x /mnt\n"},
        {"x:fs=odd", PLAN_FS_OVERWRITE | PLAN_FS_ALLOCATED,
         "# what is there is lost:\nmkfs.odd /dev/x\nmount -t odd /dev/x /mnt\n"},
        {"x:fs=nilfs2", 0,
         "fs=nilfs2: mkfs.nilfs2 is not installed: install the package nilfs-tools"},
        {"x:fs=zzz", 0,
         "fs=zzz: unknown file system, there is no mkfs.zzz here; ext4, xfs and btrfs are common "
         "ones"},
        {"x:fs=a/b", 0, "fs=a/b: name a file system, as ext4, xfs or btrfs"},
        {"x:fs={}", 0, "fs=: name a file system, as ext4, xfs or btrfs"},
    };
    static const char *const there[] = {"ext2", "ext3", "ext4", "xfs", "btrfs", "jfs", "odd"};
    struct scene *s = *state;

    for (size_t i = 0; i < ARR_LEN(there); i++)
        install(s, there[i]);
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_file_system(s, cases[i].text, cases[i].flags, cases[i].up);
}

#define IN_SCENE(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(a_plan_prints_as_a_script),
        IN_SCENE(steps_run_in_order_and_are_undone_in_reverse),
        IN_SCENE(the_registry_alone_undoes_them_too),
        IN_SCENE(a_step_that_fails_is_undone_with_those_before_it),
        IN_SCENE(a_command_is_listed_while_it_runs),
        IN_SCENE(what_was_anothers_is_not_undone),
        IN_SCENE(a_variable_stands_for_what_its_step_printed),
        IN_SCENE(a_signal_ends_it_between_two_steps),
        IN_SCENE(a_step_has_its_time),
        IN_SCENE(a_program_that_is_not_there_is_named),
        IN_SCENE(a_process_that_goes_on_is_waited_for_and_ended),
        IN_SCENE(a_process_that_ends_before_it_is_ready_is_a_failure),
        IN_SCENE(what_is_locked_by_another_is_refused),
        IN_SCENE(file_systems_are_made_and_mounted_as_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
