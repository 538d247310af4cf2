// The second half of the compiler: with all scripts known, names get their meaning, conditions that
// cannot change are decided, and what is left becomes the flat program that clients run.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/script.h"
#include "workload/vm.h"

// One \if block that is open while operations are emitted.
struct branch {
    bool reached;  // the block itself can be reached
    bool decided;  // a condition was constant and true: what follows in the block is dead
    bool live;     // the present branch can be reached
    int unless;    // operation that skips the present branch, to be patched; -1: none
    int first_end; // chain, through target, of jumps to the block's end; -1: none
};

struct linker {
    struct compiler *c;
    struct workload *w;
    int script;
    size_t cap_ops, cap_statements, cap_origins, cap_branches;
    size_t n_ops, n_statements, n_origins;
    struct branch *branches;
    size_t n_branches;
    bool begins, commits; // in the present script
    int pipeline;         // operation whose n_ahead is being counted; -1: none
};

// ---- names

// Variables that a \gset may fill are known by its prefix alone: the columns' names come with the
// answer.
static void mark_gset(struct compiler *c)
{
    for (size_t i = 0; i < c->n_commands; i++) {
        const char *prefix = c->commands[i].gset;
        for (size_t k = 0; prefix && k < c->symbols.n; k++) {
            struct symbol *symbol = &c->symbols.items[k];
            size_t len = strlen(prefix);
            if (strlen(symbol->name) > len && strncmp(symbol->name, prefix, len) == 0)
                symbol->is_gset = true;
        }
    }
}

static int fail_undefined(struct compiler *c, const struct symbol *symbol,
                          const struct place *place, const char *escape, struct err *err)
{
    const char *near = symbols_near(&c->symbols, symbol->name);

    if (near)
        return compiler_fail(c, place, err, "variable :%s is never set, did you mean :%s?",
                             symbol->name, near);
    return compiler_fail(c, place, err, "variable :%s is never set; use \\set or -D %s=VALUE%s",
                         symbol->name, symbol->name, escape);
}

// A name that nothing sets is an error in expressions. In statements pgbench sends it as it stands
// in the simple protocol and as NULL in the others; a run full of NULLs measures nothing, so there
// it is an error too. Engines that mark parameters by '?' have no other use for a ":name": SQLite
// would take it as a parameter that is NULL.
static int check_names(struct compiler *c, struct err *err)
{
    bool as_text = c->options->protocol == DB_SIMPLE && c->options->placeholder == DB_PLACE_DOLLAR;

    for (size_t i = 0; i < c->symbols.n; i++) {
        const struct symbol *symbol = &c->symbols.items[i];
        if (symbol_is_defined(symbol))
            continue;
        if (symbol->expr_use.line > 0)
            return fail_undefined(c, symbol, &symbol->expr_use, "", err);
        if (symbol->sql_use.line > 0 && !as_text)
            return fail_undefined(c, symbol, &symbol->sql_use, ", or write \\: for a plain colon",
                                  err);
    }
    return 0;
}

// Symbols become the workload's variables, under the same index.
static void link_variables(struct compiler *c, struct workload *w)
{
    size_t n = c->symbols.n;

    w->n_variables = (int)n;
    w->variables = mem_calloc(n + 1, sizeof(*w->variables));
    w->initial = mem_calloc(n + 1, sizeof(*w->initial));
    w->unset = mem_calloc(n + 1, sizeof(*w->unset));
    for (size_t i = 0; i < n; i++) {
        const struct symbol *symbol = &c->symbols.items[i];
        w->variables[i] = mem_strdup(symbol->name);
        w->unset[i] = !symbol->given;
        if (symbol->given)
            w->initial[i] = symbol->initial;
        if (symbol->given && symbol->initial.type == DB_TEXT)
            w->initial[i].s = pool_text(c->pool, symbol->initial.s, symbol->initial.text_len);
        if (symbol->is_set || symbol->is_gset)
            *ARR_PUSH(c->pool->assigned, c->pool->n_assigned, c->pool->cap_assigned) = (int)i;
        if (symbol->per_client)
            c->pool->client_id_variable = (int)i;
    }
}

// ---- operations

static bool is_live(const struct linker *l)
{
    return l->n_branches == 0 || l->branches[l->n_branches - 1].live;
}

static struct op *emit(struct linker *l, enum op_code code, const struct command *command,
                       int number)
{
    struct op *op = ARR_PUSH(l->w->ops, l->n_ops, l->cap_ops);

    op->code = (uint8_t)code;
    op->line = command->place.line;
    op->command = number;
    return op;
}

// The texts of one statement: sql with placeholders and the pieces between its parameters.
static int build_statement(struct linker *l, const struct command *command,
                           struct db_statement *statement, struct err *err)
{
    struct compiler *c = l->c;
    struct str sql = STR_INIT;
    struct str piece = STR_INIT;
    const char *pieces[DB_PARAMS_MAX + 1];
    int n = 0;

    for (int i = command->first_part; i < command->first_part + command->n_parts; i++) {
        const struct part *part = &c->parts[i];
        if (part->symbol < 0 || !symbol_is_defined(&c->symbols.items[part->symbol])) {
            str_add(&sql, part->text);
            str_add(&piece, part->text);
            continue;
        }
        if (n == DB_PARAMS_MAX) {
            str_release(&sql);
            str_release(&piece);
            return compiler_fail(c, &part->place, err,
                                 "a statement can use %d variables at most; split it",
                                 DB_PARAMS_MAX);
        }
        pieces[n++] = pool_text(c->pool, piece.buf, piece.len);
        str_clear(&piece);
        if (c->options->placeholder == DB_PLACE_DOLLAR)
            str_addf(&sql, "$%d", n);
        else
            str_addc(&sql, '?');
        *ARR_PUSH(c->pool->params, c->pool->n_params, c->pool->cap_params) = part->symbol;
    }
    pieces[n] = pool_text(c->pool, piece.buf, piece.len);
    statement->sql = pool_text(c->pool, sql.buf, sql.len);
    statement->n_params = n;
    statement->pieces = pool_keep(c->pool, mem_calloc((size_t)n + 1, sizeof(*statement->pieces)));
    memcpy(statement->pieces, pieces, ((size_t)n + 1) * sizeof(*pieces));
    str_release(&sql);
    str_release(&piece);
    return 0;
}

static int link_sql(struct linker *l, const struct command *command, int number, struct err *err)
{
    struct workload *w = l->w;
    struct expr_pool *pool = l->c->pool;
    struct db_statement statement = {.index = (int)l->n_statements};
    int first_param = (int)pool->n_params;

    if (build_statement(l, command, &statement, err) < 0)
        return -1;
    statement.kind = db_statement_kind(statement.sql);
    l->begins = l->begins || statement.kind == DB_KIND_BEGIN;
    l->commits = l->commits || statement.kind == DB_KIND_COMMIT;
    if (statement.n_params > pool->params_max)
        pool->params_max = statement.n_params;

    *ARR_PUSH(w->statements, l->n_statements, l->cap_statements) = statement;
    *ARR_PUSH(w->origins, l->n_origins, l->cap_origins) = (struct statement_origin){
        .script = l->script, .line = command->place.line, .text = command->shown};
    if (l->pipeline >= 0)
        w->ops[l->pipeline].pipeline.n_ahead++;
    emit(l, OP_SQL, command, number)->sql =
        (struct op_sql){.statement = statement.index,
                        .first_param = first_param,
                        .gset = command->gset != NULL,
                        .prefix = command->gset ? command->gset : "",
                        .prefix_len = command->gset ? strlen(command->gset) : 0};
    return 0;
}

// ---- \if blocks

// Opens the present branch under a condition, or decides it now when it cannot change.
static void enter_branch(struct linker *l, struct branch *branch, const struct command *command,
                         int number)
{
    struct expr expr = command->expr;

    assert(branch->unless < 0);
    branch->live = branch->reached && !branch->decided;
    if (!branch->live)
        return;
    expr_fold(l->c->pool, &expr, &l->c->symbols);
    if (expr_is_constant(l->c->pool, &expr)) {
        const struct expr_ins *ins = &l->c->pool->code[expr.first];
        branch->live = branch->decided = expr_truth(&l->c->pool->constants[ins->arg]);
        return;
    }
    emit(l, OP_JUMP_UNLESS, command, number)->expr = expr;
    branch->unless = (int)l->n_ops - 1;
}

// Closes the present branch: a client that ran it goes on after the block.
static void leave_branch(struct linker *l, struct branch *branch, const struct command *command,
                         int number)
{
    if (branch->unless < 0)
        return;
    // A jump to the very next operation is left in: it is rare and harmless.
    if (command->code != COMMAND_ENDIF) {
        emit(l, OP_JUMP, command, number)->target = branch->first_end;
        branch->first_end = (int)l->n_ops - 1;
    }
    l->w->ops[branch->unless].target = (int)l->n_ops;
    branch->unless = -1;
}

static void link_condition(struct linker *l, const struct command *command, int number)
{
    if (command->code == COMMAND_IF) {
        bool reached = is_live(l);
        struct branch *branch = ARR_PUSH(l->branches, l->n_branches, l->cap_branches);
        *branch = (struct branch){.reached = reached, .unless = -1, .first_end = -1};
        enter_branch(l, branch, command, number);
        return;
    }
    assert(l->n_branches > 0);
    struct branch *branch = &l->branches[l->n_branches - 1];
    leave_branch(l, branch, command, number);
    switch (command->code) {
    case COMMAND_ELIF:
        enter_branch(l, branch, command, number);
        break;
    case COMMAND_ELSE:
        branch->live = branch->reached && !branch->decided;
        break;
    default: // \endif
        for (int at = branch->first_end; at >= 0;) {
            int next = l->w->ops[at].target;
            l->w->ops[at].target = (int)l->n_ops;
            at = next;
        }
        l->n_branches--;
        break;
    }
}

static void link_pipeline(struct linker *l, const struct command *command, int number)
{
    enum vm_command what = command->code == COMMAND_STARTPIPELINE  ? VM_START_PIPELINE
                           : command->code == COMMAND_SYNCPIPELINE ? VM_SYNC_PIPELINE
                                                                   : VM_END_PIPELINE;

    emit(l, OP_PIPELINE, command, number)->pipeline.command = (int)what;
    l->pipeline = what == VM_END_PIPELINE ? -1 : (int)l->n_ops - 1;
    l->w->has_pipeline = true;
}

static int link_command(struct linker *l, const struct command *command, int number,
                        struct err *err)
{
    struct op *op;

    switch (command->code) {
    case COMMAND_IF:
    case COMMAND_ELIF:
    case COMMAND_ELSE:
    case COMMAND_ENDIF:
        link_condition(l, command, number);
        return 0;
    default:
        break;
    }
    if (!is_live(l))
        return 0;
    switch (command->code) {
    case COMMAND_SQL:
        return link_sql(l, command, number, err);
    case COMMAND_STARTPIPELINE:
    case COMMAND_SYNCPIPELINE:
    case COMMAND_ENDPIPELINE:
        link_pipeline(l, command, number);
        return 0;
    default:
        break;
    }
    struct expr expr = command->expr;
    expr_fold(l->c->pool, &expr, &l->c->symbols);
    op = emit(l, command->code == COMMAND_SET ? OP_SET : OP_SLEEP, command, number);
    op->expr = expr;
    if (command->code == COMMAND_SET)
        op->variable = command->variable;
    else
        op->unit_ns = command->unit_ns;
    return 0;
}

static int link_script(struct linker *l, int i, struct err *err)
{
    const struct source *source = &l->c->sources[i];
    struct script *script = &l->w->scripts[i];

    l->script = i;
    l->begins = l->commits = false;
    script->name = mem_strdup(source->name);
    script->weight = source->weight;
    script->first_op = (int)l->n_ops;
    for (int k = 0; k < source->n_commands; k++)
        if (link_command(l, &l->c->commands[source->first_command + k], k + 1, err) < 0)
            return -1;
    assert(l->n_branches == 0);
    script->n_ops = (int)l->n_ops - script->first_op;
    l->w->has_explicit_transaction = l->w->has_explicit_transaction || (l->begins && l->commits);
    return 0;
}

int link_program(struct compiler *compiler, struct workload *workload, struct err *err)
{
    struct linker l = {.c = compiler, .w = workload, .pipeline = -1};
    int status = 0;

    mark_gset(compiler);
    if (check_names(compiler, err) < 0)
        return -1;
    link_variables(compiler, workload);
    workload->n_scripts = compiler->n_sources;
    workload->scripts = mem_calloc((size_t)compiler->n_sources, sizeof(*workload->scripts));
    for (int i = 0; i < compiler->n_sources && status == 0; i++)
        status = link_script(&l, i, err);
    workload->n_ops = (int)l.n_ops;
    workload->n_statements = (int)l.n_statements;
    assert(l.n_origins == l.n_statements);
    free(l.branches);
    return status;
}
