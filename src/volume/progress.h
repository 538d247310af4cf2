// How far a command is that writes or reads a whole block device: by the kernel's own count.
#pragma once

struct volume_wish;
struct progress;

// NULL where the device cannot be looked at. Freed by free(). wish must outlive it.
struct progress *progress_begin(const char *device, const struct volume_wish *wish);

// Tells wish.progress, when some seconds have gone since the last time.
void progress_tell(struct progress *progress);
