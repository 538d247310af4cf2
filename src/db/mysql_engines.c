// What is known of storage engines before a server is asked. Loading was measured on MariaDB 10.11
// (a million rows of pgbench_accounts): LOAD DATA against INSERTs of 1 MiB takes 0.75 of the time
// on InnoDB and 0.65 on Aria, but 2.5 times as long on MyISAM, which writes row by row then. The
// key made afterwards costs twice the time on InnoDB and Aria, and saves a fifth on MyISAM.
#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/arr.h"
#include "base/text.h"
#include "db/mysqldb.h"

#define INNODB_LOG "innodb_log_group_home_dir"

static const struct mysqldb_engine engines[] = {
    // name, transactions, row locks, key first, LOAD DATA, cache, log
    {"innodb", true, true, true, true, "innodb_buffer_pool_size", INNODB_LOG},
    {"myisam", false, false, false, false, "key_buffer_size", NULL},
    {"aria", false, false, true, true, "aria_pagecache_buffer_size", "aria_log_dir_path"},
    {"rocksdb", true, true, true, true, "rocksdb_block_cache_size", "rocksdb_wal_dir"},
    {"tokudb", true, true, true, true, "tokudb_cache_size", "tokudb_log_dir"},
    {"ndbcluster", true, true, true, true, NULL, NULL},
    {"ndb", true, true, true, true, NULL, NULL},
    {"spider", true, true, true, true, NULL, NULL},
    {"memory", false, false, true, true, NULL, NULL},
    {"heap", false, false, true, true, NULL, NULL},
    {"csv", false, false, true, true, NULL, NULL},
    {"archive", false, false, true, true, NULL, NULL},
    {"blackhole", false, false, true, true, NULL, NULL},
    {"columnstore", false, false, true, true, NULL, NULL},
    {"connect", false, false, true, false, NULL, NULL},
    {"federated", false, false, true, false, NULL, NULL},
    {"mroonga", false, false, true, true, NULL, NULL},
    {"merge", false, false, true, false, NULL, NULL},
    {"mrg_myisam", false, false, true, false, NULL, NULL},
    {"s3", false, false, true, false, NULL, NULL},
};

const struct mysqldb_engine *mysqldb_engine_find(const char *name)
{
    for (size_t i = 0; i < ARR_LEN(engines); i++)
        if (strcasecmp(engines[i].name, name) == 0)
            return &engines[i];
    return NULL;
}

int mysqldb_engine_check(const char *name, struct err *err)
{
    const char *words[ARR_LEN(engines) + 1] = {NULL};

    if (mysqldb_engine_find(name))
        return 0;
    for (size_t i = 0; i < ARR_LEN(engines); i++)
        words[i] = engines[i].name;
    if (text_near_miss(name, words))
        return text_unknown("engine", name, words, err);
    // Anything else may be a plugin of that server, but it becomes part of a statement.
    bool fits = name[0] != '\0' && strlen(name) <= 64;
    for (const char *p = name; *p; p++)
        fits = fits && (isalnum((unsigned char)*p) || *p == '_');
    return fits ? 0 : text_unknown("engine", name, words, err);
}

unsigned mysqldb_engine_caps(const struct mysqldb_engine *engine)
{
    unsigned caps = DB_CAP_PREPARED | DB_CAP_LOCK_TABLES;

    if (engine->transactions)
        caps |= DB_CAP_TRANSACTIONS;
    if (engine->row_locks)
        caps |= DB_CAP_ROW_LOCKS | DB_CAP_BULK_PARALLEL;
    if (engine->key_first)
        caps |= DB_CAP_KEY_FIRST;
    return caps;
}
