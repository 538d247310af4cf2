// The table of engines in this build. Order: as shown to users.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/driver.h"
#include "db/wire.h"

const struct db_driver *const db_drivers[] = {
    &db_driver_sqlite,
#ifdef HAVE_POSTGRES
    &db_driver_postgres,
#endif
#ifdef HAVE_MYSQL
    &db_driver_mysql,
#endif
    &db_driver_null,     NULL,
};

static void check_slot(const struct db_driver *driver, bool filled, const char *slot)
{
    if (filled)
        return;
    fprintf(stderr, "prony: the driver %s lacks %s\n", driver->name ? driver->name : "?", slot);
    abort();
}

static bool has_loop(const struct db_driver *driver, const char *loop)
{
    for (const char *const *l = driver->loops; *l; l++)
        if (strcmp(*l, loop) == 0)
            return true;
    return false;
}

static void check_codec(const struct db_driver *driver)
{
    const struct db_wire_codec *codec = driver->wire;

    check_slot(driver, has_loop(driver, "ring") == (codec != NULL), "a codec for the loop ring");
    if (!codec)
        return;
#define CHECK(slot) check_slot(driver, codec->slot != 0, "wire " #slot)
    CHECK(name);
    CHECK(adopt);
    CHECK(release);
    CHECK(encode);
    CHECK(encode_query);
    CHECK(feed);
    CHECK(row_name);
    CHECK(row_value);
#undef CHECK
    check_slot(driver, codec->state_size >= sizeof(struct db_wire), "wire state_size");
    bool joins = codec->encode_joined && codec->end_batch;
    check_slot(driver, codec->depth_max == 1 || (codec->depth_max >= DB_PIPELINE_MAX && joins),
               "wire depth_max");
}

void db_check_drivers(void)
{
    for (const struct db_driver *const *d = db_drivers; *d; d++) {
        const struct db_driver *driver = *d;
#define CHECK(slot) check_slot(driver, driver->slot != 0, #slot)
        CHECK(name);
        CHECK(schemes);
        CHECK(loops);
        CHECK(params_help);
        CHECK(open);
        CHECK(connect);
        CHECK(disconnect);
        CHECK(execute);
        CHECK(query);
        CHECK(row_name);
        CHECK(row_value);
        CHECK(cancel);
        CHECK(create_table);
        CHECK(bulk_begin);
        CHECK(bulk_row);
        CHECK(bulk_end);
        CHECK(describe);
#undef CHECK
        check_slot(driver, driver->target_size >= sizeof(struct db_target), "target_size");
        check_slot(driver, driver->session_size >= sizeof(struct db_session), "session_size");
        check_slot(driver, driver->schemes[0] && driver->loops[0], "a scheme and a loop");
        check_codec(driver);
    }
}
