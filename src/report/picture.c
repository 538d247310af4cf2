#include "report/picture.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

static const char *const unicode_column[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_column[] = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};
static const char *const unicode_bar[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

// Mean of values over the fractional range [from, to): a column may hold parts of two seconds.
static double mean_over(const double *values, int n, double from, double to)
{
    double sum = 0;

    for (int i = (int)from; i < n && i < to; i++) {
        double part = fmin(to, i + 1) - fmax(from, i);
        sum += values[i] * part;
    }
    return sum / (to - from);
}

#define COLUMNS_MAX 512

int picture_width(int n, int width)
{
    if (width > n)
        width = n;
    return width > COLUMNS_MAX ? COLUMNS_MAX : width;
}

void picture_line(struct str *out, const double *values, int n, int width, bool unicode,
                  double *ret_top)
{
    double columns[COLUMNS_MAX], top = 0;

    assert(n > 0 && width > 0);
    width = picture_width(n, width);
    for (int i = 0; i < width; i++) {
        columns[i] = mean_over(values, n, (double)i * n / width, (double)(i + 1) * n / width);
        top = fmax(top, columns[i]);
    }
    for (int i = 0; i < width; i++) {
        int level = top > 0 ? (int)ceil(columns[i] / top * 8 - 1e-9) : 0;
        str_add(out, unicode ? unicode_column[level] : ascii_column[level]);
    }
    if (ret_top)
        *ret_top = top;
}

void picture_bar(struct str *out, double share, int width, bool unicode)
{
    int eighths = (int)lround(share * width * 8);

    if (!unicode) {
        for (int i = 0; i < (eighths + 4) / 8; i++)
            str_addc(out, '#');
        return;
    }
    for (int i = 0; i < eighths / 8; i++)
        str_add(out, unicode_bar[8]);
    str_add(out, unicode_bar[eighths % 8]);
}

// Counts of hist between two durations, by the buckets' middles.
static int64_t count_between(const struct hist_sparse *hist, double low_ns, double high_ns)
{
    int64_t sum = 0;

    for (int i = 0; i < hist->n; i++) {
        double mid = (double)hist_bucket_mid(hist->bucket[i]);
        if (mid >= low_ns && mid < high_ns)
            sum += hist->counts[i];
    }
    return sum;
}

void picture_histogram(struct str *out, const struct hist_sparse *hist, int lines,
                       const struct report_style *style)
{
    // From the 0.05 % quantile to the 99.95 % one; both ends are open.
    double low = (double)hist_sparse_quantile(hist, 0.0005);
    double high = (double)hist_sparse_quantile(hist, 0.9995) * 1.01;
    double factor;
    int64_t counts[64], most = 0;
    char text[UNITS_MAX];

    assert(lines > 1 && lines <= 64 && hist->m.count > 0);
    low = fmax(low, 1);
    factor = fmax(pow(high / low, 1.0 / lines), 1.02);
    for (int i = 0; i < lines; i++) {
        double from = i == 0 ? 0 : low * pow(factor, i);
        double to = i == lines - 1 ? INFINITY : low * pow(factor, i + 1);
        counts[i] = count_between(hist, from, to);
        most = counts[i] > most ? counts[i] : most;
    }
    int width = style->columns - 30;
    int last = lines - 1;
    while (last > 0 && counts[last] == 0)
        last--;
    for (int i = 0; i <= last; i++) {
        double share = (double)counts[i] / (double)hist->m.count;
        units_format_duration((int64_t)(low * pow(factor, i)), text);
        str_addf(out, "  %10s %5.1f %%", text, share * 100);
        if (counts[i] > 0)
            str_addc(out, ' ');
        picture_bar(out, (double)counts[i] / (double)most, width, style->unicode);
        str_addc(out, '\n');
    }
}
