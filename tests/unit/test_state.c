// Manifests, and states of data sets as files: whole or not at all, found by their key, locked
// while in use. Volumes as images need root: tests/program/test_state.py.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/tree.h"
#include "volume/manifest.h"
#include "volume/state.h"

struct place {
    char *dir, *data, *states;
    struct leftovers *leftovers;
    struct state_wish wish;
};

static void write_file(const char *dir, const char *name, const char *text, off_t size)
{
    char *path = mem_printf("%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    if (size)
        assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
    free(path);
}

static void in_dir(const char *dir, const char *name, int (*call)(const char *path))
{
    char *path = mem_printf("%s/%s", dir, name);

    assert_int_equal(call(path), 0);
    free(path);
}

static int make_dir(const char *path)
{
    return mkdir(path, 0755);
}

static int place_make(void **state)
{
    struct place *place = mem_calloc(1, sizeof(*place));

    place->dir = mem_strdup("/tmp/prony-test-state-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    setenv("XDG_RUNTIME_DIR", place->dir, 1);
    place->data = mem_printf("%s/data", place->dir);
    place->states = mem_printf("%s/states", place->dir);
    assert_int_equal(make_dir(place->data), 0);
    in_dir(place->data, "below", make_dir);
    in_dir(place->data, "lost+found", make_dir);
    write_file(place->data, "below/table", "rows", 0);
    write_file(place->data, "sparse", "x", 1 << 20);
    char *link = mem_printf("%s/link", place->data);
    assert_int_equal(symlink("below/table", link), 0);
    free(link);
    assert_int_equal(leftovers_open(&place->leftovers, NULL), 0);
    place->wish = (struct state_wish){
        .dir = place->states, .key = "state 1\ntables t scale 1\n", .leftovers = place->leftovers};
    *state = place;
    return 0;
}

static int place_clear(void **state)
{
    struct place *place = *state;

    leftovers_close(place->leftovers, NULL);
    (void)tree_remove(place->dir, NULL);
    free(place->dir);
    free(place->data);
    free(place->states);
    free(place);
    return 0;
}

static char *lines_of(const char *dir)
{
    struct manifest manifest = MANIFEST_INIT;

    assert_int_equal(manifest_add_tree(&manifest, dir, "data", NULL), 0);
    return str_detach(&manifest.text);
}

static void a_manifest_has_a_line_for_all_but_lost_and_found(void **state)
{
    struct place *place = *state;
    static const char *const wanted[] = {"dir 755 ", "data/below\n", "file 600 ",
                                         " 4 ",      "/table\n",     "link 777 ",
                                         "/link\n",  " 1048576 ",    "data/sparse\n"};
    char *lines = lines_of(place->data);
    int n = 0;

    for (size_t i = 0; i < ARR_LEN(wanted); i++)
        if (!strstr(lines, wanted[i]))
            fail_msg("\"%s\" is not in\n%s", wanted[i], lines);
    for (const char *p = lines; *p; p++)
        n += *p == '\n';
    assert_int_equal(n, 4);
    assert_null(strstr(lines, "lost+found"));
    free(lines);
}

static int touch_mode(const char *path)
{
    return chmod(path, 0640);
}

// Each changes one thing; the first line that differs is named.
static void a_manifest_sees_each_change(void **state)
{
    struct place *place = *state;
    static const char *const names[] = {"data/below/table", "data/below/table", "data/new",
                                        "data/link", "data/sparse"};
    char *before = lines_of(place->data);

    for (size_t i = 0; i < ARR_LEN(names); i++) {
        if (i == 0)
            write_file(place->data, "below/table", "Rows", 0);
        else if (i == 1)
            in_dir(place->data, "below/table", touch_mode);
        else if (i == 2)
            write_file(place->data, "new", "", 0);
        else if (i == 3)
            in_dir(place->data, "link", unlink);
        else
            write_file(place->data, "sparse", "x", (1 << 20) + 1);
        char *after = lines_of(place->data);
        char *name = manifest_difference(before, after, "data/");
        assert_non_null(name);
        assert_string_equal(name, names[i]);
        free(name);
        assert_null(manifest_difference(before, after, "log/"));
        free(before);
        before = after;
    }
    free(before);
}

// How a file is laid out is no matter of its contents.
static void a_hole_equals_zeros(void **state)
{
    struct place *place = *state;
    char *zeros = mem_calloc(1, 200000), *path = mem_printf("%s/sparse", place->data);
    char *before = lines_of(place->data);
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, zeros, 200000, 4096), 200000);
    close(fd);
    char *after = lines_of(place->data);
    assert_string_equal(before, after);
    free(zeros);
    free(path);
    free(before);
    free(after);
}

static void a_damaged_manifest_differs_and_no_more(void **state)
{
    static const char *const damaged[] = {"",        "\n\n",     "file", "file 600 0:0 4",
                                          "     \n", "a b c d e"};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(damaged); i++) {
        char *name = manifest_difference("file 600 0:0 4 ab data/x\n", damaged[i], "data/");
        assert_non_null(name);
        free(name);
    }
}

static struct state *save(struct place *place)
{
    struct err err = ERR_INIT;
    struct state *state;

    assert_int_equal(state_begin(&state, &place->wish, &err), 0);
    if (state_note(state, "data", place->data, &err) < 0 ||
        state_add_files(state, "data", place->data, &err) < 0 || state_commit(state, &err) < 0)
        fail_msg("%s", err.text);
    return state;
}

static void restore(struct place *place, const struct state *state, const char *to)
{
    struct volume_wish wish = {.leftovers = place->leftovers};
    struct plan_of_volume plan = {.lock_fd = -1};
    struct err err = ERR_INIT;

    assert_int_equal(state_check_room(state, "data", place->dir, &err), 0);
    state_plan_files(state, "data", to, false, &plan);
    if (plan_run(&plan, &wish, &err) < 0)
        fail_msg("%s", err.text);
    plan_release(&plan);
}

static void what_is_restored_is_what_was_saved(void **state)
{
    struct place *place = *state;
    char *to = mem_printf("%s/to", place->dir);
    struct err err = ERR_INIT;
    struct state *found;

    assert_int_equal(state_find(&found, &place->wish, &err), 0);
    state_close(save(place));
    assert_int_equal(state_find(&found, &place->wish, &err), 1);
    assert_null(state_image(found, "data"));
    restore(place, found, to);
    assert_int_equal(state_verify(found, "data", to, &err), 0);
    assert_int_equal(state_check(found, NULL, &err), 0);
    write_file(to, "below/table", "ROWS", 0);
    assert_int_equal(state_verify(found, "data", to, &err), -1);
    assert_non_null(strstr(err.text, "data/below/table"));
    state_close(found);
    free(to);
}

static void a_damaged_state_is_seen(void **state)
{
    struct place *place = *state;
    struct state *saved = save(place);
    char *files = mem_printf("%s/data.files", state_path(saved));
    struct err err = ERR_INIT;

    assert_int_equal(state_check(saved, NULL, &err), 0);
    write_file(files, "below/table", "tows", 0);
    assert_int_equal(state_check(saved, NULL, &err), -1);
    assert_non_null(strstr(err.text, "damaged: data/below/table"));
    state_close(saved);
    free(files);
}

static void one_that_is_not_committed_is_gone(void **state)
{
    struct place *place = *state;
    struct err err = ERR_INIT;
    struct state *begun;
    size_t n;

    assert_int_equal(state_begin(&begun, &place->wish, &err), 0);
    assert_int_equal(state_add_files(begun, "data", place->data, &err), 0);
    assert_int_equal(access(state_path(begun), F_OK), 0);
    char *path = mem_strdup(state_path(begun));
    state_close(begun);
    assert_int_equal(access(path, F_OK), -1);
    struct state_info *list = state_list(place->states, &n);
    assert_int_equal(n, 0);
    state_list_free(list, n);
    free(path);
}

static void a_signal_ends_saving(void **state)
{
    struct place *place = *state;
    volatile sig_atomic_t stop = 0;
    struct err err = ERR_INIT;
    struct state *begun;

    place->wish.stop = &stop;
    assert_int_equal(state_begin(&begun, &place->wish, &err), 0);
    assert_int_equal(state_note(begun, "data", place->data, &err), 0);
    stop = 1;
    assert_int_equal(state_add_files(begun, "data", place->data, &err), -1);
    assert_string_equal(err.text, "interrupted");
    assert_int_equal(state_commit(begun, &err), -1);
    state_close(begun);
    stop = 0;
    assert_int_equal(state_find(&begun, &place->wish, &err), 0);
}

// A name belongs to one key; without a name each key has its own.
static void a_name_is_of_one_set_up(void **state)
{
    struct place *place = *state;
    struct err err = ERR_INIT;
    struct state *found;

    place->wish.name = "mine";
    state_close(save(place));
    assert_int_equal(state_find(&found, &place->wish, &err), 1);
    assert_string_equal(state_name(found), "mine");
    state_close(found);
    place->wish.key = "state 1\ntables t scale 2\n";
    assert_int_equal(state_find(&found, &place->wish, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "tables t scale 1, not tables t scale 2"));
    place->wish.name = NULL;
    assert_int_equal(state_find(&found, &place->wish, &err), 0);
    place->wish.name = "../x";
    assert_int_equal(state_find(&found, &place->wish, &err), -1);
}

// Somebody else was faster: with the same set-up his is as good, with another it is not ours.
static void of_two_that_save_one_name_one_remains(void **state)
{
    struct place *place = *state;
    const char *const keys[] = {place->wish.key, "k"};

    place->wish.name = "mine";
    for (size_t i = 0; i < 2; i++) {
        struct err err = ERR_INIT;
        struct state *slow;
        size_t n;
        assert_int_equal(state_begin(&slow, &place->wish, &err), 0);
        assert_int_equal(state_note(slow, "data", place->data, &err), 0);
        assert_int_equal(state_add_files(slow, "data", place->data, &err), 0);
        // The same name as a directory that holds something.
        char *path = mem_printf("%s/%s", place->states, state_name(slow));
        assert_int_equal(mkdir(path, 0700), 0);
        write_file(path, "key", keys[i], 0);
        assert_int_equal(state_commit(slow, &err), i == 0 ? 0 : -1);
        assert_int_equal(err.kind, i == 0 ? 0 : ERR_USAGE);
        state_close(slow);
        struct state_info *list = state_list(place->states, &n);
        assert_int_equal(n, 1);
        assert_string_equal(list[0].key, keys[i]);
        state_list_free(list, n);
        char *key = mem_printf("%s/key", path);
        assert_int_equal(unlink(key), 0);
        assert_int_equal(rmdir(path), 0);
        free(key);
        free(path);
    }
}

static void one_in_use_is_not_forgotten(void **state)
{
    struct place *place = *state;
    struct err err = ERR_INIT;
    struct state *used;

    place->wish.name = "mine";
    used = save(place);
    assert_int_equal(state_forget(place->states, "mine", place->leftovers, &err), -1);
    assert_non_null(strstr(err.text, "in use"));
    state_close(used);
    assert_int_equal(state_forget(place->states, "mine", place->leftovers, &err), 0);
    assert_int_equal(state_forget(place->states, "mine", place->leftovers, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_int_equal(state_find(&used, &place->wish, &err), 0);
}

static void no_room_is_told_before(void **state)
{
    struct place *place = *state;
    struct err err = ERR_INIT;

    assert_int_equal(state_make_room(place->states, INT64_MAX / 2, &err), -1);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_non_null(strstr(err.text, "free"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_has_a_line_for_all_but_lost_and_found),
        TEST(a_manifest_sees_each_change),
        TEST(a_hole_equals_zeros),
        cmocka_unit_test(a_damaged_manifest_differs_and_no_more),
        TEST(what_is_restored_is_what_was_saved),
        TEST(a_damaged_state_is_seen),
        TEST(one_that_is_not_committed_is_gone),
        TEST(a_signal_ends_saving),
        TEST(a_name_is_of_one_set_up),
        TEST(of_two_that_save_one_name_one_remains),
        TEST(one_in_use_is_not_forgotten),
        TEST(no_room_is_told_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
