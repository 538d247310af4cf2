// The work of prony init: tables made, loaded, keyed and settled by several sessions at once.
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/err.h"
#include "db/db.h"
#include "load/fill.h"

// The tables must not exist. Runs to the end, the first failure, or *stop; sessions[0] is the
// caller's and is given back, further ones (up to jobs) are opened and closed here. ret_jobs: how
// many sessions were used.
int fill_work(struct db_target *target, struct db_session *session, const struct schema *schema,
              const struct fill_options *options, int jobs, int *ret_jobs, struct err *err);
