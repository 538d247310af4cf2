// From a target's URL to the library's options.
//
// Three sources, each above the one before: prony's defaults, the option files ([client] and
// [prony], as the mysql client reads them), the URL. The library reads option files only when it
// connects and lets them overrule what was set before, so it is first made to read them by a dry
// start that cannot reach any server, and then told the URL's part.
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "db/mysqldb.h"

#define DEFAULT_CHARSET "utf8mb4"
#define DEFAULT_GROUP   "prony"
#define DEFAULT_ENGINE  "innodb"
#define TIMEOUT_MAX_S   3600

const char mysqldb_params_help[] =
    "engine, socket, charset, compress, connect_timeout, defaults_file, defaults_group, "
    "default_auth, init_command, password, plugin_dir, protocol, server_public_key, ssl, ssl_ca, "
    "ssl_capath, ssl_cert, ssl_cipher, ssl_crl, ssl_crlpath, ssl_key, ssl_verify_server_cert, "
    "tls_version, user";

// ---- the table of parameters

enum type { TEXT, PATH, BOOL, SECONDS, CHOICE };

// Parameters that the library has no option for, or that need care.
#define OWN ((enum mysql_option) - 1)

enum param {
    P_CHARSET,
    P_COMPRESS,
    P_CONNECT_TIMEOUT,
    P_DEFAULT_AUTH,
    P_DEFAULTS_FILE,
    P_DEFAULTS_GROUP,
    P_ENGINE,
    P_INIT_COMMAND,
    P_PASSWORD,
    P_PLUGIN_DIR,
    P_PROTOCOL,
    P_SERVER_PUBLIC_KEY,
    P_SOCKET,
    P_SSL,
    P_SSL_CA,
    P_SSL_CAPATH,
    P_SSL_CERT,
    P_SSL_CIPHER,
    P_SSL_CRL,
    P_SSL_CRLPATH,
    P_SSL_KEY,
    P_SSL_VERIFY,
    P_TLS_VERSION,
    P_USER,
    P_COUNT
};

static const struct row {
    const char *name;
    enum type type;
    enum mysql_option option;
} rows[P_COUNT] = {
    [P_CHARSET] = {"charset", TEXT, MYSQL_SET_CHARSET_NAME},
    [P_COMPRESS] = {"compress", BOOL, OWN},
    [P_CONNECT_TIMEOUT] = {"connect_timeout", SECONDS, MYSQL_OPT_CONNECT_TIMEOUT},
    [P_DEFAULT_AUTH] = {"default_auth", TEXT, MYSQL_DEFAULT_AUTH},
    [P_DEFAULTS_FILE] = {"defaults_file", PATH, OWN},
    [P_DEFAULTS_GROUP] = {"defaults_group", TEXT, OWN},
    [P_ENGINE] = {"engine", TEXT, OWN},
    [P_INIT_COMMAND] = {"init_command", TEXT, MYSQL_INIT_COMMAND},
    [P_PASSWORD] = {"password", TEXT, OWN},
    [P_PLUGIN_DIR] = {"plugin_dir", PATH, MYSQL_PLUGIN_DIR},
    [P_PROTOCOL] = {"protocol", CHOICE, OWN},
    [P_SERVER_PUBLIC_KEY] = {"server_public_key", PATH, MYSQL_SERVER_PUBLIC_KEY},
    [P_SOCKET] = {"socket", TEXT, OWN},
    [P_SSL] = {"ssl", BOOL, MYSQL_OPT_SSL_ENFORCE},
    [P_SSL_CA] = {"ssl_ca", PATH, MYSQL_OPT_SSL_CA},
    [P_SSL_CAPATH] = {"ssl_capath", PATH, MYSQL_OPT_SSL_CAPATH},
    [P_SSL_CERT] = {"ssl_cert", PATH, MYSQL_OPT_SSL_CERT},
    [P_SSL_CIPHER] = {"ssl_cipher", TEXT, MYSQL_OPT_SSL_CIPHER},
    [P_SSL_CRL] = {"ssl_crl", PATH, MYSQL_OPT_SSL_CRL},
    [P_SSL_CRLPATH] = {"ssl_crlpath", PATH, MYSQL_OPT_SSL_CRLPATH},
    [P_SSL_KEY] = {"ssl_key", PATH, MYSQL_OPT_SSL_KEY},
    [P_SSL_VERIFY] = {"ssl_verify_server_cert", BOOL, MYSQL_OPT_SSL_VERIFY_SERVER_CERT},
    [P_TLS_VERSION] = {"tls_version", TEXT, MARIADB_OPT_TLS_VERSION},
    [P_USER] = {"user", TEXT, OWN},
};
static_assert(P_COUNT <= MYSQLDB_PARAMS, "the table fits into a target");

static int parse_bool(const char *text, int64_t *ret)
{
    static const char *const yes[] = {"1", "on", "true", "yes"};
    static const char *const no[] = {"0", "off", "false", "no"};

    for (size_t i = 0; i < ARR_LEN(yes); i++)
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *ret = strcasecmp(text, yes[i]) == 0;
            return 0;
        }
    return -1;
}

static int parse_value(const struct row *row, const char *text, struct mysqldb_value *value,
                       struct err *err)
{
    static const char *const protocols[] = {"socket", "tcp", NULL};

    switch (row->type) {
    case TEXT:
        if (!text[0])
            return err_set(err, ERR_USAGE, "parameter %s is empty", row->name);
        break;
    case PATH:
        if (access(text, R_OK) < 0)
            return err_set(err, ERR_USAGE, "parameter %s: cannot read %s: %s", row->name, text,
                           strerror(errno));
        break;
    case BOOL:
        if (parse_bool(text, &value->number) < 0)
            return err_set(err, ERR_USAGE, "parameter %s: %s must be 1 or 0", row->name, text);
        break;
    case SECONDS: {
        int64_t ns;
        if (units_parse_duration(text, NS_PER_S, &ns, err) < 0)
            return err_prefix(err, "parameter %s", row->name);
        if (ns == 0 || ns > TIMEOUT_MAX_S * NS_PER_S)
            return err_set(err, ERR_USAGE, "parameter %s: %s must be more than 0 and at most 1h",
                           row->name, text);
        value->number = (ns + NS_PER_S - 1) / NS_PER_S;
        break;
    }
    case CHOICE:
        value->number = strcasecmp(text, "tcp") == 0;
        if (!value->number && strcasecmp(text, "socket") != 0)
            return text_unknown("protocol", text, protocols, err);
        break;
    }
    value->text = text;
    value->told = true;
    return 0;
}

static int parse_params(struct mysqldb_target *t, struct err *err)
{
    const char *names[P_COUNT + 1] = {NULL};

    for (int i = 0; i < P_COUNT; i++)
        names[i] = rows[i].name;
    for (size_t i = 0; i < t->base.url.params.n; i++) {
        const struct kv *kv = &t->base.url.params.items[i];
        int row = 0;
        while (row < P_COUNT && strcmp(rows[row].name, kv->key) != 0)
            row++;
        if (row == P_COUNT) {
            text_unknown("parameter", kv->key, names, err);
            return err_prefix(err, "%s", t->base.url.scheme);
        }
        if (t->values[row].told)
            return err_set(err, ERR_USAGE, "parameter %s stands twice", kv->key);
        if (parse_value(&rows[row], kv->value, &t->values[row], err) < 0)
            return -1;
    }
    return 0;
}

// ---- where the server is

// Hosts "a,b" with ports "1,2" are "a:1,b:2" to the library.
static char *join_hosts(const char *hosts, const char *ports)
{
    struct str out = STR_INIT;

    for (;;) {
        size_t host_len = strcspn(hosts, ","), port_len = strcspn(ports, ",");
        str_addn(&out, hosts, host_len);
        if (port_len > 0) {
            str_addc(&out, ':');
            str_addn(&out, ports, port_len);
        }
        hosts += host_len;
        ports += port_len;
        if (!*hosts)
            return str_detach(&out);
        str_addc(&out, ',');
        hosts++;
        ports += *ports == ',';
    }
}

static int find_place(struct mysqldb_target *t, struct err *err)
{
    const struct url *url = &t->base.url;
    const char *host = url->host;

    if (host && host[0] == '/') { // a socket's path in the place of the host
        if (t->values[P_SOCKET].told)
            return err_set(err, ERR_USAGE, "the socket stands twice: %s and %s", host,
                           t->values[P_SOCKET].text);
        t->socket = host;
        host = NULL;
    } else if (t->values[P_SOCKET].told) {
        t->socket = t->values[P_SOCKET].text;
        if (host && strcmp(host, "localhost") != 0)
            return err_set(err, ERR_USAGE, "give a host (%s) or a socket (%s), not both", host,
                           t->socket);
    }
    if (t->socket && (url->port || t->values[P_PROTOCOL].number == 1))
        return err_set(err, ERR_USAGE, "a socket (%s) has no port", t->socket);
    if (url->port && !strchr(url->port, ','))
        t->port = (unsigned)strtoul(url->port, NULL, 10);
    if (t->socket)
        // The library's word for "by socket"; without it an option file's host would be taken.
        t->host = mem_strdup("localhost");
    else if (host && url->port && strchr(url->port, ','))
        t->host = join_hosts(host, url->port);
    else
        t->host = mem_strdup(host);
    // To the library localhost is the socket, whatever the port; nobody who types a port means
    // that.
    t->force_tcp = url->port && host && strcmp(host, "localhost") == 0;
    return 0;
}

static int find_database(struct mysqldb_target *t, struct err *err)
{
    const struct url *url = &t->base.url;

    if (!url->has_authority && url->path && strchr(url->path, '='))
        return err_set(err, ERR_USAGE,
                       "write a %s target as %s://USER@HOST:PORT/DATABASE?engine=..."
                       " or %s:DATABASE?socket=...",
                       url->scheme, url->scheme, url->scheme);
    t->database = url->path && url->path[0] ? url->path : NULL;
    return 0;
}

static int find_account(struct mysqldb_target *t, struct err *err)
{
    const struct url *url = &t->base.url;

    if (url->user && t->values[P_USER].told)
        return err_set(err, ERR_USAGE, "the user stands twice: %s and %s", url->user,
                       t->values[P_USER].text);
    if (url->password && t->values[P_PASSWORD].told)
        return err_set(err, ERR_USAGE, "the password stands twice");
    t->user = url->user ? url->user : t->values[P_USER].text;
    t->password = url->password ? url->password : t->values[P_PASSWORD].text;
    return 0;
}

// Whoever names certificates wants TLS. To the library all this is a mere offer to the server: the
// session looks whether it was taken.
static void find_tls(struct mysqldb_target *t)
{
    for (int i = P_SSL_CA; i <= P_SSL_VERIFY; i++)
        t->needs_tls = t->needs_tls || t->values[i].told;
    if (t->values[P_SSL].told)
        t->needs_tls = t->values[P_SSL].number != 0;
}

static int find_engine(struct mysqldb_target *t, struct err *err)
{
    t->engine_told = t->values[P_ENGINE].told;
    t->engine_name = mem_strdup(t->engine_told ? t->values[P_ENGINE].text : DEFAULT_ENGINE);
    for (char *p = t->engine_name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (mysqldb_engine_check(t->engine_name, err) < 0)
        return -1;
    const struct mysqldb_engine *known = mysqldb_engine_find(t->engine_name);
    // Of a stranger the cautious is assumed until the server has told.
    t->engine = known ? *known : (struct mysqldb_engine){.key_first = true, .load_data = true};
    t->engine.name = t->engine_name;
    t->base.caps = mysqldb_engine_caps(&t->engine);
    return 0;
}

static void library_init(void)
{
    // Also makes the process ignore SIGPIPE, which TLS sessions need.
    if (mysql_library_init(0, NULL, NULL) != 0)
        abort();
}

int mysqldb_open(struct db_target *base, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mysqldb_target *t = (struct mysqldb_target *)base;

    pthread_mutex_init(&t->cancel_lock, NULL);
    pthread_once(&once, library_init);
    if (parse_params(t, err) < 0 || find_place(t, err) < 0 || find_database(t, err) < 0 ||
        find_account(t, err) < 0 || find_engine(t, err) < 0)
        return -1;
    find_tls(t);
    return 0;
}

void mysqldb_close(struct db_target *base)
{
    struct mysqldb_target *t = (struct mysqldb_target *)base;

    if (t->canceller)
        mysql_close(t->canceller);
    pthread_mutex_destroy(&t->cancel_lock);
    free(t->host);
    free(t->engine_name);
}

// ---- connecting

static void set_defaults(const struct mysqldb_target *t, MYSQL *mysql)
{
    int64_t ns = t->base.options.connect_timeout_ns;
    unsigned timeout_s = (unsigned)((ns + NS_PER_S - 1) / NS_PER_S);

    assert(timeout_s > 0);
    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, DEFAULT_CHARSET);
    mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "prony");
}

// A list of hosts with no host in it makes the library read the files and then give up before it
// opens a socket.
static void read_option_files(const struct mysqldb_target *t, MYSQL *mysql)
{
    const struct mysqldb_value *file = &t->values[P_DEFAULTS_FILE];
    const struct mysqldb_value *group = &t->values[P_DEFAULTS_GROUP];

    if (file->told)
        mysql_options(mysql, MYSQL_READ_DEFAULT_FILE, file->text);
    mysql_options(mysql, MYSQL_READ_DEFAULT_GROUP, group->told ? group->text : DEFAULT_GROUP);
    (void)mysql_real_connect(mysql, ",", NULL, NULL, NULL, 0, NULL, CLIENT_REMEMBER_OPTIONS);
}

static void apply_value(MYSQL *mysql, const struct row *row, const struct mysqldb_value *value)
{
    my_bool flag = (my_bool)value->number;
    unsigned number = (unsigned)value->number;

    if (row->option == OWN)
        return;
    if (row->type == BOOL)
        mysql_options(mysql, row->option, &flag);
    else if (row->type == SECONDS)
        mysql_options(mysql, row->option, &number);
    else
        mysql_options(mysql, row->option, value->text);
}

static void apply_url(const struct mysqldb_target *t, MYSQL *mysql)
{
    const struct mysqldb_value *values = t->values;
    my_bool yes = 1;
    unsigned local_infile = 1; // ours reads from memory only (mysqldb_infile_install)
    unsigned tcp = MYSQL_PROTOCOL_TCP, socket = MYSQL_PROTOCOL_SOCKET;

    if (t->needs_tls)
        mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &yes);
    for (int i = 0; i < P_COUNT; i++)
        if (values[i].told)
            apply_value(mysql, &rows[i], &values[i]);
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &local_infile);
    if (t->force_tcp || (values[P_PROTOCOL].told && values[P_PROTOCOL].number))
        mysql_options(mysql, MYSQL_OPT_PROTOCOL, &tcp);
    else if (t->socket || values[P_PROTOCOL].told)
        mysql_options(mysql, MYSQL_OPT_PROTOCOL, &socket);
    if (values[P_COMPRESS].told && values[P_COMPRESS].number) {
        mysql_options(mysql, MYSQL_OPT_COMPRESS, NULL);
    } else if (values[P_COMPRESS].told) { // there is no option for taking it back
        mysql->options.compress = 0;
        mysql->options.client_flag &= ~(unsigned long)CLIENT_COMPRESS;
    }
}

MYSQL *mysqldb_dial(const struct mysqldb_target *t, unsigned timeout_s)
{
    MYSQL *mysql = mysql_init(NULL);
    my_bool reconnect = 0;

    if (!mysql)
        abort(); // no memory
    set_defaults(t, mysql);
    read_option_files(t, mysql);
    apply_url(t, mysql);
    if (timeout_s > 0) {
        mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
        mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &timeout_s);
        mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout_s);
    }
    // Never behind our back: a new session knows nothing of the transaction.
    mysql_options(mysql, MYSQL_OPT_RECONNECT, &reconnect);
    mysqldb_infile_install(mysql, NULL);
    (void)mysql_real_connect(mysql, t->host, t->user, t->password, t->database, t->port, t->socket,
                             CLIENT_MULTI_RESULTS | CLIENT_REMEMBER_OPTIONS);
    return mysql;
}
