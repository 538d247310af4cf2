#include "workload/symbol.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/text.h"

int symbols_find(const struct symbols *symbols, const char *name, size_t len)
{
    for (size_t i = 0; i < symbols->n; i++) {
        const char *have = symbols->items[i].name;
        if (strncmp(have, name, len) == 0 && have[len] == '\0')
            return (int)i;
    }
    return -1;
}

int symbols_add(struct symbols *symbols, const char *name, size_t len)
{
    int at = symbols_find(symbols, name, len);

    assert(lex_is_name(name, len));
    if (at >= 0)
        return at;
    ARR_PUSH(symbols->items, symbols->n, symbols->cap)->name = mem_strndup(name, len);
    return (int)symbols->n - 1;
}

void symbols_release(struct symbols *symbols)
{
    for (size_t i = 0; i < symbols->n; i++) {
        free(symbols->items[i].name);
        if (symbols->items[i].initial.type == DB_TEXT)
            free((char *)symbols->items[i].initial.s);
    }
    free(symbols->items);
    *symbols = (struct symbols){0};
}

void symbols_give(struct symbols *symbols, const char *name, struct db_value value)
{
    int at = symbols_add(symbols, name, strlen(name));
    struct symbol *symbol = &symbols->items[at];

    if (symbol->given)
        return;
    if (value.type == DB_TEXT)
        value.s = mem_strndup(value.s, value.text_len);
    symbol->given = true;
    symbol->initial = value;
}

int symbols_use(struct symbols *symbols, struct lexer *lexer, const struct token *token,
                bool in_expr)
{
    int at = symbols_add(symbols, token->s, token->len);
    struct symbol *symbol = &symbols->items[at];
    struct place *place = in_expr ? &symbol->expr_use : &symbol->sql_use;

    if (place->line == 0) {
        place->script = symbols->script;
        lexer_place(lexer, token->offset, &place->line, &place->column);
    }
    return at;
}

bool symbol_is_defined(const struct symbol *symbol)
{
    return symbol->given || symbol->per_client || symbol->is_set || symbol->is_gset;
}

bool symbol_is_fixed(const struct symbol *symbol)
{
    return symbol->given && !symbol->per_client && !symbol->is_set && !symbol->is_gset;
}

const char *symbols_near(const struct symbols *symbols, const char *name)
{
    const char **words = mem_calloc(symbols->n + 1, sizeof(*words));
    size_t n = 0;

    for (size_t i = 0; i < symbols->n; i++)
        if (symbol_is_defined(&symbols->items[i]))
            words[n++] = symbols->items[i].name;
    const char *near = text_near_miss(name, words);
    free(words);
    return near;
}
