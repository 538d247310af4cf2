// The way from names and files to a compiled workload.
#include "workload/workload.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/text.h"
#include "workload/hash.h"
#include "workload/script.h"
#include "workload/source.h"

// ---- variables that are there from the start

// What a -D text is sent as: typed where the text is exactly how the value would be written, so
// that "007" stays what it is.
static struct db_value define_value(const char *text)
{
    struct db_value value = {.type = DB_TEXT, .s = text, .text_len = (uint32_t)strlen(text)};
    struct db_value typed;
    char buf[DB_VALUE_TEXT_MAX];
    int len;

    if (strcasecmp(text, "null") == 0)
        return value_null();
    if (expr_type_text(text, &typed) < 0 || typed.type == DB_NULL)
        return value;
    const char *written = db_value_text(&typed, buf, &len);
    return strcmp(written, text) == 0 ? typed : value;
}

static int give_defines(struct symbols *symbols, const struct kvs *defines, struct err *err)
{
    for (size_t i = 0; defines && i < defines->n; i++) {
        const struct kv *kv = &defines->items[i];
        if (!lex_is_name(kv->key, strlen(kv->key)))
            return err_set(err, ERR_USAGE,
                           "-D %s=%s: \"%s\" is not a variable's name; use letters, digits and _",
                           kv->key, kv->value, kv->key);
        if (kv->value[0] == '\0')
            return err_set(err, ERR_USAGE, "-D %s=: a value is needed: -D %s=VALUE", kv->key,
                           kv->key);
        symbols_give(symbols, kv->key, define_value(kv->value));
    }
    return 0;
}

static void give_automatic(struct symbols *symbols, const struct workload_options *options)
{
    struct rng rng;
    char name[64];

    // A stream of its own, which no client has.
    rng_init(&rng, (uint64_t)options->seed, UINT64_MAX, RNG_SCRIPT);
    symbols_give(symbols, "default_seed", value_int((int64_t)rng_u64(&rng)));
    symbols_give(symbols, "random_seed", value_int(options->seed));
    symbols_give(symbols, "scale", value_int(options->scale));
    symbols_give(symbols, "clients", value_int(options->clients));
    for (int bit = 0; bit < DB_CAP_COUNT_BITS; bit++) {
        snprintf(name, sizeof(name), "cap_%s", db_cap_name(bit));
        symbols_give(symbols, name, value_int(options->caps >> bit & 1));
    }
    int at = symbols_add(symbols, "client_id", strlen("client_id"));
    symbols->items[at].per_client = !symbols->items[at].given;
}

// ---- compiling

// Names of all scripts as recorded; weights only where there is a choice.
static char *join_names(const struct source *sources, int n)
{
    struct str name = STR_INIT;

    if (n == 1)
        return mem_strdup(sources[0].name);
    for (int i = 0; i < n; i++)
        str_addf(&name, "%s%s@%g", i ? " " : "", sources[i].name, sources[i].weight);
    return str_detach(&name);
}

static char *hash_sources(const struct source *sources, int n)
{
    uint64_t hash = HASH_START;
    char weight[32];

    for (int i = 0; i < n; i++) {
        int len = snprintf(weight, sizeof(weight), "@%g", n == 1 ? 1.0 : sources[i].weight);
        hash = hash_bytes(hash, sources[i].text, sources[i].len);
        hash = hash_bytes(hash, weight, (size_t)len + 1); // its NUL parts the scripts
    }
    return mem_printf("%016llx", (unsigned long long)hash);
}

static int check_weights(const struct source *sources, int n, struct err *err)
{
    for (int i = 0; i < n; i++)
        if (sources[i].weight > 0)
            return 0;
    return err_set(err, ERR_USAGE, "%s: no script has a weight above 0, so none would ever run",
                   sources[0].file);
}

static int compile(struct workload **ret, struct source *sources, int n,
                   const struct workload_options *options, struct err *err)
{
    struct compiler compiler = {
        .options = options, .pool = pool_new(), .sources = sources, .n_sources = n};
    struct workload *workload = mem_calloc(1, sizeof(*workload));
    int status;

    assert(n > 0);
    workload->pool = compiler.pool;
    status = check_weights(sources, n, err);
    if (status == 0)
        status = give_defines(&compiler.symbols, options->defines, err);
    if (status == 0) {
        give_automatic(&compiler.symbols, options);
        for (int i = 0; i < n && status == 0; i++)
            status = script_parse(&compiler, i, err);
    }
    if (status == 0)
        status = link_program(&compiler, workload, err);
    if (status == 0) {
        workload->name = join_names(sources, n);
        workload->source_hash = hash_sources(sources, n);
        workload->scale = options->scale;
        workload->debug = options->debug;
        workload->debug_arg = options->debug_arg;
        *ret = workload;
    } else {
        workload_free(workload);
    }
    symbols_release(&compiler.symbols);
    free(compiler.commands);
    free(compiler.parts);
    return status;
}

int workload_load_text(struct workload **ret, const char *name, const char *text,
                       const struct workload_options *options, struct err *err)
{
    struct source source = {.file = name, .name = name, .weight = 1};

    if (source_set_text(&source, text, strlen(text), err) < 0)
        return -1;
    return compile(ret, &source, 1, options, err);
}

// What users of other tools call it.
static const char *peer_name(const char *name)
{
    static const char *const peers[][2] = {
        {"tpcb-like", "tpcb"},
        {"tpc-b", "tpcb"},
        {"readonly", "select-only"},
        {"read-only", "select-only"},
        {"oltp_point_select", "select-only"},
    };

    for (size_t i = 0; i < ARR_LEN(peers); i++)
        if (strcasecmp(peers[i][0], name) == 0)
            return peers[i][1];
    return NULL;
}

static int fail_builtin(const char *name, struct err *err)
{
    const char *words[16];
    size_t n = 0;
    struct str shown = STR_INIT;
    struct str known = STR_INIT;

    for (const struct workload_builtin *b = workload_builtins(); b->name; b++) {
        assert(n + 1 < ARR_LEN(words));
        words[n++] = b->name;
    }
    words[n] = NULL;
    const char *near = peer_name(name);
    near = near ? near : text_near_miss(name, words);
    text_add_value(&shown, name);
    text_add_words(&known, words);
    if (near)
        err_set(err, ERR_USAGE, "unknown workload %s, did you mean %s? (a script file: -f %s)",
                shown.buf, near, shown.buf);
    else
        err_set(err, ERR_USAGE, "unknown workload %s: there are %s; a script file is given with -f",
                shown.buf, known.buf);
    str_release(&shown);
    str_release(&known);
    return -1;
}

int workload_load_builtin(struct workload **ret, const char *name,
                          const struct workload_options *options, struct err *err)
{
    const struct workload_builtin *builtin = workload_find_builtin(name);

    if (!builtin)
        return fail_builtin(name, err);
    if (workload_load_text(ret, builtin->name, builtin->source, options, err) < 0)
        return -1;
    (*ret)->schema = builtin->schema;
    return 0;
}

int workload_load_files(struct workload **ret, char *const *files, int n_files,
                        const struct workload_options *options, struct err *err)
{
    struct source *sources = mem_calloc((size_t)n_files + 1, sizeof(*sources));
    int status = 0;

    assert(n_files > 0);
    for (int i = 0; i < n_files && status == 0; i++)
        status = source_read(&sources[i], files[i], err);
    if (status == 0)
        status = compile(ret, sources, n_files, options, err);
    for (int i = 0; i < n_files; i++)
        source_release(&sources[i]);
    free(sources);
    return status;
}

void workload_free(struct workload *workload)
{
    if (!workload)
        return;
    for (int i = 0; i < workload->n_scripts; i++)
        free(workload->scripts[i].name);
    for (int i = 0; i < workload->n_variables; i++)
        free(workload->variables[i]);
    free(workload->scripts);
    free(workload->variables);
    free(workload->initial);
    free(workload->unset);
    free(workload->statements);
    free(workload->origins);
    free(workload->ops);
    pool_free(workload->pool);
    free(workload->name);
    free(workload->source_hash);
    free(workload);
}
