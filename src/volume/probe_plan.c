// Sizes and times of a probe.
#include "volume/probe.h"

#include <assert.h>

#include "base/clock.h"
#include "base/units.h"

#define MIB (1024 * 1024LL)

#define DATA_BYTES_MIN     (16 * MIB)  // when wished so
#define DATA_BYTES_CHOSEN  (512 * MIB) // over what a disk of its own keeps in its cache
#define DATA_BYTES_DEFAULT (64 * MIB)  // at least, when nothing is wished
#define LOG_BYTES          (16 * MIB)  // as a segment of PostgreSQL's
#define GROW_BYTES         (32 * MIB)
#define SPARE_BYTES        (16 * MIB) // for new files, and for the file system itself

static int64_t beside_data(void)
{
    return LOG_BYTES + GROW_BYTES + SPARE_BYTES;
}

int probe_plan_sizes(int64_t free_bytes, int64_t wished_bytes, struct probe_sizes *ret,
                     struct err *err)
{
    char free_text[UNITS_MAX], need_text[UNITS_MAX], least_text[UNITS_MAX];
    int64_t data = wished_bytes;

    if (wished_bytes && wished_bytes < DATA_BYTES_MIN)
        return err_set(err, ERR_USAGE, "--size %s: must be at least %s",
                       units_format_bytes_exact(wished_bytes, need_text),
                       units_format_bytes_exact(DATA_BYTES_MIN, least_text));
    if (!wished_bytes) {
        data = free_bytes / 4;
        data = data > DATA_BYTES_CHOSEN ? DATA_BYTES_CHOSEN : data;
        data = data < DATA_BYTES_DEFAULT ? DATA_BYTES_DEFAULT : data;
    }
    data -= data % MIB;
    if (data > free_bytes - beside_data()) {
        units_format_bytes(free_bytes < 0 ? 0 : free_bytes, free_text);
        int64_t need = data > INT64_MAX - beside_data() ? INT64_MAX : data + beside_data();
        units_format_bytes(need, need_text);
        units_format_bytes(DATA_BYTES_MIN + beside_data(), least_text);
        return err_set(err, ERR_USAGE,
                       "only %s are free there and the probe needs %s: free some, or give --size "
                       "(16MB at least, which needs %s)",
                       free_text, need_text, least_text);
    }
    *ret =
        (struct probe_sizes){.data_bytes = data, .log_bytes = LOG_BYTES, .grow_bytes = GROW_BYTES};
    return 0;
}

int64_t probe_plan_slice_ns(int64_t left_ns, double rounds_left)
{
    const int64_t least_ns = 10 * NS_PER_MS;

    assert(rounds_left > 0);
    int64_t slice_ns = (int64_t)((double)left_ns / rounds_left / PROBE_KINDS);
    return slice_ns < least_ns ? least_ns : slice_ns;
}

int64_t probe_plan_operations(double per_s, int64_t slice_ns, int64_t first)
{
    // Room to become faster: the clock ends a slice too.
    double most = per_s * 1.5 * (double)slice_ns / NS_PER_S;

    if (per_s <= 0)
        return first;
    return most < 1 ? 1 : (int64_t)most;
}
