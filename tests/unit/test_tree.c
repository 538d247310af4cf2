// Removing trees, on the file system of the temporary directory. The cases with mounts need root
// and a kernel that lets us mount; elsewhere they are skipped.
#include "base/tree.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"

struct place {
    char *dir; // a fresh directory
    char *tree;
    char *outside;
};

static char *path_in(const char *dir, const char *name)
{
    return mem_printf("%s/%s", dir, name);
}

static void make_file(const char *dir, const char *name)
{
    char *path = path_in(dir, name);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

    assert_true(fd >= 0);
    close(fd);
    free(path);
}

static char *make_dir(const char *dir, const char *name)
{
    char *path = path_in(dir, name);

    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static bool exists(const char *dir, const char *name)
{
    char *path = path_in(dir, name);
    struct stat st;
    bool found = lstat(path, &st) == 0;

    free(path);
    return found;
}

static int place_make(void **state)
{
    struct place *place = mem_calloc(1, sizeof(*place));
    char *dir = mem_strdup("/tmp/prony-test-tree-XXXXXX");

    assert_non_null(mkdtemp(dir));
    place->dir = dir;
    place->tree = make_dir(dir, "tree");
    place->outside = make_dir(dir, "outside");
    make_file(place->outside, "precious");
    *state = place;
    return 0;
}

static int place_clear(void **state)
{
    struct place *place = *state;

    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->tree);
    free(place->outside);
    free(place);
    return 0;
}

static void a_tree_goes_with_all_it_holds(void **state)
{
    struct place *place = *state;
    static const char *const odd_names[] = {"a b",     "new\nline", "..x",
                                            ".hidden", "\xff\xfe",  "-rf"};
    char *dir = mem_strdup(place->tree);

    for (int depth = 0; depth < 20; depth++) {
        for (size_t i = 0; i < ARR_LEN(odd_names); i++)
            make_file(dir, odd_names[i]);
        char *inner = make_dir(dir, "in ner");
        free(dir);
        dir = inner;
    }
    free(dir);
    assert_int_equal(tree_remove(place->tree, NULL), 0);
    assert_false(exists(place->dir, "tree"));
}

static void a_file_and_a_dangling_link_go_too(void **state)
{
    struct place *place = *state;
    char *file = path_in(place->tree, "file");
    char *link = path_in(place->tree, "link");

    make_file(place->tree, "file");
    assert_int_equal(symlink("/no/such/thing", link), 0);
    assert_int_equal(tree_remove(file, NULL), 0);
    assert_int_equal(tree_remove(link, NULL), 0);
    assert_false(exists(place->tree, "file") || exists(place->tree, "link"));
    free(file);
    free(link);
}

static void links_are_not_followed(void **state)
{
    struct place *place = *state;
    char *inner = path_in(place->tree, "link");
    char *top = path_in(place->dir, "top");

    assert_int_equal(symlink(place->outside, inner), 0);
    assert_int_equal(symlink(place->outside, top), 0);
    assert_int_equal(tree_remove(place->tree, NULL), 0);
    assert_int_equal(tree_remove(top, NULL), 0);
    assert_false(exists(place->dir, "tree") || exists(place->dir, "top"));
    assert_true(exists(place->outside, "precious"));
    free(inner);
    free(top);
}

static void nothing_there_is_success(void **state)
{
    struct place *place = *state;
    char *gone = path_in(place->dir, "gone");
    char *deeper = path_in(gone, "deeper");

    assert_int_equal(tree_remove(gone, NULL), 0);
    assert_int_equal(tree_remove(deeper, NULL), 0);
    free(gone);
    free(deeper);
}

static void slips_are_refused(void **state)
{
    static const char *const paths[] = {"/",   "//",      "",          ".",          "relative",
                                        "/.",  "/tmp/..", "/tmp/../x", "/tmp/x/./.", "///",
                                        "./x", "..",      "/..",       "/tmp/./"};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(paths); i++) {
        struct err err = ERR_INIT;
        assert_true(tree_remove(paths[i], &err) < 0);
        assert_non_null(strstr(err.text, "not an absolute path"));
    }
}

static void trailing_slashes_do_not_matter(void **state)
{
    struct place *place = *state;
    char *path = mem_printf("%s//", place->tree);

    make_file(place->tree, "..x");
    assert_int_equal(tree_remove(path, NULL), 0);
    assert_false(exists(place->dir, "tree"));
    free(path);
}

static void nesting_is_bounded_by_an_error(void **state)
{
    struct place *place = *state;
    struct err err = ERR_INIT;
    int fd = open(place->tree, O_RDONLY | O_DIRECTORY);

    for (int i = 0; i < 300; i++) {
        assert_int_equal(mkdirat(fd, "d", 0700), 0);
        int inner = openat(fd, "d", O_RDONLY | O_DIRECTORY);
        assert_true(inner >= 0);
        close(fd);
        fd = inner;
    }
    close(fd);
    assert_true(tree_remove(place->tree, &err) < 0);
    assert_non_null(strstr(err.text, "nested too deeply"));

    // Taken apart from the middle, so that the clean-up can do the rest.
    struct str middle = STR_INIT;
    str_add(&middle, place->tree);
    for (int i = 0; i < 150; i++)
        str_add(&middle, "/d");
    assert_int_equal(tree_remove(middle.buf, NULL), 0);
    assert_int_equal(tree_remove(place->tree, NULL), 0);
    str_release(&middle);
}

// In a child with mounts of its own, so that nothing can stay behind. Exit status 77: not possible.
static int bind_and_remove(const struct place *place, const char *onto)
{
    struct err err = ERR_INIT;
    int status = 0;

    if (unshare(CLONE_NEWNS) < 0)
        return 77;
    (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL); // fails below a chroot
    if (mount(place->outside, onto, NULL, MS_BIND, NULL) < 0)
        return 77;
    if (tree_remove(place->tree, &err) == 0)
        status = 1;
    else if (!strstr(err.text, "something is mounted there"))
        status = 2;
    else if (!exists(place->outside, "precious"))
        status = 3;
    return umount(onto) < 0 ? 4 : status;
}

static void mounts_are_never_entered(void **state)
{
    struct place *place = *state;
    char *inner = make_dir(place->tree, "mounted");
    const char *const onto[] = {inner, place->tree};

    make_file(place->tree, "a");
    make_file(place->tree, "z");
    for (size_t i = 0; i < ARR_LEN(onto); i++) {
        int wait_status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(bind_and_remove(place, onto[i]));
        assert_int_equal(waitpid(pid, &wait_status, 0), pid);
        if (WEXITSTATUS(wait_status) == 77) {
            free(inner);
            skip();
        }
        assert_int_equal(wait_status, 0);
        // Emptied around the mount when it lay inside.
        assert_false(exists(place->tree, "a") || exists(place->tree, "z"));
        assert_true(exists(place->tree, "mounted"));
    }
    free(inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tree_goes_with_all_it_holds, place_make, place_clear),
        cmocka_unit_test_setup_teardown(a_file_and_a_dangling_link_go_too, place_make, place_clear),
        cmocka_unit_test_setup_teardown(links_are_not_followed, place_make, place_clear),
        cmocka_unit_test_setup_teardown(nothing_there_is_success, place_make, place_clear),
        cmocka_unit_test(slips_are_refused),
        cmocka_unit_test_setup_teardown(trailing_slashes_do_not_matter, place_make, place_clear),
        cmocka_unit_test_setup_teardown(nesting_is_bounded_by_an_error, place_make, place_clear),
        cmocka_unit_test_setup_teardown(mounts_are_never_entered, place_make, place_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
