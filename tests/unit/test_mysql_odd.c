// The MySQL driver against servers that MySQL and MariaDB are not: one that refuses every question,
// one that cannot prepare, one that asks for a file, one that falls silent, one that only listens.
// They are threads of this test on a UNIX socket and speak as much of the protocol as the case
// needs.
#include "db/db.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"

enum manner {
    REFUSES,               // an error for every statement
    TEXT_ONLY,             // cannot prepare; every text is fine
    ASKS_FILE,             // answers every text by asking for /etc/passwd
    NO_SESSION_AUTOCOMMIT, // begins with autocommit off; every text is fine
    SILENT,                // takes statements, never answers
    HANGS_UP,              // closes the connection at the first statement
    LISTENS,               // takes connections, says nothing at all
};

struct server {
    enum manner manner;
    char dir[64];
    char path[108];
    int listener;
    pthread_t thread;
    atomic_int texts;      // statements that came as text
    atomic_int file_bytes; // what the client sent of the file
    char last_text[256];   // read after the client is gone
};

#define COM_QUIT         0x01
#define COM_QUERY        0x03
#define COM_STMT_PREPARE 0x16

// ---- the server

static bool read_exactly(int fd, char *buf, size_t n)
{
    while (n > 0) {
        ssize_t got = read(fd, buf, n);
        if (got <= 0)
            return false;
        buf += got;
        n -= (size_t)got;
    }
    return true;
}

// A packet: three bytes of length, a number, the body. Returns the length, -1 at the end.
static int read_packet(int fd, char *buf, size_t size)
{
    unsigned char head[4];

    if (!read_exactly(fd, (char *)head, 4))
        return -1;
    size_t len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    if (len >= size || !read_exactly(fd, buf, len))
        return -1;
    buf[len] = '\0';
    return (int)len;
}

static void send_packet(int fd, unsigned number, const void *body, size_t len)
{
    unsigned char bytes[256] = {(unsigned char)len, 0, 0, (unsigned char)number};

    assert_true(len < sizeof(bytes) - 4);
    memcpy(bytes + 4, body, len);
    (void)!send(fd, bytes, len + 4, MSG_NOSIGNAL);
}

static void send_ok(int fd, unsigned number)
{
    send_packet(fd, number, "\0\0\0\x02\0\0\0", 7); // status: autocommit
}

static void send_error(int fd, unsigned code, const char *text)
{
    char body[200];
    int len = snprintf(body, sizeof(body), "\xff%c%c#HY000%s", 'x', 'x', text);

    body[1] = (char)(code & 0xff);
    body[2] = (char)(code >> 8);
    send_packet(fd, 1, body, (size_t)len);
}

static bool greet(const struct server *server, int fd)
{
    // Version, thread, first part of the scramble, capabilities (protocol 4.1, transactions, secure
    // connection, database, LOCAL files, authentication plugin), character set, status, the rest.
    char hello[] = "\x0a"
                   "9.9.9-odd\0"
                   "\x07\0\0\0"
                   "12345678\0"
                   "\x89\xa2\x2d\x02\0\x08\0\x15"
                   "\0\0\0\0\0\0\0\0\0\0"
                   "123456789012\0"
                   "mysql_native_password";
    char body[1024];

    if (server->manner == NO_SESSION_AUTOCOMMIT)
        hello[27] = 0;
    send_packet(fd, 0, hello, sizeof(hello));
    if (read_packet(fd, body, sizeof(body)) < 0)
        return false;
    send_packet(fd, 2,
                server->manner == NO_SESSION_AUTOCOMMIT ? "\0\0\0\0\0\0\0" : "\0\0\0\x02\0\0\0", 7);
    return true;
}

static void answer_text(struct server *server, int fd, const char *text)
{
    static const char ask[] = "\xfb/etc/passwd";
    char body[8192];
    int len;

    snprintf(server->last_text, sizeof(server->last_text), "%s", text);
    server->texts++;
    if (server->manner == REFUSES) {
        send_error(fd, 1235, "this is not the day");
    } else if (server->manner == ASKS_FILE) {
        send_packet(fd, 1, ask, sizeof(ask) - 1);
        while ((len = read_packet(fd, body, sizeof(body))) > 0)
            server->file_bytes += len;
        send_ok(fd, 3);
    } else {
        send_ok(fd, 1);
    }
}

static void serve(struct server *server, int fd)
{
    char body[8192];
    int len;

    if (server->manner == LISTENS) {
        while (read(fd, body, sizeof(body)) > 0)
            ; // until the client goes
        return;
    }
    if (!greet(server, fd))
        return;
    while ((len = read_packet(fd, body, sizeof(body))) > 0) {
        if (body[0] == COM_QUIT || server->manner == HANGS_UP)
            return;
        if (server->manner == SILENT)
            continue;
        if (body[0] == COM_STMT_PREPARE)
            send_error(fd, 1295, "not in the prepared statement protocol yet");
        else if (body[0] == COM_QUERY)
            answer_text(server, fd, body + 1);
    }
}

struct visit {
    struct server *server;
    int fd;
};

static void *visit_run(void *arg)
{
    struct visit *visit = arg;

    serve(visit->server, visit->fd);
    close(visit->fd);
    free(visit);
    return NULL;
}

static void *server_run(void *arg)
{
    struct server *server = arg;
    pthread_t threads[16];
    int n = 0;
    int fd;

    while (n < 16 && (fd = accept(server->listener, NULL, NULL)) >= 0) {
        struct visit *visit = mem_calloc(1, sizeof(*visit));
        *visit = (struct visit){server, fd};
        pthread_create(&threads[n++], NULL, visit_run, visit);
    }
    while (n > 0)
        pthread_join(threads[--n], NULL);
    return NULL;
}

static void server_start(struct server *server, enum manner manner)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(server, 0, sizeof(*server));
    server->manner = manner;
    snprintf(server->dir, sizeof(server->dir), "/tmp/test_mysql_odd_XXXXXX");
    assert_non_null(mkdtemp(server->dir));
    snprintf(server->path, sizeof(server->path), "%s/socket", server->dir);
    memcpy(address.sun_path, server->path, sizeof(server->path));
    server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    pthread_create(&server->thread, NULL, server_run, server);
}

static void server_stop(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    close(server->listener);
    pthread_join(server->thread, NULL);
    unlink(server->path);
    rmdir(server->dir);
}

// ---- the client

static struct db_target *open_target(const struct server *server, const char *more,
                                     enum db_protocol protocol)
{
    char *url = mem_printf("mysql://u@localhost/d?socket=%s%s", server->path, more);
    const struct db_open_options options = {
        .protocol = protocol, .n_statements = 1, .connect_timeout_ns = 300 * NS_PER_MS};
    struct db_target *target = NULL;
    struct err err = ERR_INIT;

    if (db_open(&target, url, &options, &err) < 0)
        fail_msg("%s", err.text);
    free(url);
    return target;
}

static struct db_session *connect_to(struct db_target *target)
{
    struct db_session *session = NULL;
    struct db_result result;

    if (db_connect(target, 0, &session, &result) != DB_OK)
        fail_msg("%s", result.message);
    return session;
}

static int64_t now_ns(void)
{
    return clock_now_ns(&clock_system);
}

static void a_server_that_refuses_every_question_is_described(void **state)
{
    static const char *const fields[] = {
        "settings",  "max_connections", "connections_used", "data_bytes",
        "data_path", "replica_of",      "changed_settings", NULL};
    struct server server;
    struct db_facts facts;
    struct kvs counters = KVS_INIT;
    struct db_result result;

    (void)state;
    server_start(&server, REFUSES);
    struct db_target *target = open_target(&server, "&engine=innodb", DB_PREPARED);
    struct db_session *session = connect_to(target); // though it does not say which engines it has
    db_describe(session, &facts);
    assert_string_equal(facts.engine, "mysql");
    assert_string_equal(facts.version, "9.9.9-odd");
    assert_int_equal(facts.max_connections, 0);
    assert_int_equal(facts.data_bytes, -1);
    assert_int_equal(facts.cache_bytes, -1);
    assert_string_equal(facts.data_path, "");
    assert_true(facts.is_local);
    assert_false(facts.read_only);
    for (size_t i = 0; fields[i]; i++) {
        const char *value = kvs_get(&facts.settings, fields[i]);
        if (!value || strcmp(value, "unknown: this is not the day") != 0)
            fail_msg("%s is %s", fields[i], value ? value : "left out");
    }
    db_sample(session, &counters);
    assert_int_equal(counters.n, 0);
    assert_false(db_session_lost(session));
    assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_SYNTAX);
    assert_string_equal(result.native, "1235");
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
    server_stop(&server);
}

static void what_cannot_be_prepared_is_sent_as_text(void **state)
{
    const char *pieces[] = {"UPDATE t SET a = ", " WHERE b = ", ""};
    const struct db_statement statement = {.kind = DB_KIND_WRITE,
                                           .sql = "UPDATE t SET a = ? WHERE b = ?",
                                           .n_params = 2,
                                           .pieces = pieces};
    const struct db_value params[] = {{.type = DB_INT, .i = 7}, {.type = DB_NULL}};
    struct server server;
    struct db_result result;

    (void)state;
    for (enum db_protocol protocol = DB_EXTENDED; protocol <= DB_PREPARED; protocol++) {
        server_start(&server, TEXT_ONLY);
        struct db_target *target = open_target(&server, "", protocol);
        struct db_session *session = connect_to(target);
        for (int i = 0; i < 3; i++)
            assert_int_equal(db_execute(session, &statement, params, false, &result), DB_OK);
        db_disconnect(session);
        db_close(target);
        server_stop(&server);
        assert_int_equal(server.texts, 3);
        assert_string_equal(server.last_text, "UPDATE t SET a = 7 WHERE b = NULL");
    }
}

// LOAD DATA LOCAL lets a server ask for any file in answer to any statement.
static void a_server_that_asks_for_a_file_gets_nothing(void **state)
{
    struct server server;
    struct db_result result;

    (void)state;
    server_start(&server, ASKS_FILE);
    struct db_target *target = open_target(&server, "", DB_PREPARED);
    struct db_session *session = connect_to(target);
    assert_int_not_equal(db_query(session, "SELECT 1", false, &result), DB_OK);
    assert_non_null(strstr(result.message, "gets none"));
    db_disconnect(session);
    db_close(target);
    server_stop(&server);
    assert_int_equal(server.texts, 1);
    assert_int_equal(server.file_bytes, 0);
}

static void autocommit_is_switched_on_where_it_is_off(void **state)
{
    struct server server;

    (void)state;
    server_start(&server, NO_SESSION_AUTOCOMMIT);
    struct db_target *target = open_target(&server, "", DB_PREPARED);
    db_disconnect(connect_to(target));
    db_close(target);
    server_stop(&server);
    assert_string_equal(server.last_text, "SET autocommit=1");
}

static void a_server_without_tls_is_refused_where_tls_is_asked_for(void **state)
{
    struct server server;
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    server_start(&server, TEXT_ONLY);
    struct db_target *target = open_target(&server, "&ssl=1", DB_PREPARED);
    assert_int_equal(db_connect(target, 0, &session, &result), DB_DENIED);
    assert_non_null(strstr(result.message, "TLS"));
    db_close(target);
    server_stop(&server);
}

static void a_server_that_hangs_up_is_lost(void **state)
{
    struct server server;
    struct db_facts facts;
    struct db_result result;

    (void)state;
    server_start(&server, HANGS_UP);
    struct db_target *target = open_target(&server, "", DB_PREPARED);
    struct db_session *session = connect_to(target);
    assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_LOST);
    assert_true(db_session_lost(session));
    db_disconnect(session);

    session = connect_to(target); // the loss in the middle of describe
    db_describe(session, &facts);
    assert_true(db_session_lost(session));
    db_facts_release(&facts);
    db_disconnect(session);
    db_close(target);
    server_stop(&server);
}

static void *cancel_soon(void *arg)
{
    clock_sleep_until_ns(&clock_system, now_ns() + 200 * NS_PER_MS);
    db_cancel(arg);
    return NULL;
}

// The wish to cancel gets no answer either: then the socket is cut, and the next one at once.
static void a_silent_server_loses_the_connection_on_cancel(void **state)
{
    struct server server;
    struct db_result result;
    pthread_t thread;

    (void)state;
    server_start(&server, SILENT);
    struct db_target *target = open_target(&server, "", DB_PREPARED);
    for (int i = 0; i < 2; i++) {
        struct db_session *session = connect_to(target);
        int64_t start_ns = now_ns();
        pthread_create(&thread, NULL, cancel_soon, session);
        assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_LOST);
        int64_t took_ns = now_ns() - start_ns;
        if (i == 0)
            assert_in_range(took_ns, 1 * NS_PER_S, 10 * NS_PER_S);
        else
            assert_in_range(took_ns, 100 * NS_PER_MS, 1500 * NS_PER_MS);
        pthread_join(thread, NULL);
        start_ns = now_ns();
        db_disconnect(session);
        assert_in_range(now_ns() - start_ns, 0, 2 * NS_PER_S);
    }
    db_close(target);
    server_stop(&server);
}

static void a_server_that_only_listens_is_given_up_in_time(void **state)
{
    struct server server;
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    server_start(&server, LISTENS);
    struct db_target *target = open_target(&server, "", DB_PREPARED);
    int64_t start_ns = now_ns();
    assert_int_equal(db_connect(target, 0, &session, &result), DB_UNAVAILABLE);
    assert_in_range(now_ns() - start_ns, 300 * NS_PER_MS, 5 * NS_PER_S);
    assert_null(session);
    db_close(target);
    server_stop(&server);
}

static void no_server_is_unavailable(void **state)
{
    const struct server nobody = {.path = "/nonexistent/socket"};
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    struct db_target *target = open_target(&nobody, "", DB_PREPARED);
    assert_int_equal(db_connect(target, 0, &session, &result), DB_UNAVAILABLE);
    assert_non_null(strstr(result.message, "/nonexistent/socket"));
    db_close(target);
}

// The library takes what an option file says last; for prony the URL stands above it.
static void url_prevails_over_the_option_file(void **state)
{
    struct server server;
    char path[128];
    FILE *file;

    (void)state;
    server_start(&server, TEXT_ONLY);
    snprintf(path, sizeof(path), "%s/my.cnf", server.dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "[client]\nhost=nowhere.invalid\nsocket=/nonexistent/socket\nprotocol=tcp\n"
                  "[prony]\ninit-command=SELECT 'from the file'\n"
                  "ssl-verify-server-cert\nssl\n");
    fclose(file);
    char *more = mem_printf("&defaults_file=%s&ssl=0", path);
    struct db_target *target = open_target(&server, more, DB_PREPARED);
    db_disconnect(connect_to(target));
    db_close(target);
    free(more);
    unlink(path);
    server_stop(&server);
    assert_string_equal(server.last_text, "SELECT 'from the file'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_refuses_every_question_is_described),
        cmocka_unit_test(what_cannot_be_prepared_is_sent_as_text),
        cmocka_unit_test(a_server_that_asks_for_a_file_gets_nothing),
        cmocka_unit_test(autocommit_is_switched_on_where_it_is_off),
        cmocka_unit_test(a_server_without_tls_is_refused_where_tls_is_asked_for),
        cmocka_unit_test(url_prevails_over_the_option_file),
        cmocka_unit_test(a_server_that_hangs_up_is_lost),
        cmocka_unit_test(a_silent_server_loses_the_connection_on_cancel),
        cmocka_unit_test(a_server_that_only_listens_is_given_up_in_time),
        cmocka_unit_test(no_server_is_unavailable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
