#include "cmd/setup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "watch/storage.h"
#include "load/connect_error.h"

#define NULL_TARGET "null:" // stands for a target that is not worth opening
#define SPARE_FILES 64      // that a run has open besides its sessions

int setup_connect_error(struct db_target *target, const struct db_result *result, struct err *err)
{
    return connect_error(&(struct connect_failure){.target = target, .result = result}, err);
}

// debug() in scripts speaks on stderr, as pgbench's does.
static void say_debug(void *arg, const char *line)
{
    (void)arg;
    fprintf(stderr, "%s\n", line);
}

static int setup_compile(struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    struct workload_options options = {
        .placeholder = db_placeholder(setup->target),
        .protocol = wish->protocol,
        .caps = db_caps(setup->target),
        .scale = setup->scale,
        .seed = (int64_t)wish->seed,
        .clients = (int)wish->clients,
        .defines = wish->defines,
        .debug = say_debug,
    };
    int rc = wish->workload
                 ? workload_load_builtin(&setup->workload, wish->workload, &options, err)
                 : workload_load_files(&setup->workload, wish->files, wish->n_files, &options, err);

    if (rc < 0)
        return rc;
    for (int i = 0; i < setup->workload->n_statements; i++)
        if (setup->workload->statements[i].kind == DB_KIND_WRITE)
            setup->writes = true;
    db_set_statements(setup->target, setup->workload->n_statements, wish->protocol);
    return 0;
}

// The tables a run would use: those of the built-in; for script files pgbench's, whose scale such
// scripts commonly want as :scale.
static int setup_look(struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    const struct schema *schema = setup->builtin ? setup->builtin->schema : &schema_tpcb;
    struct db_session *session;
    struct db_result result;
    struct err ignored = ERR_INIT;

    enum db_class class = db_connect(setup->target, -1, &session, &result);
    if (class != DB_OK)
        return setup_connect_error(setup->target, &result, err);
    if (wish->purpose == SERVER_FOR_INIT)
        db_describe_place(session, &setup->facts);
    else
        db_describe(session, &setup->facts);
    int rc = 0;
    if (!(db_caps(setup->target) & DB_CAP_HOLLOW))
        rc = fill_look(session, schema, &setup->look, setup->builtin ? err : &ignored);
    if (wish->purpose == SERVER_FOR_INIT)
        setup->session = session;
    else
        db_disconnect(session);
    if (rc < 0 && setup->builtin)
        return rc;
    if (wish->scale > 0)
        setup->scale = wish->scale;
    else if (setup->look.scale > 0)
        setup->scale = setup->look.scale;
    else if (setup->builtin)
        setup->scale = wish->clients > 10 ? wish->clients : 10;
    else
        setup->scale = 1;
    bool is_new = setup->look.state == FILL_ABSENT &&
                  (wish->state ? wish->state->builds : setup->places.server != NULL);
    setup->fills = setup->builtin && wish->purpose == SERVER_FOR_RUN &&
                   (db_is_temporary(setup->target) || is_new);
    return 0;
}

int setup_open(struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    memset(setup, 0, sizeof(*setup));
    setup->builtin = wish->workload ? workload_find_builtin(wish->workload) : NULL;
    // A workload that does not exist is told before anyone connects; scripts are compiled after the
    // look, since they may use :scale.
    bool unknown = wish->workload && !setup->builtin;
    if (leftovers_open(&setup->leftovers, err) < 0)
        return -1;
    struct places_wish places_wish = {
        .url = wish->url,
        .purpose = wish->purpose,
        .tune = wish->tune,
        .clients = wish->clients,
        .volumes = wish->volumes,
        .leftovers = setup->leftovers,
        .stop = wish->stop,
        .state = wish->state,
        .quiet = wish->quiet,
    };
    struct host_wish host = {.leftovers = setup->leftovers};
    if (wish->host) {
        host.items = wish->host->items;
        host.n = wish->host->n;
    }
    if (!unknown && ((host.n && host_set(&setup->host, &host, err) < 0) ||
                     places_open(&setup->places, &places_wish, err) < 0)) {
        setup_close(setup);
        return -1;
    }
    const struct places *places = &setup->places;
    struct db_open_options options = {
        .clock = &clock_system,
        .seed = wish->seed,
        .leftovers = setup->leftovers,
        .trace_path = wish->trace_path,
        .protocol = wish->protocol,
        .create_missing = wish->purpose == SERVER_FOR_INIT || (wish->state && wish->state->builds),
        .data_dir = places_data_dir(places),
        .display = places->server ? server_display(places->server)
                   : wish->state  ? wish->url
                                  : NULL,
    };
    const char *url = places->server                            ? server_url(places->server)
                      : unknown && places_are_wanted(wish->url) ? NULL_TARGET
                      : wish->state                             ? wish->state->url
                                                                : wish->url;
    if (db_open(&setup->target, url, &options, err) < 0 ||
        (!unknown && setup_look(setup, wish, err) < 0) || setup_compile(setup, wish, err) < 0) {
        setup_close(setup);
        return -1;
    }
    return 0;
}

// Sets ERR_USAGE to the words and the command that makes the tables, ready to be typed.
__attribute__((format(printf, 4, 5))) static int say_init(const struct setup *setup, int64_t scale,
                                                          struct err *err, const char *fmt, ...)
{
    struct str text = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    str_add(&text, " `prony init ");
    text_add_shell(&text, db_display(setup->target));
    str_addf(&text, " %s -s %lld`", setup->builtin->name, (long long)scale);
    err_set(err, ERR_USAGE, "%s", text.buf);
    str_release(&text);
    return -1;
}

// MySQL's tables may lie in another storage engine than the target asks for: results under the
// wrong name would be a lie, and statements would follow capabilities that the tables do not have.
static int check_table_engine(const struct setup *setup, struct err *err)
{
    const char *asked = kvs_get(&setup->facts.settings, "engine");
    const char *is = kvs_get(&setup->facts.settings, "table_engine");

    if (!asked || !is || strncmp(is, "unknown", 7) == 0 || strcasecmp(asked, is) == 0)
        return 0;
    return say_init(setup, setup->scale, err,
                    "engine=%s: the tables of %s in %s are of %s: name that in the target, or make "
                    "them again with",
                    asked, setup->builtin->name, db_display(setup->target), is);
}

static int check_tables(const struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    const char *target = db_display(setup->target);
    const char *name = setup->builtin->name;

    if (setup->fills)
        return setup_check_room(setup, err);
    if (setup->look.state == FILL_ABSENT)
        return say_init(setup, setup->scale, err,
                        "the tables of %s are missing in %s: make them with", name, target);
    if (setup->look.state == FILL_PARTIAL)
        return say_init(setup, setup->scale, err,
                        "the tables of %s in %s are not whole (%s): make them again with", name,
                        target, setup->look.detail);
    if (wish->scale > 0 && setup->look.scale > 0 && wish->scale != setup->look.scale)
        return say_init(setup, wish->scale, err,
                        "--scale %lld: the tables of %s in %s have scale %lld; leave --scale away, "
                        "or make them again with",
                        (long long)wish->scale, name, target, (long long)setup->look.scale);
    return check_table_engine(setup, err);
}

// The size is an estimate that is right within a factor of two on all engines.
int setup_check_room(const struct setup *setup, struct err *err)
{
    const struct db_facts *facts = &setup->facts;
    int64_t bytes = setup->scale * setup->builtin->schema->bytes_per_scale;
    char needed[UNITS_MAX], there[UNITS_MAX];
    struct storage storage;

    if (!facts->data_path[0])
        return 0;
    storage_describe(facts->data_path, &storage);
    int64_t room = storage.free_bytes;
    if (setup->look.state != FILL_ABSENT && facts->data_bytes > 0)
        room += facts->data_bytes; // is dropped first
    if (storage.free_bytes < 0 || bytes / 2 <= room)
        return 0;
    return err_set(err, ERR_USAGE,
                   "--scale: %s at scale %lld takes about %s and %s has %s free: use a smaller "
                   "scale, or another volume",
                   setup->builtin->name, (long long)setup->scale, units_format_bytes(bytes, needed),
                   storage.mount_point, units_format_bytes(room, there));
}

// A session of a server is a socket.
static int check_open_files(const struct setup *setup, const struct setup_wish *wish,
                            struct err *err)
{
    if (!db_has_loop(setup->target, "ring"))
        return 0;
    int64_t limit = proc_allow_files(wish->clients + SPARE_FILES);
    if (limit >= wish->clients + SPARE_FILES)
        return 0;
    return err_set(
        err, ERR_USAGE,
        "--clients %lld: this process may open %lld files, and needs one for each client "
        "and %d others: raise the limit of open files (ulimit -n %lld), or use at most "
        "%lld clients",
        (long long)wish->clients, (long long)limit, SPARE_FILES,
        (long long)(wish->clients + SPARE_FILES),
        (long long)(limit > SPARE_FILES ? limit - SPARE_FILES : 0));
}

int setup_check_run(const struct setup *setup, const struct setup_wish *wish, struct err *err)
{
    const struct db_facts *facts = &setup->facts;
    bool hollow = db_caps(setup->target) & DB_CAP_HOLLOW;

    if (facts->read_only && setup->writes)
        return err_set(err, ERR_USAGE,
                       "%s is read-only (%s) and the workload %s writes: use select-only, or a "
                       "target that can be written",
                       db_display(setup->target), facts->read_only_why, setup->workload->name);
    int left = facts->max_connections - facts->connections_used;
    if (facts->max_connections > 0 && wish->clients > left)
        return err_set(err, ERR_USAGE,
                       "--clients %lld: %s allows %d connections (%s) and %d are in use; use at "
                       "most %d clients, or raise %s",
                       (long long)wish->clients, db_display(setup->target), facts->max_connections,
                       facts->max_connections_setting, facts->connections_used, left > 0 ? left : 0,
                       facts->max_connections_setting);
    if (check_open_files(setup, wish, err) < 0)
        return -1;
    if (setup->builtin && !hollow)
        return check_tables(setup, wish, err);
    return 0;
}

void setup_print_place(const char *what, const char *path)
{
    struct storage place;
    char summary[256];

    if (!path[0])
        return;
    storage_describe(path, &place);
    storage_summary(&place, summary, sizeof(summary));
    cmd_print_safe("  %-6s %s: %s", what, place.path, summary);
}

static void close_database(struct setup *setup)
{
    if (setup->session)
        db_disconnect(setup->session);
    setup->session = NULL;
    db_close(setup->target);
    setup->target = NULL;
}

int setup_save(struct setup *setup, struct state *state, struct err *err)
{
    close_database(setup);
    return places_save(&setup->places, state, err);
}

void setup_close(struct setup *setup)
{
    struct str report = STR_INIT;

    workload_free(setup->workload);
    setup->workload = NULL;
    close_database(setup);
    db_facts_release(&setup->facts);
    places_close(&setup->places, setup->failed);
    (void)host_put_back(setup->host, NULL); // what could not be stays listed, and is told below
    setup->host = NULL;
    if (setup->leftovers)
        leftovers_close(setup->leftovers, &report);
    setup->leftovers = NULL;
    if (report.len)
        fprintf(stderr, "prony: not everything could be undone:\n%s", report.buf);
    str_release(&report);
}
