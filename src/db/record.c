// What a target is and how it is doing: the part of the layer that describes and counts.
#include <assert.h>
#include <stdio.h>

#include "db/driver.h"
#include "db/trace.h"

static void describe(struct db_session *session,
                     void (*slot)(struct db_session *session, struct db_facts *facts),
                     struct db_facts *facts)
{
    struct db_target *target = session->target;
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;

    *facts = (struct db_facts){.data_bytes = -1, .cache_bytes = -1, .settings = KVS_INIT};
    snprintf(facts->engine, sizeof(facts->engine), "%s", target->driver->name);
    snprintf(facts->version, sizeof(facts->version), "unknown: the server did not tell");
    if (session->lost)
        snprintf(facts->version, sizeof(facts->version), "unknown: the connection was lost");
    else
        slot(session, facts);
    if (target->trace)
        db_trace_call(target->trace, session->client, "describe", NULL, start_ns, NULL);
}

void db_describe(struct db_session *session, struct db_facts *facts)
{
    describe(session, session->target->driver->describe, facts);
}

void db_describe_place(struct db_session *session, struct db_facts *facts)
{
    const struct db_driver *driver = session->target->driver;

    describe(session, driver->describe_place ? driver->describe_place : driver->describe, facts);
}

void db_sample(struct db_session *session, struct kvs *counters)
{
    struct db_target *target = session->target;
    int64_t start_ns = target->trace ? clock_now_ns(target->options.clock) : 0;

    if (!session->lost && target->driver->sample)
        target->driver->sample(session, counters);
    if (target->trace)
        db_trace_call(target->trace, session->client, "sample", NULL, start_ns, NULL);
}

bool db_has_gauges(const struct db_target *target)
{
    return target->driver->gauges;
}

void db_gauges(struct db_session *session, struct kvs *gauges)
{
    assert(db_has_gauges(session->target));
    if (!session->lost)
        session->target->driver->gauges(session, gauges);
}
