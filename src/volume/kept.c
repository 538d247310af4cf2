// Volumes that outlive their command: a registry under the volume's name (base/leftovers.h), whose
// words are the volume's text and path.
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "volume/type.h"

enum { WORD_TEXT, WORD_PATH, WORDS };

int volume_keep(struct volume *volume, struct err *err)
{
    char *words[WORDS + 1] = {[WORD_TEXT] = volume->text, [WORD_PATH] = volume->plan.path};

    assert(volume->is_up && !volume->is_kept);
    if (leftovers_keep(volume->wish.leftovers, volume->name, words, err) < 0) {
        struct str report = STR_INIT;
        err_prefix(err, "volume %s", volume->name);
        (void)volume_down(volume, &report);
        leftovers_close(volume->wish.leftovers, &report);
        if (report.len)
            err_set(err, err->kind, "%s; then %s", err->text, report.buf);
        str_release(&report);
        volume->wish.leftovers = NULL;
        return -1;
    }
    volume->wish.leftovers = NULL;
    volume->is_up = false;
    volume->is_kept = true;
    return 0;
}

struct volume_kept *volume_list_kept(size_t *ret_n)
{
    size_t n;
    struct leftovers_kept *kept = leftovers_kept_list(&n);
    struct volume_kept *list = mem_calloc(n + 1, sizeof(*list));

    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!kept[i].words[WORD_TEXT] || !kept[i].words[WORD_PATH])
            continue;
        list[(*ret_n)++] = (struct volume_kept){
            .name = mem_strdup(kept[i].name),
            .text = mem_strdup(kept[i].words[WORD_TEXT]),
            .path = mem_strdup(kept[i].words[WORD_PATH]),
            .here = kept[i].same_boot,
        };
    }
    leftovers_kept_free(kept, n);
    return list;
}

void volume_kept_free(struct volume_kept *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].name);
        free(list[i].text);
        free(list[i].path);
    }
    free(list);
}

// Is a run at work there? It holds the lock on the directory. If not, no other comes while ret_fd
// is open (-1: there is nothing to hold).
static int hold(const struct volume_kept *kept, int *ret_fd, struct err *err)
{
    int fd = open(kept->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *ret_fd = -1;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        close(fd);
        return err_set(err, ERR_USAGE, "volume %s is in use by another prony: wait for its end",
                       kept->name);
    }
    *ret_fd = fd;
    return 0;
}

// Another one that lies in it would go with it.
static int check_empty(const struct volume_kept *list, size_t n, const struct volume_kept *kept,
                       struct err *err)
{
    size_t len = strlen(kept->path);

    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i].path, kept->path, len) == 0 && list[i].path[len] == '/')
            return err_set(err, ERR_USAGE, "volume %s lies in volume %s: take it down first",
                           list[i].name, kept->name);
    return 0;
}

int volume_take_down(const char *name, struct err *err)
{
    struct str report = STR_INIT;
    size_t n;
    struct volume_kept *list = volume_list_kept(&n);
    int rc = volume_check_name(name, err), held_fd = -1;

    for (size_t i = 0; rc == 0 && held_fd < 0 && i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            rc = check_empty(list, n, &list[i], err) < 0 ? -1 : hold(&list[i], &held_fd, err);
    volume_kept_free(list, n);
    if (rc < 0)
        return rc;
    rc = leftovers_kept_undo(name, held_fd, &report, err);
    if (rc < 0)
        err_prefix(err, "volume %s", name);
    if (rc > 0) {
        report.buf[strcspn(report.buf, "\n")] = '\0';
        rc = err_set(err, ERR_FAILED, "volume %s: %s; `prony volume down %s` tries again", name,
                     report.buf, name);
    }
    str_release(&report);
    return rc;
}
