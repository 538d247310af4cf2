// MariaDB and MySQL: one server program that reads an option file, and two ways of making a data
// directory. The option file is in the run directory; nothing is read from /etc/mysql.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"
#include "server/kind.h"
#include "server/tune.h"

enum { SERVER, MAKER };

static const char *const own_settings[] = {
    "datadir",
    "socket",
    "pid_file",
    "port",
    "bind_address",
    "skip_networking",
    "log_error",
    "user",
    "innodb_log_group_home_dir",
    "defaults_file",
    "defaults_extra_file",
    "no_defaults",
    "mysqlx_socket",
    NULL,
};

// Settings that are cut into the files when the data directory is made, and when tables are.
static const char *const making[] = {
    "innodb_page_size",          "innodb_log_file_size",   "innodb_log_files_in_group",
    "innodb_redo_log_capacity",  "innodb_data_file_path",  "innodb_undo_tablespaces",
    "innodb_checksum_algorithm", "lower_case_table_names", NULL,
};

static const char *const shaping[] = {
    "innodb_page_size",          "innodb_log_file_size",       "innodb_log_files_in_group",
    "innodb_redo_log_capacity",  "innodb_data_file_path",      "innodb_undo_tablespaces",
    "innodb_checksum_algorithm", "lower_case_table_names",     "innodb_file_per_table",
    "innodb_default_row_format", "innodb_compression_default", "innodb_compression_algorithm",
    "innodb_compression_level",  "innodb_fill_factor",         "innodb_encrypt_tables",
    "default_storage_engine",    "character_set_server",       "collation_server",
    "aria_block_size",           "aria_log_dir_path",          NULL,
};

// A program outside the system's folders finds its own files by its base directory.
static void add_base(const struct server_plan *plan, struct words *argv)
{
    const char *program = plan->programs[SERVER];
    const char *slash = strrchr(program, '/');
    int len = (int)(slash - program);

    if (strncmp(program, "/usr/sbin/", 10) == 0 || strncmp(program, "/usr/bin/", 9) == 0)
        return;
    while (len > 0 && program[len - 1] != '/')
        len--;
    words_addf(argv, "--basedir=%.*s", len > 1 ? len - 1 : 1, program);
}

static void add_making(const struct server_plan *plan, struct words *argv)
{
    words_addf(argv, "--datadir=%s", plan->data);
    add_base(plan, argv);
    if (plan->log)
        words_addf(argv, "--innodb-log-group-home-dir=%s", plan->log);
    for (size_t i = 0; i < plan->settings.n; i++)
        for (int k = 0; making[k]; k++)
            if (setting_is_named(plan->settings.items[i].key, making[k]))
                words_addf(argv, "--%s=%s", plan->settings.items[i].key,
                           plan->settings.items[i].value);
    for (size_t i = 0; i < plan->wish->n_make_args; i++)
        words_add(argv, plan->wish->make_args[i]);
}

static void plan_make_mariadb(const struct server_plan *plan, struct words *argv)
{
    words_add(argv, plan->programs[MAKER]);
    words_add(argv, "--no-defaults");
    words_add(argv, "--auth-root-authentication-method=normal");
    words_add(argv, "--skip-test-db");
    add_making(plan, argv);
}

static void plan_make_mysql(const struct server_plan *plan, struct words *argv)
{
    words_add(argv, plan->programs[SERVER]);
    words_add(argv, "--no-defaults");
    words_add(argv, "--initialize-insecure");
    words_add(argv, "--secure-file-priv=NULL"); // the package's directory may not be there
    add_making(plan, argv);
}

static void plan_start(const struct server_plan *plan, struct words *argv)
{
    words_add(argv, plan->programs[SERVER]);
    words_addf(argv, "--defaults-file=%s/%s", plan->run, plan->kind->settings_file);
    add_base(plan, argv);
}

// A value in an option file: in double quotes, where '#' is no comment and blanks stay.
static void add_line(struct str *out, const char *name, const char *value)
{
    str_addf(out, "%s=\"", name);
    for (const char *p = value; *p; p++)
        switch (*p) {
        case '\\':
        case '"':
            str_addf(out, "\\%c", *p);
            break;
        case '\n':
            str_add(out, "\\n");
            break;
        case '\r':
            str_add(out, "\\r");
            break;
        case '\t':
            str_add(out, "\\t");
            break;
        default:
            str_addc(out, *p);
        }
    str_add(out, "\"\n");
}

static void add_path(struct str *out, const char *name, const char *dir, const char *file)
{
    struct str path = STR_INIT;

    str_addf(&path, "%s/%s", dir, file);
    add_line(out, name, path.buf);
    str_release(&path);
}

static void add_settings(const struct server_plan *plan, struct str *out)
{
    str_add(out, "# Written by prony for one run.\n[mysqld]\n");
    add_line(out, "datadir", plan->data);
    if (plan->log)
        add_line(out, "innodb_log_group_home_dir", plan->log);
    add_path(out, "socket", plan->run, plan->kind->socket);
    add_path(out, "pid_file", plan->run, "pid");
    str_add(out, "skip_networking=1\n");
    if (!settings_have(&plan->settings, "tmpdir"))
        add_line(out, "tmpdir", plan->run);
    if (!settings_have(&plan->settings, "local_infile"))
        str_add(out, "local_infile=1\n"); // for filling tables
    if (plan->is_copy)
        str_add(out, "loose_skip_slave_start=1\n"); // a copy does not follow the other's source
}

static void add_users_settings(const struct server_plan *plan, struct str *out)
{
    for (size_t i = 0; i < plan->settings.n; i++)
        add_line(out, plan->settings.items[i].key, plan->settings.items[i].value);
}

static void settings_text_mariadb(const struct server_plan *plan, struct str *out)
{
    add_settings(plan, out);
    add_users_settings(plan, out);
}

static void settings_text_mysql(const struct server_plan *plan, struct str *out)
{
    add_settings(plan, out);
    str_add(out, "loose_mysqlx=0\n"); // it would listen too
    if (!settings_have(&plan->settings, "secure_file_priv"))
        str_add(out, "secure_file_priv=NULL\n");
    add_users_settings(plan, out);
}

// The option file is named, so that nothing of the user's own files is taken for this server.
static void url(const struct server_plan *plan, bool with_database, struct str *out)
{
    const struct server_wish *wish = plan->wish;
    struct str socket = STR_INIT, file = STR_INIT;
    struct url url = {
        .scheme = (char *)"mysql",
        .has_authority = true,
        .user = wish->role ? wish->role : (char *)plan->kind->role,
        .host = (char *)"localhost",
    };

    if (with_database)
        url.path = wish->database ? wish->database : (char *)plan->kind->database;
    str_addf(&socket, "%s/%s", plan->run, plan->kind->socket);
    str_addf(&file, "%s/%s", plan->run, plan->kind->settings_file);
    kvs_add(&url.params, "socket", socket.buf);
    kvs_add(&url.params, "defaults_file", file.buf);
    if (wish->engine)
        kvs_add(&url.params, "engine", wish->engine);
    url_print(&url, true, out);
    kvs_release(&url.params);
    str_release(&socket);
    str_release(&file);
}

// A server locks its files; who holds the lock is told where it can be.
static pid_t runs_on(const char *data)
{
    static const char *const files[] = {"ibdata1", "aria_log_control"};
    char path[PATH_MAX + 32];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        snprintf(path, sizeof(path), "%s/%s", data, files[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            continue;
        bool locked = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
        close(fd);
        if (locked)
            return lock.l_pid > 0 ? lock.l_pid : -1;
    }
    return 0;
}

static bool is_log(const char *dir)
{
    static const char *const files[] = {"ib_logfile0", "#innodb_redo"};
    char path[PATH_MAX + 32];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static bool log_of(const char *data, char out[PATH_MAX])
{
    out[0] = '\0';
    return is_log(data);
}

static void version_of(const char *data, char *out, size_t size)
{
    (void)data, (void)size; // newer ones take over older directories
    out[0] = '\0';
}

static void plan_copy(const struct server_plan *plan, const char *from, const char *log_from,
                      struct commands *commands)
{
    static const char *const moved[] = {
        "-maxdepth",    "1", "(",     "-name", "ib_logfile*", "-o", "-name",
        "#innodb_redo", ")", "-exec", "mv",    "-t",
    };
    (void)log_from; // only copies of directories that have their log are made
    commands_add_copy(commands, from, plan->data);
    struct words *argv = commands_add(commands, "rm");
    words_add(argv, "-f");
    words_addf(argv, "%s/auto.cnf", plan->data); // MySQL's name for itself must be its own
    if (!plan->log)
        return;
    argv = commands_add(commands, "find");
    words_add(argv, plan->data);
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
        words_add(argv, moved[i]);
    words_add(argv, plan->log);
    words_add(argv, "{}");
    words_add(argv, "+");
}

#define COMMON                                                                              \
    .account = "mysql", .role = "root", .database = "prony", .mark = "ibdata1",             \
    .socket = "socket", .settings_file = "my.cnf", .own = own_settings, .shaping = shaping, \
    .signals = {SIGTERM, SIGKILL, SIGKILL}, .fault = "[ERROR]", .max_connections = 151,     \
    .creates_database = true, .plan_start = plan_start, .url = url, .tune = tune_innodb,    \
    .runs_on = runs_on, .log_of = log_of, .is_log = is_log, .version_of = version_of,       \
    .plan_copy = plan_copy

const struct server_kind server_kind_mariadb = {
    .name = "mariadb",
    .title = "MariaDB",
    .package = "mariadb-server",
    .programs = {"mariadbd|mysqld", "mariadb-install-db|mysql_install_db"},
    .version_has = "MariaDB",
    .plan_make = plan_make_mariadb,
    .settings_text = settings_text_mariadb,
    COMMON,
};

const struct server_kind server_kind_mysql = {
    .name = "mysql",
    .title = "MySQL",
    .package = "mysql-server",
    .programs = {"mysqld"},
    .version_lacks = "MariaDB",
    .plan_make = plan_make_mysql,
    .settings_text = settings_text_mysql,
    COMMON,
};
