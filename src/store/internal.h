// Inside the store only: its struct, and the one table of columns that put.c writes and get.c
// reads.
#pragma once

#include <sqlite3.h>
#include <stddef.h>

#include "store/store.h"

#define STORE_VERSION        3
#define STORE_APPLICATION_ID 0x70726f6e // "pron"

struct store {
    sqlite3 *db; // NULL: not made yet (STORE_WRITE)
    char *path;
    enum store_mode mode;
    int64_t version; // of the file when it was opened
};

enum field_type { FIELD_TEXT, FIELD_INT, FIELD_REAL, FIELD_BOOL, FIELD_SEED };

// A column of `runs` that is a field of struct result as it stands. Columns made from histograms
// are written beside these and not read back.
struct field {
    const char *column;
    enum field_type type;
    size_t offset;
};
extern const struct field store_run_fields[]; // ends with column NULL

// Makes an ERR_FAILED error from the database's message: "prony.db: disk is full (while ...)".
int store_fail(struct store *store, const char *doing, struct err *err);

int store_exec(struct store *store, const char *sql, const char *doing, struct err *err);
int store_prepare(struct store *store, sqlite3_stmt **ret, const char *sql, const char *doing,
                  struct err *err);

// BEGIN IMMEDIATE on the file that the path names now, brought to this version: one that was
// removed or replaced since it was opened would take what is written along unseen. It is then
// opened or made again.
int store_begin(struct store *store, struct err *err);

// Makes the file now, with its tables, if it is not there yet.
int store_make(struct store *store, struct err *err);

// Finds a run by id, uuid prefix, "last" or label (store_get's words).
int store_find(struct store *store, const char *which, int64_t *ret_id, struct err *err);
