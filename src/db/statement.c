// What can be said about a statement from its text alone.
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "db/driver.h"

// Past blanks, comments and opening parentheses: where the next word begins.
static const char *skip_blank(const char *p)
{
    for (;;) {
        if (isspace((unsigned char)*p) || *p == '(') {
            p++;
        } else if (p[0] == '-' && p[1] == '-') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            if (!end)
                return p + strlen(p);
            p = end + 2;
        } else {
            return p;
        }
    }
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

// Moves *p past the word if it stands there, at a word boundary.
static bool take_word(const char **p, const char *word)
{
    const char *start = skip_blank(*p);
    size_t len = strlen(word);

    if (strncasecmp(start, word, len) != 0 || is_word_char(start[len]))
        return false;
    *p = start + len;
    return true;
}

// Past a quoted thing that begins at p: 'text', "name", `name`, $tag$text$tag$; p itself when none
// does. Doubled quotes need no care: they read as two quoted things side by side.
static const char *skip_quoted(const char *p)
{
    if (*p == '\'' || *p == '"' || *p == '`') {
        const char *end = strchr(p + 1, *p);
        return end ? end + 1 : p + strlen(p);
    }
    if (*p == '$') {
        size_t tag = 1;
        while (is_word_char(p[tag]))
            tag++;
        if (p[tag] != '$' || isdigit((unsigned char)p[1]))
            return p;
        tag++;
        for (const char *end = p + tag; (end = strchr(end, '$')) != NULL; end++)
            if (strncmp(end, p, tag) == 0)
                return end + tag;
        return p + strlen(p);
    }
    return p;
}

// The beginning of the statement after the first ';' outside quotes and comments, or NULL.
static const char *next_part(const char *p)
{
    while (*p && *p != ';') {
        const char *past = skip_quoted(p);
        if (past == p && ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*')))
            past = skip_blank(p);
        p = past > p ? past : p + 1;
    }
    return *p == ';' ? p + 1 : NULL;
}

static enum db_kind part_kind(const char *sql)
{
    static const char *const reads[] = {"select", "values", "show", "explain", "table", NULL};
    const char *p = sql;

    for (int i = 0; reads[i]; i++)
        if (take_word(&p, reads[i]))
            return DB_KIND_READ;
    if (take_word(&p, "begin"))
        return DB_KIND_BEGIN;
    if (take_word(&p, "start"))
        return take_word(&p, "transaction") ? DB_KIND_BEGIN : DB_KIND_WRITE;
    if (take_word(&p, "lock")) // PostgreSQL's LOCK TABLE stands inside a transaction
        return take_word(&p, "tables") ? DB_KIND_BEGIN : DB_KIND_WRITE;
    if (take_word(&p, "commit") || take_word(&p, "end"))
        return DB_KIND_COMMIT;
    if (take_word(&p, "unlock"))
        return DB_KIND_COMMIT;
    if (take_word(&p, "prepare")) // PREPARE TRANSACTION ends it and is durable
        return take_word(&p, "transaction") ? DB_KIND_COMMIT : DB_KIND_WRITE;
    if (take_word(&p, "abort"))
        return DB_KIND_ROLLBACK;
    if (take_word(&p, "rollback")) {
        (void)(take_word(&p, "work") || take_word(&p, "transaction"));
        return take_word(&p, "to") ? DB_KIND_WRITE : DB_KIND_ROLLBACK; // TO SAVEPOINT: goes on
    }
    return DB_KIND_WRITE;
}

// Several statements in one text count as what decides the outcome: with a COMMIT among them a lost
// connection leaves it unknown.
enum db_kind db_statement_kind(const char *sql)
{
    static const int weight[] = {
        [DB_KIND_READ] = 0,  [DB_KIND_ROLLBACK] = 1, [DB_KIND_WRITE] = 2,
        [DB_KIND_BEGIN] = 3, [DB_KIND_COMMIT] = 4,
    };
    const char *p = sql;

    if (take_word(&p, "create")) // triggers and procedures hold a BEGIN ...; END of their own
        return DB_KIND_WRITE;
    enum db_kind kind = part_kind(sql);
    for (p = sql; (p = next_part(p)) != NULL;) {
        if (*skip_blank(p) == '\0')
            break;
        if (*skip_blank(p) == ';')
            continue;
        enum db_kind next = part_kind(p);
        if (weight[next] > weight[kind])
            kind = next;
    }
    return kind;
}

void db_statement_append(const struct db_statement *statement, const struct db_value *params,
                         struct str *out)
{
    char buf[DB_VALUE_TEXT_MAX];

    assert(statement->n_params >= 0 && statement->n_params <= DB_PARAMS_MAX);
    for (int i = 0; i < statement->n_params; i++) {
        int len;
        const char *text = db_value_text(&params[i], buf, &len);
        str_add(out, statement->pieces[i]);
        if (text)
            str_addn(out, text, (size_t)len);
        else
            str_addn(out, "NULL", 4);
    }
    str_add(out, statement->pieces[statement->n_params]);
}

void db_statement_expand(const struct db_statement *statement, const struct db_value *params,
                         struct str *out)
{
    str_clear(out);
    db_statement_append(statement, params, out);
}

void db_create_table_sql(const struct db_table *table, bool with_key, const char *suffix,
                         struct str *out)
{
    assert(table->n_columns > 0);
    str_addf(out, "CREATE TABLE %s (", table->name);
    for (int i = 0; i < table->n_columns; i++) {
        const struct db_column *column = &table->columns[i];
        str_addf(out, "%s%s %s%s", i ? ", " : "", column->name, column->type,
                 column->not_null ? " NOT NULL" : "");
    }
    if (with_key && table->primary_key)
        str_addf(out, ", PRIMARY KEY (%s)", table->primary_key);
    str_addf(out, ")%s", suffix);
}
