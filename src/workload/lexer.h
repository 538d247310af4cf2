// Cuts script text into tokens. One text has two languages: SQL, which runs over line ends until
// its semicolon, and meta-commands, which end with their line (a backslash before the line end
// carries them on). Whoever parses knows which one comes next and asks for it.
//
// Tokens point into the text, which must outlive them. Nothing is allocated.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum lex_kind {
    LEX_EOF,

    // SQL. Variables are seen only outside quotes, dollar quotes and comments; "::" is a cast.
    LEX_TEXT,     // plain text; "\:" gives the colon alone
    LEX_QUOTED,   // a string, quoted name, dollar-quoted text or /* comment */, with its marks
    LEX_VARIABLE, // s, len: the name without its colon (also in expressions)
    LEX_SEMICOLON,
    LEX_JOIN, // "\;": a semicolon inside one request
    LEX_META, // s, len: the word after the backslash; its arguments follow

    // Meta-commands.
    LEX_EOL, // the line's end (not consumed) or the text's
    LEX_WORD,

    // Expressions.
    LEX_INT,         // i
    LEX_INT_TOO_BIG, // 9223372036854775808, which only a minus before it makes a number
    LEX_DOUBLE,      // d
    LEX_NAME,        // function or keyword
    LEX_OPERATOR,    // op: the character, or LEX_OP2 of two; "!=" reads as "<>"
};

#define LEX_OP2(a, b) ((a) << 8 | (b))

struct token {
    enum lex_kind kind;
    size_t offset; // of its first byte in the text
    const char *s;
    size_t len;
    int op;
    union {
        int64_t i;
        double d;
    };
};

// What the present SQL statement has begun with: CREATE FUNCTION, PROCEDURE and TRIGGER have
// bodies BEGIN ... END whose semicolons belong to them.
enum lex_head { LEX_HEAD_START, LEX_HEAD_CREATE, LEX_HEAD_ROUTINE, LEX_HEAD_OTHER };

struct lexer {
    const char *file; // for messages
    const char *text; // terminated
    size_t len;
    size_t pos;

    enum lex_head head;
    int blocks;         // open BEGIN and CASE of a routine's body
    int parens;         // open parentheses of the statement
    size_t paren_first; // where the outermost open one stands

    size_t line_start; // where the line looked up last begins,
    int line;          // and its number: places are mostly asked for in order
};

// text must be free of NUL bytes.
void lexer_init(struct lexer *lexer, const char *file, const char *text, size_t len);

// The next token of SQL, of a meta-command's words, of an expression. Negative with err set when
// there is none: an open quote, a stray backslash, a character no expression has, a number out of
// range.
int lexer_next_sql(struct lexer *lexer, struct token *ret, struct err *err);
void lexer_next_word(struct lexer *lexer, struct token *ret);
int lexer_next_expr(struct lexer *lexer, struct token *ret, struct err *err);

// Line and column (in characters) of an offset, both from 1.
void lexer_place(struct lexer *lexer, size_t offset, int *ret_line, int *ret_column);

// Sets ERR_USAGE "file:line:column: ..." and returns -1.
int lexer_fail(struct lexer *lexer, size_t offset, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

// Whether bytes may be a variable's name: letters, digits, '_' and anything beyond ASCII, not
// beginning with a digit. The rest of one, after its beginning, may begin with a digit too.
bool lex_is_name(const char *s, size_t len);
bool lex_is_name_rest(const char *s, size_t len);
