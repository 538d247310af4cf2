// The table of volume types.
#include "volume/type.h"

const struct volume_type *const volume_types[] = {
    &volume_type_dir,   &volume_type_loop,  &volume_type_device,
    &volume_type_lvm,   &volume_type_md,    &volume_type_zfs,
    &volume_type_btrfs, &volume_type_vdisk, NULL,
};
