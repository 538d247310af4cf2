// One error, worded for a person: what is wrong with which thing, and what to do about it.
//
// Convention of the whole program: a function that can fail returns a negative number and fills
// the caller's `struct err`; on success it leaves it untouched. Library code never prints; only
// src/cmd does. The text is one line, without a final period or newline, and never holds a
// password. Control characters in it become blanks.
#pragma once

#define ERR_TEXT_MAX 1024

// The kind decides the exit status.
enum err_kind {
    ERR_NONE = 0,
    ERR_FAILED, // something started and went wrong                     -> exit 1
    ERR_USAGE,  // wrong usage or set-up, nothing was started            -> exit 2
    ERR_ABSENT, // cannot be run here: something needed is missing       -> exit 4
};

struct err {
    enum err_kind kind;
    char text[ERR_TEXT_MAX]; // always terminated; a longer message is cut with "..."
};

#define ERR_INIT         \
    {                    \
        .kind = ERR_NONE \
    }

// Sets kind and text (replacing an earlier error) and returns -1, so that callers can write
// `return err_set(err, ERR_USAGE, "...")`. err may be NULL: then only -1 is returned.
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "CONTEXT: " before the text, keeps the kind, and returns -1.
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// The exit status the kind stands for: 0, 1, 2 or 4.
int err_exit_status(const struct err *err);
