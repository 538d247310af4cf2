#include "faults.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"

#define DELAY_WORDS "must be fixed:2ms, exponential:2ms or bimodal:0.01,100ms,1ms"
#define ERROR_WORDS "must be RATE/SQLSTATE, such as 0.01/40001"
#define STALL_WORDS "must be AT,FOR, such as 3s,1s"

// ---- parsing

static bool parse_rate(const char *text, double *ret)
{
    return units_parse_double(text, ret, NULL) == 0 && *ret >= 0 && *ret <= 1;
}

// Splits a copy of text at the separator; at most `max` parts. Returns their number; parts[0] is to
// be freed.
static int split(const char *text, char separator, char **parts, int max)
{
    int n = 0;
    char *rest = mem_strdup(text);
    const char separators[] = {separator, '\0'};

    while (rest && n < max)
        parts[n++] = strsep(&rest, separators);
    return rest ? max + 1 : n;
}

int delay_parse(const char *text, void *value, struct err *err)
{
    struct delay_law law = {0};
    const char *colon = strchr(text, ':');
    char *parts[3];
    bool good = false;

    if (!colon)
        return err_set(err, ERR_USAGE, DELAY_WORDS);
    size_t n_name = (size_t)(colon - text);
    int n = split(colon + 1, ',', parts, 3);
    if (n_name == 7 && strncmp(text, "bimodal", 7) == 0) {
        law.kind = DELAY_BIMODAL;
        good = n == 3 && parse_rate(parts[0], &law.rare_rate) &&
               units_parse_duration(parts[1], 0, &law.rare_ns, NULL) == 0 &&
               units_parse_duration(parts[2], 0, &law.ns, NULL) == 0;
    } else if (n == 1) {
        if (n_name == 5 && strncmp(text, "fixed", 5) == 0)
            law.kind = DELAY_FIXED;
        if (n_name == 11 && strncmp(text, "exponential", 11) == 0)
            law.kind = DELAY_EXPONENTIAL;
        good = law.kind != DELAY_NONE && units_parse_duration(parts[0], 0, &law.ns, NULL) == 0;
    }
    free(parts[0]);
    if (!good)
        return err_set(err, ERR_USAGE, DELAY_WORDS);
    memcpy(value, &law, sizeof(law));
    return 0;
}

int error_parse(const char *text, void *value, struct err *err)
{
    struct error_told told = {0};
    char *parts[2];
    int n = split(text, '/', parts, 2);
    bool good = n == 2 && parse_rate(parts[0], &told.rate) && strlen(parts[1]) == 5;

    for (int i = 0; good && i < 5; i++) {
        good = isupper((unsigned char)parts[1][i]) || isdigit((unsigned char)parts[1][i]);
        told.state[i] = parts[1][i];
    }
    free(parts[0]);
    if (!good)
        return err_set(err, ERR_USAGE, ERROR_WORDS);
    memcpy(value, &told, sizeof(told));
    return 0;
}

int stall_parse(const char *text, void *value, struct err *err)
{
    struct stall_told told;
    char *parts[2];
    int n = split(text, ',', parts, 2);
    bool good = n == 2 && units_parse_duration(parts[0], 0, &told.at_ns, NULL) == 0 &&
                units_parse_duration(parts[1], 0, &told.for_ns, NULL) == 0;

    free(parts[0]);
    if (!good)
        return err_set(err, ERR_USAGE, STALL_WORDS);
    memcpy(value, &told, sizeof(told));
    return 0;
}

// ---- drawing

static int64_t draw_delay(struct faults *f)
{
    switch (f->delay.kind) {
    case DELAY_NONE:
        return 0;
    case DELAY_FIXED:
        return f->delay.ns;
    case DELAY_EXPONENTIAL:
        return f->delay.ns > 0 ? llround(rng_exponential(&f->rng, (double)f->delay.ns)) : 0;
    case DELAY_BIMODAL:
        return rng_double(&f->rng) < f->delay.rare_rate ? f->delay.rare_ns : f->delay.ns;
    }
    return 0;
}

enum fate faults_draw(struct faults *f, bool may_fail, int64_t *ret_delay_ns)
{
    *ret_delay_ns = draw_delay(f);
    if (f->drop > 0 && rng_double(&f->rng) < f->drop) {
        f->drops++;
        return rng_range(&f->rng, 0, 1) ? FATE_DROP_BEFORE : FATE_DROP_WITHIN;
    }
    if (may_fail && f->error.rate > 0 && rng_double(&f->rng) < f->error.rate) {
        f->errors++;
        return FATE_ERROR;
    }
    return FATE_ANSWER;
}

// ---- the record

static double us(double ns)
{
    return ns / NS_PER_US;
}

static void write_delays(const struct hist *delays, FILE *out)
{
    static const struct {
        const char *name;
        double p;
    } quantiles[] = {{"p50", 0.5},  {"p90", 0.9},    {"p95", 0.95},
                     {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};
    const struct hist_moments *m = &delays->m;

    fprintf(out, "  \"delay_us\": {\"count\": %" PRId64, m->count);
    if (m->count > 0) {
        fprintf(out, ", \"mean\": %.3f, \"sd\": %.3f, \"min\": %.3f, \"max\": %.3f",
                us(hist_mean_ns(m)), us(hist_sd_ns(m)), us((double)m->min_ns),
                us((double)m->max_ns));
        for (size_t i = 0; i < ARR_LEN(quantiles); i++)
            fprintf(out, ", \"%s\": %.3f", quantiles[i].name,
                    us((double)hist_quantile(delays, quantiles[i].p)));
    }
    fprintf(out, "},\n");
}

void faults_write(const struct faults *f, int64_t statements, int64_t sessions, int64_t reads,
                  FILE *out)
{
    fprintf(out,
            "{\n  \"statements\": %" PRId64 ",\n  \"sessions\": %" PRId64 ",\n  \"reads\": %" PRId64
            ",\n",
            statements, sessions, reads);
    write_delays(&f->delays, out);
    fprintf(out, "  \"errors\": %" PRId64 ",\n  \"drops\": %" PRId64 ",\n", f->errors, f->drops);
    fprintf(out, "  \"stall\": {\"at_s\": %.6f, \"for_s\": %.6f}\n}\n",
            (double)f->stalled_at_ns / NS_PER_S, (double)f->stalled_for_ns / NS_PER_S);
}
