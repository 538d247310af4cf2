// PostgreSQL's wire codec: taking libpq's session over, and the fields of the kept row. The rest is
// listed in db/postgres_wire.h.
#include "db/postgres_wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "db/postgres.h"
#include "db/wire_tls.h"

static_assert(sizeof(struct postgres_wire) <= 2048, "thousands of sessions have one each");
static_assert(offsetof(struct postgres_wire, open) < DB_WIRE_NEAR, "fetched ahead");
static_assert((POSTGRES_WIRE_DEPTH & (POSTGRES_WIRE_DEPTH - 1)) == 0, "a ring by remainder");

void postgres_wire_begin(struct postgres_wire *w, enum db_protocol protocol, int n_statements)
{
    assert(n_statements >= 0 && !w->handles);
    w->protocol = protocol;
    w->n_statements = n_statements;
    w->handles = mem_calloc((size_t)n_statements + 1, 1);
    str_init(&w->pending);
    str_init(&w->row.bytes);
}

void postgres_wire_end(struct postgres_wire *w)
{
    free(w->handles);
    w->handles = NULL;
    str_release(&w->pending);
    postgres_row_release(&w->row);
}

// What the codec cannot speak, or libpq is in the middle of; NULL when there is none.
static const char *find_obstacle(PGconn *conn)
{
    if (PQstatus(conn) != CONNECTION_OK || PQsocket(conn) < 0)
        return "the connection is not open";
    if (PQprotocolVersion(conn) != 3)
        return "the server does not speak version 3 of the protocol";
    if (PQgssEncInUse(conn))
        return "the connection is encrypted by GSSAPI";
    if (PQtransactionStatus(conn) != PQTRANS_IDLE)
        return "the connection is inside a transaction";
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return "the connection is in libpq's pipeline mode";
    return NULL;
}

static int take_transport(struct postgres_wire *w, PGconn *conn, char *why, size_t size)
{
    void *ssl = NULL;

    w->base.fd = PQsocket(conn);
    w->flags_before = fcntl(w->base.fd, F_GETFL);
    if (w->flags_before < 0 || (!(w->flags_before & O_NONBLOCK) &&
                                fcntl(w->base.fd, F_SETFL, w->flags_before | O_NONBLOCK) < 0)) {
        snprintf(why, size, "fcntl: %s", strerror(errno));
        return -1;
    }
    if (!PQsslInUse(conn))
        return 0;
    ssl = PQsslStruct(conn, "OpenSSL");
    if (!ssl)
        snprintf(why, size, "the connection uses TLS by another library than OpenSSL");
    else
        w->base.tls = db_wire_tls_begin(ssl, why, size);
    return w->base.tls ? 0 : -1;
}

static void give_transport_back(struct postgres_wire *w)
{
    db_wire_tls_end(w->base.tls);
    w->base.tls = NULL;
    if (w->flags_before >= 0 && !(w->flags_before & O_NONBLOCK))
        (void)fcntl(w->base.fd, F_SETFL, w->flags_before);
}

static int adopt(struct db_wire *wire, char *why, size_t size)
{
    struct postgres_wire *w = postgres_wire(wire);
    struct postgres_session *s = postgres_session(wire->session);
    const struct db_open_options *options = &wire->session->target->options;
    const char *obstacle = find_obstacle(s->conn);

    if (obstacle) {
        snprintf(why, size, "%s", obstacle);
        return -1;
    }
    if (take_transport(w, s->conn, why, size) < 0) {
        give_transport_back(w);
        return -1;
    }
    postgres_wire_begin(w, options->protocol, options->n_statements);
    w->cancel = s->cancel;
    memcpy(w->loss, s->loss, sizeof(w->loss));
    for (int i = 0; s->prepared && i < s->n_statements && i < w->n_statements; i++)
        w->handles[i] = s->prepared[i] ? HANDLE_READY : HANDLE_NONE;
    return 0;
}

static void release(struct db_wire *wire)
{
    struct postgres_wire *w = postgres_wire(wire);
    struct postgres_session *s = postgres_session(wire->session);

    if (w->n_open > 0) {
        wire->broken = true;
        postgres_cancel_detach(w->cancel);
        postgres_cancel_idle(w->cancel);
    }
    // Should libpq speak again, it knows what it must still prepare.
    for (int i = 0; s->prepared && i < s->n_statements && i < w->n_statements; i++)
        s->prepared[i] = w->handles[i] == HANDLE_READY;
    give_transport_back(w);
    postgres_wire_end(w);
}

static const char *row_name(struct db_wire *wire, int i)
{
    const struct postgres_row *row = &postgres_wire(wire)->row;

    assert(i >= 0 && i < row->n);
    return row->bytes.buf + row->columns[i].name;
}

static struct db_value row_value(struct db_wire *wire, int i)
{
    const struct postgres_row *row = &postgres_wire(wire)->row;

    assert(i >= 0 && i < row->n);
    if (row->columns[i].len < 0)
        return (struct db_value){.type = DB_NULL};
    return postgres_value(row->columns[i].type, row->bytes.buf + row->columns[i].value,
                          row->columns[i].len);
}

static void prefetch(const struct db_wire *wire)
{
    const struct postgres_wire *w = (const struct postgres_wire *)wire;

    mem_prefetch(w->handles, 64);
    mem_prefetch(&w->row, sizeof(w->row));
    if (w->cancel) // none in tests
        postgres_cancel_prefetch(w->cancel);
}

const struct db_wire_codec postgres_wire_codec = {
    .name = "postgres",
    .state_size = sizeof(struct postgres_wire),
    .adopt = adopt,
    .release = release,
    .encode = postgres_wire_encode,
    .encode_joined = postgres_wire_encode_joined,
    .end_batch = postgres_wire_end_batch,
    .encode_query = postgres_wire_encode_query,
    .feed = postgres_wire_feed,
    .row_name = row_name,
    .row_value = row_value,
    .prefetch = prefetch,
    .depth_max = POSTGRES_WIRE_DEPTH,
};
