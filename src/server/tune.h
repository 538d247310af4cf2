// Settings that published tuning guides propose for many short transactions, from memory, cores and
// clients. Pure; the table in docs/servers.md.
#pragma once

#include "base/kv.h"

struct tune_input;

void tune_postgres(const struct tune_input *input, struct kvs *settings);
void tune_innodb(const struct tune_input *input, struct kvs *settings);
