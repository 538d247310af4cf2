// Received bytes to messages, and messages to the answer of the oldest open request.
//
// A message is handled as soon as those of its bytes are there that are looked at: all of a row
// that the script reads, the beginning of an error, nothing of a row that is only counted. In the
// usual case they are read where they were received; only a message that came in parts is gathered
// first. The rest of a message is skipped, however long it is.
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "db/driver.h"
#include "db/postgres.h"
#include "db/postgres_wire.h"

#define HEADER_LEN 5
#define SHORT_MAX  30000 // libpq's own bound on messages that have no reason to be long
#define TEXT_MAX   8192  // of an error or a notice that is looked at: its code and text come first

enum {
    KIND_KNOWN = 1 << 0,
    KIND_LONG = 1 << 1,
    KIND_ASYNC = 1 << 2,    // may come at any moment
    KIND_EXTENDED = 1 << 3, // answers a message of the extended protocol
    KIND_WHOLE = 1 << 4,    // looked at: all of it
    KIND_TEXT = 1 << 5,     //   its beginning
    KIND_ROW = 1 << 6,      //   all of it where the script reads the row
};

static const unsigned char kinds[256] = {
    ['1'] = KIND_KNOWN | KIND_EXTENDED,                      // ParseComplete
    ['2'] = KIND_KNOWN | KIND_EXTENDED,                      // BindComplete
    ['3'] = KIND_KNOWN | KIND_EXTENDED,                      // CloseComplete
    ['A'] = KIND_KNOWN | KIND_LONG | KIND_ASYNC,             // NotificationResponse
    ['C'] = KIND_KNOWN | KIND_WHOLE,                         // CommandComplete
    ['D'] = KIND_KNOWN | KIND_LONG | KIND_ROW,               // DataRow
    ['E'] = KIND_KNOWN | KIND_LONG | KIND_ASYNC | KIND_TEXT, // ErrorResponse
    ['G'] = KIND_KNOWN,                                      // CopyInResponse
    ['H'] = KIND_KNOWN,                                      // CopyOutResponse
    ['I'] = KIND_KNOWN,                                      // EmptyQueryResponse
    ['N'] = KIND_KNOWN | KIND_LONG | KIND_ASYNC | KIND_TEXT, // NoticeResponse
    ['S'] = KIND_KNOWN | KIND_ASYNC,                         // ParameterStatus
    ['T'] = KIND_KNOWN | KIND_LONG | KIND_ROW,               // RowDescription
    ['V'] = KIND_KNOWN | KIND_LONG,                          // FunctionCallResponse
    ['W'] = KIND_KNOWN,                                      // CopyBothResponse
    ['Z'] = KIND_KNOWN | KIND_WHOLE,                         // ReadyForQuery
    ['c'] = KIND_KNOWN,                                      // CopyDone
    ['d'] = KIND_KNOWN | KIND_LONG,                          // CopyData
    ['n'] = KIND_KNOWN | KIND_EXTENDED,                      // NoData
    ['s'] = KIND_KNOWN | KIND_EXTENDED,                      // PortalSuspended
    ['t'] = KIND_KNOWN | KIND_LONG | KIND_EXTENDED,          // ParameterDescription
};

struct message {
    char type;
    const char *body; // of which kept bytes are there
    size_t kept, len;
};

static struct postgres_request *front(struct postgres_wire *w)
{
    assert(w->n_open > 0);
    return &w->open[w->first];
}

// ---- failures

// The end of the wire; failure holds code and text.
static enum db_wire_progress break_off(struct postgres_wire *w)
{
    assert(w->failure.message[0]);
    w->failure.class = DB_LOST;
    w->failure.in_transaction = false;
    w->failure.rows = 0;
    w->failure.n_columns = 0;
    w->base.broken = true;
    if (w->cancel) {
        postgres_cancel_detach(w->cancel);
        if (w->n_open > 0)
            postgres_cancel_idle(w->cancel);
    }
    w->n_open = 0;
    postgres_row_clear(&w->row);
    return DB_WIRE_BROKEN;
}

static enum db_wire_progress break_for(struct postgres_wire *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static enum db_wire_progress break_for(struct postgres_wire *w, const char *fmt, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    db_fail(&w->failure, DB_LOST, "", "the server broke the protocol: %s", text);
    return break_off(w);
}

// The peer has closed, or cannot be understood any more. An error that came before tells more.
static void closed(struct postgres_wire *w)
{
    const char *tls = db_wire_tls_error(&w->base);

    if (!w->answer.is_failed)
        db_fail(&w->failure, DB_LOST, w->loss, "%s",
                tls ? tls : "server closed the connection unexpectedly");
    break_off(w);
}

// The first failure of an answer is the answer's.
static bool may_fail(struct postgres_wire *w)
{
    bool is_first = !w->answer.is_failed;

    w->answer.is_failed = w->answer.is_told = true;
    postgres_row_clear(&w->row);
    return is_first;
}

static void fail_long(struct postgres_wire *w, const struct message *m)
{
    if (may_fail(w))
        db_fail(&w->failure, DB_OTHER, "", "a row of %zu bytes is longer than a script can read",
                m->len);
}

// ---- errors and notices

struct text {
    const char *s;
    int len;
};

struct fields { // of an error or a notice, those that are used
    struct text severity, code, message, detail;
};

static bool text_is(struct text text, const char *word)
{
    return text.s && (size_t)text.len == strlen(word) && memcmp(text.s, word, strlen(word)) == 0;
}

// A field is a letter and text; a zero byte ends the list. Negative when the list is not whole
// though all of it is there.
static int parse_fields(const struct message *m, struct fields *fields)
{
    const char *p = m->body, *end = m->body + m->kept;
    bool is_cut = m->kept < m->len;

    *fields = (struct fields){0};
    while (p < end && *p != '\0') {
        char letter = *p++;
        const char *stop = memchr(p, '\0', (size_t)(end - p));
        if (!stop && !is_cut)
            return -1;
        struct text text = {p, (int)((stop ? stop : end) - p)};
        switch (letter) {
        case 'S': // in the server's language; older servers have no other
            if (!fields->severity.s)
                fields->severity = text;
            break;
        case 'V':
            fields->severity = text;
            break;
        case 'C':
            fields->code = text;
            break;
        case 'M':
            fields->message = text;
            break;
        case 'D':
            fields->detail = text;
            break;
        }
        p = stop ? stop + 1 : end;
    }
    return p < end || is_cut ? 0 : -1;
}

static void set_failure(struct postgres_wire *w, const struct fields *fields)
{
    static const char pooler[] =
        "does a pooler share its connections? Then use --protocol extended or simple";
    struct text message = fields->message, detail = fields->detail;
    char code[sizeof(w->failure.native)];

    snprintf(code, sizeof(code), "%.*s", fields->code.len, fields->code.s ? fields->code.s : "");
    if (strcmp(code, "26000") == 0 || strcmp(code, "42P05") == 0)
        detail = (struct text){pooler, (int)sizeof(pooler) - 1};
    // The text can have lines of its own, of which the first says it.
    const char *line = message.s ? memchr(message.s, '\n', (size_t)message.len) : NULL;
    if (line)
        message.len = (int)(line - message.s);
    if (detail.s)
        db_fail(&w->failure, postgres_class(code), code, "%.*s (%.*s)", message.len,
                message.s ? message.s : "", detail.len, detail.s);
    else
        db_fail(&w->failure, postgres_class(code), code, "%.*s", message.len,
                message.s ? message.s : "");
}

static enum db_wire_progress on_error(struct postgres_wire *w, const struct message *m)
{
    struct fields fields;

    if (parse_fields(m, &fields) < 0)
        return break_for(w, "an error of %zu bytes without an end", m->len);
    bool is_fatal =
        text_is(fields.severity, "FATAL") || text_is(fields.severity, "PANIC") || w->n_open == 0;
    if (may_fail(w) || is_fatal)
        set_failure(w, &fields);
    // After these the server closes; what it closes with says nothing new.
    if (is_fatal || w->failure.class == DB_LOST)
        return break_off(w);
    return DB_WIRE_MORE;
}

// Announcements are not shown, but what a server says before it hangs up tells why it did.
static enum db_wire_progress on_notice(struct postgres_wire *w, const struct message *m)
{
    struct fields fields;

    if (parse_fields(m, &fields) < 0)
        return break_for(w, "a notice of %zu bytes without an end", m->len);
    if (fields.code.len == SQLSTATE_MAX - 1 && memcmp(fields.code.s, "57P", 3) == 0)
        memcpy(w->loss, fields.code.s, SQLSTATE_MAX - 1); // stays terminated
    return DB_WIRE_MORE;
}

// ---- results

static bool wants_row(struct postgres_wire *w)
{
    return w->n_open > 0 && (front(w)->flags & REQUEST_WANTS_ROW) && !w->answer.is_failed;
}

static enum db_wire_progress on_description(struct postgres_wire *w, const struct message *m)
{
    w->answer.is_described = true;
    w->answer.n_data = 0;
    if (!wants_row(w))
        return DB_WIRE_MORE;
    if (m->kept < m->len)
        fail_long(w, m);
    else if (postgres_row_describe(&w->row, m->body, m->len) < 0)
        return break_for(w, "a description of rows that contradicts itself");
    return DB_WIRE_MORE;
}

static enum db_wire_progress on_data(struct postgres_wire *w, const struct message *m)
{
    struct postgres_answer *answer = &w->answer;

    if (answer->n_data++ > 0 || !wants_row(w))
        return DB_WIRE_MORE;
    if (!answer->is_described)
        return break_for(w, "a row without a description");
    if (m->kept < m->len)
        fail_long(w, m);
    else if (postgres_row_fill(&w->row, m->body, m->len) < 0)
        return break_for(w, "a row that contradicts its description");
    return DB_WIRE_MORE;
}

// The number at the end of "SELECT 1", "INSERT 0 1", "UPDATE 3"; 0 for other commands.
static int64_t rows_of_tag(const char *tag, size_t len)
{
    int64_t rows = 0, unit = 1;
    size_t i = len;

    for (; i > 0 && tag[i - 1] >= '0' && tag[i - 1] <= '9'; i--) {
        if (unit > INT64_MAX / 100)
            return 0;
        rows += (tag[i - 1] - '0') * unit;
        unit *= 10;
    }
    return i < len && i > 0 && tag[i - 1] == ' ' ? rows : 0;
}

static void settle_handle(struct postgres_wire *w, const struct postgres_request *request)
{
    assert(request->statement >= 0 && request->statement < w->n_statements);
    unsigned char *handle = &w->handles[request->statement];

    if (request->flags & REQUEST_PARSES) {
        if (*handle == HANDLE_ASKED)
            *handle = request->flags & REQUEST_CLOSES ? HANDLE_GONE : HANDLE_NONE;
    } else if (w->answer.is_failed && *handle == HANDLE_READY &&
               strcmp(w->failure.native, "26000") == 0) {
        *handle = HANDLE_GONE; // forgotten by the server (DISCARD, a pooler)
    }
}

// The oldest request is over. Its flags.
static unsigned pop(struct postgres_wire *w)
{
    const struct postgres_request *request = front(w);
    unsigned flags = request->flags;

    if (flags & REQUEST_NAMED)
        settle_handle(w, request);
    w->first = (w->first + 1) % POSTGRES_WIRE_DEPTH;
    if (--w->n_open == 0) {
        w->first = 0; // the same few bytes again and again stay in the cache
        if (w->cancel)
            postgres_cancel_idle(w->cancel);
    }
    return flags;
}

// The end of a result, which is the answer to a request that others of its batch follow.
static enum db_wire_progress end_result(struct postgres_wire *w, int64_t rows)
{
    struct postgres_answer *answer = &w->answer;
    bool is_joined = front(w)->flags & REQUEST_JOINED;

    if (is_joined && answer->is_failed)
        return break_for(w, "a result after an error");
    answer->rows = rows;
    answer->n_columns = answer->is_described && wants_row(w) ? w->row.n : 0;
    answer->is_told = true;
    answer->is_described = false;
    answer->n_data = 0;
    if (!is_joined)
        return DB_WIRE_MORE;
    pop(w);
    return DB_WIRE_ANSWERED;
}

static enum db_wire_progress on_complete(struct postgres_wire *w, const struct message *m)
{
    const struct postgres_answer *answer = &w->answer;

    if (m->len == 0 || m->body[m->len - 1] != '\0')
        return break_for(w, "a command's tag without an end");
    if (answer->is_described || answer->n_data > 0)
        return end_result(w, answer->n_data);
    return end_result(w, rows_of_tag(m->body, m->len - 1));
}

// ---- COPY: wants data that no workload has. The session is usable again afterwards.

static void fail_copy(struct postgres_wire *w)
{
    if (may_fail(w))
        db_fail(&w->failure, DB_OTHER, "",
                "COPY between client and server is not supported in a workload");
}

// The server goes on with the batch after it, which is then neither whole nor failed.
static enum db_wire_progress on_copy_out(struct postgres_wire *w)
{
    fail_copy(w);
    return front(w)->flags & REQUEST_JOINED ? break_off(w) : DB_WIRE_MORE;
}

static enum db_wire_progress on_copy_in(struct postgres_wire *w, struct str *out)
{
    static const char refusal[] = "f\0\0\0\x1f"
                                  "COPY is not supported here\0"
                                  "S\0\0\0\4";
    static_assert(sizeof(refusal) - 1 == 1 + 0x1f + 5, "the length counts the text and itself");

    fail_copy(w);
    // While it copies the server takes the Sync of this request for nothing, and whatever else
    // follows for a breach of the protocol, which it answers by closing.
    if (w->n_open > 1)
        return break_off(w);
    str_addn(out, refusal, sizeof(refusal) - 1 - (front(w)->flags & REQUEST_EXTENDED ? 0 : 5));
    return DB_WIRE_MORE;
}

static enum db_wire_progress on_copy_both(struct postgres_wire *w, struct str *out)
{
    fail_copy(w);
    str_addn(out, "c\0\0\0\4", 5);
    return DB_WIRE_MORE;
}

// ---- the end of an answer

// Of a batch that failed, requests that were not answered go with the one that failed.
static enum db_wire_progress on_ready(struct postgres_wire *w, const struct message *m)
{
    if (m->len != 1 || !memchr("ITE", m->body[0], 3))
        return break_for(w, "an unknown state of the transaction");
    if (!w->answer.is_told)
        return break_for(w, "an end without an answer");
    w->in_transaction = m->body[0] != 'I';
    while (pop(w) & REQUEST_JOINED) {
        assert(w->answer.is_failed);
        if (w->n_open == 0)
            return break_for(w, "an end of a batch that has none");
    }
    return DB_WIRE_ANSWERED;
}

static void tell(struct postgres_wire *w, struct db_result *result)
{
    if (w->answer.is_failed) {
        *result = w->failure;
        result->in_transaction = w->in_transaction;
    } else {
        result->class = DB_OK;
        result->in_transaction = w->in_transaction;
        result->rows = w->answer.rows;
        result->lock_wait_ns = 0;
        result->given_delay_ns = 0;
        result->n_columns = w->answer.n_columns;
        result->native[0] = '\0';
        result->message[0] = '\0';
    }
    w->answer = (struct postgres_answer){0};
}

// ---- messages

static enum db_wire_progress on_message(struct postgres_wire *w, const struct message *m,
                                        struct str *out)
{
    switch (m->type) {
    case 'D':
        return on_data(w, m);
    case 'C':
        return on_complete(w, m);
    case 'Z':
        return on_ready(w, m);
    case 'T':
        return on_description(w, m);
    case '1':
        if (front(w)->flags & REQUEST_PARSES)
            w->handles[front(w)->statement] = HANDLE_READY;
        return DB_WIRE_MORE;
    case 'E':
        return on_error(w, m);
    case 'N':
        return on_notice(w, m);
    case 'I':
        return end_result(w, 0);
    case 's':
        return end_result(w, w->answer.n_data);
    case 'G':
        return on_copy_in(w, out);
    case 'H':
        return on_copy_out(w);
    case 'W':
        return on_copy_both(w, out);
    default: // of no consequence
        return DB_WIRE_MORE;
    }
}

static size_t bytes_to_keep(struct postgres_wire *w, char type, unsigned kind, size_t len)
{
    if (kind & KIND_WHOLE)
        return len;
    if (kind & KIND_TEXT)
        return len < TEXT_MAX ? len : TEXT_MAX;
    if (!(kind & KIND_ROW) || !wants_row(w) || (type == 'D' && w->answer.n_data > 0))
        return 0;
    return len <= DB_WIRE_KEEP_MAX ? len : 0;
}

// Reads type and length; negative (and the wire is broken) when there can be no such message now.
static int read_header(struct postgres_wire *w, const char *p, struct message *m)
{
    unsigned kind = kinds[(unsigned char)p[0]];
    uint32_t len = postgres_get32(p + 1);

    if (!kind) {
        break_for(w, "a message of unknown type 0x%02x", (unsigned char)p[0]);
        return -1;
    }
    if (len < 4 || len > POSTGRES_WIRE_MESSAGE_MAX || (len > SHORT_MAX && !(kind & KIND_LONG))) {
        break_for(w, "a message %c of length %lld", p[0], (long long)(int32_t)len);
        return -1;
    }
    if (!(kind & KIND_ASYNC) &&
        (w->n_open == 0 || ((kind & KIND_EXTENDED) && !(front(w)->flags & REQUEST_EXTENDED)))) {
        break_for(w, "a message %c that answers nothing", p[0]);
        return -1;
    }
    m->type = p[0];
    m->len = len - 4;
    m->kept = bytes_to_keep(w, p[0], kind, m->len);
    return 0;
}

struct input {
    const char *p, *end;
};

// Moves bytes into pending until it has n; true when it does.
static bool gather(struct postgres_wire *w, struct input *in, size_t n)
{
    size_t left = (size_t)(in->end - in->p);
    size_t missing = w->pending.len < n ? n - w->pending.len : 0;
    size_t take = missing < left ? missing : left;

    str_addn(&w->pending, in->p, take);
    in->p += take;
    return take == missing;
}

// The next message whose interesting bytes are there: 1; 0 when more must come, negative when the
// wire is broken.
static int next_message(struct postgres_wire *w, struct input *in, struct message *m)
{
    if (w->pending.len == 0 && in->end - in->p >= HEADER_LEN) {
        if (read_header(w, in->p, m) < 0)
            return -1;
        if ((size_t)(in->end - in->p) - HEADER_LEN >= m->kept) {
            m->body = in->p + HEADER_LEN;
            in->p = m->body + m->kept;
            w->skip = m->len - m->kept;
            return 1;
        }
    }
    if (!gather(w, in, HEADER_LEN))
        return 0;
    if (read_header(w, w->pending.buf, m) < 0)
        return -1;
    if (!gather(w, in, HEADER_LEN + m->kept))
        return 0;
    m->body = w->pending.buf + HEADER_LEN;
    w->skip = m->len - m->kept;
    return 1;
}

static void forget_pending(struct postgres_wire *w)
{
    str_clear(&w->pending);
    if (w->pending.cap > POSTGRES_WIRE_SPARE_MAX)
        str_release(&w->pending);
}

// Skips what need not be looked at; false when that is all of the input.
static bool pass_skipped(struct postgres_wire *w, struct input *in)
{
    size_t left = (size_t)(in->end - in->p);
    size_t n = w->skip < left ? (size_t)w->skip : left;

    w->skip -= n;
    in->p += n;
    return in->p < in->end;
}

enum db_wire_progress postgres_wire_feed(struct db_wire *wire, const char *bytes, size_t n,
                                         size_t *used, struct str *out, struct db_result *result)
{
    struct postgres_wire *w = postgres_wire(wire);
    struct input in = {bytes, bytes + n};
    enum db_wire_progress progress = DB_WIRE_MORE;
    struct message m;

    *used = 0;
    if (n == 0 || wire->broken) {
        if (w->failure.class != DB_LOST)
            closed(w);
        *result = w->failure;
        return DB_WIRE_BROKEN;
    }
    while (progress == DB_WIRE_MORE && pass_skipped(w, &in)) {
        int got = next_message(w, &in, &m);
        if (got == 0)
            break;
        progress = got < 0 ? DB_WIRE_BROKEN : on_message(w, &m, out);
        if (w->pending.len > 0)
            forget_pending(w);
    }
    assert(progress != DB_WIRE_MORE || in.p == in.end);
    *used = (size_t)(in.p - bytes);
    if (progress == DB_WIRE_ANSWERED)
        tell(w, result);
    else if (progress == DB_WIRE_BROKEN)
        *result = w->failure;
    return progress;
}
