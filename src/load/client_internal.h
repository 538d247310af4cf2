// Between client.c, client_outcome.c and pipeline.c.
#pragma once

#include "load/client.h"

// The present transaction is over: counts, records, logs it. Leaves CLIENT_AFTER.
void client_count(struct client *c, enum txlog_outcome outcome, int64_t now_ns);

// One more try of the present transaction begins.
void client_count_retry(struct client *c);

// One failed try, loss or refused connection. where may be NULL.
void client_count_error(struct client *c, enum db_class class, const struct statement_origin *where,
                        const struct db_result *result, int64_t now_ns);

// Whether a statement of this kind, sent now, makes something durable if it succeeds.
bool client_is_durable(const struct client *c, enum db_kind kind);

void client_script_ended(struct client *c, int64_t now_ns);
void client_script_failed(struct client *c, const char *error, int64_t now_ns);

// Nothing but errors so far, or a full disk: going on makes no sense.
bool client_is_hopeless(const struct client *c);

void client_session_lost(struct client *c, int64_t now_ns);

// Does what the script wants; of VM_SQL the plain kind.
enum client_ask client_heed(struct client *c, enum vm_want want, int64_t now_ns);

// The run had to end in the middle of a transaction.
enum client_ask client_cut_short(struct client *c, int64_t now_ns);

// ---- answers

void client_record_statement(struct client *c, int statement, const struct db_result *result,
                             int64_t now_ns);
void client_answer_lost(struct client *c, int statement, const struct db_result *result,
                        int64_t now_ns);
// The run has to end and this statement was given up by ourselves.
void client_answer_cut(struct client *c, enum db_class class, int64_t now_ns);
void client_fail_try(struct client *c, enum db_class class, int64_t now_ns);

// ---- pipeline.c

enum client_ask client_pipe(struct client *c, enum vm_want want, int64_t now_ns);
enum client_ask client_state_flush(struct client *c, int64_t now_ns);
enum client_ask client_state_heed(struct client *c, int64_t now_ns);
void client_pipe_answered(struct client *c, const struct db_result *result, int64_t now_ns);
