#include "workload/script.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"

// One \if block that is open.
struct block {
    struct place place;
    bool has_else;
};

struct script_parser {
    struct compiler *c;
    struct lexer lexer;
    int source;
    size_t first_command;

    // The statement being collected.
    size_t first_part;
    struct str text;    // plain text since the last variable
    struct str shown;   // the whole, blanks folded
    struct place start; // of its first word
    bool has_words;     // something but blanks and comments
    struct place join;

    struct block *blocks;
    size_t n_blocks, cap_blocks;

    // The pipeline section that is open.
    bool in_section;
    struct place section; // its begin
    size_t section_block; // n_blocks then: it ends in the same branch
    int n_unsynced;       // statements of its present batch
};

int compiler_fail(const struct compiler *compiler, const struct place *place, struct err *err,
                  const char *fmt, ...)
{
    char what[ERR_TEXT_MAX];
    va_list ap;

    assert(place->line > 0);
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return err_set(err, ERR_USAGE, "%s:%d:%d: %s", compiler->sources[place->script].file,
                   place->line, place->column, what);
}

static struct place place_of(struct script_parser *p, size_t offset)
{
    struct place place = {.script = p->source};

    lexer_place(&p->lexer, offset, &place.line, &place.column);
    return place;
}

// ---- statements

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_blank_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_space(s[i]))
            return false;
    return true;
}

static void show(struct script_parser *p, const char *s, size_t n, bool fold)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_space(s[i])) {
            str_addc(&p->shown, s[i]);
        } else if (!fold || (p->shown.len > 0 && p->shown.buf[p->shown.len - 1] != ' ')) {
            str_addc(&p->shown, ' ');
        }
    }
}

static void flush_text(struct script_parser *p)
{
    if (p->text.len == 0)
        return;
    *ARR_PUSH(p->c->parts, p->c->n_parts, p->c->cap_parts) =
        (struct part){.symbol = -1, .text = pool_text(p->c->pool, p->text.buf, p->text.len)};
    str_clear(&p->text);
}

static void add_text(struct script_parser *p, const struct token *token)
{
    const char *s = token->s;
    size_t n = token->len;
    bool comment = token->kind == LEX_QUOTED && s[0] == '/';

    if (p->shown.len == 0 && token->kind == LEX_TEXT) // the statement begins with its first word
        for (; n > 0 && is_space(*s); n--)
            s++;
    if (n == 0)
        return;
    if (p->shown.len == 0)
        p->start = place_of(p, (size_t)(s - p->lexer.text));
    p->has_words = p->has_words || !(comment || is_blank_text(s, n));
    str_addn(&p->text, s, n);
    show(p, s, n, token->kind == LEX_TEXT);
}

// A '?' outside quotes would be counted as a parameter by engines that mark theirs so, or be NULL.
static int check_marks(struct script_parser *p, const struct token *token, struct err *err)
{
    const char *mark = memchr(token->s, '?', token->len);

    if (!mark || p->c->options->placeholder != DB_PLACE_QUESTION)
        return 0;
    return lexer_fail(&p->lexer, (size_t)(mark - p->lexer.text), err,
                      "a bare ? would be taken for a parameter; write a :variable");
}

static void add_variable(struct script_parser *p, const struct token *token)
{
    size_t offset = token->offset;

    if (p->shown.len == 0)
        p->start = place_of(p, offset);
    flush_text(p);
    int symbol = symbols_use(&p->c->symbols, &p->lexer, token, false);
    *ARR_PUSH(p->c->parts, p->c->n_parts, p->c->cap_parts) =
        (struct part){.symbol = symbol,
                      .text = pool_text(p->c->pool, token->s - 1, token->len + 1),
                      .place = place_of(p, offset)};
    show(p, token->s - 1, token->len + 1, true);
    p->has_words = true;
}

static int add_join(struct script_parser *p, const struct token *token, struct err *err)
{
    if (p->c->options->protocol != DB_SIMPLE)
        return lexer_fail(&p->lexer, token->offset, err,
                          "\\; joins statements in the simple protocol only; write ; or use "
                          "--protocol simple");
    if (p->shown.len == 0)
        p->start = place_of(p, token->offset);
    if (p->join.line == 0)
        p->join = place_of(p, token->offset);
    str_addc(&p->text, ';');
    show(p, token->s, token->len, true);
    return 0;
}

// A batch goes out whole, and thousands of clients have room for one each.
static int count_joined(struct script_parser *p, struct err *err)
{
    if (!p->in_section || ++p->n_unsynced <= DB_PIPELINE_MAX)
        return 0;
    return compiler_fail(p->c, &p->start, err,
                         "more than %d statements in one batch of a pipeline section; write "
                         "\\syncpipeline between them",
                         DB_PIPELINE_MAX);
}

// Makes a command of what was collected, unless it is blank: then it is dropped.
static int finish_statement(struct script_parser *p, struct err *err)
{
    struct compiler *c = p->c;
    int status = 0;

    while (p->text.len > 0 && is_space(p->text.buf[p->text.len - 1]))
        p->text.buf[--p->text.len] = '\0';
    while (p->shown.len > 0 && p->shown.buf[p->shown.len - 1] == ' ')
        p->shown.buf[--p->shown.len] = '\0';
    flush_text(p);
    if (p->has_words) {
        *ARR_PUSH(c->commands, c->n_commands, c->cap_commands) =
            (struct command){.code = COMMAND_SQL,
                             .place = p->start,
                             .first_part = (int)p->first_part,
                             .n_parts = (int)(c->n_parts - p->first_part),
                             .shown = pool_text(c->pool, p->shown.buf, p->shown.len),
                             .join = p->join};
        status = count_joined(p, err);
    }
    p->first_part = c->n_parts;
    str_clear(&p->shown);
    p->has_words = false;
    p->join = (struct place){0};
    return status;
}

// ---- meta-commands

typedef int meta_fn(struct script_parser *p, struct command *command, struct err *err);

static int parse_expr(struct script_parser *p, struct command *command, struct err *err)
{
    return expr_parse(p->c->pool, &p->c->symbols, &p->lexer, &command->expr, err);
}

static int parse_end(struct script_parser *p, const char *name, struct err *err)
{
    struct token token;

    lexer_next_word(&p->lexer, &token);
    if (token.kind == LEX_EOL)
        return 0;
    return lexer_fail(&p->lexer, token.offset, err, "unexpected \"%.*s\" after \\%s",
                      (int)token.len, token.s, name);
}

static int parse_set(struct script_parser *p, struct command *command, struct err *err)
{
    struct token name;

    command->code = COMMAND_SET;
    lexer_next_word(&p->lexer, &name);
    if (name.kind == LEX_EOL)
        return lexer_fail(&p->lexer, name.offset, err,
                          "\\set needs a variable and an expression: \\set name expression");
    if (!lex_is_name(name.s, name.len))
        return lexer_fail(&p->lexer, name.offset, err,
                          "\"%.*s\" is not a variable's name; use letters, digits and _",
                          (int)name.len, name.s);
    command->variable = symbols_add(&p->c->symbols, name.s, name.len);
    p->c->symbols.items[command->variable].is_set = true;
    return parse_expr(p, command, err);
}

static int parse_unit(struct script_parser *p, size_t offset, const char *s, size_t n, int64_t *ret,
                      struct err *err)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};

    for (size_t i = 0; i < ARR_LEN(units); i++) {
        if (strlen(units[i].name) == n && strncasecmp(units[i].name, s, n) == 0) {
            *ret = units[i].ns;
            return 0;
        }
    }
    return lexer_fail(&p->lexer, offset, err, "unknown unit \"%.*s\"; it is us, ms or s", (int)n,
                      s);
}

// \sleep 10, \sleep 10 ms, \sleep 10ms, \sleep :pause ms
static int parse_sleep(struct script_parser *p, struct command *command, struct err *err)
{
    struct token word, unit;
    size_t digits = 0;
    int64_t n = 0;

    command->code = COMMAND_SLEEP;
    command->unit_ns = NS_PER_S;
    if (p->in_section)
        return compiler_fail(p->c, &command->place, err,
                             "\\sleep is not allowed in a pipeline section, of which nothing is "
                             "sent before its end; write it before \\startpipeline");
    lexer_next_word(&p->lexer, &word);
    lexer_next_word(&p->lexer, &unit);
    if (word.kind == LEX_EOL)
        return lexer_fail(&p->lexer, word.offset, err,
                          "\\sleep needs a time: \\sleep 10 ms or \\sleep :variable ms");
    if (unit.kind == LEX_WORD &&
        (parse_unit(p, unit.offset, unit.s, unit.len, &command->unit_ns, err) < 0 ||
         parse_end(p, "sleep TIME UNIT", err) < 0))
        return -1;
    if (word.s[0] == ':' && lex_is_name(word.s + 1, word.len - 1)) {
        struct token name = word;
        name.s++;
        name.len--;
        command->expr =
            expr_variable(p->c->pool, symbols_use(&p->c->symbols, &p->lexer, &name, true));
        return 0;
    }
    while (digits < word.len && word.s[digits] >= '0' && word.s[digits] <= '9') {
        if (n > INT64_MAX / NS_PER_S / 10 - 1)
            return lexer_fail(&p->lexer, word.offset, err, "\\sleep time is too long");
        n = 10 * n + (word.s[digits++] - '0');
    }
    bool joined = digits < word.len && unit.kind == LEX_EOL;
    if (digits == 0 || (digits < word.len && !joined))
        return lexer_fail(&p->lexer, word.offset, err,
                          "\\sleep needs a whole number or a :variable, not \"%.*s\"",
                          (int)word.len, word.s);
    if (joined && parse_unit(p, word.offset + digits, word.s + digits, word.len - digits,
                             &command->unit_ns, err) < 0)
        return -1;
    command->expr = expr_constant(p->c->pool, value_int(n));
    return 0;
}

static int parse_if(struct script_parser *p, struct command *command, struct err *err)
{
    command->code = COMMAND_IF;
    *ARR_PUSH(p->blocks, p->n_blocks, p->cap_blocks) = (struct block){.place = command->place};
    return parse_expr(p, command, err);
}

// The block that \elif, \else or \endif belongs to.
static struct block *open_block(struct script_parser *p, const struct command *command,
                                const char *name, struct err *err)
{
    if (p->n_blocks == 0) {
        compiler_fail(p->c, &command->place, err, "\\%s without an \\if before it", name);
        return NULL;
    }
    if (p->in_section && p->section_block == p->n_blocks) {
        compiler_fail(p->c, &command->place, err,
                      "\\%s inside the pipeline section that began in line %d; write \\endpipeline "
                      "before it",
                      name, p->section.line);
        return NULL;
    }
    struct block *block = &p->blocks[p->n_blocks - 1];
    if (block->has_else && strcmp(name, "endif") != 0) {
        compiler_fail(p->c, &command->place, err, "\\%s after \\else; \\else must come last", name);
        return NULL;
    }
    return block;
}

static int parse_elif(struct script_parser *p, struct command *command, struct err *err)
{
    command->code = COMMAND_ELIF;
    return open_block(p, command, "elif", err) ? parse_expr(p, command, err) : -1;
}

static int parse_else(struct script_parser *p, struct command *command, struct err *err)
{
    struct block *block = open_block(p, command, "else", err);

    if (!block)
        return -1;
    command->code = COMMAND_ELSE;
    block->has_else = true;
    return parse_end(p, "else", err);
}

static int parse_endif(struct script_parser *p, struct command *command, struct err *err)
{
    if (!open_block(p, command, "endif", err))
        return -1;
    command->code = COMMAND_ENDIF;
    p->n_blocks--;
    return parse_end(p, "endif", err);
}

static int parse_startpipeline(struct script_parser *p, struct command *command, struct err *err)
{
    command->code = COMMAND_STARTPIPELINE;
    if (p->c->options->protocol == DB_SIMPLE)
        return compiler_fail(p->c, &command->place, err,
                             "a pipeline needs the protocol extended or prepared; leave "
                             "--protocol simple away");
    if (p->in_section)
        return compiler_fail(p->c, &command->place, err,
                             "\\startpipeline inside the pipeline section that began in line %d",
                             p->section.line);
    p->in_section = true;
    p->section = command->place;
    p->section_block = p->n_blocks;
    p->n_unsynced = 0;
    return parse_end(p, "startpipeline", err);
}

// \syncpipeline or \endpipeline.
static int parse_in_section(struct script_parser *p, struct command *command, const char *name,
                            struct err *err)
{
    if (!p->in_section)
        return compiler_fail(p->c, &command->place, err, "\\%s without a \\startpipeline before it",
                             name);
    if (p->section_block != p->n_blocks)
        return compiler_fail(p->c, &command->place, err,
                             "\\%s in another \\if block than its \\startpipeline in line %d", name,
                             p->section.line);
    p->n_unsynced = 0;
    return parse_end(p, name, err);
}

static int parse_syncpipeline(struct script_parser *p, struct command *command, struct err *err)
{
    command->code = COMMAND_SYNCPIPELINE;
    return parse_in_section(p, command, "syncpipeline", err);
}

static int parse_endpipeline(struct script_parser *p, struct command *command, struct err *err)
{
    command->code = COMMAND_ENDPIPELINE;
    if (parse_in_section(p, command, "endpipeline", err) < 0)
        return -1;
    p->in_section = false;
    return 0;
}

static const struct meta {
    const char *name;
    meta_fn *parse; // NULL: pgbench has it, prony does not yet
} metas[] = {
    {"set", parse_set},
    {"sleep", parse_sleep},
    {"if", parse_if},
    {"elif", parse_elif},
    {"else", parse_else},
    {"endif", parse_endif},
    {"gset", NULL},
    {"aset", NULL},
    {"shell", NULL},
    {"setshell", NULL},
    {"startpipeline", parse_startpipeline},
    {"syncpipeline", parse_syncpipeline},
    {"endpipeline", parse_endpipeline},
};

// \gset [prefix] belongs to the statement before it.
static int parse_gset(struct script_parser *p, const struct token *meta, struct err *err)
{
    struct compiler *c = p->c;
    struct command *last =
        c->n_commands > p->first_command ? &c->commands[c->n_commands - 1] : NULL;
    struct token prefix;

    if (!last || last->code != COMMAND_SQL || last->gset)
        return lexer_fail(&p->lexer, meta->offset, err,
                          "\\gset must follow the statement whose row it stores");
    if (p->in_section)
        return lexer_fail(&p->lexer, meta->offset, err,
                          "\\gset is not allowed in a pipeline section, where no row is there yet; "
                          "write \\endpipeline before its statement");
    lexer_next_word(&p->lexer, &prefix);
    if (prefix.kind == LEX_WORD && !lex_is_name(prefix.s, prefix.len))
        return lexer_fail(&p->lexer, prefix.offset, err,
                          "\"%.*s\" cannot begin a variable's name; use letters, digits and _",
                          (int)prefix.len, prefix.s);
    last->gset = pool_text(c->pool, prefix.s, prefix.len);
    return prefix.kind == LEX_EOL ? 0 : parse_end(p, "gset PREFIX", err);
}

static int fail_meta(struct script_parser *p, const struct token *meta, struct err *err)
{
    const char *words[ARR_LEN(metas) + 1];
    char typed[32];

    for (size_t i = 0; i < ARR_LEN(metas); i++)
        words[i] = metas[i].name;
    words[ARR_LEN(metas)] = NULL;
    snprintf(typed, sizeof(typed), "%.*s", (int)(meta->len < 31 ? meta->len : 31), meta->s);
    if (strcasecmp(typed, "setrandom") == 0) // pgbench before 9.6
        return lexer_fail(&p->lexer, meta->offset, err,
                          "\\setrandom is no more; write \\set name random(low, high)");
    const char *near = text_near_miss(typed, words);
    if (near)
        return lexer_fail(&p->lexer, meta->offset, err,
                          "unknown meta-command \\%s, did you mean \\%s?", typed, near);
    return lexer_fail(&p->lexer, meta->offset, err,
                      "unknown meta-command \\%s; there are \\set, \\sleep, \\if, \\elif, \\else, "
                      "\\endif, \\gset, \\startpipeline, \\syncpipeline and \\endpipeline",
                      typed);
}

static int parse_meta(struct script_parser *p, const struct token *meta, struct err *err)
{
    struct compiler *c = p->c;
    const struct meta *row = NULL;

    for (size_t i = 0; i < ARR_LEN(metas) && !row; i++)
        if (strlen(metas[i].name) == meta->len &&
            strncasecmp(metas[i].name, meta->s, meta->len) == 0)
            row = &metas[i];
    if (!row)
        return fail_meta(p, meta, err);
    if (strcmp(row->name, "gset") == 0)
        return parse_gset(p, meta, err);
    if (!row->parse)
        return lexer_fail(&p->lexer, meta->offset, err,
                          "\\%s is not supported yet; remove it, or run this script with pgbench",
                          row->name);
    struct command command = {.place = place_of(p, meta->offset)};
    if (row->parse(p, &command, err) < 0)
        return -1;
    *ARR_PUSH(c->commands, c->n_commands, c->cap_commands) = command;
    return 0;
}

// ---- the whole

static int parse_token(struct script_parser *p, const struct token *token, struct err *err)
{
    switch (token->kind) {
    case LEX_TEXT:
        if (check_marks(p, token, err) < 0)
            return -1;
        add_text(p, token);
        return 0;
    case LEX_QUOTED:
        add_text(p, token);
        return 0;
    case LEX_VARIABLE:
        add_variable(p, token);
        return 0;
    case LEX_JOIN:
        return add_join(p, token, err);
    case LEX_META:
        return finish_statement(p, err) < 0 ? -1 : parse_meta(p, token, err);
    case LEX_SEMICOLON:
    case LEX_EOF:
        return finish_statement(p, err);
    default:
        assert(!"a token of another language");
        return -1;
    }
}

int script_parse(struct compiler *compiler, int i, struct err *err)
{
    struct source *source = &compiler->sources[i];
    struct script_parser p = {.c = compiler,
                              .source = i,
                              .first_command = compiler->n_commands,
                              .first_part = compiler->n_parts,
                              .text = STR_INIT,
                              .shown = STR_INIT};
    struct token token = {0};
    int status = 0;

    compiler->symbols.script = i;
    lexer_init(&p.lexer, source->file, source->text, source->len);
    do {
        status = lexer_next_sql(&p.lexer, &token, err);
        if (status == 0)
            status = parse_token(&p, &token, err);
    } while (status == 0 && token.kind != LEX_EOF);
    if (status == 0 && p.n_blocks > 0)
        status = compiler_fail(compiler, &p.blocks[p.n_blocks - 1].place, err,
                               "\\if without an \\endif after it");
    if (status == 0 && p.in_section)
        status = compiler_fail(compiler, &p.section, err,
                               "\\startpipeline without an \\endpipeline after it");
    source->first_command = (int)p.first_command;
    source->n_commands = (int)(compiler->n_commands - p.first_command);
    if (status == 0 && source->n_commands == 0)
        status =
            err_set(err, ERR_USAGE, "%s:1:1: no statement or command in the script", source->file);
    free(p.blocks);
    str_release(&p.text);
    str_release(&p.shown);
    return status;
}
