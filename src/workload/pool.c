// The memory behind a compiled program.
#include <stdlib.h>

#include "base/arr.h"
#include "base/mem.h"
#include "workload/program.h"

struct expr_pool *pool_new(void)
{
    struct expr_pool *pool = mem_calloc(1, sizeof(*pool));

    pool->client_id_variable = -1;
    return pool;
}

void *pool_keep(struct expr_pool *pool, void *memory)
{
    return *ARR_PUSH(pool->kept, pool->n_kept, pool->cap_kept) = memory;
}

char *pool_text(struct expr_pool *pool, const char *text, size_t len)
{
    return pool_keep(pool, mem_strndup(text, len));
}

void pool_free(struct expr_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->n_kept; i++)
        free(pool->kept[i]);
    free(pool->kept);
    free(pool->code);
    free(pool->constants);
    free(pool->params);
    free(pool->assigned);
    free(pool);
}
