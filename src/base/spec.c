// Volumes as text: TYPE:KEY=VALUE,... (declared in base/url.h).
#include "base/url.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/braces.h"
#include "base/mem.h"
#include "base/text.h"

// The key of a first value that stands alone, as in dir:/srv/data.
#define PATH_KEY "path"

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

// Keys may be names of properties, as com.example:note and feature@x.
static size_t key_length(const char *text)
{
    size_t n = 0;

    while (is_name_char(text[n]) || (n > 0 && text[n] && strchr(".:@", text[n])))
        n++;
    return n;
}

static size_t name_length(const char *text)
{
    size_t n = 0;

    while (is_name_char(text[n]))
        n++;
    return n;
}

static bool looks_like_path(const char *text)
{
    return *text == '/' || *text == '.';
}

// One KEY=VALUE, or the path in front. Moves *text to the ',' or the end.
static int parse_item(struct spec *spec, const char **text, struct str *why)
{
    const char *item = *text;
    size_t key_len = key_length(item);
    bool is_path = spec->params.n == 0 && (looks_like_path(item) || *item == '{');
    bool in_braces;

    if (!is_path && key_len == 0) {
        str_add(why, *item == '\0' || *item == ',' ? "a setting is missing"
                                                   : "a setting begins with a name: KEY=VALUE");
        return -1;
    }
    if (!is_path && item[key_len] != '=') {
        str_addf(why, "write %.*s=VALUE", (int)key_len, item);
        return -1;
    }
    char *key = is_path ? mem_strdup(PATH_KEY) : mem_strndup(item, key_len);
    struct str value = STR_INIT;
    *text = is_path ? item : item + key_len + 1;
    const char *wrong = braces_read(text, ',', &value, &in_braces);
    if (!wrong && value.len == 0 && !in_braces)
        wrong = "is missing";
    if (wrong)
        str_addf(why, "the value of %s %s", key, wrong);
    else if (kvs_get(&spec->params, key))
        str_addf(why, "%s stands twice", key);
    else
        kvs_add(&spec->params, key, value.buf);
    free(key);
    str_release(&value);
    return why->len ? -1 : 0;
}

static int parse_whole(struct spec *spec, const char *text, struct str *why)
{
    size_t type_len = isalpha((unsigned char)*text) ? name_length(text) : 0;

    if (type_len == 0 || (text[type_len] && text[type_len] != ':')) {
        str_add(why, "a volume begins with its type, as in dir:/srv/data or loop:size=2G,fs=ext4");
        return -1;
    }
    spec->type = mem_strndup(text, type_len);
    for (char *p = spec->type; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    text += type_len;
    if (!text[0] || !text[1])
        return 0;
    do {
        text++; // the ':' or ','
        if (parse_item(spec, &text, why) < 0)
            return -1;
        assert(*text == ',' || *text == '\0');
    } while (*text);
    return 0;
}

int spec_parse(struct spec *spec, const char *text, struct err *err)
{
    struct str why = STR_INIT;

    *spec = (struct spec){0};
    int rc = parse_whole(spec, text, &why);
    if (rc < 0) {
        struct str shown = STR_INIT;
        text_add_value(&shown, text);
        err_set(err, ERR_USAGE, "volume %s: %s", shown.buf, why.buf);
        str_release(&shown);
        spec_release(spec);
    }
    str_release(&why);
    return rc;
}

void spec_release(struct spec *spec)
{
    free(spec->type);
    kvs_release(&spec->params);
    *spec = (struct spec){0};
}

void spec_print(const struct spec *spec, struct str *out)
{
    assert(spec->type && name_length(spec->type) == strlen(spec->type));
    str_add(out, spec->type);
    for (size_t i = 0; i < spec->params.n; i++) {
        const struct kv *kv = &spec->params.items[i];
        str_addc(out, i == 0 ? ':' : ',');
        if (i > 0 || strcmp(kv->key, PATH_KEY) != 0 || !looks_like_path(kv->value))
            str_addf(out, "%s=", kv->key);
        assert(braces_match(kv->value));
        if (braces_is_plain(kv->value, ','))
            str_add(out, kv->value);
        else
            str_addf(out, "{%s}", kv->value);
    }
}
