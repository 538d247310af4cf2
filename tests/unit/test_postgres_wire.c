// PostgreSQL's wire codec without a server. A conversation is one line of words, in order:
//
//   >p0 >P0  a request for statement 0; P: its row is wanted      >q >Q  the same for plain text
//   >j0 >s   the same as a part of a batch; the end of the batch
//   name(a,b)  a message of the server's, by its letter: D(5,~) T(a:23,b:25) C(SELECT_1) Z(I)
//              E(ERROR,40001,text) N(...) S A d(text) ...; '_' is a blank, '~' NULL
//   x(0a0b)    bytes as they are          close  the end of the stream
//
// What came of it is a line too: the letters of the messages that were sent, and the answers. Every
// conversation is held several times: whole, byte by byte, and cut at random; always the same must
// come of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/mem.h"
#include "base/rng.h"
#include "db/driver.h"
#include "db/postgres_wire.h"

#define SEED         20261205
#define N_STATEMENTS 4

// ---- the server's bytes

static void add16(struct str *out, unsigned v)
{
    str_addc(out, (char)(v >> 8));
    str_addc(out, (char)v);
}

static void add32(struct str *out, uint32_t v)
{
    add16(out, v >> 16);
    add16(out, v & 0xffff);
}

static void add_message(struct str *out, char type, const struct str *body)
{
    str_addc(out, type);
    add32(out, (uint32_t)body->len + 4);
    str_addn(out, body->buf, body->len);
}

// Splits "(a,b)" at commas; the words are cut out of text.
static int split(char *text, char **words, int max)
{
    int n = 0;

    for (char *p = text; p; n++) {
        assert_true(n < max);
        words[n] = p;
        p = strchr(p, ',');
        if (p)
            *p++ = '\0';
        for (char *q = words[n]; *q; q++)
            if (*q == '_')
                *q = ' ';
    }
    return n;
}

static void build_fields(struct str *body, char **words, int n)
{
    static const char letters[] = "VCMD";

    str_addn(body, "SFEHLER", 8); // translated: the unlocalized one decides
    for (int i = 0; i < n && i < 4; i++) {
        if (strcmp(words[i], "-") == 0)
            continue;
        str_addc(body, letters[i]);
        str_addn(body, words[i], strlen(words[i]) + 1);
    }
    str_addn(body, "Fpostgres.c", 12);
    str_addc(body, '\0');
}

static void build_description(struct str *body, char **words, int n)
{
    add16(body, (unsigned)n);
    for (int i = 0; i < n; i++) {
        char *colon = strchr(words[i], ':');
        assert_non_null(colon);
        *colon = '\0';
        str_addn(body, words[i], strlen(words[i]) + 1);
        add32(body, 16384);
        add16(body, (unsigned)i + 1);
        add32(body, (uint32_t)atoi(colon + 1));
        add16(body, 0xffff);
        add32(body, UINT32_MAX);
        add16(body, 0);
    }
}

static void build_row(struct str *body, char **words, int n)
{
    add16(body, (unsigned)n);
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], "~") == 0) {
            add32(body, UINT32_MAX);
            continue;
        }
        add32(body, (uint32_t)strlen(words[i]));
        str_add(body, words[i]);
    }
}

// One word of the conversation as bytes.
static void build(struct str *out, const char *word)
{
    struct str body = STR_INIT;
    char *inside = mem_strdup(strchr(word, '('));
    char *words[64];
    int n = 0;

    if (inside) {
        inside[strlen(inside) - 1] = '\0';
        if (word[0] != 'x' && inside[1])
            n = split(inside + 1, words, (int)ARR_LEN(words));
    }
    switch (word[0]) {
    case 'x':
        for (const char *p = inside + 1; p[0] && p[1]; p += 2) {
            unsigned byte;
            assert_int_equal(sscanf(p, "%2x", &byte), 1);
            str_addc(out, (char)byte);
        }
        goto out;
    case 'E':
    case 'N':
        build_fields(&body, words, n);
        break;
    case 'T':
        build_description(&body, words, n);
        break;
    case 'D':
        build_row(&body, words, n);
        break;
    case 'd':
    case 'Z':
        str_add(&body, n ? words[0] : "");
        break;
    default:
        for (int i = 0; i < n; i++)
            str_addn(&body, words[i], strlen(words[i]) + 1);
    }
    add_message(out, word[0], &body);
out:
    free(inside);
    str_release(&body);
}

// ---- the conversation

static const char *const pieces[] = {"SELECT a FROM t WHERE id = ", ""};
static const struct db_statement statements[N_STATEMENTS] = {
    {.index = 0, .sql = "SELECT a FROM t WHERE id = $1", .n_params = 1, .pieces = (void *)pieces},
    {.index = 1, .sql = "SELECT b FROM t WHERE id = $1", .n_params = 1, .pieces = (void *)pieces},
    {.index = 2, .sql = "BEGIN", .pieces = (void *)(const char *const[]){"BEGIN"}},
    {.index = 3, .sql = "COMMIT", .pieces = (void *)(const char *const[]){"COMMIT"}},
};

struct talk {
    struct postgres_wire *wire;
    struct str sent, heard, log;
    struct rng rng;
    enum cut { WHOLE, BYTES, RANDOM } cut;
    bool row_wanted[POSTGRES_WIRE_DEPTH * 4]; // by request, in order
    int asked, answered;
};

static void log_sent(struct talk *t)
{
    if (t->sent.len == 0)
        return;
    for (size_t at = 0; at < t->sent.len;) {
        assert_true(t->sent.len - at >= 5);
        uint32_t len = postgres_get32(t->sent.buf + at + 1);
        assert_true(len >= 4 && len <= t->sent.len - at - 1);
        str_addc(&t->log, t->sent.buf[at]);
        at += 1 + len;
    }
    str_addc(&t->log, ' ');
    str_clear(&t->sent);
}

static void log_row(struct talk *t, const struct db_result *result)
{
    static const char *const types[] = {
        [DB_NULL] = "", [DB_BOOL] = ":b", [DB_INT] = ":i", [DB_DOUBLE] = ":d", [DB_TEXT] = ":t"};
    struct db_wire *wire = &t->wire->base;
    char buf[DB_VALUE_TEXT_MAX];

    str_addc(&t->log, '(');
    for (int i = 0; i < result->n_columns; i++) {
        str_addf(&t->log, "%s%s", i ? "," : "", wire->codec->row_name(wire, i));
        if (result->rows == 0)
            continue;
        struct db_value value = wire->codec->row_value(wire, i);
        int len;
        const char *text = db_value_text(&value, buf, &len);
        if (text)
            assert_int_equal(text[len], '\0');
        str_addf(&t->log, "=%.60s%s", text ? text : "~", types[value.type]);
    }
    str_add(&t->log, ")");
}

static void log_result(struct talk *t, const struct db_result *result)
{
    assert_true(t->answered < t->asked || result->class == DB_LOST);
    assert_int_equal(result->class == DB_OK, result->message[0] == '\0');
    if (result->class == DB_OK) {
        str_addf(&t->log, "ok %lld", (long long)result->rows);
        if (t->row_wanted[t->answered])
            log_row(t, result);
        else
            assert_int_equal(result->n_columns, 0);
        str_add(&t->log, result->in_transaction ? " in; " : "; ");
    } else {
        assert_int_equal(result->rows, 0);
        assert_int_equal(result->n_columns, 0);
        str_addf(&t->log, "%s %s '%s'%s; ", db_class_name(result->class), result->native,
                 result->message, result->in_transaction ? " in" : "");
    }
    t->answered++;
}

static void feed_chunk(struct talk *t, const char *bytes, size_t n)
{
    // At the end of their memory, so that a look beyond is seen by the sanitizer.
    char *copy = malloc(n ? n : 1);
    size_t at = 0;

    assert_non_null(copy);
    memcpy(copy, bytes, n);
    do {
        struct db_result result = {.class = DB_DEADLOCK,
                                   .n_columns = 99,
                                   .rows = -9,
                                   .native = "x",
                                   .message = "left over"};
        size_t used = n + 1;
        enum db_wire_progress progress =
            db_wire_feed(&t->wire->base, copy + at, n - at, &used, &t->sent, &result);
        assert_true(used <= n - at);
        assert_true(progress != DB_WIRE_MORE || used == n - at);
        assert_int_equal(progress == DB_WIRE_BROKEN, t->wire->base.broken);
        log_sent(t);
        if (progress == DB_WIRE_BROKEN)
            assert_int_equal(result.class, DB_LOST);
        if (progress != DB_WIRE_MORE)
            log_result(t, &result);
        at += used;
    } while (at < n && !t->wire->base.broken);
    free(copy);
}

static void flush(struct talk *t)
{
    for (size_t at = 0; at < t->heard.len && !t->wire->base.broken;) {
        size_t n = t->heard.len - at;
        if (t->cut == BYTES)
            n = 1;
        if (t->cut == RANDOM)
            n = (size_t)rng_range(&t->rng, 1, rng_range(&t->rng, 1, (int64_t)n));
        feed_chunk(t, t->heard.buf + at, n);
        at += n;
    }
    str_clear(&t->heard);
}

static void ask(struct talk *t, const char *word)
{
    struct db_value id = {.type = DB_INT, .i = 42};
    struct db_wire *wire = &t->wire->base;
    struct db_result result = {0};
    bool want_row = word[0] == 'P' || word[0] == 'Q';
    enum db_class class;

    flush(t);
    if (word[0] == 's') {
        wire->codec->end_batch(wire, &t->sent);
        log_sent(t);
        return;
    }
    if (word[0] == 'j')
        class =
            wire->codec->encode_joined(wire, &statements[word[1] - '0'], &id, &t->sent, &result);
    else if (word[0] == 'p' || word[0] == 'P')
        class = db_wire_encode(wire, &statements[word[1] - '0'], &id, want_row, &t->sent, &result);
    else
        class = wire->codec->encode_query(wire, "SELECT 1", want_row, &t->sent, &result);
    assert_int_equal(class, result.class);
    log_sent(t);
    t->row_wanted[t->asked++] = want_row;
    if (class != DB_OK)
        log_result(t, &result);
}

static void talk_begin(struct talk *t, enum db_protocol protocol, enum cut cut, uint64_t n)
{
    *t = (struct talk){.cut = cut, .sent = STR_INIT, .heard = STR_INIT, .log = STR_INIT};
    rng_init(&t->rng, SEED, n, RNG_DRIVER);
    t->wire = mem_calloc(1, sizeof(*t->wire));
    t->wire->base.codec = &postgres_wire_codec;
    postgres_wire_begin(t->wire, protocol, N_STATEMENTS);
}

static void talk_end(struct talk *t)
{
    postgres_wire_end(t->wire);
    free(t->wire);
    str_release(&t->sent);
    str_release(&t->heard);
    str_release(&t->log);
}

static void talk(struct talk *t, const char *conversation)
{
    char *text = mem_strdup(conversation);

    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        if (word[0] == '>') {
            ask(t, word + 1);
        } else if (strcmp(word, "close") == 0) {
            flush(t);
            feed_chunk(t, "", 0);
        } else {
            build(&t->heard, word);
        }
    }
    flush(t);
    if (t->log.len > 0)
        t->log.buf[--t->log.len] = '\0'; // the last blank
    free(text);
}

// ---- tables

struct row {
    const char *conversation, *result;
};

static void hold(enum db_protocol protocol, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int turn = 0; turn < 12; turn++) {
            struct talk t;
            talk_begin(&t, protocol, turn < 2 ? (enum cut)turn : RANDOM, i * 100 + (uint64_t)turn);
            talk(&t, rows[i].conversation);
            if (strcmp(t.log.buf, rows[i].result) != 0)
                fail_msg("turn %d of\n%s\ncame to\n%s\ninstead of\n%s", turn, rows[i].conversation,
                         t.log.buf, rows[i].result);
            talk_end(&t);
        }
}

#define LOST_BY(what) "lost  'the server broke the protocol: " what "';"

static void a_statement_is_parsed_once_and_executed_by_name(void **state)
{
    static const struct row rows[] = {
        {">p0 1 2 D(5) C(SELECT_1) Z(I) >p0 2 D(5) C(SELECT_1) Z(I) >P0 2 T(a:23) D(7) C(SELECT_1) "
         "Z(I)",
         "PBES ok 1; BES ok 1; BDES ok 1(a=7:i);"},
        {">P1 1 2 T(b:25) C(SELECT_0) Z(I)", "PBDES ok 0(b);"},
        {">p2 1 2 C(BEGIN) Z(T) >p0 1 2 D(5) C(SELECT_1) Z(T) >p3 1 2 C(COMMIT) Z(I)",
         "PBES ok 0 in; PBES ok 1 in; PBES ok 0;"},
        // A Parse that failed is done again.
        {">p0 E(ERROR,42P01,no_table) Z(I) >p0 1 2 C(SELECT_0) Z(I) >p0 2 C(SELECT_0) Z(I)",
         "PBES undefined 42P01 'no table'; PBES ok 0; BES ok 0;"},
        // One whose execution failed is not.
        {">p0 1 2 E(ERROR,40001,no_luck) Z(I) >p0 2 C(SELECT_0) Z(I)",
         "PBES serialization 40001 'no luck'; BES ok 0;"},
        // Of a statement that the server has forgotten the name is freed first: it may be that the
        // statement itself asked for one that is not there.
        {">p0 1 2 C(SELECT_0) Z(I) >p0 E(ERROR,26000,gone) Z(I) >p0 3 1 2 C(SELECT_0) Z(I) >p0 2 "
         "C(SELECT_0) Z(I)",
         "PBES ok 0; BES undefined 26000 'gone (does a pooler share its connections? Then use "
         "--protocol extended or simple)'; CPBES ok 0; BES ok 0;"},
        {">p0 1 2 C(SELECT_0) Z(I) >p0 E(ERROR,26000,gone) Z(I) >p0 E(ERROR,25P02,aborted) Z(E) "
         ">p0 3 1 2 C(SELECT_0) Z(I)",
         "PBES ok 0; BES undefined 26000 'gone (does a pooler share its connections? Then use "
         "--protocol extended or simple)'; CPBES other 25P02 'aborted' in; CPBES ok 0;"},
        {">p0 E(ERROR,42P05,is_there) Z(I) >p0 E(ERROR,42P05,is_there) Z(I)",
         "PBES other 42P05 'is there (does a pooler share its connections? Then use --protocol "
         "extended or simple)'; PBES other 42P05 'is there (does a pooler share its connections? "
         "Then use --protocol extended or simple)';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void extended_and_simple_requests_are_answered(void **state)
{
    static const struct row extended[] = {
        {">p0 1 2 D(5) C(SELECT_1) Z(I) >P0 1 2 T(a:25) D(x) D(y) C(SELECT_2) Z(T)",
         "PBES ok 1; PBDES ok 2(a=x:t) in;"},
        {">q T(a:25) D(x) C(SELECT_1) Z(I)", "Q ok 1;"},
    };
    static const struct row simple[] = {
        {">p0 T(a:23) D(5) C(SELECT_1) Z(I)", "Q ok 1;"},
        {">P0 T(a:23) D(5) D(6) C(SELECT_2) Z(I)", "Q ok 2(a=5:i);"},
        {">Q I Z(I)", "Q ok 0();"},
        // Of several statements the last result counts.
        {">Q T(a:23) D(5) D(6) C(SELECT_2) T(b:23,c:25) D(7,x) C(SELECT_1) Z(I)",
         "Q ok 1(b=7:i,c=x:t);"},
        {">Q T(a:23) D(5) D(6) C(SELECT_2) C(UPDATE_3) Z(I)", "Q ok 3();"},
        {">Q C(UPDATE_3) T(a:23) C(SELECT_0) Z(I)", "Q ok 0(a);"},
        // The first failure counts, whatever there was before it.
        {">Q T(a:23) D(5) C(SELECT_1) E(ERROR,22012,division_by_zero) Z(I)",
         "Q other 22012 'division by zero';"},
        {">q E(ERROR,22012,first) E(ERROR,23505,second) Z(I)", "Q other 22012 'first';"},
        {">q C(UPDATE_3) E(ERROR,23503,deferred) Z(I) >q C(UPDATE_3) Z(I)",
         "Q constraint 23503 'deferred'; Q ok 3;"},
    };

    (void)state;
    hold(DB_EXTENDED, extended, ARR_LEN(extended));
    hold(DB_SIMPLE, simple, ARR_LEN(simple));
}

static void rows_are_counted_by_rows_or_by_the_tag(void **state)
{
    static const struct row rows[] = {
        {">q C(INSERT_0_5) Z(I)", "Q ok 5;"},
        {">q C(SELECT_7) Z(I)", "Q ok 7;"}, // into a table
        {">q C(UPDATE_0) Z(I)", "Q ok 0;"},
        {">q C(CREATE_TABLE) Z(I)", "Q ok 0;"},
        {">q C(MOVE_12345678901) Z(I)", "Q ok 12345678901;"},
        {">q C(SELECT_99999999999999999999999) Z(I)", "Q ok 0;"},
        {">q C(17) Z(I)", "Q ok 0;"},
        {">q C() Z(I)", "Q " LOST_BY("a command's tag without an end")},
        {">q T(a:25) D(x) D(y) C(EXPLAIN) Z(I)", "Q ok 2;"},
        {">q T(a:25) D(x) C(INSERT_0_1) Z(I)", "Q ok 1;"},
        {">p0 1 2 D(x) D(y) s Z(I)", "PBES ok 2;"},
        {">p0 1 t(x) n 2 C(DELETE_3) Z(I)", "PBES ok 3;"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void a_wanted_row_has_names_types_and_nulls(void **state)
{
    static const struct row rows[] = {
        {">Q T(a:16,b:20,c:21,d:23,e:26,f:700,g:701,h:1700,i:1700,j:25,k:25) "
         "D(t,-9223372036854775808,-1,7,8,0.5,1e300,12,1.25,,~) C(SELECT_1) Z(I)",
         "Q ok 1(a=true:b,b=-9223372036854775808:i,c=-1:i,d=7:i,e=8:i,f=0.5:d,g=1e+300:d,h=12:i,"
         "i=1.25:t,j=:t,k=~);"},
        {">Q T(a:16) D(f) C(SELECT_1) Z(I) >Q T(b:25) D(~) C(SELECT_1) Z(I)",
         "Q ok 1(a=false:b); Q ok 1(b=~);"},
        {">Q T() D() C(SELECT_1) Z(I)", "Q ok 1();"},
        // Not the second row's business.
        {">Q T(a:25) D(x) D(y,z) C(SELECT_2) Z(I)", "Q ok 2(a=x:t);"},
    };

    (void)state;
    hold(DB_SIMPLE, rows, ARR_LEN(rows));
}

static void announcements_may_come_at_any_moment(void **state)
{
    static const struct row rows[] = {
        {"N(NOTICE,00000,hello) S(TimeZone,UTC) A(x) >P0 S(a,b) 1 N(NOTICE,00000,x) 2 A(x) T(a:23) "
         "A(x) D(5) N(WARNING,01000,y) C(SELECT_1) S(c,d) Z(I) A(x) N(NOTICE,00000,z) S(e,f)",
         "PBDES ok 1(a=5:i);"},
        {">q T(a:23) N(WARNING,01000,y) E(ERROR,22012,first) N(WARNING,01000,y) Z(E)",
         "Q other 22012 'first' in;"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void a_failure_has_class_code_and_text(void **state)
{
    static const struct row rows[] = {
        {">q E(ERROR,40P01,deadlock_detected,Process_1_waits.) Z(I)",
         "Q deadlock 40P01 'deadlock detected (Process 1 waits.)';"},
        {">q E(ERROR,57014,canceling) Z(T)", "Q cancelled 57014 'canceling' in;"},
        {">q E(ERROR,XX000,two\nlines) Z(I)", "Q other XX000 'two';"},
        {">q E(ERROR,XX000,tab\there) Z(I)", "Q other XX000 'tab here';"},
        {">q E(ERROR,-,no_code) Z(I)", "Q other  'no code';"},
        {">q E(ERROR,XX000) Z(I)", "Q other XX000 'other';"},
        {">q E() Z(I)", "Q other  'other';"},
        {">q E(ERROR,1234567890123456789,long_code) Z(I)", "Q other 123456789012345 'long code';"},
        // In a language of its own, without the other severity.
        {">q E(-,40001,x) Z(I)", "Q serialization 40001 'x';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void the_end_of_a_session_is_told_with_its_reason(void **state)
{
    static const char unexpected[] = "lost  'server closed the connection unexpectedly';";
    const struct row rows[] = {
        {"close", unexpected},
        {">p0 close", "PBES lost  'server closed the connection unexpectedly';"},
        {">p0 1 2 D(5) close", "PBES lost  'server closed the connection unexpectedly';"},
        {">p0 x(44) close", "PBES lost  'server closed the connection unexpectedly';"},
        {">p0 E(FATAL,57P01,terminating) close", "PBES lost 57P01 'terminating'; lost 57P01 "
                                                 "'terminating';"},
        {">p0 E(PANIC,XX000,disk) Z(I)", "PBES lost XX000 'disk';"},
        {">p0 1 2 D(5) E(FATAL,25P03,idle_for_too_long)", "PBES lost 25P03 'idle for too long';"},
        // A class that means the same, whatever the severity.
        {">p0 E(ERROR,08P01,pooler_error)", "PBES lost 08P01 'pooler error';"},
        // While nothing is asked every error is a farewell.
        {"E(FATAL,57P01,terminating)", "lost 57P01 'terminating';"},
        {"E(ERROR,XX000,strange)", "lost XX000 'strange';"},
        {">p0 1 2 C(SELECT_0) Z(T) E(FATAL,25P03,idle) >p0",
         "PBES ok 0 in; lost 25P03 'idle'; lost  'the connection was lost before';"},
        // An announcement that others have crashed, and then the end.
        {">p0 N(WARNING,57P02,crash_of_another) close",
         "PBES lost 57P02 'server closed the connection unexpectedly';"},
        {"N(WARNING,57P02,crash_of_another) close",
         "lost 57P02 'server closed the connection unexpectedly';"},
        // An error that was not the last word.
        {">p0 E(ERROR,XX000,bad_page) close", "PBES lost XX000 'bad page';"},
        {">p0 E(ERROR,XX000,bad_page) E(FATAL,57P01,terminating)",
         "PBES lost 57P01 'terminating';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void copy_is_refused_and_the_session_goes_on(void **state)
{
    static const char copy[] =
        "other  'COPY between client and server is not supported in a workload'";
    struct str in = STR_INIT, out = STR_INIT, both = STR_INIT, extended = STR_INIT,
               second = STR_INIT;

    (void)state;
    str_addf(&in, "Q f %s; Q ok 1;", copy);
    str_addf(&out, "Q %s in;", copy);
    str_addf(&both, "Q c %s;", copy);
    str_addf(&extended, "PBES fS %s; BES ok 0;", copy);
    str_addf(&second, "Q other 22012 'first';");
    const struct row rows[] = {
        {">q G(x) E(ERROR,57014,COPY_from_stdin_failed) Z(I) >q C(UPDATE_1) Z(I)", in.buf},
        {">Q H(x) d(1) d(2) c C(COPY_2) Z(T)", out.buf},
        {">q W(x) d(1) c C(COPY_0) Z(I)", both.buf},
        {">p0 1 2 G(x) E(ERROR,57014,COPY_from_stdin_failed) Z(I) >p0 2 C(SELECT_0) Z(I)",
         extended.buf},
        {">q E(ERROR,22012,first) H(x) d(1) c Z(I)", second.buf},
        // Requests behind a COPY have been swallowed by it.
        {">p0 >p1 1 2 G(x)",
         "PBES PBES lost  'COPY between client and server is not supported in a workload';"},
    };
    hold(DB_PREPARED, rows, ARR_LEN(rows));
    str_release(&in);
    str_release(&out);
    str_release(&both);
    str_release(&extended);
    str_release(&second);
}

static void several_open_requests_are_answered_in_order(void **state)
{
    static const struct row rows[] = {
        {">p2 >P0 >P1 >p3 1 2 C(BEGIN) Z(T) 1 2 T(a:23) D(5) C(SELECT_1) Z(T) 1 2 T(b:25) D(x) "
         "C(SELECT_1) Z(T) 1 2 C(COMMIT) Z(I)",
         "PBES PBDES PBDES PBES ok 0 in; ok 1(a=5:i) in; ok 1(b=x:t) in; ok 0;"},
        // Until its Parse is answered a statement goes without a name, so that it fails for its own
        // reason.
        {">p0 >p0 1 2 C(SELECT_0) Z(I) >p0 1 2 C(SELECT_0) Z(I) 2 C(SELECT_0) Z(I)",
         "PBES PBES ok 0; BES ok 0; ok 0;"},
        {">p0 >p0 E(ERROR,42P01,no_table) Z(I) E(ERROR,42P01,no_table) Z(I) >p0",
         "PBES PBES undefined 42P01 'no table'; undefined 42P01 'no table'; PBES"},
        // An error in the middle is its own request's only.
        {">p0 1 2 C(SELECT_0) Z(I) >p2 >p0 >p3 1 2 C(BEGIN) Z(T) E(ERROR,40001,no_luck) Z(E) 1 2 "
         "C(ROLLBACK) Z(I)",
         "PBES ok 0; PBES BES PBES ok 0 in; serialization 40001 'no luck' in; ok 0;"},
        // Two that ran into the same loss of a statement; it is made again once.
        {">p0 1 2 C(SELECT_0) Z(I) >p0 >p0 E(ERROR,26000,gone) Z(I) >p0 E(ERROR,26000,gone) Z(I) 3 "
         "1 2 C(SELECT_0) Z(I) >p0 2 C(SELECT_0) Z(I)",
         "PBES ok 0; BES BES undefined 26000 'gone (does a pooler share its connections? Then use "
         "--protocol extended or simple)'; CPBES undefined 26000 'gone (does a pooler share its "
         "connections? Then use --protocol extended or simple)'; ok 0; BES ok 0;"},
        // The row that was wanted before stays, and is not this one's.
        {">Q >q T(a:23) D(5) C(SELECT_1) Z(I) T(b:23) D(6) C(SELECT_1) Z(I)",
         "Q Q ok 1(a=5:i); ok 1;"},
        {">q >q >q C(UPDATE_1) Z(I) C(UPDATE_2) Z(I) close",
         "Q Q Q ok 1; ok 2; lost  'server closed the connection unexpectedly';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void a_batch_is_answered_command_by_command(void **state)
{
    static const struct row rows[] = {
        // The state of the transaction is told at the end alone.
        {">j2 >j0 >P1 1 2 C(BEGIN) 1 2 D(5) C(SELECT_1) 1 2 T(b:25) D(x) C(SELECT_1) Z(T)",
         "PBE PBE PBDES ok 0; ok 1; ok 1(b=x:t) in;"},
        {">j2 >j0 >s 1 2 C(BEGIN) 1 2 C(SELECT_0) Z(T) >j0 >p3 2 D(5) C(SELECT_1) 1 2 C(COMMIT) "
         "Z(I) >p0 2 C(SELECT_0) Z(I)",
         "PBE PBE S ok 0; ok 0 in; BE PBES ok 1 in; ok 0; BES ok 0;"},
        {">j2 >s 1 2 I Z(T) >j2 >s 2 s Z(T)", "PBE S ok 0 in; BE S ok 0 in;"},
        // Of one statement twice in a batch the first makes the name.
        {">j0 >j0 >s 1 2 C(SELECT_0) 1 2 C(SELECT_0) Z(I) >p0", "PBE PBE S ok 0; ok 0; BES"},
        // Batches side by side: each has its own end.
        {">j2 >s >j0 >p3 1 2 C(BEGIN) Z(T) 1 2 C(SELECT_0) 1 2 C(COMMIT) Z(I)",
         "PBE S PBE PBES ok 0 in; ok 0 in; ok 0;"},
        {">j2 >j0 >p3 N(NOTICE,00000,hm) 1 2 C(BEGIN) S(a,b) 1 A 2 D(5) N(NOTICE,00000,hm) "
         "C(SELECT_1) "
         "1 2 C(COMMIT) S(a,b) Z(I)",
         "PBE PBE PBES ok 0; ok 1; ok 0;"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void an_error_in_a_batch_leaves_out_the_rest(void **state)
{
    static const struct row rows[] = {
        {">j2 >j0 >j1 >p3 1 2 C(BEGIN) E(ERROR,40001,no_luck) Z(E) >q C(ROLLBACK) Z(I)",
         "PBE PBE PBE PBES ok 0; serialization 40001 'no luck' in; Q ok 0;"},
        // The server knows what was parsed before the error and nothing after it.
        {">j2 >j0 >j1 >p3 1 2 C(BEGIN) 1 E(ERROR,22P02,no_number) Z(E) >j2 >j0 >j1 >p3",
         "PBE PBE PBE PBES ok 0; other 22P02 'no number' in; BE BE PBE PBES"},
        // At the very first, and at the end, where COMMIT itself fails.
        {">j2 >j0 >p3 E(ERROR,57014,stopped) Z(I)", "PBE PBE PBES cancelled 57014 'stopped';"},
        {">j2 >p3 1 2 C(BEGIN) 1 2 E(ERROR,40001,no_luck) Z(I)",
         "PBE PBES ok 0; serialization 40001 'no luck';"},
        {">j2 >p3 1 2 C(BEGIN) 1 2 C(COMMIT) E(ERROR,23503,late) Z(I)",
         "PBE PBES ok 0; constraint 23503 'late';"},
        // Its own batch only.
        {">j2 >j0 >s >j1 >p3 1 2 C(BEGIN) E(ERROR,40001,no_luck) Z(E) E(ERROR,25P02,aborted) Z(E)",
         "PBE PBE S PBE PBES ok 0; serialization 40001 'no luck' in; other 25P02 'aborted' in;"},
        {">j2 >j0 >s >p1 E(ERROR,40001,no_luck) Z(I) 1 2 D(1) C(SELECT_1) Z(I)",
         "PBE PBE S PBES serialization 40001 'no luck'; ok 1;"},
        // A statement that the server forgot is made again, with others that were left out.
        {">p0 1 2 C(SELECT_0) Z(I) >j0 >p1 E(ERROR,26000,gone) Z(I) >j0 >p1",
         "PBES ok 0; BE PBES undefined 26000 'gone (does a pooler share its connections? Then use "
         "--protocol extended or simple)'; CPBE PBES"},
        {">j2 >j0 >p3 1 2 C(BEGIN) E(FATAL,57P01,ended) Z(E)",
         "PBE PBE PBES ok 0; lost 57P01 'ended';"},
        {">j2 >j0 >p3 1 2 C(BEGIN) close",
         "PBE PBE PBES ok 0; lost  'server closed the connection unexpectedly';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void a_batch_that_cannot_be_breaks_the_wire(void **state)
{
    static const struct row rows[] = {
        {">j2 >p3 1 2 C(BEGIN) Z(T)", "PBE PBES ok 0; " LOST_BY("an end without an answer")},
        {">j2 >p3 1 2 Z(T)", "PBE PBES " LOST_BY("an end without an answer")},
        {">j2 >p3 E(ERROR,40001,no_luck) C(BEGIN)", "PBE PBES " LOST_BY("a result after an error")},
        {">j2 >s 1 2 C(BEGIN) Z(T) Z(T)",
         "PBE S ok 0 in; " LOST_BY("a message Z that answers nothing")},
        // The server would go on with the batch behind what was refused.
        {">j0 >p3 1 2 H C(COPY_0)",
         "PBE PBES lost  'COPY between client and server is not supported "
         "in a workload';"},
        {">j0 >p3 1 2 G", "PBE PBES lost  'COPY between client and server is not supported in a "
                          "workload';"},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

static void a_broken_protocol_breaks_the_wire(void **state)
{
    static const struct row rows[] = {
        // Lengths.
        {">q x(5a00000003)", "Q " LOST_BY("a message Z of length 3")},
        {">q x(5affffffff)", "Q " LOST_BY("a message Z of length -1")},
        {">q x(4480000000)", "Q " LOST_BY("a message D of length -2147483648")},
        {">q x(4440000001)", "Q " LOST_BY("a message D of length 1073741825")},
        {">q x(5a00010000)", "Q " LOST_BY("a message Z of length 65536")},
        {"x(4e7fffffff)", LOST_BY("a message N of length 2147483647")},
        // Types.
        {">q x(5200000008)", "Q " LOST_BY("a message of unknown type 0x52")},
        {">q x(0000000000)", "Q " LOST_BY("a message of unknown type 0x00")},
        {">q x(ff00000004)", "Q " LOST_BY("a message of unknown type 0xff")},
        {">q K(x)", "Q " LOST_BY("a message of unknown type 0x4b")},
        // Nothing was asked, or not that.
        {"Z(I)", LOST_BY("a message Z that answers nothing")},
        {"D(5)", LOST_BY("a message D that answers nothing")},
        {">q C(UPDATE_1) Z(I) C(UPDATE_1)", "Q ok 1; " LOST_BY("a message C that answers nothing")},
        {">q 1", "Q " LOST_BY("a message 1 that answers nothing")},
        {">q 2", "Q " LOST_BY("a message 2 that answers nothing")},
        // Ends.
        {">q Z(I)", "Q " LOST_BY("an end without an answer")},
        {">p0 1 2 Z(I)", "PBES " LOST_BY("an end without an answer")},
        {">q C(UPDATE_1) Z(X)", "Q " LOST_BY("an unknown state of the transaction")},
        {">q C(UPDATE_1) Z()", "Q " LOST_BY("an unknown state of the transaction")},
        {">q C(UPDATE_1) Z(II)", "Q " LOST_BY("an unknown state of the transaction")},
        // Bodies of errors: without the zero byte at the end, or of a field.
        {">q x(4500000007433430)", "Q " LOST_BY("an error of 3 bytes without an end")},
        {">q x(450000000843343000)", "Q " LOST_BY("an error of 4 bytes without an end")},
        {">q x(4500000004)", "Q " LOST_BY("an error of 0 bytes without an end")},
        {"x(4e00000004)", LOST_BY("a notice of 0 bytes without an end")},
        // Descriptions: no number, more fields than there are, cut ones, more bytes.
        {">Q x(5400000004)", "Q " LOST_BY("a description of rows that contradicts itself")},
        {">Q x(54000000060001)", "Q " LOST_BY("a description of rows that contradicts itself")},
        {">Q x(5400000006ffff)", "Q " LOST_BY("a description of rows that contradicts itself")},
        {">Q x(540000001a000161616161616161616161616161616161616161616161)",
         "Q " LOST_BY("a description of rows that contradicts itself")},
        {">Q x(540000000a000000000000)",
         "Q " LOST_BY("a description of rows that contradicts itself")},
        // Rows: no number, another number of columns, values longer than the row, no description.
        {">Q T(a:25) x(4400000004)", "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) D(x,y)", "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) D()", "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) x(44000000060001)", "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) x(440000000b00010000000278)",
         "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) x(440000000a00017fffffff)",
         "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) x(440000000a0001fffffffe)",
         "Q " LOST_BY("a row that contradicts its description")},
        {">Q T(a:25) x(440000000c0001000000017879)",
         "Q " LOST_BY("a row that contradicts its description")},
        {">Q D(x)", "Q " LOST_BY("a row without a description")},
        {">Q T(a:25) D(x) C(SELECT_1) D(x)", "Q " LOST_BY("a row without a description")},
        // It stays broken.
        {">q Z(I) C(UPDATE_1) Z(I) close",
         "Q " LOST_BY("an end without an answer") " " LOST_BY("an end without an answer")},
    };

    (void)state;
    hold(DB_PREPARED, rows, ARR_LEN(rows));
}

// ---- sizes

static void heard_bytes(struct talk *t, char type, size_t len, const char *begin, size_t n_begin)
{
    str_addc(&t->heard, type);
    add32(&t->heard, (uint32_t)len + 4);
    str_addn(&t->heard, begin, n_begin);
    for (size_t i = n_begin; i < len; i++)
        str_addc(&t->heard, 'x');
}

static void long_rows_are_counted_without_being_kept(void **state)
{
    (void)state;
    for (int cut = WHOLE; cut <= RANDOM; cut++) {
        struct talk t;
        talk_begin(&t, DB_PREPARED, (enum cut)cut, 1);
        ask(&t, "p0");
        build(&t.heard, "1");
        for (int i = 0; i < 3; i++)
            heard_bytes(&t, 'D', 500000, "\0\1", 2);
        talk(&t, "C(SELECT_3) Z(I)");
        assert_string_equal(t.log.buf, "PBES ok 3;");
        assert_true(t.wire->pending.cap < 1024);
        assert_int_equal(t.wire->row.bytes.cap, 0);
        talk_end(&t);
    }
}

static void a_wanted_row_has_a_bound_and_its_memory_is_given_back(void **state)
{
    static const struct {
        size_t len; // of the message's body
        const char *result;
    } cases[] = {
        {DB_WIRE_KEEP_MAX,
         "Q ok 1(a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:t);"
         " Q ok 1(b=7:i);"},
        {DB_WIRE_KEEP_MAX + 1,
         "Q other  'a row of 1048577 bytes is longer than a script can read'; Q ok 1(b=7:i);"},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        for (int cut = WHOLE; cut <= RANDOM; cut += RANDOM) {
            struct talk t;
            char head[6] = {0, 1};
            talk_begin(&t, DB_PREPARED, (enum cut)cut, i);
            ask(&t, "Q");
            build(&t.heard, "T(a:25)");
            postgres_put32(head + 2, (uint32_t)cases[i].len - 6);
            heard_bytes(&t, 'D', cases[i].len, head, 6);
            talk(&t, "C(SELECT_1) Z(I) >Q T(b:23) D(7) C(SELECT_1) Z(I)");
            assert_string_equal(t.log.buf, cases[i].result);
            assert_true(t.wire->pending.cap <= POSTGRES_WIRE_SPARE_MAX);
            assert_true(t.wire->row.bytes.cap <= POSTGRES_WIRE_SPARE_MAX);
            talk_end(&t);
        }
}

static void of_a_long_error_the_beginning_is_read(void **state)
{
    (void)state;
    for (int cut = WHOLE; cut <= RANDOM; cut++) {
        struct talk t;
        char expected[DB_MESSAGE_MAX];
        memset(expected, 'x', sizeof(expected));
        expected[DB_MESSAGE_MAX - 1] = '\0';
        talk_begin(&t, DB_PREPARED, (enum cut)cut, 2);
        ask(&t, "q");
        heard_bytes(&t, 'E', 100000, "SERROR\0C23505\0M", 15);
        t.heard.buf[t.heard.len - 1] = t.heard.buf[t.heard.len - 2] = '\0';
        talk(&t, "Z(I) >q C(UPDATE_1) Z(I)");
        char *result = mem_printf("Q constraint 23505 '%s'; Q ok 1;", expected);
        assert_string_equal(t.log.buf, result);
        free(result);
        assert_true(t.wire->pending.cap <= POSTGRES_WIRE_SPARE_MAX);
        talk_end(&t);
    }
}

static void as_many_requests_as_allowed_can_be_open(void **state)
{
    struct str conversation = STR_INIT;
    struct talk t;

    (void)state;
    assert_int_equal(postgres_wire_codec.depth_max, POSTGRES_WIRE_DEPTH);
    talk_begin(&t, DB_SIMPLE, RANDOM, 3);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < POSTGRES_WIRE_DEPTH; i++)
            str_add(&conversation, ">q ");
        for (int i = 0; i < POSTGRES_WIRE_DEPTH; i++)
            str_addf(&conversation, "C(UPDATE_%d) Z(I) ", turn * 1000 + i);
    }
    talk(&t, conversation.buf);
    assert_int_equal(t.answered, 3 * POSTGRES_WIRE_DEPTH);
    assert_non_null(strstr(t.log.buf, " ok 2062; ok 2063;"));
    str_release(&conversation);
    talk_end(&t);
}

// ---- requests

static void requests_are_these_bytes(void **state)
{
    static const char *const many[] = {"SELECT ", ", ", ", ", ", '", "', ", ""};
    static const struct db_statement statement = {
        .index = 3, .sql = "SELECT $1", .n_params = 5, .pieces = (void *)many};
    const struct db_value params[] = {
        {.type = DB_INT, .i = -42},    {.type = DB_NULL},
        {.type = DB_DOUBLE, .d = 0.5}, {.type = DB_TEXT, .s = "it''s", .text_len = 5},
        {.type = DB_BOOL, .b = true},
    };
#define VALUES "\0\0\0\3-42\xff\xff\xff\xff\0\0\0\0030.5\0\0\0\5it''s\0\0\0\4true"
    static const char simple[] = "Q\0\0\0\x29SELECT -42, NULL, 0.5, 'it''s', true\0";
    static const char extended[] = "P\0\0\0\x11\0SELECT $1\0\0\0"
                                   "B\0\0\0\x2f\0\0\0\0\0\5" VALUES "\0\0"
                                   "E\0\0\0\x9\0\0\0\0\0S\0\0\0\4";
    static const char prepared[] = "P\0\0\0\x18prony_3\0SELECT $1\0\0\0"
                                   "B\0\0\0\x36\0prony_3\0\0\0\0\5" VALUES "\0\0"
                                   "D\0\0\0\6P\0E\0\0\0\x9\0\0\0\0\0S\0\0\0\4";
    static const struct {
        enum db_protocol protocol;
        bool want_row;
        const char *bytes;
        size_t n;
    } cases[] = {
        {DB_SIMPLE, true, simple, sizeof(simple) - 1},
        {DB_EXTENDED, false, extended, sizeof(extended) - 1},
        {DB_PREPARED, true, prepared, sizeof(prepared) - 1},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct talk t;
        struct db_result result;
        talk_begin(&t, cases[i].protocol, WHOLE, 0);
        str_add(&t.sent, "before");
        assert_int_equal(
            db_wire_encode(&t.wire->base, &statement, params, cases[i].want_row, &t.sent, &result),
            DB_OK);
        assert_int_equal(t.sent.len, 6 + cases[i].n);
        assert_memory_equal(t.sent.buf, "before", 6);
        assert_memory_equal(t.sent.buf + 6, cases[i].bytes, cases[i].n);
        talk_end(&t);
    }
}

static void encoding_allocates_nothing_once_out_has_grown(void **state)
{
    (void)state;
    for (int protocol = DB_SIMPLE; protocol <= DB_PREPARED; protocol++) {
        struct talk t;
        const char *buf = NULL;
        talk_begin(&t, (enum db_protocol)protocol, WHOLE, 0);
        for (int i = 0; i < 20; i++) {
            struct db_value id = {.type = DB_INT, .i = INT64_MIN};
            struct db_result result;
            str_clear(&t.sent);
            db_wire_encode(&t.wire->base, &statements[0], &id, true, &t.sent, &result);
            assert_true(!buf || buf == t.sent.buf);
            buf = t.sent.buf;
        }
        talk_end(&t);
    }
}

static void what_cannot_be_sent_is_refused(void **state)
{
    static const struct {
        enum db_protocol protocol;
        uint32_t text_len;
        enum db_class class;
    } cases[] = {
        {DB_SIMPLE, 3, DB_OTHER}, // the second byte is zero
        {DB_EXTENDED, 3, DB_OK},  // the server says it
        {DB_SIMPLE, 1u << 30, DB_OTHER},
        {DB_EXTENDED, 1u << 30, DB_OTHER},
        {DB_PREPARED, UINT32_MAX, DB_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct talk t;
        struct db_result result = {0};
        struct db_value text = {.type = DB_TEXT, .s = "a\0b", .text_len = cases[i].text_len};
        talk_begin(&t, cases[i].protocol, WHOLE, 0);
        str_add(&t.sent, "before");
        enum db_class class =
            db_wire_encode(&t.wire->base, &statements[0], &text, false, &t.sent, &result);
        assert_int_equal(class, cases[i].class);
        assert_int_equal(result.class, cases[i].class);
        if (class != DB_OK) {
            assert_string_equal(t.sent.buf, "before");
            assert_true(result.message[0]);
            assert_int_equal(t.wire->n_open, 0);
            assert_int_equal(t.wire->handles[0], HANDLE_NONE);
        }
        talk_end(&t);
    }
}

// ---- anything

// Real streams with bytes changed: whatever comes of it, it comes whole and cut alike. The fuzzer
// (tests/fuzz) does this with more patience.
static void damaged_streams_never_do_harm(void **state)
{
    static const char *const conversations[] = {
        ">P0 >p1 >Q 1 2 T(a:23,b:25) D(5,~) D(6,x) C(SELECT_2) Z(I) 1 2 D(5) C(SELECT_1) Z(T) "
        "T(c:25) D(text) C(SELECT_1) Z(T)",
        ">Q >Q E(ERROR,40001,no_luck,detail) Z(E) N(WARNING,57P02,crash) G(x) C(COPY_0) Z(I)",
    };
    struct rng rng;

    (void)state;
    rng_init(&rng, SEED, 99, RNG_DRIVER);
    for (int turn = 0; turn < 6000; turn++) {
        struct str logs[2] = {STR_INIT, STR_INIT};
        struct rng before = rng;
        for (int pass = 0; pass < 2; pass++) {
            struct talk t;
            rng = before;
            talk_begin(&t, (enum db_protocol)(turn % 3), pass ? RANDOM : WHOLE, (uint64_t)turn);
            char *text = mem_strdup(conversations[turn % 2]);
            for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
                if (word[0] == '>')
                    ask(&t, word + 1);
                else
                    build(&t.heard, word);
            for (int64_t n = rng_range(&rng, 1, 4); n > 0; n--)
                t.heard.buf[rng_range(&rng, 0, (int64_t)t.heard.len - 1)] =
                    (char)rng_range(&rng, 0, rng_range(&rng, 0, 1) ? 255 : 8);
            flush(&t);
            feed_chunk(&t, "", 0);
            str_add(&logs[pass], t.log.buf);
            free(text);
            talk_end(&t);
        }
        if (strcmp(logs[0].buf, logs[1].buf) != 0)
            fail_msg("turn %d: whole\n%s\ncut\n%s", turn, logs[0].buf, logs[1].buf);
        str_release(&logs[0]);
        str_release(&logs[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statement_is_parsed_once_and_executed_by_name),
        cmocka_unit_test(extended_and_simple_requests_are_answered),
        cmocka_unit_test(rows_are_counted_by_rows_or_by_the_tag),
        cmocka_unit_test(a_wanted_row_has_names_types_and_nulls),
        cmocka_unit_test(announcements_may_come_at_any_moment),
        cmocka_unit_test(a_failure_has_class_code_and_text),
        cmocka_unit_test(the_end_of_a_session_is_told_with_its_reason),
        cmocka_unit_test(copy_is_refused_and_the_session_goes_on),
        cmocka_unit_test(several_open_requests_are_answered_in_order),
        cmocka_unit_test(a_batch_is_answered_command_by_command),
        cmocka_unit_test(an_error_in_a_batch_leaves_out_the_rest),
        cmocka_unit_test(a_batch_that_cannot_be_breaks_the_wire),
        cmocka_unit_test(a_broken_protocol_breaks_the_wire),
        cmocka_unit_test(long_rows_are_counted_without_being_kept),
        cmocka_unit_test(a_wanted_row_has_a_bound_and_its_memory_is_given_back),
        cmocka_unit_test(of_a_long_error_the_beginning_is_read),
        cmocka_unit_test(as_many_requests_as_allowed_can_be_open),
        cmocka_unit_test(requests_are_these_bytes),
        cmocka_unit_test(encoding_allocates_nothing_once_out_has_grown),
        cmocka_unit_test(what_cannot_be_sent_is_refused),
        cmocka_unit_test(damaged_streams_never_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
