// The small values of which JSON documents are built.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/kv.h"

// NULL becomes null; bytes that are not UTF-8 are shown as \xNN.
json_t *json_value_text(const char *text);

// Rounded to a millionth: more digits would only be noise from a division. Not finite: null.
json_t *json_value_number(double value);

// Nanoseconds as microseconds.
json_t *json_value_us(double ns);

// An object of texts; a key that is there several times becomes an array.
json_t *json_value_kvs(const struct kvs *list);

// Prints the document with an end of line, and frees it. Negative when writing failed (errno).
int json_value_dump(json_t *root, FILE *out);
