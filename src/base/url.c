#include "base/url.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/braces.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define PORT_MAX 65535

// Parts of the text being read; `why` receives the words of what is wrong.
struct span {
    const char *start, *end;
};

static size_t span_length(struct span s)
{
    return (size_t)(s.end - s.start);
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

// Appends the text with %XX decoded. The text is not shown on failure: it may be a password.
static int add_decoded(struct span s, struct str *out, struct str *why)
{
    for (const char *p = s.start; p < s.end; p++) {
        if (*p != '%') {
            str_addc(out, *p);
            continue;
        }
        int high = s.end - p > 2 ? hex_digit(p[1]) : -1;
        int low = high >= 0 ? hex_digit(p[2]) : -1;
        if (low < 0) {
            str_add(why, "a '%' is not followed by two hexadecimal digits: write %25 for '%'");
            return -1;
        }
        if (high == 0 && low == 0) {
            str_add(why, "%00 cannot stand in a target");
            return -1;
        }
        str_addc(out, (char)(high << 4 | low));
        p += 2;
    }
    return 0;
}

// *ret becomes the decoded text, or stays NULL when that is empty.
static int decode_part(struct span s, char **ret, struct str *why)
{
    struct str text = STR_INIT;
    int rc = add_decoded(s, &text, why);

    if (rc == 0 && text.len)
        *ret = str_detach(&text);
    str_release(&text);
    return rc;
}

// HOST[:PORT] of the list; appends both.
static int parse_host(struct span s, struct str *host, struct str *port, struct str *why)
{
    struct span name = s;
    const char *after;

    if (s.start < s.end && *s.start == '[') {
        after = memchr(s.start, ']', span_length(s));
        if (!after) {
            str_add(why, "a '[' before the host has no ']'");
            return -1;
        }
        name = (struct span){s.start + 1, after};
        after++;
    } else {
        after = memchr(s.start, ':', span_length(s));
        after = after ? after : s.end;
        name.end = after;
    }
    size_t before = host->len;
    if (add_decoded(name, host, why) < 0)
        return -1;
    if (strchr(host->buf + before, ',')) {
        str_add(why, "a host name cannot hold a comma");
        return -1;
    }
    if (after == s.end || (*after == ':' && after + 1 == s.end))
        return 0;

    // What stands here may be the end of a password that was not encoded: it is not shown.
    struct str digits = STR_INIT;
    int64_t number = 0;
    str_addn(&digits, after + 1, (size_t)(s.end - after) - 1);
    bool is_port = *after == ':' && isdigit((unsigned char)digits.buf[0]) &&
                   units_parse_int(digits.buf, &number, NULL) == 0 && number >= 1 &&
                   number <= PORT_MAX;
    if (is_port)
        str_add(port, digits.buf);
    else
        str_addf(why, "what follows the host is not ':' and a port between 1 and %d", PORT_MAX);
    str_release(&digits);
    return is_port ? 0 : -1;
}

// HOST[:PORT],HOST[:PORT]...; the ports become a list of the same length when there is any.
static int parse_hosts(struct url *url, struct span s, struct str *why)
{
    struct str hosts = STR_INIT, ports = STR_INIT;
    int rc = 0;

    for (;;) {
        const char *comma = memchr(s.start, ',', span_length(s));
        struct span one = {s.start, comma ? comma : s.end};
        rc = parse_host(one, &hosts, &ports, why);
        if (rc < 0 || !comma)
            break;
        str_addc(&hosts, ',');
        str_addc(&ports, ',');
        s.start = comma + 1;
    }
    if (rc == 0 && hosts.len)
        url->host = str_detach(&hosts);
    if (rc == 0 && strspn(ports.buf, ",") != ports.len)
        url->port = str_detach(&ports);
    str_release(&hosts);
    str_release(&ports);
    return rc;
}

// [USER[:PW]@]HOSTS[/PATH], up to the query.
static int parse_authority(struct url *url, struct span s, struct str *why)
{
    const char *slash = memchr(s.start, '/', span_length(s));
    struct span authority = {s.start, slash ? slash : s.end};
    const char *at = memrchr(authority.start, '@', span_length(authority));

    if (at) {
        struct span user = {authority.start, at};
        const char *colon = memchr(user.start, ':', span_length(user));
        if (colon) {
            if (decode_part((struct span){colon + 1, at}, &url->password, why) < 0)
                return -1;
            user.end = colon;
        }
        if (decode_part(user, &url->user, why) < 0)
            return -1;
        authority.start = at + 1;
    }
    if (parse_hosts(url, authority, why) < 0) {
        if (strchr(authority.end, '@'))
            str_add(why, " (in a password '/', '?' and '@' are written %2F, %3F and %40)");
        return -1;
    }
    return slash ? decode_part((struct span){slash + 1, s.end}, &url->path, why) : 0;
}

// Appends a name for an error text; but what stands behind a misplaced '?' or '&' may be the rest
// of a password: then it is hidden in `whole`, too.
static void add_name(struct str *why, struct span name, const char *whole)
{
    struct str shown = STR_INIT;
    char *text = mem_strndup(name.start, span_length(name));

    text_add_redacted(&shown, whole);
    str_add(why, strstr(shown.buf, text) ? text : "KEY");
    free(text);
    str_release(&shown);
}

// One KEY=VALUE of the query. Moves *text to the '&' or the end.
static int parse_param(struct url *url, const char *whole, const char **text, struct str *why)
{
    const char *item = *text;
    struct span name = {item, item + strcspn(item, "=&")};
    struct str key = STR_INIT, raw = STR_INIT, value = STR_INIT;
    bool in_braces = false;
    int rc = -1;

    if (name.start == name.end && *name.end != '=') {
        str_add(why, "a parameter is missing");
        goto out;
    }
    if (*name.end != '=') {
        const struct kv *before = url->params.n ? &url->params.items[url->params.n - 1] : NULL;
        if (before && text_is_secret_key(before->key, strlen(before->key))) {
            str_addf(why, "the value of %s holds '&': put it in braces", before->key);
        } else {
            str_add(why, "write ");
            add_name(why, name, whole);
            str_add(why, "=VALUE");
        }
        goto out;
    }
    if (add_decoded(name, &key, why) < 0)
        goto out;
    if (key.len == 0 || strpbrk(item, "{}= \t") < name.end) {
        str_add(why, "a parameter begins with a name: KEY=VALUE");
        goto out;
    }
    *text = name.end + 1;
    const char *wrong = braces_read(text, '&', &raw, &in_braces);
    if (wrong) {
        str_add(why, "the value of ");
        add_name(why, name, whole);
        str_addf(why, " %s", wrong);
        goto out;
    }
    if (in_braces)
        str_add(&value, raw.buf);
    else if (add_decoded((struct span){raw.buf, raw.buf + raw.len}, &value, why) < 0)
        goto out;
    kvs_add(&url->params, key.buf, value.buf);
    rc = 0;
out:
    str_release(&key);
    str_release(&raw);
    str_release(&value);
    return rc;
}

static int parse_query(struct url *url, const char *whole, const char *text, struct str *why)
{
    do {
        assert(*text == '?' || *text == '&');
        text++;
        if (parse_param(url, whole, &text, why) < 0)
            return -1;
    } while (*text);
    return 0;
}

// REST without "//": as it is, or in braces. Returns where the query begins, NULL on failure.
static const char *parse_rest(struct url *url, const char *text, struct str *why)
{
    struct str rest = STR_INIT;
    const char *end = text;
    bool in_braces;

    if (*text == '{') {
        const char *wrong = braces_read(&end, '?', &rest, &in_braces);
        if (wrong) {
            str_addf(why, "what follows %s: %s", url->scheme, wrong);
            end = NULL;
        }
    } else {
        end = text + strcspn(text, "?");
        str_addn(&rest, text, (size_t)(end - text));
    }
    if (end && rest.len)
        url->path = str_detach(&rest);
    str_release(&rest);
    return end;
}

static int parse_whole(struct url *url, const char *whole, struct str *why)
{
    const char *text = whole;
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || (text[len] && strchr("_+-", text[len])))
        len++;
    if (!isalpha((unsigned char)*text) || (text[len] && !strchr(":?", text[len]))) {
        str_add(why, "a target begins with an engine, as in sqlite:bench.db or "
                     "postgres://HOST/DATABASE");
        return -1;
    }
    url->scheme = mem_strndup(text, len);
    for (char *p = url->scheme; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    text += len;
    if (*text == ':' && strncmp(text + 1, "//", 2) == 0) {
        struct span s = {text + 3, text + 3 + strcspn(text + 3, "?")};
        url->has_authority = true;
        if (parse_authority(url, s, why) < 0)
            return -1;
        text = s.end;
    } else if (*text == ':') {
        text = parse_rest(url, text + 1, why);
        if (!text)
            return -1;
    }
    return *text ? parse_query(url, whole, text, why) : 0;
}

int url_parse(struct url *url, const char *text, struct err *err)
{
    struct str why = STR_INIT;

    *url = (struct url){0};
    int rc = parse_whole(url, text, &why);
    if (rc < 0) {
        struct str shown = STR_INIT;
        assert(why.len);
        text_add_value(&shown, text);
        err_set(err, ERR_USAGE, "target %s: %s", shown.buf, why.buf);
        str_release(&shown);
        url_release(url);
    }
    str_release(&why);
    return rc;
}

void url_release(struct url *url)
{
    free(url->scheme);
    free(url->user);
    free(url->password);
    free(url->host);
    free(url->port);
    free(url->path);
    kvs_release(&url->params);
    *url = (struct url){0};
}

// Letters, digits, "-._~" and the characters of `also` stand as they are, the rest as %XX.
static void add_encoded(struct str *out, const char *text, size_t len, const char *also)
{
    for (const char *p = text; p < text + len; p++) {
        if (isalnum((unsigned char)*p) || strchr("-._~", *p) || strchr(also, *p))
            str_addc(out, *p);
        else
            str_addf(out, "%%%02X", (unsigned char)*p);
    }
}

// Host and port lists side by side; either may be the shorter one.
static void print_hosts(const struct url *url, struct str *out)
{
    const char *host = url->host ? url->host : "", *port = url->port ? url->port : "";

    for (;;) {
        size_t host_len = strcspn(host, ","), port_len = strcspn(port, ",");
        if (memchr(host, ':', host_len)) {
            str_addc(out, '[');
            add_encoded(out, host, host_len, ":");
            str_addc(out, ']');
        } else {
            add_encoded(out, host, host_len, "");
        }
        if (port_len)
            str_addf(out, ":%.*s", (int)port_len, port);
        host += host_len;
        port += port_len;
        if (!*host && !*port)
            break;
        str_addc(out, ',');
        host += *host == ',';
        port += *port == ',';
    }
}

static void print_authority(const struct url *url, bool with_password, struct str *out)
{
    const char *password = with_password ? url->password : NULL;

    str_add(out, "://");
    if (url->user)
        add_encoded(out, url->user, strlen(url->user), "");
    if (password) {
        str_addc(out, ':');
        add_encoded(out, password, strlen(password), "");
    }
    if (url->user || password)
        str_addc(out, '@');
    print_hosts(url, out);
    if (url->path) {
        str_addc(out, '/');
        add_encoded(out, url->path, strlen(url->path), "/:@!$'()*+,;=&");
    }
}

static void print_rest(const struct url *url, bool with_password, struct str *out)
{
    struct str rest = STR_INIT;

    if (with_password)
        str_add(&rest, url->path);
    else
        text_add_without_secrets(&rest, url->scheme, url->path);
    bool needs_braces =
        rest.buf[0] == '{' || strncmp(rest.buf, "//", 2) == 0 || strchr(rest.buf, '?');
    assert(!with_password || !needs_braces || braces_match(rest.buf));
    if (!needs_braces)
        str_addf(out, ":%s", rest.buf);
    else if (braces_match(rest.buf))
        str_addf(out, ":{%s}", rest.buf);
    else // a password that opened or closed braces was taken out of it
        str_add(out, ":");
    str_release(&rest);
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return true;
    return false;
}

static void print_value(const char *value, struct str *out)
{
    if (!*value || (braces_is_plain(value, '&') && !strchr(value, '%')))
        str_add(out, value);
    else if (braces_match(value) && !has_control(value))
        str_addf(out, "{%s}", value);
    else
        add_encoded(out, value, strlen(value), "/:@!$'()*+,;?");
}

void url_print(const struct url *url, bool with_password, struct str *out)
{
    char before = '?';

    assert(url->scheme);
    str_add(out, url->scheme);
    if (url->has_authority)
        print_authority(url, with_password, out);
    else if (url->path)
        print_rest(url, with_password, out);
    else if (url->params.n)
        str_addc(out, ':');
    for (size_t i = 0; i < url->params.n; i++) {
        const struct kv *kv = &url->params.items[i];
        struct str value = STR_INIT;
        if (!with_password && text_is_secret_key(kv->key, strlen(kv->key)))
            continue;
        if (with_password)
            str_add(&value, kv->value);
        else
            text_add_redacted(&value, kv->value);
        str_addc(out, before);
        before = '&';
        add_encoded(out, kv->key, strlen(kv->key), "");
        str_addc(out, '=');
        print_value(value.buf, out);
        str_release(&value);
    }
}
