// The wire codec for MySQL and MariaDB: taking a session over from libmariadb, giving it back, and
// requests. Answers are read in mysql_wire_feed.c.
#include "db/mysql_wire.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/text.h"

// Not in every version of the library's headers.
#define NO_EOF_FLAG (1ul << 24) // CLIENT_DEPRECATE_EOF

// What may be negotiated without changing a byte of what is said, or is spoken here. The rest,
// known or not, is refused.
#define CAPS_SPOKEN                                                                                \
    ((unsigned long)(CLIENT_MYSQL | CLIENT_FOUND_ROWS | CLIENT_LONG_FLAG |                         \
                     CLIENT_CONNECT_WITH_DB | CLIENT_NO_SCHEMA | CLIENT_ODBC |                     \
                     CLIENT_LOCAL_FILES | CLIENT_IGNORE_SPACE | CLIENT_PROTOCOL_41 |               \
                     CLIENT_INTERACTIVE | CLIENT_IGNORE_SIGPIPE | CLIENT_TRANSACTIONS |            \
                     CLIENT_RESERVED | CLIENT_SECURE_CONNECTION | CLIENT_MULTI_STATEMENTS |        \
                     CLIENT_MULTI_RESULTS | CLIENT_PS_MULTI_RESULTS | CLIENT_PLUGIN_AUTH |         \
                     CLIENT_CONNECT_ATTRS | CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA |                \
                     CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS | CLIENT_SESSION_TRACKING | NO_EOF_FLAG | \
                     CLIENT_SSL_VERIFY_SERVER_CERT | CLIENT_REMEMBER_OPTIONS))

// MariaDB's further word, as the server sends it. What it says of bulk execution does not matter:
// that is not used.
#define MORE(flag)      ((unsigned long)((flag) >> 32))
#define MORE_BULK_FLAG  (1ul << 5) // MARIADB_CLIENT_BULK_UNIT_RESULTS
#define MORE_CAPS_ASKED MORE(MARIADB_CLIENT_SUPPORTED_FLAGS)
#define MORE_CAPS_SPOKEN                                                      \
    (MORE(MARIADB_CLIENT_PROGRESS | MARIADB_CLIENT_STMT_BULK_OPERATIONS |     \
          MARIADB_CLIENT_EXTENDED_METADATA | MARIADB_CLIENT_CACHE_METADATA) | \
     MORE_BULK_FLAG)

// ---- taking over

// The words in force. The library tells what it asked for; what the server lacks falls away.
static void read_caps(MYSQL *mysql, unsigned long *caps, unsigned long *more_caps)
{
    unsigned long asked = 0, server = 0, more = 0;

    mariadb_get_infov(mysql, MARIADB_CONNECTION_CLIENT_CAPABILITIES, &asked);
    mariadb_get_infov(mysql, MARIADB_CONNECTION_SERVER_CAPABILITIES, &server);
    *caps = asked & server;
    *more_caps = 0;
    if (server & CLIENT_MYSQL) // a MySQL: it has no further word
        return;
    mariadb_get_infov(mysql, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &more);
    *more_caps = more & MORE_CAPS_ASKED;
    // A library newer than the headers may have asked for more than those know.
    if (mysql_get_client_version() / 100 > MARIADB_VERSION_ID / 100)
        *more_caps = more;
}

static const char *obstacle(MYSQL *mysql, unsigned long caps, unsigned long more_caps)
{
    if (mysql->status != MYSQL_STATUS_READY)
        return "an answer has not been read to its end";
    if (mysql_get_ssl_cipher(mysql) || (caps & CLIENT_SSL))
        return "the connection uses TLS, which libmariadb does not hand over";
    if (mysql->net.compress || (caps & (CLIENT_COMPRESS | CLIENT_ZSTD_COMPRESSION)))
        return "the connection is compressed";
    if (!(caps & CLIENT_PROTOCOL_41))
        return "the server speaks the protocol from before version 4.1";
    if (mysql->options.read_timeout || mysql->options.write_timeout)
        return "read_timeout and write_timeout are kept by the client library";
    if ((caps & ~CAPS_SPOKEN) || (more_caps & ~MORE_CAPS_SPOKEN))
        return "a capability was negotiated that is not spoken here";
    return NULL;
}

void mysqldb_wire_begin(struct mysqldb_wire *w, unsigned long caps, unsigned long more_caps)
{
    const struct db_open_options *options = &w->base.session->target->options;

    w->protocol = options->protocol;
    w->no_eof = caps & NO_EOF_FLAG;
    w->tracks_session = caps & CLIENT_SESSION_TRACKING;
    w->cached_columns = more_caps & MORE(MARIADB_CLIENT_CACHE_METADATA);
    w->extended_columns = more_caps & MORE(MARIADB_CLIENT_EXTENDED_METADATA);
    w->socket_flags = -1;
    w->status = SERVER_STATUS_AUTOCOMMIT;
    w->n_handles = options->n_statements;
    w->handles = mem_calloc((size_t)w->n_handles, sizeof(*w->handles));
    str_init(&w->packet);
    str_init(&w->held);
}

static int adopt(struct db_wire *base, char *why, size_t size)
{
    struct mysqldb_wire *w = mysqldb_wire(base);
    MYSQL *mysql = mysqldb_session(base->session)->mysql;
    unsigned long caps, more_caps;

    read_caps(mysql, &caps, &more_caps);
    const char *reason = obstacle(mysql, caps, more_caps);
    if (reason) {
        snprintf(why, size, "%s", reason);
        return -1;
    }
    int fd = (int)mysql_get_socket(mysql);
    int flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        snprintf(why, size, "the connection has no socket");
        return -1;
    }
    mysqldb_wire_begin(w, caps, more_caps);
    base->fd = fd;
    w->socket_flags = flags;
    w->status = (uint16_t)mysql->server_status;
    return 0;
}

// An end in the middle of a request: the library would say its farewell into the half of a command.
static void release(struct db_wire *base)
{
    struct mysqldb_wire *w = mysqldb_wire(base);
    struct mysqldb_session *s = mysqldb_session(base->session);

    base->broken = base->broken || w->phase != WIRE_IDLE;
    if (w->socket_flags >= 0) {
        (void)fcntl(base->fd, F_SETFL, w->socket_flags);
        if (base->broken)
            (void)shutdown(base->fd, SHUT_RDWR);
        s->mysql->server_status = w->status & ~(unsigned)SERVER_MORE_RESULTS_EXIST;
    }
    atomic_store_explicit(&s->busy, false, memory_order_release);
    for (int i = 0; i < w->n_handles; i++) {
        free(w->handles[i].types);
        mysqldb_wire_meta_free(w->handles[i].meta);
    }
    free(w->handles);
    mysqldb_wire_meta_free(w->meta);
    str_release(&w->packet);
    str_release(&w->held);
}

// ---- requests

static enum db_class refuse(struct mysqldb_wire *w, struct db_result *result)
{
    *result = (struct db_result){.in_transaction = mysqldb_wire_in_transaction(w)};
    return db_fail(result, DB_OTHER, "2020", "the statement is longer than %zu bytes",
                   WIRE_REQUEST_MAX);
}

static bool is_too_long(const struct db_statement *statement, const struct db_value *params)
{
    size_t size = 0;

    for (int k = 0; k < statement->n_params; k++)
        size += params[k].type == DB_TEXT ? params[k].text_len : 0;
    return size > WIRE_REQUEST_MAX;
}

static void open_request(struct mysqldb_wire *w, enum db_kind kind, const char *sql, bool want_row,
                         struct str *out)
{
    struct mysqldb_session *s = mysqldb_session(w->base.session);

    assert(w->phase == WIRE_IDLE);
    s->row.n = 0;
    mysqldb_wire_trim(&s->row.bytes);
    w->fault = WIRE_FAULT_NONE;
    w->locks = kind >= DB_KIND_BEGIN ? mysqldb_locks(kind, sql) : MYSQLDB_LOCKS_KEPT;
    w->want_row = want_row;
    w->wants_now = false;
    w->binary = false;
    w->has_set = false;
    w->rows = 0;
    w->affected = 0;
    w->statement = NULL;
    w->handle = NULL;
    w->phase = WIRE_ANSWER;
    atomic_store_explicit(&s->busy, true, memory_order_release);
    if (w->close_due)
        mysqldb_wire_send_close(w->close_id, out);
    w->close_due = false;
}

// Definitions that were sent before may be left out from now on, and were not kept.
static bool lacks_columns(const struct mysqldb_wire *w, const struct mysqldb_wire_handle *handle)
{
    return w->cached_columns && w->want_row && !handle->meta;
}

static void prepare(struct mysqldb_wire *w, struct mysqldb_wire_handle *handle,
                    const struct db_statement *statement, const struct db_value *params,
                    struct str *out)
{
    size_t n = (size_t)statement->n_params;

    if (!handle->types && n > 0) {
        handle->types = mem_calloc(n, 1);
        memset(handle->types, MYSQL_TYPE_STRING, n);
    }
    mysqldb_wire_hold(w, params, statement->n_params);
    mysqldb_wire_send_prepare(w, statement, out);
    w->phase = WIRE_PREPARE;
}

static enum db_class encode(struct db_wire *base, const struct db_statement *statement,
                            const struct db_value *params, bool want_row, struct str *out,
                            struct db_result *result)
{
    struct mysqldb_wire *w = mysqldb_wire(base);
    struct mysqldb_wire_handle *handle = NULL;

    assert(!base->broken && statement->index >= 0 && statement->index < w->n_handles);
    if (is_too_long(statement, params))
        return refuse(w, result);
    open_request(w, statement->kind, statement->sql, want_row, out);
    w->statement = statement;
    if (w->protocol != DB_SIMPLE && !w->handles[statement->index].as_text)
        handle = &w->handles[statement->index];
    w->handle = handle;
    if (!handle) {
        mysqldb_wire_send_expanded(w, statement, params, out);
        return DB_OK;
    }
    if (handle->prepared && lacks_columns(w, handle)) {
        mysqldb_wire_send_close(handle->id, out);
        handle->prepared = false;
    }
    if (handle->prepared) {
        w->binary = true;
        mysqldb_wire_send_execute(w, handle, params, statement->n_params, out);
    } else {
        prepare(w, handle, statement, params, out);
    }
    return DB_OK;
}

static enum db_class encode_query(struct db_wire *base, const char *sql, bool want_row,
                                  struct str *out, struct db_result *result)
{
    struct mysqldb_wire *w = mysqldb_wire(base);
    size_t len = strlen(sql);

    assert(!base->broken);
    if (len > WIRE_REQUEST_MAX)
        return refuse(w, result);
    open_request(w, db_statement_kind(sql), sql, want_row, out);
    mysqldb_wire_send_text(w, sql, len, out);
    return DB_OK;
}

// ---- the kept row

static const char *row_name(struct db_wire *base, int i)
{
    const struct mysqldb_row *row = &mysqldb_session(base->session)->row;

    assert(i >= 0 && i < row->n);
    return row->bytes.buf + row->fields[i].name;
}

static struct db_value row_value(struct db_wire *base, int i)
{
    const struct mysqldb_row *row = &mysqldb_session(base->session)->row;

    assert(i >= 0 && i < row->n);
    return row->fields[i].value;
}

static_assert(offsetof(struct mysqldb_wire, held) < DB_WIRE_NEAR, "fetched ahead");

static void prefetch(const struct db_wire *wire)
{
    const struct mysqldb_wire *w = (const struct mysqldb_wire *)wire;

    mem_prefetch(w->handles, 64);
}

const struct db_wire_codec mysqldb_wire_codec = {
    .name = "mysql",
    .state_size = sizeof(struct mysqldb_wire),
    .adopt = adopt,
    .release = release,
    .encode = encode,
    .encode_query = encode_query,
    .feed = mysqldb_wire_feed,
    .row_name = row_name,
    .row_value = row_value,
    .prefetch = prefetch,
    .depth_max = 1,
};
