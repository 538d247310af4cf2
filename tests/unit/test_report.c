// Reports: every promised key in JSON, a ticket that stays short, nothing from outside as markup or
// control, whatever the result holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/picture.h"
#include "report/report.h"

static struct result *some_result(void)
{
    static struct hist dense;
    struct result *r = result_new();

    r->id = 12;
    r->uuid = mem_strdup("aaaaaaaa-0000-4000-8000-000000000001");
    r->status = mem_strdup("done");
    r->started_real_ns = 1764513300123456789;
    r->prony_version = mem_strdup("0.1.0");
    r->command = mem_strdup("prony run 'sqlite:a`b' tpcb");
    r->note = mem_strdup("<script>alert(1)</script> | \033[31mred\n# heading");
    r->target = mem_strdup("sqlite:a_b*c.db");
    r->engine = mem_strdup("sqlite");
    r->engine_version = mem_strdup("3.40.1");
    r->workload = mem_strdup("tpcb");
    r->workload_hash = mem_strdup("0123456789abcdef");
    r->scale = 10;
    r->clients = 2;
    r->threads = 2;
    r->loop = mem_strdup("threads");
    r->protocol = mem_strdup("prepared");
    r->seed = 42;
    r->duration_s = 10.5;
    r->warmup_s = 2;
    r->window_s = 8.5;
    r->steady = true;
    r->counts.planned = 1200;
    r->counts.done = 1190;
    r->counts.failed = 4;
    r->counts.unknown = 3;
    r->counts.in_flight = 3;
    r->counts.retried = 5;
    r->counts.retries = 6;
    r->errors[DB_BUSY] = 10;
    r->window_done = 1000;
    r->tps = 117.647;
    r->latency.present = true;
    hist_init(&dense);
    for (int i = 0; i < 1000; i++)
        hist_record(&dense, 1000000 + i * 1000);
    hist_sparse_from(&r->latency.hist, &dense);
    r->statements = mem_calloc(1, sizeof(*r->statements));
    r->n_statements = 1;
    r->statements[0] = (struct result_statement){
        .script = mem_strdup("tpcb"), .sql = mem_strdup("SELECT 1"), .count = 1000, .m = dense.m};
    r->series = mem_calloc(11, sizeof(*r->series));
    r->n_series = 11;
    for (int i = 0; i < 11; i++)
        r->series[i] = (struct result_second){.t_s = i, .done = 100 + i};
    r->done_by_client = mem_calloc(2, sizeof(int64_t));
    r->done_by_client[0] = 600;
    r->done_by_client[1] = 590;
    r->statements_sent = 8000;
    r->cpu_us_per_statement = 3.5;
    kvs_add(&r->environment, "host.kernel", "Linux 6.1");
    kvs_add(&r->environment, "data.summary", "ext4 on vda");
    kvs_add(&r->options, "clients", "2");
    kvs_add(&r->options, "define", "a=1");
    kvs_add(&r->options, "define", "b=2");
    kvs_add(&r->counters, "checkpoints", "3");
    return r;
}

static char *rendered(void (*render)(const struct result *, FILE *), const struct result *r)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    render(r, out);
    fclose(out);
    return text;
}

static void render_json(const struct result *r, FILE *out)
{
    assert_int_equal(report_json(r, out), 0);
}

static void render_text(const struct result *r, FILE *out)
{
    struct report_style style = {.columns = 80, .unicode = false, .statements = true};

    report_text(r, &style, out);
}

static json_t *walk(json_t *root, const char *path)
{
    char *copy = mem_strdup(path), *save = NULL;
    json_t *at = root;

    for (char *key = strtok_r(copy, ".", &save); at && key; key = strtok_r(NULL, ".", &save))
        at = json_is_array(at) ? json_object_get(json_array_get(at, 0), key)
                               : json_object_get(at, key);
    free(copy);
    return at;
}

static void json_holds_every_promised_key(void **state)
{
    static const char *const keys[] = {
        "schema",
        "status",
        "run_id",
        "started_utc",
        "target",
        "engine.name",
        "engine.version",
        "workload.name",
        "workload.scale",
        "clients",
        "threads",
        "loop",
        "protocol",
        "seed",
        "duration_s",
        "warmup_s",
        "steady",
        "transactions.planned",
        "transactions.done",
        "transactions.failed",
        "transactions.skipped",
        "transactions.unknown",
        "transactions.backlog",
        "transactions.in_flight",
        "transactions.retried",
        "errors.busy",
        "throughput.tps",
        "latency_us.mean",
        "latency_us.sd",
        "latency_us.min",
        "latency_us.p50",
        "latency_us.p90",
        "latency_us.p95",
        "latency_us.p99",
        "latency_us.p999",
        "latency_us.p9999",
        "latency_us.max",
        "latency_us.histogram",
        "statements.sql",
        "statements.count",
        "statements.mean_us",
        "statements.p99_us",
        "series.t_s",
        "series.tps",
        "series.p50_us",
        "series.p99_us",
        "series.max_us",
        "series.errors",
        "client_cpu.user_s",
        "client_cpu.sys_s",
        "client_cpu.us_per_statement",
        "warnings.id",
        "warnings.text",
        "environment",
        "slowest",
        "options.define",
        "counters.checkpoints",
    };
    struct result *r = some_result();
    json_error_t error;

    (void)state;
    result_add_warning(r, "too-short", "short; run longer");
    char *text = rendered(render_json, r);
    json_t *root = json_loads(text, 0, &error);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!walk(root, keys[i]))
            fail_msg("%s is missing", keys[i]);
    assert_null(walk(root, "service_us")); // only with a rate
    assert_int_equal(json_integer_value(walk(root, "transactions.planned")), 1200);
    assert_true(json_real_value(walk(root, "latency_us.min")) == 1000.0);
    assert_int_equal(json_array_size(walk(root, "options.define")), 2);
    // Half of the last second was covered: its rate is over that half.
    json_t *last = json_array_get(json_object_get(root, "series"), 10);
    assert_true(json_real_value(json_object_get(last, "tps")) == 220.0);
    // The histogram holds every transaction.
    int64_t sum = 0;
    size_t i;
    json_t *bucket;
    json_array_foreach(walk(root, "latency_us.histogram"), i, bucket) sum +=
        json_integer_value(json_array_get(bucket, 2));
    assert_int_equal(sum, 1000);
    json_decref(root);
    free(text);
    result_free(r);
}

static void json_survives_text_that_is_not_utf8(void **state)
{
    struct result *r = some_result();
    json_error_t error;

    (void)state;
    free(r->note);
    r->note = mem_strdup("caf\xe9 \xff\xfe");
    char *text = rendered(render_json, r);
    json_t *root = json_loads(text, 0, &error);
    assert_non_null(root);
    assert_non_null(json_string_value(walk(root, "note")));
    json_decref(root);
    free(text);
    result_free(r);
}

static int lines_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void a_ticket_has_at_most_30_lines_whatever_went_wrong(void **state)
{
    struct result *r = some_result();

    (void)state;
    free(r->status);
    r->n_outages = 40;
    r->outages = mem_calloc(40, sizeof(*r->outages));
    r->outage_s = r->reconnect_attempts = 40;
    r->status = mem_strdup("failed");
    r->failure = mem_strdup("every client gave up");
    for (int i = 0; i < 25; i++) {
        char *id = mem_printf("doubt-%d", i);
        result_add_warning(r, id, "something; do something");
        free(id);
    }
    char *text = rendered(report_markdown, r);
    if (lines_of(text) > 30)
        fail_msg("%d lines:\n%s", lines_of(text), text);
    free(text);
    result_free(r);
}

static void a_ticket_holds_answer_numbers_setup_seed_and_command(void **state)
{
    static const char *const parts[] = {"118 transactions/s", "| 1.50 ms", "seed 42",
                                        "prony 0.1.0",        "prony run", "ext4 on vda"};
    struct result *r = some_result();

    (void)state;
    char *text = rendered(report_markdown, r);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strstr(text, parts[i]))
            fail_msg("no %s in:\n%s", parts[i], text);
    free(text);
    result_free(r);
}

static void text_from_outside_is_no_markup_and_no_control(void **state)
{
    struct result *r = some_result();

    (void)state;
    char *text = rendered(report_markdown, r);
    assert_null(strstr(text, "<script>"));
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "\n# heading"));
    assert_non_null(strstr(text, "a\\_b\\*c"));
    free(text);
    // A file from elsewhere may hold anything anywhere.
    free(r->target), free(r->prony_version), free(r->uuid);
    r->target = mem_strdup("sqlite:\033]0;x\007");
    r->prony_version = mem_strdup("0.1.0\n# heading");
    r->uuid = mem_strdup("<script>");
    r->label = mem_strdup("\033[31m");
    r->failure = mem_strdup("\033[32m");
    result_add_warning(r, "\033[33m<script>", "x: y");
    text = rendered(render_text, r);
    assert_null(strchr(text, '\033'));
    free(text);
    text = rendered(report_markdown, r);
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "<script>"));
    assert_null(strstr(text, "\n# heading"));
    free(text);
    result_free(r);
}

static void the_answer_comes_first_and_fits_the_terminal(void **state)
{
    struct result *r = some_result();

    (void)state;
    result_add_warning(r, "too-short",
                       "only 8.5 s were measured, too short for write-back, checkpoints and caches "
                       "to show: use --time 5m or more for figures you will rely on");
    free(r->statements[0].sql);
    r->statements[0].sql =
        mem_strdup("SELECT 1, '\u00e4\u00f6\u00fc and much more than fits into one line'");
    r->steady_why = mem_strdup("the rate was still changing at the end, say the last seconds");
    r->steady = false;
    char *text = rendered(render_text, r), *save = NULL;
    assert_int_equal(strncmp(text, "118 transactions/s", 18), 0);
    assert_non_null(strstr(text, "1 190 done of 1 200"));
    assert_non_null(strstr(text, "busy 10"));
    assert_non_null(strstr(text, "SELECT 1"));
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (text_columns(line) > 80)
            fail_msg("%d columns: %s", text_columns(line), line);
    free(text);
    result_free(r);
}

static void what_one_wants_to_know_of_an_old_run_is_there(void **state)
{
    static const char *const parts[] = {
        "label before",      "2025-11-30T14:35:00Z", "words of mine",
        "every one gave up", "SQLite included",      "3.50 us per statement, 0.20 of one core"};
    struct result *r = some_result();

    (void)state;
    free(r->note);
    r->note = mem_strdup("words of mine");
    r->label = mem_strdup("before");
    r->failure = mem_strdup("every one gave up");
    r->cpu_user_s = 2.1;
    char *text = rendered(render_text, r);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!strstr(text, parts[i]))
            fail_msg("no %s in:\n%s", parts[i], text);
    free(text);
    free(r->engine);
    r->engine = mem_strdup("postgres");
    text = rendered(render_text, r);
    assert_null(strstr(text, "included"));
    free(text);
    text = rendered(report_markdown, r);
    assert_non_null(strstr(text, "label before"));
    assert_non_null(strstr(text, "failure: every one gave up"));
    free(text);
    result_free(r);
}

static void nothing_done_is_said_plainly(void **state)
{
    struct result *r = result_new();

    (void)state;
    r->workload = mem_strdup("tpcb");
    r->target = mem_strdup("null:");
    r->status = mem_strdup("failed");
    r->protocol = mem_strdup("simple");
    r->uuid = mem_strdup("x");
    r->prony_version = mem_strdup("0");
    r->loop = mem_strdup("threads");
    r->engine = mem_strdup("null");
    char *text = rendered(render_text, r);
    assert_int_equal(strncmp(text, "no transaction succeeded", 24), 0);
    free(text);
    r->failure = mem_strdup("no transaction succeeded: busy: locked");
    text = rendered(render_text, r);
    assert_int_equal(strncmp(text, r->failure, strlen(r->failure)), 0);
    free(text);
    text = rendered(report_markdown, r);
    assert_non_null(strstr(text, "no transaction succeeded"));
    free(text);
    text = rendered(render_json, r);
    assert_non_null(strstr(text, "\"p50\": null"));
    free(text);
    result_free(r);
}

static void a_line_shows_the_shape_of_its_values(void **state)
{
    static const struct {
        double values[8];
        int n, width;
        const char *ascii;
    } cases[] = {
        {{0, 4, 8}, 3, 10, " -#"}, {{8, 8, 0, 0}, 4, 2, "# "}, {{1, 1, 1, 1}, 4, 4, "####"},
        {{0, 0}, 2, 2, "  "},      {{8, 0, 8}, 3, 2, "##"}, // a column of one and a half values:
                                                            // 2/3 of the first
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str out = STR_INIT;
        double top;
        picture_line(&out, cases[i].values, cases[i].n, cases[i].width, false, &top);
        assert_string_equal(out.buf, cases[i].ascii);
        str_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_every_promised_key),
        cmocka_unit_test(json_survives_text_that_is_not_utf8),
        cmocka_unit_test(a_ticket_has_at_most_30_lines_whatever_went_wrong),
        cmocka_unit_test(a_ticket_holds_answer_numbers_setup_seed_and_command),
        cmocka_unit_test(text_from_outside_is_no_markup_and_no_control),
        cmocka_unit_test(the_answer_comes_first_and_fits_the_terminal),
        cmocka_unit_test(what_one_wants_to_know_of_an_old_run_is_there),
        cmocka_unit_test(nothing_done_is_said_plainly),
        cmocka_unit_test(a_line_shows_the_shape_of_its_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
