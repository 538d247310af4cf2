// Between the files of opt: one row's value from and to text.
#pragma once

#include "base/opt.h"
#include "base/str.h"

// The row with this name (len bytes), or NULL.
const struct opt_row *opt_find(const struct opt_row *rows, const char *name, size_t len);

// Sets the value from text. The error reads "TEXT: must be ...": the caller puts the option's name
// as it was spelled before it.
int opt_row_set(const struct opt_row *row, void *values, const char *text, struct err *err);

// Appends what is allowed, to follow "must be " or "needs an argument: ".
void opt_row_add_allowed(const struct opt_row *row, struct str *out);

// What help calls the argument (never for flags).
void opt_row_add_arg(const struct opt_row *row, struct str *out);
