#include "stats/scaling.h"

#include <assert.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/student.h"

#define RAYS  180 // directions in which the border of the region is sought
#define STEPS 20  // on the way to it

struct runs {
    const double *clients, *rate;
    int n;
    double clients_max;
};

// The two shares, which decide the shape; rate_one follows from them. The fit walks in square
// roots, scaled to be of size one, so that it cannot leave the quadrant.
struct shape {
    double contention, coherency;
};

static double denominator(const struct shape *s, double clients)
{
    return 1 + s->contention * (clients - 1) + s->coherency * clients * (clients - 1);
}

// Residual sum of squares of the logs with the best rate_one.
static double misfit(const struct runs *runs, const struct shape *shape, double *ret_log_rate_one)
{
    double sum = 0, sum_sq = 0;

    for (int i = 0; i < runs->n; i++) {
        double n = runs->clients[i];
        double r = log(runs->rate[i] * denominator(shape, n) / n);
        sum += r;
        sum_sq += r * r;
    }
    double mean = sum / runs->n;
    if (ret_log_rate_one)
        *ret_log_rate_one = mean;
    return fmax(0, sum_sq - sum * mean);
}

static struct shape shape_of(const gsl_vector *v, double clients_max)
{
    double a = gsl_vector_get(v, 0), b = gsl_vector_get(v, 1);

    return (struct shape){.contention = a * a / clients_max,
                          .coherency = b * b / clients_max / clients_max};
}

static double objective(const gsl_vector *v, void *arg)
{
    const struct runs *runs = arg;
    struct shape shape = shape_of(v, runs->clients_max);

    return misfit(runs, &shape, NULL);
}

// Nelder and Mead's simplex from one start.
static double descend(struct runs *runs, double a, double b, struct shape *ret)
{
    gsl_multimin_function f = {.f = objective, .n = 2, .params = runs};
    gsl_multimin_fminimizer *m =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, 2);
    gsl_vector *start = gsl_vector_alloc(2), *step = gsl_vector_alloc(2);

    if (!m || !start || !step)
        abort();
    gsl_vector_set(start, 0, a);
    gsl_vector_set(start, 1, b);
    gsl_vector_set_all(step, 0.3);
    gsl_multimin_fminimizer_set(m, &f, start, step);
    for (int i = 0; i < 500; i++)
        if (gsl_multimin_fminimizer_iterate(m) != 0 ||
            gsl_multimin_test_size(gsl_multimin_fminimizer_size(m), 1e-7) == 0)
            break;
    *ret = shape_of(m->x, runs->clients_max);
    double best = m->fval;
    gsl_multimin_fminimizer_free(m);
    gsl_vector_free(start);
    gsl_vector_free(step);
    return best;
}

static struct shape best_shape(struct runs *runs)
{
    static const double starts[][2] = {{0.3, 0.3}, {1.5, 0.1}, {0.1, 1.5}, {1, 1}, {5, 0.01}};
    struct shape best = {0}, shape;
    double lowest = misfit(runs, &best, NULL); // a straight line

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        double found = descend(runs, starts[i][0], starts[i][1], &shape);
        if (found < lowest) {
            lowest = found;
            best = shape;
        }
    }
    // What the data cannot tell from nothing, and a square never reaches.
    struct shape amdahl = {.contention = best.contention};
    struct shape pairs = {.coherency = best.coherency};
    if (misfit(runs, &amdahl, NULL) <= lowest * (1 + 1e-9))
        best.coherency = 0;
    if (misfit(runs, &pairs, NULL) <= lowest * (1 + 1e-9))
        best.contention = 0;
    return best;
}

// ---- intervals

static void widen(struct scaling_number *number, double value)
{
    number->low = fmin(number->low, value);
    number->high = fmax(number->high, value);
}

static double peak_of(const struct shape *s)
{
    if (s->contention >= 1)
        return 1;
    return s->coherency > 0 ? fmax(1, sqrt((1 - s->contention) / s->coherency)) : INFINITY;
}

static double peak_rate_of(const struct shape *s, double rate_one)
{
    double peak = peak_of(s);

    if (isfinite(peak))
        return rate_one * peak / denominator(s, peak);
    return s->contention > 0 ? rate_one / s->contention : INFINITY;
}

// Takes the numbers of one shape into the ranges. Within the bound rate_one may itself be off its
// best value, by what the misfit leaves over.
static void take(const struct runs *runs, const struct shape *shape, double bound,
                 struct scaling *fit)
{
    double log_rate_one, left = bound - misfit(runs, shape, &log_rate_one);
    double factor = exp(sqrt(fmax(0, left) / runs->n)), rate_one = exp(log_rate_one);

    widen(&fit->contention, shape->contention);
    widen(&fit->coherency, shape->coherency);
    widen(&fit->peak_clients, peak_of(shape));
    widen(&fit->rate_one, rate_one / factor);
    widen(&fit->rate_one, rate_one * factor);
    widen(&fit->peak_rate, peak_rate_of(shape, rate_one / factor));
    widen(&fit->peak_rate, peak_rate_of(shape, rate_one * factor));
}

// The shape at a distance from the best one in some direction, kept within the quadrant.
static struct shape along(const struct shape *best, double da, double db, double distance)
{
    return (struct shape){.contention = fmax(0, best->contention + da * distance),
                          .coherency = fmax(0, best->coherency + db * distance)};
}

// What a step in (contention, coherency) does to the misfit, near the best shape: the quadratic
// form (Gauss and Newton's) [aa ab; ab bb].
struct curvature {
    double aa, ab, bb;
};

static struct curvature curvature_at(const struct runs *runs, const struct shape *shape)
{
    struct curvature c = {0};
    double sum_a = 0, sum_b = 0;

    for (int i = 0; i < runs->n; i++) {
        double n = runs->clients[i], a = (n - 1) / denominator(shape, n), b = n * a;
        sum_a += a;
        sum_b += b;
        c.aa += a * a;
        c.ab += a * b;
        c.bb += b * b;
    }
    c.aa -= sum_a * sum_a / runs->n;
    c.ab -= sum_a * sum_b / runs->n;
    c.bb -= sum_b * sum_b / runs->n;
    return c;
}

// Walks from the best shape to where the misfit reaches the bound, in all directions. The region is
// close to an ellipse, long and thin, so that directions are taken evenly from the circle that it
// is in the curvature's own axes, and each ray leaves it once. A ray that meets the side of the
// quadrant goes on along it; one that ends in its corner takes the corner.
static void explore(const struct runs *runs, const struct shape *best, double bound,
                    struct scaling *fit)
{
    struct curvature c = curvature_at(runs, best);
    double root_a = sqrt(c.aa), slant = c.ab / root_a;
    double root_b = sqrt(fmax(c.bb - slant * slant, 1e-12 * c.bb));

    for (int ray = 0; ray < RAYS; ray++) {
        double angle = 2 * M_PI * ray / RAYS, inside = 0, outside = 1e-6;
        double db = sin(angle) / root_b, da = (cos(angle) - slant * db) / root_a;
        struct shape shape = along(best, da, db, outside);
        while (misfit(runs, &shape, NULL) < bound && outside < 1e6) {
            inside = outside;
            outside *= 2;
            shape = along(best, da, db, outside);
        }
        for (int i = 0; i < 40; i++) {
            double middle = (inside + outside) / 2;
            shape = along(best, da, db, middle);
            if (misfit(runs, &shape, NULL) < bound)
                inside = middle;
            else
                outside = middle;
        }
        for (int i = 0; i <= STEPS; i++) {
            shape = along(best, da, db, inside * i / STEPS);
            take(runs, &shape, bound, fit);
        }
    }
}

// ---- the fit

static int count_sizes(const double *clients, int n)
{
    int sizes = 0;

    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = clients[j] == clients[i];
        sizes += !seen;
    }
    return sizes;
}

// The F test of lack of fit: what the curve leaves over, against the scatter of equal runs.
static double misfit_p(const struct runs *runs, double left, int sizes)
{
    double pure = 0;

    for (int i = 0; i < runs->n; i++) { // each run against the mean of its like
        double sum = 0;
        int like = 0;
        for (int j = 0; j < runs->n; j++)
            if (runs->clients[j] == runs->clients[i]) {
                sum += log(runs->rate[j]);
                like++;
            }
        double r = log(runs->rate[i]) - sum / like;
        pure += r * r;
    }
    int degrees_pure = runs->n - sizes, degrees_lack = sizes - 3;
    if (degrees_pure < 1 || degrees_lack < 1 || pure <= 0)
        return 1;
    double f = fmax(0, left - pure) / degrees_lack / (pure / degrees_pure);
    return student_f_above(f, degrees_lack, degrees_pure);
}

int scaling_fit(const double *clients, const double *rate, int n, struct scaling *ret)
{
    struct runs runs = {.clients = clients, .rate = rate, .n = n, .clients_max = 1};
    int sizes = count_sizes(clients, n);
    double log_rate_one;

    if (sizes < SCALING_SIZES_MIN)
        return -1;
    for (int i = 0; i < n; i++) {
        assert(clients[i] >= 1 && rate[i] > 0);
        runs.clients_max = fmax(runs.clients_max, clients[i]);
    }
    struct shape best = best_shape(&runs);
    double left = misfit(&runs, &best, &log_rate_one);
    double rate_one = exp(log_rate_one), peak = peak_of(&best);
    double peak_rate = peak_rate_of(&best, rate_one), t = student_quantile(0.975, n - 3);
    *ret = (struct scaling){
        .rate_one = {rate_one, rate_one, rate_one},
        .contention = {best.contention, best.contention, best.contention},
        .coherency = {best.coherency, best.coherency, best.coherency},
        .peak_clients = {peak, peak, peak},
        .peak_rate = {peak_rate, peak_rate, peak_rate},
        .peak_is_inside = peak < runs.clients_max,
        .noise = sqrt(left / (n - 3)),
        .p_misfit = misfit_p(&runs, left, sizes),
    };
    explore(&runs, &best, left * (1 + t * t / (n - 3)) + 1e-12, ret);
    assert(ret->contention.low >= 0 && ret->coherency.low >= 0);
    return 0;
}

double scaling_rate(const struct scaling *fit, double clients)
{
    struct shape shape = {fit->contention.value, fit->coherency.value};

    return fit->rate_one.value * clients / denominator(&shape, clients);
}
