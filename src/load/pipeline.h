// What one client sends without waiting for the answers before: statements in batches, each with
// one end (db/wire.h, encode_joined). Where there is a pipeline at all (client.pipeline), the
// client asks it about everything its script wants (pipeline.c):
//
//   --pipeline auto  from BEGIN on statements are joined, up to and with COMMIT, ROLLBACK or one
//                    with \gset; before whatever else needs the answers (\sleep, the end) the
//                    batch is ended. One end makes a batch one implicit transaction where there is
//                    no explicit one: so statements outside BEGIN ... COMMIT are never joined.
//   a section        of the script, \startpipeline to \endpipeline, is joined as it stands
//
// Nothing leaves before a batch has its end. Then all of it goes in one piece, and every answer is
// awaited before the next statement: only the batches of one section (\syncpipeline) are out side
// by side. An error leaves out the rest of its batch, as db/wire.h says; the first one of what is
// out decides what becomes of the try, and later ones, its consequences, are not counted.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/db.h"
#include "workload/vm.h"

enum {
    PIPELINE_LAST = 1 << 0,    // of its batch
    PIPELINE_COMMITS = 1 << 1, // something is durable once it is answered well
    PIPELINE_WRITES = 1 << 2,  // outside BEGIN ... COMMIT: durable once its batch has ended well
};

struct pipeline {
    int n, next;      // statements that are joined or out; of these answered or left out
    bool in_section;  // of the script
    bool in_block;    // with n: the session will be inside BEGIN ... COMMIT after these
    bool has_written; // a PIPELINE_WRITES of the batch being answered was answered well
    bool is_cut;      // the run had to end and one of these was cancelled by ourselves
    bool has_want;
    enum vm_want want; // of the script, to be heeded when all is answered
    unsigned char flags[DB_PIPELINE_MAX];
    int32_t statements[DB_PIPELINE_MAX]; // index
};

static inline bool pipeline_is_ended(const struct pipeline *p)
{
    return p->n == 0 || (p->flags[p->n - 1] & PIPELINE_LAST);
}

static inline void pipeline_clear(struct pipeline *p)
{
    p->n = p->next = 0;
    p->in_section = p->has_written = p->is_cut = p->has_want = false;
}
