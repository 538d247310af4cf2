// From the text of a target to a wish. Keys that are prony's are a table; all others are settings
// of the server, which alone knows them.
#include "server/server.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "base/url.h"
#include "server/kind.h"

#define SCHEME  "server"
#define WAIT_NS (300 * NS_PER_S)

static const char *const stops[] = {
    [SERVER_STOP_UNSET] = "", "fast", "immediate", "kill", NULL,
};

static const struct {
    const char *key;
    size_t offset; // of a text in the wish
} texts[] = {
    {"data", offsetof(struct server_wish, data)},
    {"log", offsetof(struct server_wish, log)},
    {"from", offsetof(struct server_wish, from)},
    {"bin", offsetof(struct server_wish, bin)},
    {"user", offsetof(struct server_wish, user)},
    {"role", offsetof(struct server_wish, role)},
    {"database", offsetof(struct server_wish, database)},
    {"engine", offsetof(struct server_wish, engine)},
};

bool server_is_target(const char *url)
{
    size_t len = strlen(SCHEME);

    return strncasecmp(url, SCHEME, len) == 0 && (url[len] == ':' || url[len] == '\0');
}

static int parse_stop(struct server_wish *wish, const char *value, struct err *err)
{
    for (int i = SERVER_STOP_FAST; stops[i]; i++)
        if (strcmp(stops[i], value) == 0) {
            wish->stop = (enum server_stop)i;
            return 0;
        }
    return text_unknown("way to stop", value, stops + 1, err);
}

// A near miss of a key of ours that is no setting of the server would be told by the server, in its
// words; only what can be no setting at all is refused here.
static int add_setting(struct server_wish *wish, const char *key, const char *value,
                       struct err *err)
{
    struct str shown = STR_INIT;
    bool fits = isalpha((unsigned char)key[0]) || key[0] == '_';

    for (const char *p = key; *p && fits; p++)
        fits = isalnum((unsigned char)*p) || strchr("_-.", *p);
    if (!fits) {
        text_add_value(&shown, key);
        err_set(err, ERR_USAGE, "%s can be no setting: letters, digits, '_', '-' and '.' make one",
                shown.buf);
        str_release(&shown);
        return -1;
    }
    for (int i = 0; wish->kind->own[i]; i++)
        if (setting_is_named(wish->kind->own[i], key))
            return err_set(err, ERR_USAGE,
                           "%s is prony's to set: its servers listen on a private socket only, and "
                           "data= and log= say where their files are",
                           key);
    if (settings_have(&wish->settings, key))
        return err_set(err, ERR_USAGE, "%s stands twice", key);
    kvs_add(&wish->settings, key, value);
    return 0;
}

static int parse_param(struct server_wish *wish, const char *key, const char *value,
                       struct err *err)
{
    for (size_t i = 0; i < ARR_LEN(texts); i++) {
        char **text = (char **)((char *)wish + texts[i].offset);
        if (strcmp(texts[i].key, key) != 0)
            continue;
        if (*text)
            return err_set(err, ERR_USAGE, "%s= stands twice", key);
        if (!value[0])
            return err_set(err, ERR_USAGE, "%s= is empty", key);
        *text = mem_strdup(value);
        return 0;
    }
    if (strcmp(key, "stop") == 0)
        return parse_stop(wish, value, err);
    if (strcmp(key, "wait") == 0) {
        if (units_parse_duration(value, NS_PER_S, &wish->wait_ns, err) < 0)
            return err_prefix(err, "wait=");
        return wish->wait_ns > 0 ? 0 : err_set(err, ERR_USAGE, "wait=: must be more than 0");
    }
    if (strcmp(key, "initdb") != 0)
        return add_setting(wish, key, value, err);
    struct words words = {0};
    int rc = words_split(&words, value, err);
    if (rc < 0)
        err_prefix(err, "initdb=");
    for (size_t i = 0; i < words.n_items && rc == 0; i++) {
        *ARR_PUSH(wish->make_args, wish->n_make_args, wish->cap_make_args) =
            mem_strdup(words.items[i]);
    }
    words_release(&words);
    return rc;
}

static int parse_kind(struct server_wish *wish, const char *name, struct err *err)
{
    if (!name || !name[0])
        return err_set(err, ERR_USAGE,
                       "which server? server:postgres, server:mariadb or "
                       "server:mysql");
    for (int i = 0; server_kinds[i]; i++)
        if (strcasecmp(server_kinds[i]->name, name) == 0)
            wish->kind = server_kinds[i];
    return wish->kind ? 0 : text_unknown("server", name, server_kind_names(), err);
}

static int check_whole(const struct server_wish *wish, struct err *err)
{
    if (wish->engine && !wish->kind->creates_database)
        return err_set(err, ERR_USAGE, "engine= is for tables of MariaDB and MySQL");
    if (wish->from && wish->n_make_args)
        return err_set(err, ERR_USAGE,
                       "initdb= is for making a data directory, and from= copies one: leave one "
                       "away");
    return 0;
}

int server_wish_parse(struct server_wish *wish, const char *text, struct err *err)
{
    struct str display = STR_INIT;
    struct url url = {0};

    *wish = (struct server_wish){.wait_ns = WAIT_NS};
    if (url_parse(&url, text, err) < 0)
        return -1;
    url_print(&url, false, &display);
    wish->display = str_detach(&display);
    int rc = 0;
    if (url.has_authority)
        rc = err_set(err, ERR_USAGE, "write server:KIND, as in server:postgres?data=/srv/pg");
    if (rc == 0)
        rc = parse_kind(wish, url.path, err);
    for (size_t i = 0; i < url.params.n && rc == 0; i++) {
        rc = parse_param(wish, url.params.items[i].key, url.params.items[i].value, err);
        if (rc < 0)
            err_prefix(err, "server:%s", wish->kind->name);
    }
    if (rc == 0)
        rc = check_whole(wish, err);
    url_release(&url);
    return rc;
}

void server_wish_release(struct server_wish *wish)
{
    for (size_t i = 0; i < ARR_LEN(texts); i++)
        free(*(char **)((char *)wish + texts[i].offset));
    for (size_t i = 0; i < wish->n_make_args; i++)
        free(wish->make_args[i]);
    free(wish->make_args);
    free(wish->display);
    kvs_release(&wish->settings);
    *wish = (struct server_wish){0};
}
