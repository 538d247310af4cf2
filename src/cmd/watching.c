#include "cmd/watching.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

// The first process of a server on this machine; 0: not known. PostgreSQL's is the first line of a
// file in its data directory, where we may read that.
static int64_t find_server(const struct setup *setup)
{
    long long pid = 0;

    if (setup->places.server)
        return server_pid(setup->places.server);
    if (!setup->facts.is_local || !setup->facts.data_path[0])
        return 0;
    char *path = mem_printf("%s/postmaster.pid", setup->facts.data_path);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lld", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    free(path);
    return pid;
}

struct sampler *watching_open(const struct setup *setup, const struct storage *data,
                              const struct storage *log, bool with_engine)
{
    struct sampler_options options = {
        .data = data,
        .log = log,
        .server_pid = find_server(setup),
        .target = with_engine ? setup->target : NULL,
    };

    return sampler_open(&options);
}
