// From a target's URL to libpq's parameters. All three ways of writing one end in the same list of
// keywords and values, which libpq completes by itself from the service file, the environment, the
// password file and its defaults.
//
// Checked here, without a connection: names against libpq's list, numbers, ports, and by a dry
// start of libpq whatever else it checks before it would open a socket (choices like sslmode, the
// service's existence).
#include "db/postgres.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

// A port that libpq refuses before it looks up a host, and quotes: how the dry start ends.
#define DRY_PORT "-70707"

// Unless the user sets one of these, a peer that vanished without a word is noticed in about 25 s
// (Linux alone: two hours).
static const char *const keepalive_words[] = {
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
};
#define KEEPALIVE_IDLE     "10" // seconds
#define KEEPALIVE_INTERVAL "5"
#define KEEPALIVE_COUNT    "3"
#define SEND_TIMEOUT       "25000" // ms

static const char *const number_words[] = {
    "connect_timeout",     "keepalives",       "keepalives_idle",
    "keepalives_interval", "keepalives_count", "tcp_user_timeout",
};

static struct postgres_target *postgres_target(struct db_target *base)
{
    return (struct postgres_target *)base;
}

// ---- names

static int check_name(const PQconninfoOption *known, const char *name, struct err *err)
{
    const char *words[128];
    int n = 0;

    for (const PQconninfoOption *o = known; o->keyword; o++) {
        if (strcmp(o->keyword, name) == 0)
            return 0;
        if (o->dispchar[0] != 'D' && n < 127) // not those for debugging
            words[n++] = o->keyword;
    }
    words[n] = NULL;
    const char *near = text_near_miss(name, words);
    struct str shown = STR_INIT;
    text_add_value(&shown, name);
    err_set(err, ERR_USAGE, "unknown parameter %s of a postgres target%s%s", shown.buf,
            near ? ", did you mean " : ": libpq knows no such connection parameter",
            near ? near : "");
    str_release(&shown);
    return -1;
}

static int add_param(struct postgres_target *t, const PQconninfoOption *known, const char *name,
                     const char *value, struct err *err)
{
    // JDBC's spelling, which libpq takes in URLs.
    if (strcmp(name, "ssl") == 0 && strcmp(value, "true") == 0) {
        kvs_set(&t->params, "sslmode", "require");
        return 0;
    }
    if (check_name(known, name, err) < 0)
        return -1;
    kvs_set(&t->params, name, value);
    return 0;
}

// The end of a value in a connection string: blanks end it unless quoted; a backslash takes the
// next character as it is.
static const char *skip_value(const char *p)
{
    bool quoted = *p == '\'';

    for (p += quoted; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (quoted ? *p == '\'' : isspace((unsigned char)*p))
            return p + quoted;
    }
    return p;
}

// Names first, for the near miss; then libpq reads the whole, because the quoting is its own.
static int add_conninfo(struct postgres_target *t, const PQconninfoOption *known, const char *text,
                        struct err *err)
{
    for (const char *p = text; *p;) {
        const char *name = p + strspn(p, " \t\r\n");
        size_t len = strcspn(name, "= \t\r\n");
        p = name + len;
        p += strspn(p, " \t\r\n");
        if (len == 0 || *p != '=')
            break; // libpq words it
        char *word = mem_strndup(name, len);
        int r = check_name(known, word, err);
        free(word);
        if (r < 0)
            return r;
        p = skip_value(p + 1 + strspn(p + 1, " \t\r\n"));
    }

    char *message = NULL;
    PQconninfoOption *parsed = PQconninfoParse(text, &message);
    if (!parsed) {
        struct str shown = STR_INIT;
        text_add_redacted(&shown, message ? message : "out of memory");
        while (shown.len > 0 && shown.buf[shown.len - 1] == '\n')
            shown.buf[--shown.len] = '\0';
        err_set(err, ERR_USAGE, "bad postgres target: %s", shown.buf);
        str_release(&shown);
        PQfreemem(message);
        return -1;
    }
    for (const PQconninfoOption *o = parsed; o->keyword; o++)
        if (o->val)
            kvs_set(&t->params, o->keyword, o->val);
    PQconninfoFree(parsed);
    return 0;
}

// ---- values

static int n_items(const char *list)
{
    int n = 1;

    for (const char *p = list; (p = strchr(p, ',')) != NULL; p++)
        n++;
    return n;
}

static int check_ports(const struct kvs *params, struct err *err)
{
    const char *ports = kvs_get(params, "port");
    const char *hosts = kvs_get(params, "hostaddr");

    if (!ports)
        return 0;
    if (!hosts)
        hosts = kvs_get(params, "host");
    int n = n_items(ports);
    if (n > 1 && n != n_items(hosts ? hosts : ""))
        return err_set(err, ERR_USAGE, "%d ports for %d hosts: give one port, or one for each host",
                       n, n_items(hosts ? hosts : ""));
    for (const char *p = ports;; p++) {
        size_t len = strcspn(p, ",");
        char *item = mem_strndup(p, len);
        int64_t port = 5432;
        int r = len == 0 ? 0 : units_parse_int(item, &port, NULL);
        if (r < 0 || port < 1 || port > 65535)
            err_set(err, ERR_USAGE, "bad port %s: must be a number from 1 to 65535", item);
        free(item);
        if (r < 0 || port < 1 || port > 65535)
            return -1;
        p += len;
        if (!*p)
            return 0;
    }
}

static int check_numbers(const struct kvs *params, struct err *err)
{
    for (size_t i = 0; i < sizeof(number_words) / sizeof(number_words[0]); i++) {
        const char *text = kvs_get(params, number_words[i]);
        int64_t value;
        if (!text || !*text)
            continue;
        if (units_parse_int(text, &value, NULL) < 0 || value < INT32_MIN || value > INT32_MAX)
            return err_set(err, ERR_USAGE, "bad value %s of %s: must be a whole number", text,
                           number_words[i]);
    }
    return check_ports(params, err);
}

static const char *option_value(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

static void make_arrays(struct postgres_target *t)
{
    t->keywords = mem_resize(t->keywords, t->params.n + 1, sizeof(*t->keywords));
    t->values = mem_resize(t->values, t->params.n + 1, sizeof(*t->values));
    for (size_t i = 0; i < t->params.n; i++) {
        t->keywords[i] = t->params.items[i].key;
        t->values[i] = t->params.items[i].value;
    }
    t->keywords[t->params.n] = NULL;
    t->values[t->params.n] = NULL;
}

// The parameters as libpq completes them, with the host it would go to, or NULL with err. The
// caller frees the connection, which owns host.
static PGconn *dry_start(struct postgres_target *t, PQconninfoOption **ret, struct err *err)
{
    const char **keywords = mem_calloc(t->params.n + 2, sizeof(*keywords));
    const char **values = mem_calloc(t->params.n + 2, sizeof(*values));
    size_t n = 0;

    for (size_t i = 0; i < t->params.n; i++)
        if (strcmp(t->params.items[i].key, "port") != 0) {
            keywords[n] = t->params.items[i].key;
            values[n++] = t->params.items[i].value;
        }
    keywords[n] = "port";
    values[n] = DRY_PORT;
    PGconn *conn = PQconnectStartParams(keywords, values, 0);
    free(keywords);
    free(values);
    if (conn && strstr(PQerrorMessage(conn), DRY_PORT)) {
        *ret = PQconninfo(conn);
        return conn;
    }
    struct str text = STR_INIT;
    postgres_add_connect_text(&text, conn ? PQerrorMessage(conn) : "out of memory");
    err_set(err, ERR_USAGE, "bad postgres target: %s", text.buf);
    str_release(&text);
    PQfinish(conn);
    return NULL;
}

// ---- what is shown

// A value in a connection string, quoted where libpq needs it.
static void add_conninfo_value(struct str *out, const char *name, const char *value)
{
    bool plain = *value && strcspn(value, " \t\r\n'\\") == strlen(value);

    str_addf(out, "%s%s=", out->buf[out->len - 1] == ':' ? "" : " ", name);
    if (plain) {
        str_add(out, value);
        return;
    }
    str_addc(out, '\'');
    for (const char *p = value; *p; p++) {
        if (*p == '\'' || *p == '\\')
            str_addc(out, '\\');
        str_addc(out, *p);
    }
    str_addc(out, '\'');
}

// Shown in its place, or never. hostaddr stands for the host where there is none.
static bool is_shown_apart(const struct kvs *params, const char *name)
{
    static const char *const words[] = {"host", "port", "dbname", "user"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    if (strcmp(name, "hostaddr") == 0 && !kvs_get(params, "host"))
        return true;
    return text_is_secret_key(name, strlen(name));
}

// Canonical, so that equal targets look equal: a socket's as a connection string, a host's as a
// URL; host, port, database and user complete, whoever set them. A named service stands for them.
static char *make_display(const struct postgres_target *t, const PQconninfoOption *resolved,
                          const char *host)
{
    const struct kvs *params = &t->params;
    const char *service = kvs_get(params, "service");
    PQconninfoOption *defaults = PQconndefaults();
    const char *given_port = kvs_get(params, "port");
    const char *port = given_port ? given_port : option_value(defaults, "port");
    const char *parts[] = {"host",   host,
                           "port",   port,
                           "dbname", option_value(resolved, "dbname"),
                           "user",   option_value(resolved, "user")};
    struct str out = STR_INIT;

    if (service)
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i += 2)
            parts[i + 1] = kvs_get(params, parts[i]);
    host = parts[1];
    if (service || !host || host[0] == '/' || host[0] == '@') {
        str_add(&out, "postgres:");
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i += 2)
            if (parts[i + 1])
                add_conninfo_value(&out, parts[i], parts[i + 1]);
        for (size_t i = 0; i < params->n; i++)
            if (!is_shown_apart(params, params->items[i].key))
                add_conninfo_value(&out, params->items[i].key, params->items[i].value);
    }
    if (out.len == 0 || strchr(out.buf, '?')) { // a '?' would begin a URL's query
        struct url url = {.scheme = "postgres", .has_authority = true};
        url.host = (char *)parts[1]; // borrowed: url is only printed
        url.port = (char *)parts[3];
        url.path = (char *)parts[5];
        url.user = (char *)parts[7];
        for (size_t i = 0; i < params->n; i++)
            if (!is_shown_apart(params, params->items[i].key))
                kvs_add(&url.params, params->items[i].key, params->items[i].value);
        str_clear(&out);
        url_print(&url, false, &out);
        kvs_release(&url.params);
    }
    PQconninfoFree(defaults);
    return str_detach(&out);
}

// ---- open and close

static void add_timeouts(struct postgres_target *t, const PQconninfoOption *resolved)
{
    const char *given = option_value(resolved, "connect_timeout");
    const char *hosts = option_value(resolved, "host");
    const char *addresses = option_value(resolved, "hostaddr");
    char text[DB_VALUE_TEXT_MAX];
    int64_t seconds;

    t->connect_timeout_ns = t->base.options.connect_timeout_ns;
    if (given && units_parse_int(given, &seconds, NULL) == 0) {
        t->connect_timeout_ns = seconds > 0 ? seconds * NS_PER_S : 0; // as libpq: 0 waits for ever
    } else {
        db_format_int((t->connect_timeout_ns + NS_PER_S - 1) / NS_PER_S, text);
        kvs_set(&t->params, "connect_timeout", text);
    }
    t->several_hosts = (hosts && strchr(hosts, ',')) || (addresses && strchr(addresses, ','));
    for (size_t i = 0; i < sizeof(keepalive_words) / sizeof(keepalive_words[0]); i++)
        if (option_value(resolved, keepalive_words[i]))
            return;
    kvs_set(&t->params, "keepalives_idle", KEEPALIVE_IDLE);
    kvs_set(&t->params, "keepalives_interval", KEEPALIVE_INTERVAL);
    kvs_set(&t->params, "keepalives_count", KEEPALIVE_COUNT);
    kvs_set(&t->params, "tcp_user_timeout", SEND_TIMEOUT);
}

static int collect(struct postgres_target *t, const PQconninfoOption *known, struct err *err)
{
    const struct url *url = &t->base.url;

    if (url->has_authority) {
        const char *parts[] = {"user",    url->user, "password", url->password, "host",
                               url->host, "port",    url->port,  "dbname",      url->path};
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i += 2)
            if (parts[i + 1] && *parts[i + 1])
                kvs_set(&t->params, parts[i], parts[i + 1]);
    } else if (url->path && strchr(url->path, '=')) {
        if (add_conninfo(t, known, url->path, err) < 0)
            return -1;
    } else if (url->path && *url->path) {
        kvs_set(&t->params, "dbname", url->path);
    }
    for (size_t i = 0; i < url->params.n; i++)
        if (add_param(t, known, url->params.items[i].key, url->params.items[i].value, err) < 0)
            return -1;
    return check_numbers(&t->params, err);
}

int postgres_open(struct db_target *base, struct err *err)
{
    struct postgres_target *t = postgres_target(base);
    // Gives NULL when the service named in the environment is missing: then the dry start says so.
    PQconninfoOption *known = PQconninfoParse("", NULL);
    PQconninfoOption *resolved = NULL;
    PGconn *dry = NULL;
    int r = -1;

    if (!known)
        return err_set(err, ERR_FAILED, "libpq is out of memory");
    if (collect(t, known, err) < 0)
        goto out;
    dry = dry_start(t, &resolved, err);
    if (!dry)
        goto out;
    const char *host = option_value(resolved, "host");
    if (!host)
        host = option_value(resolved, "hostaddr");
    if (!host)
        host = PQhost(dry); // the directory built into libpq
    char *display = make_display(t, resolved, host);
    free(base->display);
    base->display = display;
    if (!kvs_get(&t->params, "fallback_application_name"))
        kvs_set(&t->params, "fallback_application_name", "prony");
    add_timeouts(t, resolved);
    make_arrays(t);
    r = 0;
out:
    PQfinish(dry);
    PQconninfoFree(resolved);
    PQconninfoFree(known);
    return r;
}

void postgres_close(struct db_target *base)
{
    struct postgres_target *t = postgres_target(base);

    kvs_release(&t->params);
    free(t->keywords);
    free(t->values);
}
