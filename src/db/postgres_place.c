// Where a server's data lies, if that is on this machine. A path is given only when it was checked:
// a container or another host can have the same path with other contents.
//
// The server's process is found through the socket (SO_PEERCRED: over a UNIX socket the peer is the
// postmaster) or through postmaster.pid in the directory that the server names; what it sees as its
// data directory must be what we see there. Without the rights to look (prony runs as another
// user), a directory that exists on the server's own machine is believed.
#include "db/postgres.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

static void set_unknown(struct db_facts *facts, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set_unknown(struct db_facts *facts, const char *field, const char *fmt, ...)
{
    struct str text = STR_INIT;
    struct str safe = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_add(&text, "unknown: ");
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    text_add_safe(&safe, text.buf);
    kvs_set(&facts->settings, field, safe.buf);
    str_release(&safe);
    str_release(&text);
}

// ---- the machine

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                      &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0;
    if (a->sa_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
    return false;
}

static bool is_own_address(const struct sockaddr *address)
{
    struct ifaddrs *list;
    bool own = false;

    if (address->sa_family == AF_INET)
        own = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    if (own || getifaddrs(&list) < 0)
        return own;
    for (const struct ifaddrs *i = list; i && !own; i = i->ifa_next)
        own = i->ifa_addr && same_address(i->ifa_addr, address);
    freeifaddrs(list);
    return own;
}

static bool parse_address(const char *text, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        ret->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        ret->ss_family = AF_INET6;
    return ret->ss_family != 0;
}

// The other end of our socket and the address the server itself names must both be ours: a pooler
// here can lead to a server elsewhere, a forwarded port into a container.
static void find_machine(struct postgres_session *s, struct db_facts *facts)
{
    struct sockaddr_storage peer, named;
    socklen_t len = sizeof(peer);
    struct str why = STR_INIT;
    PGresult *res = NULL;

    if (getpeername(PQsocket(s->conn), (struct sockaddr *)&peer, &len) < 0) {
        set_unknown(facts, "is_local", "%s", strerror(errno));
        return;
    }
    bool own = peer.ss_family == AF_UNIX || is_own_address((struct sockaddr *)&peer);
    if (own)
        res = postgres_ask(s, "SELECT host(inet_server_addr())", &why);
    if (!own)
        facts->is_local = false;
    else if (!res && peer.ss_family != AF_UNIX)
        kvs_set(&facts->settings, "is_local", why.buf);
    else if (!res || PQgetisnull(res, 0, 0)) // the server was reached through a UNIX socket
        facts->is_local = true;
    else if (parse_address(PQgetvalue(res, 0, 0), &named))
        facts->is_local = is_own_address((struct sockaddr *)&named);
    else
        set_unknown(facts, "is_local", "the server's address is %s", PQgetvalue(res, 0, 0));
    PQclear(res);
    str_release(&why);
}

// ---- the server's process

// The process that listens at the other end of a UNIX socket; 0 unknown.
static pid_t peer_pid(int fd)
{
    struct ucred peer = {0};
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return 0;
    return peer.pid > 0 ? peer.pid : 0;
}

// postmaster.pid of a directory: pid in line 1, port in line 4. Gives the pid of the server there
// if it has the given port; 0 if none has; -1 when we may not look.
static pid_t pid_file_pid(const char *directory, int port)
{
    char path[PATH_MAX + 32];
    char line[PATH_MAX];
    long pid = 0;
    int their_port = 0;

    snprintf(path, sizeof(path), "%s/postmaster.pid", directory);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == EACCES ? -1 : 0;
    for (int i = 1; i <= 4 && fgets(line, sizeof(line), file); i++) {
        if (i == 1)
            pid = strtol(line, NULL, 10);
        if (i == 4)
            their_port = (int)strtol(line, NULL, 10);
    }
    fclose(file);
    return their_port == port && pid > 0 ? (pid_t)pid : 0;
}

// The working directory of the process at the other end, if it is a data directory.
static bool peer_directory(int fd, char out[PATH_MAX])
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)peer_pid(fd));
    ssize_t n = readlink(path, out, PATH_MAX - 1);
    if (n < 0)
        return false;
    out[n] = '\0';
    snprintf(path, sizeof(path), "%s/PG_VERSION", out);
    return access(path, F_OK) == 0;
}

// 1: the directory we see is the one the process works in (a postmaster's working directory is its
// data directory), also when it lives in another mount namespace. 0: it is not. -1: not told.
static int is_its_directory(pid_t pid, const char *directory)
{
    char path[64];
    struct stat theirs, ours;

    snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
    if (stat(directory, &ours) < 0)
        return 0;
    if (stat(path, &theirs) < 0)
        return errno == EACCES || errno == EPERM ? -1 : 0;
    return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

// ---- paths

// The peer of a UNIX socket can be a pooler, so that it is not the server decides nothing.
static bool is_servers(struct postgres_session *s, const char *directory)
{
    pid_t pid = peer_pid(PQsocket(s->conn));

    if (pid > 0 && is_its_directory(pid, directory) == 1)
        return true;
    PGresult *res = postgres_ask(s, "SHOW port", NULL);
    pid = pid_file_pid(directory, res ? (int)strtol(PQgetvalue(res, 0, 0), NULL, 10) : 0);
    PQclear(res);
    return pid < 0 || (pid > 0 && is_its_directory(pid, directory) != 0);
}

// The data directory as the server tells, or else as its process shows. False: facts say why not.
static bool find_directory(struct postgres_session *s, struct db_facts *facts, char out[PATH_MAX])
{
    struct str why = STR_INIT;
    struct stat st;
    PGresult *res = postgres_ask(s, "SHOW data_directory", &why);
    bool found = res && PQgetlength(res, 0, 0) > 0;

    if (found)
        snprintf(out, PATH_MAX, "%s", PQgetvalue(res, 0, 0));
    else
        found = peer_directory(PQsocket(s->conn), out);
    PQclear(res);
    if (!found)
        kvs_set(&facts->settings, "data_path", why.len ? why.buf : "unknown: not told");
    str_release(&why);
    if (!found)
        return false;
    if (stat(out, &st) < 0) {
        set_unknown(facts, "data_path", "the server's directory %s cannot be looked at: %s", out,
                    strerror(errno));
        return false;
    }
    if (!is_servers(s, out)) {
        set_unknown(facts, "data_path", "%s on this machine is not this server's", out);
        return false;
    }
    return true;
}

// A database in a tablespace of its own keeps its tables there, not in the data directory.
static void find_data(struct postgres_session *s, struct db_facts *facts, const char *directory)
{
    PGresult *res = postgres_ask(s,
                                 "SELECT pg_tablespace_location(dattablespace) FROM pg_database "
                                 "WHERE datname = current_database()",
                                 NULL);
    const char *place = res && PQgetlength(res, 0, 0) > 0 ? PQgetvalue(res, 0, 0) : directory;

    if (access(place, F_OK) == 0)
        snprintf(facts->data_path, sizeof(facts->data_path), "%s", place);
    else
        set_unknown(facts, "data_path", "the tablespace at %s cannot be looked at: %s", place,
                    strerror(errno));
    PQclear(res);
}

// pg_wal is where the data is unless it is a link, or something is mounted there.
static void find_log(struct db_facts *facts, const char *directory)
{
    char path[PATH_MAX + 16];
    struct stat log, data;

    snprintf(path, sizeof(path), "%s/pg_wal", directory);
    if (lstat(path, &log) < 0 && errno == ENOENT)
        snprintf(path, sizeof(path), "%s/pg_xlog", directory); // before PostgreSQL 10
    if (lstat(path, &log) < 0 || stat(directory, &data) < 0) {
        set_unknown(facts, "log_path", "%s: %s", path, strerror(errno));
        return;
    }
    if (S_ISLNK(log.st_mode) || log.st_dev != data.st_dev) {
        if (!realpath(path, facts->log_path)) {
            facts->log_path[0] = '\0';
            set_unknown(facts, "log_path", "%s: %s", path, strerror(errno));
        }
    } else if (strcmp(facts->data_path, directory) != 0) {
        snprintf(facts->log_path, sizeof(facts->log_path), "%s", path);
    }
}

void postgres_place(struct postgres_session *s, struct db_facts *facts)
{
    char directory[PATH_MAX];

    find_machine(s, facts);
    if (!facts->is_local) {
        if (!kvs_get(&facts->settings, "is_local"))
            set_unknown(facts, "data_path", "the server is on another machine");
        else
            set_unknown(facts, "data_path", "it is not known which machine the server is on");
        return;
    }
    if (!find_directory(s, facts, directory))
        return;
    find_data(s, facts, directory);
    find_log(facts, directory);
}
