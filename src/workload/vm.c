#include "workload/vm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "workload/expr.h"
#include "workload/program.h"

enum vm_state {
    VM_IDLE,    // no pass begun
    VM_RUNNING, // vm_run goes on
    VM_ROW,     // a want_row statement was handed out: vm_take_row is due
    VM_COLUMNS, // its row is being taken
    VM_FAILED,  // run.error is to be reported by the next vm_run
    VM_OVER,    // VM_END or VM_ERROR was given
};

// A variable's text, in a buffer that grows then stays.
struct text {
    char *buf;
    size_t cap;
};

struct vm {
    const struct workload *workload;
    enum vm_state state;
    int script;
    int pc; // next operation
    int end;
    const struct op *op; // the one being carried out

    struct db_value *values; // by variable; a text points to texts[i], or is the workload's own
    bool *unset;
    struct text *texts;
    struct rng rng;

    // What the present pass began with, only of variables that scripts can change: by their
    // position in pool->assigned.
    struct db_value *saved_values;
    bool *saved_unset;
    struct text *saved_texts;
    struct rng saved_rng;

    struct db_value *params;
    struct expr_run run;
    char error[EXPR_ERROR_MAX + 128];
};

// ---- life

struct vm *vm_new(const struct workload *workload, int client, uint64_t seed)
{
    struct vm *vm = mem_calloc(1, sizeof(*vm));
    const struct expr_pool *pool = workload->pool;
    size_t n = (size_t)workload->n_variables + 1; // never nothing

    assert(client >= 0);
    vm->workload = workload;
    vm->values = mem_calloc(n, sizeof(*vm->values));
    vm->unset = mem_calloc(n, sizeof(*vm->unset));
    vm->texts = mem_calloc(n, sizeof(*vm->texts));
    memcpy(vm->values, workload->initial, (n - 1) * sizeof(*vm->values));
    memcpy(vm->unset, workload->unset, (n - 1) * sizeof(*vm->unset));
    if (pool->client_id_variable >= 0) {
        vm->values[pool->client_id_variable] = value_int(client);
        vm->unset[pool->client_id_variable] = false;
    }
    vm->saved_values = mem_calloc(pool->n_assigned + 1, sizeof(*vm->saved_values));
    vm->saved_unset = mem_calloc(pool->n_assigned + 1, sizeof(*vm->saved_unset));
    vm->saved_texts = mem_calloc(pool->n_assigned + 1, sizeof(*vm->saved_texts));
    vm->params = mem_calloc((size_t)pool->params_max + 1, sizeof(*vm->params));
    rng_init(&vm->rng, seed, (uint64_t)client, RNG_SCRIPT);
    vm->run = (struct expr_run){
        .pool = pool,
        .values = vm->values,
        .unset = vm->unset,
        .names = workload->variables,
        .rng = &vm->rng,
        .stack = mem_calloc((size_t)pool->stack_max + 1, sizeof(*vm->run.stack)),
        .workload = workload,
    };
    return vm;
}

void vm_free(struct vm *vm)
{
    if (!vm)
        return;
    for (int i = 0; i < vm->workload->n_variables; i++)
        free(vm->texts[i].buf);
    for (size_t i = 0; i < vm->workload->pool->n_assigned; i++)
        free(vm->saved_texts[i].buf);
    free(vm->values);
    free(vm->unset);
    free(vm->texts);
    free(vm->saved_values);
    free(vm->saved_unset);
    free(vm->saved_texts);
    free(vm->params);
    free(vm->run.stack);
    free(vm);
}

void vm_prefetch(const struct vm *vm)
{
    mem_prefetch(vm, offsetof(struct vm, run.error));
}

// Variables by the first few: those that a short script uses.
void vm_prefetch_more(const struct vm *vm)
{
    mem_prefetch(vm->values, 64);
    mem_prefetch(vm->unset, 64);
    mem_prefetch(vm->saved_values, 64);
    mem_prefetch(vm->saved_unset, 64);
    mem_prefetch(vm->params, 64);
    mem_prefetch(vm->run.stack, 64);
}

// ---- values

// Copies a value; a text goes into the given buffer.
static void copy_value(struct db_value *to, struct text *text, const struct db_value *from)
{
    if (from->type == DB_TEXT) {
        size_t need = (size_t)from->text_len + 1;
        assert(from->s != text->buf);
        if (need > text->cap) {
            size_t cap = text->cap ? text->cap : 32;
            while (cap < need)
                cap *= 2;
            text->buf = mem_resize(text->buf, cap, 1);
            text->cap = cap;
        }
        memcpy(text->buf, from->s, from->text_len);
        text->buf[from->text_len] = '\0';
        *to = (struct db_value){.type = DB_TEXT, .text_len = from->text_len, .s = text->buf};
    } else {
        *to = *from;
    }
}

struct db_value vm_variable(const struct vm *vm, const char *name)
{
    for (int i = 0; i < vm->workload->n_variables; i++)
        if (strcmp(vm->workload->variables[i], name) == 0 && !vm->unset[i])
            return vm->values[i];
    return value_null();
}

// ---- a pass

static void start(struct vm *vm)
{
    const struct script *script = &vm->workload->scripts[vm->script];

    vm->state = VM_RUNNING;
    vm->pc = script->first_op;
    vm->end = script->first_op + script->n_ops;
    vm->run.script = vm->script;
}

void vm_begin(struct vm *vm, int script)
{
    const struct expr_pool *pool = vm->workload->pool;

    assert(script >= 0 && script < vm->workload->n_scripts);
    vm->script = script;
    vm->saved_rng = vm->rng;
    for (size_t i = 0; i < pool->n_assigned; i++) {
        int variable = pool->assigned[i];
        copy_value(&vm->saved_values[i], &vm->saved_texts[i], &vm->values[variable]);
        vm->saved_unset[i] = vm->unset[variable];
    }
    start(vm);
}

void vm_retry(struct vm *vm)
{
    const struct expr_pool *pool = vm->workload->pool;

    assert(vm->state != VM_IDLE);
    vm->rng = vm->saved_rng;
    for (size_t i = 0; i < pool->n_assigned; i++) {
        int variable = pool->assigned[i];
        copy_value(&vm->values[variable], &vm->texts[variable], &vm->saved_values[i]);
        vm->unset[variable] = vm->saved_unset[i];
    }
    start(vm);
}

static enum vm_want fail(struct vm *vm, struct vm_step *step)
{
    snprintf(vm->error, sizeof(vm->error), "%.*s:%d: %s", 100,
             vm->workload->scripts[vm->script].name, vm->op->line, vm->run.error);
    vm->state = VM_OVER;
    step->error = vm->error;
    return VM_ERROR;
}

static int run_set(struct vm *vm)
{
    int variable = vm->op->variable;

    // A text never comes out of an expression: the variable's buffer is left for the next \gset.
    if (expr_eval(&vm->run, &vm->op->expr, &vm->values[variable]) < 0)
        return -1;
    assert(vm->values[variable].type != DB_TEXT);
    vm->unset[variable] = false;
    return 0;
}

static int run_sql(struct vm *vm, struct vm_step *step)
{
    const struct op_sql *sql = &vm->op->sql;
    const struct db_statement *statement = &vm->workload->statements[sql->statement];

    for (int i = 0; i < statement->n_params; i++) {
        int variable = vm->workload->pool->params[sql->first_param + i];
        if (vm->unset[variable])
            return expr_fail(&vm->run, "variable %s has no value yet",
                             vm->workload->variables[variable]);
        vm->params[i] = vm->values[variable];
    }
    step->statement = statement;
    step->params = vm->params;
    step->want_row = sql->gset;
    if (sql->gset)
        vm->state = VM_ROW;
    return 0;
}

static int run_sleep(struct vm *vm, struct vm_step *step)
{
    struct db_value value;

    if (expr_eval(&vm->run, &vm->op->expr, &value) < 0)
        return -1;
    if (value.type != DB_INT && value.type != DB_DOUBLE)
        return expr_fail(&vm->run, "\\sleep needs a number, not %s",
                         value.type == DB_NULL ? "NULL" : "a boolean");
    double n = value.type == DB_INT ? (double)value.i : value.d;
    double ns = n * (double)vm->op->unit_ns;
    if (!(ns < 0x1p62))
        return expr_fail(&vm->run, "\\sleep is too long: %g", n);
    step->sleep_ns = ns > 0 ? (int64_t)ns : 0;
    return 0;
}

static int run_jump_unless(struct vm *vm)
{
    struct db_value value;

    if (expr_eval(&vm->run, &vm->op->expr, &value) < 0)
        return -1;
    if (!expr_truth(&value))
        vm->pc = vm->op->target;
    return 0;
}

enum vm_want vm_run(struct vm *vm, struct vm_step *step)
{
    int status = 0;

    if (vm->state == VM_FAILED)
        return fail(vm, step);
    assert(vm->state == VM_RUNNING || vm->state == VM_COLUMNS);
    vm->state = VM_RUNNING;
    while (vm->pc < vm->end) {
        vm->op = &vm->workload->ops[vm->pc++];
        vm->run.command = vm->op->command;
        switch ((enum op_code)vm->op->code) {
        case OP_SET:
            status = run_set(vm);
            break;
        case OP_SQL:
            if (run_sql(vm, step) < 0)
                return fail(vm, step);
            return VM_SQL;
        case OP_PIPELINE:
            step->command = (enum vm_command)vm->op->pipeline.command;
            step->n_ahead = vm->op->pipeline.n_ahead;
            return VM_PIPELINE;
        case OP_SLEEP:
            if (run_sleep(vm, step) < 0)
                return fail(vm, step);
            return VM_SLEEP;
        case OP_JUMP:
            assert(vm->op->target >= vm->pc);
            vm->pc = vm->op->target;
            break;
        case OP_JUMP_UNLESS:
            assert(vm->op->target >= vm->pc);
            status = run_jump_unless(vm);
            break;
        }
        if (status < 0)
            return fail(vm, step);
    }
    assert(vm->pc == vm->end);
    vm->state = VM_OVER;
    return VM_END;
}

// ---- \gset

int vm_take_row(struct vm *vm, int64_t rows, int n_columns)
{
    assert(vm->state == VM_ROW && n_columns >= 0);
    (void)n_columns;
    if (rows == 1) {
        vm->state = VM_COLUMNS;
        return 0;
    }
    vm->state = VM_FAILED;
    return expr_fail(&vm->run, "\\gset needs exactly one row, the statement gave %lld",
                     (long long)rows);
}

void vm_take_column(struct vm *vm, const char *name, struct db_value value)
{
    const struct workload *workload = vm->workload;
    const struct op_sql *sql = &vm->op->sql;
    const struct expr_pool *pool = workload->pool;

    if (vm->state == VM_FAILED) // an earlier column was bad
        return;
    assert(vm->state == VM_COLUMNS && vm->op->code == OP_SQL);
    for (size_t i = 0; i < pool->n_assigned; i++) {
        int variable = pool->assigned[i];
        const char *have = workload->variables[variable];
        if (strncmp(have, sql->prefix, sql->prefix_len) == 0 &&
            strcmp(have + sql->prefix_len, name) == 0) {
            copy_value(&vm->values[variable], &vm->texts[variable], &value);
            vm->unset[variable] = false;
            return;
        }
    }
    size_t len = strlen(name);
    if (sql->prefix_len > 0 ? lex_is_name_rest(name, len) : lex_is_name(name, len))
        return;
    vm->state = VM_FAILED;
    expr_fail(&vm->run, "\\gset: column \"%.60s\" is no variable's name; name it with AS", name);
}
