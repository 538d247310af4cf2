"""`prony volume`, and volumes under the database that prony makes: built as planned, refused where
they should be. That they are undone whatever happens: test_volume_ends.py."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from harness import volumes
from harness.place import wait_until
# loops_here and name are fixtures
from harness.volumes import (SMALL, down, find_program, left, loops_here, name, point,
                             sanitized_once, up)  # noqa: F401

SIZES = {"ext2": "64M", "ext3": "64M", "ext4": "64M", "xfs": "320M", "btrfs": "128M"}

# Root without the right to mount.
MERE_USER = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


# ---- plan and up

def plan(prony, name, text):
    """The commands of up, and those of down."""
    script = prony.good("volume", "plan", f"{name}={text}").out
    first, second = script.split("# down\n")
    return first, second


@pytest.mark.parametrize("text", [
    "loop:size=64M,mkfs={-O ^has_journal -L hello},mount={noatime,nodiratime}",
    "loop:size=64M,fs=ext3,alloc=full",
    "dir:.",
])
def test_up_does_what_plan_says(prony, name, text):
    planned, _ = plan(prony, name, text)
    result = up(prony, name, text)
    path = point(name) if text.startswith("loop") else prony.dir
    assert result.out == f"{planned}{name} is at {path}\n"
    down(prony, name)


@pytest.mark.unsanitized
@pytest.mark.parametrize("fs", SIZES)
def test_a_plan_is_a_script_that_does_the_same(prony, name, fs):
    if not find_program(f"mkfs.{fs}"):
        pytest.skip(f"mkfs.{fs} is not installed")
    text = f"loop:size={SIZES[fs]},fs={fs},mount={{noatime}}"
    planned, undone = plan(prony, name, text)
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:{volumes.SBIN}"}
    script = f"set -e\n{planned}cat /proc/self/mountinfo\n{undone}"
    by_hand = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False,
                             env=env)
    assert by_hand.returncode == 0, by_hand.stderr
    line = next(line for line in by_hand.stdout.splitlines() if f" {point(name)} " in line)
    up(prony, name, text)
    kind, options = volumes.mounts()[str(point(name))]
    assert kind == fs and "noatime" in options
    words = line.split(" ")
    assert words[words.index("-") + 1] == kind
    assert set(words[5].split(",")) | set(words[-1].split(",")) == options
    down(prony, name)


def test_plan_makes_nothing(prony, name):
    plan(prony, name, f"loop:{SMALL}")
    assert not left(prony) and not point(name).exists()


def test_what_a_volume_is_made_of(prony, name):
    up(prony, name, f"loop:{SMALL},fs=ext4,mkfs={{-O ^has_journal}},mount={{noatime,nodev}}")
    image = prony.dir / f"prony-{name}.img"
    assert image.stat().st_size == 64 << 20 and image.stat().st_mode & 0o777 == 0o600
    assert image.stat().st_blocks * 512 < 32 << 20  # sparse
    (device, file), = volumes.loops_on(prony.dir).items()
    assert file == str(image)
    assert Path("/sys/block", device[5:], "loop/dio").read_text(encoding="ascii").strip() == "1"
    kind, options = volumes.mounts()[str(point(name))]
    assert kind == "ext4" and {"noatime", "nodev"} <= options
    assert point(name).stat().st_mode & 0o777 == 0o755
    said = subprocess.run([find_program("dumpe2fs"), "-h", device], capture_output=True, text=True,
                          check=True).stdout
    assert "has_journal" not in said
    down(prony, name)


def settings(device):
    queue = Path("/sys/class/block", Path(device).name, "queue")
    scheduler = re.search(r"\[(.*)\]", queue.joinpath("scheduler").read_text(encoding="ascii"))
    ahead = subprocess.run([find_program("blockdev"), "--getra", device], capture_output=True,
                           text=True, check=True)
    return (scheduler.group(1) if scheduler else None,
            queue.joinpath("nr_requests").read_text(encoding="ascii").strip(), ahead.stdout.strip())


def test_settings_of_the_device_are_made_and_put_back(prony, name, device):
    before = settings(device)
    if before[0] is None:
        pytest.skip("loop devices have no scheduler here")
    other = "none" if before[0] != "none" else "mq-deadline"
    result = prony.good("volume", "up", f"{name}=device:{device},scheduler={other},queue=32,"
                                        "readahead=64k", "--destroy", device)
    assert settings(device) == (other, "32", "128"), result
    down(prony, name)
    assert settings(device) == before
    up(prony, name, f"loop:{SMALL},readahead=0")
    mine = next(d for d, file in volumes.loops_on(prony.dir).items() if file.endswith(".img"))
    assert settings(mine)[2] == "0"
    down(prony, name)
    result = prony.run("volume", "up", f"{name}=device:{device},scheduler=nosuch", "--destroy",
                       device)
    assert result.status == 1 and "nosuch" in result.err, result
    assert settings(device) == before


@pytest.mark.unsanitized
def test_a_full_file_takes_its_space_at_once(prony, name):
    up(prony, name, "loop:size=64M,alloc=full,fs=ext2")
    assert (prony.dir / f"prony-{name}.img").stat().st_blocks * 512 >= 64 << 20
    down(prony, name)


def test_file_and_mount_point_lie_where_the_user_says(prony, name):
    (prony.dir / "a dir").mkdir()
    up(prony, name, f"loop:{SMALL},in={{a dir}},at={{a dir/here}}")
    assert (prony.dir / "a dir" / f"prony-{name}.img").exists()
    assert str(prony.dir / "a dir" / "here") in volumes.mounts()
    down(prony, name)
    assert not list((prony.dir / "a dir").iterdir())


@pytest.mark.parametrize("fs, text", [
    ("ext4", "size=64M,fs=ext4,journal=16M"),
    ("ext3", "size=64M,fs=ext3,journal=16M,mkfs={-b 1024},mount={data=journal}"),
    ("xfs", "size=320M,fs=xfs,journal=64M,mount={noatime}"),
])
def test_a_journal_on_a_device_of_its_own(prony, name, fs, text):
    up(prony, name, f"loop:{text}")
    loops = {Path(file).name: device for device, file in volumes.loops_on(prony.dir).items()}
    journal = loops[f"prony-{name}-journal.img"]
    kind, options = volumes.mounts()[str(point(name))]
    assert kind == fs
    if fs == "xfs":
        assert {f"logdev={journal}", "noatime"} <= options
    else:
        assert signature(journal)["TYPE"] == "jbd"
        said = subprocess.run([find_program("dumpe2fs"), "-h", loops[f"prony-{name}.img"]],
                              capture_output=True, text=True, check=True).stdout
        assert f"Journal UUID:             {signature(journal)['LOGUUID']}" in said
    down(prony, name)
    assert not list(prony.dir.glob("prony-*"))


def test_a_device_is_prepared_as_asked(prony, name):
    result = up(prony, name, f"loop:{SMALL},precondition={{discard fill read}}")
    assert [line.split()[0] for line in result.out.splitlines()][5:9] == [
        "blkdiscard", "sh", "dd", "mkfs.ext4"]
    image = prony.dir / f"prony-{name}.img"
    assert image.stat().st_blocks * 512 >= 64 << 20  # filled, and mkfs has discarded nothing
    down(prony, name)


def test_limits_need_their_controller_and_are_of_a_run(prony, name):
    prony.refused("volume", "up", f"{name}=loop:{SMALL},limit={{rbps=1M}}",
                  says="limit is of the processes of a run")
    controllers = [path.read_text(encoding="ascii").split() for path in
                   (Path("/sys/fs/cgroup/cgroup.controllers"),
                    Path("/sys/fs/cgroup/unified/cgroup.controllers")) if path.exists()]
    if any("io" in words for words in controllers):
        pytest.skip("the controller is here, and whether groups may be made is the machine's matter")
    prony.refused("run", f"sqlite:?data=loop:{SMALL},limit={{rbps=1M}}", "tpcb", status=4,
                  says=["io controller of cgroup v2", "not here"])


@pytest.mark.unsanitized
def test_quiet_is_quiet(prony, name):
    assert up(prony, name, f"loop:{SMALL}").out
    assert prony.good("volume", "down", "-q", name).out == ""
    assert prony.good("volume", "up", "-q", f"{name}=loop:{SMALL}").out == ""
    down(prony, name)


# ---- kept ones

def test_list_shows_what_is_up(prony, name):
    assert prony.good("volume", "list").out == "no volume is up\n"
    up(prony, name, f"loop:{SMALL},mount={{noatime}}")
    lines = prony.good("volume", "list").out.splitlines()
    assert len(lines) == 2
    assert lines[1].split() == [name, str(point(name)), f"loop:{SMALL},mount=noatime"]
    down(prony, name)
    assert prony.good("volume", "list").out == "no volume is up\n"


def test_list_and_plan_are_told_as_json(prony, name):
    text = f"loop:{SMALL},mount={{noatime}}"
    plan_of = json.loads(prony.good("volume", "plan", "--json", f"{name}={text}").out)
    up_script, down_script = plan(prony, name, text)
    assert plan_of["up"] == up_script.splitlines()
    assert plan_of["down"] == down_script.splitlines()
    assert (plan_of["name"], plan_of["path"], plan_of["destroys"]) == (name, str(point(name)), [])
    assert json.loads(prony.good("volume", "list", "--json").out) == []
    up(prony, name, text)
    shown = f"loop:{SMALL},mount=noatime"
    assert plan_of["volume"] == shown
    assert json.loads(prony.good("volume", "list", "--json").out) == [
        {"name": name, "volume": shown, "path": str(point(name)), "here": True}]
    down(prony, name)
    prony.refused("volume", "types", "--json", says="--json is of prony volume plan and list")


def test_a_name_is_up_once(prony, name):
    up(prony, name, f"loop:{SMALL}")
    prony.refused("volume", "up", f"{name}=loop:{SMALL}", says=[name, "already"])
    prony.refused("volume", "up", f"{name}=loop:{SMALL},in=/var/tmp", says=[name, "already"])
    assert str(point(name)) in volumes.mounts()
    down(prony, name)
    prony.refused("volume", "down", name, says=f"there is no {name}")


def test_a_registry_name_that_is_taken_undoes_the_second(prony, name):
    up(prony, name, "dir:.")
    (prony.dir / "other").mkdir()
    result = prony.run("volume", "up", f"{name}=dir:./other")
    assert result.status == 2 and f"there is a {name} already" in result.err, result
    down(prony, name)


def test_a_kept_volume_is_used_by_name(prony, name):
    up(prony, name, f"loop:{SMALL}")
    doc = prony.measure(f"sqlite:?data=@{name}", "tpcb", "-s", "1", "-t", "20", "-c", "2").json
    assert doc["environment"]["volume.data.text"] == f"loop:{SMALL}"
    assert doc["environment"]["volume.data.path"] == str(point(name))
    assert doc["environment"]["data.filesystem"] == "ext4"
    assert str(point(name)) in volumes.mounts()  # it stays
    assert [path.name for path in point(name).iterdir()] == ["lost+found"]
    # A file of one's own in it outlives the run, too.
    target = f"sqlite:mine.db?data=@{name}"
    prony.good("init", target, "tpcb", "-s", "1")
    assert (point(name) / "mine.db").exists()
    prony.measure(target, "tpcb", "-t", "20", "-c", "2")
    down(prony, name)


@pytest.mark.unsanitized
def test_what_is_busy_stays_and_can_be_taken_down_later(prony, name):
    up(prony, name, f"loop:{SMALL}")
    with open(point(name) / "file", "w", encoding="ascii"):
        result = prony.run("volume", "down", name)
        assert result.status == 1 and "busy" in result.err and name in result.err, result
        assert str(point(name)) in volumes.mounts()
        assert name in prony.good("volume", "list").out
        image = prony.dir / f"prony-{name}.img"  # and what is below it
        assert image.exists() and list(volumes.loops_on(prony.dir).values()) == [str(image)]
    down(prony, name)


def test_a_subvolume_of_a_btrfs_that_is_there(prony, name):
    if not find_program("mkfs.btrfs"):
        pytest.skip("mkfs.btrfs is not installed")
    up(prony, name, "loop:size=128M,fs=btrfs")
    text = f"btrfs:in={point(name)},datacow=no"
    planned, undone = plan(prony, f"{name}-s", text)
    inner = point(name) / f"prony-{name}-s"
    assert planned == f"btrfs subvolume create {inner}\nchattr +C {inner}\n"
    assert undone == f"btrfs subvolume delete {inner}\n"
    doc = prony.measure(f"sqlite:?data={text}", "tpcb", "-s", "1", "-t", "5").json
    assert doc["environment"]["data.filesystem"] == "btrfs"
    assert not list(point(name).iterdir())
    up(prony, f"{name}-s", text)
    (inner / "file").write_text("x", encoding="ascii")
    prony.refused("volume", "down", name, says=f"volume {name}-s lies in volume {name}")
    down(prony, f"{name}-s")
    assert not list(point(name).iterdir())
    down(prony, name)


def test_one_prony_at_a_time(prony, name):
    up(prony, name, f"loop:{SMALL}")
    run = prony.start("run", f"sqlite:?data=@{name}", "tpcb", "-s", "1", "-c", "1", "-T", "60s")
    assert wait_until(lambda: list(point(name).glob(".prony-*.db")), 30), run.peek()
    for args in (("run", f"sqlite:?data=@{name}", "tpcb", "-s", "1", "-t", "1"),
                 ("volume", "down", name)):
        prony.refused(*args, says="in use by another prony")
    run.interrupt()
    run.wait()
    down(prony, name)


@pytest.mark.anywhere
def test_a_directory_is_used_by_one_prony_at_a_time(prony):
    (prony.dir / "d").mkdir()
    run = prony.start("run", "sqlite:?data=dir:./d", "tpcb", "-s", "1", "-c", "1", "-T", "60s")
    assert wait_until(lambda: list((prony.dir / "d").glob(".prony-*.db")), 30), run.peek()
    result = prony.run("run", "sqlite:?data=dir:./d", "tpcb", "-s", "1", "-t", "1")
    assert result.status == 2 and "in use by another prony" in result.err, result
    run.interrupt()
    run.wait()
    assert not list((prony.dir / "d").iterdir())
    prony.good("run", "sqlite:?data=dir:./d", "tpcb", "-s", "1", "-t", "1")


# ---- under a run

@pytest.mark.parametrize("fs", sanitized_once(SIZES, {"ext4"}))
def test_a_run_on_a_file_system_of_its_own(prony, name, fs):
    if not find_program(f"mkfs.{fs}"):
        pytest.skip(f"mkfs.{fs} is not installed")
    text = f"loop:size={SIZES[fs]},fs={fs},mount={{noatime}}"
    doc = prony.measure(f"sqlite:?data={text}&journal_mode=wal", "tpcb", "-s", "1", "-t", "50",
                        "-c", "2").json
    env = doc["environment"]
    assert doc["transactions"]["done"] == 100
    assert env["data.filesystem"] == fs and "noatime" in env["data.mount_options"].split(",")
    assert env["data.device.0.kind"] == "loop"
    assert env["volume.data.text"] == f"loop:size={SIZES[fs]},fs={fs},mount=noatime"
    commands = [value for key, value in env.items() if key.startswith("volume.data.command.")]
    assert any(command.startswith(f"mkfs.{fs} ") for command in commands)
    assert not left(prony)


def test_a_volume_described_by_name(prony, name):
    doc = prony.measure("sqlite:?data=@fast", "tpcb", "-s", "1", "-t", "5", "-c", "1", "--volume",
                        f"fast=loop:{SMALL}").json
    assert doc["environment"]["volume.data.text"] == f"loop:{SMALL}"


def test_a_volume_that_is_too_small_is_told_as_a_full_disk_is(prony, name):
    result = prony.run("run", "sqlite:?data=loop:size=18M,fs=ext2", "tpcb", "-s", "2", "-T", "60s")
    assert result.status == 1 and "full" in result.err, result


@pytest.mark.unsanitized
def test_a_probe_of_a_volume(prony, name):
    doc = json.loads(prony.good("probe", "loop:size=256M,fs=ext4", "--time", "2s", "--size", "16M",
                                "--json", "-").out)
    assert doc["environment"]["volume.place.text"] == "loop:size=256M,fs=ext4"
    assert doc["environment"]["place.filesystem"] == "ext4"
    assert doc["environment"]["place.device.0.kind"] == "loop"
    prony.refused("probe", "lop:size=1G", says="lop:size=1G")
    prony.refused("probe", "@none", says="--volume none=")


# ---- refusals

@pytest.mark.parametrize("text, says", [
    ("lop:size=1G", "did you mean loop?"),
    ("loop:siez=1G", "did you mean size?"),
    ("loop:size=1G,size=2G", "size"),
    ("loop:size=x", ["size", "x", "must be a size"]),
    ("loop:size=5000", "multiple of 4kB"),
    ("loop:size=90000000GB", ["size", "smaller"]),
    ("loop:size=90000GB,alloc=full", ["size", "smaller"]),
    ("loop:scheduler=a b", "braces"),
    ("loop:scheduler={a b}", "must be a word"),
    ("loop:queue=0", ["queue=0", "between 1 and"]),
    ("loop:readahead=100", "multiple of 512"),
    ("loop:alloc=half", ["alloc=half", "sparse or full"]),
    ("loop:fs=nosuchfs", ["fs=nosuchfs", "mkfs.nosuchfs"]),
    ("loop:fs=../x", "fs=../x"),
    ("loop:in=nowhere", ["in=nowhere", "No such file"]),
    ("loop:at=nowhere/x", ["at=nowhere/x", "No such file"]),
    ("loop:at=/tmp", ["at=/tmp", "there already"]),
    ("loop:mount=a b", "put it in braces"),
    ("dir:./nowhere", ["nowhere", "No such file"]),
    ("dir", "dir:/srv/data"),
    ("device:./nowhere", ["nowhere", "No such file"]),
    ("device:/dev/null", "not a block device"),
    ("@fast", "describe the volume"),
])
def test_wrong_texts_are_refused(prony, text, says):
    prony.refused("volume", "up", text, says=says)
    prony.refused("volume", "plan", f"x={text}", says=says)


@pytest.mark.parametrize("args, says", [
    ((), "plan|up"),
    (("pln",), "did you mean plan?"),
    (("up",), "needs a volume"),
    (("down",), "NAME"),
    (("down", "a/b"), "volume name"),
    (("list", "x"), "no argument"),
    (("up", "a=dir:.", "b=dir:."), "one volume"),
    (("up", "a b=dir:."), "volume name"),
    (("up", "dir:.", "--force"), "did you mean --destroy"),
])
@pytest.mark.anywhere
def test_wrong_commands_are_refused(prony, args, says):
    prony.refused("volume", *args, says=says)


@pytest.mark.parametrize("target, options, says", [
    ("sqlite:x.db?data=loop:", (), "leave the file's name away"),
    ("sqlite:/x.db?data=dir:.", (), "does not lie in the volume"),
    ("sqlite:?data=@nowhere", (), ["@nowhere", "--volume nowhere="]),
    ("sqlite:?data=lop:", (), "did you mean loop?"),
    ("sqlite:", ("--volume", "x"), "NAME=TYPE"),
    ("sqlite:", ("--volume", "x=dir:.", "--volume", "x=dir:."), "twice"),
    ("sqlite:?data=@x", ("--volume", "x=@y"), "TYPE"),
])
def test_wrong_volumes_of_a_run_are_refused(prony, target, options, says):
    prony.refused("run", target, "tpcb", *options, says=says)


def test_nothing_is_made_for_an_unknown_workload(prony):
    prony.refused("run", "sqlite:?data=loop:", "tcpb", says="did you mean tpcb?")


def test_a_missing_mkfs_names_its_package(prony):
    packages = {"jfs": "jfsutils", "nilfs2": "nilfs-tools", "reiserfs": "reiserfsprogs",
                "f2fs": "f2fs-tools", "udf": "udftools"}
    absent = next((fs for fs in packages if not find_program(f"mkfs.{fs}")), None)
    if not absent:
        pytest.skip("every mkfs is installed")
    prony.refused("volume", "plan", f"loop:fs={absent}", status=4,
                  says=[f"mkfs.{absent}", f"install the package {packages[absent]}"])


@pytest.mark.anywhere
def test_only_root_may_have_a_loop_volume(prony):
    if os.geteuid() == 0:
        place = Path("/tmp")  # not the test's directory, which is private
        result = prony.run("volume", "plan", "loop:", prefix=MERE_USER, cwd=place,
                           env={"XDG_RUNTIME_DIR": None, "TMPDIR": None})
        if "setpriv" in result.err:
            pytest.skip("cannot be another user here")
    else:
        result = prony.run("volume", "plan", "loop:")
    assert result.status == 4 and "root" in result.err, result


@pytest.mark.parametrize("text, says", [
    (f"loop:{SMALL},mount={{nosuchoption=1}}", ["nosuchoption", "the kernel says"]),
    (f"loop:{SMALL},fs=ext3,mount={{data=nosuchmode}}", ["data", "the kernel says"]),
    (f"loop:{SMALL},mkfs={{--nosuchoption}}", ["mkfs.ext4", "option"]),
    ("loop:size=1M,fs=btrfs", "mkfs.btrfs"),
])
def test_the_reason_of_a_refusal_is_shown(prony, name, text, says):
    if "btrfs" in text and not find_program("mkfs.btrfs"):
        pytest.skip("mkfs.btrfs is not installed")
    result = prony.run("volume", "up", f"{name}={text}")
    assert result.status == 1 and result.err.count("\n") == 1, result
    for word in [says] if isinstance(says, str) else says:
        assert word in result.err, result
    assert not left(prony)


# ---- somebody's device

@pytest.fixture
def device(prony):
    """An empty disk, for whoever looks at it a real one."""
    image = prony.dir / "disk"
    image.write_bytes(b"")
    os.truncate(image, 64 << 20)
    tool = find_program("losetup")
    path = subprocess.run([tool, "--find", "--show", image], capture_output=True, text=True,
                          check=True).stdout.strip()
    yield path
    subprocess.run([tool, "--detach", path], check=True)
    assert wait_until(lambda: not volumes.loops_on(prony.dir), 20)


def signature(device):
    run = subprocess.run(["blkid", "-p", "-o", "export", device], capture_output=True, text=True,
                         check=False)
    return dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)


def test_a_device_must_be_spelled_out(prony, name, device):
    prony.good("volume", "plan", f"{name}=device:{device}")  # only looks
    prony.refused("volume", "up", f"{name}=device:{device}",
                  says=[f"all that is on {device} would be lost", f"--destroy {device}"])
    prony.refused("volume", "up", f"{name}=device:{device}", "--destroy", "/dev/null",
                  says=f"--destroy {device}")
    assert not signature(device)
    result = prony.good("volume", "up", f"{name}=device:{device}", "--destroy", device)
    assert "# what is there is lost:\nmkfs.ext4 " in result.out
    assert signature(device)["LABEL"] == "prony"
    prony.refused("volume", "up", f"{name}-2=device:{device}", "--destroy", device,
                  says=[device, "in use"])
    down(prony, name)
    # What prony made it may make anew.
    doc = prony.measure(f"sqlite:?data=device:{device},fs=ext2", "tpcb", "-s", "1", "-t", "5",
                        "--destroy", device).json
    assert doc["environment"]["data.filesystem"] == "ext2"
    assert signature(device)["TYPE"] == "ext2"


def test_what_prony_did_not_make_is_not_destroyed(prony, name, device):
    subprocess.run([find_program("mkfs.ext4"), "-q", "-L", "mine", device], check=True)
    before = signature(device)
    prony.refused("volume", "up", f"{name}=device:{device}", "--destroy", device,
                  says=[f"{device} carries ext4", "mine", "wipefs"])
    assert signature(device) == before
    subprocess.run(["wipefs", "--all", "--quiet", device], check=True)
    with open(device, "r+b") as disk:  # a partition table of the oldest kind, with one partition
        disk.seek(446)
        disk.write(bytes([0, 0, 2, 0, 0x83, 0, 3, 0]) + (2048).to_bytes(4, "little") +
                   (4096).to_bytes(4, "little") + bytes(48) + b"\x55\xaa")
    prony.refused("volume", "up", f"{name}=device:{device}", "--destroy", device,
                  says=[device, "partition table"])


def test_a_device_that_another_prony_prepares_is_refused(prony, name, device):
    holder = subprocess.Popen(["flock", "--exclusive", device, "sleep", "60"])
    try:
        def is_locked():
            return subprocess.run(["flock", "--nonblock", device, "true"], check=False).returncode
        assert wait_until(is_locked, 20)
        prony.refused("volume", "up", f"{name}=device:{device}", "--destroy", device,
                      says="in use by another prony")
    finally:
        subprocess.run(["pkill", "-P", str(holder.pid)], check=False)
        holder.kill()
        holder.wait()


def test_help_fits_a_screen(prony):
    out = prony.good("volume", "--help").out
    assert len(out.splitlines()) <= 24 and max(map(len, out.splitlines())) <= 80
    types = prony.good("volume", "types").out
    for word in ("dir: ", "loop: ", "device: ", "size=SIZE"):
        assert word in types
    assert max(map(len, types.splitlines())) <= 100
    assert re.search(r"^  loop:size=", types, re.M)
