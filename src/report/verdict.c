#include "report/verdict.h"

#include <math.h>

#include "base/arr.h"

const struct verdict_words verdict_of_throughput = {"faster", "slower", "as fast", "blocks", 0};
const struct verdict_words verdict_of_latency = {"higher", "lower", "as high", "blocks", 0};

// 8.1 below ten per cent, 81 above.
static int digits(double percent)
{
    return fabs(percent) < 9.95 ? 1 : 0;
}

// 0.36, 4.8, 12: two digits and no fewer.
static int ratio_digits(double ratio)
{
    return ratio < 0.995 ? 2 : ratio < 9.95 ? 1 : 0;
}

static void add_difference(struct str *out, const struct judgement *j,
                           const struct verdict_words *words)
{
    bool is_higher = j->ratio > 1;
    double by = 100 * fabs(j->ratio - 1);
    double low = 100 * (is_higher ? j->low - 1 : 1 - j->high);
    double high = 100 * (is_higher ? j->high - 1 : 1 - j->low);

    if (j->ratio >= 2 || j->ratio <= 0.5)
        str_addf(out, "%.*f times %s (%.*f to %.*f)", ratio_digits(j->ratio), j->ratio,
                 words->times, ratio_digits(j->low), j->low, ratio_digits(j->high), j->high);
    else
        str_addf(out, "%s by %.*f %% (%.*f to %.*f)", is_higher ? words->higher : words->lower,
                 digits(by), by, digits(by), low, digits(by), high);
}

void verdict_add_needed(struct str *out, int needed, const char *unit)
{
    // Two digits are all that the noise is known to.
    double step = needed >= 100 ? pow(10, floor(log10(needed)) - 1) : 1;

    if (needed >= JUDGE_NEEDED_MAX)
        str_addf(out, "more than a million %s", unit);
    else
        str_addf(out, "about %.0f %s", ceil(needed / step) * step, unit);
}

// What it would take to see a change; by default the round one just below what could have been
// seen.
static void add_open(struct str *out, const struct effect *effect, const struct judgement *j,
                     const struct verdict_words *words)
{
    static const double changes[] = {0.5, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01};
    double alpha = 1 - j->level, seen = judge_detectable(effect, alpha), change = changes[0];
    int n = effect->n_old < effect->n_new ? effect->n_old : effect->n_new;

    for (size_t i = 0; i < ARR_LEN(changes) && change >= seen; i++)
        change = changes[i];
    if (words->change > 0)
        change = words->change;
    int needed = judge_needed(effect, change, alpha);
    if (needed <= n) {
        str_addf(out, ", and %g %% would have been seen", 100 * change);
        return;
    }
    str_add(out, ": it would take ");
    verdict_add_needed(out, needed, words->unit);
    str_addf(out, " to see %g %%", 100 * change);
}

void verdict_add(struct str *out, const struct effect *effect, const struct judgement *judgement,
                 double margin, const struct verdict_words *words)
{
    switch (judgement->verdict) {
    case VERDICT_TOO_FEW:
        str_add(out, "too few runs to tell chance from difference");
        break;
    case VERDICT_OPEN:
        str_add(out, "no difference shown");
        add_open(out, effect, judgement, words);
        break;
    case VERDICT_SAME:
        str_addf(out, "the same within %g %%", 100 * (margin > 0 ? margin : JUDGE_MARGIN));
        break;
    case VERDICT_HIGHER:
    case VERDICT_LOWER:
        add_difference(out, judgement, words);
        if (judgement->is_same)
            str_addf(out, ", the same within %g %%", 100 * (margin > 0 ? margin : JUDGE_MARGIN));
        break;
    }
}

void verdict_add_twins(struct str *out, const struct effect *effect)
{
    double low, high, by = 100 * (exp(effect->log_ratio) - 1);

    effect_interval(effect, 1 - JUDGE_ALPHA, &low, &high);
    str_addf(out, "differ by %.*f %% (%.*f to %.*f)", digits(by), fabs(by),
             digits(100 * (high - 1)), 100 * (low - 1), digits(100 * (high - 1)), 100 * (high - 1));
}
