// What shapes a data directory, as far as the target tells; and the target that makes the same with
// nothing else. So all targets that differ only in how a server runs begin from one state.
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/url.h"
#include "server/find.h"
#include "server/kind.h"
#include "server/place.h"

static bool is_shaping(const struct server_kind *kind, const char *name)
{
    for (int i = 0; kind->shaping[i]; i++)
        if (setting_is_named(kind->shaping[i], name))
            return true;
    return false;
}

// Only a directory that may become anything is built in.
static int check_place(const struct server_kind *kind, const char *key, const char *text,
                       struct err *err)
{
    static const char *const below[] = {"", "/"};
    char dir[PATH_MAX], path[PATH_MAX * 2];
    struct stat st;

    if (!text || text[0] == '@' || place_of_text(key, text, dir, NULL) < 0) // a volume
        return 0;
    if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
        return err_set(
            err, ERR_USAGE,
            "%s=%s is no directory that is there: with a state one of its own is made in "
            "it",
            key, text);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s%s/%s", dir, below[i], i ? kind->name : "", kind->mark);
        if (access(path, F_OK) == 0)
            return err_set(err, ERR_USAGE,
                           "%s=%s holds a data directory already, and a state begins with one of "
                           "its own: name another directory, or leave %s= away",
                           key, text, key);
    }
    return 0;
}

static void add_text(struct kvs *shape, const char *key, const char *value)
{
    struct str safe = STR_INIT;

    if (value)
        text_add_redacted(&safe, value);
    if (value)
        kvs_add(shape, key, safe.buf);
    str_release(&safe);
}

static void add_settings(const struct server_wish *wish, struct kvs *shape)
{
    for (size_t i = 0; i < wish->settings.n; i++) {
        struct str key = STR_INIT;
        if (is_shaping(wish->kind, wish->settings.items[i].key)) {
            str_addf(&key, "server.setting.%s", wish->settings.items[i].key);
            add_text(shape, key.buf, wish->settings.items[i].value);
        }
        str_release(&key);
    }
}

// The target without the settings that shape nothing.
static int print_plain(const struct server_wish *wish, const char *text, struct str *out,
                       struct err *err)
{
    struct url url = {0}, plain = {0};

    if (url_parse(&url, text, err) < 0)
        return -1;
    plain.scheme = url.scheme;
    plain.path = url.path;
    for (size_t i = 0; i < url.params.n; i++) {
        const struct kv *item = &url.params.items[i];
        if (strcmp(item->key, "stop") != 0 &&
            (!settings_have(&wish->settings, item->key) || is_shaping(wish->kind, item->key)))
            kvs_add(&plain.params, item->key, item->value);
    }
    kvs_add(&plain.params, "stop", "fast");
    url_print(&plain, true, out);
    kvs_release(&plain.params);
    url_release(&url);
    return 0;
}

int server_shape(const char *text, struct kvs *shape, struct str *plain, struct err *err)
{
    struct server_wish wish;
    struct server_plan plan = {0};
    int rc = server_wish_parse(&wish, text, err);

    if (rc == 0 && wish.from)
        rc = err_set(err, ERR_USAGE,
                     "from= begins from a copy of its own: leave it or --state away");
    if (rc == 0)
        rc = check_place(wish.kind, "data", wish.data, err);
    if (rc == 0)
        rc = check_place(wish.kind, "log", wish.log, err);
    if (rc == 0) {
        plan.kind = wish.kind;
        plan.wish = &wish;
        rc = find_programs(&plan, "", err);
    }
    if (rc == 0) {
        kvs_add(shape, "server.kind", wish.kind->name);
        kvs_add(shape, "server.version", plan.version);
        for (size_t i = 0; i < wish.n_make_args; i++)
            add_text(shape, "server.initdb", wish.make_args[i]);
        add_text(shape, "server.user", wish.user);
        add_text(shape, "server.role", wish.role);
        add_text(shape, "server.database", wish.database);
        add_text(shape, "server.engine", wish.engine);
        add_settings(&wish, shape);
        rc = print_plain(&wish, text, plain, err);
    }
    for (int i = 0; i < SERVER_PROGRAMS_MAX; i++)
        free(plan.programs[i]);
    server_wish_release(&wish);
    return rc;
}
