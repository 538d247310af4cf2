#include "cmd/progress.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"

// "59s", "1h2m": what is left is no measurement.
static const char *whole_seconds(double seconds, char text[UNITS_MAX])
{
    return units_format_duration_exact(llround(seconds) * NS_PER_S, text);
}

static void add_bar(struct str *line, double share)
{
    const int width = 20;
    int full = (int)(share * width + 0.5);

    str_addc(line, '[');
    for (int i = 0; i < width; i++)
        str_addc(line, i < full ? '#' : '.');
    str_addc(line, ']');
}

static void add_tick(struct str *line, const struct run_tick *tick)
{
    char text[UNITS_MAX];

    str_addf(line, "%s tps", units_format_rate(tick->tps, text));
    if (tick->p50_ns) {
        str_addf(line, ", p50 %s", units_format_duration(tick->p50_ns, text));
        str_addf(line, ", p99 %s", units_format_duration(tick->p99_ns, text));
    }
    if (tick->errors)
        str_addf(line, ", %s errors", units_format_count(tick->errors, text));
    if (tick->clients_up < tick->clients)
        str_addf(line, ", %d of %d connected", tick->clients_up, tick->clients);
}

void progress_run_tick(void *arg, const struct run_tick *tick)
{
    struct progress *progress = arg;
    struct str line = STR_INIT;
    char text[UNITS_MAX];

    if (progress->quiet)
        return;
    if (progress->every_ns) {
        str_addf(&line, "progress: %.1f s, ", tick->at_s);
        add_tick(&line, tick);
        fprintf(stderr, "%s\n", line.buf);
    } else if (cmd_wants_progress(false)) {
        add_bar(&line, tick->progress);
        str_addc(&line, ' ');
        if (tick->left_s >= 0)
            str_addf(&line, "%s left, ", whole_seconds(tick->left_s, text));
        add_tick(&line, tick);
        cmd_progress(line.buf);
        progress->drawn = true;
    }
    str_release(&line);
}

void progress_fill_tick(void *arg, const struct fill_tick *tick)
{
    struct progress *progress = arg;
    struct str line = STR_INIT;
    char rows[UNITS_MAX], total[UNITS_MAX], rate[UNITS_MAX];

    if (!cmd_wants_progress(progress->quiet))
        return;
    double share = tick->rows_total ? (double)tick->rows / (double)tick->rows_total : 0;
    add_bar(&line, share);
    str_addf(&line, " %s of %s rows, %s rows/s", units_format_count(tick->rows, rows),
             units_format_count(tick->rows_total, total),
             units_format_rate(tick->rows_per_s, rate));
    if (tick->left_s >= 1)
        str_addf(&line, ", %s left", whole_seconds(tick->left_s, rate));
    if (tick->table)
        str_addf(&line, ": %s", tick->table);
    cmd_progress(line.buf);
    progress->drawn = true;
    str_release(&line);
}

void progress_probe_tick(void *arg, const struct probe_tick *tick)
{
    struct progress *progress = arg;
    struct str line = STR_INIT;

    if (!cmd_wants_progress(progress->quiet))
        return;
    add_bar(&line, tick->share);
    str_addf(&line, " %s", tick->what);
    cmd_progress(line.buf);
    progress->drawn = true;
    str_release(&line);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn)
        cmd_progress(NULL);
    progress->drawn = false;
}
