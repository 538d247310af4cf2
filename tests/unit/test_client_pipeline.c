// What a client sends together and what the answers mean, under a clock that stands still. What
// goes out is written down: '|' begins a piece, digits are statements in the order in which the
// server carries them out (modulo 10), '-' is the ROLLBACK that undoes a try.
#include "load_sim.h"

#include <stdio.h>

#include "base/str.h"

#define MS NS_PER_MS

struct world {
    struct str trace;
    enum db_class class; // of statement at, the first `times` times
    int at, times;
    int64_t after_ns; // of that one
};

static struct sim_answer answer(struct sim *sim, int client, int statement, int64_t now_ns)
{
    struct world *w = sim->arg;

    (void)now_ns;
    if (sim->queues[client].next == 0)
        str_addc(&w->trace, '|');
    str_addc(&w->trace, statement < 0 ? '-' : (char)('0' + statement % 10));
    if (statement != w->at || w->times == 0)
        return (struct sim_answer){DB_OK, 1 * MS};
    w->times--;
    return (struct sim_answer){w->class, w->after_ns ? w->after_ns : 1 * MS};
}

// A script in letters: b begin, w write, r read, g a read whose row is stored, c commit, a
// rollback, s sleep, e an error of the script, ( start, ; sync, ) end of a section.
static int parse(const char *script, struct sim_step *steps)
{
    int n = 0;

    for (const char *p = script; *p; p++) {
        struct sim_step *s = &steps[n++];
        *s = (struct sim_step){.want = VM_SQL};
        switch (*p) {
        case 'b':
            s->kind = DB_KIND_BEGIN;
            break;
        case 'w':
            s->kind = DB_KIND_WRITE;
            break;
        case 'g':
            s->want_row = true;
            __attribute__((fallthrough));
        case 'r':
            s->kind = DB_KIND_READ;
            break;
        case 'c':
            s->kind = DB_KIND_COMMIT;
            break;
        case 'a':
            s->kind = DB_KIND_ROLLBACK;
            break;
        case 's':
            *s = (struct sim_step){.want = VM_SLEEP, .sleep_ns = 5 * MS};
            break;
        case 'e':
            s->want = VM_ERROR;
            break;
        default:
            s->want = VM_PIPELINE;
            s->command = *p == '('   ? VM_START_PIPELINE
                         : *p == ';' ? VM_SYNC_PIPELINE
                                     : VM_END_PIPELINE;
        }
    }
    return n;
}

// One transaction of one client.
static struct sim *run_one(const char *script, bool is_auto, struct world *w)
{
    struct sim *sim = mem_calloc_lines(1, sizeof(*sim));
    struct sim_step steps[SIM_STEPS_MAX];

    sim_init(sim);
    sim_script(sim, steps, parse(script, steps), 1);
    str_init(&w->trace);
    sim->execute = answer;
    sim->arg = w;
    sim->plan.pipeline_auto = is_auto;
    sim->plan.time_ns = 0;
    sim->plan.transactions = 1;
    sim_run(sim);
    assert_int_equal(sim->queues[0].n, 0);
    assert_false(sim->clients[0].has_session && sim->in_transaction[0]);
    return sim;
}

static void end_one(struct sim *sim, struct world *w)
{
    str_release(&w->trace);
    sim_release(sim);
    free(sim);
}

#define TEN_WRITES "wwwwwwwwww"

static void what_needs_no_answer_goes_together(void **state)
{
    static const struct {
        const char *script;
        bool is_auto;
        const char *trace;
        int rows_taken;
    } cases[] = {
        {"bwrc", false, "|0|1|2|3", 0},
        {"bwrc", true, "|0123", 0},
        {"bwra", true, "|0123", 0},
        {"bwcbwc", true, "|012|345", 0},
        // Outside BEGIN ... COMMIT one end would make one transaction of several statements.
        {"rw", true, "|0|1", 0},
        {"rwbwcrw", true, "|0|1|234|5|6", 0},
        // What needs an answer waits for it, and what stands behind it begins anew.
        {"bgwc", true, "|01|23", 1},
        {"bwgwgwc", true, "|012|34|56", 2},
        {"gbwc", true, "|0|123", 1},
        {"bggc", true, "|01|2|3", 2},
        {"bwswc", true, "|01|23", 0},
        // The session holds 64 answers at most.
        {"bw" TEN_WRITES TEN_WRITES TEN_WRITES TEN_WRITES TEN_WRITES TEN_WRITES "wwwwwwc", true,
         "|01"
         "2345678901"
         "2345678901"
         "2345678901"
         "2345678901"
         "2345678901"
         "2345678901"
         "23"
         "|45678",
         0},
        // Sections, with and without.
        {"(ww)r", false, "|01|2", 0},
        {"w(ww)(r)", false, "|0|12|3", 0},
        {"()w()", false, "|0", 0},
        {"b(ww)c", false, "|0|12|3", 0},
        {"(bwc)gw", false, "|012|3|4", 1},
        {"b(ww)wc", true, "|0|12|34", 0},
        {"w(ww)bgwc", true, "|0|12|34|56", 1},
        {"(w;w;;w)w", false, "|012|3", 0},
        {"(w;)w", false, "|0|1", 0},
        {"(w" TEN_WRITES TEN_WRITES TEN_WRITES ";" TEN_WRITES TEN_WRITES TEN_WRITES "www;w)", false,
         "|0"
         "1234567890"
         "1234567890"
         "1234567890"
         "1234567890"
         "1234567890"
         "1234567890"
         "123"
         "|4",
         0},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct world w = {.at = -1};
        struct sim *sim = run_one(cases[i].script, cases[i].is_auto, &w);
        if (strcmp(w.trace.buf, cases[i].trace) != 0)
            fail_msg("%s\nsent %s\nnot  %s", cases[i].script, w.trace.buf, cases[i].trace);
        assert_int_equal(sim->result->counts.done, 1);
        assert_int_equal(sim->rows_taken, cases[i].rows_taken);
        assert_int_equal(sim->result->statements_sent, sim->executed);
        end_one(sim, &w);
    }
}

static void a_failure_ends_the_try_once(void **state)
{
    static const struct {
        const char *script;
        bool is_auto;
        int at;
        enum db_class class;
        const char *trace;
        int done, failed, unknown, retries;
    } cases[] = {
        // What stands behind it is left out and no error of its own.
        {"bwwc", true, 1, DB_SERIALIZATION, "|01|-|0123", 1, 0, 0, 1},
        {"bwwc", true, 0, DB_DEADLOCK, "|0|0123", 1, 0, 0, 1},
        {"bwwc", true, 3, DB_SERIALIZATION, "|0123|-|0123", 1, 0, 0, 1},
        {"bwwc", true, 2, DB_CONSTRAINT, "|012|-", 0, 1, 0, 0},
        {"bgwc", true, 1, DB_DEADLOCK, "|01|-|01|23", 1, 0, 0, 1},
        {"bwswc", true, 1, DB_DEADLOCK, "|01|-|01|23", 1, 0, 0, 1},
        // Lost before and after the COMMIT was sent.
        {"bwswc", true, 1, DB_LOST, "|01", 0, 1, 0, 0},
        {"bwswc", true, 2, DB_LOST, "|01|2", 0, 0, 1, 0},
        {"bwwc", true, 0, DB_LOST, "|0", 0, 0, 1, 0},
        {"bwra", true, 1, DB_LOST, "|01", 0, 1, 0, 0},
        // A section outside of BEGIN ... COMMIT: writes are durable when their batch is over.
        {"(ww)", false, 1, DB_SERIALIZATION, "|01|01", 1, 0, 0, 1},
        {"(w;w)", false, 1, DB_SERIALIZATION, "|01", 0, 1, 0, 0},
        {"(w;w)", false, 0, DB_SERIALIZATION, "|01", 0, 1, 0, 0},
        {"(r;r)", false, 0, DB_SERIALIZATION, "|01|01", 1, 0, 0, 1},
        {"(rw)", false, 0, DB_LOST, "|0", 0, 0, 1, 0},
        {"(bwcw)", false, 3, DB_SERIALIZATION, "|0123", 0, 1, 0, 0},
        {"(bwac)", false, 1, DB_SERIALIZATION, "|01|-|0123", 1, 0, 0, 1},
        {"(ww)w", false, 2, DB_SERIALIZATION, "|01|2", 0, 1, 0, 0},
        {"(wb;w)c", false, 2, DB_SERIALIZATION, "|012|-|012|3", 1, 0, 0, 1},
        // The next batch of the section finds a transaction that has failed.
        {"b(w;w)c", false, 1, DB_SERIALIZATION, "|0|1|-|0|12|3", 1, 0, 0, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct world w = {.at = cases[i].at, .class = cases[i].class, .times = 1};
        struct sim *sim = run_one(cases[i].script, cases[i].is_auto, &w);
        const struct result *r = sim->result;
        if (strcmp(w.trace.buf, cases[i].trace) != 0)
            fail_msg("%s failing at %d\nsent %s\nnot  %s", cases[i].script, cases[i].at,
                     w.trace.buf, cases[i].trace);
        if (r->counts.done != cases[i].done || r->counts.failed != cases[i].failed ||
            r->counts.unknown != cases[i].unknown || r->counts.retries != cases[i].retries)
            fail_msg("%s failing at %d: done %lld, failed %lld, unknown %lld, retries %lld",
                     cases[i].script, cases[i].at, (long long)r->counts.done,
                     (long long)r->counts.failed, (long long)r->counts.unknown,
                     (long long)r->counts.retries);
        for (int k = 1; k < DB_CLASS_COUNT; k++)
            assert_int_equal(r->errors[k], k == (int)cases[i].class);
        end_one(sim, &w);
    }
}

static void a_script_that_goes_wrong_is_undone(void **state)
{
    static const struct {
        const char *script;
        bool is_auto;
        const char *trace;
    } cases[] = {
        {"bwe", true, "|01|-"},
        {"bw", true, "|01|-"},
        {"(bw)", false, "|01|-"},
        {"b(we)", false, "|0|1|-"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct world w = {.at = -1};
        struct sim *sim = run_one(cases[i].script, cases[i].is_auto, &w);
        assert_string_equal(w.trace.buf, cases[i].trace);
        assert_int_equal(sim->result->counts.failed, 1);
        assert_int_equal(sim->result->errors[DB_OTHER], 1);
        end_one(sim, &w);
    }
}

static void a_statement_has_the_time_from_its_own_sending_to_its_own_answer(void **state)
{
    struct world w = {.at = -1};
    struct sim *sim = run_one("bwswrc", true, &w);

    (void)state;
    static const int ms[] = {1, 2, 1, 2, 3}; // 2 ms, a pause of 5 ms, 3 ms
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sim->result->statements[i].count, 1);
        assert_int_equal(sim->result->statements[i].m.max_ns, ms[i] * MS);
    }
    assert_int_equal(sim->result->latency.hist.m.max_ns, 10 * MS);
    end_one(sim, &w);
}

static void what_is_cancelled_at_the_end_is_in_flight(void **state)
{
    static const struct {
        enum db_class class;
        int at;
    } cases[] = {{DB_CANCELLED, 0}, {DB_CANCELLED, 1}, {DB_CANCELLED, 2}, {DB_LOST, 1}};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct sim *sim = mem_calloc_lines(1, sizeof(*sim));
        struct world w = {
            .at = cases[i].at, .class = cases[i].class, .times = 1, .after_ns = 60 * NS_PER_S};
        struct sim_step steps[SIM_STEPS_MAX];
        sim_init(sim);
        sim_script(sim, steps, parse("bwc", steps), 1);
        str_init(&w.trace);
        sim->execute = answer;
        sim->arg = &w;
        sim->plan.pipeline_auto = true;
        const struct result *r = sim_run(sim);
        assert_int_equal(r->counts.in_flight, 1);
        assert_int_equal(r->counts.planned, 1);
        for (int k = 0; k < DB_CLASS_COUNT; k++)
            assert_int_equal(r->errors[k], 0);
        end_one(sim, &w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_needs_no_answer_goes_together),
        cmocka_unit_test(a_failure_ends_the_try_once),
        cmocka_unit_test(a_script_that_goes_wrong_is_undone),
        cmocka_unit_test(a_statement_has_the_time_from_its_own_sending_to_its_own_answer),
        cmocka_unit_test(what_is_cancelled_at_the_end_is_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
