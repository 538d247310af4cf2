// Plans of volumes over several devices, word for word. Written by hand from the manual pages
// pvcreate(8), vgcreate(8), lvcreate(8) and their counterparts, mdadm(8), zpool(8), zfs(8),
// wipefs(8).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "volume/limit.h"
#include "volume_place.h"

#define POINT      "mkdir -p -m 755 /run/prony-volumes\nmkdir -m 755 /run/prony-volumes/t\n"
#define POINT_DOWN "rmdir /run/prony-volumes/t\n"
#define LOST       "# what is there is lost:\n"
#define EXT4       "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "

static void assert_plans(void **state, const struct place_plan *plans, size_t n)
{
    const struct place *place = *state;

    if (!place->has_disks)
        skip(); // may not make device nodes here
    for (size_t i = 0; i < n; i++)
        place_assert_plan(place, &plans[i], " volume zfs-fuse ");
}

static void a_group_over_disks(void **state)
{
    static const struct place_plan plans[] = {
        {"lvm:dev={$D/sda $D/sdb},vg=vol0,size=100%,stripes=2,stripesize=8k,mkfs={-m 0},"
         "mount={noatime,nodiratime}",
         POINT LOST
         "wipefs --quiet --all $D/sda $D/sdb\n"
         "pvcreate --yes $D/sda\n"
         "pvcreate --yes $D/sdb\n"
         "vgcreate --yes vol0 $D/sda $D/sdb\n"
         "lvcreate --yes --wipesignatures y --name prony-t --extents 100%FREE --stripes 2 "
         "--stripesize 8k vol0\n" EXT4 "-m 0 /dev/vol0/prony-t\n"
         "mount -t ext4 -o noatime,nodiratime /dev/vol0/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "lvremove --yes vol0/prony-t\n"
         "sh -c 'vgremove --yes \"$0\" || ! vgs \"$0\"' vol0\n"
         "sh -c 'pvremove --yes \"$0\" || ! pvs \"$0\"' $D/sdb\n"
         "sh -c 'pvremove --yes \"$0\" || ! pvs \"$0\"' $D/sda\n" POINT_DOWN},
        {"lvm:dev=$D/sda,fs=xfs",
         POINT LOST "wipefs --quiet --all $D/sda\n"
                    "pvcreate --yes $D/sda\n"
                    "vgcreate --yes prony-t $D/sda\n"
                    "lvcreate --yes --wipesignatures y --name prony-t --size 1073741824b prony-t\n"
                    "mkfs.xfs -q /dev/prony-t/prony-t\n"
                    "mount -t xfs /dev/prony-t/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "lvremove --yes prony-t/prony-t\n"
         "sh -c 'vgremove --yes \"$0\" || ! vgs \"$0\"' prony-t\n"
         "sh -c 'pvremove --yes \"$0\" || ! pvs \"$0\"' $D/sda\n" POINT_DOWN},
    };

    assert_plans(state, plans, ARR_LEN(plans));
}

#define MD_DOWN(disks)               \
    "umount /run/prony-volumes/t\n"  \
    "mdadm --stop /dev/md/prony-t\n" \
    "wipefs --quiet --all --types linux_raid_member " disks "\n" POINT_DOWN

static void a_raid_over_disks(void **state)
{
    static const struct place_plan plans[] = {
        {"md:level=10,dev={$D/sda,$D/sdb,$D/sdc,$D/sdd},chunk=64k,layout=f2,metadata=1.0,"
         "bitmap=none,assume-clean=yes,fs=xfs",
         POINT LOST
         "wipefs --quiet --all $D/sda $D/sdb $D/sdc $D/sdd\n"
         "mdadm --create /dev/md/prony-t --run --metadata=1.0 --level=10 --raid-devices=4 "
         "--chunk=64K --layout=f2 --bitmap=none --assume-clean $D/sda $D/sdb $D/sdc $D/sdd\n"
         "mkfs.xfs -q -L prony /dev/md/prony-t\n"
         "mount -t xfs /dev/md/prony-t /run/prony-volumes/t\n",
         MD_DOWN("$D/sda $D/sdb $D/sdc $D/sdd")},
        {"md:level=1,dev={$D/sda $D/sdb},readahead=64k",
         POINT LOST
         "wipefs --quiet --all $D/sda $D/sdb\n"
         "mdadm --create /dev/md/prony-t --run --metadata=1.2 --level=1 --raid-devices=2 $D/sda "
         "$D/sdb\n"
         "sh -c 'mdadm --wait \"$0\" || true' /dev/md/prony-t\n"
         "READAHEAD=$(blockdev --getra /dev/md/prony-t)\n"
         "blockdev --setra 128 /dev/md/prony-t\n" EXT4 "-L prony /dev/md/prony-t\n"
         "mount -t ext4 /dev/md/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "blockdev --setra \"$READAHEAD\" /dev/md/prony-t\n"
         "mdadm --stop /dev/md/prony-t\n"
         "wipefs --quiet --all --types linux_raid_member $D/sda $D/sdb\n" POINT_DOWN},
        {"md:dev=$D/sda",
         POINT LOST
         "wipefs --quiet --all $D/sda\n"
         "mdadm --create /dev/md/prony-t --run --metadata=1.2 --level=0 --raid-devices=1 --force "
         "$D/sda\n" EXT4 "-L prony /dev/md/prony-t\n"
         "mount -t ext4 /dev/md/prony-t /run/prony-volumes/t\n",
         MD_DOWN("$D/sda")},
    };

    assert_plans(state, plans, ARR_LEN(plans));
}

#define POOL    "zpool create -o cachefile=none -m none "
#define DATASET "zfs create -o canmount=noauto -o mountpoint=/run/prony-volumes/t "
#define ZFS_DOWN                    \
    "umount /run/prony-volumes/t\n" \
    "sh -c 'zpool destroy \"$0\" || ! zpool list \"$0\"' prony-t\n"

static void a_pool_over_files_or_disks(void **state)
{
    static const struct place_plan plans[] = {
        {"zfs:layout=mirror,size=2G,dir=$D,log=512M,recordsize=8k,ashift=12",
         POINT "mkdir -m 700 $D/prony-t.zfs\n"
               "truncate --size 2147483648 $D/prony-t.zfs/disk1 $D/prony-t.zfs/disk2\n"
               "truncate --size 536870912 $D/prony-t.zfs/log1\n" POOL
               "-o ashift=12 prony-t mirror $D/prony-t.zfs/disk1 $D/prony-t.zfs/disk2 log "
               "$D/prony-t.zfs/log1\n" DATASET "-o recordsize=8k prony-t/data\n"
               "zfs mount prony-t/data\n",
         ZFS_DOWN "rm -rf --one-file-system $D/prony-t.zfs\n" POINT_DOWN},
        {"zfs:layout=raidz,group=3,dev={$D/sda $D/sdb $D/sdc $D/sdd $D/sde $D/sdf},atime=off,"
         "com.example:note=x",
         POINT LOST "wipefs --quiet --all $D/sda $D/sdb $D/sdc $D/sdd $D/sde $D/sdf\n" POOL
                    "-f prony-t raidz $D/sda $D/sdb $D/sdc raidz $D/sdd $D/sde $D/sdf\n" DATASET
                    "-o atime=off -o com.example:note=x prony-t/data\n"
                    "zfs mount prony-t/data\n",
         ZFS_DOWN "wipefs --quiet --all --types zfs_member,gpt,PMBR $D/sda $D/sdb $D/sdc $D/sdd "
                  "$D/sde $D/sdf\n" POINT_DOWN},
        {"zfs:dev={$D/sda $D/sdb},log={mirror $D/sdc $D/sdd},cache=$D/sde,feature@x=disabled",
         POINT LOST "wipefs --quiet --all $D/sda $D/sdb $D/sdc $D/sdd $D/sde\n" POOL
                    "-f -o feature@x=disabled prony-t $D/sda $D/sdb log mirror $D/sdc $D/sdd cache "
                    "$D/sde\n" DATASET "prony-t/data\n"
                    "zfs mount prony-t/data\n",
         ZFS_DOWN "wipefs --quiet --all --types zfs_member,gpt,PMBR $D/sda $D/sdb $D/sdc $D/sdd "
                  "$D/sde\n" POINT_DOWN},
        {"zfs:in=tank/bench,compression=off",
         POINT DATASET "-o compression=off tank/bench/prony-t\n"
                       "zfs mount tank/bench/prony-t\n",
         "umount /run/prony-volumes/t\n"
         "sh -c 'zfs destroy \"$0\" || ! zfs list \"$0\"' tank/bench/prony-t\n" POINT_DOWN},
        {"zfs:layout=mirror,disks=4,group=2,size=64M,dir=$D,cache=64M",
         POINT
         "mkdir -m 700 $D/prony-t.zfs\n"
         "truncate --size 67108864 $D/prony-t.zfs/disk1 $D/prony-t.zfs/disk2 "
         "$D/prony-t.zfs/disk3 $D/prony-t.zfs/disk4 $D/prony-t.zfs/cache1\n"
         "CACHE1=$(losetup --find --show --partscan --direct-io=on $D/prony-t.zfs/cache1)\n" POOL
         "prony-t mirror $D/prony-t.zfs/disk1 $D/prony-t.zfs/disk2 mirror "
         "$D/prony-t.zfs/disk3 $D/prony-t.zfs/disk4 cache \"$CACHE1\"\n" DATASET
         "prony-t/data\nzfs mount prony-t/data\n",
         ZFS_DOWN "losetup --detach \"$CACHE1\"\n"
                  "rm -rf --one-file-system $D/prony-t.zfs\n" POINT_DOWN},
    };

    assert_plans(state, plans, ARR_LEN(plans));
}

#define FILL                                                                                   \
    "sh -c 'exec dd if=/dev/urandom of=\"$0\" bs=1M iflag=fullblock,count_bytes oflag=direct " \
    "conv=fsync,nocreat status=none count=\"$(blockdev --getsize64 \"$0\")\"' "
#define LAZY "lazy_itable_init=0,lazy_journal_init=0"

static void a_journal_apart_and_a_device_prepared(void **state)
{
    static const struct place_plan plans[] = {
        {"lvm:vg=vol0,size=50%,journal=256M,fs=jfs",
         POINT "lvcreate --yes --wipesignatures y --name prony-t-journal --size 268435456b vol0\n"
               "lvcreate --yes --wipesignatures y --name prony-t --extents 50%FREE vol0\n"
               "mkfs.jfs -q -j /dev/vol0/prony-t-journal /dev/vol0/prony-t\n"
               "mount -t jfs /dev/vol0/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "lvremove --yes vol0/prony-t\n"
         "lvremove --yes vol0/prony-t-journal\n" POINT_DOWN},
        {"device:$D/sda,journal=$D/sdb,mkfs={-b 1024 -m 0},mount={noatime},discard=mount,"
         "precondition={discard fill:2 read}",
         POINT LOST "wipefs --quiet --all $D/sdb\n" LOST "blkdiscard $D/sda\n" LOST FILL
                    "$D/sda\n" LOST FILL "$D/sda\n"
                    "dd if=$D/sda of=/dev/null bs=1M iflag=direct status=none\n"
                    "mke2fs -q -F -O journal_dev -b 1024 $D/sdb\n" LOST "mkfs.ext4 -q -E " LAZY
                    ",nodiscard -F -L prony -J device=$D/sdb -b 1024 -m 0 $D/sda\n"
                    "mount -t ext4 -o noatime,discard $D/sda /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "wipefs --quiet --all --types jbd,xfs_external_log,jfs $D/sdb\n" POINT_DOWN},
        {"md:dev=$D/sda,fs=xfs,journal=$D/sdb,discard=no",
         POINT LOST "wipefs --quiet --all $D/sda\n"
                    "mdadm --create /dev/md/prony-t --run --metadata=1.2 --level=0 "
                    "--raid-devices=1 --force $D/sda\n" LOST "wipefs --quiet --all $D/sdb\n"
                    "mkfs.xfs -q -K -L prony -l logdev=$D/sdb /dev/md/prony-t\n"
                    "mount -t xfs -o logdev=$D/sdb /dev/md/prony-t /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "wipefs --quiet --all --types jbd,xfs_external_log,jfs $D/sdb\n"
         "mdadm --stop /dev/md/prony-t\n"
         "wipefs --quiet --all --types linux_raid_member $D/sda\n" POINT_DOWN},
        {"loop:size=64M,in=$D,journal=16M,mount={noatime},fs=xfs",
         POINT "sh -c 'umask 077; set -C; : >\"$0\"' $D/prony-t.img\n"
               "truncate --size 67108864 $D/prony-t.img\n"
               "LOOP=$(losetup --find --show --direct-io=on $D/prony-t.img)\n"
               "sh -c 'umask 077; set -C; : >\"$0\"' $D/prony-t-journal.img\n"
               "truncate --size 16777216 $D/prony-t-journal.img\n"
               "JOURNAL=$(losetup --find --show --direct-io=on $D/prony-t-journal.img)\n"
               "mkfs.xfs -q -l logdev=\"$JOURNAL\" \"$LOOP\"\n"
               "mount -t xfs -o noatime,logdev=\"$JOURNAL\" \"$LOOP\" /run/prony-volumes/t\n",
         "umount /run/prony-volumes/t\n"
         "losetup --detach \"$JOURNAL\"\n"
         "rm -f $D/prony-t-journal.img\n"
         "losetup --detach \"$LOOP\"\n"
         "rm -f $D/prony-t.img\n" POINT_DOWN},
    };

    assert_plans(state, plans, ARR_LEN(plans));
}

static void what_cannot_be_is_named(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"lvm:dev={}", "dev names no disk"},
        {"lvm:dev={$D/sda $D/sda}", "stands there twice"},
        {"lvm:vg=a,size=0%", "between 1% and 100%"},
        {"lvm:vg=a,size=x%", "between 1% and 100%"},
        {"lvm:vg=a,journal=1k", "at least 4MB"},
        {"device:$D/sda,journal=$D/sda", "stands there twice"},
        {"device:$D/sda,journal={$D/sdb $D/sdc}", "must be one device"},
        {"device:$D/sda,journal=x", "must be a size, or a device as /dev/sdX"},
        {"device:$D/sda,journal=$D/sdb,mkfs={-J size=4}", "two words for one thing"},
        {"device:$D/sda,fs=ext2,journal=$D/sdb", "ext2 cannot"},
        {"device:$D/sda,precondition={fill:0}", "1 to 16"},
        {"device:$D/sda,precondition={fil}", "must be of the words discard, fill"},
        {"device:$D/sda,discard=x", "must be no, mkfs or mount"},
        {"md:level=5", "name the disks"},
        {"md:level=5,dev=$D/sda", "level=5 takes at least 2 disks, not 1"},
        {"md:level=6,dev={$D/sda $D/sdb $D/sdc}", "level=6 takes at least 4 disks, not 3"},
        {"md:level=3,dev=$D/sda", "must be 0, 1, 4, 5, 6, 10 or linear"},
        {"md:dev=$D/sda,chunk=5000", "chunk=5000: must be a multiple of 4kB"},
        {"md:dev=$D/sda,chunk=0", "chunk=0: must be a multiple of 4kB"},
        {"md:level=1,dev={$D/sda $D/sdb},chunk=64k", "level 1 has none"},
        {"md:level=0,dev={$D/sda $D/sdb},layout=f2", "layout is of level 5, 6 or 10"},
        {"md:dev=$D/sda,metadata=2", "metadata=2: must be 0.90, 1.0, 1.1 or 1.2"},
        {"md:dev=$D/nowhere", "No such file"},
        {"md:dev=$D/zfs", "is not a block device"},
        {"zfs:layuot=mirror", "did you mean layout?"},
        {"zfs:size=10M", "at least 64MB"},
        {"zfs:disks=0", "disks=0: must be a whole number between 1 and"},
        {"zfs:layout=mirror,disks=1", "takes at least 2 disks, not 1"},
        {"zfs:layout=raidz2,dev={$D/sda $D/sdb}", "takes at least 3 disks, not 2"},
        {"zfs:layout=mirror,disks=4,group=3", "group=3: must divide the 4 disks"},
        {"zfs:group=2", "group is of mirrors and raidz"},
        {"zfs:dev=$D/sda,size=1G", "size and disks are of files"},
        {"zfs:log={mirror 64M}", "names too few devices"},
        {"zfs:cache={mirror 64M 64M}", "must be devices, as /dev/sdX, or the size of a file"},
        {"zfs:log=1M", "log=1M: must be a multiple of 4kB, at least 64MB"},
        {"zfs:dev=$D/sda,log=$D/sda", "stands there twice"},
        {"zfs:in=tank,log=64M", "log is of a pool that is made"},
        {"zfs:in=tank,ashift=12", "ashift is a property of the pool"},
        {"zfs:in=tank/", "in=tank/ is no name of a pool or dataset"},
        {"zfs:in=-f", "in=-f is no name of a pool or dataset"},
        {"zfs:mountpoint=/x", "mountpoint is for prony to set"},
        {"zfs:cachefile=/x", "cachefile is for prony to set"},
    };
    const struct place *place = *state;

    if (!place->has_disks || geteuid() != 0)
        skip();
    for (size_t i = 0; i < ARR_LEN(cases); i++)
        place_assert_refused(place, cases[i].text, cases[i].says);
}

// A property that looks like one of our keys would be taken for a slip.
static void properties_are_not_taken_for_slips(void **state)
{
    static const char *const properties[] = {
        "aclinherit",
        "aclmode",
        "acltype",
        "atime",
        "casesensitivity",
        "checksum",
        "compression",
        "context",
        "copies",
        "dedup",
        "devices",
        "dnodesize",
        "encryption",
        "exec",
        "filesystem_limit",
        "keyformat",
        "keylocation",
        "logbias",
        "mlslabel",
        "nbmand",
        "normalization",
        "overlay",
        "prefetch",
        "primarycache",
        "quota",
        "readonly",
        "recordsize",
        "refquota",
        "refreservation",
        "relatime",
        "reservation",
        "secondarycache",
        "setuid",
        "sharenfs",
        "sharesmb",
        "snapdev",
        "snapdir",
        "special_small_blocks",
        "sync",
        "utf8only",
        "version",
        "vscan",
        "xattr",
        "zoned",
        "ashift",
        "autoexpand",
        "autoreplace",
        "autotrim",
        "comment",
        "compatibility",
        "delegation",
        "failmode",
        "listsnapshots",
        "multihost",
    };

    for (size_t i = 0; i < ARR_LEN(properties); i++) {
        char *text = mem_printf("zfs:dir=/nowhere,%s=x", properties[i]);
        place_assert_refused(*state, text, "dir=/nowhere: No such file");
        free(text);
    }
}

static void limits_are_of_a_group_of_its_own(void **state)
{
    static const struct volume_type type = {.name = "loop"};
    static const char up[] =
        "CONTROLLERS=$(cat /cg/cgroup.subtree_control)\n"
        "sh -c 'grep -qw io \"$0\" || echo +io >\"$0\"' /cg/cgroup.subtree_control\n"
        "mkdir /cg/prony-t\n"
        "sh -c 'device=$(readlink -f \"$1\") && echo \"$(cat "
        "\"/sys/class/block/${device##*/}/dev\") $2\" >\"$0/io.max\"' /cg/prony-t "
        "/dev/sda 'rbps=20971520 wiops=100'\n"
        "sh -c 'echo \"$PPID\" >\"$0/cgroup.procs\"' /cg/prony-t\n";
    static const char down[] = "sh -c '[ -d \"$0\" ] || exit 0\n"
                               "for pid in $(cat \"$0/cgroup.procs\"); do\n"
                               "    echo \"$pid\" >\"$1/cgroup.procs\" 2>/dev/null\n"
                               "done\n"
                               "rmdir \"$0\"' /cg/prony-t /cg/user.slice\n"
                               "sh -c 'case \" $1 \" in *'\\'' io '\\''*) exit 0 ;; esac\n"
                               "for group in \"${0%/*}\"/prony-*/; do\n"
                               "    [ -d \"$group\" ] && exit 0\n"
                               "done\n"
                               "echo -io >\"$0\"' "
                               "/cg/cgroup.subtree_control \"$CONTROLLERS\"\n";
    struct volume volume = {.type = &type, .name = (char *)"t", .plan = {.lock_fd = -1}};
    struct str out = STR_INIT;
    struct err err = ERR_INIT;

    (void)state;
    kvs_add(&volume.spec.params, "limit", "rbps=20M wiops=100");
    assert_int_equal(limit_plan_in(&volume.plan, &volume, "/dev/sda", "/cg", "/user.slice", &err),
                     0);
    plan_print_up(&volume.plan, &out);
    assert_string_equal(out.buf, up);
    str_clear(&out);
    plan_print_down(&volume.plan, &out);
    assert_string_equal(out.buf, down);
    static const char *const bad[] = {"", "rbps", "rbps=x", "rbps=0", "riops=1k", "bps=1M"};
    for (size_t i = 0; i < ARR_LEN(bad); i++) {
        kvs_set(&volume.spec.params, "limit", bad[i]);
        assert_int_equal(limit_plan_in(&volume.plan, &volume, "/dev/sda", "/cg", "/", &err), -1);
        assert_int_equal(err.kind, ERR_USAGE);
    }
    volume.wish.stays = true;
    assert_int_equal(limit_plan(&volume.plan, &volume, "/dev/sda", &err), -1);
    assert_non_null(strstr(err.text, "limit is of the processes of a run"));
    kvs_release(&volume.spec.params);
    plan_release(&volume.plan);
    str_release(&out);
}

static void a_missing_program_names_its_package(void **state)
{
    static const struct {
        const char *program, *text, *says;
    } cases[] = {
        {"lvcreate", "lvm:vg=a", "install the package lvm2"},
        {"mdadm", "md:dev=$D/sda", "install the package mdadm"},
        {"zpool", "zfs:size=64M", "install the package zfs-fuse, or zfsutils-linux"},
    };
    const struct place *place = *state;

    if (!place->has_disks)
        skip();
    for (size_t i = 0; i < ARR_LEN(cases); i++) {
        char *file = mem_printf("%s/%s", place->dir, cases[i].program);
        unlink(file);
        place_assert_refused(place, cases[i].text, cases[i].says);
        free(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_over_disks, place_make, place_clear),
        cmocka_unit_test_setup_teardown(a_raid_over_disks, place_make, place_clear),
        cmocka_unit_test_setup_teardown(a_pool_over_files_or_disks, place_make, place_clear),
        cmocka_unit_test_setup_teardown(a_journal_apart_and_a_device_prepared, place_make,
                                        place_clear),
        cmocka_unit_test(limits_are_of_a_group_of_its_own),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_named, place_make, place_clear),
        cmocka_unit_test_setup_teardown(properties_are_not_taken_for_slips, place_make,
                                        place_clear),
        cmocka_unit_test_setup_teardown(a_missing_program_names_its_package, place_make,
                                        place_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
