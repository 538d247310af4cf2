// The variables of a workload while it is compiled: one table over all scripts, because a client
// keeps its variables from script to script.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "db/value.h"
#include "workload/lexer.h"

struct place {
    int script, line, column; // line 0: nowhere
};

struct symbol {
    char *name;
    bool given; // has a starting value: automatic, or by -D
    struct db_value initial;
    bool per_client;       // :client_id
    bool is_set;           // by some \set
    bool is_gset;          // some \gset may fill it
    struct place expr_use; // first use in an expression
    struct place sql_use;  // first use in a statement
};

struct symbols {
    struct symbol *items;
    size_t n, cap;
    int script; // being parsed: goes into places
};

int symbols_find(const struct symbols *symbols, const char *name, size_t len); // -1: none
int symbols_add(struct symbols *symbols, const char *name, size_t len);        // finds or adds
void symbols_release(struct symbols *symbols);

// Gives a starting value; the first giver wins. A text is copied.
void symbols_give(struct symbols *symbols, const char *name, struct db_value value);

// Enters a use of a variable at the token's place.
int symbols_use(struct symbols *symbols, struct lexer *lexer, const struct token *token,
                bool in_expr);

// Whether anything can ever give it a value, and whether a client can change the one it has.
bool symbol_is_defined(const struct symbol *symbol);
bool symbol_is_fixed(const struct symbol *symbol);

// The defined variable that was probably meant, or NULL.
const char *symbols_near(const struct symbols *symbols, const char *name);
