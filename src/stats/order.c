#include "stats/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

double *order_copy(const double *values, int n)
{
    assert(n > 0);
    double *ret = mem_calloc((size_t)n, sizeof(*ret));
    memcpy(ret, values, (size_t)n * sizeof(*ret));
    return ret;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void order_sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare_double);
}

double order_median_sort(double *values, int n)
{
    assert(n > 0);
    order_sort(values, n);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double order_median(const double *values, int n)
{
    double *copy = order_copy(values, n);
    double ret = order_median_sort(copy, n);

    free(copy);
    return ret;
}
