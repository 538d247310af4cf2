// What can be said about a MySQL or MariaDB target. Each question may fail by itself: on other
// products that speak the protocol, through proxies, for want of a privilege.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/text.h"
#include "base/units.h"
#include "db/mysqldb.h"

struct facts_look {
    struct mysqldb_session *s;
    struct db_facts *facts;
    struct kvs variables; // of the server, names in lower case
    struct str why;       // there are none: "unknown: REASON"
};

// Settings that decide durability, memory and behaviour under load; recorded changed or not.
static const char *const recorded[] = {
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_use_fdatasync",
    "innodb_buffer_pool_size",
    "innodb_buffer_pool_instances",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_redo_log_capacity",
    "innodb_log_buffer_size",
    "innodb_page_size",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_max_dirty_pages_pct",
    "innodb_flush_neighbors",
    "innodb_file_per_table",
    "innodb_checksum_algorithm",
    "innodb_use_native_aio",
    "innodb_adaptive_hash_index",
    "innodb_thread_concurrency",
    "innodb_lock_wait_timeout",
    "innodb_rollback_on_timeout",
    "innodb_snapshot_isolation",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "rpl_semi_sync_master_enabled",
    "wsrep_on",
    "wsrep_cluster_address",
    "tx_isolation",
    "transaction_isolation",
    "autocommit",
    "max_allowed_packet",
    "max_connections",
    "thread_handling",
    "thread_pool_size",
    "performance_schema",
    "slow_query_log",
    "general_log",
    "query_cache_type",
    "table_open_cache",
    "default_storage_engine",
    "key_buffer_size",
    "delay_key_write",
    "flush",
    "concurrent_insert",
    "aria_pagecache_buffer_size",
    "aria_checkpoint_interval",
    "sql_mode",
    "character_set_server",
    "version_compile_machine",
    "version_ssl_library",
};

static const char *variable(const struct facts_look *look, const char *name)
{
    return kvs_get(&look->variables, name);
}

static bool is_on(const char *value)
{
    return value && (strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

static void unknown(struct facts_look *look, const char *field, const char *why)
{
    kvs_set(&look->facts->settings, field, why);
}

static void take_variable(void *arg, int n, const char *const *names, const char *const *values)
{
    struct facts_look *look = arg;
    char name[128];
    size_t i = 0;

    (void)names;
    if (n < 2 || !values[0] || !values[1])
        return;
    for (; values[0][i] && i < sizeof(name) - 1; i++)
        name[i] = values[0][i] >= 'A' && values[0][i] <= 'Z' ? values[0][i] + 32 : values[0][i];
    name[i] = '\0';
    kvs_add(&look->variables, name, values[1]);
}

static void read_variables(struct facts_look *look)
{
    // The session's where it has its own: an init_command may have changed the isolation.
    static const char sql[] = "SHOW VARIABLES";
    struct db_result result = {0};

    mysqldb_text(look->s, sql, sizeof(sql) - 1, false, take_variable, look, &result);
    if (look->variables.n == 0)
        str_addf(&look->why, "unknown: %s",
                 result.class == DB_OK ? "the server shows no variables" : result.message);
}

// ---- version

static void describe_version(struct facts_look *look)
{
    struct db_facts *facts = look->facts;
    const char *version = variable(look, "version");
    const char *comment = variable(look, "version_comment");

    if (!version)
        version = mysql_get_server_info(look->s->mysql);
    if (!version || !version[0]) {
        snprintf(facts->version, sizeof(facts->version), "unknown: the server did not tell");
        return;
    }
    bool mariadb = strcasestr(version, "mariadb") || (comment && strcasestr(comment, "mariadb"));
    snprintf(facts->engine, sizeof(facts->engine), "%s", mariadb ? "mariadb" : "mysql");
    snprintf(facts->version, sizeof(facts->version), "%s%s%s%s", version, comment ? " (" : "",
             comment ? comment : "", comment ? ")" : "");
}

// ---- connections

static void describe_connections(struct facts_look *look)
{
    // An account may have a limit of its own; 0 is none.
    static const char per_user[] = "SELECT @@session.max_user_connections";
    static const char users[] = "SELECT COUNT(*) FROM information_schema.processlist "
                                "WHERE user = SUBSTRING_INDEX(USER(), '@', 1)";
    static const char all[] = "SHOW GLOBAL STATUS LIKE 'Threads_connected'";
    struct db_facts *facts = look->facts;
    const char *max = variable(look, "max_connections");
    struct str text = STR_INIT, why = STR_INIT;
    int64_t limit = 0, own = 0, used = 0;

    if (max && units_parse_int(max, &limit, NULL) == 0 && limit > 0 && limit < INT_MAX) {
        facts->max_connections = (int)limit;
        facts->max_connections_setting = "max_connections";
    } else {
        unknown(look, "max_connections", max ? max : look->why.buf);
    }
    bool by_user = mysqldb_ask(look->s, per_user, 0, &text, NULL) &&
                   units_parse_int(text.buf, &own, NULL) == 0 && own > 0 && own < INT_MAX &&
                   (limit == 0 || own < limit);
    if (by_user) {
        facts->max_connections = (int)own;
        facts->max_connections_setting = "max_user_connections";
    }
    bool told = by_user ? mysqldb_ask(look->s, users, 0, &text, &why)
                        : mysqldb_ask(look->s, all, 1, &text, &why);
    if (told && units_parse_int(text.buf, &used, NULL) == 0 && used < INT_MAX)
        facts->connections_used = used > 0 ? (int)used - 1 : 0; // not counting this one
    else
        unknown(look, "connections_used", told ? "unknown: not a number" : why.buf);
    str_release(&text);
    str_release(&why);
}

// ---- read only

struct grants_look {
    bool exempt; // may write although the server is read_only
    bool maybe;  // SUPER, which is enough on MySQL and on MariaDB before 10.11
};

static void take_grant(void *arg, int n, const char *const *names, const char *const *values)
{
    struct grants_look *look = arg;
    const char *grant = n >= 1 ? values[0] : NULL;

    (void)names;
    if (!grant || !strstr(grant, " ON *.* "))
        return;
    look->exempt = look->exempt || strstr(grant, "ALL PRIVILEGES") ||
                   strstr(grant, "READ_ONLY ADMIN") || strstr(grant, "READ ONLY ADMIN") ||
                   strstr(grant, "CONNECTION_ADMIN");
    look->maybe = look->maybe || strstr(grant, "SUPER");
}

static bool is_exempt(struct facts_look *look)
{
    static const char sql[] = "SHOW GRANTS";
    struct grants_look grants = {0};
    struct db_result ignored = {0};
    bool mariadb = strcmp(look->facts->engine, "mariadb") == 0;

    mysqldb_text(look->s, sql, sizeof(sql) - 1, false, take_grant, &grants, &ignored);
    return grants.exempt ||
           (grants.maybe && !(mariadb && mysql_get_server_version(look->s->mysql) >= 101101));
}

static const char *replica_source(struct mysqldb_session *s, struct str *host, struct str *why)
{
    // Column: Master_Host / Source_Host. The words changed twice.
    if (mysqldb_ask(s, "SHOW REPLICA STATUS", 1, host, why) ||
        mysqldb_ask(s, "SHOW SLAVE STATUS", 1, host, why))
        return host->buf;
    return NULL;
}

static void describe_read_only(struct facts_look *look)
{
    struct db_facts *facts = look->facts;
    struct str host = STR_INIT, why = STR_INIT;
    const char *source = replica_source(look->s, &host, &why);
    const char *setting = NULL;

    if (source)
        kvs_addf(&facts->settings, "replica_of", "%s", source);
    else if (!strstr(why.buf, "did not tell")) // no row: not a replica
        unknown(look, "replica_of", why.buf);
    if (is_on(variable(look, "innodb_read_only")))
        setting = "innodb_read_only";
    else if (is_on(variable(look, "super_read_only")))
        setting = "super_read_only";
    else if (is_on(variable(look, "read_only")))
        setting = is_exempt(look) ? NULL : "read_only";
    if (is_on(variable(look, "read_only")))
        kvs_set(&facts->settings, "read_only", "ON");
    if (setting) {
        facts->read_only = true;
        snprintf(facts->read_only_why, sizeof(facts->read_only_why), "%s%s=1",
                 source ? "a replica, " : "", setting);
    }
    str_release(&host);
    str_release(&why);
}

// ---- place

// Through a UNIX socket the server is here; over a network it is when both ends have one address.
static bool is_local(const struct mysqldb_session *s)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } here = {0}, there = {0};
    socklen_t here_len = sizeof(here), there_len = sizeof(there);

    if (getsockname(s->fd, &here.any, &here_len) < 0 ||
        getpeername(s->fd, &there.any, &there_len) < 0)
        return false;
    if (here.any.sa_family == AF_UNIX)
        return true;
    if (here.any.sa_family == AF_INET)
        return here.v4.sin_addr.s_addr == there.v4.sin_addr.s_addr;
    return here.any.sa_family == AF_INET6 &&
           memcmp(&here.v6.sin6_addr, &there.v6.sin6_addr, sizeof(here.v6.sin6_addr)) == 0;
}

// A directory the server names, made absolute against its data directory and looked up here.
// Returns false with the reason in why.
static bool find_directory(const char *data_directory, const char *named, char out[PATH_MAX],
                           struct str *why)
{
    struct str path = STR_INIT;
    struct stat st;
    bool found = false;

    if (named[0] != '/')
        str_addf(&path, "%s/", data_directory);
    str_add(&path, named);
    errno = 0;
    if (realpath(path.buf, out) && stat(out, &st) == 0 && S_ISDIR(st.st_mode)) {
        found = true;
    } else {
        str_clear(why);
        str_addf(why, "unknown: the server's directory %s cannot be seen from here: %s", path.buf,
                 errno ? strerror(errno) : "not a directory");
        out[0] = '\0';
    }
    str_release(&path);
    return found;
}

static void describe_place(struct facts_look *look)
{
    struct db_facts *facts = look->facts;
    const struct mysqldb_engine *engine = &mysqldb_target(&look->s->base)->engine;
    const char *data = variable(look, "datadir");
    const char *its_name = variable(look, "hostname");
    const char *log = engine->log_path ? variable(look, engine->log_path) : NULL;
    char our_name[HOST_NAME_MAX + 1] = "";
    struct str why = STR_INIT;

    facts->is_local = is_local(look->s);
    gethostname(our_name, sizeof(our_name) - 1);
    if (!facts->is_local)
        str_add(&why, "unknown: the server is on another machine");
    else if (!data)
        str_add(&why, look->why.len ? look->why.buf : "unknown: the server did not tell");
    else if (its_name && strcmp(its_name, our_name) != 0)
        // The same machine, but perhaps another name space: its paths may mean something else here.
        str_addf(&why, "unknown: the server calls itself %s and this machine %s", its_name,
                 our_name);
    if (why.len == 0)
        find_directory(data, data, facts->data_path, &why);
    if (why.len > 0)
        unknown(look, "data_path", why.buf);
    if (facts->data_path[0] && log && log[0]) {
        str_clear(&why);
        if (!find_directory(data, log, facts->log_path, &why))
            unknown(look, "log_path", why.buf);
        else if (strcmp(facts->log_path, facts->data_path) == 0)
            facts->log_path[0] = '\0';
    }
    str_release(&why);
}

// ---- sizes

static void describe_sizes(struct facts_look *look)
{
    // The engine's own statistics: of InnoDB as old as the last ANALYZE or its own recount.
    static const char sql[] = "SELECT CAST(SUM(data_length + index_length) AS UNSIGNED) "
                              "FROM information_schema.tables WHERE table_schema = DATABASE()";
    struct db_facts *facts = look->facts;
    const struct mysqldb_engine *engine = &mysqldb_target(&look->s->base)->engine;
    const char *cache = engine->cache ? variable(look, engine->cache) : NULL;
    struct str text = STR_INIT, why = STR_INIT;

    if (!mysqldb_ask(look->s, sql, 0, &text, &why))
        unknown(look, "data_bytes", why.buf);
    else if (units_parse_int(text.buf, &facts->data_bytes, NULL) < 0)
        facts->data_bytes = -1;
    if (!cache || units_parse_int(cache, &facts->cache_bytes, NULL) < 0) {
        facts->cache_bytes = -1;
        unknown(look, "cache_bytes",
                engine->cache ? "unknown: the server does not show its size"
                              : "unknown: this storage engine has no cache of its own");
    }
    str_release(&text);
    str_release(&why);
}

// ---- settings

static void take_changed(void *arg, int n, const char *const *names, const char *const *values)
{
    struct facts_look *look = arg;
    char name[128];

    (void)names;
    if (n < 2 || !values[0])
        return;
    size_t len = 0;
    for (; values[0][len] && len < sizeof(name) - 1; len++)
        name[len] =
            values[0][len] >= 'A' && values[0][len] <= 'Z' ? values[0][len] + 32 : values[0][len];
    name[len] = '\0';
    if (text_is_secret_key(name, len) || strstr(name, "_auth") ||
        kvs_get(&look->facts->settings, name))
        return;
    kvs_add(&look->facts->settings, name, values[1] ? values[1] : "");
}

static void describe_changed(struct facts_look *look)
{
    // MariaDB says where a value came from; MySQL keeps that beside the values.
    static const char mariadb[] =
        "SELECT variable_name, global_value FROM information_schema.system_variables "
        "WHERE global_value_origin IN ('CONFIG', 'COMMAND-LINE', 'SQL') "
        "AND (default_value IS NULL OR NOT global_value <=> default_value) ORDER BY 1";
    static const char mysql[] =
        "SELECT i.variable_name, g.variable_value FROM performance_schema.variables_info i "
        "JOIN performance_schema.global_variables g USING (variable_name) "
        "WHERE i.variable_source <> 'COMPILED' ORDER BY 1";
    bool is_mariadb = strcmp(look->facts->engine, "mariadb") == 0;
    const char *sql = is_mariadb ? mariadb : mysql;
    struct db_result result = {0};

    if (mysqldb_text(look->s, sql, strlen(sql), false, take_changed, look, &result) != DB_OK)
        kvs_addf(&look->facts->settings, "changed_settings", "unknown: %s", result.message);
}

static void describe_settings(struct facts_look *look)
{
    struct str text = STR_INIT;

    for (size_t i = 0; i < ARR_LEN(recorded); i++) {
        const char *value = variable(look, recorded[i]);
        if (value && !kvs_get(&look->facts->settings, recorded[i]))
            kvs_add(&look->facts->settings, recorded[i], value);
    }
    if (look->variables.n == 0)
        unknown(look, "settings", look->why.buf);
    // Where an option file decided, the target's URL does not tell.
    kvs_set(&look->facts->settings, "connection", mysql_get_host_info(look->s->mysql));
    if (mysqldb_ask(look->s, "SELECT CURRENT_USER(), DATABASE()", 0, &text, NULL))
        kvs_set(&look->facts->settings, "account", text.buf);
    if (mysqldb_ask(look->s, "SELECT CURRENT_USER(), DATABASE()", 1, &text, NULL))
        kvs_set(&look->facts->settings, "database", text.buf);
    str_release(&text);
    const char *cipher = mysql_get_ssl_cipher(look->s->mysql);
    kvs_set(&look->facts->settings, "tls", cipher ? cipher : "no");
}

// Which storage engine the tables really have, whatever the target asks for: pgbench's if there are
// any, else all of the database.
static void describe_table_engine(struct facts_look *look)
{
    static const char *const queries[] = {
        "SELECT GROUP_CONCAT(DISTINCT engine ORDER BY engine SEPARATOR ', ') "
        "FROM information_schema.tables WHERE table_schema = DATABASE() "
        "AND table_type = 'BASE TABLE' AND table_name LIKE 'pgbench\\_%'",
        "SELECT GROUP_CONCAT(DISTINCT engine ORDER BY engine SEPARATOR ', ') "
        "FROM information_schema.tables WHERE table_schema = DATABASE() "
        "AND table_type = 'BASE TABLE'",
    };
    struct str text = STR_INIT;

    kvs_set(&look->facts->settings, "engine", mysqldb_target(&look->s->base)->engine_name);
    for (size_t i = 0; i < ARR_LEN(queries); i++)
        if (mysqldb_ask(look->s, queries[i], 0, &text, NULL) && text.len > 0) {
            kvs_set(&look->facts->settings, "table_engine", text.buf);
            break;
        }
    str_release(&text);
}

void mysqldb_describe(struct db_session *base, struct db_facts *facts)
{
    struct facts_look look = {
        .s = mysqldb_session(base), .facts = facts, .variables = KVS_INIT, .why = STR_INIT};

    read_variables(&look);
    describe_version(&look);
    describe_connections(&look);
    describe_read_only(&look);
    describe_place(&look);
    describe_sizes(&look);
    describe_table_engine(&look);
    describe_settings(&look);
    describe_changed(&look);
    kvs_release(&look.variables);
    str_release(&look.why);
}
