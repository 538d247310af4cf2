// The brace grammar that targets and volumes share (base/url.h): a value is plain text up to a
// separator, or anything in braces that nest in pairs. In a target's query a value that begins with
// "WORD:" is one volume: there '=' and braces inside mean themselves. Used by url.c, spec.c and
// study/plan.c.
#pragma once

#include <stdbool.h>

#include "base/str.h"

// Reads the value at *text up to the separator or the end, appends it, and moves *text there.
// Returns NULL, or the words of what is wrong with it, to follow "the value of KEY ".
const char *braces_read(const char **text, char separator, struct str *value, bool *in_braces);

// Can this stand between braces?
bool braces_match(const char *text);

// Can this stand as plain text? (Empty text can not.)
bool braces_is_plain(const char *text, char separator);
