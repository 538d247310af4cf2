// prony: the table of commands, and what stands before a command: --help, --version, a mistyped
// name.
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/version.h"
#include "db/db.h"

const struct command *const commands[] = {
    &command_init,
    &command_run,
    &command_study,
    &command_check,
    &command_list,
    &command_show,
    &command_compare,
    &command_baseline,
    &command_history,
    &command_sql,
    &command_export,
    &command_import,
    &command_probe,
    &command_state,
    &command_volume,
    &command_vdisk,
    NULL,
};

static void print_help(FILE *out)
{
    fputs("prony measures a database on the storage under it: a real transaction load,\n"
          "results kept in a file you can query, and the doubts that stand on them.\n\n"
          "Usage: prony COMMAND [ARGUMENT]... [--OPTION]...\n\n",
          out);
    for (int i = 0; commands[i]; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->options->name, commands[i]->options->summary);
    fputs("\nTargets: sqlite:PATH?journal_mode=wal   postgres://USER@HOST/DATABASE\n"
          "         mysql://USER@HOST/DATABASE?engine=innodb   null:?latency=2ms\n"
          "         sqlite, postgres, mysql: the client library's own defaults\n"
          "         server:postgres, server:mariadb, server:mysql: prony starts one\n\n"
          "  prony run sqlite: tpcb -T 10s         a first result, on the disk you stand on\n"
          "  prony run server:postgres tpcb        the same on a PostgreSQL of its own\n"
          "  prony COMMAND --help                  options of a command\n"
          "  man prony                             the manual\n",
          out);
}

static void print_version(void)
{
    printf("prony %s\nengines:", PRONY_VERSION);
    for (const char *const *engine = db_engines(); *engine; engine++)
        printf(" %s", *engine);
#ifdef HAVE_URING
    const char *loops = "ring-uring ring-epoll threads";
#else
    const char *loops = "ring-epoll threads";
#endif
    printf("\nloops: %s\nsqlite library: %s\n", loops, sqlite3_libversion());
#ifdef HAVE_FUSE
    puts("virtual disks: yes");
#else
    puts("virtual disks: no, built without libfuse3");
#endif
}

// Sections of the manual for every command, from the same rows that parse and help.
static void print_manual(void)
{
    for (int i = 0; commands[i]; i++)
        opt_print_mdoc(commands[i]->options, stdout);
}

static int unknown_command(const char *typed)
{
    const char *names[ARR_LEN(commands)];
    struct err err = ERR_INIT;
    int n = 0;

    for (; commands[n]; n++)
        names[n] = commands[n]->options->name;
    names[n] = NULL;
    text_unknown("command", typed, names, &err);
    return cmd_fail(&err);
}

// Widths of characters are asked of the locale. Others than UTF-8 would only change what a letter
// is.
static void take_locale(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C");
}

// mkfs and losetup lie where only an administrator's PATH looks; under su it often does not.
static void look_in_sbin(void)
{
    const char *path = getenv("PATH");
    char *longer = mem_printf("%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "/usr/bin:/bin");

    setenv("PATH", longer, 1);
    free(longer);
}

int main(int argc, char **argv)
{
    look_in_sbin();
    take_locale();
    signal(SIGCHLD, SIG_DFL); // ignored, as some supervisors leave it, no child's end is told
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    const char *name = argv[1];
    bool help = strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    for (int i = 0; commands[i]; i++) {
        const struct opt_command *options = commands[i]->options;
        if (strcmp(name, options->name) == 0)
            return commands[i]->run(argc - 1, argv + 1);
        if (help && argc > 2 && strcmp(argv[2], options->name) == 0) {
            opt_print_help(options, stdout);
            return cmd_finish_output(0);
        }
    }
    if (help && argc == 2)
        print_help(stdout);
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        print_version();
    else if (strcmp(name, "--manual-options") == 0) // the build makes docs/prony.1 with it
        print_manual();
    else
        return unknown_command(help ? argv[2] : name);
    return cmd_finish_output(0);
}
