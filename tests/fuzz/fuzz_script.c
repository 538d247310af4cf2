// Any text as a script: it compiles or is refused with a place, and what compiles runs to an end
// under any answers. The first two bytes choose options and answers, the rest is the script.
//
// What must hold is asserted here, besides what the sanitizers see: an error begins with
// file:line:column, the two forms of a statement agree, a retry repeats its pass.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "workload/vm.h"

#define STEPS_MAX 300 // wants answered per pass
#define TEXT_MAX  8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(holds)                                                    \
    do {                                                                \
        if (!(holds)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
            abort();                                                    \
        }                                                               \
    } while (0)

static void ignore_line(void *arg, const char *line)
{
    (void)arg;
    CHECK(strncmp(line, "debug(script=0,command=", 23) == 0);
}

static void check_error(const char *text)
{
    int line, column, used = 0;

    CHECK(sscanf(text, "f.sql:%d:%d: %n", &line, &column, &used) == 2 && used > 0);
    CHECK(line >= 1 && column >= 1 && text[used] != '\0');
}

// The text with placeholders must be the pieces with placeholders between them.
static void check_statement(const struct db_statement *statement, enum db_placeholder placeholder)
{
    struct str sql = STR_INIT;

    CHECK(statement->n_params >= 0 && statement->n_params <= DB_PARAMS_MAX);
    for (int i = 0; i <= statement->n_params; i++) {
        str_add(&sql, statement->pieces[i]);
        if (i < statement->n_params && placeholder == DB_PLACE_DOLLAR)
            str_addf(&sql, "$%d", i + 1);
        else if (i < statement->n_params)
            str_addc(&sql, '?');
    }
    CHECK(strcmp(sql.buf, statement->sql) == 0);
    str_release(&sql);
}

static struct db_value any_value(struct rng *rng)
{
    static const char *const texts[] = {
        "", "5", "-1.5", "true", "n", "null", "ab", "1e999", "9223372036854775808", "0x"};
    struct db_value value = {.type = DB_NULL};

    switch (rng_range(rng, 0, 5)) {
    case 0:
        value.type = DB_INT;
        value.i = (int64_t)rng_u64(rng);
        break;
    case 1:
        value.type = DB_DOUBLE;
        value.d = rng_exponential(rng, 1e10);
        break;
    case 2:
        value.type = DB_BOOL;
        value.b = rng_range(rng, 0, 1);
        break;
    case 3:
        break;
    default:
        value.type = DB_TEXT;
        value.s = texts[rng_range(rng, 0, 9)];
        value.text_len = (uint32_t)strlen(value.s);
        break;
    }
    return value;
}

// A row for \gset: columns named like variables, so that prefixes are met now and then.
static void answer_row(struct vm *vm, const struct workload *workload, struct rng *rng)
{
    int n = (int)rng_range(rng, 0, 3);

    if (vm_take_row(vm, rng_range(rng, 0, 9) ? 1 : rng_range(rng, 0, 2), n) < 0)
        return;
    for (int i = 0; i < n; i++) {
        const char *name = workload->variables[rng_range(rng, 0, workload->n_variables - 1)];
        size_t skip = (size_t)rng_range(rng, 0, 2);
        if (rng_range(rng, 0, 19) == 0)
            name = "?column?";
        else if (skip < strlen(name))
            name += skip;
        vm_take_column(vm, name, any_value(rng));
    }
}

// Runs a begun pass; what it wanted is written to trace.
static void run_pass(struct vm *vm, const struct workload *workload, struct rng rng,
                     struct str *trace)
{
    struct vm_step step;
    bool in_section = false;
    int n_joined = 0; // since the section's last command

    str_clear(trace);
    for (int steps = 0; steps < STEPS_MAX; steps++) {
        switch (vm_run(vm, &step)) {
        case VM_SQL: {
            struct str sql = STR_INIT;
            char buf[DB_VALUE_TEXT_MAX];
            int len;
            CHECK(step.statement->index < workload->n_statements);
            CHECK(!in_section || (!step.want_row && ++n_joined <= DB_PIPELINE_MAX));
            for (int i = 0; i < step.statement->n_params; i++) {
                const char *text = db_value_text(&step.params[i], buf, &len);
                str_addf(&sql, "%.20s,", text ? text : "NULL");
            }
            str_addf(trace, "%d(%s) ", step.statement->index, sql.buf);
            str_release(&sql);
            if (step.want_row)
                answer_row(vm, workload, &rng);
            break;
        }
        case VM_SLEEP:
            CHECK(step.sleep_ns >= 0);
            str_addf(trace, "%lld ", (long long)step.sleep_ns);
            break;
        case VM_PIPELINE:
            CHECK(workload->has_pipeline && in_section == (step.command != VM_START_PIPELINE));
            in_section = step.command != VM_END_PIPELINE;
            n_joined = DB_PIPELINE_MAX - step.n_ahead;
            CHECK(step.n_ahead >= 0 && step.n_ahead <= DB_PIPELINE_MAX);
            break;
        case VM_ERROR:
            CHECK(strncmp(step.error, "f.sql:", 6) == 0);
            str_add(trace, step.error);
            return;
        case VM_END:
            CHECK(!in_section);
            str_add(trace, "end");
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > TEXT_MAX)
        return 0;
    struct workload_options options = {
        .placeholder = data[0] & 1 ? DB_PLACE_QUESTION : DB_PLACE_DOLLAR,
        .protocol = data[0] & 2 ? DB_PREPARED : DB_SIMPLE,
        .caps = data[0] >> 2,
        .scale = 1 + data[1] % 3,
        .seed = data[1],
        .clients = 2,
        .debug = ignore_line,
    };
    char *text = mem_strndup((const char *)data + 2, size - 2);
    struct workload *workload;
    struct err err = ERR_INIT;

    if (workload_load_text(&workload, "f.sql", text, &options, &err) < 0) {
        CHECK(err.kind == ERR_USAGE);
        check_error(err.text);
        free(text);
        return 0;
    }
    CHECK(workload->n_ops >= workload->n_statements);
    for (int i = 0; i < workload->n_statements; i++)
        check_statement(&workload->statements[i], options.placeholder);

    struct str first = STR_INIT, again = STR_INIT;
    struct vm *vm = vm_new(workload, 1, data[1]);
    for (int pass = 0; pass < 3; pass++) {
        struct rng rng;
        rng_init(&rng, data[1], (uint64_t)pass, RNG_DRIVER);
        vm_begin(vm, 0);
        run_pass(vm, workload, rng, &first);
        vm_retry(vm);
        run_pass(vm, workload, rng, &again);
        CHECK(strcmp(first.buf, again.buf) == 0);
    }
    vm_free(vm);
    workload_free(workload);
    str_release(&first);
    str_release(&again);
    free(text);
    return 0;
}
