#include "workload/lexer.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || is_digit(c);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

bool lex_is_name_rest(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(s[i]))
            return false;
    return true;
}

bool lex_is_name(const char *s, size_t len)
{
    return len > 0 && is_name_start(s[0]) && lex_is_name_rest(s + 1, len - 1);
}

void lexer_init(struct lexer *lexer, const char *file, const char *text, size_t len)
{
    assert(text[len] == '\0' && strlen(text) == len);
    *lexer = (struct lexer){.file = file, .text = text, .len = len, .line = 1};
}

void lexer_place(struct lexer *lexer, size_t offset, int *ret_line, int *ret_column)
{
    assert(offset <= lexer->len);
    if (offset < lexer->line_start) {
        lexer->line_start = 0;
        lexer->line = 1;
    }
    const char *end;
    while ((end = memchr(lexer->text + lexer->line_start, '\n', offset - lexer->line_start))) {
        lexer->line_start = (size_t)(end + 1 - lexer->text);
        lexer->line++;
    }
    int column = 1;
    for (size_t i = lexer->line_start; i < offset; i++)
        column += (lexer->text[i] & 0xc0) != 0x80; // UTF-8 continuation bytes have no column
    *ret_line = lexer->line;
    *ret_column = column;
}

int lexer_fail(struct lexer *lexer, size_t offset, struct err *err, const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];
    int line, column;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    lexer_place(lexer, offset, &line, &column);
    return err_set(err, ERR_USAGE, "%s:%d:%d: %s", lexer->file, line, column, what);
}

static void token_set(struct lexer *lexer, struct token *token, enum lex_kind kind, size_t start,
                      size_t end)
{
    assert(start <= end && end <= lexer->len);
    *token =
        (struct token){.kind = kind, .offset = start, .s = lexer->text + start, .len = end - start};
    lexer->pos = end;
}

// ---- SQL

// The length of a dollar quote's mark "$tag$" at p, or 0.
static size_t dollar_mark(const char *p)
{
    size_t n = 1;

    assert(*p == '$');
    if (is_name_start(p[n]))
        while (is_name_char(p[n]))
            n++;
    return p[n] == '$' ? n + 1 : 0;
}

// Where the quoted thing that begins at p ends, or NULL when it does not end.
static const char *quoted_end(const char *p, bool backslashes)
{
    if (*p == '$') {
        size_t n = dollar_mark(p);
        for (const char *q = p + n; (q = strchr(q, '$')); q++)
            if (strncmp(q, p, n) == 0)
                return q + n;
        return NULL;
    }
    if (*p == '/') { // comments nest, as in PostgreSQL
        int depth = 1;
        for (p += 2; *p; p++) {
            if (p[0] == '/' && p[1] == '*') {
                depth++;
                p++;
            } else if (p[0] == '*' && p[1] == '/') {
                p++;
                if (--depth == 0)
                    return p + 1;
            }
        }
        return NULL;
    }
    // A doubled mark inside needs no care: it reads as two quoted things side by side.
    for (const char *q = p + 1; *q; q++) {
        if (*q == '\\' && backslashes && q[1])
            q++;
        else if (*q == *p)
            return q + 1;
    }
    return NULL;
}

static int take_quoted(struct lexer *lexer, struct token *ret, struct err *err)
{
    const char *p = lexer->text + lexer->pos;
    // E'...' is the only string with backslashes; the letter has gone out as plain text.
    bool backslashes = *p == '\'' && lexer->pos > 0 && (p[-1] == 'e' || p[-1] == 'E') &&
                       (lexer->pos < 2 || !is_name_char(p[-2]));
    const char *end = quoted_end(p, backslashes);

    if (!end)
        return lexer_fail(lexer, lexer->pos, err, "unterminated %s; it begins here",
                          *p == '/'    ? "comment"
                          : *p == '\'' ? "string"
                          : *p == '$'  ? "dollar-quoted text"
                                       : "quoted name");
    token_set(lexer, ret, LEX_QUOTED, lexer->pos, (size_t)(end - lexer->text));
    return 0;
}

static bool word_is(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

// Looks at one word of the statement for CREATE FUNCTION and the blocks of its body.
static void see_word(struct lexer *lexer, const char *s, size_t len)
{
    switch (lexer->head) {
    case LEX_HEAD_START:
        lexer->head = word_is(s, len, "create") ? LEX_HEAD_CREATE : LEX_HEAD_OTHER;
        return;
    case LEX_HEAD_CREATE:
        if (word_is(s, len, "function") || word_is(s, len, "procedure") ||
            word_is(s, len, "trigger"))
            lexer->head = LEX_HEAD_ROUTINE;
        else if (!word_is(s, len, "or") && !word_is(s, len, "replace") &&
                 !word_is(s, len, "temp") && !word_is(s, len, "temporary"))
            lexer->head = LEX_HEAD_OTHER;
        return;
    case LEX_HEAD_ROUTINE:
        if (lexer->parens > 0)
            return;
        if (word_is(s, len, "begin") || (lexer->blocks > 0 && word_is(s, len, "case")))
            lexer->blocks++;
        else if (lexer->blocks > 0 && word_is(s, len, "end"))
            lexer->blocks--;
        return;
    case LEX_HEAD_OTHER:
        return;
    }
}

// Whether something other than plain text begins at the present position.
static bool is_special(const struct lexer *lexer)
{
    const char *p = lexer->text + lexer->pos;

    switch (*p) {
    case '\'':
    case '"':
    case '`':
    case '\\':
        return true;
    case ';':
        return lexer->parens == 0 && lexer->blocks == 0;
    case ':':
        return is_name_start(p[1]);
    case '$':
        return dollar_mark(p) > 0;
    case '-':
        return p[1] == '-';
    case '/':
        return p[1] == '*';
    default:
        return false;
    }
}

// Moves past one unit of plain text, so that no special thing can be seen inside it: a whole word
// (which may hold '$'), a run of colons, a parameter like $1, else one character.
static void skip_plain(struct lexer *lexer)
{
    const char *start = lexer->text + lexer->pos;
    const char *p = start;

    if (is_name_char(*p)) {
        while (is_name_char(*p) || *p == '$')
            p++;
        see_word(lexer, start, (size_t)(p - start));
    } else if (*p == ':') {
        while (*p == ':')
            p++;
    } else {
        if (*p == '(' && lexer->parens++ == 0)
            lexer->paren_first = lexer->pos;
        else if (*p == ')' && lexer->parens > 0)
            lexer->parens--;
        p++;
    }
    lexer->pos += (size_t)(p - start);
}

static void end_statement(struct lexer *lexer)
{
    lexer->head = LEX_HEAD_START;
    lexer->blocks = 0;
    lexer->parens = 0;
}

static int take_backslash(struct lexer *lexer, struct token *ret, struct err *err)
{
    const char *p = lexer->text + lexer->pos;
    size_t n = 1;

    if (p[1] == ':') {
        token_set(lexer, ret, LEX_TEXT, lexer->pos + 1, lexer->pos + 2);
        return 0;
    }
    if (p[1] == ';') {
        token_set(lexer, ret, LEX_JOIN, lexer->pos, lexer->pos + 2);
        return 0;
    }
    while (p[n] && !is_blank(p[n]) && p[n] != '\n' && p[n] != '\\')
        n++;
    if (n == 1)
        return lexer_fail(lexer, lexer->pos, err,
                          "a backslash that begins no meta-command; remove it");
    if (lexer->parens > 0)
        return lexer_fail(lexer, lexer->paren_first, err, "parenthesis is not closed before \\%.*s",
                          (int)(n - 1), p + 1);
    token_set(lexer, ret, LEX_META, lexer->pos, lexer->pos + n);
    ret->s++;
    ret->len--;
    end_statement(lexer);
    return 0;
}

int lexer_next_sql(struct lexer *lexer, struct token *ret, struct err *err)
{
    size_t start = lexer->pos;

    while (lexer->pos < lexer->len && !is_special(lexer))
        skip_plain(lexer);
    assert(lexer->pos <= lexer->len);
    if (lexer->pos > start) {
        token_set(lexer, ret, LEX_TEXT, start, lexer->pos);
        return 0;
    }
    const char *p = lexer->text + lexer->pos;
    switch (*p) {
    case '\0':
        if (lexer->parens > 0)
            return lexer_fail(lexer, lexer->paren_first, err, "parenthesis is not closed");
        token_set(lexer, ret, LEX_EOF, lexer->len, lexer->len);
        return 0;
    case '-': // a comment to the line's end is left out; the line end after it stays
        lexer->pos += strcspn(p, "\n");
        return lexer_next_sql(lexer, ret, err);
    case '\\':
        return take_backslash(lexer, ret, err);
    case ';':
        token_set(lexer, ret, LEX_SEMICOLON, start, start + 1);
        end_statement(lexer);
        return 0;
    case ':': {
        size_t n = 1;
        while (is_name_char(p[n]))
            n++;
        token_set(lexer, ret, LEX_VARIABLE, start, start + n);
        ret->s++;
        ret->len--;
        return 0;
    }
    default:
        return take_quoted(lexer, ret, err);
    }
}

// ---- meta-commands

// The length of a line continuation (backslash, line end) at p, or 0.
static size_t continuation(const char *p)
{
    if (p[0] != '\\')
        return 0;
    return p[1] == '\n' ? 2 : p[1] == '\r' && p[2] == '\n' ? 3 : 0;
}

static void skip_blanks(struct lexer *lexer)
{
    for (;;) {
        const char *p = lexer->text + lexer->pos;
        if (is_blank(*p))
            lexer->pos++;
        else if (continuation(p) > 0)
            lexer->pos += continuation(p);
        else
            return;
    }
}

static bool at_line_end(const struct lexer *lexer)
{
    return lexer->pos == lexer->len || lexer->text[lexer->pos] == '\n';
}

void lexer_next_word(struct lexer *lexer, struct token *ret)
{
    skip_blanks(lexer);
    const char *p = lexer->text + lexer->pos;
    size_t n = 0;

    if (at_line_end(lexer)) {
        token_set(lexer, ret, LEX_EOL, lexer->pos, lexer->pos);
        return;
    }
    while (p[n] && p[n] != '\n' && !is_blank(p[n]) && continuation(p + n) == 0)
        n++;
    token_set(lexer, ret, LEX_WORD, lexer->pos, lexer->pos + n);
}

// ---- expressions

static int take_integer(struct lexer *lexer, struct token *ret, size_t n, struct err *err)
{
    uint64_t value = 0;

    token_set(lexer, ret, LEX_INT, lexer->pos, lexer->pos + n);
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(ret->s[i] - '0'), &value))
            value = UINT64_MAX;
    if (value > (uint64_t)INT64_MAX + 1)
        return lexer_fail(lexer, ret->offset, err,
                          "integer %.*s is out of range; write a double: %.*s.0", (int)n, ret->s,
                          (int)n, ret->s);
    if (value > INT64_MAX)
        ret->kind = LEX_INT_TOO_BIG;
    else
        ret->i = (int64_t)value;
    return 0;
}

static int take_number(struct lexer *lexer, struct token *ret, struct err *err)
{
    const char *p = lexer->text + lexer->pos;
    size_t n = 0;
    bool is_double = false;

    while (is_digit(p[n]))
        n++;
    if (p[n] == '.') {
        is_double = true;
        n++;
        while (is_digit(p[n]))
            n++;
    }
    if (p[n] == 'e' || p[n] == 'E') {
        size_t e = n + 1;
        if (p[e] == '+' || p[e] == '-')
            e++;
        if (is_digit(p[e])) {
            is_double = true;
            while (is_digit(p[e]))
                e++;
            n = e;
        }
    }
    if (is_name_char(p[n])) {
        size_t word = n;
        while (is_name_char(p[word]))
            word++;
        return lexer_fail(lexer, lexer->pos, err, "malformed number %.*s", (int)word, p);
    }
    if (!is_double)
        return take_integer(lexer, ret, n, err);

    token_set(lexer, ret, LEX_DOUBLE, lexer->pos, lexer->pos + n);
    errno = 0;
    ret->d = strtod(p, NULL); // stops where the token does: what follows is no part of a number
    if (errno == ERANGE)
        return lexer_fail(lexer, ret->offset, err, "number %.*s is out of a double's range", (int)n,
                          p);
    return 0;
}

static int take_operator(struct lexer *lexer, struct token *ret, struct err *err)
{
    const char *p = lexer->text + lexer->pos;
    size_t n = (p[0] == '<' && (p[1] == '=' || p[1] == '>' || p[1] == '<')) ||
                       (p[0] == '>' && (p[1] == '=' || p[1] == '>')) || (p[0] == '!' && p[1] == '=')
                   ? 2
                   : 1;

    if (n == 1 && !strchr("+-*/%(),=<>|#&~", p[0])) {
        size_t bytes = 1; // a whole character in the message
        while ((p[bytes] & 0xc0) == 0x80)
            bytes++;
        const char *remedy = *p == '\'' || *p == '"' ? "; expressions have no text values"
                             : *p == ';' ? "; a meta-command ends with its line, not with ';'"
                             : *p == '^' ? "; write pow(x, y)"
                             : *p == '!' ? "; write not, or <>"
                             : *p == ':' ? "; a variable is written :name"
                                         : "";
        return lexer_fail(lexer, lexer->pos, err, "unexpected character %.*s in an expression%s",
                          (int)bytes, p, remedy);
    }
    token_set(lexer, ret, LEX_OPERATOR, lexer->pos, lexer->pos + n);
    ret->op = n == 1 ? p[0] : p[0] == '!' ? LEX_OP2('<', '>') : LEX_OP2(p[0], p[1]);
    return 0;
}

int lexer_next_expr(struct lexer *lexer, struct token *ret, struct err *err)
{
    skip_blanks(lexer);
    const char *p = lexer->text + lexer->pos;
    size_t n = 0;

    if (at_line_end(lexer)) {
        token_set(lexer, ret, LEX_EOL, lexer->pos, lexer->pos);
        return 0;
    }
    if (is_digit(*p) || (*p == '.' && is_digit(p[1])))
        return take_number(lexer, ret, err);
    if (*p == ':' && is_name_start(p[1])) {
        n = 1;
        while (is_name_char(p[n]))
            n++;
        token_set(lexer, ret, LEX_VARIABLE, lexer->pos, lexer->pos + n);
        ret->s++;
        ret->len--;
        return 0;
    }
    if (is_name_start(*p)) {
        while (is_name_char(p[n]))
            n++;
        token_set(lexer, ret, LEX_NAME, lexer->pos, lexer->pos + n);
        return 0;
    }
    return take_operator(lexer, ret, err);
}
