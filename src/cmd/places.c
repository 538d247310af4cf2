#include "cmd/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int bring_up(const struct volumes_one *one, const char *key, const struct places_wish *wish,
                    struct err *err)
{
    if (!one->volume)
        return 0;
    if (!wish->quiet && !volume_is_kept(one->volume)) {
        cmd_print_safe("making the volume of %s=, %s", key, volume_text(one->volume));
        fflush(stdout);
    }
    return volume_up(one->volume, err);
}

static int open_volumes(struct places *places, const struct texts *texts,
                        const struct places_wish *wish, struct err *err)
{
    if (volumes_open(&places->data, texts->data, "data", wish->volumes, wish->leftovers, wish->stop,
                     err) < 0 ||
        check_fresh(&places->data, "data", wish, err) < 0)
        return -1;
    if (texts->log && texts->data && texts->log[0] == '@' && strcmp(texts->log, texts->data) == 0)
        return err_set(err, ERR_USAGE,
                       "data= and log= are the same volume, %s: leave log= away, or describe two",
                       texts->log);
    if (volumes_open(&places->log, texts->log, "log", wish->volumes, wish->leftovers, wish->stop,
                     err) < 0 ||
        check_fresh(&places->log, "log", wish, err) < 0)
        return -1;
    return bring_up(&places->data, "data", wish, err) < 0 ||
                   bring_up(&places->log, "log", wish, err) < 0
               ? -1
               : 0;
}

const char *places_data_dir(const struct places *places)
{
    return places->data.volume && !places->server ? volume_path(places->data.volume) : NULL;
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

static int start_server(struct places *places, const struct places_wish *wish, struct err *err)
{
    struct server_options options = {
        .leftovers = wish->leftovers,
        .purpose = wish->purpose,
        .tune = wish->tune,
        .clients = wish->clients,
        .data_dir = places->data.volume ? volume_path(places->data.volume) : NULL,
        .log_dir = places->log.volume ? volume_path(places->log.volume) : NULL,
        .data_goes = places->data.volume && volume_is_fresh(places->data.volume),
        .stop = wish->stop,
        .say = wish->quiet ? NULL : say_line,
    };
    struct str words = STR_INIT;

    int rc = server_start(&places->server, wish->url, &options, &words, err);
    if (rc < 0)
        print_words(words.buf);
    str_release(&words);
    return rc;
}

// ---- all of it

int places_open(struct places *places, const struct places_wish *wish, struct err *err)
{
    bool is_server = server_is_target(wish->url);
    struct texts texts;

    if (!is_server && wish->tune != SERVER_TUNE_NONE)
        return err_set(err, ERR_USAGE,
                       "--tune is for servers that prony starts: server:postgres, server:mariadb, "
                       "server:mysql");
    int rc = find_texts(wish->url, &texts, err);
    if (rc == 0)
        rc = open_volumes(places, &texts, wish, err);
    if (rc == 0 && is_server)
        rc = start_server(places, wish, err);
    texts_release(&texts);
    return rc;
}

void places_close(struct places *places, bool failed)
{
    struct str report = STR_INIT;

    server_close(places->server, failed, &report);
    places->server = NULL;
    volumes_close(&places->log, &report);
    volumes_close(&places->data, &report);
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
    record_volume(&places->data, "volume.data", environment);
    record_volume(&places->log, "volume.log", environment);
    if (places->server)
        server_record(places->server, environment);
}
