// Small questions about text that several floors ask.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

// The entry of words (NULL-terminated) that was probably meant by what was typed, or NULL. Nearest
// by Damerau-Levenshtein distance without regard to case (at most a third of the longer, but one
// slip is always near enough in words of three letters and more); else the only word that begins
// with what was typed.
const char *text_near_miss(const char *typed, const char *const *words);

// Sets ERR_USAGE "unknown WHAT TYPED, did you mean WORD?" or, without a near miss and when the
// words are few, "unknown WHAT TYPED: must be A, B or C"; returns -1. For commands, workloads,
// engines and the like.
int text_unknown(const char *what, const char *typed, const char *const *words, struct err *err);

// Appends "a, b or c".
void text_add_words(struct str *out, const char *const *words);

// Case-insensitive prefix test for SQL keywords: `text` begins with `word` at a word boundary,
// after blanks and comments ("--...", "/*...*/").
bool text_first_word_is(const char *text, const char *word);

// Number of terminal columns of UTF-8 text (combining marks and wide characters by wcwidth in a
// UTF-8 locale, else one per code point).
int text_columns(const char *utf8);

// Takes characters off the end until at most `columns` are left.
void text_cut_columns(char *utf8, int columns);

// Appends text with bytes that are not valid UTF-8 or are control characters (also those that
// reverse the direction of writing) written as \xNN, so that what comes from servers and file names
// cannot steer a terminal.
void text_add_safe(struct str *out, const char *text);

// Appends text quoted for a POSIX shell, only where needed.
void text_add_shell(struct str *out, const char *text);

// True for keys that hold a secret: "password", "sslpassword", "passwd", "PWD" and other words
// that end so.
bool text_is_secret_key(const char *key, size_t len);

// Appends text with passwords replaced by "xxx": in URLs (//USER:PW@, also as far as a malformed
// one lets guess), and the values of secret keys (password=PW) in URLs, connection strings and
// options.
void text_add_redacted(struct str *out, const char *text);

// Appends the REST of a target SCHEME:REST (a connection string, base/url.h) with secret keys and
// their values left out.
void text_add_without_secrets(struct str *out, const char *scheme, const char *rest);

// Appends what a user typed as an error text shows it: passwords hidden, quoted where needed, safe.
void text_add_value(struct str *out, const char *text);

// Appends a C command line (argv up to n) quoted for a shell, with passwords replaced as above:
// what is stored as "the exact command".
void text_add_command(struct str *out, int n, char *const *argv);
