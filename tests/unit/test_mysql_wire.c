// The wire codec for MySQL and MariaDB without a server: what it sends, and what it makes of
// conversations that are whole, cut anywhere, or wrong.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"
#include "mysql_wire_fake.h"

#define SEED 20261130

// ---- statements

enum {
    S_SELECT, // one parameter
    S_BEGIN,
    S_COMMIT,
    S_ROLLBACK,
    S_LOCK,
    S_UNLOCK,
    S_FOUR, // four parameters
    S_CALL,
    S_COUNT
};

static const struct db_statement statements[S_COUNT] = {
    [S_SELECT] = {S_SELECT, DB_KIND_READ, "select a where b=?", 1,
                  (const char *[]){"select a where b=", ""}},
    [S_BEGIN] = {S_BEGIN, DB_KIND_BEGIN, "begin", 0, (const char *[]){"begin"}},
    [S_COMMIT] = {S_COMMIT, DB_KIND_COMMIT, "commit", 0, (const char *[]){"commit"}},
    [S_ROLLBACK] = {S_ROLLBACK, DB_KIND_ROLLBACK, "rollback", 0, (const char *[]){"rollback"}},
    [S_LOCK] = {S_LOCK, DB_KIND_BEGIN, "lock tables t write", 0,
                (const char *[]){"lock tables t write"}},
    [S_UNLOCK] = {S_UNLOCK, DB_KIND_COMMIT, "unlock tables", 0, (const char *[]){"unlock tables"}},
    [S_FOUR] = {S_FOUR, DB_KIND_WRITE, "f(?,?,?,?)", 4, (const char *[]){"f(", ",", ",", ",", ")"}},
    [S_CALL] = {S_CALL, DB_KIND_WRITE, "call p()", 0, (const char *[]){"call p()"}},
};

static const struct db_value one[] = {{.type = DB_INT, .i = 1}};

// ---- conversations

struct packet {
    const char *bytes;
    size_t len;
};
#define P(bytes)                 \
    {                            \
        bytes, sizeof(bytes) - 1 \
    }

// The packets of a server, numbered from 1; anew behind NEXT, where the codec sends another
// command.
#define NEXT    \
    {           \
        NULL, 1 \
    }
#define AFTER_FILE \
    {              \
        NULL, 3    \
    } // 2 is the codec's
#define OUT_OF_SEQUENCE \
    {                   \
        NULL, 9         \
    }

#define OK          P("\0\0\0\2\0\0\0")
#define OK_IN_TRANS P("\0\0\0\3\0\0\0")
#define OK_5        P("\0\5\0\2\0\0\0") // rows affected
#define OK_5_MORE   P("\0\5\0\12\0\0\0")
#define EOF_        P("\376\0\0\2\0")
#define EOF_MORE    P("\376\0\0\12\0")
#define EOF_OK      P("\376\0\0\2\0\0\0") // where an OK ends rows
#define NO_TABLE    P("\377\172\4#42S02no such table")
#define DUPLICATE   P("\377\46\4#23000twice")
#define SHUTDOWN    P("\377\35\4#08S01shutting down")
#define INTERRUPTED P("\377\45\5#70100killed")

// Definitions: catalog, four names, the name and its real one; charset, length, type, flags,
// decimals.
#define DEF(name, type, flags, decimals) \
    P("\3def\0\0\0" name "\0\14\77\0\13\0\0\0" type flags decimals "\0\0")
#define DEF_A      DEF("\1a", "\3", "\0\0", "\0")   // int
#define DEF_B      DEF("\1b", "\375", "\0\0", "\0") // varchar
#define DEF_P      DEF("\1?", "\375", "\0\0", "\0") // a parameter
#define EXTENDED_A P("\3def\0\0\0\1a\0\3xyz\14\77\0\13\0\0\0\3\0\0\0\0\0")

#define PREPARED_1_1 P("\0\7\0\0\0\1\0\1\0\0\0\0") // number 7: a column, a parameter
#define PREPARED_0_0 P("\0\10\0\0\0\0\0\0\0\0\0\0")
#define PREPARED_0_2 P("\0\11\0\0\0\0\0\2\0\0\0\0")
#define BINARY_1     P("\0\0\1\0\0\0")
#define BINARY_2     P("\0\0\2\0\0\0")

struct step {
    const char *text;              // plain text, or
    int statement;                 // one of those above
    const struct db_value *params; // NULL: `one`
    bool want_row;
    const struct packet *packets; // up to one with neither bytes nor length
};

struct talk {
    const char *name;
    unsigned long caps, more_caps;
    enum db_protocol protocol;
    const struct step *steps; // up to one with neither text nor packets
    const char *transcript;
};

#define SERVER(...)                    \
    .packets = (const struct packet[]) \
    {                                  \
        __VA_ARGS__,                   \
        {                              \
            0                          \
        }                              \
    }
#define STEPS(...)                 \
    .steps = (const struct step[]) \
    {                              \
        __VA_ARGS__,               \
        {                          \
            0                      \
        }                          \
    }

static const struct talk talks[] = {
    {"text", .protocol = DB_SIMPLE,
     STEPS({.text = "select 1", SERVER(P("\1"), DEF_A, EOF_, P("\0011"), P("\0012"), EOF_)},
           {.text = "update", SERVER(OK_5)}, {.text = "drop", SERVER(NO_TABLE)},
           {.text = "select 1",
            .want_row = true,
            SERVER(P("\2"), DEF_A, DEF_B, EOF_, P("\00217\373"), P("\0013\1x"), EOF_)},
           {.text = "select none", .want_row = true, SERVER(P("\1"), DEF_A, EOF_, EOF_)}),
     .transcript = "text select 1\nok 2 rows\ntext update\nok 5 rows\n"
                   "text drop\nundefined 1146: no such table\n"
                   "text select 1\nok 2 rows (a=17, b=NULL)\n"
                   "text select none\nok 0 rows\n"},
    {"text with OK at the end of rows", .caps = FAKE_NO_EOF, .protocol = DB_SIMPLE,
     STEPS({.text = "select 1",
            .want_row = true,
            SERVER(P("\1"), DEF_A, P("\0011"), P("\376\0\0\3\0\0\0"))},
           {.text = "select 1", SERVER(P("\1"), DEF_A, P("\0011"), EOF_OK)}),
     .transcript = "text select 1\nok 1 rows, in transaction (a=1)\ntext select 1\nok 1 rows\n"},
    {"simple protocol with parameters", .protocol = DB_SIMPLE,
     STEPS({.statement = S_SELECT, SERVER(OK)},
           {.statement = S_FOUR,
            .params = (const struct db_value[]){{.type = DB_NULL},
                                                {.type = DB_BOOL, .b = true},
                                                {.type = DB_DOUBLE, .d = 1.5},
                                                {.type = DB_TEXT, .s = "x", .text_len = 1}},
            SERVER(OK)}),
     .transcript = "text select a where b=1\nok 0 rows\ntext f(NULL,true,1.5,x)\nok 0 rows\n"},
    {"prepared once, then executed", .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT,
            SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, P("\1"), DEF_A, EOF_, BINARY_1,
                   EOF_)},
           {.statement = S_SELECT, SERVER(P("\1"), DEF_A, EOF_, BINARY_1, BINARY_2, EOF_)},
           {.statement = S_SELECT,
            .want_row = true,
            SERVER(P("\1"), DEF_A, EOF_, BINARY_2, BINARY_1, EOF_)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 1 rows\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 2 rows\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 2 rows (a=2)\n"},
    {"prepared where no EOF is spoken", .caps = FAKE_NO_EOF, .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT,
            .want_row = true,
            SERVER(PREPARED_1_1, DEF_P, DEF_A, NEXT, P("\1"), DEF_A, BINARY_1, EOF_OK)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 1 rows (a=1)\n"},
    {"columns left out", .more_caps = FAKE_CACHED, .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT,
            .want_row = true,
            SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, P("\1\1"), DEF_A, EOF_, BINARY_1,
                   EOF_)},
           {.statement = S_SELECT, .want_row = true, SERVER(P("\1\0"), EOF_, BINARY_2, EOF_)},
           {.statement = S_SELECT, SERVER(P("\1\0"), EOF_, BINARY_2, EOF_)},
           // another shape since: the server tells anew
           {.statement = S_SELECT,
            .want_row = true,
            SERVER(P("\1\1"), DEF_B, EOF_, P("\0\0\1x"), EOF_)},
           {.statement = S_SELECT, .want_row = true, SERVER(P("\1\0"), EOF_, P("\0\0\2xy"), EOF_)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 1 rows (a=1)\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 1 rows (a=2)\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 1 rows\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 1 rows (b='x')\n"
                   "execute 7: 00 00 01 00 00 00 00 00 00 00\nok 1 rows (b='xy')\n"},
    {"columns left out where no EOF is spoken", .caps = FAKE_NO_EOF, .more_caps = FAKE_CACHED,
     .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT,
            .want_row = true, // known from the prepare alone
            SERVER(PREPARED_1_1, DEF_P, DEF_A, NEXT, P("\1\0"), BINARY_1, EOF_OK)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 1 rows (a=1)\n"},
    {"columns not kept are asked for again", .more_caps = FAKE_CACHED, .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT,
            SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, P("\1\1"), DEF_A, EOF_, BINARY_1,
                   EOF_)},
           {.statement = S_SELECT,
            .want_row = true,
            SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, P("\1\1"), DEF_A, EOF_, BINARY_2,
                   EOF_)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 1 rows\n"
                   "close 7\nprepare select a where b=?\n"
                   "execute 7: 00 01 08 00 01 00 00 00 00 00 00 00\nok 1 rows (a=2)\n"},
    {"definitions with MariaDB's further field", .more_caps = FAKE_EXTENDED, .protocol = DB_SIMPLE,
     STEPS(
         {.text = "select", .want_row = true, SERVER(P("\1"), EXTENDED_A, EOF_, P("\0011"), EOF_)}),
     .transcript = "text select\nok 1 rows (a=1)\n"},
    {"extended: closed with the next request", .protocol = DB_EXTENDED,
     STEPS({.statement = S_SELECT,
            SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, P("\1"), DEF_A, EOF_, EOF_)},
           {.statement = S_BEGIN, SERVER(PREPARED_0_0, NEXT, OK_IN_TRANS)},
           {.text = "x", SERVER(OK)}, {.text = "y", SERVER(OK)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "ok 0 rows\n"
                   "close 7\nprepare begin\nexecute 8:\nok 0 rows, in transaction\n"
                   "close 8\ntext x\nok 0 rows\ntext y\nok 0 rows\n"},
    {"extended: closed also where it failed", .protocol = DB_EXTENDED,
     STEPS({.statement = S_SELECT, SERVER(PREPARED_1_1, DEF_P, EOF_, DEF_A, EOF_, NEXT, NO_TABLE)},
           {.statement = S_SELECT, SERVER(NO_TABLE)}, {.text = "x", SERVER(OK)}),
     .transcript = "prepare select a where b=?\nexecute 7: 00 01 08 00 01 00 00 00 00 00 00 00\n"
                   "undefined 1146: no such table\n"
                   "close 7\nprepare select a where b=?\nundefined 1146: no such table\n"
                   "text x\nok 0 rows\n"},
    {"every type of parameter, and types told again when they change", .protocol = DB_PREPARED,
     STEPS({.statement = S_FOUR,
            .params = (const struct db_value[]){{.type = DB_NULL},
                                                {.type = DB_BOOL, .b = true},
                                                {.type = DB_DOUBLE, .d = 1.5},
                                                {.type = DB_TEXT, .s = "x", .text_len = 1}},
            SERVER(P("\0\5\0\0\0\0\0\4\0\0\0\0"), DEF_P, DEF_P, DEF_P, DEF_P, EOF_, NEXT, OK_5)},
           {.statement = S_FOUR, // NULLs leave the types as they are
            .params = (const struct db_value[]){{.type = DB_NULL},
                                                {.type = DB_INT, .i = -2},
                                                {.type = DB_NULL},
                                                {.type = DB_NULL}},
            SERVER(OK_5)},
           {.statement = S_FOUR,
            .params = (const struct db_value[]){{.type = DB_INT, .i = 3},
                                                {.type = DB_NULL},
                                                {.type = DB_NULL},
                                                {.type = DB_NULL}},
            SERVER(OK_5)}),
     .transcript = "prepare f(?,?,?,?)\n"
                   "execute 5: 01 01 fe 00 08 00 05 00 fe 00 01 00 00 00 00 00 00 00"
                   " 00 00 00 00 00 00 f8 3f 01 78\nok 5 rows\n"
                   "execute 5: 0d 00 fe ff ff ff ff ff ff ff\nok 5 rows\n"
                   "execute 5: 0e 01 08 00 08 00 05 00 fe 00 03 00 00 00 00 00 00 00\nok 5 rows\n"},
    {"a statement that cannot be prepared goes as text from then on", .protocol = DB_PREPARED,
     STEPS({.statement = S_FOUR,
            .params = (const struct db_value[]){{.type = DB_NULL},
                                                {.type = DB_BOOL, .b = false},
                                                {.type = DB_INT, .i = 7},
                                                {.type = DB_TEXT, .s = "yz", .text_len = 2}},
            SERVER(P("\377\17\5#HY000not supported"), NEXT, OK_5)},
           {.statement = S_LOCK, SERVER(P("\377\17\5#HY000not supported"), NEXT, OK)},
           {.statement = S_LOCK, SERVER(OK)}),
     .transcript = "prepare f(?,?,?,?)\ntext f(NULL,false,7,yz)\nok 5 rows\n"
                   "prepare lock tables t write\ntext lock tables t write\n"
                   "ok 0 rows, in transaction\n"
                   "text lock tables t write\nok 0 rows, in transaction\n"},
    {"a statement the server has forgotten is prepared anew", .protocol = DB_PREPARED,
     STEPS({.statement = S_BEGIN, SERVER(PREPARED_0_0, NEXT, OK)},
           {.statement = S_BEGIN, SERVER(P("\377\333\4#HY000unknown statement"))},
           {.statement = S_BEGIN, SERVER(PREPARED_0_0, NEXT, OK)}),
     .transcript = "prepare begin\nexecute 8:\nok 0 rows\n"
                   "execute 8:\nother 1243: unknown statement\n"
                   "close 8\nprepare begin\nexecute 8:\nok 0 rows\n"},
    {"placeholders that were not counted as such", .protocol = DB_PREPARED,
     STEPS({.statement = S_SELECT, SERVER(PREPARED_0_2, DEF_P, DEF_P, EOF_)},
           {.text = "x", SERVER(OK)}),
     .transcript = "prepare select a where b=?\n"
                   "syntax : the statement has 2 placeholders for 1 parameters\n"
                   "close 9\ntext x\nok 0 rows\n"},
    {"several results add up, the first set's first row is kept", .protocol = DB_SIMPLE,
     STEPS({.text = "call",
            .want_row = true,
            SERVER(OK_5_MORE, P("\1"), DEF_A, EOF_MORE, P("\0011"), P("\0012"), EOF_MORE, P("\1"),
                   DEF_B, EOF_MORE, P("\1x"), EOF_MORE, OK_5)},
           {.text = "two", SERVER(OK_5_MORE, OK_5)},
           {.text = "empty first",
            .want_row = true,
            SERVER(P("\1"), DEF_A, EOF_, EOF_MORE, P("\1"), DEF_A, EOF_, P("\0011"), EOF_)},
           {.text = "fails later",
            .want_row = true,
            SERVER(P("\1"), DEF_A, EOF_, P("\0011"), EOF_MORE, NO_TABLE)}),
     .transcript = "text call\nok 3 rows (a=1)\ntext two\nok 10 rows\ntext empty first\nok 1 rows\n"
                   "text fails later\nundefined 1146: no such table\n"},
    {"several results of a prepared CALL", .protocol = DB_PREPARED,
     STEPS({.statement = S_CALL,
            .want_row = true,
            SERVER(PREPARED_0_0, NEXT, P("\1"), DEF_A, EOF_MORE, BINARY_1, EOF_MORE, P("\1"), DEF_A,
                   EOF_MORE, BINARY_2, EOF_MORE, OK)}),
     .transcript = "prepare call p()\nexecute 8:\nok 2 rows (a=1)\n"},
    {"an error in the middle of rows", .protocol = DB_SIMPLE,
     STEPS({.text = "s", .want_row = true, SERVER(P("\1"), DEF_A, EOF_, P("\0011"), INTERRUPTED)},
           {.text = "x", SERVER(OK)}),
     .transcript = "text s\ncancelled 1317: killed\ntext x\nok 0 rows\n"},
    {"a failed statement leaves the last word on transactions", .protocol = DB_SIMPLE,
     STEPS({.statement = S_BEGIN, SERVER(OK_IN_TRANS)}, {.text = "insert", SERVER(DUPLICATE)},
           {.statement = S_ROLLBACK, SERVER(OK)}),
     .transcript = "text begin\nok 0 rows, in transaction\n"
                   "text insert\nconstraint 1062: twice, in transaction\n"
                   "text rollback\nok 0 rows\n"},
    {"locked tables are let go by ROLLBACK", .protocol = DB_SIMPLE,
     STEPS({.statement = S_LOCK, SERVER(OK)}, {.text = "x", SERVER(OK_5)},
           {.statement = S_COMMIT, SERVER(OK)}, {.statement = S_ROLLBACK, SERVER(OK, NEXT, OK)},
           {.statement = S_ROLLBACK, SERVER(OK)}),
     .transcript = "text lock tables t write\nok 0 rows, in transaction\n"
                   "text x\nok 5 rows, in transaction\ntext commit\nok 0 rows, in transaction\n"
                   "text rollback\ntext UNLOCK TABLES\nok 0 rows\ntext rollback\nok 0 rows\n"},
    {"locked tables that cannot be let go", .protocol = DB_SIMPLE,
     STEPS({.statement = S_LOCK, SERVER(OK)}, {.statement = S_ROLLBACK, SERVER(OK, NEXT, NO_TABLE)},
           {.text = " rollback", SERVER(OK, NEXT, OK)}),
     .transcript = "text lock tables t write\nok 0 rows, in transaction\n"
                   "text rollback\ntext UNLOCK TABLES\nok 0 rows, in transaction\n"
                   "text  rollback\ntext UNLOCK TABLES\nok 0 rows\n"},
    {"locked tables are let go by UNLOCK TABLES and BEGIN", .protocol = DB_SIMPLE,
     STEPS({.statement = S_LOCK, SERVER(OK)}, {.statement = S_UNLOCK, SERVER(OK)},
           {.text = "Lock tables t read", SERVER(OK)}, {.statement = S_BEGIN, SERVER(OK_IN_TRANS)},
           {.statement = S_COMMIT, SERVER(OK)}, {.statement = S_LOCK, SERVER(NO_TABLE)}),
     .transcript = "text lock tables t write\nok 0 rows, in transaction\n"
                   "text unlock tables\nok 0 rows\n"
                   "text Lock tables t read\nok 0 rows, in transaction\n"
                   "text begin\nok 0 rows, in transaction\ntext commit\nok 0 rows\n"
                   "text lock tables t write\nundefined 1146: no such table\n"},
    {"a file is not given", .protocol = DB_SIMPLE,
     STEPS({.text = "load data", SERVER(P("\373/etc/passwd"), AFTER_FILE, OK_5)},
           {.text = "x", SERVER(OK)},
           {.text = "load data", SERVER(P("\373f"), AFTER_FILE, NO_TABLE)}),
     .transcript = "text load data\npacket 2 of 0 bytes\n"
                   "other 2000: the server asked for a file, and gets none\n"
                   "text x\nok 0 rows\n"
                   "text load data\npacket 2 of 0 bytes\nundefined 1146: no such table\n"},
    {"reports of progress are passed over", .protocol = DB_SIMPLE,
     STEPS({.text = "alter",
            SERVER(P("\377\377\377\1\1\2\0\0\0\4copy"), P("\377\377\377\1\1\2\0\0\0\4copy"), OK)},
           {.text = "s",
            .want_row = true,
            SERVER(P("\1"), DEF_A, EOF_, P("\377\377\377\1\1\2\0\0\0\4sort"), P("\0011"), EOF_)}),
     .transcript = "text alter\nok 0 rows\ntext s\nok 1 rows (a=1)\n"},
    {"errors without SQLSTATE, without text, without anything", .protocol = DB_SIMPLE,
     STEPS({.text = "a", SERVER(P("\377\172\4no such table"))},
           {.text = "b", SERVER(P("\377\172\4#42S02"))}, {.text = "c", SERVER(P("\377\172\4"))},
           {.text = "d", SERVER(P("\377"))}, {.text = "D", SERVER(P("\377x"))},
           {.text = "e", SERVER(P("\377\17\47#40001again\n"))}),
     .transcript = "text a\nundefined 1146: no such table\ntext b\nundefined 1146: undefined\n"
                   "text c\nundefined 1146: undefined\ntext d\nother 2000: other\n"
                   "text D\nother 2000: other\n"
                   "text e\nserialization 9999: again\n"},
    {"what changed in the session, behind an OK", .caps = FAKE_TRACKS, .protocol = DB_SIMPLE,
     STEPS({.text = "use", SERVER(P("\0\0\0\2\100\0\0\0\11\1\7\6schema"))},
           {.text = "info", SERVER(P("\0\3\0\3\0\1\0\5Rows:"))},
           {.text = "none", SERVER(P("\0\3\0\2\100\0\0"))}),
     .transcript = "text use\nok 0 rows\ntext info\nok 3 rows, in transaction\n"
                   "text none\nok 3 rows\n"},
    {"a server that goes in the middle", .protocol = DB_SIMPLE,
     STEPS({.text = "x", SERVER(SHUTDOWN)}),
     .transcript = "text x\nBROKEN lost 1053: shutting down\n"},
    {"a farewell whose number does not count", .protocol = DB_SIMPLE,
     STEPS({.text = "x", SERVER(OUT_OF_SEQUENCE, P("\377\277\17#HY000too long idle"))}),
     .transcript = "text x\nBROKEN lost 4031: too long idle\n"},
    {"errors of a proxy's own connection", .protocol = DB_SIMPLE,
     STEPS({.text = "x", SERVER(P("\377\366\7#HY000lost it"))}),
     .transcript = "text x\nBROKEN lost 2038: lost it\n"},
};

static void add_packet(struct str *stream, const char *bytes, size_t len, unsigned seq)
{
    char header[4] = {(char)len, (char)(len >> 8), (char)(len >> 16), (char)seq};

    str_addn(stream, header, 4);
    str_addn(stream, bytes, len);
}

static void add_packets(struct str *stream, const struct packet *packets)
{
    unsigned seq = 1;

    for (; packets->bytes || packets->len; packets++) {
        if (packets->bytes)
            add_packet(stream, packets->bytes, packets->len, seq++);
        else
            seq = (unsigned)packets->len;
    }
}

// Feeds a stream in pieces; each piece lies in memory of its own, so that ASan sees a byte too
// many. rng NULL: piece bytes at a time, 0: all at once.
static enum db_wire_progress feed(struct wire_fake *f, const char *bytes, size_t n, size_t piece,
                                  struct rng *rng)
{
    enum db_wire_progress progress = DB_WIRE_MORE;
    size_t at = 0;

    while (at < n && progress == DB_WIRE_MORE) {
        size_t here = rng ? (size_t)rng_range(rng, 1, rng_range(rng, 0, 1) ? 4 : 40) : piece;
        size_t used = 0;
        if (here == 0 || here > n - at)
            here = n - at;
        char *exact = mem_resize(NULL, here, 1);
        memcpy(exact, bytes + at, here);
        progress = db_wire_feed(&f->wire.base, exact, here, &used, &f->out, &f->result);
        free(exact);
        assert_true(used <= here);
        if (progress == DB_WIRE_MORE)
            assert_int_equal(used, here);
        at += used;
    }
    if (progress == DB_WIRE_ANSWERED)
        assert_int_equal(at, n);
    return progress;
}

static enum db_class request(struct wire_fake *f, const struct step *step)
{
    const struct db_wire_codec *codec = f->wire.base.codec;

    if (step->text)
        return codec->encode_query(&f->wire.base, step->text, step->want_row, &f->out, &f->result);
    return db_wire_encode(&f->wire.base, &statements[step->statement],
                          step->params ? step->params : one, step->want_row, &f->out, &f->result);
}

static void run_talk(const struct talk *talk, size_t piece, struct rng *rng, struct str *transcript)
{
    struct wire_fake f;
    struct str stream = STR_INIT;

    wire_fake_init(&f, talk->caps, talk->more_caps, talk->protocol, S_COUNT);
    for (const struct step *step = talk->steps; step->text || step->packets; step++) {
        str_clear(&stream);
        add_packets(&stream, step->packets);
        memset(&f.result, 0x5a, sizeof(f.result)); // every field is to be filled
        assert_int_equal(request(&f, step), DB_OK);
        enum db_wire_progress progress = feed(&f, stream.buf, stream.len, piece, rng);
        assert_int_not_equal(progress, DB_WIRE_MORE);
        wire_fake_sent(&f, transcript);
        wire_fake_result(&f, progress, transcript);
        assert_int_equal(f.result.lock_wait_ns, 0);
        assert_int_equal(f.result.given_delay_ns, 0);
        assert_false(atomic_load(&f.session.busy));
    }
    str_release(&stream);
    wire_fake_release(&f);
}

static void conversations_give_the_same_results_however_they_are_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(talks); i++) {
        for (int cut = 0; cut < 40; cut++) {
            struct str transcript = STR_INIT;
            struct rng rng;
            rng_init(&rng, SEED, (uint64_t)cut, RNG_DRIVER);
            run_talk(&talks[i], (size_t)cut, cut < 10 ? NULL : &rng, &transcript);
            if (strcmp(transcript.buf, talks[i].transcript) != 0)
                fail_msg("%s, cut %d:\n%s", talks[i].name, cut, transcript.buf);
            str_release(&transcript);
        }
    }
}

// ---- values

struct column {
    unsigned type, flags, decimals, length;
};

static void add_column(struct str *stream, const struct column *column, unsigned seq)
{
    char body[64] = "\3def\0\0\0\1a\0\14\77\0";
    size_t at = 13;

    for (int i = 0; i < 4; i++)
        body[at++] = (char)(column->length >> (8 * i));
    body[at++] = (char)column->type;
    body[at++] = (char)column->flags;
    body[at++] = (char)(column->flags >> 8);
    body[at++] = (char)column->decimals;
    add_packet(stream, body, at + 2, seq);
}

// The value of a column as the codec reads it off a row whose bytes are given.
static void read_value(const struct column *column, bool binary, const char *bytes, size_t len,
                       struct str *text)
{
    struct wire_fake f;
    struct str stream = STR_INIT, row = STR_INIT;

    wire_fake_init(&f, 0, 0, binary ? DB_PREPARED : DB_SIMPLE, S_COUNT);
    if (binary) {
        static const struct packet prepare[] = {PREPARED_0_0, {0}};
        add_packets(&stream, prepare);
        str_addn(&row, "\0\0", 2);
    }
    str_addn(&row, bytes, len);
    add_packet(&stream, "\1", 1, 1);
    add_column(&stream, column, 2);
    add_packet(&stream, "\376\0\0\2\0", 5, 3);
    add_packet(&stream, row.buf, row.len, 4);
    add_packet(&stream, "\376\0\0\2\0", 5, 5);
    assert_int_equal(request(&f, &(struct step){.statement = S_CALL, .want_row = true}), DB_OK);
    if (feed(&f, stream.buf, stream.len, 0, NULL) == DB_WIRE_ANSWERED) {
        struct db_value value = mysqldb_wire_codec.row_value(&f.wire.base, 0);
        assert_int_equal(f.result.n_columns, 1);
        wire_fake_value(&value, text);
    } else {
        str_add(text, "BROKEN");
    }
    str_release(&row);
    str_release(&stream);
    wire_fake_release(&f);
}

#define BYTES(text) text, sizeof(text) - 1
#define ANY         31 // decimals not fixed

static const struct value {
    struct column column;
    const char *bytes;
    size_t len;
    const char *text; // marked as in mysql_wire_fake.h
} binary_values[] = {
    {{MYSQL_TYPE_TINY}, BYTES("\200"), "-128"},
    {{MYSQL_TYPE_TINY, UNSIGNED_FLAG}, BYTES("\200"), "128"},
    {{MYSQL_TYPE_SHORT}, BYTES("\376\377"), "-2"},
    {{MYSQL_TYPE_SHORT, UNSIGNED_FLAG}, BYTES("\376\377"), "65534"},
    {{MYSQL_TYPE_YEAR, UNSIGNED_FLAG | ZEROFILL_FLAG}, BYTES("\351\7"), "2025"},
    {{MYSQL_TYPE_INT24}, BYTES("\377\377\377\377"), "-1"},
    {{MYSQL_TYPE_LONG}, BYTES("\0\0\0\200"), "-2147483648"},
    {{MYSQL_TYPE_LONG, UNSIGNED_FLAG}, BYTES("\0\0\0\200"), "2147483648"},
    {{MYSQL_TYPE_LONGLONG}, BYTES("\0\0\0\0\0\0\0\200"), "-9223372036854775808"},
    {{MYSQL_TYPE_LONGLONG, UNSIGNED_FLAG},
     BYTES("\377\377\377\377\377\377\377\177"),
     "9223372036854775807"},
    {{MYSQL_TYPE_LONGLONG, UNSIGNED_FLAG},
     BYTES("\377\377\377\377\377\377\377\377"),
     "'18446744073709551615'"}, // does not fit an integer of ours
    {{MYSQL_TYPE_DOUBLE, .decimals = ANY}, BYTES("\0\0\0\0\0\0\370\277"), "~-1.5"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\0\0\300\077"), "'1.5'"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\0\0\0\0"), "'0'"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\0\0\0\200"), "'-0'"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\315\314\314\075"), "'0.1'"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\0\44\164\111"), "'1000000'"},
    {{MYSQL_TYPE_FLOAT, .decimals = ANY}, BYTES("\0\0\200\377"), "'0'"}, // infinity
    {{MYSQL_TYPE_FLOAT, .decimals = 2}, BYTES("\303\365\110\100"), "'3.14'"},
    {{MYSQL_TYPE_FLOAT, UNSIGNED_FLAG | ZEROFILL_FLAG, 2, 8},
     BYTES("\303\365\110\100"),
     "'00003.14'"},
    {{MYSQL_TYPE_NEWDECIMAL, .decimals = 2}, BYTES("\00512.50"), "'12.50'"},
    {{MYSQL_TYPE_DATE}, BYTES("\4\350\7\2\35"), "'2024-02-29'"},
    {{MYSQL_TYPE_DATE}, BYTES("\0"), "'0000-00-00'"},
    {{MYSQL_TYPE_DATETIME}, BYTES("\0"), "'0000-00-00 00:00:00'"},
    {{MYSQL_TYPE_DATETIME}, BYTES("\4\350\7\2\35"), "'2024-02-29 00:00:00'"},
    {{MYSQL_TYPE_DATETIME, .decimals = 3}, BYTES("\4\350\7\2\35"), "'2024-02-29 00:00:00.000'"},
    {{MYSQL_TYPE_TIMESTAMP}, BYTES("\7\350\7\2\35\27\73\11"), "'2024-02-29 23:59:09'"},
    {{MYSQL_TYPE_TIMESTAMP, .decimals = 6},
     BYTES("\13\350\7\2\35\27\73\11\71\60\0\0"),
     "'2024-02-29 23:59:09.012345'"},
    {{MYSQL_TYPE_TIMESTAMP, .decimals = 3},
     BYTES("\13\350\7\2\35\27\73\11\71\60\0\0"),
     "'2024-02-29 23:59:09.012'"},
    {{MYSQL_TYPE_TIME}, BYTES("\0"), "'00:00:00'"},
    {{MYSQL_TYPE_TIME}, BYTES("\10\1\42\0\0\0\26\73\73"), "'-838:59:59'"},
    {{MYSQL_TYPE_TIME, .decimals = 2},
     BYTES("\14\0\0\0\0\0\1\2\3\200\204\36\0"),
     "'01:02:03.200'"}, // more than a second of microseconds: no server sends that
    {{MYSQL_TYPE_TIME, .decimals = 1}, BYTES("\14\0\0\0\0\0\1\2\3\40\241\7\0"), "'01:02:03.5'"},
    {{MYSQL_TYPE_STRING}, BYTES("\3abc"), "'abc'"},
    {{MYSQL_TYPE_VAR_STRING}, BYTES("\0"), "''"},
    {{MYSQL_TYPE_BLOB}, BYTES("\374\3\0abc"), "'abc'"},
    {{MYSQL_TYPE_LONG_BLOB}, BYTES("\375\3\0\0abc"), "'abc'"},
    {{MYSQL_TYPE_GEOMETRY}, BYTES("\376\3\0\0\0\0\0\0\0abc"), "'abc'"},
    {{MYSQL_TYPE_BIT, UNSIGNED_FLAG}, BYTES("\1A"), "'A'"},
    {{MYSQL_TYPE_ENUM}, BYTES("\1e"), "'e'"},
    {{MYSQL_TYPE_JSON}, BYTES("\2{}"), "'{}'"},
    {{MYSQL_TYPE_NULL}, BYTES(""), "NULL"},
    {{242}, BYTES("\1v"), "'v'"}, // a type still unknown
    // Malformed: cut, too long, a NULL where there is none, something behind the last value.
    {{MYSQL_TYPE_TINY}, BYTES(""), "BROKEN"},
    {{MYSQL_TYPE_LONG}, BYTES("\0\0\0"), "BROKEN"},
    {{MYSQL_TYPE_LONGLONG}, BYTES("\0\0\0\0\0\0\0"), "BROKEN"},
    {{MYSQL_TYPE_DOUBLE}, BYTES("\0\0\0\0\0\0\0"), "BROKEN"},
    {{MYSQL_TYPE_FLOAT}, BYTES("\0\0\0"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\3ab"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\374\1"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\376\377\377\377\377\377\377\377\377ab"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\373"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\377"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\1ab"), "BROKEN"},
    {{MYSQL_TYPE_DATE}, BYTES("\4\350\7\2"), "BROKEN"},
    {{MYSQL_TYPE_TIME}, BYTES("\10\1\42"), "BROKEN"},
};

static const struct value text_values[] = {
    {{MYSQL_TYPE_LONG}, BYTES("\2-7"), "-7"},
    {{MYSQL_TYPE_LONG, ZEROFILL_FLAG}, BYTES("\00500042"), "42"},
    {{MYSQL_TYPE_LONGLONG}, BYTES("\0239223372036854775807"), "9223372036854775807"},
    {{MYSQL_TYPE_LONGLONG}, BYTES("\02418446744073709551615"), "'18446744073709551615'"},
    {{MYSQL_TYPE_YEAR}, BYTES("\0042024"), "2024"},
    {{MYSQL_TYPE_LONG}, BYTES("\0021x"), "'1x'"},
    {{MYSQL_TYPE_LONG}, BYTES("\0"), "''"},
    {{MYSQL_TYPE_DOUBLE}, BYTES("\0051e100"), "~1e+100"},
    {{MYSQL_TYPE_DOUBLE}, BYTES("\00400.5"), "~0.5"},
    {{MYSQL_TYPE_FLOAT}, BYTES("\0031.5"), "'1.5'"},
    {{MYSQL_TYPE_NEWDECIMAL}, BYTES("\0041.50"), "'1.50'"},
    {{MYSQL_TYPE_STRING}, BYTES("\003123"), "'123'"},
    {{MYSQL_TYPE_STRING}, BYTES("\373"), "NULL"},
    {{MYSQL_TYPE_LONG}, BYTES("\373"), "NULL"},
    {{MYSQL_TYPE_BLOB}, BYTES("\374\3\0abc"), "'abc'"},
    {{MYSQL_TYPE_STRING}, BYTES("\003ab"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\001ab"), "BROKEN"},
    {{MYSQL_TYPE_STRING}, BYTES("\375\1\0"), "BROKEN"},
};

static void check_values(const struct value *values, size_t n, bool binary)
{
    for (size_t i = 0; i < n; i++) {
        struct str text = STR_INIT;
        read_value(&values[i].column, binary, values[i].bytes, values[i].len, &text);
        if (strcmp(text.buf, values[i].text) != 0)
            fail_msg("value %zu of type %u: %s instead of %s", i, values[i].column.type, text.buf,
                     values[i].text);
        str_release(&text);
    }
}

static void binary_values_of_every_type_are_read(void **state)
{
    (void)state;
    check_values(binary_values, ARR_LEN(binary_values), true);
}

static void text_values_become_numbers_where_they_are_some(void **state)
{
    (void)state;
    check_values(text_values, ARR_LEN(text_values), false);
}

static void floats_have_six_digits(void **state)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {
        {1234567, "'1234570'"},
        {0.00012345678f, "'0.000123457'"},
        {3.4028235e38f, "'3.40282e38'"},
        {1e15f, "'1e15'"},
        {1e14f, "'100000000000000'"},
        {-1.17549435e-38f, "'-1.17549e-38'"},
        {1e-14f, "'0.00000000000001'"},
        {1e-15f, "'0.000000000000001'"},
        {1e-16f, "'1e-16'"},
        {99999.95f, "'100000'"},
        {100, "'100'"},
        {12.25f, "'12.25'"},
    };
    struct column column = {MYSQL_TYPE_FLOAT, 0, ANY, 12};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct str text = STR_INIT;
        char bytes[4];
        memcpy(bytes, &cases[i].value, 4); // this test knows little-endian machines only
        read_value(&column, true, bytes, 4, &text);
        if (strcmp(text.buf, cases[i].text) != 0)
            fail_msg("%s instead of %s", text.buf, cases[i].text);
        str_release(&text);
    }
}

static void nulls_are_told_by_their_bits(void **state)
{
    struct wire_fake f;
    struct str stream = STR_INIT, text = STR_INIT;
    enum { N = 20 };
    char row[4 + N] = {0};
    size_t len = 4;

    (void)state;
    wire_fake_init(&f, FAKE_NO_EOF, 0, DB_PREPARED, S_COUNT);
    add_packets(&stream, (const struct packet[]){PREPARED_0_0, NEXT, P("\24"), {0}});
    for (unsigned i = 0; i < N; i++) {
        add_column(&stream, &(struct column){MYSQL_TYPE_TINY}, 2 + i);
        if (i % 3 == 0)
            row[1 + (i + 2) / 8] |= (char)(1 << (i + 2) % 8);
        else
            row[len++] = (char)i;
    }
    add_packet(&stream, row, len, 2 + N);
    add_packet(&stream, "\376\0\0\2\0\0\0", 7, 3 + N);
    request(&f, &(struct step){.statement = S_CALL, .want_row = true});
    assert_int_equal(feed(&f, stream.buf, stream.len, 0, NULL), DB_WIRE_ANSWERED);
    for (int i = 0; i < N; i++) {
        struct db_value value = mysqldb_wire_codec.row_value(&f.wire.base, i);
        assert_int_equal(value.type, i % 3 == 0 ? DB_NULL : DB_INT);
        if (value.type == DB_INT)
            assert_int_equal(value.i, i);
    }
    str_release(&text);
    str_release(&stream);
    wire_fake_release(&f);
}

// ---- what cannot be

static const struct {
    const char *name;
    unsigned long caps, more_caps;
    struct step step;
} wrongs[] = {
    {"an empty packet", 0, 0, {.text = "x", SERVER(P(""))}},
    {"a number of columns of zero bytes", 0, 0, {.text = "x", SERVER(P("\374"))}},
    {"no columns", 0, 0, {.text = "x", SERVER(P("\374\0\0"))}},
    {"too many columns", 0, 0, {.text = "x", SERVER(P("\375\0\0\1"))}},
    {"EOF for an answer", 0, 0, {.text = "x", SERVER(EOF_)}},
    {"an OK that is cut", 0, 0, {.text = "x", SERVER(P("\0\0\0\2\0\0"))}},
    {"an OK without anything", 0, 0, {.text = "x", SERVER(P("\0"))}},
    {"an OK with a text too long", FAKE_TRACKS, 0, {.text = "x", SERVER(P("\0\0\0\2\0\0\0\5abc"))}},
    {"a change of session too long",
     FAKE_TRACKS,
     0,
     {.text = "x", SERVER(P("\0\0\0\2\100\0\0\0\11\1\7"))}},
    {"a number that was due later", 0, 0, {.text = "x", SERVER({NULL, 2}, OK)}},
    {"a number that came before", 0, 0, {.text = "x", SERVER(P("\1"), DEF_A, NEXT, EOF_)}},
    {"a definition that is cut",
     0,
     0,
     {.text = "x", .want_row = true, SERVER(P("\1"), P("\3def\0\0\0\1a\0\14\77\0\13"))}},
    {"a name longer than its packet",
     0,
     0,
     {.text = "x", .want_row = true, SERVER(P("\1"), P("\3def\0\0\0\377a"))}},
    {"a name of NULL",
     0,
     0,
     {.text = "x",
      .want_row = true,
      SERVER(P("\1"), P("\3def\0\0\0\373\0\14\77\0\13\0\0\0\3\0\0\0\0\0"))}},
    {"a definition without its end",
     0,
     0,
     {.text = "x", .want_row = true, SERVER(P("\1"), P("\3def\0\0\0\1a\0\6\77\0\13\0\0\0"))}},
    {"a definition without MariaDB's field",
     0,
     FAKE_EXTENDED,
     {.text = "x", .want_row = true, SERVER(P("\1"), DEF_A)}},
    {"definitions that end too early", 0, 0, {.text = "x", SERVER(P("\2"), DEF_A, EOF_)}},
    {"definitions without an end", 0, 0, {.text = "x", SERVER(P("\1"), DEF_A, P("\0011"))}},
    {"an end of rows that is cut",
     FAKE_NO_EOF,
     0,
     {.text = "x", SERVER(P("\1"), DEF_A, P("\376\0"))}},
    {"a row of text for a binary one",
     0,
     0,
     {.statement = S_BEGIN, SERVER(PREPARED_0_0, NEXT, P("\1"), DEF_A, EOF_, P("\0011"))}},
    {"a row without its NULL bits",
     0,
     0,
     {.statement = S_BEGIN,
      .want_row = true,
      SERVER(PREPARED_0_0, NEXT, P("\1"), DEF_A, EOF_, P("\0"))}},
    {"a row with fewer values",
     0,
     0,
     {.text = "x", .want_row = true, SERVER(P("\2"), DEF_A, DEF_B, EOF_, P("\0011"))}},
    {"an answer to prepare that is cut", 0, 0, {.statement = S_BEGIN, SERVER(P("\0\1\0\0\0\0\0"))}},
    {"a set for an answer to prepare", 0, 0, {.statement = S_BEGIN, SERVER(P("\1"))}},
    {"columns left out that were never told",
     0,
     FAKE_CACHED,
     {.statement = S_BEGIN, .want_row = true, SERVER(PREPARED_0_0, NEXT, P("\1\0"))}},
    {"columns left out of a text",
     0,
     FAKE_CACHED,
     {.text = "x", .want_row = true, SERVER(P("\1\0"))}},
};

static void what_cannot_be_breaks_the_wire(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(wrongs); i++) {
        for (size_t piece = 0; piece < 4; piece++) {
            struct wire_fake f;
            struct str stream = STR_INIT;
            size_t used;
            wire_fake_init(&f, wrongs[i].caps, wrongs[i].more_caps, DB_PREPARED, S_COUNT);
            add_packets(&stream, wrongs[i].step.packets);
            assert_int_equal(request(&f, &wrongs[i].step), DB_OK);
            enum db_wire_progress progress = feed(&f, stream.buf, stream.len, piece, NULL);
            if (progress != DB_WIRE_BROKEN)
                fail_msg("%s, pieces of %zu: %d", wrongs[i].name, piece, progress);
            assert_true(f.wire.base.broken);
            assert_int_equal(f.result.class, DB_LOST);
            assert_string_equal(f.result.native, "2027");
            assert_non_null(strstr(f.result.message, "broke the protocol: "));
            // And stays broken.
            assert_int_equal(db_wire_feed(&f.wire.base, "x", 1, &used, &f.out, &f.result),
                             DB_WIRE_BROKEN);
            assert_int_equal(f.result.class, DB_LOST);
            str_release(&stream);
            wire_fake_release(&f);
        }
    }
}

static void bytes_that_nobody_asked_for_break_the_wire(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *native, *message;
    } cases[] = {
        {BYTES("\22\0\0\0\377\277\17#HY000idle: bye"), "4031", "idle: bye"},
        {BYTES("\7\0\0\1\0\0\0\2\0\0\0"), "2027",
         "the server broke the protocol: it spoke although nothing was asked"},
        {BYTES(""), "2006", "the server closed the connection"},
    };
    size_t used;

    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        for (int asked = 0; asked < 2; asked++) {
            struct wire_fake f;
            wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
            enum db_wire_progress progress = DB_WIRE_MORE;
            // A request that is sent while half of a farewell has come is not answered by it.
            size_t before = asked && cases[i].len > 0 ? 6 : 0;
            if (before > 0 && cases[i].bytes[4] == '\377')
                progress = feed(&f, cases[i].bytes, before, 1, NULL);
            else
                before = 0;
            assert_int_equal(progress, DB_WIRE_MORE);
            if (before > 0)
                request(&f, &(struct step){.text = "x"});
            if (cases[i].len > 0)
                progress = feed(&f, cases[i].bytes + before, cases[i].len - before, 0, NULL);
            else
                progress = db_wire_feed(&f.wire.base, "", 0, &used, &f.out, &f.result);
            assert_int_equal(progress, DB_WIRE_BROKEN);
            assert_string_equal(f.result.native, cases[i].native);
            assert_string_equal(f.result.message, cases[i].message);
            wire_fake_release(&f);
        }
}

static void peer_that_closes_in_the_middle_is_lost(void **state)
{
    struct wire_fake f;
    size_t used = 1;

    (void)state;
    wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
    request(&f, &(struct step){.text = "x"});
    assert_true(atomic_load(&f.session.busy));
    assert_int_equal(feed(&f, "\7\0\0", 3, 0, NULL), DB_WIRE_MORE);
    assert_int_equal(db_wire_feed(&f.wire.base, "", 0, &used, &f.out, &f.result), DB_WIRE_BROKEN);
    assert_int_equal(used, 0);
    assert_string_equal(f.result.native, "2013");
    assert_false(atomic_load(&f.session.busy));
    wire_fake_release(&f);
}

static void bytes_behind_an_answer_are_left(void **state)
{
    struct wire_fake f;
    size_t used;
    static const char bytes[] = "\7\0\0\1\0\0\0\2\0\0\0rest";

    (void)state;
    wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
    request(&f, &(struct step){.text = "x"});
    assert_int_equal(db_wire_feed(&f.wire.base, bytes, sizeof(bytes) - 1, &used, &f.out, &f.result),
                     DB_WIRE_ANSWERED);
    assert_int_equal(used, 11);
    wire_fake_release(&f);
}

static void unanswered_request_marks_the_wire_broken_at_release(void **state)
{
    struct wire_fake f;

    (void)state;
    wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
    request(&f, &(struct step){.text = "x"});
    wire_fake_release(&f);
    assert_true(f.wire.base.broken);
}

// ---- long ones

// A row of one text as long as told: packets of 16 MiB where it is longer, the last perhaps empty.
static void add_long_row(struct str *stream, size_t len, unsigned seq)
{
    struct str row = STR_INIT;
    char head[9] = {'\376'};

    for (int i = 0; i < 8; i++)
        head[1 + i] = (char)((len - 9) >> (8 * i));
    str_addn(&row, head, 9);
    str_reserve(&row, len);
    memset(row.buf + row.len, 'x', len - 9);
    row.len = len;
    for (size_t at = 0;; at += WIRE_PACKET_MAX) {
        size_t part = row.len - at < WIRE_PACKET_MAX ? row.len - at : WIRE_PACKET_MAX;
        add_packet(stream, row.buf + at, part, seq++);
        if (part < WIRE_PACKET_MAX)
            break;
    }
    str_release(&row);
    add_packet(stream, "\1y", 2, seq++);
    add_packet(stream, "\376\0\0\2\0", 5, seq);
}

static void long_rows_are_passed_over_and_refused_to_scripts(void **state)
{
    static const size_t lens[] = {DB_WIRE_KEEP_MAX, DB_WIRE_KEEP_MAX + 1, WIRE_PACKET_MAX - 1,
                                  WIRE_PACKET_MAX,  WIRE_PACKET_MAX + 1,  2 * WIRE_PACKET_MAX,
                                  40000000};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(lens); i++)
        for (int want_row = 0; want_row < 2; want_row++) {
            struct wire_fake f;
            struct str stream = STR_INIT;
            wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
            add_packets(&stream, (const struct packet[]){P("\1"), DEF_B, EOF_, {0}});
            add_long_row(&stream, lens[i], 4);
            request(&f, &(struct step){.text = "x", .want_row = want_row});
            assert_int_equal(feed(&f, stream.buf, stream.len, 70001, NULL), DB_WIRE_ANSWERED);
            if (want_row && lens[i] > DB_WIRE_KEEP_MAX) {
                assert_int_equal(f.result.class, DB_OTHER);
                assert_non_null(strstr(f.result.message, "longer than 1048576 bytes"));
                assert_int_equal(f.result.n_columns, 0);
            } else {
                assert_int_equal(f.result.class, DB_OK);
                assert_int_equal(f.result.rows, 2);
                assert_int_equal(f.result.n_columns, want_row);
            }
            assert_true(f.wire.packet.cap <= WIRE_SPARE_MAX);
            str_release(&stream);
            wire_fake_release(&f);
        }
}

static void packet_far_too_long_breaks_the_wire(void **state)
{
    struct wire_fake f;

    (void)state;
    for (int i = 0; i < 2; i++) {
        wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
        request(&f, &(struct step){.text = "x"});
        assert_int_equal(i ? feed(&f, "\1\0\40\1\1", 5, 0, NULL)         // a head
                           : feed(&f, "\377\377\377\1\377", 5, 0, NULL), // an error
                         DB_WIRE_BROKEN);
        assert_non_null(strstr(f.result.message, "far too long"));
        wire_fake_release(&f);
    }
}

static void long_requests_are_split(void **state)
{
    static const size_t lens[] = {WIRE_PACKET_MAX - 2, WIRE_PACKET_MAX - 1, WIRE_PACKET_MAX,
                                  2 * WIRE_PACKET_MAX - 1, 2 * WIRE_PACKET_MAX + 7};

    (void)state;
    for (size_t i = 0; i < ARR_LEN(lens); i++) {
        struct wire_fake f;
        struct str text = STR_INIT, body = STR_INIT, answer = STR_INIT;
        unsigned seq = 0;
        size_t at = 0, part;
        wire_fake_init(&f, 0, 0, DB_SIMPLE, S_COUNT);
        str_reserve(&text, lens[i]);
        for (size_t k = 0; k < lens[i]; k++)
            text.buf[k] = (char)('a' + k % 23);
        text.buf[text.len = lens[i]] = '\0';
        str_add(&f.out, "before");
        request(&f, &(struct step){.text = text.buf});
        assert_memory_equal(f.out.buf, "before", 6);
        for (at = 6; at < f.out.len; at += part) {
            part = wire_fake_int(f.out.buf + at, 3);
            assert_int_equal((uint8_t)f.out.buf[at + 3], seq++);
            at += WIRE_HEADER;
            str_addn(&body, f.out.buf + at, part);
            assert_int_equal(part < WIRE_PACKET_MAX, at + part == f.out.len);
        }
        assert_int_equal(at, f.out.len);
        assert_int_equal(body.buf[0], 3);
        assert_string_equal(body.buf + 1, text.buf);
        add_packet(&answer, "\0\0\0\2\0\0\0", 7, seq); // the answer goes on counting
        assert_int_equal(feed(&f, answer.buf, answer.len, 0, NULL), DB_WIRE_ANSWERED);
        str_release(&answer);
        str_release(&body);
        str_release(&text);
        wire_fake_release(&f);
    }
}

static void parameter_that_no_server_takes_is_refused(void **state)
{
    struct wire_fake f;
    struct db_value param = {.type = DB_TEXT, .text_len = UINT32_MAX, .s = "not that long"};

    (void)state;
    wire_fake_init(&f, 0, 0, DB_PREPARED, S_COUNT);
    str_add(&f.out, "before");
    assert_int_equal(request(&f, &(struct step){.params = &param}), DB_OTHER);
    assert_string_equal(f.out.buf, "before");
    assert_string_equal(f.result.native, "2020");
    assert_int_equal(f.wire.phase, WIRE_IDLE);
    wire_fake_release(&f);
}

// ---- anything

// Conversations with bytes changed: no answer is asked of them but that memory is kept, and that a
// cut changes nothing. The fuzzer does this better; here it is done in every run.
static void changed_conversations_give_the_same_however_they_are_cut(void **state)
{
    struct rng rng;

    (void)state;
    rng_init(&rng, SEED, 1, RNG_DRIVER);
    for (int round = 0; round < 8000; round++) {
        const struct talk *talk = &talks[rng_range(&rng, 0, (int64_t)ARR_LEN(talks) - 1)];
        const struct step *step = &talk->steps[0];
        struct str stream = STR_INIT, texts[2] = {STR_INIT, STR_INIT};
        add_packets(&stream, step->packets);
        for (int64_t n = rng_range(&rng, 1, 3); n > 0; n--)
            stream.buf[rng_range(&rng, 0, (int64_t)stream.len - 1)] = (char)rng_range(&rng, 0, 255);
        for (int cut = 0; cut < 2; cut++) {
            struct wire_fake f;
            wire_fake_init(&f, talk->caps, talk->more_caps, talk->protocol, S_COUNT);
            request(&f, step);
            size_t used, at = 0;
            enum db_wire_progress progress = DB_WIRE_MORE;
            while (at < stream.len && progress == DB_WIRE_MORE) {
                size_t n = cut ? 1 : stream.len;
                char *exact = mem_resize(NULL, n, 1);
                memcpy(exact, stream.buf + at, n);
                progress = db_wire_feed(&f.wire.base, exact, n, &used, &f.out, &f.result);
                free(exact);
                at += used;
            }
            wire_fake_sent(&f, &texts[cut]);
            if (progress == DB_WIRE_ANSWERED)
                str_addf(&texts[cut], "%zu bytes: ", at);
            if (progress != DB_WIRE_MORE)
                wire_fake_result(&f, progress, &texts[cut]);
            wire_fake_release(&f);
        }
        if (strcmp(texts[0].buf, texts[1].buf) != 0)
            fail_msg("round %d: %s\nagainst %s", round, texts[0].buf, texts[1].buf);
        str_release(&texts[0]);
        str_release(&texts[1]);
        str_release(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversations_give_the_same_results_however_they_are_cut),
        cmocka_unit_test(binary_values_of_every_type_are_read),
        cmocka_unit_test(text_values_become_numbers_where_they_are_some),
        cmocka_unit_test(floats_have_six_digits),
        cmocka_unit_test(nulls_are_told_by_their_bits),
        cmocka_unit_test(what_cannot_be_breaks_the_wire),
        cmocka_unit_test(bytes_that_nobody_asked_for_break_the_wire),
        cmocka_unit_test(peer_that_closes_in_the_middle_is_lost),
        cmocka_unit_test(bytes_behind_an_answer_are_left),
        cmocka_unit_test(unanswered_request_marks_the_wire_broken_at_release),
        cmocka_unit_test(long_rows_are_passed_over_and_refused_to_scripts),
        cmocka_unit_test(packet_far_too_long_breaks_the_wire),
        cmocka_unit_test(long_requests_are_split),
        cmocka_unit_test(parameter_that_no_server_takes_is_refused),
        cmocka_unit_test(changed_conversations_give_the_same_however_they_are_cut),
    };

    return cmocka_run_group_tests_name("mysql_wire", tests, NULL, NULL);
}
