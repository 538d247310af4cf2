// What a server tells about itself. Every question may be refused (rights, poolers, other products
// behind the protocol): then its answer is "unknown: REASON" and the next one is asked.
#include "db/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/text.h"
#include "base/units.h"

// Recorded whatever their value: they decide durability, memory and what a checkpoint costs.
static const char *const always[] = {
    "autovacuum",
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_timeout",
    "commit_delay",
    "data_checksums",
    "data_sync_retry",
    "default_transaction_isolation",
    "effective_cache_size",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
    "shared_buffers",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
    "work_mem",
};

// May hold passwords; that they are set is worth a record, their text is not.
static const char *const hidden[] = {
    "archive_cleanup_command", "archive_command", "primary_conninfo",
    "recovery_end_command",    "restore_command", "ssl_passphrase_command",
};

PGresult *postgres_ask(struct postgres_session *s, const char *sql, struct str *why)
{
    struct db_result failure = {0};

    if (PQstatus(s->conn) == CONNECTION_BAD) {
        s->base.lost = true;
        if (why)
            str_add(why, "unknown: the connection was lost");
        return NULL;
    }
    postgres_cancel_busy(s->cancel);
    PGresult *res = postgres_exec(s, sql);
    postgres_cancel_idle(s->cancel);
    if (PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) > 0)
        return res;
    if (why && PQresultStatus(res) == PGRES_TUPLES_OK) {
        str_add(why, "unknown: the server gave no answer");
    } else if (why) {
        postgres_fail(s, res, &failure);
        str_add(why, "unknown: ");
        text_add_safe(why, failure.message);
    }
    s->base.lost = PQstatus(s->conn) == CONNECTION_BAD;
    PQclear(res);
    return NULL;
}

static bool is_hidden(const char *name)
{
    for (size_t i = 0; i < ARR_LEN(hidden); i++)
        if (strcmp(hidden[i], name) == 0)
            return true;
    return text_is_secret_key(name, strlen(name));
}

static void add_setting(struct db_facts *facts, const char *name, const char *value)
{
    struct str safe = STR_INIT;

    if (is_hidden(name) && *value)
        value = "(set, not recorded)";
    text_add_safe(&safe, value);
    kvs_set(&facts->settings, name, safe.buf);
    str_release(&safe);
}

// One value by query into a text; false when it is not known (the reason is then recorded).
static bool ask_value(struct postgres_session *s, struct db_facts *facts, const char *field,
                      const char *sql, char *out, size_t size)
{
    struct str why = STR_INIT;
    PGresult *res = postgres_ask(s, sql, &why);
    bool known = res && !PQgetisnull(res, 0, 0);

    if (known)
        snprintf(out, size, "%s", PQgetvalue(res, 0, 0));
    else
        kvs_set(&facts->settings, field, res ? "unknown: the server gave no value" : why.buf);
    PQclear(res);
    str_release(&why);
    return known;
}

// "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc ...": the
// short form for PostgreSQL, the whole for products that call themselves otherwise.
static void describe_version(struct postgres_session *s, struct db_facts *facts)
{
    const char *reported = PQparameterStatus(s->conn, "server_version");
    struct str why = STR_INIT;
    struct str safe = STR_INIT;
    PGresult *res = postgres_ask(s, "SELECT version()", &why);
    const char *text = res && !PQgetisnull(res, 0, 0) ? PQgetvalue(res, 0, 0) : NULL;

    if (text)
        add_setting(facts, "version_text", text);
    if (reported && (!text || strncmp(text, "PostgreSQL ", 11) == 0))
        text_add_safe(&safe, reported);
    else if (text)
        text_add_safe(&safe, text);
    else
        str_add(&safe, res ? "unknown: the server gave no value" : why.buf);
    snprintf(facts->version, sizeof(facts->version), "%s", safe.buf);
    PQclear(res);
    str_release(&safe);
    str_release(&why);
}

// Where pg_settings cannot be read, SHOW may still answer.
static void show_settings(struct postgres_session *s, struct db_facts *facts)
{
    for (size_t i = 0; i < ARR_LEN(always); i++) {
        struct str sql = STR_INIT;
        char value[256];
        str_addf(&sql, "SHOW %s", always[i]);
        if (ask_value(s, facts, always[i], sql.buf, value, sizeof(value)))
            add_setting(facts, always[i], value);
        str_release(&sql);
    }
}

static void describe_settings(struct postgres_session *s, struct db_facts *facts)
{
    struct str sql = STR_INIT;
    struct str why = STR_INIT;

    str_add(&sql, "SELECT name, current_setting(name) FROM pg_settings WHERE "
                  "(source NOT IN ('default', 'override') "
                  "AND name NOT IN ('application_name', 'client_encoding')) OR name IN (");
    for (size_t i = 0; i < ARR_LEN(always); i++)
        str_addf(&sql, "%s'%s'", i ? ", " : "", always[i]);
    str_add(&sql, ") ORDER BY name");
    PGresult *res = postgres_ask(s, sql.buf, &why);
    if (res) {
        for (int i = 0; i < PQntuples(res); i++)
            add_setting(facts, PQgetvalue(res, i, 0), PQgetvalue(res, i, 1));
    } else {
        kvs_set(&facts->settings, "settings", why.buf);
        show_settings(s, facts);
    }
    PQclear(res);
    str_release(&why);
    str_release(&sql);
}

static int int_value(const PGresult *res, int column)
{
    return (int)strtol(PQgetvalue(res, 0, column), NULL, 10);
}

// Three limits can bind: the server's less the slots it keeps for superusers, the database's, the
// role's. Given is the one with least room. Superusers are free of all but the first, and of its
// reserve.
static void describe_connections(struct postgres_session *s, struct db_facts *facts)
{
    static const char *const names[] = {
        "max_connections",
        "the connection limit of the database (ALTER DATABASE ... CONNECTION LIMIT)",
        "the connection limit of the role (ALTER ROLE ... CONNECTION LIMIT)",
    };
    static const char sql[] =
        "WITH me AS (SELECT rolsuper, rolconnlimit FROM pg_roles WHERE rolname = current_user), "
        "others AS (SELECT datname, usename FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname IS NOT NULL "
        "AND coalesce(backend_type, 'client backend') = 'client backend') "
        "SELECT current_setting('max_connections')::int - CASE WHEN rolsuper THEN 0 ELSE "
        "current_setting('superuser_reserved_connections')::int + "
        "coalesce(current_setting('reserved_connections', true), '0')::int END, "
        "(SELECT count(*) FROM others), "
        "CASE WHEN rolsuper THEN -1 ELSE "
        "(SELECT datconnlimit FROM pg_database WHERE datname = current_database()) END, "
        "(SELECT count(*) FROM others WHERE datname = current_database()), "
        "CASE WHEN rolsuper THEN -1 ELSE rolconnlimit END, "
        "(SELECT count(*) FROM others WHERE usename = current_user) FROM me";
    struct str why = STR_INIT;
    PGresult *res = postgres_ask(s, sql, &why);
    char value[32];

    if (res) {
        for (int i = 0; i < 3; i++) {
            int limit = int_value(res, 2 * i);
            int used = int_value(res, 2 * i + 1);
            if (limit < 0 ||
                (i > 0 && limit - used >= facts->max_connections - facts->connections_used))
                continue;
            facts->max_connections = limit;
            facts->connections_used = used;
            facts->max_connections_setting = names[i];
        }
    } else {
        kvs_set(&facts->settings, "connections_used", why.buf);
        if (ask_value(s, facts, "max_connections", "SHOW max_connections", value, sizeof(value))) {
            facts->max_connections = (int)strtol(value, NULL, 10);
            facts->max_connections_setting = names[0];
            res = postgres_ask(s, "SHOW superuser_reserved_connections", NULL);
            if (res)
                facts->max_connections -= int_value(res, 0);
        }
    }
    PQclear(res);
    str_release(&why);
}

static void describe_read_only(struct postgres_session *s, struct db_facts *facts)
{
    const char *standby = PQparameterStatus(s->conn, "in_hot_standby"); // PostgreSQL 14 and later
    char value[32] = "";

    bool replica = standby && strcmp(standby, "on") == 0;
    if (ask_value(s, facts, "read_only", "SHOW transaction_read_only", value, sizeof(value)) &&
        strcmp(value, "on") != 0)
        return;
    if (!replica && !standby) {
        PGresult *res = postgres_ask(s, "SELECT pg_is_in_recovery()", NULL);
        replica = res && PQgetvalue(res, 0, 0)[0] == 't';
        PQclear(res);
    }
    facts->read_only = replica || strcmp(value, "on") == 0;
    if (facts->read_only)
        snprintf(facts->read_only_why, sizeof(facts->read_only_why), "%s",
                 replica ? "a replica in recovery" : "default_transaction_read_only=on");
}

static void describe_sizes(struct postgres_session *s, struct db_facts *facts)
{
    char value[32];

    if (ask_value(s, facts, "data_bytes", "SELECT pg_database_size(current_database())", value,
                  sizeof(value)))
        facts->data_bytes = strtoll(value, NULL, 10);
    if (ask_value(s, facts, "cache_bytes", "SHOW shared_buffers", value, sizeof(value)) &&
        units_parse_size(value, &facts->cache_bytes, NULL) < 0) {
        facts->cache_bytes = -1;
        kvs_set(&facts->settings, "cache_bytes", "unknown: shared_buffers is not a size");
    }
}

// A new session's first look at the settings and at who else is there takes the server many times
// as long as all of this.
void postgres_describe_place(struct db_session *base, struct db_facts *facts)
{
    struct postgres_session *s = postgres_session(base);

    describe_version(s, facts);
    describe_read_only(s, facts);
    describe_sizes(s, facts);
    postgres_place(s, facts);
}

void postgres_describe(struct db_session *base, struct db_facts *facts)
{
    struct postgres_session *s = postgres_session(base);

    describe_settings(s, facts);
    describe_connections(s, facts);
    postgres_describe_place(base, facts);
}
