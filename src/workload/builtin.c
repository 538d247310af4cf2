// The table of built-in workloads. Their texts are the files of workloads/, embedded by the build.
#include <string.h>

#include "workload/workload.h"

// From the generated builtin_texts.c, one per file.
extern const char workload_text_tpcb[];
extern const char workload_text_simple_update[];
extern const char workload_text_select_only[];

static const struct workload_builtin builtins[] = {
    {
        .name = "tpcb",
        .summary = "TPC-B-like: three updates, a select and an insert per transaction",
        .source = workload_text_tpcb,
        .schema = &schema_tpcb,
        .contended = "one row of pgbench_branches",
    },
    {
        .name = "simple-update",
        .summary = "tpcb without the rows all clients share: one update, a select, an insert",
        .source = workload_text_simple_update,
        .schema = &schema_tpcb,
    },
    {
        .name = "select-only",
        .summary = "one select by primary key per transaction",
        .source = workload_text_select_only,
        .schema = &schema_tpcb,
    },
    {.name = NULL},
};

const struct workload_builtin *workload_builtins(void)
{
    return builtins;
}

const struct workload_builtin *workload_find_builtin(const char *name)
{
    for (const struct workload_builtin *b = builtins; b->name; b++)
        if (strcmp(b->name, name) == 0)
            return b;
    return NULL;
}
