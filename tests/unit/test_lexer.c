// Script text to tokens. A case writes the tokens as KIND(text), one after another.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arr.h"
#include "base/str.h"
#include "workload/lexer.h"

struct lex_case {
    const char *text;
    const char *tokens;
};

static const char *kind_name(enum lex_kind kind)
{
    static const char *const names[] = {
        [LEX_EOF] = "EOF",      [LEX_TEXT] = "TEXT",       [LEX_QUOTED] = "QUOTED",
        [LEX_VARIABLE] = "VAR", [LEX_SEMICOLON] = "",      [LEX_JOIN] = "JOIN",
        [LEX_META] = "META",    [LEX_EOL] = "EOL",         [LEX_WORD] = "WORD",
        [LEX_INT] = "INT",      [LEX_INT_TOO_BIG] = "BIG", [LEX_DOUBLE] = "DOUBLE",
        [LEX_NAME] = "NAME",    [LEX_OPERATOR] = "OP",
    };

    return names[kind];
}

static void add_token(struct str *out, const struct token *token)
{
    str_addf(out, "%s%s(%.*s)", out->len ? " " : "", kind_name(token->kind), (int)token->len,
             token->s);
}

// All tokens of a text as SQL; after a meta-command its words up to the line's end.
static void lex_sql(const char *text, struct str *out)
{
    struct lexer lexer;
    struct token token;
    struct err err = ERR_INIT;

    lexer_init(&lexer, "f", text, strlen(text));
    for (;;) {
        if (lexer_next_sql(&lexer, &token, &err) < 0) {
            str_addf(out, "%s%s", out->len ? " " : "", err.text);
            return;
        }
        if (token.kind == LEX_EOF)
            return;
        add_token(out, &token);
        if (token.kind == LEX_META) {
            for (;;) {
                lexer_next_word(&lexer, &token);
                if (token.kind == LEX_EOL)
                    break;
                add_token(out, &token);
            }
        }
    }
}

static void lex_expr(const char *text, struct str *out)
{
    struct lexer lexer;
    struct token token = {0};
    struct err err = ERR_INIT;

    lexer_init(&lexer, "f", text, strlen(text));
    while (lexer_next_expr(&lexer, &token, &err) == 0 && token.kind != LEX_EOL)
        add_token(out, &token);
    if (err.kind != ERR_NONE)
        str_addf(out, "%s%s", out->len ? " " : "", err.text);
}

static void check(const struct lex_case *cases, size_t n, void (*lex)(const char *, struct str *))
{
    for (size_t i = 0; i < n; i++) {
        struct str got = STR_INIT;
        lex(cases[i].text, &got);
        if (strcmp(got.buf, cases[i].tokens) != 0)
            fail_msg("%s\ngives %s\nnot   %s", cases[i].text, got.buf, cases[i].tokens);
        str_release(&got);
    }
}

static void variables_are_seen_in_plain_text_only(void **state)
{
    static const struct lex_case cases[] = {
        {"", ""},
        {"a :b c", "TEXT(a ) VAR(b) TEXT( c)"},
        {":a:b", "VAR(a) VAR(b)"},
        {":a_1\303\244.x", "VAR(a_1\303\244) TEXT(.x)"},
        {":1 :+ : :", "TEXT(:1 :+ : :)"},
        {"x::int, :y::int", "TEXT(x::int, ) VAR(y) TEXT(::int)"},
        {":::a", "TEXT(:::a)"},
        {"a[1:n]", "TEXT(a[1) VAR(n) TEXT(])"},
        {"a[1:2] := 3", "TEXT(a[1:2] := 3)"},
        {"\\:a \\:\\:b", "TEXT(:) TEXT(a ) TEXT(:) TEXT(:) TEXT(b)"},
        {"':a' \":b\" `:c`", "QUOTED(':a') TEXT( ) QUOTED(\":b\") TEXT( ) QUOTED(`:c`)"},
        {"'it''s :a' :b", "QUOTED('it') QUOTED('s :a') TEXT( ) VAR(b)"},
        {"E'it\\'s :a' :b", "TEXT(E) QUOTED('it\\'s :a') TEXT( ) VAR(b)"},
        {"e'\\\\' :b", "TEXT(e) QUOTED('\\\\') TEXT( ) VAR(b)"},
        {"'\\' :b", "QUOTED('\\') TEXT( ) VAR(b)"},
        {"case'a\\' :b", "TEXT(case) QUOTED('a\\') TEXT( ) VAR(b)"}, // its e is no mark
        {"$$ :a; $$ :b", "QUOTED($$ :a; $$) TEXT( ) VAR(b)"},
        {"$x$ $$ $y$ :a $x$ :b", "QUOTED($x$ $$ $y$ :a $x$) TEXT( ) VAR(b)"},
        {"a$x$ :b", "TEXT(a$x$ ) VAR(b)"}, // a name may hold '$'
        {"$1 + :b", "TEXT($1 + ) VAR(b)"},
        {"/* :a ; */ :b", "QUOTED(/* :a ; */) TEXT( ) VAR(b)"},
        {"/* /* */ :a */:b", "QUOTED(/* /* */ :a */) VAR(b)"},
        {"1 -- :a ; '\n:b", "TEXT(1 ) TEXT(\n) VAR(b)"},
        {"1 - :a / :b", "TEXT(1 - ) VAR(a) TEXT( / ) VAR(b)"},
    };

    (void)state;
    check(cases, ARR_LEN(cases), lex_sql);
}

static void statements_end_at_a_semicolon_of_their_own(void **state)
{
    static const struct lex_case cases[] = {
        {"a; b;", "TEXT(a) (;) TEXT( b) (;)"},
        {"a \\; b;", "TEXT(a ) JOIN(\\;) TEXT( b) (;)"},
        {"(a; b); c;", "TEXT((a; b)) (;) TEXT( c) (;)"},
        {"a); b;", "TEXT(a)) (;) TEXT( b) (;)"},
        {"create function f() begin atomic a; case x when 1 then 2 end; b; end; c",
         "TEXT(create function f() begin atomic a; case x when 1 then 2 end; b; end) (;) TEXT( c)"},
        {"CREATE OR REPLACE PROCEDURE p() BEGIN a; END; c",
         "TEXT(CREATE OR REPLACE PROCEDURE p() BEGIN a; END) (;) TEXT( c)"},
        {"create temp trigger t begin a; b; end; c",
         "TEXT(create temp trigger t begin a; b; end) (;) TEXT( c)"},
        {"create table begin (a int); b;", "TEXT(create table begin (a int)) (;) TEXT( b) (;)"},
        {"begin; a; end; b", "TEXT(begin) (;) TEXT( a) (;) TEXT( end) (;) TEXT( b)"},
    };

    (void)state;
    check(cases, ARR_LEN(cases), lex_sql);
}

static void meta_commands_end_with_their_line(void **state)
{
    static const struct lex_case cases[] = {
        {"\\set a 1 + 2\nb", "META(set) WORD(a) WORD(1) WORD(+) WORD(2) TEXT(\nb)"},
        {"  \\sleep 1\tms", "TEXT(  ) META(sleep) WORD(1) WORD(ms)"},
        {"\\set a 1 \\\n 2\nb", "META(set) WORD(a) WORD(1) WORD(2) TEXT(\nb)"},
        {"\\set a 1\\\r\n2\r\nb", "META(set) WORD(a) WORD(1) WORD(2) TEXT(\nb)"},
        {"a \\gset p\nb", "TEXT(a ) META(gset) WORD(p) TEXT(\nb)"},
        {"a\\gset", "TEXT(a) META(gset)"},
        {"\\set\\\na 1", "META(set) WORD(a) WORD(1)"},
    };

    (void)state;
    check(cases, ARR_LEN(cases), lex_sql);
}

static void what_is_left_open_is_named_where_it_begins(void **state)
{
    static const struct lex_case cases[] = {
        {"a\n  'b;\nc", "TEXT(a\n  ) f:2:3: unterminated string; it begins here"},
        {"\"b", "f:1:1: unterminated quoted name; it begins here"},
        {"E'\\'", "TEXT(E) f:1:2: unterminated string; it begins here"},
        {"a /* /* */", "TEXT(a ) f:1:3: unterminated comment; it begins here"},
        {"\303\244 $x$ a $y$ $x", "TEXT(\303\244 ) f:1:3: unterminated dollar-quoted text; it "
                                  "begins here"},
        {"a (b;\nc", "TEXT(a (b;\nc) f:1:3: parenthesis is not closed"},
        {"a ((b)\n\\set x 1", "TEXT(a ((b)\n) f:1:3: parenthesis is not closed before \\set"},
        {"a \\ b", "TEXT(a ) f:1:3: a backslash that begins no meta-command; remove it"},
        {"a \\", "TEXT(a ) f:1:3: a backslash that begins no meta-command; remove it"},
    };

    (void)state;
    check(cases, ARR_LEN(cases), lex_sql);
}

static void expressions_have_numbers_names_and_operators(void **state)
{
    static const struct lex_case cases[] = {
        {"1 23\n4", "INT(1) INT(23)"},
        {"1.5 .5 1. 1e3 1.5E-3 2e+1", "DOUBLE(1.5) DOUBLE(.5) DOUBLE(1.) DOUBLE(1e3) "
                                      "DOUBLE(1.5E-3) DOUBLE(2e+1)"},
        {"9223372036854775807 9223372036854775808",
         "INT(9223372036854775807) BIG(9223372036854775808)"},
        {"18446744073709551617", "f:1:1: integer 18446744073709551617 is out of range; write a "
                                 "double: 18446744073709551617.0"},
        {"a<=b<>c!=d<<e>>f>=g<h>i=j", "NAME(a) OP(<=) NAME(b) OP(<>) NAME(c) OP(!=) NAME(d) OP(<<) "
                                      "NAME(e) OP(>>) NAME(f) OP(>=) NAME(g) OP(<) NAME(h) OP(>) "
                                      "NAME(i) OP(=) NAME(j)"},
        {":a+:b_1", "VAR(a) OP(+) VAR(b_1)"},
        {"(1,~2)#3&4|5%6/7", "OP(() INT(1) OP(,) OP(~) INT(2) OP()) OP(#) INT(3) OP(&) INT(4) "
                             "OP(|) INT(5) OP(%) INT(6) OP(/) INT(7)"},
        {"1 \\\n + 2", "INT(1) OP(+) INT(2)"},
        {"1\\2", "INT(1) f:1:2: unexpected character \\ in an expression"},
        {"\342\202\254x", "NAME(\342\202\254x)"},
    };

    (void)state;
    check(cases, ARR_LEN(cases), lex_expr);
}

static void places_count_lines_and_characters(void **state)
{
    static const char text[] = "a\n\303\244b\n\nc";
    static const struct {
        size_t offset;
        int line, column;
    } cases[] = {{0, 1, 1}, {1, 1, 2}, {2, 2, 1}, {4, 2, 2}, {6, 3, 1},
                 {7, 4, 1}, {8, 4, 2}, {0, 1, 1}, {4, 2, 2}};
    struct lexer lexer;
    int line, column;

    (void)state;
    lexer_init(&lexer, "f", text, sizeof(text) - 1);
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        lexer_place(&lexer, cases[i].offset, &line, &column);
        assert_int_equal(line, cases[i].line);
        assert_int_equal(column, cases[i].column);
    }
}

static void names_hold_letters_digits_and_underscores(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"a", true},   {"_1", true},   {"\303\244", true}, {"", false},
                 {"1a", false}, {"a-b", false}, {"a b", false},     {"?column?", false}};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        assert_int_equal(lex_is_name(cases[i].text, strlen(cases[i].text)), cases[i].good);
    assert_true(lex_is_name_rest("1a", 2));
    assert_false(lex_is_name_rest("a b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_seen_in_plain_text_only),
        cmocka_unit_test(statements_end_at_a_semicolon_of_their_own),
        cmocka_unit_test(meta_commands_end_with_their_line),
        cmocka_unit_test(what_is_left_open_is_named_where_it_begins),
        cmocka_unit_test(expressions_have_numbers_names_and_operators),
        cmocka_unit_test(places_count_lines_and_characters),
        cmocka_unit_test(names_hold_letters_digits_and_underscores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
