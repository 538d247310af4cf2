// The command line: which words are options, which are their arguments, and what was meant by those
// that are neither. Values themselves are read in opt_value.c.
#include "base/opt.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/opt_internal.h"
#include "base/str.h"
#include "base/text.h"

#define HELP_ASKED (-2)

struct line {
    const struct opt_command *cmd;
    int argc;
    char **argv;
    int next; // index of the next word
    void *values;
    struct err *err;
};

static const struct opt_row *find_letter(const struct opt_row *rows, char letter)
{
    for (; rows->name; rows++)
        if (rows->letter && rows->letter == letter)
            return rows;
    return NULL;
}

static const struct opt_peer *find_peer(const struct opt_command *cmd, const char *spelling,
                                        size_t len)
{
    for (const struct opt_peer *peer = cmd->peers; peer && peer->spelling; peer++)
        if (strlen(peer->spelling) == len && memcmp(peer->spelling, spelling, len) == 0)
            return peer;
    return NULL;
}

// The row meant by a flag turned off: "--no-NAME".
static const struct opt_row *find_negated(const struct opt_row *rows, const char *name, size_t len)
{
    if (len <= 3 || memcmp(name, "no-", 3) != 0)
        return NULL;
    const struct opt_row *row = opt_find(rows, name + 3, len - 3);
    return row && row->type == OPT_FLAG ? row : NULL;
}

// The long name nearest to the one typed, with its dashes; empty when none is near.
static void add_near_miss(const struct opt_row *rows, const char *name, size_t len, struct str *out)
{
    struct str typed = STR_INIT;
    bool negated = len > 3 && memcmp(name, "no-", 3) == 0;
    const char **names = NULL;
    size_t n = 0, cap = 0;

    str_addn(&typed, negated ? name + 3 : name, negated ? len - 3 : len);
    for (const struct opt_row *row = rows; row->name; row++)
        if (!negated || row->type == OPT_FLAG)
            *ARR_PUSH(names, n, cap) = row->name;
    *ARR_PUSH(names, n, cap) = "help";
    *ARR_PUSH(names, n, cap) = NULL;
    const char *near_miss = text_near_miss(typed.buf, names);
    if (near_miss)
        str_addf(out, "--%s%s", negated ? "no-" : "", near_miss);
    str_release(&typed);
    free(names);
}

// Is a peer's suggestion something to type, rather than a note?
static bool is_replacement(const char *suggestion)
{
    return suggestion[0] == '-' || strncmp(suggestion, "the ", 4) == 0 ||
           strncmp(suggestion, "prony ", 6) == 0;
}

// word: as typed with dashes, len bytes of it without the "=value".
static int refuse_unknown(struct line *line, const char *word, size_t len)
{
    const struct opt_peer *peer = find_peer(line->cmd, word, len);
    struct str spelling = STR_INIT, shown = STR_INIT, near_miss = STR_INIT;

    str_addn(&spelling, word, len);
    text_add_value(&shown, spelling.buf);
    if (!peer && len > 2) {
        size_t dashes = strspn(word, "-");
        add_near_miss(line->cmd->rows, word + dashes, len - dashes, &near_miss);
    }
    if (peer && !is_replacement(peer->suggestion))
        err_set(line->err, ERR_USAGE, "unknown option %s: %s", shown.buf, peer->suggestion);
    else if (peer || near_miss.len)
        err_set(line->err, ERR_USAGE, "unknown option %s, did you mean %s?", shown.buf,
                peer ? peer->suggestion : near_miss.buf);
    else
        err_set(line->err, ERR_USAGE, "unknown option %s (prony %s --help lists them)", shown.buf,
                line->cmd->name);
    str_release(&spelling);
    str_release(&shown);
    str_release(&near_miss);
    return -1;
}

// Is this word an option of the command, rather than an argument that begins with a dash?
static bool is_option(const struct opt_command *cmd, const char *word)
{
    if (word[0] != '-' || !word[1])
        return false;
    if (word[1] != '-')
        return !word[2] && find_letter(cmd->rows, word[1]);
    size_t len = strcspn(word + 2, "=");
    return opt_find(cmd->rows, word + 2, len) || find_negated(cmd->rows, word + 2, len) ||
           (len == 4 && memcmp(word + 2, "help", 4) == 0) || !word[2];
}

// Sets a row that takes an argument: the one joined to it (NULL: none), else the next word.
static int set_argument(struct line *line, const struct opt_row *row, const char *joined)
{
    const char *text = joined;

    if (!text && line->next < line->argc && !is_option(line->cmd, line->argv[line->next]))
        text = line->argv[line->next++];
    if (!text || !*text) {
        struct str allowed = STR_INIT;
        opt_row_add_allowed(row, &allowed);
        err_set(line->err, ERR_USAGE, "--%s needs an argument: %s", row->name, allowed.buf);
        str_release(&allowed);
        return -1;
    }
    struct str both = STR_INIT;
    if (row->pair && !strchr(text, ' ')) {
        if (line->next == line->argc || is_option(line->cmd, line->argv[line->next]))
            return err_set(line->err, ERR_USAGE, "--%s needs two arguments: %s", row->name,
                           row->arg);
        str_addf(&both, "%s %s", text, line->argv[line->next++]);
        text = both.buf;
    }
    struct err why = ERR_INIT;
    int rc = opt_row_set(row, line->values, text, &why);
    str_release(&both);
    return rc < 0 ? err_set(line->err, why.kind, "--%s %s", row->name, why.text) : 0;
}

static void set_flag(struct line *line, const struct opt_row *row, bool on)
{
    assert(row->type == OPT_FLAG);
    *(bool *)((char *)line->values + row->offset) = on;
}

// word is "--name" or "--name=value".
static int parse_long(struct line *line, const char *word)
{
    const char *name = word + 2;
    size_t len = strcspn(name, "=");
    const char *joined = name[len] ? name + len + 1 : NULL;
    const struct opt_row *row = opt_find(line->cmd->rows, name, len);
    const struct opt_row *negated = row ? NULL : find_negated(line->cmd->rows, name, len);

    if (!row && !negated) {
        if (len == 4 && memcmp(name, "help", 4) == 0 && !joined)
            return HELP_ASKED;
        return refuse_unknown(line, word, len + 2);
    }
    if (row && row->type != OPT_FLAG)
        return set_argument(line, row, joined);
    if (joined)
        return err_set(line->err, ERR_USAGE, "--%.*s takes no argument", (int)len, name);
    set_flag(line, row ? row : negated, row != NULL);
    return 0;
}

// word is "-c", "-c8" or joined flags "-qr".
static int parse_short(struct line *line, const char *word)
{
    size_t len = strcspn(word + 1, "=");

    // "-clients 8" would otherwise be option c with the argument "lients".
    if (len > 1 && opt_find(line->cmd->rows, word + 1, len))
        return refuse_unknown(line, word, len + 1);
    for (const char *p = word + 1; *p; p++) {
        const struct opt_row *row = find_letter(line->cmd->rows, *p);
        char spelling[] = {'-', *p, '\0'};
        if (row && row->type == OPT_FLAG) {
            set_flag(line, row, true);
        } else if (row) {
            return set_argument(line, row, p[1] ? p + 1 : NULL);
        } else {
            if ((*p == 'h' || *p == '?') && !find_peer(line->cmd, spelling, 2))
                return HELP_ASKED;
            bool whole = p == word + 1 && !isascii((unsigned char)*p);
            return refuse_unknown(line, whole ? word : spelling, whole ? strlen(word) : 2);
        }
    }
    return 0;
}

// Copied from a formatted page, "--" has often become one long dash. 0 when no option looks like
// it.
static int refuse_long_dash(struct line *line, const char *word)
{
    struct str near_miss = STR_INIT, shown = STR_INIT;
    size_t len = strcspn(word + 3, "=");
    int rc = 0;

    add_near_miss(line->cmd->rows, word + 3, len, &near_miss);
    str_addn(&shown, word, len + 3);
    if (near_miss.len) {
        rc = err_set(line->err, ERR_USAGE,
                     "unknown option %s (it begins with a typographic dash), did you mean %s?",
                     shown.buf, near_miss.buf);
    }
    str_release(&near_miss);
    str_release(&shown);
    return rc;
}

static bool begins_with_long_dash(const char *word)
{
    return strncmp(word, "\u2013", 3) == 0 || strncmp(word, "\u2014", 3) == 0;
}

static int check_args(const struct opt_command *cmd, int n, char **args, struct err *err)
{
    struct str shown = STR_INIT;
    int rc = 0;

    if (n < cmd->min_args) {
        rc =
            err_set(err, ERR_USAGE, "too few arguments, usage: prony %s %s", cmd->name, cmd->usage);
    } else if (cmd->max_args >= 0 && n > cmd->max_args) {
        text_add_value(&shown, args[cmd->max_args]);
        rc = err_set(err, ERR_USAGE, "unexpected argument %s, usage: prony %s %s", shown.buf,
                     cmd->name, cmd->usage);
    }
    str_release(&shown);
    return rc;
}

int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *values, char **args,
              struct err *err)
{
    struct err why = ERR_INIT; // so that err may be NULL
    struct line line = {cmd, argc, argv, 1, values, &why};
    bool options_end = false;
    int n_args = 0, rc = 0;

    assert(cmd->rows && cmd->name && cmd->usage);
    assert(cmd->max_args < 0 || cmd->max_args >= cmd->min_args);
    while (line.next < argc && rc >= 0) {
        char *word = argv[line.next++];
        if (options_end || (word[0] != '-' && !begins_with_long_dash(word)) || !word[1])
            args[n_args++] = word;
        else if (word[0] != '-') {
            rc = refuse_long_dash(&line, word);
            if (rc == 0)
                args[n_args++] = word;
        } else if (word[1] != '-')
            rc = parse_short(&line, word);
        else if (word[2])
            rc = parse_long(&line, word);
        else
            options_end = true;
    }
    if (rc == 0)
        rc = check_args(cmd, n_args, args, &why);
    if (rc == HELP_ASKED)
        return HELP_ASKED;
    if (rc < 0)
        return err_set(err, why.kind, "%s", why.text);
    assert(n_args < argc || argc <= 1);
    return n_args;
}
