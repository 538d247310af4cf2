// What SQLite's codes mean for the core.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "db/sqlite.h"

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

// SQLITE_ERROR is told apart by the text only.
static enum db_class class_of_text(const char *message)
{
    static const struct {
        const char *begin;
        enum db_class class;
    } known[] = {
        {"no such", DB_UNDEFINED},         {"unknown ", DB_UNDEFINED},
        {"wrong number of ", DB_SYNTAX},   {"near ", DB_SYNTAX},
        {"incomplete input", DB_SYNTAX},   {"unrecognized token", DB_SYNTAX},
        {"ambiguous column", DB_SYNTAX},   {"misuse of ", DB_SYNTAX},
        {"all VALUES must ", DB_SYNTAX},   {"ORDER BY ", DB_SYNTAX},
        {"sub-select returns", DB_SYNTAX},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (begins(message, known[i].begin))
            return known[i].class;
    if (strstr(message, " has no column named ") != NULL)
        return DB_UNDEFINED;
    if (strstr(message, " values for ") != NULL || strstr(message, " were supplied") != NULL)
        return DB_SYNTAX;
    return DB_OTHER;
}

static enum db_class class_of_errno(int system_errno, enum db_class otherwise)
{
    switch (system_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE: // every session needs two or three descriptors
    case ENFILE:
        return DB_FULL;
    case EACCES:
    case EPERM:
        return DB_DENIED;
    case EROFS:
        return DB_READ_ONLY;
    case ENOENT:
    case ENOTDIR:
        return DB_NO_DATABASE;
    default:
        return otherwise;
    }
}

enum db_class sqlite_class(int rc, int system_errno, const char *message)
{
    switch (rc) {
    case SQLITE_BUSY_SNAPSHOT: // the snapshot is too old to write from; again from the start helps
        return DB_SERIALIZATION;
    case SQLITE_IOERR_BLOCKED:
    case SQLITE_LOCKED_SHAREDCACHE:
        return DB_BUSY;
    case SQLITE_IOERR_NOMEM:
        return DB_FULL;
    default:
        break;
    }
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_PROTOCOL: // lost the race for the WAL's locks too often
        return DB_BUSY;
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_NOLFS:
        return DB_FULL;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return DB_DENIED;
    case SQLITE_READONLY:
        return DB_READ_ONLY;
    case SQLITE_INTERRUPT:
        return DB_CANCELLED;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return DB_CONSTRAINT;
    case SQLITE_CANTOPEN: // of the journal, in mid-run
        return class_of_errno(system_errno, DB_NO_DATABASE);
    case SQLITE_IOERR:
        // What has reached the disk is open, at a commit above all: the connection counts as lost,
        // and opening it anew runs SQLite's recovery.
        return class_of_errno(system_errno, DB_LOST) == DB_FULL ? DB_FULL : DB_LOST;
    case SQLITE_ERROR:
        return class_of_text(message);
    default: // CORRUPT, NOTADB, SCHEMA, TOOBIG, RANGE, ...
        return DB_OTHER;
    }
}

// The errno behind the last I/O error, 0 when unknown. What was cleaned up after it may have
// overwritten the library's own note; the files keep one too: the database, and its journal or
// write-ahead log.
static int system_errno_of(sqlite3 *db, int rc)
{
    int system_errno = sqlite3_system_errno(db);
    sqlite3_file *log = NULL;

    if (system_errno != 0 || (rc & 0xff) != SQLITE_IOERR)
        return system_errno;
    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &system_errno);
    if (system_errno == 0 &&
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
        log->pMethods)
        (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &system_errno);
    return system_errno;
}

enum db_class sqlite_fail(struct sqlite_session *session, int rc, struct db_result *result)
{
    const char *message = sqlite3_errmsg(session->db);
    int system_errno = system_errno_of(session->db, rc);
    enum db_class class = sqlite_class(rc, system_errno, message);
    char native[16];

    result->in_transaction = session->db && !sqlite3_get_autocommit(session->db);
    snprintf(native, sizeof(native), "%d", rc);
    if ((class == DB_BUSY || class == DB_SERIALIZATION) &&
        atomic_load_explicit(&session->busy.cancelled, memory_order_relaxed))
        return db_fail(result, DB_CANCELLED, native, "cancelled while waiting for a lock");
    int primary = rc & 0xff;
    if ((primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) && system_errno)
        return db_fail(result, class, native, "%s: %s", message, strerror(system_errno));
    return db_fail(result, class, native, "%s", message);
}
