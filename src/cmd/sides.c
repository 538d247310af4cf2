#include "cmd/sides.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

// ---- published figures

static const char *find_sign(const char *text, size_t *ret_len)
{
    static const char *const signs[] = {"+-", "+/-", "\xc2\xb1"};

    for (size_t i = 0; i < ARR_LEN(signs); i++) {
        const char *at = strstr(text, signs[i]);
        *ret_len = strlen(signs[i]);
        if (at)
            return at;
    }
    return NULL;
}

static int parse_published(char *figures, struct summary *ret)
{
    size_t len;
    char *sign = (char *)find_sign(figures, &len), *slash = strrchr(figures, '/');
    int64_t n;

    if (!sign || !slash || slash < sign + len)
        return -1;
    *sign = *slash = '\0';
    if (units_parse_double(figures, &ret->mean, NULL) < 0 ||
        units_parse_double(sign + len, &ret->sd, NULL) < 0 ||
        units_parse_int(slash + 1, &n, NULL) < 0)
        return -1;
    ret->n = n >= 2 && n <= 1000000 ? (int)n : 0;
    return ret->mean > 0 && ret->sd >= 0 && ret->n ? 0 : -1;
}

static int read_published(const char *text, struct side *ret, struct err *err)
{
    const char *equals = strchr(text, '=');
    char *figures = mem_strdup(equals ? equals + 1 : text);
    int rc = parse_published(figures, &ret->published);

    free(figures);
    if (rc < 0)
        return err_set(err, ERR_USAGE,
                       "%s: published figures are MEAN+-SD/N: throughput above 0, standard "
                       "deviation of single runs, at least 2 runs; as in 462+-104/17",
                       text);
    ret->is_published = true;
    free(ret->name);
    ret->name = mem_strndup(text, equals ? (size_t)(equals - text) : strlen(text));
    return 0;
}

// ---- runs

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

// "old.db:LABEL" -> the file's path, allocated, and *ret_which behind the colon; NULL when no part
// before a colon names a file.
static char *split_file(const char *text, const char **ret_which)
{
    for (const char *at = text + strlen(text); at > text; at--) {
        if (*at != ':' && *at)
            continue;
        char *path = mem_strndup(text, (size_t)(at - text));
        if (is_file(path)) {
            *ret_which = *at ? at + 1 : "";
            return path;
        }
        free(path);
    }
    return NULL;
}

// The only run of a file that was named without a colon.
static int select_only(struct store *store, int64_t **ids, int *n, struct err *err)
{
    struct store_row *rows;
    int n_rows;

    if (store_list(store, 2, &rows, &n_rows, err) < 0)
        return -1;
    if (n_rows == 1) {
        *ids = mem_calloc(1, sizeof(**ids));
        **ids = rows[0].id;
        *n = 1;
    }
    store_rows_free(rows, n_rows);
    return n_rows == 1
               ? 0
               : err_set(err, ERR_USAGE, "%s holds %s: say which as %s:LABEL", store_path(store),
                         n_rows ? "several runs" : "no run", store_path(store));
}

static int read_runs(struct store *store, const char *which, struct side *ret, struct err *err)
{
    int64_t *ids = NULL;
    int n = 0;
    int rc = *which ? store_select(store, which, &ids, &n, err) : select_only(store, &ids, &n, err);

    if (rc == 0)
        ret->set.runs = mem_calloc((size_t)n, sizeof(*ret->set.runs));
    for (int i = 0; rc == 0 && i < n; i++) {
        struct result *run;
        rc = store_get_brief(store, ids[i], &run, err);
        if (rc < 0)
            break;
        if (strcmp(run->status, "done") == 0 && run->tps > 0) {
            ret->set.runs[ret->set.n++] = run;
        } else {
            ret->left_out++;
            result_free(run);
        }
    }
    free(ids);
    if (rc == 0 && ret->set.n == 0)
        return err_set(err, ERR_USAGE, "%s: no run of it ended well: see `prony list`", ret->name);
    return rc;
}

static int compare_times(const void *a, const void *b)
{
    const struct result *x = *(struct result *const *)a, *y = *(struct result *const *)b;

    if (x->started_real_ns != y->started_real_ns)
        return (x->started_real_ns > y->started_real_ns) -
               (x->started_real_ns < y->started_real_ns);
    return (x->id > y->id) - (x->id < y->id);
}

int side_read(const char *text, const char *path, struct side *ret, struct err *err)
{
    struct store *store = NULL;
    const char *which = text;
    size_t len;

    *ret = (struct side){.name = mem_strdup(text)};
    char *file = split_file(text, &which);
    if (!file && find_sign(text, &len))
        return read_published(text, ret, err);
    int rc = store_open(&store, file ? file : path, STORE_READ, err);
    if (rc == 0) {
        ret->store = mem_strdup(store_path(store));
        rc = read_runs(store, which, ret, err);
    }
    store_close(store);
    free(file);
    if (rc == 0)
        qsort(ret->set.runs, (size_t)ret->set.n, sizeof(*ret->set.runs), compare_times);
    return rc;
}
