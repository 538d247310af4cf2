// Numbers with units as people type and read them. Parsers take the whole text or fail: trailing
// characters, empty text, overflow and NaN are errors (ERR_USAGE) that name the value and what is
// allowed: `5x: must be a duration such as 250us, 2ms, 60s or 5m`. Numbers are read and written
// with a point whatever the locale of the messages: LC_NUMERIC must stay "C".
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

// What the error texts say after "must be "; for callers that add a range of their own.
#define UNITS_INT_WORDS      "a whole number"
#define UNITS_DOUBLE_WORDS   "a number"
#define UNITS_DURATION_WORDS "a duration such as 250us, 2ms, 60s or 5m"
#define UNITS_SIZE_WORDS     "a size such as 8k, 512MB, 12GB or 2xRAM"

// "-3", "20000". Digit groups and exponents are refused.
int units_parse_int(const char *text, int64_t *ret, struct err *err);

// "0.5", "1e-3"; finite only.
int units_parse_double(const char *text, double *ret, struct err *err);

// A duration to nanoseconds: "250us", "2ms", "60s", "5m" or "5min", "1h", "1.5s", "1d"; blanks may
// stand before the unit; a bare number counts in `bare_ns` (e.g. NS_PER_S for --time; 0: a unit is
// required, except for "0"). Never negative. Fractions of a nanosecond are rounded.
int units_parse_duration(const char *text, int64_t bare_ns, int64_t *ret_ns, struct err *err);

// A size to bytes: "8k", "12GB", "512MiB", "4096". All units are powers of 1024, as in PostgreSQL.
// "2xRAM" or "0.5xRAM" is a multiple of this machine's memory. Case does not matter.
int units_parse_size(const char *text, int64_t *ret_bytes, struct err *err);

// This machine's memory in bytes (sysconf).
int64_t units_ram_bytes(void);

// Writers for people. out holds at least UNITS_MAX bytes; each returns out.
//   duration: three digits with a fitting unit: "187 us", "2.31 ms", "1.05 s", "3 min 20 s"
//   exact:    shortest text that the parser above reads back to the same value: "2ms", "90s", "8kB"
//             (never negative)
//   bytes:    "1.46 GiB", "312 MiB", "8 KiB", "0 B"
//   count:    thousands apart: "1 021 500"
//   rate:     three to four digits: "0.85", "12.3", "1372", "35 512"; "-" when not finite
#define UNITS_MAX 32
char *units_format_duration(int64_t ns, char *out);
char *units_format_duration_exact(int64_t ns, char *out);
char *units_format_bytes(int64_t bytes, char *out);
char *units_format_bytes_exact(int64_t bytes, char *out);
char *units_format_count(int64_t n, char *out);
char *units_format_rate(double per_second, char *out);
