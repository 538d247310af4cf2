// Student's and related distributions, from the GNU Scientific Library; degrees of freedom may be
// fractions (Welch). Pure functions.
#pragma once

// P(T > t). degrees > 0; t may be infinite.
double student_above(double t, double degrees);

// P(|T| > |t|): the p-value of a two-sided test.
double student_outside(double t, double degrees);

// The t with P(T <= t) = p, 0 < p < 1.
double student_quantile(double p, double degrees);

// P(T' > critical) where T' is Student's t shifted by `shift` standard errors (non-central t): the
// power of a test. Integrated over the law of the standard deviation, to five digits.
double student_power(double shift, double critical, double degrees);

// P(F > f) of Fisher's law.
double student_f_above(double f, double degrees_of_mean, double degrees_of_rest);
