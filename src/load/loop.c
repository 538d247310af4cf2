#include "load/loop.h"

#include <string.h>

#include "base/arr.h"

// The fastest first. The last one is for every engine.
static const struct loop_ops *const all_loops[] = {
#ifdef HAVE_URING
    &loop_ring_uring,
#endif
    &loop_ring_epoll,
    &loop_threads,
};
_Static_assert(ARR_LEN(all_loops) < LOOPS_MAX, "room for the NULL at the end");

static bool is_ring(const struct loop_ops *loop)
{
    return strncmp(loop->name, "ring", 4) == 0;
}

// db_has_loop knows families: "ring", "threads".
static bool is_for(const struct loop_ops *loop, const struct db_target *target)
{
    return db_has_loop(target, is_ring(loop) ? "ring" : "threads");
}

int loop_choose(const struct db_target *target, const char *name, bool pipelines,
                const struct loop_ops *ret[LOOPS_MAX], struct err *err)
{
    bool any = strcmp(name, "auto") == 0;
    int n = 0;

    for (size_t i = 0; i < ARR_LEN(all_loops); i++) {
        const struct loop_ops *loop = all_loops[i];
        if (!any && strcmp(loop->name, name) != 0)
            continue;
        if (pipelines && !is_ring(loop))
            continue;
        if (is_for(loop, target))
            ret[n++] = loop;
        else if (!any)
            return err_set(err, ERR_ABSENT,
                           "--loop %s: the engine %s has no wire codec; leave --loop away", name,
                           db_engine(target));
    }
    ret[n] = NULL;
    if (n == 0 && pipelines)
        return err_set(err, ERR_ABSENT, "a pipeline needs a ring loop and the engine %s has none",
                       db_engine(target));
    if (n == 0)
        return err_set(err, ERR_USAGE, "--loop %s: must be auto, ring-uring, ring-epoll or threads",
                       name);
    return 0;
}
