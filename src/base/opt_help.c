// Help and manual page, both from the rows alone.
#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/opt_internal.h"
#include "base/text.h"

#define HELP_COLUMNS     80
#define HELP_LEFT_INDENT 2
#define HELP_LEFT_MAX    28 // a longer left part stands on a line of its own

// Appends words of text to a line that is `column` wide already, broken before HELP_COLUMNS;
// further lines begin at `indent`. Ends with a newline.
static void add_wrapped(struct str *out, const char *text, int column, int indent)
{
    bool line_start = true;

    while (*text) {
        text += strspn(text, " ");
        size_t len = strcspn(text, " ");
        if (len == 0)
            break;
        struct str word = STR_INIT;
        str_addn(&word, text, len);
        int width = text_columns(word.buf);
        if (!line_start && column + 1 + width > HELP_COLUMNS) {
            str_addf(out, "\n%*s", indent, "");
            column = indent;
            line_start = true;
        }
        str_addf(out, "%s%s", line_start ? "" : " ", word.buf);
        column += width + !line_start;
        line_start = false;
        text += len;
        str_release(&word);
    }
    str_addc(out, '\n');
}

// A flag that is on unless turned off.
static bool is_on_by_default(const struct opt_row *row)
{
    return row->type == OPT_FLAG && row->standard && strcmp(row->standard, "yes") == 0;
}

// "-c, --clients N", "    --arrival poisson|even", "    --[no-]fairness".
static void add_left(const struct opt_row *row, struct str *out)
{
    str_addf(out, "%*s", HELP_LEFT_INDENT, "");
    if (row->letter)
        str_addf(out, "-%c, ", row->letter);
    else
        str_add(out, "    ");
    str_addf(out, "--%s%s", is_on_by_default(row) ? "[no-]" : "", row->name);
    if (row->type != OPT_FLAG) {
        str_addc(out, ' ');
        opt_row_add_arg(row, out);
    }
}

static int help_column(const struct opt_row *rows)
{
    int widest = 0;

    for (; rows->name; rows++) {
        struct str left = STR_INIT;
        add_left(rows, &left);
        int width = text_columns(left.buf);
        if (width > widest && width <= HELP_LEFT_MAX)
            widest = width;
        str_release(&left);
    }
    return widest + 2;
}

static void add_row(const struct opt_row *row, int column, struct str *out)
{
    struct str left = STR_INIT, help = STR_INIT;

    add_left(row, &left);
    str_add(&help, row->help);
    if (row->standard && row->type != OPT_FLAG)
        str_addf(&help, " (%s)", row->standard);
    int width = text_columns(left.buf);
    str_add(out, left.buf);
    if (width + 2 > column)
        str_addf(out, "\n%*s", column, "");
    else
        str_addf(out, "%*s", column - width, "");
    add_wrapped(out, help.buf, column, column);
    str_release(&left);
    str_release(&help);
}

// Calls add for each of the alternatives of a usage text, which " | " separates.
static void each_usage(const char *usage, void (*add)(const char *one, bool first, void *context),
                       void *context)
{
    for (bool first = true; usage; first = false) {
        const char *bar = strstr(usage, " | ");
        struct str one = STR_INIT;
        str_addn(&one, usage, bar ? (size_t)(bar - usage) : strlen(usage));
        add(one.buf, first, context);
        str_release(&one);
        usage = bar ? bar + 3 : NULL;
    }
}

struct page {
    const struct opt_command *cmd;
    struct str text;
};

static void add_usage_line(const char *one, bool first, void *context)
{
    struct page *page = context;
    struct str line = STR_INIT;

    str_addf(&line, "prony %s%s %s", page->cmd->name, page->cmd->rows->name ? " [OPTIONS]" : "",
             one);
    str_add(&page->text, first ? "Usage: " : "       ");
    add_wrapped(&page->text, line.buf, 7, 11);
    str_release(&line);
}

void opt_print_help(const struct opt_command *cmd, FILE *out)
{
    struct page page = {cmd, STR_INIT};
    int column = help_column(cmd->rows);
    const char *group = NULL;

    each_usage(cmd->usage, add_usage_line, &page);
    add_wrapped(&page.text, cmd->summary, 0, 0);
    for (const struct opt_row *row = cmd->rows; row->name; row++) {
        if (row->group && (!group || strcmp(group, row->group) != 0)) {
            str_addf(&page.text, "%s%s:\n", group ? "" : "\n", row->group);
            group = row->group;
        }
        add_row(row, column, &page.text);
    }
    if (cmd->example) {
        str_add(&page.text, cmd->rows->name ? "Example:\n" : "\nExample:\n");
        for (const char *p = cmd->example; *p;) {
            size_t len = strcspn(p, "\n");
            str_addf(&page.text, "  %.*s\n", (int)len, p);
            p += len + (p[len] == '\n');
        }
    }
    fputs(page.text.buf, out);
    str_release(&page.text);
}

// Text for a mdoc line: backslashes and a leading control character are made harmless, every '-' is
// a real hyphen-minus that can be copied into a shell.
static void add_roff(struct str *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        str_add(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            str_add(out, "\\e");
        else if (*text == '-')
            str_add(out, "\\-");
        else
            str_addc(out, *text);
    }
}

// The same as one argument of a macro, never taken for a macro itself.
static void add_roff_word(struct str *out, const char *text)
{
    str_add(out, " \"\\&");
    for (; *text; text++) {
        char one[] = {*text, '\0'};
        if (*text == '"')
            str_add(out, "\\(dq");
        else
            add_roff(out, one);
    }
    str_addc(out, '"');
}

static void add_mdoc_row(const struct opt_row *row, struct str *out)
{
    struct str help = STR_INIT, arg = STR_INIT;

    str_add(out, ".It");
    if (row->letter)
        str_addf(out, " Fl %c ,", row->letter);
    str_add(out, " Fl \\-");
    add_roff(out, is_on_by_default(row) ? "[no-]" : "");
    add_roff(out, row->name);
    if (row->type != OPT_FLAG) {
        opt_row_add_arg(row, &arg);
        str_add(out, " Ar");
        add_roff_word(out, arg.buf);
    }
    str_addc(out, '\n');
    str_add(&help, row->help);
    help.buf[0] = (char)toupper((unsigned char)help.buf[0]);
    add_roff(out, help.buf);
    str_add(out, ".\n");
    if (row->standard && row->type != OPT_FLAG) {
        str_add(out, "The default is ");
        add_roff(out, row->standard);
        str_add(out, ".\n");
    }
    str_release(&help);
    str_release(&arg);
}

static void add_mdoc_usage(const char *one, bool first, void *context)
{
    struct page *page = context;
    struct str line = STR_INIT;

    (void)first;
    str_addf(&line, "prony %s%s %s", page->cmd->name, page->cmd->rows->name ? " [options]" : "",
             one);
    str_add(&page->text, ".Dl");
    add_roff_word(&page->text, line.buf);
    str_addc(&page->text, '\n');
    str_release(&line);
}

void opt_print_mdoc(const struct opt_command *cmd, FILE *out)
{
    struct page page = {cmd, STR_INIT};
    const char *group = NULL;

    str_addf(&page.text, ".Ss prony %s\n", cmd->name);
    add_roff(&page.text, cmd->summary);
    str_add(&page.text, ".\n.Pp\n");
    each_usage(cmd->usage, add_mdoc_usage, &page);
    for (const struct opt_row *row = cmd->rows; row->name; row++) {
        if (row->group && (!group || strcmp(group, row->group) != 0)) {
            str_addf(&page.text, "%s.Pp\n", group ? ".El\n" : "");
            group = row->group;
            add_roff(&page.text, group);
            str_add(&page.text, ":\n.Bl -tag -width Ds\n");
        }
        add_mdoc_row(row, &page.text);
    }
    if (group)
        str_add(&page.text, ".El\n");
    if (cmd->example) {
        str_add(&page.text, ".Pp\nExample:\n.Bd -literal -offset indent\n");
        for (const char *p = cmd->example; *p;) {
            struct str line = STR_INIT;
            size_t len = strcspn(p, "\n");
            str_addn(&line, p, len);
            add_roff(&page.text, line.buf);
            str_addc(&page.text, '\n');
            str_release(&line);
            p += len + (p[len] == '\n');
        }
        str_add(&page.text, ".Ed\n");
    }
    fputs(page.text.buf, out);
    str_release(&page.text);
}
