// Reading the small text files of /proc and /sys.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The first line of the file at the printf-style path, without its newline. False (and "" in out)
// when it cannot be read or there is none; errno says why.
bool sysfs_line(char *out, int size, const char *path_fmt, ...)
    __attribute__((format(printf, 3, 4)));

// The first number of the file, or `missing`.
int64_t sysfs_number(int64_t missing, const char *path_fmt, ...)
    __attribute__((format(printf, 2, 3)));

// The value in the first line NAME<blanks>: VALUE or NAME="VALUE" of a text file, lines of any
// length. False when there is none.
bool sysfs_value(char *out, int size, const char *path, const char *name);

// The last part of what a symbolic link points to. False when there is no such link.
bool sysfs_link_name(char *out, int size, const char *path_fmt, ...)
    __attribute__((format(printf, 3, 4)));
