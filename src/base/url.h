// Targets and volumes as text, parsed in one place for command line and study files.
//
//   target   SCHEME:REST            sqlite:bench.db?journal_mode=wal   postgres:host=/tmp dbname=x
//            SCHEME://[USER[:PW]@]HOST[:PORT][/PATH][?KEY=VALUE&...]
//            mysql://u@h:3306/db?engine=innodb SCHEME                 sqlite, postgres, mysql: the
//            library's own defaults
//   volume   TYPE[:KEY=VALUE,...]   loop:size=2G,fs=ext4,mount={noatime,nodiratime}
//
// A value that holds the separator, blanks, '&', '=' or braces stands in braces; braces nest in
// pairs; inside them nothing is special. In a target's query %XX is decoded outside braces.
// Printing and parsing round-trip: parse(print(x)) equals x.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/str.h"

struct url {
    char *scheme;       // lower case
    bool has_authority; // "//" was there
    char *user;         // decoded; NULL when absent, as the next ones
    char *password;     // decoded; never print it
    char *host;         // decoded, IPv6 brackets removed; libpq's lists "a,b" stay one text
    char *port;         // text, as typed (lists possible)
    char *path; // after the authority without its '/', or all of REST up to '?'; NULL if absent
    struct kvs params; // in the order typed, decoded
};

// Fails with ERR_USAGE naming the text (password hidden) and the place that is wrong.
int url_parse(struct url *url, const char *text, struct err *err);
void url_release(struct url *url);

// Appends the URL; without the password unless with_password (then "user:PW@" and password= stay).
void url_print(const struct url *url, bool with_password, struct str *out);

struct spec {
    char *type;
    struct kvs params; // keys in the order typed; a key may stand once only
};

int spec_parse(struct spec *spec, const char *text, struct err *err);
void spec_release(struct spec *spec);
void spec_print(const struct spec *spec, struct str *out);
