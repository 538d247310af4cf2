// Servers that prony makes, as far as they are pure: targets, the commands and texts that would be
// run and written, word for word, also for a server that is not installed here, and the tuning.
#include "server/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/tree.h"
#include "server/child.h"
#include "server/place.h"
#include "server/tune.h"

// ---- targets

// What a wish came to, on one line.
static char *wish_text(const struct server_wish *wish)
{
    static const char *const stops[] = {"", "fast", "immediate", "kill"};
    const struct {
        const char *name, *value;
    } texts[] = {
        {"data", wish->data},         {"log", wish->log},       {"from", wish->from},
        {"bin", wish->bin},           {"user", wish->user},     {"role", wish->role},
        {"database", wish->database}, {"engine", wish->engine},
    };
    struct str out = STR_INIT;

    str_add(&out, wish->kind->name);
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        if (texts[i].value)
            str_addf(&out, " %s<%s>", texts[i].name, texts[i].value);
    for (size_t i = 0; i < wish->n_make_args; i++)
        str_addf(&out, " arg<%s>", wish->make_args[i]);
    if (wish->stop)
        str_addf(&out, " stop<%s>", stops[wish->stop]);
    for (size_t i = 0; i < wish->settings.n; i++)
        str_addf(&out, " %s=<%s>", wish->settings.items[i].key, wish->settings.items[i].value);
    return str_detach(&out);
}

static void a_target_becomes_a_wish(void **state)
{
    static const struct {
        const char *target, *wish;
    } cases[] = {
        {"server:postgres", "postgres"},
        {"SERVER:MariaDB", "mariadb"},
        {"server:mysql?data=/srv/my&log=/fast", "mysql data</srv/my> log</fast>"},
        {"server:postgres?data=dir:/srv/pg", "postgres data<dir:/srv/pg>"},
        {"server:postgres?data={dir:path=/srv/p g}", "postgres data<dir:path=/srv/p g>"},
        {"server:postgres?from=old&bin=15&user=me&role=alice&database=shop&stop=kill",
         "postgres from<old> bin<15> user<me> role<alice> database<shop> stop<kill>"},
        {"server:mariadb?engine=aria&stop=fast", "mariadb engine<aria> stop<fast>"},
        {"server:postgres?initdb={--data-checksums  --locale='de DE' -c \"x=a  b\"}",
         "postgres arg<--data-checksums> arg<--locale=de DE> arg<-c> arg<x=a  b>"},
        {"server:postgres?shared_buffers=1GB&work_mem=8MB&auto_explain.log=on",
         "postgres shared_buffers=<1GB> work_mem=<8MB> auto_explain.log=<on>"},
        {"server:postgres?cluster_name={a&b=c}&search_path=", "postgres cluster_name=<a&b=c> "
                                                              "search_path=<>"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct server_wish wish;
        struct err err = ERR_INIT;
        if (server_wish_parse(&wish, cases[i].target, &err) < 0)
            fail_msg("%s: %s", cases[i].target, err.text);
        char *text = wish_text(&wish);
        assert_string_equal(text, cases[i].wish);
        assert_true(server_is_target(cases[i].target));
        free(text);
        server_wish_release(&wish);
    }
    assert_false(server_is_target("servers:postgres"));
    assert_false(server_is_target("postgres:server"));
}

static void wrong_targets_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *target, *says;
    } cases[] = {
        {"server:", "which server?"},
        {"server", "which server?"},
        {"server:postgre", "did you mean postgres?"},
        {"server:db2", "unknown server db2: must be postgres, mariadb or mysql"},
        {"server://h/postgres", "write server:KIND"},
        {"server:postgres?stop=soft", "unknown way to stop soft: must be fast, immediate or kill"},
        {"server:postgres?wait=1x", "wait="},
        {"server:postgres?wait=0", "wait=: must be more than 0"},
        {"server:postgres?data=", "data= is empty"},
        {"server:postgres?data=a&data=b", "data= stands twice"},
        {"server:postgres?a-b=1&A_B=2", "A_B stands twice"},
        {"server:postgres?9=1", "can be no setting"},
        {"server:postgres?a%3b=1", "can be no setting"},
        {"server:postgres?listen_addresses=*", "listen_addresses is prony's to set"},
        {"server:mysql?Skip-Networking=0", "Skip-Networking is prony's to set"},
        {"server:postgres?engine=innodb", "engine= is for tables of MariaDB and MySQL"},
        {"server:postgres?from=a&initdb=b", "leave one away"},
        {"server:postgres?initdb={a 'b}", "a quote is not closed"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct server_wish wish;
        struct err err = ERR_INIT;
        assert_true(server_wish_parse(&wish, cases[i].target, &err) < 0);
        assert_int_equal(err.kind, ERR_USAGE);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].target, err.text);
        server_wish_release(&wish);
    }
}

// ---- plans

struct planned {
    struct server_wish wish;
    struct server_plan plan;
};

// A server that is nowhere, with the directories that the cases below name.
static void planned_init(struct planned *planned, const char *target, const char *log)
{
    static const char *const programs[][SERVER_PROGRAMS_MAX] = {
        {"/pg/bin/postgres", "/pg/bin/initdb"},
        {"/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db"},
        {"/opt/mysql/bin/mysqld", NULL},
    };
    struct err err = ERR_INIT;
    int k = 0;

    memset(planned, 0, sizeof(*planned));
    if (server_wish_parse(&planned->wish, target, &err) < 0)
        fail_msg("%s: %s", target, err.text);
    while (server_kinds[k] != planned->wish.kind)
        k++;
    planned->plan.kind = planned->wish.kind;
    planned->plan.wish = &planned->wish;
    for (int i = 0; i < SERVER_PROGRAMS_MAX; i++)
        planned->plan.programs[i] = (char *)programs[k][i];
    planned->plan.data = (char *)"/d/data";
    planned->plan.log = (char *)log;
    planned->plan.run = (char *)"/tmp/r";
    planned->plan.is_copy = planned->wish.from != NULL;
    planned->plan.settings = planned->wish.settings;
}

static char *joined(const struct words *words)
{
    struct str out = STR_INIT;

    assert_null(words->items[words->n_items]);
    for (size_t i = 0; i < words->n_items; i++)
        str_addf(&out, "%s%s", i ? "|" : "", words->items[i]);
    return str_detach(&out);
}

static void check_command(const char *target, const char *log,
                          void (*const *slot)(const struct server_plan *, struct words *),
                          const char *expected)
{
    struct planned planned;
    struct words argv = {0};

    planned_init(&planned, target, log);
    (*slot)(&planned.plan, &argv);
    char *text = joined(&argv);
    assert_string_equal(text, expected);
    free(text);
    words_release(&argv);
    server_wish_release(&planned.wish);
}

static const struct server_kind *kind_of(const char *target)
{
    struct server_wish wish;

    assert_int_equal(server_wish_parse(&wish, target, NULL), 0);
    const struct server_kind *kind = wish.kind;
    server_wish_release(&wish);
    return kind;
}

static void the_command_that_makes_a_data_directory(void **state)
{
    static const struct {
        const char *target, *log, *command;
    } cases[] = {
        {"server:postgres", NULL,
         "/pg/bin/initdb|-D|/d/data|-U|postgres|-A|trust|-E|UTF8|--no-locale"},
        {"server:postgres?initdb={--data-checksums --wal-segsize=64}&role=alice&work_mem=1MB",
         "/l/log",
         "/pg/bin/initdb|-D|/d/data|-X|/l/log|-U|alice|-A|trust|-E|UTF8|--no-locale|"
         "--data-checksums|--wal-segsize=64"},
        {"server:mariadb", NULL,
         "/usr/bin/mariadb-install-db|--no-defaults|--auth-root-authentication-method=normal|"
         "--skip-test-db|--datadir=/d/data"},
        {"server:mariadb?innodb-page-size=8k&sort_buffer_size=1M&initdb=--verbose", "/l/log",
         "/usr/bin/mariadb-install-db|--no-defaults|--auth-root-authentication-method=normal|"
         "--skip-test-db|--datadir=/d/data|--innodb-log-group-home-dir=/l/log|"
         "--innodb-page-size=8k|--verbose"},
        {"server:mysql", NULL,
         "/opt/mysql/bin/mysqld|--no-defaults|--initialize-insecure|--secure-file-priv=NULL|"
         "--datadir=/d/data|--basedir=/opt/mysql"},
        {"server:mysql?lower_case_table_names=1&innodb_redo_log_capacity=2G", "/l/log",
         "/opt/mysql/bin/mysqld|--no-defaults|--initialize-insecure|--secure-file-priv=NULL|"
         "--datadir=/d/data|--basedir=/opt/mysql|--innodb-log-group-home-dir=/l/log|"
         "--lower_case_table_names=1|--innodb_redo_log_capacity=2G"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        check_command(cases[i].target, cases[i].log, &kind_of(cases[i].target)->plan_make,
                      cases[i].command);
}

static void the_command_that_is_the_server(void **state)
{
#define PG                                                                  \
    "/pg/bin/postgres|-D|/d/data|-c|config_file=/tmp/r/postgresql.conf|-c|" \
    "unix_socket_directories=/tmp/r|-c|listen_addresses=|-c|port=5432|-c|"  \
    "logging_collector=off|-c|log_destination=stderr"
    static const struct {
        const char *target, *command;
    } cases[] = {
        {"server:postgres", PG},
        {"server:postgres?shared_buffers=1GB&cluster_name={a 'b' = $c}",
         PG "|-c|shared_buffers=1GB|-c|cluster_name=a 'b' = $c"},
        {"server:postgres?from=/old", PG "|-c|archive_mode=off"},
        {"server:postgres?from=/old&archive-mode=on", PG "|-c|archive-mode=on"},
        {"server:mariadb?sort_buffer_size=1M", "/usr/sbin/mariadbd|--defaults-file=/tmp/r/my.cnf"},
        {"server:mysql", "/opt/mysql/bin/mysqld|--defaults-file=/tmp/r/my.cnf|"
                         "--basedir=/opt/mysql"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        check_command(cases[i].target, NULL, &kind_of(cases[i].target)->plan_start,
                      cases[i].command);
}

static void the_commands_that_make_a_copy(void **state)
{
#define CP "cp|-a|--reflink=never|-T|"
    static const struct {
        const char *target, *log, *log_from, *commands;
    } cases[] = {
        {"server:postgres?from=/s", NULL, "",
         CP "/s|/d/data\nrm|-f|/d/data/postmaster.pid|/d/data/postmaster.opts\n"},
        {"server:postgres?from=/s", "/l", "",
         CP "/s|/d/data\nrm|-f|/d/data/postmaster.pid|/d/data/postmaster.opts\n" CP
            "/d/data/pg_wal|/l\nrm|-rf|/d/data/pg_wal\nln|-s|/l|/d/data/pg_wal\n"},
        {"server:postgres?from=/s", NULL, "/w",
         CP "/s|/d/data\nrm|-f|/d/data/postmaster.pid|/d/data/postmaster.opts\n"
            "rm|-f|/d/data/pg_wal\n" CP "/w|/d/data/pg_wal\n"},
        {"server:postgres?from=/s", "/l", "/w",
         CP "/s|/d/data\nrm|-f|/d/data/postmaster.pid|/d/data/postmaster.opts\n"
            "rm|-f|/d/data/pg_wal\n" CP "/w|/l\nln|-s|/l|/d/data/pg_wal\n"},
        {"server:mysql?from=/s", NULL, "", CP "/s|/d/data\nrm|-f|/d/data/auto.cnf\n"},
        {"server:mariadb?from=/s", "/l", "",
         CP "/s|/d/data\nrm|-f|/d/data/auto.cnf\n"
            "find|/d/data|-maxdepth|1|(|-name|ib_logfile*|-o|-name|#innodb_redo|)|-exec|mv|-t|/l|"
            "{}|+\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct planned planned;
        struct commands commands = {0};
        struct str text = STR_INIT;
        planned_init(&planned, cases[i].target, cases[i].log);
        planned.plan.kind->plan_copy(&planned.plan, "/s", cases[i].log_from, &commands);
        for (size_t k = 0; k < commands.n_items; k++) {
            char *line = joined(&commands.items[k]);
            str_addf(&text, "%s\n", line);
            free(line);
        }
        assert_string_equal(text.buf, cases[i].commands);
        str_release(&text);
        commands_release(&commands);
        server_wish_release(&planned.wish);
    }
}

static void settings_files_keep_hostile_values_whole(void **state)
{
#define MY "# Written by prony for one run.\n[mysqld]\ndatadir=\"/d/data\"\n"
#define MY_REST                                                                                 \
    "socket=\"/tmp/r/socket\"\npid_file=\"/tmp/r/pid\"\nskip_networking=1\ntmpdir=\"/tmp/r\"\n" \
    "local_infile=1\n"
    static const struct {
        const char *target, *log, *run, *text;
    } cases[] = {
        {"server:postgres?work_mem=1MB", NULL, "/tmp/r",
         "# Written by prony for one run; settings of the target are on the command line.\n"
         "include_if_exists = '/d/data/postgresql.conf'\nhba_file = '/tmp/r/pg_hba.conf'\n"},
        {"server:postgres", NULL, "/tmp/it's a \\ #1\n",
         "# Written by prony for one run; settings of the target are on the command line.\n"
         "include_if_exists = '/d/data/postgresql.conf'\n"
         "hba_file = '/tmp/it''s a \\\\ #1\\n/pg_hba.conf'\n"},
        {"server:mariadb", "/l", "/tmp/r", MY "innodb_log_group_home_dir=\"/l\"\n" MY_REST},
        {"server:mariadb?tmpdir=/x&local-infile=0", NULL, "/tmp/r",
         MY "socket=\"/tmp/r/socket\"\npid_file=\"/tmp/r/pid\"\nskip_networking=1\n"
            "tmpdir=\"/x\"\nlocal-infile=\"0\"\n"},
        {"server:mariadb?from=/s&init_connect={ set @a=\"b\\c\" # d }&sql_mode=", NULL, "/tmp/r",
         MY MY_REST "loose_skip_slave_start=1\ninit_connect=\" set @a=\\\"b\\\\c\\\" # d \"\n"
                    "sql_mode=\"\"\n"},
        {"server:mariadb?init_connect=%0a%5bclient%5d%0d%09x", NULL, "/tmp/r",
         MY MY_REST "init_connect=\"\\n[client]\\r\\tx\"\n"},
        {"server:mysql?innodb_flush_method=O_DIRECT", NULL, "/tmp/r",
         MY MY_REST "loose_mysqlx=0\nsecure_file_priv=NULL\ninnodb_flush_method=\"O_DIRECT\"\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct planned planned;
        struct str text = STR_INIT;
        planned_init(&planned, cases[i].target, cases[i].log);
        planned.plan.run = (char *)cases[i].run;
        planned.plan.kind->settings_text(&planned.plan, &text);
        assert_string_equal(text.buf, cases[i].text);
        str_release(&text);
        server_wish_release(&planned.wish);
    }
}

static void a_socket_directory_is_one_entry_of_the_list(void **state)
{
    static const struct {
        const char *run, *word;
    } cases[] = {
        {"/tmp/prony-ab12", "unix_socket_directories=/tmp/prony-ab12"},
        {"/tmp/a, b", "unix_socket_directories=\"/tmp/a, b\""},
        {"/tmp/a\"b", "unix_socket_directories=\"/tmp/a\"\"b\""},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct planned planned;
        struct words argv = {0};
        planned_init(&planned, "server:postgres", NULL);
        planned.plan.run = (char *)cases[i].run;
        planned.plan.kind->plan_start(&planned.plan, &argv);
        assert_string_equal(argv.items[6], cases[i].word);
        words_release(&argv);
        server_wish_release(&planned.wish);
    }
}

static void the_url_that_reaches_it(void **state)
{
    static const struct {
        const char *target;
        bool with_database;
        const char *url;
    } cases[] = {
        {"server:postgres", false, "postgres:?host=/tmp/r&port=5432&user=postgres&dbname=postgres"},
        {"server:postgres?role=al&database=shop", true,
         "postgres:?host=/tmp/r&port=5432&user=al&dbname=shop"},
        {"server:mariadb", false,
         "mysql://root@localhost?socket=/tmp/r/socket&defaults_file=/tmp/r/my.cnf"},
        {"server:mariadb?engine=aria", true,
         "mysql://root@localhost/prony?socket=/tmp/r/socket&defaults_file=/tmp/r/my.cnf&"
         "engine=aria"},
        {"server:mysql?database=shop", true,
         "mysql://root@localhost/shop?socket=/tmp/r/socket&defaults_file=/tmp/r/my.cnf"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct planned planned;
        struct str text = STR_INIT;
        planned_init(&planned, cases[i].target, NULL);
        planned.plan.kind->url(&planned.plan, cases[i].with_database, &text);
        assert_string_equal(text.buf, cases[i].url);
        str_release(&text);
        server_wish_release(&planned.wish);
    }
}

// ---- tuning

#define MB (INT64_C(1) << 20)
#define GB (INT64_C(1) << 30)

static void tuning_follows_memory_cores_and_clients(void **state)
{
    static const struct {
        void (*tune)(const struct tune_input *, struct kvs *);
        struct tune_input input;
        const char *settings;
    } cases[] = {
        {tune_postgres,
         {.ram_bytes = 16 * GB, .cpus = 4, .clients = 8, .log_free_bytes = 100 * GB},
         "max_connections=100 shared_buffers=4096MB effective_cache_size=12288MB "
         "maintenance_work_mem=1024MB work_mem=20MB wal_buffers=16MB max_wal_size=8192MB "
         "min_wal_size=2048MB checkpoint_completion_target=0.9 max_worker_processes=8 "
         "max_parallel_workers=8 max_parallel_workers_per_gather=2"},
        {tune_postgres,
         {.ram_bytes = GB / 2, .cpus = 1, .clients = 200, .log_free_bytes = GB},
         "max_connections=220 shared_buffers=128MB effective_cache_size=384MB "
         "maintenance_work_mem=64MB work_mem=4MB wal_buffers=16MB max_wal_size=512MB "
         "min_wal_size=128MB checkpoint_completion_target=0.9"},
        {tune_postgres, // never less than a server can live with, never more than helps
         {.ram_bytes = 1024 * GB, .cpus = 64, .clients = 1, .log_free_bytes = 0},
         "max_connections=100 shared_buffers=65536MB effective_cache_size=786432MB "
         "maintenance_work_mem=2048MB work_mem=819MB wal_buffers=16MB max_wal_size=256MB "
         "min_wal_size=80MB checkpoint_completion_target=0.9 max_worker_processes=64 "
         "max_parallel_workers=64 max_parallel_workers_per_gather=4"},
        {tune_innodb,
         {.ram_bytes = 16 * GB, .cpus = 4, .clients = 8, .log_free_bytes = -1},
         "max_connections=151 innodb_buffer_pool_size=12288M innodb_log_file_size=1024M "
         "innodb_log_buffer_size=64M innodb_flush_method=O_DIRECT"},
        {tune_innodb,
         {.ram_bytes = GB / 2, .cpus = 4, .clients = 300, .log_free_bytes = 600 * MB},
         "max_connections=320 innodb_buffer_pool_size=128M innodb_log_file_size=300M "
         "innodb_log_buffer_size=64M innodb_flush_method=O_DIRECT"},
        {tune_innodb,
         {.ram_bytes = 4 * GB, .cpus = 2, .clients = 8, .log_free_bytes = 10 * MB},
         "max_connections=151 innodb_buffer_pool_size=2048M innodb_log_file_size=48M "
         "innodb_log_buffer_size=64M innodb_flush_method=O_DIRECT"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct kvs settings = KVS_INIT;
        struct str text = STR_INIT;
        cases[i].tune(&cases[i].input, &settings);
        for (size_t k = 0; k < settings.n; k++)
            str_addf(&text, "%s%s=%s", k ? " " : "", settings.items[k].key,
                     settings.items[k].value);
        assert_string_equal(text.buf, cases[i].settings);
        str_release(&text);
        kvs_release(&settings);
    }
}

// ---- what a server says

static void the_line_that_says_why(void **state)
{
    static const struct {
        const char *kind, *log, *fault;
    } cases[] = {
        {"server:postgres", "2026-11-30 22:00:00 UTC [7] LOG:  starting\nx [7] FATAL:  no\nhint\n",
         "FATAL:  no"},
        {"server:postgres", "a [7] LOG:  ok\na [8] PANIC:  could not locate\na LOG:  down\n",
         "a [8] PANIC:  could not locate"},
        {"server:postgres", "creating\ninitdb: error: directory\ninitdb: hint: none\n",
         "initdb: error: directory"},
        {"server:postgres", "initdb: unrecognized option '-y'\nTry --help\n",
         "initdb: unrecognized option '-y'"},
        {"server:mariadb", "t 0 [Note] a\nt 0 [ERROR] unknown variable 'x'\nt 0 [ERROR] Aborting\n",
         "[ERROR] unknown variable 'x'"},
        {"server:mariadb", "one\ntwo", "two"},
        {"server:mariadb", "one\ntwo\n", "two"},
        {"server:mariadb", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str fault = STR_INIT;
        child_fault(kind_of(cases[i].kind), cases[i].log, &fault);
        assert_string_equal(fault.buf, cases[i].fault);
        str_release(&fault);
    }
}

// ---- places

static char *temp_dir(void)
{
    char *path = mem_strdup("/tmp/prony-test-server-XXXXXX");

    assert_non_null(mkdtemp(path));
    return path;
}

// Makes a file or, where the name ends so, a directory.
static void make(const char *dir, const char *name)
{
    char *path = mem_printf("%s/%s", dir, name);
    size_t len = strlen(path);

    if (path[len - 1] == '/') {
        assert_int_equal(mkdir(path, 0700), 0);
    } else {
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        fclose(file);
    }
    free(path);
}

static void data_directories_are_found_or_have_room(void **state)
{
    static const struct {
        const char *kind, *files; // with blanks between
        const char *place;        // below the directory; NULL: refused
        bool exists;
    } cases[] = {
        {"server:postgres", "", "/postgres", false},
        {"server:postgres", "lost+found/", "/postgres", false},
        {"server:postgres", "mariadb/ mariadb-log/ postgres-log/", "/postgres", false},
        {"server:postgres", "PG_VERSION", "", true},
        {"server:postgres", "postgres/ postgres/PG_VERSION lost+found/", "/postgres", true},
        {"server:postgres", "postgres/", NULL, false}, // not whole
        {"server:postgres", "thesis.txt", NULL, false},
        {"server:postgres", "ibdata1", NULL, false}, // of another kind
        {"server:postgres", "postgresql/", NULL, false},
        {"server:mariadb", "ibdata1", "", true},
        {"server:mysql", "", "/mysql", false},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *dir = temp_dir();
        char out[PATH_MAX];
        enum place_state found;
        struct err err = ERR_INIT;
        struct words files = {0};

        assert_int_equal(words_split(&files, cases[i].files, NULL), 0);
        for (size_t k = 0; k < files.n_items; k++)
            make(dir, files.items[k]);
        int rc = place_find_data(kind_of(cases[i].kind), dir, out, &found, &err);
        if ((rc == 0) != (cases[i].place != NULL))
            fail_msg("%s with %s: %d %s", cases[i].kind, cases[i].files, rc, err.text);
        if (rc == 0) {
            assert_string_equal(out + strlen(dir), cases[i].place);
            assert_int_equal(found == PLACE_EXISTING, cases[i].exists);
        }
        for (size_t k = files.n_items; k-- > 0;) {
            char *path = mem_printf("%s/%s", dir, files.items[k]);
            assert_int_equal(remove(path), 0);
            free(path);
        }
        words_release(&files);
        assert_int_equal(rmdir(dir), 0);
        free(dir);
    }
}

static void a_place_is_a_path_or_dir(void **state)
{
    static const struct {
        const char *text, *path; // NULL: refused
    } cases[] = {
        {"/no/where", "/no/where"},
        {"/no/where///", "/no/where"},
        {"dir:/no/where", "/no/where"},
        {"dir:path=/no/w", "/no/w"},
        {"/usr/bin/../lib", "/usr/lib"},
        {"loop:size=1G", NULL},
        {"dir:", NULL},
        {"dir:/a,b=c", NULL},
        {"dir:size=1", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char out[PATH_MAX];
        struct err err = ERR_INIT;
        int rc = place_of_text("data", cases[i].text, out, &err);
        if ((rc == 0) != (cases[i].path != NULL))
            fail_msg("%s: %d %s", cases[i].text, rc, err.text);
        if (rc == 0)
            assert_string_equal(out, cases[i].path);
    }
}

// ---- what shapes the files

static void write_program(const char *dir, const char *name, const char *says)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\necho '%s'\n", says);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
}

static void a_state_has_what_is_cut_into_the_files_and_no_more(void **state)
{
    static const struct {
        const char *target, *shape, *plain;
    } cases[] = {
        {"server:postgres?shared_buffers=1GB&wal_level=minimal&stop=kill&initdb={-k --x=1}",
         "server.kind=postgres server.version=15.20 server.initdb=-k server.initdb=--x=1 "
         "server.setting.wal_level=minimal ",
         "server:postgres?wal_level=minimal&initdb={-k --x=1}&bin=BIN&stop=fast"},
        {"server:postgres?data=loop:size=1G,fs=ext4&log=@fast&role=me&database=d",
         "server.kind=postgres server.version=15.20 server.role=me server.database=d ",
         "server:postgres?data=loop:size=1G,fs=ext4&log=@fast&role=me&database=d&bin=BIN&"
         "stop=fast"},
        {"server:mariadb?innodb_buffer_pool_size=1G&innodb-page-size=8k&engine=aria",
         "server.kind=mariadb server.version=10.11.1-MariaDB server.engine=aria "
         "server.setting.innodb-page-size=8k ",
         "server:mariadb?innodb-page-size=8k&engine=aria&bin=BIN&stop=fast"},
    };
    char dir[] = "/tmp/prony-test-server-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    write_program(dir, "postgres", "postgres (PostgreSQL) 15.20 (Debian)");
    write_program(dir, "initdb", "x");
    write_program(dir, "mariadbd", "mariadbd  Ver 10.11.1-MariaDB for Linux");
    write_program(dir, "mariadb-install-db", "x");
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str target = STR_INIT, shape = STR_INIT, plain = STR_INIT, wanted = STR_INIT;
        struct kvs facts = KVS_INIT;
        struct err err = ERR_INIT;
        const char *bin = strstr(cases[i].plain, "BIN");
        str_addf(&target, "%s&bin=%s", cases[i].target, dir);
        str_addf(&wanted, "%.*s%s%s", (int)(bin - cases[i].plain), cases[i].plain, dir, bin + 3);
        if (server_shape(target.buf, &facts, &plain, &err) < 0)
            fail_msg("%s: %s", target.buf, err.text);
        for (size_t k = 0; k < facts.n; k++)
            str_addf(&shape, "%s=%s ", facts.items[k].key, facts.items[k].value);
        assert_string_equal(shape.buf, cases[i].shape);
        assert_string_equal(plain.buf, wanted.buf);
        kvs_release(&facts);
        str_release(&target);
        str_release(&shape);
        str_release(&plain);
        str_release(&wanted);
    }
    assert_int_equal(tree_remove(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_becomes_a_wish),
        cmocka_unit_test(wrong_targets_are_refused_with_the_reason),
        cmocka_unit_test(the_command_that_makes_a_data_directory),
        cmocka_unit_test(the_command_that_is_the_server),
        cmocka_unit_test(the_commands_that_make_a_copy),
        cmocka_unit_test(settings_files_keep_hostile_values_whole),
        cmocka_unit_test(a_socket_directory_is_one_entry_of_the_list),
        cmocka_unit_test(the_url_that_reaches_it),
        cmocka_unit_test(tuning_follows_memory_cores_and_clients),
        cmocka_unit_test(the_line_that_says_why),
        cmocka_unit_test(data_directories_are_found_or_have_room),
        cmocka_unit_test(a_place_is_a_path_or_dir),
        cmocka_unit_test(a_state_has_what_is_cut_into_the_files_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
