#include "cmd/places.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "db/db.h"

// ---- what is asked for

struct texts {
    char *data, *log;
};

static void texts_release(struct texts *texts)
{
    free(texts->data);
    free(texts->log);
}

// A directory that a server lives in is the server's matter, also when it is to be made.
static char *volume_of(const char *text)
{
    return text && volume_is_text(text) && strncasecmp(text, "dir:", 4) != 0 ? mem_strdup(text)
                                                                             : NULL;
}

static int find_texts(const char *url, struct texts *ret, struct err *err)
{
    struct server_wish server;

    *ret = (struct texts){0};
    if (!server_is_target(url)) {
        ret->data = db_data_volume(url);
        return 0;
    }
    int rc = server_wish_parse(&server, url, err);
    if (rc == 0) {
        ret->data = volume_of(server.data);
        ret->log = volume_of(server.log);
    }
    server_wish_release(&server);
    return rc;
}

int places_find_volumes(const char *url, char **ret_data, char **ret_log, struct err *err)
{
    struct texts texts;
    int rc = find_texts(url, &texts, err);

    *ret_data = texts.data;
    *ret_log = texts.log;
    return rc;
}

bool places_has_log(const char *url)
{
    struct server_wish server;

    if (!server_is_target(url))
        return false;
    bool has = server_wish_parse(&server, url, NULL) == 0 && server.log;
    server_wish_release(&server);
    return has;
}

bool places_are_wanted(const char *url)
{
    struct texts texts;

    if (server_is_target(url))
        return true;
    (void)find_texts(url, &texts, NULL);
    bool wanted = texts.data != NULL;
    texts_release(&texts);
    return wanted;
}

// ---- volumes

// What is new and goes with the command can hold nothing from before, nor for later.
static int check_fresh(const struct volumes_one *one, const char *key,
                       const struct places_wish *wish, struct err *err)
{
    bool is_server = server_is_target(wish->url);

    if (!one->volume || !volume_is_fresh(one->volume) ||
        (wish->purpose == SERVER_FOR_RUN && (is_server || !db_names_file(wish->url))))
        return 0;
    return err_set(err, ERR_USAGE,
                   "the volume of %s= is new and goes with this command, so nothing can be there "
                   "before or after: %s, or keep one with `prony volume up`",
                   key,
                   wish->purpose == SERVER_FOR_INIT ? "leave init away, for run fills a database "
                                                      "of its own"
                   : is_server                      ? "name where the data is"
                                                    : "leave the file's name away");
}

// What a saved state has of a place as one file is what its volume begins as.
static void use_images(struct places *places, const struct places_wish *wish)
{
    const struct places_state *state = wish->state;

    if (!state || state->builds)
        return;
    places->data.one.image = state_image(state->state, "data");
    places->log.one.image = state_image(state->state, "log");
    places->data.one.shares_image = places->log.one.shares_image = state->shares;
}

static int bring_up(const struct volumes_one *one, const char *key, const struct places_wish *wish,
                    struct err *err)
{
    if (!one->volume)
        return 0;
    if (!wish->quiet && !volume_is_kept(one->volume)) {
        cmd_print_safe("%s the volume of %s=, %s", one->image ? "restoring" : "making", key,
                       volume_text(one->volume));
        fflush(stdout);
    }
    return volume_up(one->volume, err);
}

static int open_volumes(struct places *places, const struct texts *texts,
                        const struct places_wish *wish, struct err *err)
{
    struct volumes_one *data = &places->data.one, *log = &places->log.one;

    use_images(places, wish);
    if (volumes_open(data, texts->data, "data", wish->volumes, wish->leftovers, wish->stop, err) <
            0 ||
        check_fresh(data, "data", wish, err) < 0)
        return -1;
    if (texts->log && texts->data && texts->log[0] == '@' && strcmp(texts->log, texts->data) == 0)
        return err_set(err, ERR_USAGE,
                       "data= and log= are the same volume, %s: leave log= away, or describe two",
                       texts->log);
    if (volumes_open(log, texts->log, "log", wish->volumes, wish->leftovers, wish->stop, err) < 0 ||
        check_fresh(log, "log", wish, err) < 0)
        return -1;
    return bring_up(data, "data", wish, err) < 0 || bring_up(log, "log", wish, err) < 0 ? -1 : 0;
}

// ---- a state

// Where the directory of a place that is kept as files is made: in its volume, in the path that the
// target names, or where one stands.
static int parent_of(const struct place *place, const char *text, char out[PATH_MAX],
                     struct err *err)
{
    if (place->one.volume) {
        snprintf(out, PATH_MAX, "%s", volume_path(place->one.volume));
        return 0;
    }
    if (text && strncasecmp(text, "dir:", 4) == 0)
        text += 4;
    char *real = realpath(text ? text : ".", NULL);
    if (!real)
        return err_set(err, ERR_USAGE, "%s: %s", text ? text : ".", strerror(errno));
    snprintf(out, PATH_MAX, "%s", real);
    free(real);
    return 0;
}

static int open_work(struct place *place, const char *key, const char *text,
                     const struct places_wish *wish, struct err *err)
{
    const struct places_state *state = wish->state;
    struct volume_wish run = {.leftovers = wish->leftovers, .stop = wish->stop};
    struct plan_of_volume *work = &place->work;
    char parent[PATH_MAX];

    work->lock_fd = -1;
    if (parent_of(place, text, parent, err) < 0)
        return -1;
    work->path = mem_printf("%s/.prony-state-%d-%s", strcmp(parent, "/") == 0 ? "" : parent,
                            (int)getpid(), key);
    if (state->builds) {
        struct plan_step *step = plan_command(work, "mkdir", "--mode=755", work->path, NULL);
        step->exclusive = true;
        plan_undo(step, PLAN_TREE, work->path, NULL);
    } else if (!state->shares && state_check_room(state->state, key, parent, err) < 0) {
        return -1;
    } else {
        state_plan_files(state->state, key, work->path, state->shares, work);
    }
    place->dir = work->path;
    return plan_run(work, &run, err);
}

// One place of a set-up with a state, when its volume is up.
static int open_place(struct place *place, const char *key, const char *text,
                      const struct places_wish *wish, struct err *err)
{
    const struct places_state *state = wish->state;

    if (place->one.volume && volume_has_image(place->one.volume)) {
        place->dir = volume_path(place->one.volume);
    } else if (open_work(place, key, text, wish, err) < 0) {
        return -1;
    }
    return state->verifies && !state->builds ? state_verify(state->state, key, place->dir, err) : 0;
}

// What a command says of blocks that it could not share, or the kernel of those that it will not
// mount, does not name the cause.
static void explain_sharing(struct err *err)
{
    if (strstr(err->text, STATE_SHARES))
        err_prefix(err, "a fast restore shares blocks between the state and the place it goes to, "
                        "so both must lie on one file system that can (btrfs, xfs)");
    else if (strstr(err->text, ": mount "))
        err_prefix(err, "a fast restore: a file with shared blocks may take requests of 4096 bytes "
                        "only, so its file system must have been made for that (ext4: mkfs={-b "
                        "4096}, xfs: mkfs={-s size=4096})");
}

static int open_state(struct places *places, const struct places_wish *wish, int64_t begin_ns,
                      struct err *err)
{
    struct places_state *state = wish->state;
    struct server_wish server = {0};
    bool is_server = server_is_target(wish->url);

    int rc = is_server ? server_wish_parse(&server, wish->url, err) : 0;
    if (rc == 0)
        rc = open_place(&places->data, "data", server.data, wish, err);
    if (rc == 0 && server.log)
        rc = open_place(&places->log, "log", server.log, wish, err);
    if (is_server)
        server_wish_release(&server);
    if (rc < 0 || state->builds)
        return rc;
    const char *dirs[] = {places->data.dir, places->log.dir, NULL};
    kvs_add(&state->facts, "state.restore", state->shares ? "fast" : "copy");
    if (state->verifies)
        kvs_add(&state->facts, "state.verified", "yes");
    state_settle(dirs, &state->facts);
    kvs_addf(&state->facts, "state.restore_s", "%.3f",
             (double)(clock_now_ns(&clock_system) - begin_ns) / 1e9);
    return 0;
}

static int save_place(struct place *place, const char *key, struct state *state, struct err *err)
{
    if (!place->dir)
        return 0;
    if (state_note(state, key, place->dir, err) < 0)
        return -1;
    if (place->work.path)
        return state_add_files(state, key, place->dir, err);
    return volume_rest(place->one.volume, err) < 0
               ? -1
               : state_add_image(state, key, place->one.volume, err);
}

int places_save(struct places *places, struct state *state, struct err *err)
{
    struct str report = STR_INIT;
    int rc = 0;

    if (places->server) {
        rc = server_finish(places->server, err);
        server_keep(places->server); // goes with its place
        server_close(places->server, rc < 0, &report);
        places->server = NULL;
    }
    if (rc == 0)
        rc = save_place(&places->data, "data", state, err);
    if (rc == 0)
        rc = save_place(&places->log, "log", state, err);
    if (rc == 0)
        rc = state_commit(state, err);
    if (report.len)
        fprintf(stderr, "prony: %s", report.buf);
    str_release(&report);
    return rc;
}

const char *places_data_dir(const struct places *places)
{
    if (places->server)
        return NULL;
    return places->data.dir          ? places->data.dir
           : places->data.one.volume ? volume_path(places->data.one.volume)
                                     : NULL;
}

// ---- a server

static void say_line(void *arg, const char *line)
{
    (void)arg;
    cmd_print_safe("%s", line);
    fflush(stdout);
}

// What a server's program said, above the one line that says what it means.
static void print_words(const char *words)
{
    struct str safe = STR_INIT;

    fflush(stdout);
    for (const char *line = words; *line;) {
        size_t len = strcspn(line, "\n");
        char *text = mem_strndup(line, len);
        str_clear(&safe);
        text_add_safe(&safe, text);
        fprintf(stderr, "  | %s\n", safe.buf);
        free(text);
        line += len + (line[len] == '\n');
    }
    str_release(&safe);
}

static const char *dir_of(const struct place *place)
{
    return !place->dir && place->one.volume ? volume_path(place->one.volume) : place->dir;
}

static int start_server(struct places *places, const struct places_wish *wish, struct err *err)
{
    const struct volume *data = places->data.one.volume;
    bool is_restored = wish->state && !wish->state->builds;
    struct server_options options = {
        .leftovers = wish->leftovers,
        .purpose = wish->purpose,
        .tune = wish->tune,
        .clients = wish->clients,
        .data_dir = dir_of(&places->data),
        .log_dir = dir_of(&places->log),
        .data_goes = is_restored || (!wish->state && data && volume_is_fresh(data)),
        .is_restored = is_restored,
        .stop = wish->stop,
        .say = wish->quiet ? NULL : say_line,
    };
    struct str words = STR_INIT;

    const char *url = wish->state ? wish->state->url : wish->url;
    int rc = server_start(&places->server, url, &options, &words, err);
    if (rc < 0)
        print_words(words.buf);
    str_release(&words);
    return rc;
}

// ---- all of it

int places_open(struct places *places, const struct places_wish *wish, struct err *err)
{
    bool is_server = server_is_target(wish->url);
    int64_t begin_ns = clock_now_ns(&clock_system);
    struct texts texts;

    places->leftovers = wish->leftovers;
    if (!is_server && wish->tune != SERVER_TUNE_NONE)
        return err_set(err, ERR_USAGE,
                       "--tune is for servers that prony starts: server:postgres, server:mariadb, "
                       "server:mysql");
    int rc = find_texts(wish->url, &texts, err);
    if (rc == 0)
        rc = open_volumes(places, &texts, wish, err);
    if (rc == 0 && wish->state)
        rc = open_state(places, wish, begin_ns, err);
    if (rc < 0 && wish->state && wish->state->shares)
        explain_sharing(err);
    if (rc == 0 && is_server)
        rc = start_server(places, wish, err);
    texts_release(&texts);
    return rc;
}

static void close_place(struct place *place, struct leftovers *leftovers, struct str *report)
{
    if (place->work.path) {
        (void)plan_undo_all(&place->work, leftovers, report);
        plan_release(&place->work);
    }
    volumes_close(&place->one, report);
    place->dir = NULL;
}

void places_close(struct places *places, bool failed)
{
    struct str report = STR_INIT;

    server_close(places->server, failed, &report);
    places->server = NULL;
    close_place(&places->log, places->leftovers, &report);
    close_place(&places->data, places->leftovers, &report);
    if (report.len)
        fprintf(stderr, "prony: %s", report.buf);
    str_release(&report);
}

static void record_volume(const struct volumes_one *one, const char *prefix,
                          struct kvs *environment)
{
    if (one->volume)
        volume_record(one->volume, prefix, environment);
}

void places_record(const struct places *places, struct kvs *environment)
{
    record_volume(&places->data.one, "volume.data", environment);
    record_volume(&places->log.one, "volume.log", environment);
    if (places->server)
        server_record(places->server, environment);
}
