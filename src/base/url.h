// Targets and volumes as text, parsed in one place for command line and study files.
//
//   target   SCHEME                 sqlite, postgres, mysql: the library's own defaults
//            SCHEME:REST[?QUERY]    sqlite:bench.db?journal_mode=wal   postgres:host=/tmp dbname=x
//            SCHEME://[USER[:PW]@]HOST[:PORT][/PATH][?QUERY]
//                                   mysql://u@h:3306/db?engine=innodb
//            QUERY is KEY=VALUE&KEY=VALUE...
//   volume   TYPE[:KEY=VALUE,...]   loop:size=2G,fs=ext4,mount={noatime,nodiratime}
//            TYPE:PATH[,...]        dir:/srv/data   device:/dev/sdb,fs=xfs   the key is "path"
//
// A value that holds the separator, blanks, '&', '=' or braces stands in braces; braces nest in
// pairs; inside them nothing is special. A volume in a query needs none around it:
// sqlite:?data=loop:size=2G,mount={noatime,nodiratime}&journal_mode=wal REST may stand in braces
// too, when it holds a '?'. In a target %XX is decoded in user, password, host, path after an
// authority, and query, outside braces; REST is taken as it is. Printing and parsing round-trip:
// parse(print(x)) equals x.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/kv.h"
#include "base/str.h"

struct url {
    char *scheme;       // lower case
    bool has_authority; // "//" was there
    char *user;         // decoded; NULL when absent or empty, as the next ones
    char *password;     // decoded; never print it
    char *host;         // decoded, IPv6 brackets removed; libpq's lists "a,b" stay one text
    char *port;         // digits, 1 to 65535; for hosts "a,b" a list as long ("5432,", "1,2")
    char *path;         // after the authority without its '/', or all of REST up to '?'
    struct kvs params;  // in the order typed, decoded; keys may repeat
};

// Fails with ERR_USAGE naming the text (password hidden) and what is wrong with it; url is then
// released.
int url_parse(struct url *url, const char *text, struct err *err);
void url_release(struct url *url);

// Appends the URL; without passwords (USER:PW@, password=PW in the query and in REST) unless
// with_password. Without, it is still a URL of the same target, which lacks its password.
void url_print(const struct url *url, bool with_password, struct str *out);

struct spec {
    char *type;        // lower case
    struct kvs params; // keys in the order typed; a key may stand once only
};

int spec_parse(struct spec *spec, const char *text, struct err *err);
void spec_release(struct spec *spec);
void spec_print(const struct spec *spec, struct str *out);
