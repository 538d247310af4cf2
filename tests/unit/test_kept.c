// Registries that are kept under a name, and leftovers that may be listed before they are there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/attached.h"
#include "base/clock.h"
#include "base/leftovers.h"
#include "base/mem.h"
#include "base/tree.h"

struct place {
    char *dir;  // private directory; also XDG_RUNTIME_DIR
    char *kept; // directory of the kept registries
    char *tree;
};

static int place_make(void **state)
{
    struct place *place = mem_calloc(1, sizeof(*place));

    place->dir = mem_strdup("/tmp/prony-test-kept-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    setenv("XDG_RUNTIME_DIR", place->dir, 1);
    place->kept = mem_printf("%s/state", place->dir);
    setenv("PRONY_STATE_DIR", place->kept, 1);
    free(place->kept);
    place->kept = mem_printf("%s/state/kept", place->dir);
    place->tree = mem_printf("%s/tree", place->dir);
    *state = place;
    return 0;
}

static int place_clear(void **state)
{
    struct place *place = *state;

    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->kept);
    free(place->tree);
    free(place);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static void keep_tree(const struct place *place, const char *name)
{
    char *words[] = {(char *)"loop:size=1G", (char *)"a b\n\\", NULL};
    struct leftovers *lo;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_tree(lo, place->tree, NULL) > 0);
    assert_int_equal(mkdir(place->tree, 0700), 0);
    assert_int_equal(leftovers_keep(lo, name, words, NULL), 0);
}

static void what_is_kept_stays_until_it_is_undone_by_name(void **state)
{
    struct place *place = *state;
    struct str report = STR_INIT;
    struct err err = ERR_INIT;
    size_t n;

    keep_tree(place, "fast");
    leftovers_clean_dead(&report); // as the next command does
    assert_true(exists(place->tree));
    assert_string_equal(report.buf, "");
    struct leftovers_kept *list = leftovers_kept_list(&n);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].name, "fast");
    assert_true(list[0].same_boot);
    assert_string_equal(list[0].words[0], "loop:size=1G");
    assert_string_equal(list[0].words[1], "a b\n\\");
    assert_null(list[0].words[2]);
    leftovers_kept_free(list, n);
    assert_int_equal(leftovers_kept_undo("fast", -1, &report, &err), 0);
    assert_false(exists(place->tree));
    assert_int_equal(leftovers_kept_undo("fast", -1, &report, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    list = leftovers_kept_list(&n);
    assert_int_equal(n, 0);
    leftovers_kept_free(list, n);
    str_release(&report);
}

// The guard must take the end of an owner that kept its things for no death.
static void the_guard_of_an_owner_that_kept_leaves_it_alone(void **state)
{
    struct place *place = *state;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        keep_tree(place, "fast");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    usleep(50000); // whatever the guard would do, it would do it now
    assert_true(exists(place->tree));
    assert_int_equal(leftovers_kept_undo("fast", -1, NULL, NULL), 0);
}

static void a_name_is_given_once(void **state)
{
    struct place *place = *state;
    char *words[] = {(char *)"x", NULL};
    char *other = mem_printf("%s/other", place->dir);
    struct err err = ERR_INIT;
    struct leftovers *lo;

    keep_tree(place, "fast");
    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_tree(lo, other, NULL) > 0);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(leftovers_keep(lo, "fast", words, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.text, "there is a fast already");
    // It is as if it had not been tried: the owner still undoes its own.
    leftovers_close(lo, NULL);
    assert_false(exists(other));
    assert_true(exists(place->tree));
    assert_int_equal(leftovers_kept_undo("fast", -1, NULL, NULL), 0);
    free(other);
}

static void what_cannot_be_undone_stays_listed(void **state)
{
    struct place *place = *state;
    char *words[] = {(char *)"x", NULL};
    char *command[] = {(char *)"false", NULL};
    struct str report = STR_INIT;
    struct leftovers *lo;
    size_t n;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_tree(lo, place->tree, NULL) > 0);
    assert_int_equal(mkdir(place->tree, 0700), 0);
    assert_true(leftovers_add_command(lo, command, NULL) > 0);
    assert_int_equal(leftovers_keep(lo, "stuck", words, NULL), 0);
    assert_int_equal(leftovers_kept_undo("stuck", -1, &report, NULL), 2);
    assert_true(exists(place->tree)); // it may lie below
    assert_non_null(strstr(report.buf, "could not undo command false"));
    struct leftovers_kept *list = leftovers_kept_list(&n);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].words[0], "x"); // still told what it is
    leftovers_kept_free(list, n);
    str_release(&report);
}

// After a reboot only the files are there, and nobody wants them.
static void after_a_reboot_the_files_go(void **state)
{
    struct place *place = *state;
    char *path = mem_printf("%s/fast", place->kept);
    char *file_path = mem_printf("%s/image", place->dir);
    struct str report = STR_INIT;
    size_t n;

    keep_tree(place, "other"); // makes the directories
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file,
            "prony-leftovers 1\nboot 11111111-2222-3333-4444-555555555555\nowner 4711\n"
            "+ file %s\n+ loop %s\n+ mount /\n+ command touch %s/done\n"
            "+ command-if %s touch %s/removed\n+ note loop: /x\n",
            file_path, file_path, place->dir, place->dir, place->dir);
    fclose(file);
    chmod(path, 0600);
    file = fopen(file_path, "we");
    assert_non_null(file);
    fclose(file);
    struct leftovers_kept *list = leftovers_kept_list(&n);
    assert_int_equal(n, 2);
    assert_string_equal(list[0].name, "fast");
    assert_false(list[0].same_boot);
    assert_true(list[1].same_boot);
    leftovers_kept_free(list, n);
    leftovers_clean_dead(&report);
    assert_false(exists(file_path));
    assert_false(exists(path));
    assert_true(exists(place->tree));
    char *removed = mem_printf("%s/removed", place->dir);
    assert_true(exists(removed)); // a logical volume outlives a boot
    free(removed);
    assert_non_null(strstr(report.buf, "undone: file"));
    assert_null(strstr(report.buf, "note"));
    assert_null(strstr(report.buf, "mount"));
    assert_int_equal(leftovers_kept_undo("other", -1, NULL, NULL), 0);
    str_release(&report);
    free(path);
    free(file_path);
}

// Somebody unmounted by hand and uses the directory: what is in it is his.
static void a_directory_goes_only_while_it_is_empty(void **state)
{
    struct place *place = *state;
    char *words[] = {(char *)"x", NULL};
    char *theirs = mem_printf("%s/theirs", place->tree);
    struct str report = STR_INIT;
    struct leftovers *lo;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_dir(lo, place->tree, NULL) > 0);
    assert_int_equal(mkdir(place->tree, 0700), 0);
    assert_int_equal(leftovers_keep(lo, "fast", words, NULL), 0);
    assert_int_equal(mkdir(theirs, 0700), 0);
    assert_int_equal(leftovers_kept_undo("fast", -1, &report, NULL), 1);
    assert_non_null(strstr(report.buf, "could not undo dir"));
    assert_true(exists(theirs));
    assert_int_equal(rmdir(theirs), 0);
    assert_int_equal(leftovers_kept_undo("fast", -1, NULL, NULL), 0);
    assert_false(exists(place->tree));
    str_release(&report);
    free(theirs);
}

static void mounts_and_loops_that_never_came_are_nothing_to_undo(void **state)
{
    struct place *place = *state;
    struct str report = STR_INIT;
    struct leftovers *lo;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_mount(lo, place->tree, NULL) > 0);
    assert_true(leftovers_add_loop(lo, place->tree, NULL) > 0);
    assert_true(leftovers_add_command_if(lo, place->tree, (char *[]){(char *)"false", NULL}, NULL) >
                0);
    leftovers_close(lo, &report);
    assert_string_equal(report.buf, "");
    str_release(&report);
}

static void a_command_for_what_is_there_runs(void **state)
{
    struct place *place = *state;
    char *argv[] = {(char *)"rmdir", place->tree, NULL};
    struct leftovers *lo;

    assert_int_equal(leftovers_open(&lo, NULL), 0);
    assert_true(leftovers_add_command_if(lo, place->tree, argv, NULL) > 0);
    assert_int_equal(mkdir(place->tree, 0700), 0);
    leftovers_close(lo, NULL);
    assert_false(exists(place->tree));
}

static void mount_points_are_known_by_their_whole_name(void **state)
{
    (void)state;
    assert_true(attached_is_mounted("/"));
    assert_true(attached_is_mounted("/proc"));
    assert_false(attached_is_mounted("/pro"));
    assert_false(attached_is_mounted("/proc/self"));
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_PLACE(what_is_kept_stays_until_it_is_undone_by_name),
        IN_PLACE(the_guard_of_an_owner_that_kept_leaves_it_alone),
        IN_PLACE(a_name_is_given_once),
        IN_PLACE(what_cannot_be_undone_stays_listed),
        IN_PLACE(after_a_reboot_the_files_go),
        IN_PLACE(a_directory_goes_only_while_it_is_empty),
        IN_PLACE(mounts_and_loops_that_never_came_are_nothing_to_undo),
        IN_PLACE(a_command_for_what_is_there_runs),
        IN_PLACE(mount_points_are_known_by_their_whole_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
