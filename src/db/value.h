// One value between scripts and databases: a script variable, a parameter, a field of a row.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum db_type { DB_NULL, DB_BOOL, DB_INT, DB_DOUBLE, DB_TEXT };

struct db_value {
    enum db_type type;
    uint32_t text_len; // DB_TEXT: bytes at s (which is also terminated)
    union {
        bool b;
        int64_t i;
        double d;
        const char *s; // borrowed: whoever made the value says how long it lives
    };
};

// Room for any value but text: longest int64 or "%.17g" double.
#define DB_VALUE_TEXT_MAX 40

// Writes an int64 in decimal without printf; returns the length (out is terminated). Hot path.
int db_format_int(int64_t i, char out[DB_VALUE_TEXT_MAX]);

// The text a database is sent: integers and doubles in decimal (shortest form that reads back the
// same), booleans "true"/"false", text as it is. For DB_NULL returns NULL. buf is used where text
// must be made.
const char *db_value_text(const struct db_value *value, char buf[DB_VALUE_TEXT_MAX], int *ret_len);
