// Lists of words and of commands.
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/text.h"
#include "server/kind.h"

void words_add(struct words *words, const char *text)
{
    *ARR_PUSH(words->items, words->n_items, words->cap_items) = mem_strdup(text);
    *ARR_PUSH(words->items, words->n_items, words->cap_items) = NULL;
    words->n_items--; // the NULL is an end mark, not a word
}

void words_addf(struct words *words, const char *fmt, ...)
{
    struct str text = STR_INIT;
    va_list ap;

    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    words_add(words, text.buf);
    str_release(&text);
}

void words_release(struct words *words)
{
    for (size_t i = 0; i < words->n_items; i++)
        free(words->items[i]);
    free(words->items);
    *words = (struct words){0};
}

int words_split(struct words *words, const char *text, struct err *err)
{
    const char *p = text;

    for (;;) {
        struct str word = STR_INIT;
        char quote = '\0';
        bool some = false;

        while (isspace((unsigned char)*p))
            p++;
        for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
            some = true;
            if (quote ? *p == quote : *p == '"' || *p == '\'')
                quote = quote ? '\0' : *p;
            else
                str_addc(&word, *p);
        }
        if (some && !quote)
            words_add(words, word.buf);
        str_release(&word);
        if (quote)
            return err_set(err, ERR_USAGE, "%s: a quote is not closed", text);
        if (!some)
            return 0;
    }
}

struct words *commands_add(struct commands *commands, const char *program)
{
    struct words *words = ARR_PUSH(commands->items, commands->n_items, commands->cap_items);

    words_add(words, program);
    return words;
}

void commands_add_copy(struct commands *commands, const char *from, const char *to)
{
    struct words *argv = commands_add(commands, "cp");

    words_add(argv, "-a");
    words_add(argv, "--reflink=never"); // later writes must cost what they cost
    words_add(argv, "-T");
    words_add(argv, from);
    words_add(argv, to);
}

void commands_release(struct commands *commands)
{
    for (size_t i = 0; i < commands->n_items; i++)
        words_release(&commands->items[i]);
    free(commands->items);
    *commands = (struct commands){0};
}

bool setting_is_named(const char *name, const char *other)
{
    for (; *name && *other; name++, other++) {
        char a = *name == '-' ? '_' : (char)tolower((unsigned char)*name);
        char b = *other == '-' ? '_' : (char)tolower((unsigned char)*other);
        if (a != b)
            return false;
    }
    return *name == *other;
}

bool settings_have(const struct kvs *settings, const char *name)
{
    for (size_t i = 0; i < settings->n; i++)
        if (setting_is_named(settings->items[i].key, name))
            return true;
    return false;
}
