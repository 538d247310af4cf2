// --log-transactions: one line per finished transaction, in the layout of pgbench 15:
//
//     client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]
//
// time and schedule_lag are microseconds; time counts from the planned start under a rate.
// time_epoch and time_us are the moment of completion. In place of time stands `failed` for a
// transaction that failed, and `unknown` (which pgbench does not have) for one whose outcome is not
// known. schedule_lag is there under a rate, retries where more than one try is allowed.
//
// One file per run, PREFIX.PID, whatever the number of threads: each worker formats lines into a
// buffer of its own and appends it whole, between transactions. So the lines of one client are in
// order, those of several are not. A file that cannot be written (disk full) ends the log, not the
// run: txlog_error tells.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum txlog_outcome { TXLOG_DONE, TXLOG_FAILED, TXLOG_UNKNOWN };

struct txlog {
    int fd;
    char *path;
    bool with_lag, with_retries;
    int64_t real_minus_mono_ns;
    int buffer_size;   // of each worker
    _Atomic int error; // errno; 0 while all is well
};

struct txlog_line {
    int client;
    int64_t number; // of the client's transactions, from 1
    enum txlog_outcome outcome;
    int script;
    int64_t latency_ns;
    int64_t end_ns; // CLOCK_MONOTONIC
    int64_t lag_ns; // start after the planned start
    int retries;
};

struct txlog_buffer { // of one worker; zeroed when nothing is logged
    struct txlog *log;
    char *bytes;
    int len;
};

// Makes the file (an older one of that name is emptied). ERR_USAGE names the path.
int txlog_open(struct txlog **ret, const char *prefix, int n_workers, bool with_lag,
               bool with_retries, struct err *err);
void txlog_close(struct txlog *log); // NULL allowed; after the buffers
int txlog_error(const struct txlog *log);

void txlog_buffer_init(struct txlog_buffer *b, struct txlog *log);
void txlog_buffer_release(struct txlog_buffer *b); // writes what is left

// Formats into the buffer; never writes (but for a buffer that was not flushed when it asked).
void txlog_add(struct txlog_buffer *b, const struct txlog_line *line);

static inline bool txlog_wants_flush(const struct txlog_buffer *b)
{
    return b->log && b->len > b->log->buffer_size / 2;
}

void txlog_flush(struct txlog_buffer *b);
