"""Volumes of ZFS, on whatever ZFS is here (harness/zfs.py): made as planned, refused where they
should be, and undone whatever happens."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness import volumes
from harness import zfs as ours
from harness.place import wait_until
from harness.postgres import find_bindir
from harness.server import Absent
# loops_here, name and zfs are fixtures
from harness.volumes import (MOUNT_DIR, Commands, down, find_program, loops_here, name, point,
                             sanitized_once, up)  # noqa: F401
from harness.zfs import DISKS, daemons, dataset_value, left, pools, tool, zfs  # noqa: F401

ENDS = [signal.SIGKILL, signal.SIGINT]


# ---- made

def test_a_pool_is_what_the_plan_says(prony, zfs):
    text = (f"zfs:layout=mirror,{DISKS},log=64M,cache=64M,recordsize=8k,atime=off,"
            "com.example:note=x")
    planned = prony.good("volume", "plan", f"{zfs}={text}").out.split("# down\n")[0]
    assert up(prony, zfs, text).out == f"{planned}{zfs} is at {point(zfs)}\n"
    assert pools() == [f"prony-{zfs}"]
    assert dataset_value(zfs, "recordsize") == "8K" and dataset_value(zfs, "atime") == "off"
    assert dataset_value(zfs, "com.example:note") == "x"
    status = tool("zpool", "status", f"prony-{zfs}").stdout
    files = prony.dir / f"prony-{zfs}.zfs"
    assert re.search(rf"mirror.*\n\s*{files}/disk1 .*\n\s*{files}/disk2 ", status), status
    assert re.search(rf"logs.*\n\s*{files}/log1 ", status), status
    assert re.search(r"cache.*\n\s*(/dev/)?loop\d+ ", status), status
    assert str(point(zfs)) in volumes.mounts()
    assert not list(point(zfs).iterdir())
    down(prony, zfs)
    assert not pools() and not files.exists() and not point(zfs).exists()


@pytest.mark.unsanitized
def test_a_plan_is_a_script_that_does_the_same(prony, zfs):
    text = f"zfs:layout=raidz,{DISKS},compression=on"
    planned, undone = prony.good("volume", "plan", f"{zfs}={text}").out.split("# down\n")
    env = {**prony.environment(), "PATH": f"{os.environ['PATH']}:{volumes.SBIN}"}
    # A pool is busy for a moment after it was unmounted.
    undone = undone.replace("sh -c 'zpool destroy", "sh -c 'for i in $(seq 60); do zpool destroy "
                            "\"$0\" && exit; sleep 1; done; zpool destroy")
    script = f"set -e\n{planned}zfs get -H -o value compression prony-{zfs}/data\n{undone}"
    by_hand = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False,
                             env=env, cwd=prony.dir)
    assert by_hand.returncode == 0 and "\non\n" in f"\n{by_hand.stdout}", by_hand


def test_a_dataset_in_a_pool_that_is_there(prony, zfs):
    up(prony, zfs, f"zfs:{DISKS}")
    (point(zfs) / "mine").write_text("x", encoding="ascii")
    inner = f"{zfs}-s"
    up(prony, inner, f"zfs:in=prony-{zfs},recordsize=16k")
    assert str(point(inner)) in volumes.mounts()
    value = tool("zfs", "get", "-H", "-o", "value", "recordsize", f"prony-{zfs}/prony-{inner}")
    assert value.stdout.strip() == "16K"
    # Both are the same daemon's, which goes with the last.
    assert Path("/dev/zfs").exists() or len(daemons()) == 1
    down(prony, inner)
    assert pools() == [f"prony-{zfs}"] and (point(zfs) / "mine").exists()
    assert tool("zfs", "list", f"prony-{zfs}/prony-{inner}").returncode != 0
    down(prony, zfs)


@pytest.fixture
def disks(prony):
    """Two empty disks."""
    made = []
    for number in range(2):
        image = prony.dir / f"disk{number}"
        image.write_bytes(b"")
        os.truncate(image, 80 << 20)
        made.append(tool("losetup", "--find", "--show", "--partscan", image).stdout.strip())
    yield made
    for device in made:
        assert tool("losetup", "--detach", device).returncode == 0
    assert wait_until(lambda: not volumes.loops_on(prony.dir), 20)


def carries(device):
    """The type of what libblkid finds on it; "" is nothing."""
    return tool("blkid", "-p", "-o", "value", "-s", "TYPE", device).stdout.strip()


def test_disks_are_spelled_out_locked_and_wiped(prony, zfs, disks):
    text = f"zfs:layout=mirror,dev={{{' '.join(disks)}}}"
    consent = [word for disk in disks for word in ("--destroy", disk)]
    prony.refused("volume", "up", f"{zfs}={text}", *consent[:2],
                  says=[f"all that is on {disks[1]} would be lost", f"--destroy {disks[1]}"])
    assert not carries(disks[0])
    result = prony.good("volume", "up", f"{zfs}={text}", *consent)
    assert f"# what is there is lost:\nwipefs --quiet --all {disks[0]} {disks[1]}\n" in result.out
    assert carries(disks[1]) == "zfs_member"
    prony.refused("volume", "up", f"{zfs}-2={text}", *consent, says=f"{disks[0]} ")
    down(prony, zfs)
    assert not carries(disks[0]) and not carries(disks[1])
    tool("mkfs.ext4", "-q", "-L", "mine", disks[1])
    prony.refused("volume", "up", f"{zfs}={text}", *consent, says=[f"{disks[1]} carries", "mine"])
    assert not carries(disks[0])


# ---- refused

@pytest.mark.parametrize("text, says", [
    (f"zfs:{DISKS},nosuch=1", "invalid property 'nosuch'"),
    (f"zfs:{DISKS},recordsize=7k", "'recordsize' must be"),
    ("zfs:in=prony-nowhere", "no such pool"),
])
def test_the_words_of_zfs_are_shown(prony, zfs, text, says):
    result = prony.run("volume", "up", f"{zfs}={text}")
    assert result.status == 1 and says in result.err and result.err.count("\n") == 1, result
    assert not left(prony) and not point(zfs).exists()


# ---- under a run

def test_sqlite_on_zfs(prony, zfs):
    doc = prony.measure(f"sqlite:?data=zfs:{DISKS},recordsize=8k&journal_mode=wal", "tpcb", "-s",
                        "1", "-t", "25", "-c", "2").json
    env = doc["environment"]
    assert doc["transactions"]["done"] == 50
    assert env["data.filesystem"].endswith("zfs")
    assert env["volume.data.zfs.recordsize"] == "8K"
    assert env["volume.data.zfs.implementation"]
    assert any(value.startswith("zpool create ") for value in env.values())


@pytest.mark.unsanitized
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_servers_on_zfs(prony, zfs, kind):
    try:
        there = find_bindir() if kind == "postgres" else find_program("mariadbd")
    except Absent as reason:
        pytest.skip(str(reason))
    if not there:
        pytest.skip(f"{kind} is not installed")
    os.chmod(prony.dir, 0o711)
    temp = prony.dir / "tmp"
    temp.mkdir(mode=0o711)
    target = (f"server:{kind}?data=zfs:size=512M,layout=mirror,recordsize=8k&"
              "log=loop:size=512M,fs=ext4")
    doc = prony.measure(target, "tpcb", "-s", "1", "-c", "2", "-t", "25", env={"TMPDIR": temp},
                        timeout_s=180).json
    assert doc["transactions"]["done"] == 50
    assert doc["environment"]["data.filesystem"].endswith("zfs")
    assert doc["environment"]["log.filesystem"] == "ext4"
    assert doc["environment"]["volume.data.zfs.recordsize"] == "8K"


def outcomes(result):
    return {event["what"]: event["outcome"] for event in result.json["events"]}


def is_calm(result):
    """No event fell into another or into the end of the load, as on a machine that stood still."""
    spans = [(event["from_s"], event["to_s"]) for event in result.json["events"]]
    return (all(after[0] > before[1] for before, after in zip(spans, spans[1:])) and
            not any("cut off" in text for text in outcomes(result).values()))


def test_disks_logs_and_caches_come_and_go_under_the_load(prony, zfs):
    marks = ["offline:disk7", "offline:disk", "replace:disk", "replace:log1", "offline:cache",
             "replace:cache", "online:disk1"]
    at = [word for number, what in enumerate(marks) for word in ("--at", f"{2 * number + 1}s", what)]
    status = prony.dir / "status"
    result = prony.measure(f"sqlite:?data=zfs:layout=mirror,{DISKS},log=64M,cache=64M", "tpcb", "-s",
                           "1", "-c", "1", "-R", "20", "-T", "18", *at, "--at", "15s",
                           f"zpool status >{status}", timeout_s=120)
    told = outcomes(result)
    if is_calm(result):
        assert "there is no disk7" in told.pop("offline:disk7"), told
        assert set(told.values()) == {"done"}, told
        pool = status.read_text(encoding="utf-8")
        assert "disk2.new" in pool and "log1.new" in pool and "OFFLINE" not in pool, pool


@pytest.mark.unsanitized
def test_disks_of_devices_are_exchanged(prony, zfs, disks):
    consent = [word for disk in disks for word in ("--destroy", disk)]
    result = prony.measure(f"sqlite:?data=zfs:layout=mirror,dev={{{' '.join(disks)}}}", "tpcb", "-s",
                           "1", "-c", "1", "-R", "20", "-T", "6", *consent, "--at", "1s",
                           "replace:disk", timeout_s=120)
    assert not is_calm(result) or outcomes(result) == {"replace:disk": "done"}
    assert not carries(disks[0]) and not carries(disks[1])


@pytest.mark.parametrize("event, says", [
    ("offline:leg", "must be disk, log or cache"),
    ("replace:log", "the pool has no log: add log=SIZE"),
    ("offline:disk@log", "no volume of prony's there"),
    ("offline:disk@x", "must be @data or @log"),
    ("ofline:disk", "did you mean offline:disk?"),
])
@pytest.mark.unsanitized
def test_events_that_a_pool_does_not_know_are_refused(prony, zfs, event, says):
    prony.refused("run", f"sqlite:?data=zfs:{DISKS}", "tpcb", "-s", "1", "-T", "5", "--at", "1s", event,
                  says=says)


def test_events_of_zfs_are_for_pools_of_prony(prony, zfs):
    for target in ("sqlite:", "sqlite:?data=loop:size=64M"):
        prony.refused("run", target, "tpcb", "-s", "1", "-T", "5", "--at", "1s", "offline:disk",
                      says="--at 1s: offline:disk: ")


# ---- undone

@pytest.fixture
def commands(prony):
    return Commands(prony.dir / "commands")


# The first zpool of up is create, the first zfs creates the dataset.
STEPS = ["truncate", "zpool", "zfs"]


@pytest.mark.parametrize("step", sanitized_once(STEPS, {"zpool"}))
def test_a_step_that_fails_is_the_last(prony, zfs, commands, step):
    commands.fail(step)
    result = prony.run("volume", "up", f"{zfs}=zfs:{DISKS},cache=64M", env=commands.environment())
    assert result.status == 1 and f"{step} was told to fail" in result.err, result
    assert not left(prony) and not point(zfs).exists()


@pytest.mark.parametrize("moment", sanitized_once(
    [("zfs-fuse", "before"), ("zpool", "before"), ("zpool", "after"), ("zfs", "before"),
     ("zfs", "after")], {("zpool", "after")}), ids="-".join)
def test_killed_at_any_step_nothing_is_left(prony, zfs, commands, moment):
    step, when = moment
    if step == "zfs-fuse" and (daemons() or Path("/dev/zfs").exists()):
        pytest.skip("prony starts no zfs-fuse here")
    commands.hold(step, when)
    run = prony.start("volume", "up", f"{zfs}=zfs:{DISKS},cache=64M", env=commands.environment())
    assert commands.reached(), run.peek()
    run.kill()
    run.wait()
    assert wait_until(lambda: not left(prony) and not point(zfs).exists(), 60), left(prony)


@pytest.mark.unsanitized
@pytest.mark.parametrize("step", ["zpool", "zfs"])
def test_stopped_at_a_step_it_ends_behind_it(prony, zfs, commands, step):
    commands.hold(step, "before")
    run = prony.start("volume", "up", f"{zfs}=zfs:{DISKS}", env=commands.environment())
    assert commands.reached(), run.peek()
    run.interrupt()
    commands.release()
    result = run.wait()
    assert result.status == 1 and "interrupted" in result.err, result
    assert not left(prony) and not point(zfs).exists()


@pytest.mark.parametrize("number", sanitized_once(ENDS, {signal.SIGKILL}))
def test_a_run_that_ends_early_takes_its_pool_along(prony, zfs, number):
    run = prony.start("run", f"sqlite:?data=zfs:{DISKS}", "tpcb", "-s", "1", "-c", "2", "-T",
                      "60s", "-P", "1", env={"COLUMNS": "80"})
    assert wait_until(lambda: "tps" in run.peek(), 90), run.peek()
    run.signal(number)
    result = run.wait()
    if number == signal.SIGINT:
        assert result.status == 0, result
    where = MOUNT_DIR / f"{run.pid}-data"
    assert wait_until(lambda: not left(prony) and not where.exists(), 60), left(prony)


@pytest.mark.parametrize("when", sanitized_once(["before", "after"], {"before"}))
def test_killed_in_the_middle_of_destroy(prony, zfs, commands, when):
    """It is not undone by itself, for it was kept; down goes on where it was."""
    up(prony, zfs, f"zfs:{DISKS}")
    commands.hold("zpool", when)
    run = prony.start("volume", "down", zfs, env=commands.environment())
    assert commands.reached(), run.peek()
    run.kill()
    run.wait()
    commands.release()  # what a shell of the registry's has started goes on for itself
    assert zfs in prony.good("volume", "list").out
    down(prony, zfs)


def test_what_is_busy_stays_and_can_be_taken_down_later(prony, zfs):
    up(prony, zfs, f"zfs:{DISKS}")
    with open(point(zfs) / "file", "w", encoding="ascii"):
        result = prony.run("volume", "down", zfs)
        assert result.status == 1 and "busy" in result.err and zfs in result.err, result
        assert pools() == [f"prony-{zfs}"]
    down(prony, zfs)


def test_a_daemon_that_was_killed_takes_nothing_hostage(prony, zfs):
    if daemons() or Path("/dev/zfs").exists():
        pytest.skip("there is no zfs-fuse of prony's here")
    up(prony, zfs, f"zfs:{DISKS},cache=64M")
    pid, = daemons()
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not daemons(), 20)
    down(prony, zfs)
    assert not left(prony) and not point(zfs).exists()
