// The order: the controller is handed down by the root (and taken back if it was not), the group is
// made, its limit is set, prony goes into it. Undone in reverse: all that is in it goes back to
// where prony was, whoever does that, then the group is removed.
#include "volume/limit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"

static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};

static const char hand_down[] = "grep -qw io \"$0\" || echo +io >\"$0\"";
// Not while another prony's group is below, whose limits would go with it.
static const char take_back[] = "case \" $1 \" in *' io '*) exit 0 ;; esac\n"
                                "for group in \"${0%/*}\"/prony-*/; do\n"
                                "    [ -d \"$group\" ] && exit 0\n"
                                "done\n"
                                "echo -io >\"$0\"";
static const char set_limit[] =
    "device=$(readlink -f \"$1\") && "
    "echo \"$(cat \"/sys/class/block/${device##*/}/dev\") $2\" >\"$0/io.max\"";
static const char enter[] = "echo \"$PPID\" >\"$0/cgroup.procs\"";
static const char leave[] = "[ -d \"$0\" ] || exit 0\n"
                            "for pid in $(cat \"$0/cgroup.procs\"); do\n"
                            "    echo \"$pid\" >\"$1/cgroup.procs\" 2>/dev/null\n"
                            "done\n"
                            "rmdir \"$0\"";

// First line of a small file, or the line that begins so. The caller frees it; NULL.
static char *read_line(const char *path, const char *begins)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NULL;
    text[n] = '\0';
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, begins, strlen(begins)) == 0)
            return mem_strdup(line + strlen(begins));
    return NULL;
}

static bool has_word(const char *line, const char *word)
{
    char *copy = mem_strdup(line), *rest = copy;
    bool found = false;

    for (char *one; !found && (one = strsep(&rest, " "));)
        found = strcmp(one, word) == 0;
    free(copy);
    return found;
}

// "rbps=20M riops=100" as the kernel wants it.
static int read_limit(const char *value, struct str *out, struct err *err)
{
    char *copy = mem_strdup(value), *rest = copy;
    int rc = 0;

    for (char *word; rc == 0 && (word = strsep(&rest, " \t\n,"));) {
        char *number = strchr(word, '=');
        int64_t n = 0;
        if (!*word)
            continue;
        if (number)
            *number++ = '\0';
        bool is_bytes = strcmp(word, "rbps") == 0 || strcmp(word, "wbps") == 0;
        bool is_count = strcmp(word, "riops") == 0 || strcmp(word, "wiops") == 0;
        bool good = number && ((is_bytes && units_parse_size(number, &n, NULL) == 0) ||
                               (is_count && units_parse_int(number, &n, NULL) == 0));
        if (!good || n < 1)
            rc = err_set(err, ERR_USAGE,
                         "limit={%s}: must be of rbps=SIZE, wbps=SIZE, riops=N and wiops=N", value);
        else
            str_addf(out, "%s%s=%lld", out->len ? " " : "", word, (long long)n);
    }
    if (rc == 0 && !out->len)
        rc = err_set(err, ERR_USAGE, "limit is empty: rbps=SIZE, wbps=SIZE, riops=N, wiops=N");
    free(copy);
    return rc;
}

int limit_plan_in(struct plan_of_volume *plan, const struct volume *volume, const char *device,
                  const char *root, const char *own, struct err *err)
{
    struct str limit = STR_INIT;
    char *control = NULL, *group = NULL, *back = NULL;
    int rc = read_limit(volume_value(volume, "limit"), &limit, err);

    if (rc < 0)
        goto out;
    control = mem_printf("%s/cgroup.subtree_control", root);
    group = mem_printf("%s/prony-%s", root, volume->name);
    back = mem_printf("%s%s", root, strcmp(own, "/") == 0 ? "" : own);
    struct plan_step *step = plan_command(plan, "cat", control, NULL);
    step->variable = mem_strdup("CONTROLLERS");
    step = plan_command(plan, "sh", "-c", hand_down, control, NULL);
    plan_undo(step, PLAN_COMMAND, "sh", "-c", take_back, control, "$CONTROLLERS", NULL);
    step = plan_command(plan, "mkdir", group, NULL);
    step->exclusive = true;
    plan_undo(step, PLAN_COMMAND, "sh", "-c", leave, group, back, NULL);
    plan_command(plan, "sh", "-c", set_limit, group, device, limit.buf, NULL);
    plan_command(plan, "sh", "-c", enter, group, NULL);
out:
    str_release(&limit);
    free(control);
    free(group);
    free(back);
    return rc;
}

int limit_plan(struct plan_of_volume *plan, const struct volume *volume, const char *device,
               struct err *err)
{
    char *there = NULL;
    const char *found = NULL;
    int rc;

    if (!volume_value(volume, "limit"))
        return 0;
    if (volume->wish.stays)
        return err_set(err, ERR_USAGE,
                       "limit is of the processes of a run: describe the volume "
                       "where the run's target names it");
    for (int i = 0; roots[i] && !found; i++) {
        char *path = mem_printf("%s/cgroup.controllers", roots[i]);
        char *line = read_line(path, "");
        if (line && has_word(line, "io"))
            found = roots[i];
        if (line) {
            free(there);
            there = line;
        }
        free(path);
    }
    char *own = read_line("/proc/self/cgroup", "0::");
    if (found && own)
        rc = limit_plan_in(plan, volume, device, found, own, err);
    else
        rc = err_set(err, ERR_ABSENT,
                     "limit needs the io controller of cgroup v2, which is not here (%s%s)",
                     there ? "there are: " : "cgroup v2 is not mounted", there ? there : "");
    free(there);
    free(own);
    return rc;
}
