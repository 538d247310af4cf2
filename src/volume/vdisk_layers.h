// What a virtual disk holds: one layer, or two. Below lies a saved state that nothing changes;
// above it the blocks that were written since. So going back to the state is forgetting the upper
// layer, and a file can be a disk's contents without being copied. Like the rest of a disk under
// the daemon's lock; nothing here is durable or pending, that is vdisk_cache.h's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "volume/vdisk_cache.h"

struct vdisk_layers {
    int fd;        // the upper layer, or the only one; as of vdisk_media_open
    int below_fd;  // -1: there is none
    uint8_t *bits; // a bit for each block that lies in the upper layer; NULL without a lower one
    uint64_t size;
    void (*beat)(void *context); // called now and then during long work; may be NULL
    void *beat_context;
};

// One layer; takes over fd (-1: nothing yet).
void vdisk_layers_init(struct vdisk_layers *layers, int fd, uint64_t size);
void vdisk_layers_release(struct vdisk_layers *layers);

// The calls for vdisk_cache; layers must stay where they are. Bytes go to and come from the layer
// that has them.
struct vdisk_medium vdisk_layers_medium(struct vdisk_layers *layers);

// As vdisk_media_next_data.
uint64_t vdisk_layers_next_data(const struct vdisk_layers *layers, uint64_t offset, uint64_t chunk);

// Each leaves the contents as they were when it fails; negative errno.
int vdisk_layers_save(struct vdisk_layers *layers); // what it holds is the lower layer from now on
int vdisk_layers_restore(struct vdisk_layers *layers); // -ENOENT: there is no lower one
int vdisk_layers_forget(struct vdisk_layers *layers);  // one layer again, of what it holds

// Contents to and from a sparse file of the same size. read_from copies them (of what a failure
// leaves nothing is known); put_below: the file, which
// must not change and is taken over, is the lower layer.
int vdisk_layers_write_to(struct vdisk_layers *layers, int file_fd);
int vdisk_layers_read_from(struct vdisk_layers *layers, int file_fd);
int vdisk_layers_put_below(struct vdisk_layers *layers, int file_fd);
