// What the tests of scripts share: compiling text with standard options, writing a pass down.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "workload/vm.h"

#define SEED 7

static const struct workload_options standard = {.placeholder = DB_PLACE_DOLLAR,
                                                 .protocol = DB_PREPARED,
                                                 .caps = DB_CAP_TRANSACTIONS,
                                                 .scale = 3,
                                                 .seed = SEED,
                                                 .clients = 4};

static inline struct workload *load(const char *text, const struct workload_options *options)
{
    struct workload *workload;
    struct err err = ERR_INIT;

    if (workload_load_text(&workload, "pay.sql", text, options, &err) < 0)
        fail_msg("%s\n%s", text, err.text);
    return workload;
}

// One pass written down: statements with their parameters, sleeps in ns, the end or the error.
static inline void run_pass(struct vm *vm, int script, struct str *out)
{
    struct vm_step step;
    char buf[DB_VALUE_TEXT_MAX];
    int len;

    str_clear(out);
    if (script >= 0)
        vm_begin(vm, script);
    for (;;) {
        switch (vm_run(vm, &step)) {
        case VM_SQL:
            str_addf(out, "%s(", step.statement->sql);
            for (int i = 0; i < step.statement->n_params; i++) {
                const char *text = db_value_text(&step.params[i], buf, &len);
                str_addf(out, "%s%s", i ? "," : "", text ? text : "NULL");
            }
            str_add(out, ") ");
            assert_false(step.want_row);
            break;
        case VM_SLEEP:
            str_addf(out, "sleep %lld ", (long long)step.sleep_ns);
            break;
        case VM_PIPELINE:
            str_addf(out, "%s %d ",
                     step.command == VM_START_PIPELINE  ? "start"
                     : step.command == VM_SYNC_PIPELINE ? "sync"
                                                        : "stop",
                     step.n_ahead);
            break;
        case VM_END:
            str_add(out, "end");
            return;
        case VM_ERROR:
            str_add(out, step.error);
            return;
        }
    }
}
