#include "db/postgres_errors.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/arr.h"

// The first row whose code begins the SQLSTATE decides; so single codes stand before their class
// (its first two characters). Left out: DB_OTHER both times.
static const struct {
    const char *code;
    enum db_class statement, connect;
} rows[] = {
    {"08", DB_LOST, DB_UNAVAILABLE}, // connection exceptions; poolers use them too
    {"0L", DB_DENIED, DB_DENIED},    // invalid grantor
    {"0P", DB_DENIED, DB_DENIED},    // invalid role specification
    {"23", DB_CONSTRAINT, DB_OTHER},
    {"25006", DB_READ_ONLY, DB_OTHER},
    {"26", DB_UNDEFINED, DB_OTHER}, // prepared statement does not exist
    {"28", DB_DENIED, DB_DENIED},   // authentication
    {"34", DB_UNDEFINED, DB_OTHER}, // cursor does not exist
    {"3D", DB_NO_DATABASE, DB_NO_DATABASE},
    {"3F", DB_UNDEFINED, DB_OTHER}, // schema does not exist
    {"40001", DB_SERIALIZATION, DB_UNAVAILABLE},
    {"40002", DB_CONSTRAINT, DB_OTHER},
    {"40003", DB_LOST, DB_UNAVAILABLE}, // completion unknown: the outcome is as after a loss
    {"40P01", DB_DEADLOCK, DB_UNAVAILABLE},
    {"42501", DB_DENIED, DB_DENIED},
    {"42601", DB_SYNTAX, DB_OTHER},
    {"42P01", DB_UNDEFINED, DB_OTHER}, // table
    {"42P02", DB_UNDEFINED, DB_OTHER}, // parameter
    {"42703", DB_UNDEFINED, DB_OTHER}, // column
    {"42704", DB_UNDEFINED, DB_OTHER}, // type, role, setting
    {"42883", DB_UNDEFINED, DB_OTHER}, // function or operator
    {"42602", DB_SYNTAX, DB_OTHER},    // invalid name
    {"42622", DB_SYNTAX, DB_OTHER},    // name too long
    {"42939", DB_SYNTAX, DB_OTHER},    // reserved name
    {"44", DB_CONSTRAINT, DB_OTHER},   // check option of a view
    {"53100", DB_FULL, DB_FULL},       // disk
    {"53200", DB_FULL, DB_FULL},       // memory
    {"53300", DB_TOO_MANY, DB_TOO_MANY},
    {"53", DB_FULL, DB_FULL},
    {"55P03", DB_BUSY, DB_OTHER},   // lock_timeout, NOWAIT
    {"55000", DB_OTHER, DB_DENIED}, // connecting: the database accepts no connections
    {"57014", DB_CANCELLED, DB_UNAVAILABLE},
    {"57P04", DB_LOST, DB_NO_DATABASE}, // database dropped
    {"57P", DB_LOST, DB_UNAVAILABLE},   // shut down, crashed, starting up, idle for too long
};

// pgbouncer answered every refusal with 08P01 until 1.19; its texts are never translated.
static const struct {
    const char *text;
    enum db_class class;
} pooler_rows[] = {
    {"no such database", DB_NO_DATABASE},
    {"no such user", DB_DENIED},
    {"authentication failed", DB_DENIED},
    {"no more connections", DB_TOO_MANY},
};

// libpq's own refusals of a server that answered, of a local file, or of a value; they have no
// code. In the C locale, which prony leaves to libpq for messages.
static const struct {
    const char *text;
    enum db_class class;
} client_rows[] = {
    {"no password supplied", DB_DENIED},
    {"SSL was required", DB_DENIED},
    {"SSL connection is required", DB_DENIED},
    {"certificate", DB_DENIED},
    {"private key", DB_DENIED},
    {"authentication method", DB_DENIED},
    {"channel binding", DB_DENIED},
    {"requirepeer", DB_DENIED},
    {"GSSAPI encryption required", DB_DENIED},
    {"invalid integer value", DB_OTHER},
    {"invalid port number", DB_OTHER},
};

enum db_class postgres_class(const char *sqlstate)
{
    for (size_t i = 0; i < ARR_LEN(rows); i++)
        if (strncmp(sqlstate, rows[i].code, strlen(rows[i].code)) == 0)
            return rows[i].statement;
    return DB_OTHER;
}

// The two blanks after the severity are the same in every language and stand in no text of libpq's
// own. Returns the ':' before them, or NULL.
static const char *find_answer(const char *line, char sqlstate[SQLSTATE_MAX])
{
    for (const char *p = line; (p = strstr(p, ":  ")) != NULL; p++) {
        const char *code = p + 3;
        int n = 0;
        while (n < SQLSTATE_MAX - 1 &&
               (isdigit((unsigned char)code[n]) || isupper((unsigned char)code[n])))
            n++;
        if (n < SQLSTATE_MAX - 1 || code[n] != ':' || code[n + 1] != ' ')
            continue;
        memcpy(sqlstate, code, SQLSTATE_MAX - 1);
        sqlstate[SQLSTATE_MAX - 1] = '\0';
        return p;
    }
    return NULL;
}

enum db_class postgres_connect_class(const char *message, bool needs_password,
                                     char sqlstate[SQLSTATE_MAX])
{
    sqlstate[0] = '\0';
    for (const char *p = message; (p = find_answer(p, sqlstate)) != NULL; p++)
        ; // of several addresses the last answer counts
    if (strcmp(sqlstate, "08P01") == 0)
        for (size_t i = 0; i < ARR_LEN(pooler_rows); i++)
            if (strstr(message, pooler_rows[i].text))
                return pooler_rows[i].class;
    if (sqlstate[0]) {
        for (size_t i = 0; i < ARR_LEN(rows); i++)
            if (strncmp(sqlstate, rows[i].code, strlen(rows[i].code)) == 0)
                return rows[i].connect;
        return DB_OTHER;
    }
    if (needs_password)
        return DB_DENIED;
    for (size_t i = 0; i < ARR_LEN(client_rows); i++)
        if (strstr(message, client_rows[i].text))
            return client_rows[i].class;
    return DB_UNAVAILABLE;
}

// A line as it is, but "FATAL:  28P01: text" as "text".
static void add_line(struct str *out, const char *line, size_t len)
{
    char sqlstate[SQLSTATE_MAX];
    const char *colon = find_answer(line, sqlstate);

    if (!colon || colon >= line + len) {
        str_addn(out, line, len);
        return;
    }
    const char *severity = colon;
    while (severity > line && severity[-1] != ' ')
        severity--;
    const char *text = colon + 3 + SQLSTATE_MAX - 1 + 2;
    assert(text <= line + len);
    str_addn(out, line, (size_t)(severity - line));
    str_addn(out, text, (size_t)(line + len - text));
}

void postgres_add_connect_text(struct str *out, const char *message)
{
    struct str text = STR_INIT;   // the line being made
    struct str before = STR_INIT; // the one added last: libpq says the same with and without TLS
    char sqlstate[SQLSTATE_MAX];
    bool answered = false; // what follows an answer is its location and the like

    for (const char *line = message; *line;) {
        size_t len = strcspn(line, "\n");
        if (strncmp(line, "connection to server", 20) == 0)
            answered = false;
        if (len > 0 && line[0] != '\t' && !answered) {
            str_clear(&text);
            add_line(&text, line, len);
            if (strcmp(text.buf, before.buf) != 0)
                str_addf(out, "%s%s", before.len ? "; " : "", text.buf);
            str_clear(&before);
            str_add(&before, text.buf);
            const char *colon = find_answer(line, sqlstate);
            answered = colon && colon < line + len;
        }
        line += len + (line[len] == '\n');
    }
    str_release(&before);
    str_release(&text);
}
