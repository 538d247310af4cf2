// Taking sessions over and giving them back. What a codec says and hears is its own business
// (postgres_wire.c, mysql_wire.c).
#include "db/wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "db/driver.h"

struct db_wire *db_wire_adopt(struct db_session *session, char *why, size_t size)
{
    const struct db_driver *driver = session->target->driver;
    const struct db_wire_codec *codec = driver->wire;

    assert(size > 0 && !session->bulk);
    if (!codec) {
        snprintf(why, size, "the engine %s has no wire codec", driver->name);
        return NULL;
    }
    if (session->lost) {
        snprintf(why, size, "the connection was lost before");
        return NULL;
    }
    struct db_wire *wire = mem_calloc(1, codec->state_size);
    wire->codec = codec;
    wire->session = session;
    wire->fd = -1;
    why[0] = '\0';
    if (codec->adopt(wire, why, size) < 0) {
        assert(why[0]);
        free(wire);
        return NULL;
    }
    assert(wire->fd >= 0);
    return wire;
}

void db_wire_release(struct db_wire *wire)
{
    if (!wire)
        return;
    wire->codec->release(wire);
    // The client library knows nothing of what was said meanwhile: only the mark keeps
    // db_disconnect from waiting for a dead server.
    if (wire->broken)
        wire->session->lost = true;
    free(wire);
}
