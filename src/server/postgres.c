// PostgreSQL. Settings go on the command line, which is above every file: also above what ALTER
// SYSTEM has left in a data directory. The settings file of the run directory takes in the data
// directory's own, where there is one (Debian keeps it elsewhere), and names an access file of
// ours, so that a copy of any server lets its maker in.
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/url.h"
#include "server/kind.h"
#include "server/tune.h"

enum { SERVER, INITDB };

#define PORT "5432"

// What prony needs to be as it is: where the server listens and writes, and what it is.
static const char *const own_settings[] = {
    "config_file",
    "data_directory",
    "hba_file",
    "ident_file",
    "external_pid_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "unix_socket_permissions",
    "unix_socket_group",
    "logging_collector",
    "log_destination",
    NULL,
};

static const char *const shaping[] = {
    "default_table_access_method",
    "default_tablespace",
    "default_toast_compression",
    "wal_level",
    NULL,
};

static void plan_make(const struct server_plan *plan, struct words *argv)
{
    words_add(argv, plan->programs[INITDB]);
    words_add(argv, "-D");
    words_add(argv, plan->data);
    if (plan->log) {
        words_add(argv, "-X");
        words_add(argv, plan->log);
    }
    words_add(argv, "-U");
    words_add(argv, plan->wish->role ? plan->wish->role : plan->kind->role);
    words_add(argv, "-A");
    words_add(argv, "trust");
    words_add(argv, "-E");
    words_add(argv, "UTF8");
    words_add(argv, "--no-locale"); // comparing texts costs the same everywhere
    for (size_t i = 0; i < plan->wish->n_make_args; i++)
        words_add(argv, plan->wish->make_args[i]);
}

// A path in a list of paths, in double quotes where it needs them.
static void add_listed_path(struct str *out, const char *path)
{
    bool plain = true;

    for (const char *p = path; *p; p++)
        plain = plain && (isalnum((unsigned char)*p) || strchr("/._-", *p));
    if (plain) {
        str_add(out, path);
        return;
    }
    str_addc(out, '"');
    for (const char *p = path; *p; p++)
        str_addf(out, *p == '"' ? "\"\"" : "%c", *p);
    str_addc(out, '"');
}

static void add_setting(struct words *argv, const char *name, const char *value)
{
    words_add(argv, "-c");
    words_addf(argv, "%s=%s", name, value);
}

static void plan_start(const struct server_plan *plan, struct words *argv)
{
    struct str dir = STR_INIT;

    words_add(argv, plan->programs[SERVER]);
    words_add(argv, "-D");
    words_add(argv, plan->data);
    words_add(argv, "-c");
    words_addf(argv, "config_file=%s/%s", plan->run, plan->kind->settings_file);
    add_listed_path(&dir, plan->run);
    add_setting(argv, "unix_socket_directories", dir.buf);
    str_release(&dir);
    add_setting(argv, "listen_addresses", "");
    add_setting(argv, "port", PORT);
    add_setting(argv, "logging_collector", "off");
    add_setting(argv, "log_destination", "stderr");
    // What a copied server was told to do with its log must not reach its archive.
    if (plan->is_copy && !settings_have(&plan->settings, "archive_mode"))
        add_setting(argv, "archive_mode", "off");
    for (size_t i = 0; i < plan->settings.n; i++)
        add_setting(argv, plan->settings.items[i].key, plan->settings.items[i].value);
}

// A text in a settings file: quotes are doubled, and so are backslashes, which begin escapes.
static void add_quoted(struct str *out, const char *text)
{
    str_addc(out, '\'');
    for (const char *p = text; *p; p++)
        if (*p == '\'' || *p == '\\')
            str_addf(out, "%c%c", *p, *p);
        else if (*p == '\n')
            str_add(out, "\\n");
        else
            str_addc(out, *p);
    str_addc(out, '\'');
}

static void add_path_line(struct str *out, const char *key, const char *dir, const char *file)
{
    struct str path = STR_INIT;

    str_addf(&path, "%s/%s", dir, file);
    str_addf(out, "%s = ", key);
    add_quoted(out, path.buf);
    str_addc(out, '\n');
    str_release(&path);
}

static void settings_text(const struct server_plan *plan, struct str *out)
{
    str_add(out,
            "# Written by prony for one run; settings of the target are on the command line.\n");
    add_path_line(out, "include_if_exists", plan->data, "postgresql.conf");
    add_path_line(out, "hba_file", plan->run, "pg_hba.conf");
}

static void url(const struct server_plan *plan, bool with_database, struct str *out)
{
    const struct server_wish *wish = plan->wish;
    struct url url = {.scheme = (char *)"postgres"};

    (void)with_database; // there is always one
    kvs_add(&url.params, "host", plan->run);
    kvs_add(&url.params, "port", PORT);
    kvs_add(&url.params, "user", wish->role ? wish->role : plan->kind->role);
    kvs_add(&url.params, "dbname", wish->database ? wish->database : plan->kind->database);
    url_print(&url, true, out);
    kvs_release(&url.params);
}

// The first line of postmaster.pid names a process, which may be another by now: a postmaster works
// in its data directory.
static pid_t runs_on(const char *data)
{
    char path[PATH_MAX + 32], line[32] = "";
    struct stat ours, theirs;

    snprintf(path, sizeof(path), "%s/postmaster.pid", data);
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? 0 : -1;
    (void)!fgets(line, sizeof(line), file);
    fclose(file);
    pid_t pid = (pid_t)strtol(line, NULL, 10);
    if (pid < 0) // a single-user server
        pid = -pid;
    if (!proc_is_alive(pid, proc_start_ticks(pid)))
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
    if (stat(data, &ours) == 0 && stat(path, &theirs) == 0 &&
        (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino))
        return 0;
    return pid;
}

// The pid file's eighth line says so (since PostgreSQL 10); asking by connecting would fill the
// log.
static bool is_up(const char *data, pid_t pid)
{
    char path[PATH_MAX + 32], line[PATH_MAX];
    bool up = false;

    snprintf(path, sizeof(path), "%s/postmaster.pid", data);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    for (int i = 1; fgets(line, sizeof(line), file) && i <= 8; i++) {
        if (i == 1 && strtol(line, NULL, 10) != (long)pid) // of a server that died
            break;
        up = (i == 7 && strchr(line, '\n')) || // older ones have no more lines
             (i == 8 && (strncmp(line, "ready", 5) == 0 || strncmp(line, "standby", 7) == 0));
    }
    fclose(file);
    return up;
}

static bool log_of(const char *data, char out[PATH_MAX])
{
    char path[PATH_MAX + 16];
    struct stat st;

    out[0] = '\0';
    snprintf(path, sizeof(path), "%s/pg_wal", data);
    if (lstat(path, &st) < 0) // before PostgreSQL 10
        snprintf(path, sizeof(path), "%s/pg_xlog", data);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && !realpath(path, out))
        out[0] = '\0';
    return true;
}

static int relink(const struct server_plan *plan, struct err *err)
{
    char path[PATH_MAX + 16];
    struct stat st;

    snprintf(path, sizeof(path), "%s/pg_wal", plan->data);
    if (lstat(path, &st) < 0) // before PostgreSQL 10
        snprintf(path, sizeof(path), "%s/pg_xlog", plan->data);
    if (unlink(path) < 0 || symlink(plan->log, path) < 0)
        return err_set(err, ERR_FAILED, "cannot lead %s to the log in %s: %s", path, plan->log,
                       strerror(errno));
    return 0;
}

static void version_of(const char *data, char *out, size_t size)
{
    char path[PATH_MAX + 16];

    out[0] = '\0';
    snprintf(path, sizeof(path), "%s/PG_VERSION", data);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(out, (int)size, file))
        out[strcspn(out, " \n")] = '\0';
    fclose(file);
}

static void plan_copy(const struct server_plan *plan, const char *from, const char *log_from,
                      struct commands *commands)
{
    char own_log[PATH_MAX + 16];

    snprintf(own_log, sizeof(own_log), "%s/pg_wal", plan->data);
    commands_add_copy(commands, from, plan->data);
    struct words *argv = commands_add(commands, "rm");
    words_add(argv, "-f");
    words_addf(argv, "%s/postmaster.pid", plan->data);
    words_addf(argv, "%s/postmaster.opts", plan->data);
    if (!plan->log && !log_from[0])
        return;

    // A link would lead the copy's server to the log of the other: what is there is taken over.
    const char *now = log_from[0] ? log_from : own_log;
    const char *to = plan->log ? plan->log : own_log;
    if (log_from[0]) {
        argv = commands_add(commands, "rm");
        words_add(argv, "-f");
        words_add(argv, own_log);
    }
    argv = commands_add(commands, "cp");
    words_add(argv, "-a");
    words_add(argv, "--reflink=never");
    words_add(argv, "-T");
    words_add(argv, now);
    words_add(argv, to);
    if (!plan->log)
        return;
    if (!log_from[0]) {
        argv = commands_add(commands, "rm");
        words_add(argv, "-rf");
        words_add(argv, own_log);
    }
    argv = commands_add(commands, "ln");
    words_add(argv, "-s");
    words_add(argv, plan->log);
    words_add(argv, own_log);
}

const struct server_kind server_kind_postgres = {
    .name = "postgres",
    .title = "PostgreSQL",
    .package = "postgresql",
    .account = "postgres",
    .role = "postgres",
    .database = "postgres",
    .mark = "PG_VERSION",
    .socket = ".s.PGSQL." PORT,
    .settings_file = "postgresql.conf",
    .second_file = "pg_hba.conf",
    .second_text = "local all all trust\n",
    .programs = {"postgres", "initdb"},
    .places = "/usr/lib/postgresql/*/bin",
    .own = own_settings,
    .shaping = shaping,
    .signals = {SIGINT, SIGQUIT, SIGKILL},
    .fault = "FATAL",
    .max_connections = 100,
    .names_directory = true,
    .plan_make = plan_make,
    .plan_start = plan_start,
    .settings_text = settings_text,
    .url = url,
    .tune = tune_postgres,
    .runs_on = runs_on,
    .is_up = is_up,
    .log_of = log_of,
    .version_of = version_of,
    .relink = relink,
    .plan_copy = plan_copy,
};
