// Small questions about text that several floors ask.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

// The entry of words (NULL-terminated) nearest to what was typed by Damerau-Levenshtein distance,
// or NULL when none is near enough to be a slip (distance over a third of the longer, at
// least 1..2).
const char *text_near_miss(const char *typed, const char *const *words);

// Case-insensitive prefix test for SQL keywords: `text` begins with `word` at a word boundary,
// after blanks and comments ("--...", "/*...*/").
bool text_first_word_is(const char *text, const char *word);

// Number of terminal columns of UTF-8 text (combining marks and wide characters by wcwidth in a
// UTF-8 locale, else one per code point).
int text_columns(const char *utf8);

// Appends text with bytes that are not valid UTF-8 or are control characters written as \xNN, so
// that what comes from servers and file names cannot steer a terminal.
void text_add_safe(struct str *out, const char *text);

// Appends text quoted for a POSIX shell, only where needed.
void text_add_shell(struct str *out, const char *text);

// Appends a C command line (argv up to n) quoted for a shell, with passwords in URLs (user:PW@,
// password=PW) replaced by "xxx": what is stored as "the exact command".
void text_add_command(struct str *out, int n, char *const *argv);
