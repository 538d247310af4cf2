// What stands against believing a comparison. Ids and remedies: docs/doubts.md.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/comparison.h"
#include "stats/changes.h"

#define NAMED_MAX 5 // runs that a sentence names

// ---- within a side

static void doubt_left_out(struct comparison *c, const struct side *side)
{
    if (side->left_out > 0)
        comparison_add_doubt(c, "left-out",
                             "%d run%s of %s did not end well (interrupted, failed, or without "
                             "throughput) and %s not counted",
                             side->left_out, side->left_out == 1 ? "" : "s", side->name,
                             side->left_out == 1 ? "is" : "are");
}

static double *throughputs(const struct side *side)
{
    double *values = mem_calloc((size_t)side->set.n + 1, sizeof(*values));

    for (int i = 0; i < side->set.n; i++)
        values[i] = side->set.runs[i]->tps;
    return values;
}

static void doubt_outliers(struct comparison *c, const struct side *side, const double *tps)
{
    bool *marks = mem_calloc((size_t)side->set.n + 1, sizeof(*marks));
    int n = outliers_mark(tps, side->set.n, marks), named = 0;
    struct str which = STR_INIT;

    for (int i = 0; i < side->set.n && named < NAMED_MAX; i++)
        if (marks[i])
            str_addf(&which, "%s%lld", named++ ? ", " : "", (long long)side->set.runs[i]->id);
    if (n > 0)
        comparison_add_doubt(c, "outlier",
                             "run%s %s%s of %s lie%s far from the others; counted all the same, as "
                             "what happened once may happen again: look with `prony show`",
                             n == 1 ? "" : "s", which.buf, n > named ? ", ..." : "", side->name,
                             n == 1 ? "s" : "");
    str_release(&which);
    free(marks);
}

// State that is carried from run to run shows as a change of level.
static void doubt_levels(struct comparison *c, const struct side *side, const double *tps)
{
    struct change *changes = mem_calloc((size_t)side->set.n + 1, sizeof(*changes));
    int n = changes_find(tps, side->set.n, changes);

    if (n > 0)
        comparison_add_doubt(c, "level-changed",
                             "the runs of %s changed their level: from run %lld on %.2f times of "
                             "what was before; what a run leaves behind, or something outside, is "
                             "in the numbers: restore the same state before each run",
                             side->name, (long long)side->set.runs[changes[0].at]->id,
                             changes[0].ratio);
    free(changes);
}

static void doubt_own_doubts(struct comparison *c, const struct side *side)
{
    char **ids = NULL;
    size_t n = 0, cap = 0;
    struct str list = STR_INIT;

    for (int i = 0; i < side->set.n; i++)
        for (int j = 0; j < side->set.runs[i]->n_warnings; j++) {
            char *id = side->set.runs[i]->warnings[j].id;
            bool known = false;
            for (size_t k = 0; k < n && !known; k++)
                known = strcmp(ids[k], id) == 0;
            if (!known)
                *ARR_PUSH(ids, n, cap) = id;
        }
    for (size_t k = 0; k < n; k++) {
        int with = 0;
        for (int i = 0; i < side->set.n; i++)
            with += result_has_warning(side->set.runs[i], ids[k]);
        str_addf(&list, "%s%s (%d of %d)", k ? ", " : "", ids[k], with, side->set.n);
    }
    if (n > 0)
        comparison_add_doubt(c, "of-runs", "%s: %s; `prony show RUN` explains them", side->name,
                             list.buf);
    str_release(&list);
    free(ids);
}

// ---- between sides

static int64_t edge_ns(const struct run_set *set, bool last)
{
    int64_t edge = set->runs[0]->started_real_ns;

    for (int i = 1; i < set->n; i++) {
        int64_t started = set->runs[i]->started_real_ns;
        if (last ? started > edge : started < edge)
            edge = started;
    }
    return edge;
}

static void doubt_before_after(struct comparison *c, const struct compared *pair)
{
    const struct side *old = &c->sides[pair->old], *new = &c->sides[pair->new];
    int n = old->set.n < new->set.n ? old->set.n : new->set.n;

    if (pair->effect.design == EFFECT_PAIRED || n == 0)
        return;
    if (edge_ns(&old->set, true) < edge_ns(&new->set, false) ||
        edge_ns(&new->set, true) < edge_ns(&old->set, false))
        comparison_add_doubt(
            c, "before-after",
            "all runs of %s and all of %s lie apart in time: whatever else changed "
            "in between is in the difference; run them in turns, one of each in a "
            "block (--block N)",
            old->name, new->name);
    else if (n > 1)
        comparison_add_doubt(c, "unpaired",
                             "%s and %s are not compared in pairs, as their runs have no blocks in "
                             "common: run them in turns with --block N, and drift no longer counts "
                             "as noise",
                             old->name, new->name);
}

// Do boots of one side differ by more than their runs?
static void doubt_boots(struct comparison *c, const struct side *side, const double *tps)
{
    int *boot = mem_calloc((size_t)side->set.n + 1, sizeof(*boot));

    for (int i = 0; i < side->set.n; i++) {
        boot[i] = i;
        for (int j = 0; j < i && boot[i] == i; j++) {
            const char *a = side->set.runs[i]->boot_id, *b = side->set.runs[j]->boot_id;
            if (a && b && strcmp(a, b) == 0)
                boot[i] = j;
        }
    }
    if (!c->rules.by_boot && cluster_p(tps, boot, side->set.n) < 0.01)
        comparison_add_doubt(c, "boots-differ",
                             "runs of %s differ more from boot to boot than within one: what is "
                             "said holds for these boots; for boots in general use --replicate "
                             "boot, with several of them",
                             side->name);
    free(boot);
}

static void doubt_load(struct comparison *c)
{
    struct str list = STR_INIT;

    for (size_t i = 0; i < c->differences.n; i++)
        if (difference_is_load(&c->differences.items[i]))
            str_addf(&list, "%s%s", list.len ? ", " : "", c->differences.items[i].name);
    if (list.len)
        comparison_add_doubt(c, "unlike-load",
                             "the load itself is not the same (%s): the ratio compares different "
                             "work",
                             list.buf);
    str_release(&list);
}

static void doubt_rate(struct comparison *c)
{
    for (int i = 0; i < c->n_sides && c->rules.main == MEASURE_TPS; i++)
        for (int j = 0; j < c->sides[i].set.n; j++)
            if (c->sides[i].set.runs[j]->rate_tps > 0) {
                comparison_add_doubt(c, "open-loop",
                                     "the rate was given (--rate), so throughput tells little: "
                                     "compare a latency, as --measure p99 does");
                return;
            }
}

static void doubt_published(struct comparison *c)
{
    for (int i = 0; i < c->n_sides; i++)
        if (c->sides[i].is_published) {
            comparison_add_doubt(c, "published",
                                 "of published figures only mean and spread are known: in which "
                                 "order they were measured, outliers, drift and the environment "
                                 "cannot be looked at");
            return;
        }
}

void comparison_find_doubts(struct comparison *c)
{
    doubt_load(c);
    doubt_rate(c);
    doubt_published(c);
    for (int i = 0; i < c->n_pairs; i++)
        doubt_before_after(c, comparison_main(c, i));
    for (int i = 0; i < c->n_sides; i++) {
        double *tps = throughputs(&c->sides[i]);
        doubt_left_out(c, &c->sides[i]);
        doubt_boots(c, &c->sides[i], tps);
        doubt_outliers(c, &c->sides[i], tps);
        doubt_levels(c, &c->sides[i], tps);
        doubt_own_doubts(c, &c->sides[i]);
        free(tps);
    }
}
