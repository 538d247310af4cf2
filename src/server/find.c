#include "server/find.h"

#include <assert.h>
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/proc.h"
#include "server/kind.h"

// ---- where to look

// The first number in a path's version directory: /usr/lib/postgresql/9.6/bin is 9.6.
static double version_in(const char *path)
{
    const char *digits = path + strcspn(path, "0123456789");

    return strtod(digits, NULL);
}

static int newest_first(const void *a, const void *b)
{
    double left = version_in(*(char *const *)a), right = version_in(*(char *const *)b);

    return (left < right) - (left > right);
}

static void add_versions(struct words *dirs, const char *pattern)
{
    size_t first = dirs->n_items;
    glob_t found;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            words_add(dirs, found.gl_pathv[i]);
        globfree(&found);
    }
    if (dirs->n_items > first)
        qsort(dirs->items + first, dirs->n_items - first, sizeof(dirs->items[0]), newest_first);
}

static bool is_version(const char *text)
{
    return isdigit((unsigned char)text[0]) && !text[strspn(text, "0123456789.")];
}

static void add_chosen(struct words *dirs, const struct server_kind *kind, const char *bin)
{
    static const char *const below[] = {"bin", "sbin", "scripts"};
    const char *star = kind->places ? strchr(kind->places, '*') : NULL;

    if (is_version(bin) && star) {
        words_addf(dirs, "%.*s%s%s", (int)(star - kind->places), kind->places, bin, star + 1);
        return;
    }
    words_add(dirs, bin);
    for (size_t i = 0; i < ARR_LEN(below); i++)
        words_addf(dirs, "%s/%s", bin, below[i]);
}

// Servers are not in everybody's PATH.
static void add_usual(struct words *dirs, const struct server_kind *kind)
{
    static const char *const more[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                       "/usr/bin"};
    const char *path = getenv("PATH");

    if (kind->places)
        add_versions(dirs, kind->places);
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (path[0] == '/')
            words_addf(dirs, "%.*s", (int)len, path);
        path += len + (path[len] == ':');
    }
    for (size_t i = 0; i < ARR_LEN(more); i++)
        words_add(dirs, more[i]);
}

// ---- programs

// NAME|OTHER in a directory, without links on the way, so that what lies beside it is found.
static char *program_in(const char *dir, const char *names)
{
    while (*names) {
        size_t len = strcspn(names, "|");
        char *path = mem_printf("%s/%.*s", dir, (int)len, names);
        struct stat st;
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0) {
            char *real = realpath(path, NULL);
            free(path);
            return real;
        }
        free(path);
        names += len + (names[len] == '|');
    }
    return NULL;
}

// The first line of --version: as it stands, what tells kinds apart, and the version by itself.
static int read_version(const char *program, char *out, size_t size, char *line, size_t line_size)
{
    char *argv[] = {(char *)program, (char *)"--no-defaults", (char *)"--version", NULL};
    char *plain[] = {(char *)program, (char *)"--version", NULL};
    bool is_mysql = strstr(program, "mysqld") || strstr(program, "mariadbd");
    struct proc_result result;
    int rc = proc_run(is_mysql ? argv : plain, 20 * NS_PER_S, &result, NULL);

    snprintf(line, line_size, "%.*s", (int)strcspn(result.out.buf, "\n"), result.out.buf);
    if (rc == 0 && (result.status != 0 || !line[0]))
        rc = -1;
    proc_result_release(&result);
    const char *at = strstr(line, ") ");    // postgres (PostgreSQL) 15.20 (Debian ...)
    const char *ver = strstr(line, "Ver "); // mariadbd  Ver 10.11.14-MariaDB for ...
    const char *from = ver ? ver + 4 : at ? at + 2 : line;
    snprintf(out, size, "%.*s", (int)strcspn(from, " "), from);
    return rc;
}

static bool fits(const struct server_kind *kind, const char *line, const char *version,
                 const char *wanted)
{
    size_t len = strlen(wanted);

    if ((kind->version_has && !strstr(line, kind->version_has)) ||
        (kind->version_lacks && strstr(line, kind->version_lacks)))
        return false;
    return len == 0 ||
           (strncmp(version, wanted, len) == 0 && !isdigit((unsigned char)version[len]));
}

static void forget(struct server_plan *plan)
{
    for (int i = 0; i < SERVER_PROGRAMS_MAX; i++) {
        free(plan->programs[i]);
        plan->programs[i] = NULL;
    }
}

// The server in this directory, the others beside it or where one looks for programs.
static bool take_from(struct server_plan *plan, const struct words *dirs, const char *dir)
{
    const struct server_kind *kind = plan->kind;

    plan->programs[0] = program_in(dir, kind->programs[0]);
    if (!plan->programs[0])
        return false;
    char *beside = mem_strndup(plan->programs[0],
                               (size_t)(strrchr(plan->programs[0], '/') - plan->programs[0]));
    for (int i = 1; i < SERVER_PROGRAMS_MAX && kind->programs[i]; i++) {
        plan->programs[i] = program_in(beside, kind->programs[i]);
        for (size_t k = 0; k < dirs->n_items && !plan->programs[i]; k++)
            plan->programs[i] = program_in(dirs->items[k], kind->programs[i]);
    }
    free(beside);
    return true;
}

// What was found and did not fit says more than that nothing was found.
struct misfit {
    char program[256], version[64];
    bool is_other_kind;
};

static int say_absent(const struct server_plan *plan, const char *wanted,
                      const struct misfit *misfit, struct err *err)
{
    const struct server_kind *kind = plan->kind;
    const char *bin = plan->wish->bin;

    if (misfit->is_other_kind)
        return err_set(
            err, ERR_ABSENT, "%s is %s, and no %s is installed%s%s: install the package %s%s",
            misfit->program, misfit->version, kind->title, bin ? " in " : "", bin ? bin : "",
            kind->package, kind->version_lacks ? ", or use server:mariadb" : "");
    if (misfit->program[0])
        return err_set(err, ERR_ABSENT,
                       "the data directory is of %s %s, and %s is %s: install the package "
                       "%s-%s, or name its programs with bin=",
                       kind->title, wanted, misfit->program, misfit->version, kind->package,
                       wanted);
    if (bin)
        return err_set(err, ERR_ABSENT,
                       "bin=%s: there is no %.*s of %s; without bin= what is installed is taken "
                       "(package %s)",
                       bin, (int)strcspn(kind->programs[0], "|"), kind->programs[0], kind->title,
                       kind->package);
    return err_set(err, ERR_ABSENT,
                   "%s is not installed: install the package %s, or name its programs with bin=",
                   kind->title, kind->package);
}

static int find_rest(struct server_plan *plan, struct err *err)
{
    for (int i = 1; i < SERVER_PROGRAMS_MAX && plan->kind->programs[i]; i++)
        if (!plan->programs[i])
            return err_set(err, ERR_ABSENT, "%s is there, and %.*s is not: install the package %s",
                           plan->programs[0], (int)strcspn(plan->kind->programs[i], "|"),
                           plan->kind->programs[i], plan->kind->package);
    return 0;
}

int find_programs(struct server_plan *plan, const char *wanted, struct err *err)
{
    struct words dirs = {0};
    struct misfit misfit = {{0}};
    char line[256];
    int rc = -1;

    assert(plan->kind && !plan->programs[0]);
    if (plan->wish->bin)
        add_chosen(&dirs, plan->kind, plan->wish->bin);
    else
        add_usual(&dirs, plan->kind);
    for (size_t i = 0; i < dirs.n_items; i++) {
        if (!take_from(plan, &dirs, dirs.items[i]))
            continue;
        if (read_version(plan->programs[0], plan->version, sizeof(plan->version), line,
                         sizeof(line)) == 0 &&
            fits(plan->kind, line, plan->version, plan->wish->bin ? "" : wanted)) {
            rc = find_rest(plan, err);
            goto out;
        }
        if (!misfit.program[0]) {
            snprintf(misfit.program, sizeof(misfit.program), "%s", plan->programs[0]);
            snprintf(misfit.version, sizeof(misfit.version), "%s", plan->version);
            misfit.is_other_kind = !fits(plan->kind, line, plan->version, "");
        }
        forget(plan);
    }
    say_absent(plan, wanted, &misfit, err);
out:
    words_release(&dirs);
    return rc;
}
