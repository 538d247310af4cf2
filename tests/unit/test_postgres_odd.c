// The PostgreSQL driver against servers that PostgreSQL is not: one that refuses every question,
// one that falls silent, one that only listens. They are threads of this test on a UNIX socket and
// speak as much of the protocol as the case needs.
#include "db/db.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
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
    REFUSES,  // an error for every statement
    SILENT,   // takes statements, never answers
    HANGS_UP, // closes the connection at the first statement
    LISTENS,  // takes connections, says nothing at all
};

struct server {
    enum manner manner;
    char dir[64];
    char path[108];
    int listener;
    pthread_t thread;
};

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

// A message's length field counts itself; the body goes to buf, which has room for it here.
static bool read_body(int fd, char *buf, size_t size)
{
    uint32_t len;

    if (!read_exactly(fd, (char *)&len, 4))
        return false;
    len = ntohl(len) - 4;
    return len < size && read_exactly(fd, buf, len);
}

static void send_bytes(int fd, const char *bytes, size_t n)
{
    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
}

static const char welcome[] = "R\0\0\0\x08\0\0\0\0"
                              "Z\0\0\0\x05I";
static const char refusal[] = "E\0\0\0\x28"
                              "SERROR\0C0A000\0Mthis is not the day\0\0"
                              "Z\0\0\0\x05I";

static void serve(const struct server *server, int fd)
{
    char body[8192];
    char type;

    if (server->manner == LISTENS) {
        (void)!read(fd, body, 1); // the start-up message, of which one byte is enough ...
        while (read(fd, body, sizeof(body)) > 0)
            ; // ... and until the client goes
        return;
    }
    if (!read_body(fd, body, sizeof(body)))
        return;
    send_bytes(fd, welcome, sizeof(welcome) - 1);
    while (read_exactly(fd, &type, 1) && read_body(fd, body, sizeof(body))) {
        if (type == 'X' || server->manner == HANGS_UP)
            return;
        if (server->manner == REFUSES && (type == 'Q' || type == 'S'))
            send_bytes(fd, refusal, sizeof(refusal) - 1);
    }
}

struct visit {
    const struct server *server;
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

    *server = (struct server){.manner = manner, .dir = "/tmp/test_postgres_odd_XXXXXX"};
    assert_non_null(mkdtemp(server->dir));
    snprintf(server->path, sizeof(server->path), "%s/.s.PGSQL.5432", server->dir);
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

static struct db_target *open_target(const char *hosts, int64_t timeout_ns)
{
    char *url = mem_printf("postgres:host=%s port=5432 user=u dbname=d sslmode=disable "
                           "gssencmode=disable",
                           hosts);
    const struct db_open_options options = {.connect_timeout_ns = timeout_ns};
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
    struct server server;
    struct db_facts facts;
    struct kvs counters = KVS_INIT;
    struct db_result result;

    (void)state;
    server_start(&server, REFUSES);
    struct db_target *target = open_target(server.dir, 0);
    struct db_session *session = connect_to(target);
    db_describe(session, &facts);
    assert_string_equal(facts.engine, "postgres");
    assert_string_equal(facts.version, "unknown: this is not the day");
    assert_int_equal(facts.max_connections, 0);
    assert_int_equal(facts.data_bytes, -1);
    assert_int_equal(facts.cache_bytes, -1);
    assert_string_equal(facts.data_path, "");
    const char *const fields[] = {"settings",         "fsync",     "max_connections",
                                  "connections_used", "read_only", "data_bytes",
                                  "cache_bytes",      "data_path", "full_page_writes"};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_string_equal(kvs_get(&facts.settings, fields[i]), "unknown: this is not the day");
    db_sample(session, &counters);
    assert_int_equal(counters.n, 0);
    assert_false(db_session_lost(session));
    assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_OTHER);
    assert_string_equal(result.native, "0A000");
    db_facts_release(&facts);
    db_disconnect(session);
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
    struct db_target *target = open_target(server.dir, 0);
    struct db_session *session = connect_to(target);
    assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_LOST);
    assert_true(db_session_lost(session));
    db_disconnect(session);

    session = connect_to(target); // the loss in the middle of describe
    db_describe(session, &facts);
    assert_true(db_session_lost(session));
    assert_string_equal(kvs_get(&facts.settings, "fsync"), "unknown: the connection was lost");
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

// The request to cancel hangs too: then the connection is cut, and nobody waits for ever.
static void a_silent_server_loses_the_connection_on_cancel(void **state)
{
    struct server server;
    struct db_result result;
    pthread_t thread;

    (void)state;
    server_start(&server, SILENT);
    struct db_target *target = open_target(server.dir, 0);
    struct db_session *session = connect_to(target);
    int64_t start_ns = now_ns();
    pthread_create(&thread, NULL, cancel_soon, session);
    assert_int_equal(db_query(session, "SELECT 1", false, &result), DB_LOST);
    assert_in_range(now_ns() - start_ns, 3 * NS_PER_S, 10 * NS_PER_S);
    pthread_join(thread, NULL);
    start_ns = now_ns();
    db_disconnect(session);
    assert_in_range(now_ns() - start_ns, 0, 2 * NS_PER_S);
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
    struct db_target *target = open_target(server.dir, 300 * NS_PER_MS);
    int64_t start_ns = now_ns();
    assert_int_equal(db_connect(target, 0, &session, &result), DB_UNAVAILABLE);
    assert_in_range(now_ns() - start_ns, 300 * NS_PER_MS, 5 * NS_PER_S);
    if (!strstr(result.message, "within 0.3s"))
        fail_msg("%s", result.message);
    assert_null(session);
    db_close(target);
    server_stop(&server);
}

static void a_silent_host_of_several_is_passed_over(void **state)
{
    struct server silent, other;

    (void)state;
    server_start(&silent, LISTENS);
    server_start(&other, REFUSES);
    char *hosts = mem_printf("%s,%s", silent.dir, other.dir);
    struct db_target *target = open_target(hosts, 300 * NS_PER_MS);
    struct db_session *session = connect_to(target);
    db_disconnect(session);
    db_close(target);
    free(hosts);
    server_stop(&silent);
    server_stop(&other);
}

static void no_server_is_unavailable(void **state)
{
    struct db_session *session = NULL;
    struct db_result result;

    (void)state;
    struct db_target *target = open_target("/nonexistent", 0);
    assert_int_equal(db_connect(target, 0, &session, &result), DB_UNAVAILABLE);
    assert_non_null(strstr(result.message, "/nonexistent/.s.PGSQL.5432"));
    assert_null(strchr(result.message, '\n'));
    db_close(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_refuses_every_question_is_described),
        cmocka_unit_test(a_server_that_hangs_up_is_lost),
        cmocka_unit_test(a_silent_server_loses_the_connection_on_cancel),
        cmocka_unit_test(a_server_that_only_listens_is_given_up_in_time),
        cmocka_unit_test(a_silent_host_of_several_is_passed_over),
        cmocka_unit_test(no_server_is_unavailable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
