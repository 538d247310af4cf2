// Numbers with units as people type and read them. Parsers take the whole text or fail: trailing
// characters, empty text, overflow and NaN are errors that name the value and what is allowed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

// "-3", "20000". Digit groups and exponents are refused.
int units_parse_int(const char *text, int64_t *ret, struct err *err);

// "0.5", "1e-3"; finite only.
int units_parse_double(const char *text, double *ret, struct err *err);

// A duration to nanoseconds: "250us", "2ms", "60s", "5m" or "5min", "1h", "1.5s"; a bare number
// counts in `bare_ns` (e.g. NS_PER_S for --time; 0: a unit is required). Never negative.
int units_parse_duration(const char *text, int64_t bare_ns, int64_t *ret_ns, struct err *err);

// A size to bytes: "8k", "12GB", "512MiB", "4096". All units are powers of 1024, as in PostgreSQL.
// "2xRAM" or "0.5xRAM" is a multiple of this machine's memory.
int units_parse_size(const char *text, int64_t *ret_bytes, struct err *err);

// This machine's memory in bytes (sysconf).
int64_t units_ram_bytes(void);

// Writers for people. out holds at least UNITS_MAX bytes; each returns out.
//   duration: three digits with a fitting unit: "187 us", "2.31 ms", "1.05 s", "3 min 20 s"
//   exact:    shortest text that units_parse_duration reads back to the same value: "2ms", "90s"
//   bytes:    "1.46 GiB", "312 MiB", "8 KiB", "0 B"
//   count:    thousands apart: "1 021 500"
//   rate:     three to four digits: "0.85", "12.3", "1372", "35 512"
#define UNITS_MAX 32
char *units_format_duration(int64_t ns, char *out);
char *units_format_duration_exact(int64_t ns, char *out);
char *units_format_bytes(int64_t bytes, char *out);
char *units_format_count(int64_t n, char *out);
char *units_format_rate(double per_second, char *out);
