// Random integers of pgbench's four distributions, over [low, high] with low <= high and fewer than
// 2^63 values. Each is a pure function of its arguments and the stream.
#pragma once

#include <stdint.h>

#include "base/rng.h"

#define GAUSSIAN_PARAM_MIN 2.0
#define ZIPFIAN_PARAM_MIN  1.001
#define ZIPFIAN_PARAM_MAX  1000.0

// P(i) ~ exp(-param * (i - low) / n) for n = high - low + 1: the first value is e^param times as
// likely as one past the last. param > 0.
int64_t draw_exponential(struct rng *rng, int64_t low, int64_t high, double param);

// A normal distribution around the middle, cut at param standard deviations on both sides, laid
// over the range. param >= GAUSSIAN_PARAM_MIN.
int64_t draw_gaussian(struct rng *rng, int64_t low, int64_t high, double param);

// P(k-th value) ~ k^-param, k from 1. param within ZIPFIAN_PARAM_MIN and ZIPFIAN_PARAM_MAX.
int64_t draw_zipfian(struct rng *rng, int64_t low, int64_t high, double param);
