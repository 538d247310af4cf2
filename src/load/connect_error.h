// Words for a client that could not connect before the load.
#pragma once

#include "base/err.h"

struct threads;
struct worker;

// Sets ERR_USAGE from the worker's result, with what to do about it, and returns -1. Where the
// server has too few connections its setting is named: another client's session, which still
// waits for the start, is asked for it.
int connect_error(struct threads *t, struct worker *w, struct err *err);
