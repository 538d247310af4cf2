// The method is random in its input, so it is tested by simulation: each case draws many runs of
// one known shape from a fixed seed and asserts how often the answer is right. The rates asserted
// are a little below those reached (docs/statistics.md lists them).
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "stats/warmup.h"

#define SEED  4711
#define RUNS  400
#define N_MAX 86400

static double draw_normal(struct rng *rng)
{
    double radius = sqrt(-2 * log(1 - rng_double(rng)));
    return radius * cos(2 * acos(-1) * rng_double(rng));
}

// What the rate of second t of n would be without noise; steady is 1.
typedef double shape(int t, int n, double p);

static double steady(int t, int n, double p)
{
    (void)t, (void)n, (void)p;
    return 1;
}

static double ramp(int t, int n, double seconds)
{
    (void)n;
    return fmin((t + 0.5) / seconds, 1);
}

static double approach(int t, int n, double tau)
{
    (void)n;
    return 1 - 0.8 * exp(-t / tau);
}

static double fast_start(int t, int n, double seconds)
{
    (void)n;
    return t < seconds ? 1.6 : 1;
}

static double step_at_70(int t, int n, double level)
{
    return t < 0.7 * n ? 1 : level;
}

static double step_at_55(int t, int n, double level)
{
    return t < 0.55 * n ? 1 : level;
}

static double step_at_51(int t, int n, double level)
{
    return t < 0.51 * n ? 1 : level;
}

static double ramp_then_step(int t, int n, double seconds)
{
    return t < 0.7 * n ? ramp(t, n, seconds) : 0.5;
}

static double growth(int t, int n, double by)
{
    return 1 + by * t / n;
}

static double decline(int t, int n, double by)
{
    return 1 - by * t / n;
}

static double stall(int t, int n, double where)
{
    return t == (int)(where * n) ? 0 : 1;
}

static double checkpoints(int t, int n, double period)
{
    (void)n;
    return t % (int)period == (int)period - 1 ? 0.2 : 1;
}

static double dip_at_65(int t, int n, double share)
{
    return t >= 0.65 * n && t < (0.65 + share) * n ? 0.3 : 1;
}

static double slight_start(int t, int n, double seconds)
{
    (void)n;
    return t < seconds ? 0.995 : 1;
}

struct tally {
    double settled, stepped; // shares of runs
    double cut_in;           // cuts within [low, high]
    double step_in;          // of stepped runs: place within [step_low, step_high]
    double ratio;            // mean of stepped runs
    double bias;             // mean shortfall of what is left against the steady rate 1
};

struct simulation {
    shape *shape;
    double p;
    int n;
    double noise; // standard deviation, relative
    int low, high;
    int step_low, step_high;
    double tps; // 0: 1000
};

static struct tally simulate(const struct simulation *s)
{
    static double tps[N_MAX];
    struct rng rng;
    struct tally ret = {0};
    int steps_in = 0;
    rng_init(&rng, SEED, (uint64_t)s->n, RNG_DATA);
    for (int run = 0; run < RUNS; run++) {
        for (int t = 0; t < s->n; t++) {
            double rate = s->shape(t, s->n, s->p) * (1 + s->noise * draw_normal(&rng));
            tps[t] = floor(fmax(rate, 0) * (s->tps > 0 ? s->tps : 1000) + rng_double(&rng));
        }
        struct warmup w;
        warmup_find(tps, s->n, &w);
        assert_false(w.too_short);
        assert_true(w.seconds >= 0 && w.seconds <= s->n / 2);
        assert_false(w.settled && w.stepped_down);
        ret.settled += w.settled;
        ret.stepped += w.stepped_down;
        ret.cut_in += w.seconds >= s->low && w.seconds <= s->high;
        if (w.stepped_down) {
            steps_in += w.step_at_s >= s->step_low && w.step_at_s <= s->step_high;
            ret.ratio += w.step_ratio;
        }
        double left = 0;
        for (int t = w.seconds; t < s->n; t++) {
            left += s->shape(t, s->n, s->p) / (s->n - w.seconds);
        }
        ret.bias += (1 - left) / RUNS;
    }
    if (ret.stepped > 0) {
        ret.ratio /= ret.stepped;
        ret.step_in = steps_in / ret.stepped;
    }
    ret.settled /= RUNS;
    ret.stepped /= RUNS;
    ret.cut_in /= RUNS;
    if (getenv("WARMUP_SHOW")) {
        print_message("n %d p %g noise %g: settled %.4f stepped %.4f cut_in %.4f step_in %.4f "
                      "ratio %.3f bias %.4f\n",
                      s->n, s->p, s->noise, ret.settled, ret.stepped, ret.cut_in, ret.step_in,
                      ret.ratio, ret.bias);
    }
    return ret;
}

static void assert_share(const struct simulation *s, const char *what, double got, double low,
                         double high)
{
    if (got < low || got > high) {
        fail_msg("n %d, parameter %g, noise %g: %s %.4f, want %g to %g", s->n, s->p, s->noise, what,
                 got, low, high);
    }
}

// Settled in most runs, cut within [low, high] in most, never a step down.
static void assert_settled(const struct simulation *cases, size_t n, double settled, double cut_in)
{
    for (size_t i = 0; i < n; i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "settled", t.settled, settled, 1);
        assert_share(&cases[i], "cut in range", t.cut_in, cut_in, 1);
        assert_share(&cases[i], "stepped down", t.stepped, 0, 0.01);
    }
}

static void steady_noise_is_left_whole_and_settled(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {steady, 0, 20, 0.05, 0, 3},   {steady, 0, 20, 0.1, 0, 3},    {steady, 0, 20, 0.2, 0, 3},
        {steady, 0, 30, 0.05, 0, 3},   {steady, 0, 30, 0.2, 0, 3},    {steady, 0, 60, 0.05, 0, 3},
        {steady, 0, 60, 0.1, 0, 3},    {steady, 0, 60, 0.2, 0, 3},    {steady, 0, 120, 0.05, 0, 3},
        {steady, 0, 120, 0.2, 0, 3},   {steady, 0, 300, 0.05, 0, 3},  {steady, 0, 300, 0.2, 0, 3},
        {steady, 0, 900, 0.05, 0, 10}, {steady, 0, 900, 0.2, 0, 10},  {steady, 0, 3600, 0.2, 0, 12},
        {steady, 0, 60, 0.002, 0, 3},  {steady, 0, 300, 0.002, 0, 3},
    };
    assert_settled(cases, ARR_LEN(cases), 0.98, 0.97);
}

static void steady_noise_is_settled_in_very_short_runs(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {steady, 0, 10, 0.05, 0, 2},
        {steady, 0, 10, 0.2, 0, 2},
        {steady, 0, 15, 0.1, 0, 2},
        {steady, 0, 15, 0.2, 0, 2},
    };
    assert_settled(cases, ARR_LEN(cases), 0.95, 0.95);
}

static void a_ramp_is_cut_at_its_end(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {ramp, 6, 20, 0.05, 4, 8},        {ramp, 3, 30, 0.05, 2, 5},
        {ramp, 10, 30, 0.05, 7, 13},      {ramp, 6, 60, 0.05, 4, 9},
        {ramp, 20, 60, 0.05, 15, 24},     {ramp, 20, 60, 0.1, 12, 24},
        {ramp, 12, 120, 0.05, 9, 16},     {ramp, 40, 120, 0.1, 30, 44},
        {ramp, 30, 300, 0.05, 25, 34},    {ramp, 30, 300, 0.1, 21, 36},
        {ramp, 90, 300, 0.05, 80, 96},    {ramp, 90, 900, 0.1, 70, 100},
        {ramp, 300, 900, 0.05, 270, 312},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "settled", t.settled, 0.93, 1);
        assert_share(&cases[i], "cut in range", t.cut_in, 0.9, 1);
        assert_share(&cases[i], "stepped down", t.stepped, 0, 0.01);
        assert_share(&cases[i], "bias", t.bias, 0, 0.012);
    }
}

static void an_exponential_approach_leaves_little_bias(void **state)
{
    (void)state;
    static const struct {
        struct simulation s;
        double bias;
    } cases[] = {
        {{approach, 2, 60, 0.02, 3, 20}, 0.003},    {{approach, 6, 60, 0.02, 9, 28}, 0.008},
        {{approach, 4, 120, 0.1, 2, 20}, 0.007},    {{approach, 12, 120, 0.05, 12, 54}, 0.012},
        {{approach, 9, 300, 0.1, 12, 40}, 0.006},   {{approach, 30, 300, 0.05, 50, 130}, 0.01},
        {{approach, 30, 300, 0.1, 40, 140}, 0.016}, {{approach, 27, 900, 0.1, 39, 120}, 0.005},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i].s);
        assert_share(&cases[i].s, "settled", t.settled, 0.88, 1);
        assert_share(&cases[i].s, "cut in range", t.cut_in, 0.95, 1);
        assert_share(&cases[i].s, "bias", t.bias, 0, cases[i].bias);
    }
}

static void a_fast_start_is_cut_like_a_slow_one(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {fast_start, 6, 30, 0.05, 6, 8},
        {fast_start, 12, 60, 0.1, 9, 16},
        {fast_start, 24, 120, 0.1, 24, 30},
        {fast_start, 60, 300, 0.1, 60, 66},
    };
    assert_settled(cases, ARR_LEN(cases), 0.95, 0.9);
}

static void a_late_step_down_is_reported_with_place_and_ratio(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {step_at_70, 0.4, 20, 0.05, 0, 3, 13, 15},   {step_at_70, 0.5, 60, 0.05, 0, 3, 40, 44},
        {step_at_70, 0.8, 60, 0.03, 0, 3, 39, 45},   {step_at_70, 0.5, 120, 0.1, 0, 3, 81, 87},
        {step_at_70, 0.7, 300, 0.1, 0, 3, 204, 216}, {step_at_70, 0.5, 900, 0.2, 0, 10, 618, 642},
        {step_at_55, 0.5, 120, 0.05, 0, 3, 63, 69},  {step_at_55, 0.5, 300, 0.1, 0, 3, 159, 171},
        {step_at_51, 0.6, 120, 0.05, 0, 3, 60, 64},  {step_at_51, 0.6, 900, 0.05, 0, 10, 453, 465},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "stepped down", t.stepped, 0.97, 1);
        assert_share(&cases[i], "step in range", t.step_in, 0.97, 1);
        assert_share(&cases[i], "ratio", t.ratio, cases[i].p - 0.02, cases[i].p + 0.02);
        assert_share(&cases[i], "settled", t.settled, 0, 0.01);
        assert_share(&cases[i], "cut in range", t.cut_in, 0.95, 1);
    }
}

static void warmup_before_a_late_step_is_still_found(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {ramp_then_step, 6, 60, 0.05, 3, 9, 40, 44},
        {ramp_then_step, 20, 120, 0.05, 15, 24, 81, 87},
        {ramp_then_step, 30, 300, 0.1, 21, 36, 204, 216},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "stepped down", t.stepped, 0.97, 1);
        assert_share(&cases[i], "step in range", t.step_in, 0.97, 1);
        assert_share(&cases[i], "cut in range", t.cut_in, 0.9, 1);
        assert_share(&cases[i], "ratio", t.ratio, 0.48, 0.52);
    }
}

static void a_step_of_few_percent_is_no_step_down(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {step_at_70, 0.95, 60, 0.02},
        {step_at_70, 0.93, 300, 0.02},
        {step_at_70, 0.95, 900, 0.1},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_share(&cases[i], "stepped down", simulate(&cases[i]).stepped, 0, 0.01);
    }
}

static void a_late_step_up_is_unsettled_but_no_step_down(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {step_at_70, 1.4, 60, 0.05},
        {step_at_70, 1.3, 120, 0.05},
        {step_at_70, 1.3, 300, 0.1},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "settled", t.settled, 0, 0.02);
        assert_share(&cases[i], "stepped down", t.stepped, 0, 0);
    }
}

static void a_run_that_keeps_moving_is_not_settled(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {growth, 1, 20, 0.05},     {growth, 1, 30, 0.05},    {growth, 1, 60, 0.1},
        {growth, 0.3, 60, 0.05},   {growth, 0.3, 120, 0.1},  {growth, 0.3, 300, 0.1},
        {growth, 0.3, 900, 0.2},   {decline, 0.5, 30, 0.1},  {decline, 0.5, 60, 0.1},
        {decline, 0.2, 120, 0.05}, {decline, 0.2, 300, 0.1},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct tally t = simulate(&cases[i]);
        assert_share(&cases[i], "settled", t.settled, 0, 0.05);
        assert_share(&cases[i], "stepped down", t.stepped, 0, 0.1); // short noisy falls
    }
}

static void a_warmup_longer_than_half_of_the_run_is_not_settled(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {ramp, 40, 60, 0.05},
        {ramp, 100, 120, 0.1},
        {ramp, 200, 300, 0.1},
        {approach, 60, 120, 0.05},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        assert_share(&cases[i], "settled", simulate(&cases[i]).settled, 0, 0.05);
    }
}

static void one_stalled_second_is_neither_warmup_nor_unsettled(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {stall, 0.45, 20, 0.05, 0, 3}, {stall, 0.2, 20, 0.05, 0, 3},
        {stall, 0.7, 20, 0.05, 0, 3},  {stall, 0.25, 30, 0.02, 0, 3},
        {stall, 0.45, 60, 0.05, 0, 3}, {stall, 0.45, 60, 0.1, 0, 3},
        {stall, 0.1, 120, 0.05, 0, 3}, {stall, 0.5, 120, 0.05, 0, 3},
        {stall, 0.9, 300, 0.02, 0, 3}, {stall, 0.3, 3600, 0.1, 0, 12},
    };
    assert_settled(cases, ARR_LEN(cases), 0.98, 0.97);
}

static void a_low_first_second_is_cut_alone(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {stall, 0, 20, 0.05, 1, 3},
        {stall, 0, 60, 0.1, 1, 3},
        {stall, 0, 300, 0.1, 1, 3},
        {stall, 0, 3600, 0.1, 1, 12},
    };
    assert_settled(cases, ARR_LEN(cases), 0.98, 0.95);
}

static void periodic_checkpoints_are_settled(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {checkpoints, 5, 30, 0.05, 0, 5},   {checkpoints, 10, 30, 0.02, 0, 5},
        {checkpoints, 5, 60, 0.05, 0, 5},   {checkpoints, 10, 60, 0.1, 0, 5},
        {checkpoints, 30, 120, 0.05, 0, 5}, {checkpoints, 30, 300, 0.05, 0, 5},
        {checkpoints, 60, 900, 0.1, 0, 10}, {checkpoints, 60, 3600, 0.1, 0, 12},
    };
    assert_settled(cases, ARR_LEN(cases), 0.98, 0.97);
}

static void a_dip_that_recovers_is_no_step(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {dip_at_65, 0.1, 60, 0.05, 0, 3},
        {dip_at_65, 0.1, 120, 0.1, 0, 3},
        {dip_at_65, 0.1, 300, 0.05, 0, 3},
        {dip_at_65, 0.1, 900, 0.1, 0, 10},
    };
    static const struct simulation longer[] = {
        {dip_at_65, 0.2, 60, 0.05},  {dip_at_65, 0.2, 300, 0.05}, {dip_at_65, 0.2, 900, 0.02},
        {dip_at_65, 0.25, 60, 0.02}, {dip_at_65, 0.25, 300, 0.1}, {dip_at_65, 0.25, 900, 0.05},
    };
    assert_settled(cases, ARR_LEN(cases), 0.95, 0.95);
    for (size_t i = 0; i < ARR_LEN(longer); i++) {
        assert_share(&longer[i], "stepped down", simulate(&longer[i]).stepped, 0, 0.01);
    }
}

static void what_does_not_matter_is_left_alone(void **state)
{
    (void)state;
    static const struct simulation cases[] = {
        {slight_start, 20, 60, 0.0005, 0, 3, .tps = 1e6},
        {slight_start, 60, 300, 0.0005, 0, 3, .tps = 1e6},
        {growth, 0.03, 300, 0.005, 0, 3},
        {growth, 0.03, 900, 0.01, 0, 10},
    };
    assert_settled(cases, ARR_LEN(cases), 0.97, 0.97);
}

static void few_transactions_per_second_are_judged_in_longer_blocks(void **state)
{
    (void)state;
    static const struct simulation calm[] = {
        {steady, 0, 600, 1, 0, 30, .tps = 0.4},
        {steady, 0, 300, 0.5, 0, 30, .tps = 2},
        {steady, 0, 120, 0.3, 0, 6, .tps = 12},
    };
    static const struct simulation moving[] = {
        {step_at_70, 0.3, 600, 0.5, 0, 30, 390, 450, .tps = 2},
    };
    assert_settled(calm, ARR_LEN(calm), 0.95, 0.95);
    struct tally t = simulate(&moving[0]);
    assert_share(&moving[0], "stepped down", t.stepped, 0.95, 1);
    assert_share(&moving[0], "step in range", t.step_in, 0.95, 1);
}

// Noise that is not normal: each draws one second's factor.
typedef double draw(struct rng *rng, double *memory);

static double draw_correlated(struct rng *rng, double *memory)
{
    *memory = 0.75 * *memory + sqrt(1 - 0.75 * 0.75) * draw_normal(rng);
    return 1 + 0.08 * *memory;
}

static double draw_dips(struct rng *rng, double *memory)
{
    (void)memory;
    return (rng_range(rng, 0, 19) == 0 ? 0.3 : 1) * (1 + 0.05 * draw_normal(rng));
}

static double draw_skewed(struct rng *rng, double *memory)
{
    (void)memory;
    return exp(-0.05 * rng_exponential(rng, 3)) * (1 + 0.03 * draw_normal(rng));
}

static double draw_two_modes(struct rng *rng, double *memory)
{
    (void)memory;
    return (rng_range(rng, 0, 9) < 4 ? 0.7 : 1) * (1 + 0.02 * draw_normal(rng));
}

static void other_noise_is_mostly_settled_too(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        draw *draw;
        int n;
        double least; // share settled, and cut at no more than a twentieth of the run
    } cases[] = {
        {"correlated", draw_correlated, 60, 0.95},
        {"correlated", draw_correlated, 300, 0.97},
        {"correlated", draw_correlated, 900, 0.98},
        {"dips", draw_dips, 20, 0.97},
        {"dips", draw_dips, 60, 0.97},
        {"dips", draw_dips, 300, 0.98},
        {"dips", draw_dips, 3600, 0.98},
        {"skewed", draw_skewed, 20, 0.95},
        {"skewed", draw_skewed, 60, 0.97},
        {"skewed", draw_skewed, 900, 0.98},
        {"two modes", draw_two_modes, 20, 0.87},
        {"two modes", draw_two_modes, 60, 0.96},
        {"two modes", draw_two_modes, 900, 0.98},
    };
    static double tps[3600];
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct rng rng;
        int settled = 0;
        int kept = 0;
        double memory = 0;
        rng_init(&rng, SEED, 77, RNG_DATA);
        for (int run = 0; run < RUNS; run++) {
            for (int t = 0; t < cases[i].n; t++) {
                tps[t] = fmax(1000 * cases[i].draw(&rng, &memory), 0);
            }
            struct warmup w;
            warmup_find(tps, cases[i].n, &w);
            settled += w.settled;
            kept += w.seconds <= fmax(3, cases[i].n / 20.0);
        }
        if (settled < cases[i].least * RUNS || kept < cases[i].least * RUNS) {
            fail_msg("%s, %d s: settled %d, kept %d of %d", cases[i].what, cases[i].n, settled,
                     kept, RUNS);
        }
    }
}

static void growth_is_seen_through_correlated_noise(void **state)
{
    (void)state;
    static double tps[900];
    struct rng rng;
    double memory = 0;
    int settled = 0;
    rng_init(&rng, SEED, 78, RNG_DATA);
    for (int run = 0; run < RUNS; run++) {
        for (int t = 0; t < 900; t++) {
            tps[t] = 1000 * growth(t, 900, 0.2) * draw_correlated(&rng, &memory);
        }
        struct warmup w;
        warmup_find(tps, 900, &w);
        settled += w.settled;
    }
    assert_true(settled <= 0.05 * RUNS);
}

static void runs_without_noise_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int n;
        int from, to; // seconds with another rate than 500
        double rate;  // theirs
        struct warmup want;
    } cases[] = {
        {"constant", 60, 0, 0, 0, {.settled = true}},
        {"constant, 10 s", 10, 0, 0, 0, {.settled = true}},
        {"constant, an hour", 3600, 0, 0, 0, {.settled = true}},
        {"slow start", 20, 0, 4, 50, {.seconds = 4, .settled = true}},
        {"slow start, longer", 60, 0, 9, 100, {.seconds = 9, .settled = true}},
        {"slow start of an hour", 3600, 0, 60, 100, {.seconds = 60, .settled = true}},
        {"stall", 60, 20, 21, 0, {.settled = true}},
        {"step", 60, 42, 60, 250, {.stepped_down = true, .step_at_s = 42, .step_ratio = 0.5}},
        {"never came back", 60, 45, 60, 0, {.stepped_down = true, .step_at_s = 45}},
        {"half of 20 s",
         20,
         14,
         20,
         250,
         {.stepped_down = true, .step_at_s = 14, .step_ratio = 0.5}},
        {"first half dead", 60, 0, 30, 0, {.seconds = 30}},
        {"died early", 60, 20, 60, 0, {.settled = false}},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        double *tps = mem_calloc((size_t)cases[i].n, sizeof(*tps));
        for (int t = 0; t < cases[i].n; t++) {
            tps[t] = t >= cases[i].from && t < cases[i].to ? cases[i].rate : 500;
        }
        struct warmup w;
        const struct warmup *want = &cases[i].want;
        warmup_find(tps, cases[i].n, &w);
        if (w.seconds != want->seconds || w.settled != want->settled ||
            w.stepped_down != want->stepped_down || w.step_at_s != want->step_at_s ||
            fabs(w.step_ratio - want->step_ratio) > 1e-9 || w.too_short) {
            fail_msg("%s: %d s, settled %d, stepped %d at %d to %g", cases[i].what, w.seconds,
                     w.settled, w.stepped_down, w.step_at_s, w.step_ratio);
        }
        free(tps);
    }
}

static void short_and_empty_runs_are_not_judged(void **state)
{
    (void)state;
    static const double tps[600] = {900, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    static const double none[60];
    static const struct {
        const double *tps;
        int n;
        bool too_short;
    } cases[] = {
        {tps, 0, true},   {tps, 1, true},    {tps, 5, true},          {tps, 9, true},
        {tps, 10, false}, {none, 60, false}, {none, 600 / 10, false},
    };
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct warmup w = {.seconds = 99};
        warmup_find(cases[i].tps, cases[i].n, &w);
        assert_int_equal(w.too_short, cases[i].too_short);
        if (cases[i].too_short || cases[i].tps == none) {
            assert_int_equal(w.seconds, 0);
            assert_false(w.settled);
            assert_false(w.stepped_down);
        }
    }
    double sparse[100] = {0};
    struct warmup w;
    sparse[3] = sparse[50] = sparse[90] = 1; // three transactions: a minute per block is too coarse
    warmup_find(sparse, 100, &w);
    assert_true(w.too_short);
}

static void the_answer_does_not_depend_on_the_unit(void **state)
{
    (void)state;
    double tps[120];
    double more[120];
    struct rng rng;
    rng_init(&rng, SEED, 5, RNG_DATA);
    for (int run = 0; run < 100; run++) {
        for (int t = 0; t < 120; t++) {
            tps[t] = 1000 * ramp(t, 120, run % 40 + 1) * (1 + 0.1 * draw_normal(&rng));
            tps[t] = fmax(tps[t], 0);
            more[t] = 64 * tps[t];
        }
        struct warmup a, b;
        warmup_find(tps, 120, &a);
        warmup_find(more, 120, &b);
        assert_int_equal(a.seconds, b.seconds);
        assert_int_equal(a.settled, b.settled);
        assert_int_equal(a.stepped_down, b.stepped_down);
    }
}

static void a_day_of_seconds_is_quick(void **state)
{
    (void)state;
    static double tps[N_MAX];
    struct rng rng;
    struct warmup w;
    rng_init(&rng, SEED, 6, RNG_DATA);
    for (int t = 0; t < N_MAX; t++) {
        tps[t] = 1000 * ramp(t, N_MAX, 1200) * (1 + 0.1 * draw_normal(&rng));
    }
    clock_t start = clock();
    warmup_find(tps, N_MAX, &w);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    assert_true(w.settled);
    assert_true(w.seconds > 600 && w.seconds < 1500);
    assert_true(seconds < 0.25); // about 6 ms without sanitizers
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_noise_is_left_whole_and_settled),
        cmocka_unit_test(steady_noise_is_settled_in_very_short_runs),
        cmocka_unit_test(a_ramp_is_cut_at_its_end),
        cmocka_unit_test(an_exponential_approach_leaves_little_bias),
        cmocka_unit_test(a_fast_start_is_cut_like_a_slow_one),
        cmocka_unit_test(a_late_step_down_is_reported_with_place_and_ratio),
        cmocka_unit_test(warmup_before_a_late_step_is_still_found),
        cmocka_unit_test(a_step_of_few_percent_is_no_step_down),
        cmocka_unit_test(a_late_step_up_is_unsettled_but_no_step_down),
        cmocka_unit_test(a_run_that_keeps_moving_is_not_settled),
        cmocka_unit_test(a_warmup_longer_than_half_of_the_run_is_not_settled),
        cmocka_unit_test(one_stalled_second_is_neither_warmup_nor_unsettled),
        cmocka_unit_test(a_low_first_second_is_cut_alone),
        cmocka_unit_test(periodic_checkpoints_are_settled),
        cmocka_unit_test(a_dip_that_recovers_is_no_step),
        cmocka_unit_test(what_does_not_matter_is_left_alone),
        cmocka_unit_test(few_transactions_per_second_are_judged_in_longer_blocks),
        cmocka_unit_test(other_noise_is_mostly_settled_too),
        cmocka_unit_test(growth_is_seen_through_correlated_noise),
        cmocka_unit_test(runs_without_noise_are_read_exactly),
        cmocka_unit_test(short_and_empty_runs_are_not_judged),
        cmocka_unit_test(the_answer_does_not_depend_on_the_unit),
        cmocka_unit_test(a_day_of_seconds_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
