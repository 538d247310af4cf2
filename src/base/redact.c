// Hiding passwords in what users typed (declared in base/text.h). The text may be malformed: it is
// shown in the very error that says so. Where a guess is needed, rather too much is hidden.
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define HIDDEN "xxx"

bool text_is_secret_key(const char *key, size_t len)
{
    static const char *const endings[] = {"password", "passwd", "pwd", NULL};

    for (const char *const *e = endings; *e; e++) {
        size_t n = strlen(*e);
        if (len >= n && strncasecmp(key + len - n, *e, n) == 0)
            return true;
    }
    return false;
}

static const char *last_char(const char *from, const char *end, char c)
{
    return memrchr(from, c, (size_t)(end - from));
}

// p is behind "://". Sets [from, to) to the password in USER:PW@ or to what may be one.
static bool find_url_password(const char *p, const char **from, const char **to)
{
    const char *authority_end = p + strcspn(p, "/?#");
    const char *query = p + strcspn(p, "?");
    const char *at = last_char(p, authority_end, '@');
    const char *colon = memchr(p, ':', (size_t)(authority_end - p));

    if (!colon || *p == '[')
        colon = at ? memchr(p, ':', (size_t)(at - p)) : NULL;
    if (!colon || (at && colon > at))
        return false; // no ':' in front of the '@': user alone, or host and port
    if (!at) {
        // A '/' or '?' inside the password ends the authority early. "host:5432/db" is no
        // password, unless an '@' follows in the path.
        size_t digits = strspn(colon + 1, "0123456789,:");
        bool is_port = strchr(",:]", colon[1]) || colon + 1 + digits == authority_end ||
                       memchr(colon, ',', (size_t)(authority_end - colon));
        at = is_port ? last_char(p, query, '@') : strrchr(p, '@');
        if (!at && is_port)
            return false;
        if (!at)
            at = p + strlen(p);
    }
    if (at <= colon + 1)
        return false;
    *from = colon + 1;
    *to = at;
    return true;
}

// "SCHEME:USER:PW@HOST", where the "//" was forgotten.
static bool find_opaque_password(const char *text, const char **from, const char **to)
{
    size_t scheme = 0;

    while (isalpha((unsigned char)text[scheme]))
        scheme++;
    if (scheme == 0 || text[scheme] != ':')
        return false;
    const char *user = text + scheme + 1;
    const char *colon = user + strcspn(user, ":/@ =?{");
    if (*colon != ':')
        return false;
    const char *at = last_char(colon, colon + strcspn(colon, "?"), '@');
    if (!at || at == colon + 1)
        return false;
    *from = colon + 1;
    *to = at;
    return true;
}

// Does another KEY=VALUE begin here? If not, the '&' before it belongs to the value.
static bool is_next_param(const char *p)
{
    size_t len = strcspn(p, "=&");

    return len > 0 && p[len] == '=';
}

// The end of the value of a secret key, as the grammar around it has it: braces (targets) and
// single quotes (libpq) are passed as a whole; it ends at the '&' of a query, at ';' for ODBC, else
// at a blank.
static const char *value_end(const char *value, bool in_query, bool in_odbc)
{
    const char *p = value;
    bool quoted = *p == '\'';
    int depth = 0;

    for (p += quoted; *p; p++) {
        if (*p == '\\' && p[1] && !in_query) {
            p++;
        } else if (quoted) {
            quoted = *p != '\'';
        } else if (*value == '{' && (p == value || depth > 0)) {
            depth += (*p == '{') - (*p == '}');
        } else if (in_query  ? *p == '&' && is_next_param(p + 1)
                   : in_odbc ? *p == ';'
                             : isspace((unsigned char)*p)) {
            break;
        }
    }
    return p;
}

// Does a secret key end just before the '=' at `equals`?
static bool is_secret_at(const char *text, const char *equals)
{
    const char *end = equals;

    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    return text_is_secret_key(text, (size_t)(end - text));
}

void text_add_redacted(struct str *out, const char *text)
{
    bool in_odbc = strncasecmp(text, "odbc:", 5) == 0;
    bool in_query = false;
    const char *from, *to, *p = text;

    // The second: the engine was forgotten.
    if (find_opaque_password(text, &from, &to) ||
        (strncmp(text, "//", 2) == 0 && find_url_password(text + 2, &from, &to))) {
        str_addn(out, p, (size_t)(from - p));
        str_add(out, HIDDEN);
        p = to;
    }
    while (*p) {
        if (strncmp(p, "://", 3) == 0 && find_url_password(p + 3, &from, &to)) {
            str_addn(out, p, (size_t)(from - p));
            str_add(out, HIDDEN);
            p = to;
        } else if (*p == '=' && is_secret_at(text, p)) {
            from = p + 1;
            while (isspace((unsigned char)*from) && !in_query)
                from++;
            to = value_end(from, in_query, in_odbc);
            str_addn(out, p, (size_t)(from - p));
            str_add(out, to > from ? HIDDEN : "");
            p = to;
        } else {
            in_query = in_query || *p == '?';
            str_addc(out, *p++);
        }
    }
}

// Takes "KEY =" off the end of out.
static void remove_key(struct str *out)
{
    size_t len = out->len;

    if (len == 0)
        return; // nothing is owned that could be cut
    while (len > 0 && isspace((unsigned char)out->buf[len - 1]))
        len--;
    while (len > 0 && !isspace((unsigned char)out->buf[len - 1]) && out->buf[len - 1] != ';')
        len--;
    out->len = len;
    out->buf[len] = '\0';
}

void text_add_without_secrets(struct str *out, const char *scheme, const char *rest)
{
    struct str whole = STR_INIT, kept = STR_INIT;
    bool in_odbc = strcasecmp(scheme, "odbc") == 0;
    const char *from, *to;

    str_add(&whole, scheme);
    str_addc(&whole, ':');
    str_add(&whole, rest);
    const char *p = whole.buf + strlen(scheme) + 1;
    if (find_opaque_password(whole.buf, &from, &to)) {
        str_addn(&kept, p, (size_t)(from - 1 - p));
        p = to;
    }
    while (*p) {
        if (*p != '=' || !is_secret_at(whole.buf, p)) {
            str_addc(&kept, *p++);
            continue;
        }
        remove_key(&kept);
        for (p++; isspace((unsigned char)*p);)
            p++;
        p = value_end(p, false, in_odbc);
        while (isspace((unsigned char)*p) || (in_odbc && *p == ';'))
            p++;
        while (!*p && kept.len > 0 && kept.buf[kept.len - 1] == ' ')
            kept.buf[--kept.len] = '\0';
    }
    str_add(out, kept.buf);
    str_release(&whole);
    str_release(&kept);
}

void text_add_value(struct str *out, const char *text)
{
    struct str redacted = STR_INIT, quoted = STR_INIT;

    text_add_redacted(&redacted, text);
    text_add_shell(&quoted, redacted.buf);
    text_add_safe(out, quoted.buf);
    str_release(&redacted);
    str_release(&quoted);
}

void text_add_command(struct str *out, int n, char *const *argv)
{
    struct str redacted = STR_INIT;

    for (int i = 0; i < n; i++) {
        const char *before = i > 0 ? argv[i - 1] : "";
        bool is_secret = strncmp(before, "--", 2) == 0 && strncmp(before, "--no-", 5) != 0 &&
                         text_is_secret_key(before, strlen(before));
        str_clear(&redacted);
        if (is_secret)
            str_add(&redacted, HIDDEN);
        else
            text_add_redacted(&redacted, argv[i]);
        if (i > 0)
            str_addc(out, ' ');
        text_add_shell(out, redacted.buf);
    }
    str_release(&redacted);
}
