// The table of measurements, in the order of enum probe_kind.
#include "volume/probe_internal.h"

const struct probe_method probe_methods[PROBE_KINDS] = {
    [PROBE_FLUSH_1] = {"log_flush_1", "log flush, 1 writer",
                       "8 KiB written into a log file of 16 MiB that was written before, round and "
                       "round, as databases recycle theirs; fdatasync after each",
                       LOG_BLOCK, .write = true, .depth = 1, .first = 64, .run = probe_log_run},
    [PROBE_FLUSH_8] = {"log_flush_8", "log flush, 8 writers",
                       "group commit: each of 8 writers writes its 8 KiB into the same file and "
                       "waits for a fdatasync that began after its write had returned; whoever "
                       "finds none running does one for all. An operation is a write made durable",
                       LOG_BLOCK, .write = true, .depth = 8, .first = 256, .run = probe_log_run},
    [PROBE_APPEND] = {"log_append_1", "log append, growing file",
                      "8 KiB written at the end of a file that was empty, so that its size changes "
                      "each time; fdatasync after each",
                      LOG_BLOCK, .write = true, .depth = 1, .first = 64, .run = probe_log_run},
    [PROBE_READ_1] = {"random_read_1", "random read, 1 at a time",
                      "8 KiB at random places of the data file", LOG_BLOCK, .random = true,
                      .depth = 1, .run = probe_blocks_run},
    [PROBE_READ_32] = {"random_read_32", "random read, 32 at once", "the same with 32 under way",
                       LOG_BLOCK, .random = true, .depth = 32, .run = probe_blocks_run},
    [PROBE_WRITE_1] = {"random_write_1", "random write, 1 at a time",
                       "8 KiB at random places of the data file; one fdatasync at the end of each "
                       "slice, inside its time",
                       LOG_BLOCK, .write = true, .random = true, .depth = 1, .first = 256,
                       .run = probe_blocks_run},
    [PROBE_WRITE_32] = {"random_write_32", "random write, 32 at once", "the same with 32 under way",
                        LOG_BLOCK, .write = true, .random = true, .depth = 32, .first = 256,
                        .run = probe_blocks_run},
    [PROBE_READ_ALONG] = {"sequential_read", "sequential read",
                          "1 MiB after 1 MiB of the data file, 4 under way", ALONG_BLOCK,
                          .by_bytes = true, .depth = 4, .run = probe_blocks_run},
    [PROBE_WRITE_ALONG] = {"sequential_write", "sequential write",
                           "1 MiB after 1 MiB over the data file, 4 under way; one fdatasync at "
                           "the end of each slice, inside its time",
                           ALONG_BLOCK, .by_bytes = true, .write = true, .depth = 4, .first = 16,
                           .run = probe_blocks_run},
    [PROBE_CREATE] = {"file_create", "file creation",
                      "empty files made and closed in one directory, none of them synced; one "
                      "fsync of the directory at the end of each slice, inside its time",
                      0, .write = true, .depth = 1, .first = 256, .run = probe_create_run},
};
