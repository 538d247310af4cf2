#include "stats/effect.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/order.h"
#include "stats/student.h"

struct moments {
    double mean, var; // var: of the sample (n - 1); 0 below two values
    int n;
};

static void add_value(struct moments *m, double *sum_sq, double x)
{
    // Welford (1962): no cancellation however large the level.
    double delta = x - m->mean;

    m->n++;
    m->mean += delta / m->n;
    *sum_sq += delta * (x - m->mean);
}

static struct moments moments_of(const double *values, int n, bool in_logs)
{
    struct moments m = {0};
    double sum_sq = 0;

    assert(n >= 0);
    for (int i = 0; i < n; i++) {
        assert(isfinite(values[i]) && (!in_logs || values[i] > 0));
        add_value(&m, &sum_sq, in_logs ? log(values[i]) : values[i]);
    }
    m.var = n > 1 ? sum_sq / (n - 1) : 0;
    return m;
}

static void pairs_effect(const struct moments *m, struct effect *ret)
{
    *ret = (struct effect){.design = EFFECT_PAIRED,
                           .n_old = m->n,
                           .n_new = m->n,
                           .log_ratio = m->n ? m->mean : NAN,
                           .se = m->n > 1 ? sqrt(m->var / m->n) : NAN,
                           .degrees = m->n > 1 ? m->n - 1 : 0,
                           .unit_var = m->var,
                           .unit_degrees = 1};
}

void effect_of_ratios(const double *ratios, int n, struct effect *ret)
{
    struct moments m = moments_of(ratios, n, true);

    pairs_effect(&m, ret);
}

void effect_paired(const double *old, const double *new, int n, struct effect *ret)
{
    double *ratios = mem_calloc((size_t)n + 1, sizeof(*ratios));

    for (int i = 0; i < n; i++) {
        assert(old[i] > 0 && new[i] > 0);
        ratios[i] = new[i] / old[i];
    }
    effect_of_ratios(ratios, n, ret);
    free(ratios);
}

// From the variances of single values on both sides, on the log scale.
static void welch(struct effect *e, double var_old, double var_new)
{
    // Squares that underflow would be 0 / 0: no spread that a double can tell.
    if ((var_old + var_new) * (var_old + var_new) < DBL_MIN)
        var_old = var_new = 0;
    double old = var_old / e->n_old, new = var_new / e->n_new, sum = var_old + var_new;

    e->unit_var = sum;
    e->unit_degrees = sum > 0 ? sum * sum / (var_old * var_old + var_new * var_new) : 2;
    e->se = sqrt(old + new);
    e->degrees = sum > 0 ? (old + new) * (old + new) /
                               (old * old / (e->n_old - 1) + new *new / (e->n_new - 1))
                         : e->n_old + e->n_new - 2;
    assert(e->unit_degrees >= 1 && e->unit_degrees <= 2.000001);
}

void effect_unpaired(const double *old, int n_old, const double *new, int n_new, struct effect *ret)
{
    struct moments of_old = moments_of(old, n_old, true), of_new = moments_of(new, n_new, true);

    *ret = (struct effect){.design = EFFECT_UNPAIRED,
                           .n_old = n_old,
                           .n_new = n_new,
                           .log_ratio = n_old && n_new ? of_new.mean - of_old.mean : NAN,
                           .se = NAN};
    if (n_old > 1 && n_new > 1)
        welch(ret, of_old.var, of_new.var);
}

int effect_published(const struct summary *old, const struct summary *new, struct effect *ret)
{
    const double largest = 0.2;
    double cv_old = old->sd / old->mean, cv_new = new->sd / new->mean;

    assert(old->mean > 0 && new->mean > 0 && old->sd >= 0 && new->sd >= 0);
    assert(old->n >= 2 && new->n >= 2);
    if (cv_old / sqrt(old->n) > largest || cv_new / sqrt(new->n) > largest)
        return -1;
    *ret = (struct effect){.design = EFFECT_UNPAIRED,
                           .n_old = old->n,
                           .n_new = new->n,
                           .log_ratio = log(new->mean / old->mean)};
    welch(ret, cv_old * cv_old, cv_new * cv_new);
    return 0;
}

void effect_summary(const double *values, int n, struct summary *ret)
{
    struct moments m = moments_of(values, n, false);

    *ret = (struct summary){.mean = n ? m.mean : NAN, .sd = n > 1 ? sqrt(m.var) : NAN, .n = n};
}

// ---- what follows from an effect

bool effect_is_known(const struct effect *e)
{
    return e->degrees > 0;
}

void effect_interval(const struct effect *e, double level, double *ret_low, double *ret_high)
{
    assert(effect_is_known(e) && level > 0 && level < 1);
    double half = student_quantile(0.5 + level / 2, e->degrees) * e->se;
    *ret_low = exp(e->log_ratio - half);
    *ret_high = exp(e->log_ratio + half);
}

// Standard errors between the estimate and a ratio. Values without any spread (a rounded figure, a
// simulated engine) are taken at their word.
static double distance(const struct effect *e, double ratio)
{
    double difference = e->log_ratio - log(ratio);

    assert(effect_is_known(e) && ratio > 0);
    if (e->se > 0)
        return difference / e->se;
    return fabs(difference) < 1e-12 ? 0 : copysign(INFINITY, difference);
}

double effect_p(const struct effect *e)
{
    return student_outside(distance(e, 1), e->degrees);
}

double effect_p_above(const struct effect *e, double ratio)
{
    return student_above(distance(e, ratio), e->degrees);
}

double effect_p_below(const struct effect *e, double ratio)
{
    return student_above(-distance(e, ratio), e->degrees);
}

double effect_p_same(const struct effect *e, double margin)
{
    assert(margin > 0);
    return fmax(effect_p_above(e, 1 / (1 + margin)), effect_p_below(e, 1 + margin));
}

// ---- clusters

// The logs of the cluster that begins at i; false when i is not the first of its cluster.
static bool cluster_at(const double *values, const int *cluster, int n, int i, struct moments *m,
                       double *sum_sq)
{
    *m = (struct moments){0};
    *sum_sq = 0;
    for (int j = 0; j < i; j++)
        if (cluster[j] == cluster[i])
            return false;
    for (int j = i; j < n; j++)
        if (cluster[j] == cluster[i])
            add_value(m, sum_sq, log(values[j]));
    return true;
}

int cluster_means(const double *values, const int *cluster, int n, double *means)
{
    struct moments m;
    double sum_sq;
    int n_clusters = 0;

    for (int i = 0; i < n; i++)
        if (cluster_at(values, cluster, n, i, &m, &sum_sq))
            means[n_clusters++] = exp(m.mean);
    assert(n_clusters <= n);
    return n_clusters;
}

double cluster_p(const double *values, const int *cluster, int n)
{
    struct moments all = moments_of(values, n, true), m;
    double between = 0, within = 0, sum_sq;
    int n_clusters = 0;

    for (int i = 0; i < n; i++) {
        if (!cluster_at(values, cluster, n, i, &m, &sum_sq))
            continue;
        n_clusters++;
        within += sum_sq;
        between += m.n * (m.mean - all.mean) * (m.mean - all.mean);
    }
    if (n_clusters < 2 || n_clusters == n || within <= 0)
        return 1;
    double f = between / (n_clusters - 1) / (within / (n - n_clusters));
    return student_f_above(f, n_clusters - 1, n - n_clusters);
}

// ---- odd values

int outliers_mark(const double *values, int n, bool *marks)
{
    const double limit = 4.5, least = log(1.02);
    int marked = 0;

    for (int i = 0; i < n; i++)
        marks[i] = false;
    if (n < 5)
        return 0;
    double *work = mem_calloc((size_t)n, sizeof(*work));
    for (int i = 0; i < n; i++)
        work[i] = log(values[i]);
    double median = order_median_sort(work, n);
    for (int i = 0; i < n; i++)
        work[i] = fabs(log(values[i]) - median);
    double sd = order_median_sort(work, n) / 0.6745;
    // Few values: the median deviation of n is itself uncertain by some sd / sqrt(n).
    double far = fmax(least, limit * sd * (1 + 4.0 / n));
    for (int i = 0; i < n; i++) {
        marks[i] = fabs(log(values[i]) - median) > far;
        marked += marks[i];
    }
    free(work);
    return marked;
}
