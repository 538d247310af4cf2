#include "stats/student.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>

#define NORMAL_FROM 1e5 // degrees from which the normal law is the same to six digits

double student_above(double t, double degrees)
{
    assert(degrees > 0 && !isnan(t));
    if (isinf(t))
        return t > 0 ? 0 : 1;
    return degrees > NORMAL_FROM ? gsl_cdf_ugaussian_Q(t) : gsl_cdf_tdist_Q(t, degrees);
}

double student_outside(double t, double degrees)
{
    return fmin(1, 2 * student_above(fabs(t), degrees));
}

double student_quantile(double p, double degrees)
{
    assert(p > 0 && p < 1 && degrees > 0);
    return degrees > NORMAL_FROM ? gsl_cdf_ugaussian_Pinv(p) : gsl_cdf_tdist_Pinv(p, degrees);
}

// T' = (Z + shift) / x with x = sqrt(chi-squared / degrees), so that P(T' > c) is the mean of
// P(Z > c x - shift) over the law of x. Simpson's rule where x has its weight.
double student_power(double shift, double critical, double degrees)
{
    enum { STEPS = 400 }; // even
    double spread = 1 / sqrt(2 * degrees), sum = 0;
    double low = fmax(0, 1 - 9 * spread), high = 1 + 9 * spread;
    double step = (high - low) / STEPS;

    assert(degrees > 0 && isfinite(shift) && isfinite(critical));
    if (degrees > NORMAL_FROM)
        return gsl_cdf_ugaussian_Q(critical - shift);
    for (int i = 0; i <= STEPS; i++) {
        double x = low + i * step;
        double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        // At x = 0 the density is infinite below one degree and finite at one; chi's own there.
        double density = x > 0 ? 2 * degrees * x * gsl_ran_chisq_pdf(degrees * x * x, degrees)
                               : (degrees <= 1 ? sqrt(2 / M_PI) : 0);
        sum += weight * density * gsl_cdf_ugaussian_Q(critical * x - shift);
    }
    return fmin(1, sum * step / 3);
}

double student_f_above(double f, double degrees_of_mean, double degrees_of_rest)
{
    assert(f >= 0 && degrees_of_mean > 0 && degrees_of_rest > 0);
    return isinf(f) ? 0 : gsl_cdf_fdist_Q(f, degrees_of_mean, degrees_of_rest);
}
