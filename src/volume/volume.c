// Volumes as text, and their life around a plan.
#include "volume/volume.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "volume/type.h"

#define NAME_MAX_LEN 32

// ---- names

int volume_check_name(const char *name, struct err *err)
{
    size_t len = strlen(name);
    bool good = len >= 1 && len <= NAME_MAX_LEN && name[0] != '-' && name[0] != '.';

    for (const char *p = name; good && *p; p++)
        good = isalnum((unsigned char)*p) || strchr("-_.", *p);
    if (good)
        return 0;
    struct str shown = STR_INIT;
    text_add_value(&shown, name);
    err_set(err, ERR_USAGE,
            "volume name %s: must be 1 to %d letters, digits, '-', '_' or '.', beginning with a "
            "letter or digit",
            shown.buf, NAME_MAX_LEN);
    str_release(&shown);
    return -1;
}

int volume_add_name(struct kvs *names, const char *text, struct err *err)
{
    const char *equals = strchr(text, '=');
    const char *colon = strchr(text, ':');

    if (!equals || (colon && colon < equals))
        return err_set(err, ERR_USAGE,
                       "--volume %s: must be NAME=TYPE:..., as fast=loop:size=2G,fs=ext4", text);
    char *name = mem_strndup(text, (size_t)(equals - text));
    int rc = volume_check_name(name, err);
    if (rc == 0 && kvs_get(names, name))
        rc = err_set(err, ERR_USAGE, "--volume %s is given twice", name);
    if (rc == 0)
        kvs_add(names, name, equals + 1);
    free(name);
    return rc;
}

static const struct volume_type *find_type(const char *name)
{
    for (size_t i = 0; volume_types[i]; i++)
        if (strcmp(volume_types[i]->name, name) == 0)
            return volume_types[i];
    return NULL;
}

bool volume_is_text(const char *text)
{
    size_t len = strcspn(text, ":");

    if (text[0] == '@')
        return true;
    for (size_t i = 0; volume_types[i]; i++)
        if (strlen(volume_types[i]->name) == len &&
            strncasecmp(volume_types[i]->name, text, len) == 0)
            return text[len] == ':';
    return false;
}

static int unknown_type(const char *type, struct err *err)
{
    const char **names;
    size_t n = 0;

    while (volume_types[n])
        n++;
    names = mem_calloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = volume_types[i]->name;
    text_unknown("volume type", type, names, err);
    free(names);
    return -1;
}

// ---- values of keys

static int check_keys(const struct volume *volume, struct err *err)
{
    const struct volume_key *keys = volume->type->keys;
    const char **names;
    size_t n = 0;
    int rc = 0;

    while (keys[n].name)
        n++;
    names = mem_calloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = keys[i].name;
    for (size_t i = 0; rc == 0 && i < volume->spec.params.n; i++) {
        size_t k = 0;
        const char *key = volume->spec.params.items[i].key;
        while (k < n && strcmp(key, names[k]) != 0)
            k++;
        if (k == n && (!volume->type->others || text_near_miss(key, names)))
            rc = text_unknown("setting", key, names, err);
    }
    free(names);
    return rc;
}

const char *volume_value(const struct volume *volume, const char *key)
{
    return kvs_get(&volume->spec.params, key);
}

int volume_size(const struct volume *volume, const char *key, int64_t standard, int64_t *ret,
                struct err *err)
{
    const char *value = volume_value(volume, key);

    *ret = standard;
    if (value && units_parse_size(value, ret, err) < 0)
        return err_prefix(err, "%s", key);
    return 0;
}

int volume_choice(const struct volume *volume, const char *key, const char *const *choices,
                  int standard, int *ret, struct err *err)
{
    const char *value = volume_value(volume, key);

    *ret = standard;
    if (!value)
        return 0;
    for (int i = 0; choices[i]; i++) {
        if (strcmp(choices[i], value) == 0) {
            *ret = i;
            return 0;
        }
    }
    struct str words = STR_INIT, shown = STR_INIT;
    text_add_words(&words, choices);
    text_add_value(&shown, value);
    err_set(err, ERR_USAGE, "%s=%s: must be %s", key, shown.buf, words.buf);
    str_release(&words);
    str_release(&shown);
    return -1;
}

char *volume_mount_point(const struct volume *volume, struct err *err)
{
    const char *at = volume_value(volume, "at");
    struct stat st;
    char *point = NULL;

    if (!at) {
        point = mem_printf("%s/%s", VOLUME_MOUNT_DIR, volume->name);
    } else {
        // The directory is made, so its parent is what can be resolved.
        char *copy = mem_strdup(at);
        size_t len = strlen(copy);
        while (len > 1 && copy[len - 1] == '/')
            copy[--len] = '\0';
        char *slash = strrchr(copy, '/');
        const char *base = slash ? slash + 1 : copy;
        if (slash)
            *slash = '\0';
        char *dir = realpath(slash ? (slash == copy ? "/" : copy) : ".", NULL);
        if (dir && *base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0)
            point = mem_printf("%s/%s", strcmp(dir, "/") == 0 ? "" : dir, base);
        else
            err_set(err, ERR_USAGE, "at=%s: %s", at,
                    dir ? "names no new directory" : strerror(errno));
        free(dir);
        free(copy);
    }
    if (point && lstat(point, &st) == 0) {
        err_set(err, ERR_USAGE,
                at ? "at=%s is there already: name a directory that can be made"
                   : "%s is there already: take that volume down, or give this one another name",
                at ? at : point);
        free(point);
        point = NULL;
    }
    return point;
}

// ---- life

static int plan(struct volume *volume, struct err *err)
{
    volume->type = find_type(volume->spec.type);
    if (!volume->type)
        return unknown_type(volume->spec.type, err);
    if (volume->wish.image && !volume->type->plan_save)
        return err_set(err, ERR_USAGE, "volume %s: cannot begin as an image", volume->spec.type);
    if (check_keys(volume, err) < 0 || volume->type->plan(volume, &volume->plan, err) < 0)
        return err_prefix(err, "volume %s", volume->spec.type);
    assert(volume->plan.path);
    return 0;
}

// One that is up: its directory is locked like any other.
static int open_kept(struct volume *volume, const char *name, struct err *err)
{
    size_t n;
    struct volume_kept *list = volume_list_kept(&n);
    const struct volume_kept *found = NULL;
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            found = &list[i];
    if (!found)
        rc = err_set(err, ERR_USAGE,
                     "@%s: there is no such volume; describe it with --volume %s=TYPE:..., or "
                     "bring it up with `prony volume up %s=TYPE:...`",
                     name, name, name);
    else if (!found->here)
        rc = err_set(err, ERR_USAGE, "@%s is gone since the machine was started anew", name);
    else if (spec_parse(&volume->spec, found->text, err) < 0)
        rc = -1;
    else {
        volume->is_kept = true;
        free(volume->name);
        volume->name = mem_strdup(name);
        volume->plan.path = mem_strdup(found->path);
        volume->plan.lock = mem_strdup(found->path);
    }
    volume_kept_free(list, n);
    return rc;
}

static int open_text(struct volume *volume, const char *text, struct err *err)
{
    const struct volume_wish *wish = &volume->wish;
    const char *meant = text;

    if (text[0] == '@') {
        if (volume_check_name(text + 1, err) < 0)
            return -1;
        meant = wish->names ? kvs_get(wish->names, text + 1) : NULL;
        if (!meant)
            return open_kept(volume, text + 1, err);
        if (meant[0] == '@')
            return err_set(err, ERR_USAGE, "--volume %s=%s: must be NAME=TYPE:...", text + 1,
                           meant);
    }
    if (spec_parse(&volume->spec, meant, err) < 0)
        return -1;
    return plan(volume, err);
}

int volume_open(struct volume **ret, const char *text, const struct volume_wish *wish,
                struct err *err)
{
    struct volume *volume = mem_calloc(1, sizeof(*volume));
    struct str printed = STR_INIT;

    assert(wish->name);
    volume->wish = *wish;
    volume->plan.lock_fd = -1;
    volume->name = mem_strdup(wish->name);
    if (volume_check_name(wish->name, err) < 0 || open_text(volume, text, err) < 0) {
        volume_free(volume);
        return -1;
    }
    spec_print(&volume->spec, &printed);
    volume->text = str_detach(&printed);
    *ret = volume;
    return 0;
}

void volume_use(struct volume *volume, struct leftovers *leftovers)
{
    volume->wish.leftovers = leftovers;
}

static int bring_up(struct volume *volume, struct err *err)
{
    const struct volume_type *type = volume->type; // NULL: it is kept, and up

    if (plan_lock(&volume->plan, err) < 0)
        return -1;
    if (type && type->before && type->before(volume, err) < 0)
        return -1;
    if (plan_run(&volume->plan, &volume->wish, err) < 0)
        return -1;
    return type && type->ready ? type->ready(volume, &volume->facts, err) : 0;
}

int volume_up(struct volume *volume, struct err *err)
{
    struct str report = STR_INIT;

    assert(!volume->is_up);
    int rc = bring_up(volume, err);
    volume->is_up = true;
    if (rc == 0)
        return 0;
    err_prefix(err, "volume %s", volume->text);
    if (volume_down(volume, &report) > 0)
        err_set(err, err->kind, "%s; then %s", err->text, report.buf);
    str_release(&report);
    return -1;
}

static bool is_aside(const struct volume *volume, const char *key)
{
    for (const struct volume_key *row = volume->type->keys; row->name; row++)
        if (strcmp(row->name, key) == 0)
            return row->is_aside;
    return false;
}

void volume_shape(const struct volume *volume, struct str *out)
{
    struct spec shape = {.type = volume->spec.type};

    assert(volume->type);
    for (size_t i = 0; i < volume->spec.params.n; i++) {
        const struct kv *item = &volume->spec.params.items[i];
        if (!is_aside(volume, item->key))
            kvs_add(&shape.params, item->key, item->value);
    }
    spec_print(&shape, out);
    kvs_release(&shape.params);
}

bool volume_has_image(const struct volume *volume)
{
    // A journal apart is not in the image.
    return volume->type && volume->type->plan_save && !volume->plan.journal;
}

int volume_rest(struct volume *volume, struct err *err)
{
    struct str report = STR_INIT;

    assert(volume->is_up && volume_has_image(volume) && volume->plan.n_rest > 0);
    int failures =
        plan_undo_from(&volume->plan, volume->plan.n_rest, volume->wish.leftovers, &report);
    report.buf[strcspn(report.buf, "\n")] = '\0';
    if (failures > 0)
        err_set(err, ERR_FAILED, "volume %s: %s", volume->text, report.buf);
    str_release(&report);
    return failures > 0 ? -1 : 0;
}

int volume_save(struct volume *volume, const char *path, struct err *err)
{
    struct plan_of_volume plan = {.lock_fd = -1};
    struct volume_wish wish = volume->wish;

    assert(volume->is_up && volume_has_image(volume));
    int rc = volume->type->plan_save(volume, path, &plan, err);
    if (rc == 0)
        rc = plan_run(&plan, &wish, err);
    plan_release(&plan);
    return rc < 0 ? err_prefix(err, "volume %s", volume->text) : 0;
}

int volume_down(struct volume *volume, struct str *report)
{
    if (!volume || !volume->is_up)
        return 0;
    volume->is_up = false;
    return plan_undo_all(&volume->plan, volume->wish.leftovers, report);
}

void volume_free(struct volume *volume)
{
    if (!volume)
        return;
    plan_release(&volume->plan);
    spec_release(&volume->spec);
    kvs_release(&volume->facts);
    free(volume->text);
    free(volume->name);
    free(volume);
}

// ---- events

bool volume_is_event(const char *text)
{
    static const char *const verbs[] = {"offline:", "online:", "replace:", NULL};

    for (const char *const *verb = verbs; *verb; verb++)
        if (strncmp(text, *verb, strlen(*verb)) == 0)
            return true;
    return false;
}

int volume_event_script(const struct volume *volume, const char *event, struct str *script,
                        struct err *err)
{
    const struct volume_type *type = find_type(volume->spec.type);

    assert(type && volume_is_event(event));
    if (!type->event)
        return err_set(err, ERR_USAGE, "%s: that is for volumes of zfs, and this is %s", event,
                       volume->text);
    return type->event(volume, event, script, err);
}

// ---- telling

const char *volume_path(const struct volume *volume)
{
    return volume->plan.path;
}

const char *volume_text(const struct volume *volume)
{
    return volume->text;
}

bool volume_is_kept(const struct volume *volume)
{
    return volume->is_kept;
}

bool volume_is_fresh(const struct volume *volume)
{
    return volume->type && volume->type->fresh;
}

void volume_print_up(const struct volume *volume, struct str *out)
{
    plan_print_up(&volume->plan, out);
}

void volume_print_down(const struct volume *volume, struct str *out)
{
    plan_print_down(&volume->plan, out);
}

void volume_list_commands(const struct volume *volume, struct kvs *out)
{
    const struct plan_of_volume *plan = &volume->plan;
    struct str line = STR_INIT;

    for (size_t i = 0; i < plan->n_steps; i++) {
        str_clear(&line);
        plan_print_step(plan, i, &line);
        if (plan->steps[i].destroys)
            kvs_add(out, "destroys", line.buf);
        kvs_add(out, "up", line.buf);
    }
    for (size_t i = plan->n_steps; i-- > 0;) {
        str_clear(&line);
        plan_print_undo(plan, i, &line);
        if (line.len)
            kvs_add(out, "down", line.buf);
    }
    str_release(&line);
}

void volume_record(const struct volume *volume, const char *prefix, struct kvs *environment)
{
    char *key = mem_printf("%s.text", prefix);

    kvs_add(environment, key, volume->text);
    free(key);
    key = mem_printf("%s.path", prefix);
    kvs_add(environment, key, volume->plan.path);
    free(key);
    for (size_t i = 0; i < volume->plan.n_steps; i++) {
        struct str line = STR_INIT;
        plan_print_step(&volume->plan, i, &line);
        key = mem_printf("%s.command.%zu", prefix, i + 1);
        kvs_add(environment, key, line.buf);
        free(key);
        str_release(&line);
    }
    for (size_t i = 0; i < volume->facts.n; i++) {
        key = mem_printf("%s.%s", prefix, volume->facts.items[i].key);
        kvs_add(environment, key, volume->facts.items[i].value);
        free(key);
    }
}
