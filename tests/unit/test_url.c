// Targets and volumes: what they parse into, what is refused with which words, that printing and
// parsing round-trip, and that no password gets into a text that people see.
#include "base/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arr.h"
#include "base/rng.h"

#define SEED 20261130

// All parts of a URL on one line, to compare with.
static char *url_parts(const struct url *url)
{
    struct str out = STR_INIT;
    const struct {
        const char *name, *value;
    } parts[] = {
        {"user", url->user}, {"pw", url->password}, {"host", url->host},
        {"port", url->port}, {"path", url->path},
    };

    str_addf(&out, "%s%s", url->scheme, url->has_authority ? "//" : "");
    for (size_t i = 0; i < ARR_LEN(parts); i++)
        if (parts[i].value)
            str_addf(&out, " %s<%s>", parts[i].name, parts[i].value);
    for (size_t i = 0; i < url->params.n; i++)
        str_addf(&out, " %s=<%s>", url->params.items[i].key, url->params.items[i].value);
    return str_detach(&out);
}

static char *spec_parts(const struct spec *spec)
{
    struct str out = STR_INIT;

    str_add(&out, spec->type);
    for (size_t i = 0; i < spec->params.n; i++)
        str_addf(&out, " %s=<%s>", spec->params.items[i].key, spec->params.items[i].value);
    return str_detach(&out);
}

static const struct {
    const char *text, *parts;
    const char *printed; // NULL: as the text
    const char *hidden;  // without password; NULL: as printed
} targets[] = {
    // bare words and paths
    {"sqlite", "sqlite"},
    {"sqlite:", "sqlite", "sqlite"},
    {"SQLite:x.db", "sqlite path<x.db>", "sqlite:x.db"},
    {"sqlite:/tmp/x y.db", "sqlite path</tmp/x y.db>"},
    {"sqlite:100%.db", "sqlite path<100%.db>"},
    {"sqlite:a%20b?x=1", "sqlite path<a%20b> x=<1>"},
    {"sqlite:bench.db?journal_mode=wal&synchronous=off",
     "sqlite path<bench.db> journal_mode=<wal> synchronous=<off>"},
    {"sqlite:{a?b}?x=y", "sqlite path<a?b> x=<y>"},
    {"sqlite:{{a}}", "sqlite path<{a}>"},
    {"sqlite:{//x}", "sqlite path<//x>"},
    {"sqlite:a{b", "sqlite path<a{b>"},
    {"null:?latency=2ms", "null latency=<2ms>"},
    {"null?latency=2ms", "null latency=<2ms>", "null:?latency=2ms"},
    {"null:{}", "null", "null"},
    // authorities
    {"postgres://h", "postgres// host<h>"},
    {"postgres://", "postgres//"},
    {"postgres://h/", "postgres// host<h>", "postgres://h"},
    {"postgres:///db", "postgres// path<db>"},
    {"sqlite:////tmp/x.db", "sqlite// path</tmp/x.db>"},
    {"mysql://u@h:3306/db?engine=innodb", "mysql// user<u> host<h> port<3306> path<db> "
                                          "engine=<innodb>"},
    {"mysql://u:hush@h/db", "mysql// user<u> pw<hush> host<h> path<db>", NULL, "mysql://u@h/db"},
    {"mysql://:hush@h", "mysql// pw<hush> host<h>", NULL, "mysql://h"},
    {"mysql://u:@h", "mysql// user<u> host<h>", "mysql://u@h"},
    {"mysql://@h", "mysql// host<h>", "mysql://h"},
    {"mysql://u:h@sh@h", "mysql// user<u> pw<h@sh> host<h>", "mysql://u:h%40sh@h", "mysql://u@h"},
    {"mysql://u:h:sh@h", "mysql// user<u> pw<h:sh> host<h>", "mysql://u:h%3Ash@h", "mysql://u@h"},
    {"mysql://u%40x:p%2F%3f%25@h", "mysql// user<u@x> pw<p/?%> host<h>",
     "mysql://u%40x:p%2F%3F%25@h", "mysql://u%40x@h"},
    {"postgres://%2Frun%2Fpg/db", "postgres// host</run/pg> path<db>"},
    {"postgres://:5433/db", "postgres// port<5433> path<db>"},
    {"postgres://h:/db", "postgres// host<h> path<db>", "postgres://h/db"},
    {"postgres://[::1]:5432/db", "postgres// host<::1> port<5432> path<db>"},
    {"postgres://[fe80::1%25eth0]", "postgres// host<fe80::1%eth0>"},
    {"postgres://a,b/db", "postgres// host<a,b> path<db>"},
    {"postgres://a:1,b:2/db", "postgres// host<a,b> port<1,2> path<db>"},
    {"postgres://a:1,b,[::1]:3", "postgres// host<a,b,::1> port<1,,3>"},
    {"postgres://h/a%20b%3Fc/d", "postgres// host<h> path<a b?c/d>"},
    {"postgres://h?user=me", "postgres// host<h> user=<me>"},
    // queries
    {"postgres://h/d?password=hush&sslmode=require",
     "postgres// host<h> path<d> password=<hush> sslmode=<require>", NULL,
     "postgres://h/d?sslmode=require"},
    {"postgres://h/d?sslmode=require&SSLPassword=hush",
     "postgres// host<h> path<d> "
     "sslmode=<require> SSLPassword=<hush>",
     NULL, "postgres://h/d?sslmode=require"},
    {"mysql:?pwd={a&b}", "mysql pwd=<a&b>", NULL, "mysql:"},
    {"x:?a=", "x a=<>"},
    {"x:?a={}", "x a=<>", "x:?a="},
    {"x:?a=1&a=2", "x a=<1> a=<2>"},
    {"x:?a={b c=d&e}", "x a=<b c=d&e>"},
    {"x:?a={{b}{c}}&d=e", "x a=<{b}{c}> d=<e>"},
    {"x:?a=b%20c%26", "x a=<b c&>", "x:?a={b c&}"},
    {"x:?a={%20}", "x a=<%20>"},
    {"x:?a=%7Db%0A", "x a=<}b\n>"},
    {"x:?a=%7bb", "x a=<{b>", "x:?a=%7Bb"},
    {"x:?a%20b=c", "x a b=<c>"},
    {"x:?a=b,c/d?e:f@g", "x a=<b,c/d?e:f@g>"},
    {"server:postgres?data={loop:size=2G,fs=ext4}&log=@fast&work_mem=64MB",
     "server path<postgres> data=<loop:size=2G,fs=ext4> log=<@fast> work_mem=<64MB>",
     "server:postgres?data=loop:size=2G,fs=ext4&log=@fast&work_mem=64MB"},
    // a volume needs no braces around it
    {"sqlite:?data=loop:size=2G,mount={noatime,x=1},mkfs={-J size=4 -O ^a}&journal_mode=wal",
     "sqlite data=<loop:size=2G,mount={noatime,x=1},mkfs={-J size=4 -O ^a}> journal_mode=<wal>",
     "sqlite:?data=loop:size=2G,mount={noatime,x=1},mkfs={-J size=4 -O ^a}&journal_mode=wal"},
    {"sqlite:?data=dir:/a%20b", "sqlite data=<dir:/a b>", "sqlite:?data={dir:/a b}"},
    {"sqlite:?data=loop:mkfs={-L a&b}", "sqlite data=<loop:mkfs={-L a&b}>"},
    {"sqlite:?data={loop:mkfs={-L 5%25}}", "sqlite data=<loop:mkfs={-L 5%25}>"},
    // connection strings
    {"postgres:host=/tmp dbname=x", "postgres path<host=/tmp dbname=x>"},
    {"postgres:host=h password=hush dbname=x", "postgres path<host=h password=hush dbname=x>", NULL,
     "postgres:host=h dbname=x"},
    {"postgres:password = 'hu sh' host=h", "postgres path<password = 'hu sh' host=h>", NULL,
     "postgres:host=h"},
    {"postgres:host=h password=hu\\ sh", "postgres path<host=h password=hu\\ sh>", NULL,
     "postgres:host=h"},
    {"postgres:password=hush", "postgres path<password=hush>", NULL, "postgres:"},
    {"postgres:{host=h password=a?b}", "postgres path<host=h password=a?b>", NULL,
     "postgres:host=h"},
    {"odbc:DSN=x;UID=u;PWD=hu sh;Database=d", "odbc path<DSN=x;UID=u;PWD=hu sh;Database=d>", NULL,
     "odbc:DSN=x;UID=u;Database=d"},
    {"odbc:DSN=x;PWD={hu;sh};Database=d", "odbc path<DSN=x;PWD={hu;sh};Database=d>", NULL,
     "odbc:DSN=x;Database=d"},
};

static void test_targets_parse_into_their_parts_and_print_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(targets); i++) {
        struct url url;
        struct err err = ERR_INIT;
        struct str out = STR_INIT;
        const char *text = targets[i].text;
        const char *printed = targets[i].printed ? targets[i].printed : text;
        if (url_parse(&url, text, &err) < 0)
            fail_msg("%s", err.text);
        char *parts = url_parts(&url);
        assert_string_equal(parts, targets[i].parts);
        url_print(&url, true, &out);
        assert_string_equal(out.buf, printed);
        str_clear(&out);
        url_print(&url, false, &out);
        assert_string_equal(out.buf, targets[i].hidden ? targets[i].hidden : printed);
        free(parts);
        str_release(&out);
        url_release(&url);
        url_release(&url); // twice is harmless
    }
}

static const struct {
    const char *text, *error;
} bad_targets[] = {
    {"", "target '': a target begins with an engine, as in sqlite:bench.db or "
         "postgres://HOST/DATABASE"},
    {"bench.db", "target bench.db: a target begins with an engine, as in sqlite:bench.db or "
                 "postgres://HOST/DATABASE"},
    {"/tmp/x", "target /tmp/x: a target begins with an engine, as in sqlite:bench.db or "
               "postgres://HOST/DATABASE"},
    {"://h", "target ://h: a target begins with an engine, as in sqlite:bench.db or "
             "postgres://HOST/DATABASE"},
    {"x:?", "target 'x:?': a parameter is missing"},
    {"x:?a=1&", "target 'x:?a=1&': a parameter is missing"},
    {"x:?a=1&&b=2", "target 'x:?a=1&&b=2': a parameter is missing"},
    {"x:?debug", "target 'x:?debug': write debug=VALUE"},
    {"x:?=1", "target 'x:?=1': a parameter begins with a name: KEY=VALUE"},
    {"x:? a=1", "target 'x:? a=1': a parameter begins with a name: KEY=VALUE"},
    {"sqlite:x?journal_mode=wal,synchronous=off",
     "target 'sqlite:x?journal_mode=wal,synchronous=off': the value of journal_mode holds '=': "
     "separate parameters with '&', or put it in braces"},
    {"x:?a=b c", "target 'x:?a=b c': the value of a holds a blank: put it in braces"},
    {"x:?a=b{c}",
     "target 'x:?a=b{c}': the value of a holds a brace: put all of it in braces, which "
     "must match"},
    {"x:?a={b", "target 'x:?a={b': the value of a begins with '{' and has no matching '}'"},
    {"x:?a={b}c", "target 'x:?a={b}c': the value of a goes on after its closing brace: put all of "
                  "it in braces"},
    {"x:{a", "target 'x:{a': what follows x: begins with '{' and has no matching '}'"},
    {"x:?a=%zz",
     "target 'x:?a=%zz': a '%' is not followed by two hexadecimal digits: write %25 for "
     "'%'"},
    {"x:?a=%4", "target 'x:?a=%4': a '%' is not followed by two hexadecimal digits: write %25 for "
                "'%'"},
    {"x:?a=%00", "target 'x:?a=%00': %00 cannot stand in a target"},
    {"x://h:0/",
     "target x://h:0/: what follows the host is not ':' and a port between 1 and 65535"},
    {"x://h:65536", "target x://h:65536: what follows the host is not ':' and a port between 1 and "
                    "65535"},
    {"x://[::1", "target 'x://[::1': a '[' before the host has no ']'"},
    {"x://[::1]x", "target 'x://[::1]x': what follows the host is not ':' and a port between 1 and "
                   "65535"},
    {"x://a%2Cb", "target x://a%2Cb: a host name cannot hold a comma"},
    // passwords, well and badly written
    {"x://u:hu/sh@h/d",
     "target x://u:xxx@h/d: what follows the host is not ':' and a port between 1 "
     "and 65535 (in a password '/', '?' and '@' are written %2F, %3F and %40)"},
    {"x://u:hu?sh@h/d",
     "target x://u:xxx@h/d: what follows the host is not ':' and a port between 1 "
     "and 65535 (in a password '/', '?' and '@' are written %2F, %3F and %40)"},
    {"x://u:hush/d", "target x://u:xxx: what follows the host is not ':' and a port between 1 and "
                     "65535"},
    {"x://u:hu%sh@h/d", "target x://u:xxx@h/d: a '%' is not followed by two hexadecimal digits: "
                        "write %25 for '%'"},
    {"x://u:hush@h:y",
     "target x://u:xxx@h:y: what follows the host is not ':' and a port between 1 "
     "and 65535"},
    {"x://h?password=hu sh",
     "target 'x://h?password=xxx': the value of password holds a blank: put "
     "it in braces"},
    {"x://h?password=hu=sh&a=b",
     "target 'x://h?password=xxx&a=b': the value of password holds '=': "
     "separate parameters with '&', or put it in braces"},
    {"x://h?password=hu&sh", "target 'x://h?password=xxx': the value of password holds '&': put it "
                             "in braces"},
    {"x://h?password={hu&sh", "target 'x://h?password=xxx': the value of password begins with '{' "
                              "and has no matching '}'"},
    {"x://h?password={hu}sh",
     "target 'x://h?password=xxx': the value of password goes on after its "
     "closing brace: put all of it in braces"},
    {"x:{password=hush", "target 'x:{password=xxx': what follows x: begins with '{' and has no "
                         "matching '}'"},
};

static void test_bad_targets_are_refused_with_a_remedy_and_no_password(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(bad_targets); i++) {
        struct url url;
        struct err err = ERR_INIT;
        if (url_parse(&url, bad_targets[i].text, &err) == 0)
            fail_msg("%s was taken", bad_targets[i].text);
        assert_string_equal(err.text, bad_targets[i].error);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(strstr(err.text, "hu"));
        assert_null(url.scheme); // released
        assert_true(url_parse(&url, bad_targets[i].text, NULL) < 0);
    }
}

static const struct {
    const char *text, *parts;
    const char *printed; // NULL: as the text
} volumes[] = {
    {"loop", "loop"},
    {"loop:", "loop", "loop"},
    {"Loop:size=2G", "loop size=<2G>", "loop:size=2G"},
    {"zfs:com.example:note=x,feature@lz4=enabled", "zfs com.example:note=<x> feature@lz4=<enabled>",
     "zfs:com.example:note=x,feature@lz4=enabled"},
    {"loop:size=2G,fs=ext4,mount={noatime,nodiratime},mkfs={-J size=400 -O sparse_super,dir_index}",
     "loop size=<2G> fs=<ext4> mount=<noatime,nodiratime> "
     "mkfs=<-J size=400 -O sparse_super,dir_index>"},
    {"vdisk:size=2G,fs=xfs,model=ssd-sata", "vdisk size=<2G> fs=<xfs> model=<ssd-sata>"},
    {"dir:/srv/data", "dir path=</srv/data>"},
    {"dir:.", "dir path=<.>"},
    {"dir:path=/srv/data", "dir path=</srv/data>", "dir:/srv/data"},
    {"dir:{/my data,x}", "dir path=</my data,x>"},
    {"dir:{data}", "dir path=<data>", "dir:path=data"},
    {"dir:path={a b}", "dir path=<a b>"},
    {"device:/dev/sdb,fs=xfs", "device path=</dev/sdb> fs=<xfs>"},
    {"device:fs=xfs,path=/dev/sdb", "device fs=<xfs> path=</dev/sdb>"},
    {"zfs:in=tank/x@y,recordsize=8k", "zfs in=<tank/x@y> recordsize=<8k>"},
    {"x:a={}", "x a=<>"},
    {"x:a={{b},{c}}", "x a=<{b},{c}>"},
    {"x:a={b}", "x a=<b>", "x:a=b"},
    {"x:a=100%20?", "x a=<100%20?>"},
};

static void test_volumes_parse_into_their_parts_and_print_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARR_LEN(volumes); i++) {
        struct spec spec;
        struct err err = ERR_INIT;
        struct str out = STR_INIT;
        if (spec_parse(&spec, volumes[i].text, &err) < 0)
            fail_msg("%s", err.text);
        char *parts = spec_parts(&spec);
        assert_string_equal(parts, volumes[i].parts);
        spec_print(&spec, &out);
        assert_string_equal(out.buf, volumes[i].printed ? volumes[i].printed : volumes[i].text);
        free(parts);
        str_release(&out);
        spec_release(&spec);
        spec_release(&spec);
    }
}

static void test_bad_volumes_are_refused_with_a_remedy(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"",
         "volume '': a volume begins with its type, as in dir:/srv/data or loop:size=2G,fs=ext4"},
        {"/srv", "volume /srv: a volume begins with its type, as in dir:/srv/data or "
                 "loop:size=2G,fs=ext4"},
        {"@fast", "volume @fast: a volume begins with its type, as in dir:/srv/data or "
                  "loop:size=2G,fs=ext4"},
        {"loop:size", "volume loop:size: write size=VALUE"},
        {"loop:2G", "volume loop:2G: write 2G=VALUE"},
        {"loop:size=2G,/x", "volume loop:size=2G,/x: a setting begins with a name: KEY=VALUE"},
        {"loop:size=2G,", "volume loop:size=2G,: a setting is missing"},
        {"loop:,size=2G", "volume loop:,size=2G: a setting is missing"},
        {"loop:size=,fs=x", "volume loop:size=,fs=x: the value of size is missing"},
        {"loop:size=2G, fs=x",
         "volume 'loop:size=2G, fs=x': a setting begins with a name: KEY=VALUE"},
        {"loop:size=2G&fs=x", "volume 'loop:size=2G&fs=x': the value of size holds '&': separate "
                              "settings with ',', or put it in braces"},
        {"loop:mkfs=-J size=4",
         "volume 'loop:mkfs=-J size=4': the value of mkfs holds a blank: put "
         "it in braces"},
        {"loop:mount=a=b", "volume loop:mount=a=b: the value of mount holds '=': separate settings "
                           "with ',', or put it in braces"},
        {"loop:size=2G,size=3G", "volume loop:size=2G,size=3G: size stands twice"},
        {"dir:/a,path=/b", "volume dir:/a,path=/b: path stands twice"},
        {"loop:a={b", "volume 'loop:a={b': the value of a begins with '{' and has no matching '}'"},
        {"loop:a={b}}", "volume 'loop:a={b}}': the value of a goes on after its closing brace: put "
                        "all of it in braces"},
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        struct spec spec;
        struct err err = ERR_INIT;
        if (spec_parse(&spec, cases[i].text, &err) == 0)
            fail_msg("%s was taken", cases[i].text);
        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(spec.type);
    }
}

// Random text over an alphabet that favours what is special; never empty.
static char *random_text(struct rng *rng, int max_len, const char *alphabet)
{
    struct str out = STR_INIT;
    int64_t len = rng_range(rng, 1, max_len), n = (int64_t)strlen(alphabet);

    for (int64_t i = 0; i < len; i++)
        str_addc(&out, alphabet[rng_range(rng, 0, n - 1)]);
    return str_detach(&out);
}

#define ANY_CHAR "abcXYZ019-._~:/?#[]@!$&'()*+,;=%{}{} \t\n\\\"\x01\x7f\xc3\xa9"

static bool one_in(struct rng *rng, int n)
{
    return rng_range(rng, 1, n) == 1;
}

// A random URL as url_parse can make one: whatever may be encoded holds anything.
static void random_url(struct rng *rng, struct url *url)
{
    *url = (struct url){.scheme = random_text(rng, 5, "abcxyz"), .has_authority = one_in(rng, 2)};
    if (url->has_authority) {
        if (one_in(rng, 2))
            url->user = random_text(rng, 6, ANY_CHAR);
        if (one_in(rng, 2))
            url->password = random_text(rng, 6, ANY_CHAR);
        if (!one_in(rng, 4))
            url->host = random_text(rng, 6, "ab:%/@?[]{} ");
        if (one_in(rng, 2)) {
            url->port = random_text(rng, 2, "123456789");
        }
        if (one_in(rng, 2))
            url->path = random_text(rng, 8, ANY_CHAR);
    } else if (one_in(rng, 2)) {
        url->path = random_text(rng, 8, "ab:/%&= @'\\\n,;#");
        if (one_in(rng, 3)) { // what needs braces around it
            char *braced = NULL;
            struct str text = STR_INIT;
            str_addf(&text, "{%s}?", url->path);
            braced = str_detach(&text);
            free(url->path);
            url->path = braced;
        }
    }
    for (int64_t n = rng_range(rng, 0, 3); n > 0; n--) {
        char *key = random_text(rng, 5, ANY_CHAR), *value = random_text(rng, 8, ANY_CHAR);
        kvs_add(&url->params, key, one_in(rng, 8) ? "" : value);
        free(key);
        free(value);
    }
}

static void test_random_targets_round_trip(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, SEED, 1, RNG_DATA);
    for (int i = 0; i < 20000; i++) {
        struct url url, back;
        struct err err = ERR_INIT;
        struct str out = STR_INIT, again = STR_INIT;
        random_url(&rng, &url);
        url_print(&url, true, &out);
        if (url_parse(&back, out.buf, &err) < 0)
            fail_msg("seed %d, %d: <%s> was printed and refused: %s", SEED, i, out.buf, err.text);
        char *parts = url_parts(&url), *back_parts = url_parts(&back);
        if (strcmp(parts, back_parts) != 0)
            fail_msg("seed %d, %d: <%s>: %s became %s", SEED, i, out.buf, parts, back_parts);
        url_print(&back, true, &again);
        assert_string_equal(again.buf, out.buf);
        free(parts);
        free(back_parts);
        url_release(&url);
        url_release(&back);
        str_release(&out);
        str_release(&again);
    }
}

// Whatever is typed: no crash; what is taken can be printed and taken again.
static void test_random_text_is_refused_or_round_trips(void **state)
{
    static const char *const pieces[] = {
        "sqlite", "x", ":", "//", "/", "?",   "&", "=", "{",         "}",    ",", "%41",
        "%",      "@", "[", "]",  "a", "a=b", "5", " ", "password=", "\xff", "'", "key={v}",
    };
    struct rng rng;
    int n_taken[2] = {0};
    (void)state;
    rng_init(&rng, SEED, 2, RNG_DATA);
    for (int i = 0; i < 100000; i++) {
        struct str text = STR_INIT, out = STR_INIT;
        struct url url, back;
        struct spec spec, spec_back;
        str_add(&text, one_in(&rng, 4) ? "" : one_in(&rng, 2) ? "x:" : "x://");
        for (int64_t n = rng_range(&rng, 0, 8); n > 0; n--)
            str_add(&text, pieces[rng_range(&rng, 0, (int64_t)ARR_LEN(pieces) - 1)]);
        if (url_parse(&url, text.buf, NULL) == 0) {
            n_taken[0]++;
            url_print(&url, true, &out);
            if (url_parse(&back, out.buf, NULL) < 0)
                fail_msg("<%s> was printed as <%s> and refused", text.buf, out.buf);
            char *parts = url_parts(&url), *back_parts = url_parts(&back);
            assert_string_equal(parts, back_parts);
            free(parts);
            free(back_parts);
            url_release(&back);
            // Without passwords it is still a target.
            str_clear(&out);
            url_print(&url, false, &out);
            if (url_parse(&back, out.buf, NULL) < 0)
                fail_msg("<%s> was printed without passwords as <%s>", text.buf, out.buf);
            assert_null(back.password);
            url_release(&back);
            url_release(&url);
        }
        str_clear(&out);
        if (spec_parse(&spec, text.buf, NULL) == 0) {
            n_taken[1]++;
            spec_print(&spec, &out);
            if (spec_parse(&spec_back, out.buf, NULL) < 0)
                fail_msg("<%s> was printed as <%s> and refused", text.buf, out.buf);
            char *parts = spec_parts(&spec), *back_parts = spec_parts(&spec_back);
            assert_string_equal(parts, back_parts);
            free(parts);
            free(back_parts);
            spec_release(&spec_back);
            spec_release(&spec);
        }
        str_release(&text);
        str_release(&out);
    }
    assert_true(n_taken[0] > 1000 && n_taken[1] > 100); // the generator is worth its time
}

static void test_random_volumes_round_trip(void **state)
{
    struct rng rng;
    (void)state;
    rng_init(&rng, SEED, 3, RNG_DATA);
    for (int i = 0; i < 20000; i++) {
        struct spec spec = {.type = random_text(&rng, 5, "abcxyz")}, back;
        struct err err = ERR_INIT;
        struct str out = STR_INIT;
        for (int64_t n = rng_range(&rng, 0, 4); n > 0; n--) {
            char *key = random_text(&rng, 5, "abc_-9"),
                 *value = random_text(&rng, 8, "a1 ,=&%'/.\n");
            struct str braced = STR_INIT;
            str_addf(&braced, one_in(&rng, 3) ? "{%s}" : "%s", one_in(&rng, 8) ? "" : value);
            kvs_set(&spec.params, one_in(&rng, 5) ? "path" : key, braced.buf);
            str_release(&braced);
            free(key);
            free(value);
        }
        spec_print(&spec, &out);
        if (spec_parse(&back, out.buf, &err) < 0)
            fail_msg("seed %d, %d: <%s> was printed and refused: %s", SEED, i, out.buf, err.text);
        char *parts = spec_parts(&spec), *back_parts = spec_parts(&back);
        assert_string_equal(parts, back_parts);
        free(parts);
        free(back_parts);
        str_release(&out);
        spec_release(&spec);
        spec_release(&back);
    }
}

// Passwords of several kinds of characters, in every place one can stand, in good and bad texts:
// the word never shows in the error or in what is printed without password.
static void test_password_never_shows(void **state)
{
    static const char *const places[] = {
        "mysql://u:%s@h/db",
        "mysql://u:%s@h:3306/db?a=b",
        "mysql://u:%s@h:bad/db",
        "mysql://u:%s@[::1/db",
        "mysql://u:%s@h/db?a",
        "mysql://u:%s@h/db?a={",
        "mysql://:%s@h",
        "postgres://h/d?password=%s",
        "postgres://h/d?a=b&password=%s",
        "postgres://h?password=%s&a=b",
        "postgres://h?password=%s&a=%%",
        "mysql://h?passwd={%s}",
        "mysql://h?passwd={%s}&b",
        "postgres:host=h password=%s",
        "postgres:host=h password='%s'",
        "postgres:password=%s host=h",
        "postgres:password = %s",
    };
    static const char *const passwords[] = {
        "hush",      "hush/hush", "hush?hush", "hush@hush", "hush:hush",   "hush%hush",
        "hush#hush", "hush&hush", "hush=hush", "{hush",     "hush}hush",   "{hush}hush",
        "[hush]",    "hush%41",   "hush,hush", "1hush",     "hush\\ hush",
    };
    (void)state;
    for (size_t i = 0; i < ARR_LEN(places); i++)
        for (size_t j = 0; j < ARR_LEN(passwords); j++) {
            struct str text = STR_INIT, out = STR_INIT;
            struct url url;
            struct err err = ERR_INIT;
            const char *mark = strstr(places[i], "%s");
            str_addn(&text, places[i], (size_t)(mark - places[i]));
            str_add(&text, passwords[j]);
            str_add(&text, mark + 2);
            if (url_parse(&url, text.buf, &err) == 0) {
                url_print(&url, false, &out);
                url_release(&url);
            } else {
                str_add(&out, err.text);
            }
            if (strstr(out.buf, "hush"))
                fail_msg("%s: %s", text.buf, out.buf);
            str_release(&text);
            str_release(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_parse_into_their_parts_and_print_back),
        cmocka_unit_test(test_bad_targets_are_refused_with_a_remedy_and_no_password),
        cmocka_unit_test(test_volumes_parse_into_their_parts_and_print_back),
        cmocka_unit_test(test_bad_volumes_are_refused_with_a_remedy),
        cmocka_unit_test(test_random_targets_round_trip),
        cmocka_unit_test(test_random_text_is_refused_or_round_trips),
        cmocka_unit_test(test_random_volumes_round_trip),
        cmocka_unit_test(test_password_never_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
