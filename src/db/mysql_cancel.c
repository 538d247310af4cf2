// Stopping a request from another thread: KILL QUERY over a connection of the target's own, which
// is opened at the first need and kept, because at the end of a run a thousand sessions may have to
// be stopped. Where the server does not take it within ANSWER_S, or might be another one than the
// session's, the session's socket is shut down instead: the blocked call returns DB_LOST at once.
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "db/mysqldb.h"

#define ANSWER_S 2              // for connecting, and for each answer
#define RETRY_NS (5 * NS_PER_S) // sockets are shut down without asking meanwhile

#define NO_SUCH_THREAD 1094 // it has ended by itself

// A peer that vanished without a word is noticed after 10 + 3 * 5 s; Linux alone takes two hours.
#define KEEPALIVE_IDLE_S     10
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT      3
#define SEND_TIMEOUT_MS      25000

static uint64_t inode_of(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

// Our port where the session goes over a network; 0 else.
static unsigned local_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof(address);

    if (fd < 0 || getsockname(fd, &address.any, &len) < 0)
        return 0;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : 0;
}

void mysqldb_cancel_init(struct mysqldb_session *s)
{
    static const struct {
        int name, value;
    } options[] = {
        {TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {TCP_KEEPCNT, KEEPALIVE_COUNT},
        {TCP_USER_TIMEOUT, SEND_TIMEOUT_MS},
    };

    s->fd = (int)mysql_get_socket(s->mysql);
    s->fd_inode = inode_of(s->fd);
    s->thread_id = mysql_thread_id(s->mysql);
    for (size_t i = 0; local_port(s->fd) && i < sizeof(options) / sizeof(options[0]); i++)
        (void)setsockopt(s->fd, IPPROTO_TCP, options[i].name, &options[i].value, sizeof(int));
}

// The library closes the socket by itself when it breaks, and then the number may be another's: the
// inode tells.
static void shut_down(const struct mysqldb_session *s)
{
    if (s->fd_inode != 0 && inode_of(s->fd) == s->fd_inode)
        (void)shutdown(s->fd, SHUT_RDWR);
}

static int ask(MYSQL *mysql, const char *sql, bool *ret_row)
{
    if (mysql_real_query(mysql, sql, strlen(sql)) != 0)
        return -1;
    MYSQL_RES *res = mysql_store_result(mysql);
    *ret_row = res && mysql_num_rows(res) > 0;
    mysql_free_result(res);
    return mysql_errno(mysql) == 0 ? 0 : -1;
}

// Behind a list of hosts or a balancer the new connection may have ended on another server, where
// the number is a stranger's: the thread must come from our port. True when the server has taken
// the wish.
static bool kill_query(MYSQL *mysql, const struct mysqldb_session *s)
{
    char sql[160];
    bool row = false;
    unsigned port = local_port(s->fd);

    if (port != 0) {
        snprintf(
            sql, sizeof(sql),
            "SELECT 1 FROM information_schema.processlist WHERE id = %lu AND host LIKE '%%:%u'",
            s->thread_id, port);
        if (ask(mysql, sql, &row) < 0 || !row)
            return false;
    }
    snprintf(sql, sizeof(sql), "KILL QUERY %lu", s->thread_id);
    return ask(mysql, sql, &row) == 0 || mysql_errno(mysql) == NO_SUCH_THREAD;
}

void mysqldb_cancel(struct db_session *base)
{
    struct mysqldb_session *s = mysqldb_session(base);
    struct mysqldb_target *t = mysqldb_target(base);
    bool taken = false;

    if (!atomic_load_explicit(&s->busy, memory_order_acquire))
        return;
    pthread_mutex_lock(&t->cancel_lock);
    bool fresh = false; // a kept connection that fails may just be old
    while (!taken && !fresh) {
        fresh = !t->canceller;
        if (fresh && clock_now_ns(&clock_system) < t->canceller_retry_ns)
            break;
        if (fresh)
            t->canceller = mysqldb_dial(t, ANSWER_S);
        if (mysql_errno(t->canceller) == 0)
            taken = kill_query(t->canceller, s);
        if (taken)
            break;
        mysql_close(t->canceller);
        t->canceller = NULL;
        if (fresh)
            t->canceller_retry_ns = clock_now_ns(&clock_system) + RETRY_NS;
    }
    pthread_mutex_unlock(&t->cancel_lock);
    if (!taken)
        shut_down(s);
}
