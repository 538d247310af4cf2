// One client's run through a compiled script. The machine computes (\set, \if) by itself and stops
// where it needs the world: a statement to be executed, time to pass, the end. It never blocks and,
// once its variables have their texts' sizes, never allocates.
//
//     vm_begin(vm, script);
//     while ((want = vm_run(vm, &step)) != VM_END) ...do what is wanted...
//
// A machine belongs to one thread at a time. The workload must outlive it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "workload/workload.h"

enum vm_want {
    VM_SQL,      // execute step.statement with step.params, then call vm_run again
    VM_SLEEP,    // wait step.sleep_ns, then call vm_run again
    VM_PIPELINE, // step.command; what is sent after it in a section needs no answer before
    VM_END,      // the pass is complete
    VM_ERROR, // the script failed (division by zero, no row for \gset, ...): step.error says where
              // and why; the pass is over
};

enum vm_command { VM_START_PIPELINE, VM_SYNC_PIPELINE, VM_END_PIPELINE };

struct vm_step {
    const struct db_statement *statement;
    const struct db_value *params; // valid until the next vm_run
    bool want_row;                 // \gset: deliver the row with vm_take_row before vm_run
    int64_t sleep_ns;              // 0 or more
    enum vm_command command;       // VM_PIPELINE
    int n_ahead;                   // likewise: statements that may come before the next of these
    const char *error;             // "pay.sql:12: division by zero"; valid until the next vm_run
};

struct vm;

// client is the value of :client_id and selects the random stream.
struct vm *vm_new(const struct workload *workload, int client, uint64_t seed);
void vm_free(struct vm *vm); // NULL allowed

// For loops with thousands of clients: fetches what a pass touches into the cache, the machine
// first and, some time later, what it points to.
void vm_prefetch(const struct vm *vm);
void vm_prefetch_more(const struct vm *vm);

// Starts a pass through a script: variables keep their values from earlier passes (as in pgbench);
// variables and random state are saved for vm_retry. Allowed at any time, also in mid-pass.
void vm_begin(struct vm *vm, int script);

// The same pass again, with the same random numbers and the variables it began with. After
// vm_begin, at any time.
void vm_retry(struct vm *vm);

// Runs on to the next want. Not after VM_END or VM_ERROR. Fields of *step that do not belong to the
// want are untouched.
enum vm_want vm_run(struct vm *vm, struct vm_step *step);

// The answer to a want_row statement: rows is how many there were (\gset needs exactly one), then
// one vm_take_column per column. Returns negative when the script cannot go on (the next vm_run
// then gives VM_ERROR): take no columns then. A statement that failed is not answered; vm_retry or
// vm_begin follow.
int vm_take_row(struct vm *vm, int64_t rows, int n_columns);

// A column fills the variable of its name, after \gset's prefix; columns that no script looks at
// are dropped. Texts are copied. A name that no variable can have fails the next vm_run.
void vm_take_column(struct vm *vm, const char *name, struct db_value value);

// A variable's present value, for tests; type DB_NULL when unset. Texts live until the next call
// on vm.
struct db_value vm_variable(const struct vm *vm, const char *name);
