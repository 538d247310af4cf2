#include "cmd/state_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/progress.h"
#include "load/fill.h"

#define DIR_NAME "prony-states"
#define DB_FILE  "prony.db" // of a database that lies in a state

char *state_default_dir(const char *store)
{
    const char *from_environment = getenv("PRONY_STORE");

    if (!store)
        store = from_environment && *from_environment ? from_environment : "";
    const char *slash = strrchr(store, '/');
    return slash ? mem_printf("%.*s/" DIR_NAME, (int)(slash - store), store) : mem_strdup(DIR_NAME);
}

int state_options_check(struct state_options *o, struct err *err)
{
    if (!o->text)
        return 0;
    size_t len = strcspn(o->text, ",");
    char *place = mem_strndup(o->text, len);
    char *slash = strrchr(place, '/');
    int rc = 0;

    o->name = mem_strdup(slash ? slash + 1 : place);
    if (slash)
        o->dir = mem_strndup(place, slash == place ? 1 : (size_t)(slash - place));
    free(place);
    for (const char *word = o->text + len; *word && rc == 0; word += len) {
        len = 1 + strcspn(word + 1, ",");
        bool shares = len == 5 && strncmp(word, ",fast", len) == 0;
        bool verifies = len == 7 && strncmp(word, ",verify", len) == 0;
        o->shares |= shares;
        o->verifies |= verifies;
        if (!shares && !verifies)
            rc = err_set(err, ERR_USAGE,
                         "--state %s: must be NAME or DIR/NAME, then ,fast or ,verify", o->text);
    }
    return rc == 0 && volume_check_name(o->name, err) < 0
               ? err_set(err, ERR_USAGE,
                         "--state %s: a state's name is auto, or 1 to 32 letters, digits, '-', '_' "
                         "or '.'",
                         o->text)
               : rc;
}

void state_options_release(struct state_options *o)
{
    free(o->name);
    free(o->dir);
    o->name = o->dir = NULL;
}

// ---- the key

// One of the places: as an image, what shapes it; as files it may lie anywhere.
static int add_place(struct kvs *shape, const char *key, const char *text,
                     const struct setup_wish *wish, struct err *err)
{
    struct volumes_one one = {0};
    struct str words = STR_INIT, none = STR_INIT;

    int rc = volumes_open(&one, text, key, wish->volumes, NULL, wish->stop, err);
    if (rc == 0 && one.volume && volume_has_image(one.volume)) {
        str_add(&words, "image ");
        volume_shape(one.volume, &words);
    } else {
        str_add(&words, "files");
    }
    if (rc == 0)
        kvs_add(shape, key, words.buf);
    volumes_close(&one, &none);
    str_release(&words);
    str_release(&none);
    return rc;
}

static int add_places(struct kvs *shape, const struct setup_wish *wish, struct err *err)
{
    char *data, *log;
    int rc = places_find_volumes(wish->url, &data, &log, err);

    if (rc == 0)
        rc = add_place(shape, "data", data, wish, err);
    if (rc == 0 && places_has_log(wish->url))
        rc = add_place(shape, "log", log, wish, err);
    free(data);
    free(log);
    return rc;
}

static int64_t scale_of(const struct setup_wish *wish)
{
    if (wish->scale > 0)
        return wish->scale;
    return wish->clients > 10 ? wish->clients : 10;
}

// The key's text, the target that makes the state (plain), and the one that runs on it (named).
static int shape_of(const struct setup_wish *wish, struct str *key, struct str *plain,
                    struct str *named, struct err *err)
{
    const struct workload_builtin *builtin =
        wish->workload ? workload_find_builtin(wish->workload) : NULL;
    struct kvs shape = KVS_INIT;

    if (!builtin)
        return err_set(
            err, ERR_USAGE,
            "--state is of the tables of a built-in workload: name one, or leave --state "
            "away");
    kvs_add(&shape, "state", "1");
    kvs_addf(&shape, "tables", "%s version %d, scale %lld", builtin->schema->name,
             builtin->schema->version, (long long)scale_of(wish));
    int rc = server_is_target(wish->url) ? server_shape(wish->url, &shape, plain, err)
                                         : db_shape(wish->url, DB_FILE, &shape, plain, named, err);
    if (rc < 0)
        err_prefix(err, "--state");
    if (rc == 0 && server_is_target(wish->url))
        str_add(named, wish->url);
    if (rc == 0)
        rc = add_places(&shape, wish, err);
    for (size_t i = 0; i < shape.n; i++)
        str_addf(key, "%s %s\n", shape.items[i].key, shape.items[i].value);
    kvs_release(&shape);
    return rc;
}

// ---- made

static int fill(struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    struct progress progress = {.quiet = wish->quiet};
    struct fill_options options = {
        .scale = setup->scale,
        .stop = (volatile sig_atomic_t *)wish->stop,
        .tick = progress_fill_tick,
        .arg = &progress,
    };
    struct fill_report report;

    int rc = setup_check_room(setup, err);
    if (rc == 0)
        rc = fill_tables(setup->target, setup->builtin->schema, &options, &report, err);
    progress_end(&progress);
    return rc;
}

static void say(const struct setup_wish *wish, const char *what, const char *name, const char *dir)
{
    if (!wish->quiet)
        cmd_print_safe("%s the state %s in %s", what, name, dir);
    fflush(stdout);
}

// Everything as a run would have it, filled, stopped in order, saved, and undone.
static int make(struct state_use *use, const struct setup_wish *wish, struct state_wish *what,
                struct err *err)
{
    const struct schema *schema = workload_find_builtin(wish->workload)->schema;
    struct setup_wish build = *wish;
    struct setup setup = {0};
    struct state *state = NULL;

    say(wish, "making", what->name ? what->name : "(auto)", what->dir);
    use->places.builds = true;
    build.state = &use->places;
    build.tune = SERVER_TUNE_NONE;
    build.clients = 1;
    build.scale = scale_of(wish);
    build.trace_path = NULL;
    build.host = NULL;
    // The size is an estimate that is right within a factor of two.
    int rc = state_make_room(what->dir, build.scale * schema->bytes_per_scale / 2, err);
    if (rc == 0)
        rc = setup_open(&setup, &build, err);
    what->leftovers = setup.leftovers;
    if (rc == 0)
        rc = state_begin(&state, what, err);
    if (rc == 0)
        rc = fill(&setup, &build, err);
    if (rc == 0) {
        say(wish, "saving", state_name(state), what->dir);
        rc = setup_save(&setup, state, err);
    }
    if (rc == 0)
        use->state = state;
    else
        state_close(state); // before the registry is
    setup.failed = rc < 0 && !(wish->stop && *wish->stop);
    setup_close(&setup);
    use->places.builds = false;
    use->is_new = rc == 0;
    return rc;
}

int state_use_open(struct state_use *use, const struct state_options *options,
                   struct setup_wish *wish, const char *store, struct err *err)
{
    struct str key = STR_INIT, plain = STR_INIT, named = STR_INIT;
    char *dir = options->dir ? mem_strdup(options->dir) : state_default_dir(store);
    bool is_auto = strcmp(options->name, "auto") == 0;

    int rc = shape_of(wish, &key, &plain, &named, err);
    struct state_wish what = {
        .dir = dir,
        .name = is_auto ? NULL : options->name,
        .key = key.buf,
        .stop = wish->stop,
    };
    if (rc == 0)
        rc = state_find(&use->state, &what, err);
    if (rc == 0) {
        use->places.url = str_detach(&plain);
        rc = make(use, wish, &what, err);
        free(use->places.url);
        use->places.url = NULL;
    }
    if (rc >= 0) {
        use->places.url = str_detach(&named);
        use->places.state = use->state;
        use->places.shares = options->shares;
        use->places.verifies = options->verifies;
        wish->state = &use->places;
        wish->scale = scale_of(wish);
        say(wish, "restoring", state_name(use->state), dir);
    }
    free(dir);
    str_release(&key);
    str_release(&plain);
    str_release(&named);
    return rc < 0 ? -1 : 0;
}

// ---- told

void state_use_announce(const struct state_use *use)
{
    const char *cache = kvs_get(&use->places.facts, "state.cache");
    const char *seconds = kvs_get(&use->places.facts, "state.restore_s");

    if (use->state)
        cmd_print_safe("  state  %s, %s in %s s; page cache %s", state_name(use->state),
                       use->places.shares ? "blocks shared" : "copied",
                       seconds ? seconds : "unknown", cache ? cache : "unknown");
}

void state_use_record(const struct state_use *use, struct kvs *environment)
{
    if (!use->state)
        return;
    state_record(use->state, environment);
    kvs_add(environment, "state.made", use->is_new ? "by this run" : "before");
    kvs_copy(environment, &use->places.facts);
}

void state_use_close(struct state_use *use)
{
    state_close(use->state);
    kvs_release(&use->places.facts);
    free(use->places.url);
    *use = (struct state_use){0};
}
