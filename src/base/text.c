#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <langinfo.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

// Longer words than this are no slips of the finger.
#define WORD_MAX 64

// More words than this are not listed in an error text.
#define LISTED_MAX 16

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

// Insertions, deletions, substitutions and swaps of neighbours that turn one word into the other
// (each letter moved once at most: "optimal string alignment"), without regard to case.
static int edit_distance(const char *a, size_t len_a, const char *b, size_t len_b)
{
    int rows[3][WORD_MAX + 1];

    assert(len_a <= WORD_MAX && len_b <= WORD_MAX);
    for (size_t j = 0; j <= len_b; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= len_a; i++) {
        int *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= len_b; j++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            int cost = above[j - 1] + (ca != cb);
            cost = min_int(cost, min_int(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                cb == tolower((unsigned char)a[i - 2]))
                cost = min_int(cost, two_above[j - 2] + 1);
            row[j] = cost;
        }
    }
    return rows[len_a % 3][len_b];
}

const char *text_near_miss(const char *typed, const char *const *words)
{
    const char *best = NULL, *longer_word = NULL;
    int best_distance = WORD_MAX, n_longer = 0;
    size_t len = strlen(typed);

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (; *words; words++) {
        size_t word_len = strlen(*words);
        size_t longer = len > word_len ? len : word_len;
        if (word_len > WORD_MAX)
            continue;
        if (word_len > len && strncasecmp(typed, *words, len) == 0) {
            longer_word = *words;
            n_longer++;
        }
        int distance = edit_distance(typed, len, *words, word_len);
        if (distance <= (int)longer / 3 && distance < best_distance) {
            best = *words;
            best_distance = distance;
        }
    }
    return best ? best : n_longer == 1 ? longer_word : NULL;
}

void text_add_words(struct str *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        str_addf(out, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

int text_unknown(const char *what, const char *typed, const char *const *words, struct err *err)
{
    const char *near_miss = text_near_miss(typed, words);
    struct str shown = STR_INIT, known = STR_INIT;
    size_t n = 0;

    text_add_value(&shown, typed);
    while (words[n])
        n++;
    if (n > 0 && n <= LISTED_MAX) {
        str_add(&known, ": must be ");
        text_add_words(&known, words);
    }
    if (near_miss)
        err_set(err, ERR_USAGE, "unknown %s %s, did you mean %s?", what, shown.buf, near_miss);
    else
        err_set(err, ERR_USAGE, "unknown %s %s%s", what, shown.buf, known.buf);
    str_release(&shown);
    str_release(&known);
    return -1;
}

static bool is_word_char(unsigned char c)
{
    return isalnum(c) || c == '_' || c == '$' || c >= 0x80;
}

bool text_first_word_is(const char *text, const char *word)
{
    size_t len = strlen(word);

    assert(len > 0);
    for (;;) {
        if (isspace((unsigned char)*text)) {
            text++;
        } else if (strncmp(text, "--", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            if (!end)
                return false;
            text = end + 2;
        } else {
            break;
        }
    }
    return strncasecmp(text, word, len) == 0 && !is_word_char((unsigned char)text[len]);
}

// Length in bytes of the UTF-8 sequence at s and its code point; 0 for a byte that begins none
// (overlong forms, surrogates and values past U+10FFFF are none).
static int utf8_decode(const char *s, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    int n = p[0] < 0x80   ? 1
            : p[0] < 0xc2 ? 0
            : p[0] < 0xe0 ? 2
            : p[0] < 0xf0 ? 3
            : p[0] < 0xf5 ? 4
                          : 0;
    uint32_t code = n < 2 ? p[0] : p[0] & (0x7fu >> n);

    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0; // also the terminating NUL
        code = code << 6 | (p[i] & 0x3f);
    }
    if (n == 0 || code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret = code;
    return n;
}

int text_columns(const char *utf8)
{
    bool wide = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    int columns = 0;

    while (*utf8) {
        uint32_t code;
        int n = utf8_decode(utf8, &code);
        int width = n > 0 && wide ? wcwidth((wchar_t)code) : 1;
        columns += width > 0 ? width : 0;
        utf8 += n > 0 ? n : 1;
    }
    return columns;
}

void text_cut_columns(char *utf8, int columns)
{
    size_t len = strlen(utf8);

    while (len > 0 && text_columns(utf8) > columns) {
        do
            len--;
        while (len > 0 && (utf8[len] & 0xc0) == 0x80);
        utf8[len] = '\0';
    }
}

// C0, DEL, C1, and the marks that reverse or isolate the direction of writing.
static bool steers_terminal(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void text_add_safe(struct str *out, const char *text)
{
    while (*text) {
        uint32_t code;
        int n = utf8_decode(text, &code);
        if (n > 0 && !steers_terminal(code)) {
            str_addn(out, text, (size_t)n);
            text += n;
            continue;
        }
        for (int i = 0; i < (n > 0 ? n : 1); i++)
            str_addf(out, "\\x%02x", (unsigned char)*text++);
    }
}

void text_add_shell(struct str *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";

    if (*text && strspn(text, plain) == strlen(text)) {
        str_add(out, text);
        return;
    }
    str_addc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            str_add(out, "'\\''");
        else
            str_addc(out, *text);
    }
    str_addc(out, '\'');
}
