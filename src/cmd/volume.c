// prony volume: places to put data, brought up and taken down by hand.
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/volumes.h"
#include "volume/type.h"
#include "volume/zfs.h"

struct volume_options {
    struct volumes_options volumes;
    bool quiet, json;
};

#define AT(member) offsetof(struct volume_options, member)

static const struct opt_row rows[] = {
    {"destroy", 0, OPT_LIST, AT(volumes.destroy), .arg = "DEVICE", .group = "Options",
     .help = "what is on this device may be overwritten"},
    {"quiet", 'q', OPT_FLAG, AT(quiet), .unrecorded = true, .help = "print errors only"},
    {"json", 0, OPT_FLAG, AT(json), .unrecorded = true, .help = "plan, list: print JSON"},
    {NULL},
};

static const struct opt_peer peers[] = {
    {"--force", "--destroy DEVICE"},
    {"-f", "--destroy DEVICE"},
    {"--yes", "--destroy DEVICE"},
    {NULL, NULL},
};

static const struct opt_command volume_command = {
    .name = "volume",
    .usage = "plan|up [NAME=]TYPE:KEY=VALUE,... | down NAME... | list | types",
    .summary = "make a place for data, or show how; take it down again",
    .example = "prony volume plan loop:size=2G,fs=ext4,mount={noatime}\n"
               "prony volume up fast=loop:size=2G && prony run 'sqlite:?data=@fast' tpcb",
    .rows = rows,
    .peers = peers,
    .min_args = 1,
    .max_args = -1,
};

// "NAME=TYPE:..." or "TYPE:...", which is named by its type. *ret_name is the caller's to free.
static const char *split_name(const char *text, char **ret_name)
{
    size_t len = strcspn(text, ":=");

    *ret_name = mem_strndup(text, len);
    return text[len] == '=' ? text + len + 1 : text;
}

static int open_one(const char *argument, struct volume_options *options, struct volume_wish *wish,
                    char **ret_name, struct volume **ret, struct err *err)
{
    const char *text = split_name(argument, ret_name);

    if (text[0] == '@')
        return err_set(err, ERR_USAGE, "%s: describe the volume: TYPE:KEY=VALUE,...", text);
    // Wrong texts are told as such, not as wrong names.
    wish->name =
        volume_check_name(*ret_name, text == argument ? NULL : err) == 0 ? *ret_name : NULL;
    if (!wish->name && text != argument)
        return -1;
    if (!wish->name)
        wish->name = "volume";
    *ARR_PUSH(options->volumes.destroy.items, options->volumes.destroy.n,
              options->volumes.destroy.cap) = NULL;
    options->volumes.destroy.n--; // an end mark, not an item
    wish->destroy = options->volumes.destroy.items;
    return volume_open(ret, text, wish, err);
}

static void print_json(json_t *root)
{
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

// Paths may be of bytes that JSON cannot hold.
static json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    struct str safe = STR_INIT;

    if (!value) {
        text_add_safe(&safe, text);
        value = json_string(safe.buf);
        str_release(&safe);
    }
    return value;
}

static void print_plan_json(const char *name, const struct volume *volume)
{
    struct kvs commands = KVS_INIT;
    json_t *root = json_pack("{so so so s[] s[] s[]}", "name", json_text(name), "volume",
                             json_text(volume_text(volume)), "path", json_text(volume_path(volume)),
                             "up", "destroys", "down");

    volume_list_commands(volume, &commands);
    for (size_t i = 0; i < commands.n; i++)
        json_array_append_new(json_object_get(root, commands.items[i].key),
                              json_text(commands.items[i].value));
    print_json(root);
    kvs_release(&commands);
}

static int plan(char **args, struct volume_options *options, struct err *err)
{
    struct volume_wish wish = {0};
    struct volume *volume = NULL;
    struct str out = STR_INIT;
    char *name = NULL;
    int rc = open_one(args[0], options, &wish, &name, &volume, err);

    if (rc == 0 && options->json) {
        print_plan_json(wish.name, volume);
    } else if (rc == 0) {
        volume_print_up(volume, &out);
        str_addf(&out, "# down\n");
        volume_print_down(volume, &out);
        fputs(out.buf, stdout);
    }
    str_release(&out);
    volume_free(volume);
    free(name);
    return rc;
}

static void say(void *arg, const char *line, bool destroys)
{
    const struct volume_options *options = arg;

    if (destroys)
        cmd_print_safe("# what is there is lost:");
    if (!options->quiet || destroys)
        cmd_print_safe("%s", line);
    fflush(stdout);
}

// On stderr, so that the commands alone make the script.
static void tell_progress(void *arg, const char *line)
{
    const struct volume_options *options = arg;

    if (!options->quiet)
        fprintf(stderr, "%s\n", line);
}

static int up(char **args, struct volume_options *options, const volatile sig_atomic_t *stop,
              struct err *err)
{
    struct volume_wish wish = {
        .say = say, .progress = tell_progress, .stays = true, .arg = options, .stop = stop};
    struct volume *volume = NULL;
    char *name = NULL;
    int rc = open_one(args[0], options, &wish, &name, &volume, err);

    if (rc == 0)
        rc = leftovers_open(&wish.leftovers, err);
    if (rc == 0) {
        struct str report = STR_INIT;
        volume_use(volume, wish.leftovers);
        rc = volume_up(volume, err);
        if (rc == 0)
            rc = volume_keep(volume, err);
        else
            leftovers_close(wish.leftovers, &report);
        str_release(&report);
    }
    if (rc == 0 && !options->quiet)
        cmd_print_safe("%s is at %s", name, volume_path(volume));
    volume_free(volume);
    free(name);
    return rc;
}

static int down(int n, char **args, struct volume_options *options, struct err *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        rc = volume_take_down(args[i][0] == '@' ? args[i] + 1 : args[i], err);
        if (rc == 0 && !options->quiet)
            cmd_print_safe("%s is down", args[i]);
    }
    return rc;
}

static void list_json(void)
{
    size_t n;
    struct volume_kept *kept = volume_list_kept(&n);
    json_t *root = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(root, json_pack("{so so so sb}", "name", json_text(kept[i].name),
                                              "volume", json_text(kept[i].text), "path",
                                              json_text(kept[i].path), "here", kept[i].here));
    print_json(root);
    volume_kept_free(kept, n);
}

static void list(void)
{
    size_t n;
    struct volume_kept *kept = volume_list_kept(&n);

    if (n == 0)
        printf("no volume is up\n");
    else
        printf("%-16s %-32s %s\n", "name", "path", "volume");
    for (size_t i = 0; i < n; i++)
        cmd_print_safe("%-16s %-32s %s%s", kept[i].name, kept[i].path, kept[i].text,
                       kept[i].here ? "" : "  (gone since the machine was started anew)");
    volume_kept_free(kept, n);
}

static void print_types(void)
{
    for (size_t i = 0; volume_types[i]; i++) {
        const struct volume_type *type = volume_types[i];
        printf("%s%s: %s\n  %s\n", i ? "\n" : "", type->name, type->summary, type->example);
        for (const struct volume_key *key = type->keys; key->name; key++) {
            char *left = mem_printf("%s=%s", key->name, key->arg);
            printf("    %-22s %s\n", left, key->help);
            free(left);
        }
        if (type->others)
            printf("    %-22s %s\n", "PROPERTY=VALUE", type->others);
    }
}

// What the plan of a zfs volume says where ZFS is zfs-fuse.
static int zfs_fuse(char **args, struct err *err)
{
    static const char *const words[] = {"up", "down", NULL};

    if (volume_check_name(args[1], err) < 0)
        return -1;
    if (strcmp(args[0], "up") == 0)
        return zfs_fuse_up(args[1], err);
    if (strcmp(args[0], "down") == 0)
        return zfs_fuse_down(args[1], err);
    return text_unknown("command of prony volume zfs-fuse", args[0], words, err);
}

static int verb(int n, char **args, void *values, const volatile sig_atomic_t *stop,
                struct err *err)
{
    struct volume_options *options = values;
    static const char *const verbs[] = {"plan", "up", "down", "list", "types", "zfs-fuse", NULL};
    static const struct {
        int least, most;
    } counts[] = {{1, 1}, {1, 1}, {1, -1}, {0, 0}, {0, 0}, {2, 2}};
    int v = 0;

    while (verbs[v] && strcmp(args[0], verbs[v]) != 0)
        v++;
    if (!verbs[v])
        return text_unknown("volume command", args[0], verbs, err);
    n--;
    args++;
    if (options->json && v != 0 && v != 3)
        return err_set(err, ERR_USAGE, "--json is of prony volume plan and list");
    if (n < counts[v].least)
        return err_set(err, ERR_USAGE, "prony volume %s needs %s", verbs[v],
                       v == 2   ? "the NAME of a volume that is up"
                       : v == 5 ? "up or down, and a name"
                                : "a volume: TYPE:KEY=VALUE,...");
    if (counts[v].most >= 0 && n > counts[v].most)
        return err_set(err, ERR_USAGE, "prony volume %s takes %s", verbs[v],
                       counts[v].most ? "one volume" : "no argument");
    switch (v) {
    case 0:
        return plan(args, options, err);
    case 1:
        return up(args, options, stop, err);
    case 2:
        return down(n, args, options, err);
    case 3:
        if (options->json)
            list_json();
        else
            list();
        return 0;
    case 5:
        return zfs_fuse(args, err);
    default:
        print_types();
        return 0;
    }
}

static int volume_main(int argc, char **argv)
{
    struct volume_options options = {0};

    return cmd_run_verb(&volume_command, argc, argv, &options, verb);
}

const struct command command_volume = {&volume_command, volume_main};
