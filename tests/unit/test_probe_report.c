// A probe in words and as JSON: the sentences that follow from its figures, by a table of storages.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "report/probe.h"
#include "report/probe_words.h"

struct scene {
    struct probe_result *probe;
    struct storage place;
    struct kvs environment;
    struct report_probe report;
};

// A rate of exactly so much, the same in every slice but for a spread.
static void set_rate(struct scene *s, enum probe_kind kind, double per_s, double spread)
{
    struct probe_measure *m = &s->probe->measures[kind];

    m->n_slices = PROBE_ROUNDS;
    for (int i = 0; i < PROBE_ROUNDS; i++)
        m->per_s[i] = per_s * (1 + (i % 2 ? spread : -spread));
    interval_of_mean(m->per_s, m->n_slices, &m->rate);
    m->operations = (int64_t)(per_s * 2);
    m->seconds = 2;
    hist_init(&m->latency);
    for (int i = 0; i < 100; i++)
        hist_record(&m->latency, (int64_t)(NS_PER_S / per_s));
}

// A flash disk of the usual kind; nothing about it is doubtful.
static void scene_init(struct scene *s)
{
    static const struct {
        const char *id, *name;
        double per_s;
        int64_t block_bytes;
    } kinds[PROBE_KINDS] = {
        {"log_flush_1", "log flush, 1 writer", 1600, 8192},
        {"log_flush_8", "log flush, 8 writers", 5200, 8192},
        {"log_append_1", "log append, growing file", 800, 8192},
        {"random_read_1", "random read, 1 at a time", 9000, 8192},
        {"random_read_32", "random read, 32 at once", 90000, 8192},
        {"random_write_1", "random write, 1 at a time", 12000, 8192},
        {"random_write_32", "random write, 32 at once", 40000, 8192},
        {"sequential_read", "sequential read", 500, 1048576},
        {"sequential_write", "sequential write", 400, 1048576},
        {"file_create", "file creation", 20000, 0},
    };

    memset(s, 0, sizeof(*s));
    s->probe = mem_calloc(1, sizeof(*s->probe));
    snprintf(s->probe->dir, sizeof(s->probe->dir), "/srv/data");
    s->probe->started_real_ns = 1764513300123456789;
    s->probe->seconds = 20.1;
    s->probe->asked_bytes = s->probe->file_bytes = 512LL << 20;
    s->probe->io = "io_uring";
    s->probe->rounds = PROBE_ROUNDS;
    for (int i = 0; i < PROBE_KINDS; i++) {
        struct probe_measure *m = &s->probe->measures[i];
        m->id = kinds[i].id;
        m->name = kinds[i].name;
        m->how = "somehow";
        m->block_bytes = kinds[i].block_bytes;
        m->by_bytes = m->block_bytes > 8192;
        m->is_block = i >= PROBE_READ_1 && i <= PROBE_WRITE_ALONG;
        set_rate(s, (enum probe_kind)i, kinds[i].per_s, 0.01);
    }
    s->probe->measures[PROBE_FLUSH_8].flushes = s->probe->measures[PROBE_FLUSH_8].operations / 4;
    snprintf(s->place.path, sizeof(s->place.path), "/srv/data");
    snprintf(s->place.fs, sizeof(s->place.fs), "ext4");
    s->place.n_layers = 1;
    s->place.layers[0] = (struct storage_layer){.rotational = 0, .bytes = 1LL << 40};
    snprintf(s->place.layers[0].kind, sizeof(s->place.layers[0].kind), "disk");
    snprintf(s->place.layers[0].name, sizeof(s->place.layers[0].name), "sda");
    snprintf(s->place.layers[0].write_cache, sizeof(s->place.layers[0].write_cache), "write back");
    kvs_add(&s->environment, "host.virtualization", "none seen");
    s->report = (struct report_probe){
        .probe = s->probe,
        .place = &s->place,
        .environment = &s->environment,
        .version = "0.1.0",
        .command = "prony probe /srv/data",
    };
}

static void scene_release(struct scene *s)
{
    probe_free(s->probe);
    kvs_release(&s->environment);
}

static void usual(struct scene *s)
{
    (void)s;
}
static void in_memory(struct scene *s)
{
    s->place.in_memory = true;
    s->place.n_layers = 0;
    snprintf(s->place.fs, sizeof(s->place.fs), "tmpfs");
    snprintf(s->probe->through_cache, sizeof(s->probe->through_cache), "it is memory");
    set_rate(s, PROBE_FLUSH_1, 400000, 0.01);
}
static void on_overlay(struct scene *s)
{
    s->place.is_overlay = true;
}
static void fast_for_its_cache(struct scene *s)
{
    set_rate(s, PROBE_FLUSH_1, 20000, 0.01);
}
static void protected_cache(struct scene *s)
{
    fast_for_its_cache(s);
    snprintf(s->place.layers[0].write_cache, sizeof(s->place.layers[0].write_cache),
             "write through");
}
static void rotating(struct scene *s)
{
    s->place.layers[0].rotational = 1;
    set_rate(s, PROBE_READ_1, 120, 0.01);
    set_rate(s, PROBE_READ_32, 140, 0.01);
    set_rate(s, PROBE_FLUSH_1, 118, 0.01);
    set_rate(s, PROBE_APPEND, 117, 0.01);
}
static void rotating_with_a_cache(struct scene *s)
{
    s->place.layers[0].rotational = 1;
}
static void rotating_they_say(struct scene *s)
{
    rotating_with_a_cache(s);
    kvs_set(&s->environment, "host.virtualization", "virtual machine: VMware");
}
static void through_the_page_cache(struct scene *s)
{
    snprintf(s->probe->through_cache, sizeof(s->probe->through_cache),
             "the file system refuses O_DIRECT");
}
static void on_zfs(struct scene *s)
{
    snprintf(s->place.fs, sizeof(s->place.fs), "zfs");
}
static void on_a_server(struct scene *s)
{
    snprintf(s->place.fs, sizeof(s->place.fs), "nfs4");
    s->place.is_network = true;
}
static void bursts(struct scene *s)
{
    set_rate(s, PROBE_WRITE_32, 40000, 0.3);
}
static void growth_in_doubt(struct scene *s)
{
    set_rate(s, PROBE_APPEND, 1200, 0.5);
}
static void slow_layout(struct scene *s)
{
    s->probe->file_bytes = 100 << 20;
}
static void interrupted(struct scene *s)
{
    s->probe->interrupted = true;
}

static const struct {
    void (*make)(struct scene *s);
    const char *answer;
    const char *meaning; // ids of the sentences
    const char *doubts;
} cases[] = {
    {usual, "1600 flushes/s: at most about 1600 commits/s at one client, 5200 at eight",
     "flush group growth depth scan ", ""},
    {in_memory, "tmpfs is memory, no storage: 400 000 flushes/s there say nothing about a disk", "",
     "data-in-memory "},
    {on_overlay, "1600 flushes/s", "flush group growth depth scan ", "data-on-overlay "},
    {fast_for_its_cache, "20 000 flushes/s", "flush group growth depth scan ", "fast-flush "},
    {protected_cache, "20 000 flushes/s", "flush group growth write-through depth scan ", ""},
    {rotating, "118 flushes/s: at most about 120 commits/s", "flush group depth scan ", ""},
    {rotating_with_a_cache, "1600", "flush group growth depth scan ", "fast-read "},
    {rotating_they_say, "1600", "flush group growth depth scan ", ""},
    {through_the_page_cache, "1600", "flush group growth depth scan ", "through-cache "},
    {on_zfs, "1600", "flush group growth depth scan ", "other-cache "},
    {on_a_server, "1600", "flush group growth depth scan ", "other-cache "},
    {bursts, "1600", "flush group growth depth scan ", "wide-interval "},
    {growth_in_doubt, "1600", "flush group depth scan ", "wide-interval "},
    {slow_layout, "1600", "flush group growth depth scan ", "small-file "},
    {interrupted, "1600 commits/s at one client (interrupted)", "flush group growth depth scan ",
     ""},
};

static char *ids(const struct kvs *list)
{
    struct str out = STR_INIT;

    for (size_t i = 0; i < list->n; i++)
        str_addf(&out, "%s ", list->items[i].key);
    return str_detach(&out);
}

static void each_storage_gets_its_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct scene s;
        struct str answer = STR_INIT;
        struct kvs meaning = KVS_INIT, doubts = KVS_INIT;
        scene_init(&s);
        cases[i].make(&s);
        probe_words_answer(&s.report, &answer);
        probe_words_meaning(&s.report, &meaning);
        probe_words_doubts(&s.report, &doubts);
        char *meaning_ids = ids(&meaning), *doubt_ids = ids(&doubts);
        assert_non_null(strstr(answer.buf, cases[i].answer));
        assert_string_equal(meaning_ids, cases[i].meaning);
        assert_string_equal(doubt_ids, cases[i].doubts);
        free(meaning_ids);
        free(doubt_ids);
        str_release(&answer);
        kvs_release(&meaning);
        kvs_release(&doubts);
        scene_release(&s);
    }
}

static void sentences_hold_the_figures(void **state)
{
    static const struct {
        void (*make)(struct scene *s);
        const char *id, *says;
    } sayings[] = {
        {usual, "flush", "waits 625 us"},
        {usual, "group", "4.0 writes in each"},
        {usual, "group", "3.2 times"},
        {usual, "growth", "only 800 commits/s"},
        {usual, "depth", "10.0 times"},
        {rotating, "depth", "no faster"},
        {usual, "scan", "100 GiB through takes 3 min 25 s"}, // 102400 MiB at 500 MiB/s
        {usual, "scan", "takes 3.28 s"},                     // 131072 pages at 40000/s
        {protected_cache, "write-through", "sda"},
        {fast_for_its_cache, "fast-flush",
         "50.0 us per flush on sda: a protected cache, or flushes are ignored"},
        {bursts, "wide-interval", "1 of 10"},
        {bursts, "wide-interval", "random write, 32 at once"},
        {slow_layout, "small-file", "only 100 MiB of 512 MiB"},
        {through_the_page_cache, "through-cache", "refuses O_DIRECT"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(sayings); i++) {
        struct scene s;
        struct kvs all = KVS_INIT;
        scene_init(&s);
        sayings[i].make(&s);
        probe_words_meaning(&s.report, &all);
        probe_words_doubts(&s.report, &all);
        const char *text = kvs_get(&all, sayings[i].id);
        assert_non_null(text);
        if (!strstr(text, sayings[i].says))
            fail_msg("\"%s\" is not in: %s", sayings[i].says, text);
        kvs_release(&all);
        scene_release(&s);
    }
}

static char *rendered(const struct report_probe *report, bool as_json)
{
    struct report_style style = {.columns = 80};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (as_json)
        assert_int_equal(report_probe_json(report, out), 0);
    else
        report_probe_text(report, &style, out);
    fclose(out);
    return text;
}

static void the_page_begins_with_the_answer_and_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct scene s;
        int lines = 0;
        scene_init(&s);
        cases[i].make(&s);
        char *text = rendered(&s.report, false), *rest = text, *line;
        while ((line = strsep(&rest, "\n"))) {
            if (lines++ == 0)
                assert_non_null(strstr(line, cases[i].answer));
            assert_true(text_columns(line) <= 80);
        }
        assert_true(lines < 40);
        free(text);
        scene_release(&s);
    }
}

static void what_went_through_the_cache_is_marked(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    char *text = rendered(&s.report, false);
    assert_null(strchr(text, '*'));
    free(text);
    through_the_page_cache(&s);
    text = rendered(&s.report, false);
    assert_non_null(strstr(text, "random read, 1 at a time*"));
    assert_non_null(strstr(text, "sequential write*"));
    assert_null(strstr(text, "log flush, 1 writer*"));
    free(text);
    scene_release(&s);
}

static void names_from_outside_cannot_steer_the_terminal(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    snprintf(s.probe->dir, sizeof(s.probe->dir), "/srv/\033[31mdata");
    snprintf(s.place.layers[0].model, sizeof(s.place.layers[0].model), "\033]0;x\007\xff");
    char *text = rendered(&s.report, false);
    assert_null(strchr(text, '\033'));
    free(text);
    text = rendered(&s.report, true);
    assert_null(strchr(text, '\033'));
    free(text);
    scene_release(&s);
}

static void json_holds_every_promised_key(void **state)
{
    static const char *const keys[] = {
        "schema",      "status",  "prony_version", "command",        "started_utc", "path",
        "answer",      "seconds", "rounds",        "layout_seconds", "file_bytes",  "asked_bytes",
        "io",          "io_why",  "through_cache", "measures",       "meaning",     "warnings",
        "environment",
    };
    static const char *const measure_keys[] = {
        "id",          "how",        "block_bytes", "per_s",   "low_per_s",     "high_per_s",
        "bytes_per_s", "operations", "flushes",     "seconds", "through_cache", "slices_per_s",
        "latency_us",
    };
    struct scene s;

    (void)state;
    scene_init(&s);
    bursts(&s);
    char *text = rendered(&s.report, true);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    for (size_t i = 0; i < ARR_LEN(keys); i++)
        assert_non_null(json_object_get(root, keys[i]));
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "prony.probe/1");
    json_t *measures = json_object_get(root, "measures");
    assert_int_equal(json_array_size(measures), PROBE_KINDS);
    for (size_t i = 0; i < PROBE_KINDS; i++) {
        json_t *m = json_array_get(measures, i);
        for (size_t k = 0; k < ARR_LEN(measure_keys); k++)
            assert_non_null(json_object_get(m, measure_keys[k]));
        assert_int_equal(json_array_size(json_object_get(m, "slices_per_s")), PROBE_ROUNDS);
    }
    json_t *along = json_array_get(measures, PROBE_READ_ALONG);
    double bytes_per_s = json_real_value(json_object_get(along, "bytes_per_s"));
    assert_true(fabs(bytes_per_s - 500.0 * (1 << 20)) < 1);
    assert_true(
        json_is_null(json_object_get(json_array_get(measures, PROBE_CREATE), "bytes_per_s")));
    json_t *warning = json_array_get(json_object_get(root, "warnings"), 0);
    assert_string_equal(json_string_value(json_object_get(warning, "id")), "wide-interval");
    json_decref(root);
    free(text);
    scene_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_storage_gets_its_sentences),
        cmocka_unit_test(sentences_hold_the_figures),
        cmocka_unit_test(the_page_begins_with_the_answer_and_fits),
        cmocka_unit_test(what_went_through_the_cache_is_marked),
        cmocka_unit_test(names_from_outside_cannot_steer_the_terminal),
        cmocka_unit_test(json_holds_every_promised_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
