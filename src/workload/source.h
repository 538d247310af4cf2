// Where script texts come from: FILE[@WEIGHT] arguments, standard input.
#pragma once

#include "base/err.h"
#include "workload/script.h"

// The largest script that is read. Generated ones of some megabytes exist.
#define SOURCE_BYTES_MAX (16 << 20)

// Reads the file that an argument FILE[@WEIGHT] names; "-" is standard input. Release it either
// way.
int source_read(struct source *ret, const char *argument, struct err *err);
void source_release(struct source *source);

// Checks that text is a script at all (no NUL bytes) and skips a byte order mark.
int source_set_text(struct source *source, const char *text, size_t len, struct err *err);
