#include "volume/vdisk_spec.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "base/url.h"

enum key_type {
    KEY_SIZE,     // bytes
    KEY_DURATION, // ns, with a unit
    KEY_INT,      // min to max
    KEY_FLAG,     // yes, no
    KEY_CHOICE,   // int: index into words
    KEY_TEXT,
};

struct key {
    const char *name;
    enum key_type type;
    size_t offset;
    const char *arg, *help;
    bool of_model, is_fault;
    int64_t min, max;
    const char *const *words;
};

#define AT(member) offsetof(struct vdisk_spec, member)

const char *const vdisk_survivor_names[] = {"drop", "prefix", "random", "keep", NULL};
static const char *const eio_words[] = {"all", "read", "write", "flush", NULL};

// torn=no is 0.
static const struct key keys[] = {
    {"size", KEY_SIZE, AT(size), "SIZE", "of the disk, a multiple of 4096 bytes"},
    {"model", KEY_CHOICE, AT(model_index), "NAME", "none, hdd-7200, hdd-10k, hdd-15k or ssd-sata",
     .words = vdisk_model_names},
    {"rpm", KEY_INT, AT(model.rpm), "N", "turns per minute of a hard disk; 0: solid state",
     .of_model = true, .max = 1000000},
    {"seek-track", KEY_DURATION, AT(model.seek_track_ns), "DURATION", "to the next track",
     .of_model = true},
    {"seek-full", KEY_DURATION, AT(model.seek_full_ns), "DURATION", "over the whole disk",
     .of_model = true},
    {"read", KEY_DURATION, AT(model.read_ns), "DURATION", "access time of a read",
     .of_model = true},
    {"write", KEY_DURATION, AT(model.write_ns), "DURATION", "accepting a write", .of_model = true},
    {"flush", KEY_DURATION, AT(model.flush_ns), "DURATION",
     "a flush, beside what it has to write out", .of_model = true},
    {"rate", KEY_SIZE, AT(model.rate), "SIZE", "of the medium, per second", .of_model = true},
    {"rate-inner", KEY_SIZE, AT(model.rate_inner), "SIZE", "at the end of a hard disk",
     .of_model = true},
    {"link", KEY_SIZE, AT(model.link_rate), "SIZE", "into the cache, per second", .of_model = true},
    {"channels", KEY_INT, AT(model.channels), "N", "arms or flash channels", .of_model = true,
     .min = 1, .max = VDISK_CHANNELS_MAX},
    {"cache", KEY_SIZE, AT(model.cache_bytes), "SIZE",
     "write cache, bound of what is not flushed; 0: writes are durable at once", .of_model = true},
    {"capacity", KEY_SIZE, AT(model.capacity), "SIZE",
     "of the hard disk whose outer part this is (short stroke)", .of_model = true},
    {"near-floor", KEY_FLAG, AT(near_floor), "yes|no",
     "keep own numbers that the path is too slow for"},
    {"seed", KEY_INT, AT(seed), "N", "of the model: where the platter stands", .max = INT64_MAX},
    {"media", KEY_TEXT, AT(media), "FILE", "holds the contents, kept; else memory"},
    {"protected", KEY_FLAG, AT(is_protected), "yes|no", "the cache survives a cut",
     .is_fault = true},
    {"lying", KEY_FLAG, AT(lying), "yes|no", "flushes are acknowledged and not done",
     .is_fault = true},
    {"torn", KEY_INT, AT(torn), "4096|512|0", "bytes that a cut leaves whole; 0: whole writes",
     .is_fault = true, .max = 4096},
    {"eio-after", KEY_INT, AT(eio_after), "N",
     "that many more requests succeed, then each fails; -1: none fails", .is_fault = true,
     .min = -1, .max = INT64_MAX},
    {"eio", KEY_CHOICE, AT(eio), "KIND", "which fail: all, read, write or flush", .is_fault = true,
     .words = eio_words},
    {"delay", KEY_DURATION, AT(delay_ns), "DURATION", "added to every request", .is_fault = true},
    {"stall", KEY_FLAG, AT(stall), "yes|no", "requests wait until it is taken back",
     .is_fault = true},
};

void vdisk_spec_init(struct vdisk_spec *spec)
{
    *spec = (struct vdisk_spec){
        .model = *vdisk_model_find("none"), .seed = 1, .torn = VDISK_BLOCK, .eio_after = -1};
}

void vdisk_spec_release(struct vdisk_spec *spec)
{
    free(spec->media);
    spec->media = NULL;
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < ARR_LEN(keys); i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

bool vdisk_spec_has_key(const char *name)
{
    return find_key(name) != NULL;
}

const char *vdisk_spec_key(size_t index)
{
    return index < ARR_LEN(keys) ? keys[index].name : NULL;
}

static int read_choice(const struct key *key, const char *value, int *ret, struct err *err)
{
    for (int i = 0; key->words[i]; i++) {
        if (strcmp(key->words[i], value) == 0) {
            *ret = i;
            return 0;
        }
    }
    return text_unknown("value", value, key->words, err);
}

static int read_flag(const char *value, bool *ret, struct err *err)
{
    static const char *const yes[] = {"yes", "on", "true", "1"};
    static const char *const no[] = {"no", "off", "false", "0"};

    for (size_t i = 0; i < ARR_LEN(yes); i++) {
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            *ret = strcmp(value, yes[i]) == 0;
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "%s: must be yes or no", value);
}

static int read_value(const struct key *key, const char *value, void *place, struct err *err)
{
    int64_t number;

    switch (key->type) {
    case KEY_SIZE:
        return units_parse_size(value, place, err);
    case KEY_DURATION:
        return units_parse_duration(value, 0, place, err);
    case KEY_INT:
        if (units_parse_int(value, &number, err) < 0)
            return -1;
        if (number < key->min || number > key->max)
            return err_set(err, ERR_USAGE, "%s: must be between %" PRId64 " and %" PRId64, value,
                           key->min, key->max);
        *(int64_t *)place = number;
        return 0;
    case KEY_FLAG:
        return read_flag(value, place, err);
    case KEY_CHOICE:
        return read_choice(key, value, place, err);
    case KEY_TEXT:
        free(*(char **)place);
        *(char **)place = mem_strdup(value);
        return 0;
    }
    return -1;
}

int vdisk_spec_set(struct vdisk_spec *spec, const char *name, const char *value, bool running,
                   struct err *err)
{
    const struct key *key = find_key(name);

    if (!key) {
        const char *names[ARR_LEN(keys) + 1] = {NULL};
        for (size_t i = 0; i < ARR_LEN(keys); i++)
            names[i] = keys[i].name;
        return text_unknown("key of a virtual disk", name, names, err);
    }
    if (running && !key->is_fault)
        return err_set(err, ERR_USAGE, "%s of a disk that runs cannot be changed, only its faults",
                       name);
    if (read_value(key, value, (char *)spec + key->offset, err) < 0)
        return err_prefix(err, "%s", name);
    if (key->offset == AT(torn) && spec->torn != 0 && spec->torn != 512 && spec->torn != 4096)
        return err_set(err, ERR_USAGE, "torn %s: must be 4096, 512 or 0", value);
    if (key->offset == AT(model_index))
        spec->model = *vdisk_model_find(vdisk_model_names[spec->model_index]);
    return 0;
}

int vdisk_spec_check(const struct vdisk_spec *spec, struct err *err)
{
    const struct vdisk_model_spec *m = &spec->model;

    if (spec->size <= 0 || spec->size % VDISK_BLOCK != 0)
        return err_set(err, ERR_USAGE, "size: must be a multiple of %d bytes, such as 1G",
                       VDISK_BLOCK);
    if (spec->size > 1LL << 50)
        return err_set(err, ERR_USAGE, "size: must be at most 1024TB");
    if (m->rpm && m->rate < 1 << 20)
        return err_set(err, ERR_USAGE, "rate: a hard disk needs one of at least 1M per second");
    if (m->rate_inner > m->rate || (m->rate_inner && m->rate_inner < 1 << 16))
        return err_set(err, ERR_USAGE, "rate-inner: must be between 64k per second and rate");
    if (m->seek_full_ns < m->seek_track_ns)
        return err_set(err, ERR_USAGE, "seek-full: must be at least seek-track");
    if (!m->rpm && (m->seek_full_ns || m->capacity))
        return err_set(err, ERR_USAGE,
                       "seek-full, seek-track and capacity belong to a hard disk: "
                       "set rpm too");
    if (m->capacity && m->capacity < spec->size)
        return err_set(err, ERR_USAGE, "capacity: must be at least the size of the disk");
    if (m->cache_bytes && m->cache_bytes < 64 * 1024)
        return err_set(err, ERR_USAGE, "cache: must be 0 or at least 64k");
    return 0;
}

int vdisk_spec_parse(struct vdisk_spec *spec, const char *text, bool running, struct err *err)
{
    char *whole = mem_printf("vdisk:%s", text);
    struct spec parsed;
    int status = spec_parse(&parsed, whole, err);

    free(whole);
    if (status < 0)
        return -1;
    const char *model = kvs_get(&parsed.params, "model");
    if (model)
        status = vdisk_spec_set(spec, "model", model, running, err);
    for (size_t i = 0; i < parsed.params.n && status == 0; i++) {
        const struct kv *item = &parsed.params.items[i];
        if (strcmp(item->key, "model") != 0)
            status = vdisk_spec_set(spec, item->key, item->value, running, err);
    }
    if (status == 0 && !running)
        status = vdisk_spec_check(spec, err);
    spec_release(&parsed);
    return status;
}

static void print_value(const struct key *key, const void *place, struct str *out)
{
    char text[UNITS_MAX];

    switch (key->type) {
    case KEY_SIZE:
        str_add(out, units_format_bytes_exact(*(const int64_t *)place, text));
        break;
    case KEY_DURATION:
        str_add(out, units_format_duration_exact(*(const int64_t *)place, text));
        break;
    case KEY_INT:
        str_addf(out, "%" PRId64, *(const int64_t *)place);
        break;
    case KEY_FLAG:
        str_add(out, *(const bool *)place ? "yes" : "no");
        break;
    case KEY_CHOICE:
        str_add(out, key->words[*(const int *)place]);
        break;
    case KEY_TEXT:
        str_addf(out, "{%s}", *(char *const *)place);
        break;
    }
}

static bool same_value(const struct key *key, const void *a, const void *b)
{
    switch (key->type) {
    case KEY_FLAG:
        return *(const bool *)a == *(const bool *)b;
    case KEY_CHOICE:
        return *(const int *)a == *(const int *)b;
    case KEY_TEXT:
        return !*(char *const *)a; // the default is none
    default:
        return *(const int64_t *)a == *(const int64_t *)b;
    }
}

void vdisk_spec_print(const struct vdisk_spec *spec, struct str *out)
{
    struct vdisk_spec standard;

    vdisk_spec_init(&standard);
    standard.model = *vdisk_model_find(vdisk_model_names[spec->model_index]);
    for (size_t i = 0, n = 0; i < ARR_LEN(keys); i++) {
        const void *place = (const char *)spec + keys[i].offset;
        if (same_value(&keys[i], place, (const char *)&standard + keys[i].offset))
            continue;
        str_addf(out, "%s%s=", n++ ? "," : "", keys[i].name);
        print_value(&keys[i], place, out);
    }
}

void vdisk_spec_describe_keys(struct str *out)
{
    for (size_t i = 0; i < ARR_LEN(keys); i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s=%s", keys[i].name, keys[i].arg);
        str_addf(out, "  %-22s %s\n", left, keys[i].help);
    }
}

int vdisk_name_check(const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool good = n > 0 && n <= VDISK_NAME_MAX && name[0] != '.' && name[0] != '-';

    for (size_t i = 0; i < n; i++)
        good = good && (isalnum((unsigned char)name[i]) || strchr("-_.", name[i]));
    if (good)
        return 0;
    return err_set(err, ERR_USAGE,
                   "the name of a virtual disk has 1 to %d letters, digits, '-', '_' and '.'",
                   VDISK_NAME_MAX);
}

void vdisk_fate_print(const struct vdisk_fate *fate, struct str *out)
{
    assert(fate->survivors <= VDISK_KEEP);
    str_addf(out, "survivors=%s seed=%" PRIu64 " unit=%u", vdisk_survivor_names[fate->survivors],
             fate->seed, fate->unit);
}

int vdisk_fate_parse(const char *text, size_t len, struct vdisk_fate *ret)
{
    char word[16], copy[96];
    struct vdisk_fate fate = {0};
    int end = 0;

    if (len >= sizeof(copy))
        return -1;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (sscanf(copy, "survivors=%15s seed=%" SCNu64 " unit=%" SCNu32 "%n", word, &fate.seed,
               &fate.unit, &end) != 3 ||
        copy[end] != '\0' || fate.unit > VDISK_BLOCK)
        return -1;
    for (int i = 0; vdisk_survivor_names[i]; i++) {
        if (strcmp(word, vdisk_survivor_names[i]) == 0) {
            fate.survivors = (enum vdisk_survivors)i;
            *ret = fate;
            return 0;
        }
    }
    return -1;
}
