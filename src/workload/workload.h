// What clients do: scripts compiled to one program, immutable while it runs and shared by all
// clients.
//
// Scripts come from built-in names (plain files under workloads/, embedded by the build) or from
// files in pgbench's script language (docs/scripts.md). Lifetime: everything below lives until
// workload_free.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/kv.h"
#include "db/db.h"
#include "workload/schema.h"

struct op;        // one instruction of a compiled script (workload/program.h)
struct expr_pool; // compiled expressions and the texts they need (likewise)

// What debug(x) in a script says: one line, "debug(script=0,command=2): int 5" as pgbench writes
// it. Called from any client's thread.
typedef void workload_debug_fn(void *arg, const char *line);

struct script {
    char *name;    // "tpcb", "checkout.sql" (without its folder)
    double weight; // >= 0; a script of weight 0 is compiled but never chosen
    int first_op;  // its code in workload.ops
    int n_ops;
};

// Where a statement stands in its source, for error messages and the -r table.
struct statement_origin {
    int script;
    int line;   // of its first word, from 1
    char *text; // as written, blanks folded: what people see in tables and JSON
};

struct workload {
    char *name;        // as recorded: "tpcb", "a.sql"; several files joined as "a.sql@2 b.sql@1"
    char *source_hash; // of all script texts and weights, 16 hex digits: same name, same content?
    struct script *scripts;
    int n_scripts;
    struct db_statement *statements;  // dense over all scripts; index == position
    struct statement_origin *origins; // likewise
    int n_statements;
    struct op *ops;
    int n_ops;
    char **variables; // names; clients hold one value each by this index
    int n_variables;
    struct db_value *initial; // starting values by variable (DB_NULL and unset[i] when undefined)
    bool *unset;
    bool has_explicit_transaction; // some script begins and commits by itself
    bool has_pipeline;             // some script has a pipeline section that can be reached
    const struct schema *schema;   // tables this built-in needs; NULL for files
    int64_t scale;
    workload_debug_fn *debug;
    void *debug_arg;
    struct expr_pool *pool;
};

struct workload_options {
    enum db_placeholder placeholder;
    enum db_protocol protocol; // "\;", and with DB_PLACE_DOLLAR also names that are never set, are
                               // allowed in DB_SIMPLE only
    unsigned caps;             // of the target: variables :cap_transactions and others (0 or 1)
    int64_t scale;             // :scale
    int64_t seed;              // :random_seed; :default_seed is derived from it
    int clients;               // :clients
    const struct kvs *defines; // -D NAME=VALUE, stronger than the automatic ones; NULL allowed
    workload_debug_fn *debug;  // NULL: debug() says nothing
    void *debug_arg;
};

// The built-in workloads, ended by name NULL.
struct workload_builtin {
    const char *name;    // "tpcb"
    const char *summary; // one line
    const char *source;  // the embedded text
    const struct schema *schema;
    const char *contended; // rows all clients write: "one row of pgbench_branches"; NULL: none
};
const struct workload_builtin *workload_builtins(void);
const struct workload_builtin *workload_find_builtin(const char *name); // NULL when unknown

// Compiles a built-in, or files given as FILE[@WEIGHT] ("-" reads stdin). Errors are ERR_USAGE and
// begin with file:line:column; an unknown built-in suggests the nearest and says how to give a
// file.
int workload_load_builtin(struct workload **ret, const char *name,
                          const struct workload_options *options, struct err *err);
int workload_load_files(struct workload **ret, char *const *files, int n_files,
                        const struct workload_options *options, struct err *err);
// For tests: compiles text as if it were a file called name.
int workload_load_text(struct workload **ret, const char *name, const char *text,
                       const struct workload_options *options, struct err *err);
void workload_free(struct workload *workload); // NULL allowed
