"""Virtual disks over FUSE and loop devices, for real: data, cuts, faults, speed, and that nothing is
left or hangs however a daemon ends. Needs root, loop devices and /dev/fuse."""
import errno
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time

import pytest

from harness.place import run_quietly, wait_until
from harness.vdisk import BLOCK, MIB, Device, Disks, missing, not_built

needs_mkfs = pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="needs mkfs.ext4")


@pytest.fixture
def disks(prony):
    """Starts disks; what a failed test leaves of them is taken away."""
    why = missing()
    if why:
        pytest.skip(f"virtual disks: {why}")
    if not_built(prony.run("vdisk", "serve", prony.dir / "probe", "--disk", "a:size=1x").err):
        pytest.skip("virtual disks: built without libfuse3")
    made = []

    def start(*specs, **kwargs):
        made.append(Disks(prony, *specs, **kwargs))
        return made[-1].start()

    yield start
    for one in made:
        one.release()


def block_of(text):
    return text.encode() * (BLOCK // len(text))


def sanitized(names, chosen):
    """All of them for the plain build; only the chosen ones with sanitizers, which are slow."""
    return [name if name in chosen else pytest.param(name, marks=pytest.mark.unsanitized)
            for name in names]


A, B, ZERO = block_of("a"), block_of("b"), bytes(BLOCK)


# ---- data

def test_data_round_trips_and_is_counted(disks):
    vd = disks("data:size=64M", "log:size=16M")
    rng = random.Random(4)
    image = bytearray(64 * MIB)
    before = vd.stats("data")  # the kernel looks for partitions when a device is attached
    with vd.open("data") as device:
        for i in range(60):
            n = rng.randrange(1, 64) * 512
            offset = rng.randrange(0, (64 * MIB - n) // 512) * 512
            data = rng.randbytes(n)
            image[offset:offset + n] = data
            device.write(offset, data)
            if i % 20 == 19:
                device.flush()
        device.discard(8 * MIB, 2 * MIB)
        image[8 * MIB:10 * MIB] = bytes(2 * MIB)
        for offset in range(0, 64 * MIB, MIB):
            assert device.read(offset, MIB) == image[offset:offset + MIB], offset
    after = vd.stats("data")
    assert after["writes"] - before["writes"] == 60
    assert after["flushes"] - before["flushes"] == 3
    assert after["discards"] - before["discards"] >= 1
    assert after["discard_bytes"] - before["discard_bytes"] == 2 * MIB
    assert after["read_bytes"] - before["read_bytes"] >= 64 * MIB
    assert vd.stats("log")["writes"] == 0
    vd.stop()


@needs_mkfs
def test_a_file_system_lives_on_it(disks):
    vd = disks("data:size=64M")
    vd.mkfs("data")
    content = random.Random(5).randbytes(3 * MIB)
    (vd.mount("data") / "file").write_bytes(content)
    vd.umount("data")
    assert (vd.mount("data") / "file").read_bytes() == content
    vd.umount("data")
    run_quietly(["fsck.ext4", "-fn", vd.device("data")])
    vd.stop()


def test_a_disk_goes_back_to_its_saved_state(disks, prony):
    vd = disks("data:size=16M", "log:size=8M")
    device = vd.device("data")

    def put_and_get(text, wanted):
        with Device(device) as opened:
            if text:
                opened.write(0, text)
                opened.flush()
            assert opened.read(0, BLOCK) == wanted

    put_and_get(A, A)
    prony.good("vdisk", "save", vd.dir, "data")
    assert vd.stats("data")["saved_state"] == "yes" and vd.stats("log")["saved_state"] == "no"
    for _ in range(2):
        put_and_get(B, B)
        device = prony.good("vdisk", "restore", vd.dir, "data").out.strip()
        put_and_get(None, A)
    put_and_get(B, B)
    prony.good("vdisk", "forget", vd.dir, "data")
    put_and_get(None, B)
    prony.refused("vdisk", "restore", vd.dir, "log", says="no saved state")

    image = prony.dir / "data.img"
    prony.good("vdisk", "save", vd.dir, "data", "data.img")
    assert image.stat().st_size == 16 * MIB and image.stat().st_blocks * 512 < MIB
    for options in ([], ["--share"]):
        put_and_get(A, A)
        device = prony.good("vdisk", "restore", vd.dir, "data", "data.img", *options).out.strip()
        put_and_get(None, B)
    put_and_get(A, A)
    assert image.read_bytes()[:BLOCK] == B  # is only read
    with Device(device):
        result = prony.run("vdisk", "restore", vd.dir, "data", "data.img")
        assert result.status != 0 and "in use" in result.err, result
    for args, says in ((("save", vd.dir, "data", "data.img"), "File exists"),
                       (("restore", vd.dir, "log", "data.img"), "no image of a disk of that size"),
                       (("restore", vd.dir, "data", "--share"), "--share is for a FILE"),
                       (("restore", vd.dir, "data", "nothing.img"), "No such file")):
        prony.refused("vdisk", *args, says=says)
    vd.stop()


@needs_mkfs
def test_a_mounted_disk_is_not_restored(disks, prony):
    vd = disks("data:size=64M")
    vd.mkfs("data")
    prony.good("vdisk", "save", vd.dir, "data")
    (vd.mount("data") / "file").write_bytes(b"x")
    result = prony.run("vdisk", "restore", vd.dir, "data")
    assert result.status == 1 and "unmount it first" in result.err, result
    vd.umount("data")
    device = prony.good("vdisk", "restore", vd.dir, "data").out.strip()
    assert not (vd.mount("data", device) / "file").exists()
    vd.umount("data")
    vd.stop()


def test_contents_in_a_file_stay(disks, prony):
    media = prony.dir / "media.img"
    for wanted in (ZERO, A):
        vd = disks(f"data:size=8M,media={media}")
        with vd.open("data") as device:
            assert device.read(0, BLOCK) == wanted
            device.write(0, A)
            device.flush()
        vd.stop()
    assert media.stat().st_size == 8 * MIB
    assert media.read_bytes()[:BLOCK] == A


def test_a_file_with_contents_has_one_disk_and_keeps_its_owner(disks, prony):
    there, new = prony.dir / "there.img", prony.dir / "new.img"
    there.write_bytes(A)
    os.truncate(there, 8 * MIB)
    vd = disks("other:size=8M", f"data:size=8M,media={there}", f"new:size=8M,media={new}",
               env={"SUDO_UID": "65534", "SUDO_GID": "65534"})
    assert there.stat().st_uid == 0  # prony did not make it
    assert new.stat().st_uid == 65534
    for home in (vd.dir, prony.dir / "second"):  # the same daemon, another one
        prony.refused("vdisk", "up", home, "--disk", f"again:size=8M,media={there}",
                      says="in use by another disk")
    vd.stop()
    assert there.read_bytes()[:BLOCK] == A


# ---- the cut

CUTS = {
    "a volatile cache loses what was not flushed": ("size=8M", (), A, ZERO),
    "a protected cache loses nothing": ("size=8M,protected=yes", (), A, B),
    "a lying disk loses what it said was flushed": ("size=8M,lying=yes", (), ZERO, ZERO),
    "without a cache nothing is lost": ("size=8M,cache=0", (), A, B),
    "a cache that happens to be written out loses nothing": ("size=8M", ("--survivors", "keep"),
                                                            A, B),
}


@pytest.mark.parametrize("name", sanitized(CUTS, ["a lying disk loses what it said was flushed"]))
def test_a_cut(disks, name):
    spec, options, flushed, unflushed = CUTS[name]
    vd = disks(f"data:{spec}")
    with vd.open("data") as device:
        device.write(0, A)
        device.flush()
        device.write(MIB, B)
        vd.cut("data", *options)
        for request in (lambda: device.read(0, BLOCK), lambda: device.write(0, A), device.flush):
            with pytest.raises(OSError) as error:
                request()
            assert error.value.errno == errno.EIO
    assert vd.stats("data")["power"] == "cut"
    with Device(vd.power("data")) as device:
        assert device.read(0, BLOCK) == flushed
        assert device.read(MIB, BLOCK) == unflushed
        device.write(0, A)  # it works again
        device.flush()
    vd.stop()


@pytest.mark.parametrize("survivors", sanitized(["random", "prefix"], ["random"]))
def test_a_live_cut_and_its_replay_are_the_same_disk(disks, prony, survivors):
    seed = 20261130
    rng = random.Random(seed)
    log = prony.dir / "disks.log"
    vd = disks("data:size=4M,torn=512", "other:size=4M", options=("--log", log))
    with vd.open("data") as data, vd.open("other") as other:
        for _ in range(80):
            n = rng.randrange(1, 32) * 512
            device = rng.choice((data, data, other))
            device.write(rng.randrange(0, (4 * MIB - n) // 512) * 512, rng.randbytes(n))
            if rng.random() < 0.05:
                device.flush()
    cut = vd.cut("data", "--survivors", survivors, "--seed", str(seed))
    assert cut["pending_writes"] > 5 and cut["lost_units"] > 0, cut
    with Device(vd.power("data")) as device:
        live = device.read(0, 4 * MIB)
    vd.stop()
    image = prony.dir / "data.img"
    for at in (str(cut["after_record"]), "-1"):  # the last record lies after the live cut
        prony.good("vdisk", "replay", log, "data", "--at", at, "--survivors", survivors,
                   "--seed", str(seed), "--unit", "512", "-o", image)
        assert image.read_bytes() == live
        image.unlink()
    # Another seed chooses others; before everything there was nothing.
    prony.good("vdisk", "replay", log, "data", "--at", str(cut["after_record"]), "--survivors",
               survivors, "--seed", "1", "-o", image)
    assert image.read_bytes() != live
    image.unlink()
    prony.good("vdisk", "replay", log, "data", "--at", "0", "-o", image)
    assert not image.read_bytes().strip(b"\0")


def test_a_recording_may_begin_late_and_is_refused_when_damaged(disks, prony):
    log, image = prony.dir / "disks.log", prony.dir / "data.img"
    vd = disks("data:size=4M")
    with vd.open("data") as device:
        device.write(0, A)  # from before, and not flushed: the base of the recording
        prony.good("vdisk", "record", vd.dir, log)
        device.write(BLOCK, B)
        device.flush()
    prony.good("vdisk", "mark", vd.dir, "the end")
    prony.good("vdisk", "record", vd.dir, "off")
    vd.stop()
    prony.good("vdisk", "replay", log, "data", "-o", image)
    assert image.read_bytes()[:2 * BLOCK] == A + B
    image.unlink()
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    prony.refused("vdisk", "replay", log, "data", "-o", image, status=1, says="cut short")
    log.write_bytes(whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) +
                    whole[len(whole) // 2 + 1:])
    prony.refused("vdisk", "replay", log, "data", "-o", image, status=1, says="damaged")


@needs_mkfs
def test_a_file_system_comes_through_a_cut(disks):
    vd = disks("data:size=64M")
    vd.mkfs("data")
    point = vd.mount("data")
    with open(point / "kept", "wb") as file:
        file.write(A)
        file.flush()
        os.fsync(file.fileno())
    (point / "lost").write_bytes(B)
    vd.cut("data")
    vd.umount("data")
    device = vd.power("data")
    point = vd.mount("data", device)
    assert (point / "kept").read_bytes() == A
    assert not (point / "lost").exists() or (point / "lost").read_bytes() != B
    vd.umount("data")
    vd.stop()


# ---- faults

def test_requests_fail_after_a_number_of_them(disks):
    vd = disks("data:size=8M")
    with vd.open("data") as device:
        vd.set("data", "eio-after=3,eio=write")
        for _ in range(3):
            device.write(0, A)
        for _ in range(2):
            with pytest.raises(OSError) as error:
                device.write(0, B)
            assert error.value.errno == errno.EIO
        assert device.read(0, BLOCK) == A
        vd.set("data", "eio-after=-1")
        device.write(0, B)
    assert vd.stats("data")["eio"] == 2
    vd.stop()


def test_a_stalled_disk_answers_when_the_stall_ends(disks):
    vd = disks("data:size=8M", "other:size=8M")
    with vd.open("data") as device, vd.open("other") as other:
        device.write(0, A)
        vd.set("data", "stall=yes")
        got = []
        reader = threading.Thread(target=lambda: got.append(device.read(0, BLOCK)))
        reader.start()
        assert wait_until(lambda: vd.stats()["waiting"] >= 1, 30)
        assert other.read(0, BLOCK) == ZERO  # another disk goes on
        assert not got
        vd.set("data", "stall=no")
        reader.join(30)
        assert got == [A]
    vd.stop()


def test_a_stalled_disk_can_be_stopped(disks, prony):
    vd = disks("data:size=8M")
    reader = subprocess.Popen(["dd", f"if={vd.device('data')}", "of=/dev/null", "bs=4k", "count=1",
                               "iflag=direct"], stderr=subprocess.DEVNULL,
                              env=prony.environment())
    vd.set("data", "stall=yes")
    reader.wait(30)
    stuck = subprocess.Popen(["dd", f"if={vd.device('data')}", "of=/dev/null", "bs=4k", "count=1",
                              "iflag=direct"], stderr=subprocess.DEVNULL, env=prony.environment())
    assert wait_until(lambda: vd.stats()["waiting"] >= 1, 30)
    vd.run.interrupt()
    result = vd.run.wait(60)
    assert result.status == 0, result
    stuck.wait(30)
    vd.assert_gone()


# ---- speed: only lower bounds and ratios with much room

def seconds_of(requests):
    """Of each. One that was held up is one of many, so compare medians."""
    times = []
    for request in requests:
        start = time.monotonic()
        request()
        times.append(time.monotonic() - start)
    return times


def test_a_hard_disk_takes_its_turns(disks):
    vd = disks("slow:size=64M,model=hdd-7200", "fast:size=64M")
    rng = random.Random(6)
    offsets = [rng.randrange(0, 64 * MIB // BLOCK) * BLOCK for _ in range(40)]
    with vd.open("slow") as slow, vd.open("fast") as fast:
        slow_s = seconds_of([lambda at=at: slow.read(at, BLOCK) for at in offsets])
        fast_s = seconds_of([lambda at=at: fast.read(at, BLOCK) for at in offsets])
        # A log: each appended block has just been passed by the head. 120 turns a second.
        log_s = seconds_of([lambda i=i: (slow.write(i * BLOCK, A), slow.flush())
                            for i in range(40)])
    assert sum(slow_s) > 40 * 0.008, slow_s  # 9 to 13 ms each
    assert statistics.median(slow_s) > 2 * statistics.median(fast_s), (slow_s, fast_s)
    assert sum(log_s) > 38 * 0.0083, log_s
    vd.stop()


def test_channels_work_side_by_side(disks):
    vd = disks("one:size=8M,read=25ms,channels=1,near-floor=yes",
               "four:size=8M,read=25ms,channels=4,near-floor=yes")

    def seconds(name):
        with vd.open(name) as device:
            def read(first):
                for i in range(6):
                    device.read((first * 16 + 2 * i) * 8 * BLOCK, BLOCK)
            threads = [threading.Thread(target=read, args=[k]) for k in range(4)]
            start = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return time.monotonic() - start

    one_s = seconds("one")
    four_s = min(seconds("four") for _ in range(3))  # one that was held up does not count
    assert one_s > 24 * 0.025 * 0.9, one_s
    assert four_s > 6 * 0.025 * 0.9, four_s
    assert four_s < 0.75 * one_s, (four_s, one_s)  # 0.25 where nothing else runs
    vd.stop()


def test_numbers_near_the_floor_are_refused_or_marked(disks, prony):
    result = prony.run("vdisk", "serve", prony.dir / "vd", "--disk", "data:size=8M,flush=1us")
    assert result.status == 2, result
    assert "near-floor=yes" in result.err and result.err.count("\n") == 1, result
    assert "floor of the path: read " in result.out
    assert not (prony.dir / "vd").exists()
    vd = disks("data:size=8M,flush=1us,near-floor=yes", "ssd:size=8M,model=ssd-sata,read=1us,"
               "near-floor=yes", "far:size=8M,read=60s")
    out = vd.run.peek()
    assert re.search(r"^disk data: flush .* below 5 times the floor", out, re.M), out
    assert re.search(r"^disk ssd: read .* below 5 times the floor", out, re.M), out
    assert "disk far: read" not in out, out
    assert vd.stats("data")["floor_read_ns"] > 0
    vd.stop()


# ---- ends

def daemon_of(vd):
    return vd.stats()["pid"]


@needs_mkfs
def test_a_killed_daemon_leaves_nothing_hanging(disks, prony):
    vd = disks("data:size=64M")
    vd.mkfs("data")
    point = vd.mount("data")
    errors = []

    def write():
        try:
            for i in range(1000000):
                with open(point / f"f{i % 8}", "wb") as file:
                    file.write(A)
                    os.fsync(file.fileno())
        except OSError as error:
            errors.append(error.errno)

    writer = threading.Thread(target=write)
    writer.start()
    assert wait_until(lambda: vd.stats("data")["flushes"] > 10, 30)
    os.kill(daemon_of(vd), signal.SIGKILL)
    writer.join(60)
    assert errors and errors[0] in (errno.EIO, errno.EROFS, errno.ENOTCONN), errors
    vd.umount("data")
    result = vd.run.wait(90)
    assert result.status == 1, result
    assert "the daemon has died" in result.err
    # Where serve gave up because it was mounted for longer than it tries.
    prony.good("vdisk", "stop", vd.dir)
    vd.assert_gone()


def test_a_hung_daemon_is_ended_by_its_guard(disks, prony):
    vd = disks("data:size=8M", options=("--hang", "5s"))
    stats = vd.stats()
    assert wait_until(lambda: vd.stats()["guard_armed"] == "yes", 10)
    os.kill(stats["pid"], signal.SIGSTOP)
    # In the kernel, and not to be killed, were it not for the guard.
    reader = subprocess.Popen(["dd", f"if={vd.device('data')}", "of=/dev/null", "bs=4k", "count=1",
                               "iflag=direct"], stderr=subprocess.PIPE, env=prony.environment())
    _, words = reader.communicate(timeout=90)
    assert reader.returncode != 0, words
    result = vd.run.wait(90)
    assert result.status == 1, result
    vd.assert_gone()


def test_stop_ends_a_hung_daemon_by_force(disks, prony):
    vd = disks("data:size=8M", options=("--hang", "1h"))
    os.kill(daemon_of(vd), signal.SIGSTOP)
    reader = subprocess.Popen(["dd", f"if={vd.device('data')}", "of=/dev/null", "bs=4k", "count=1",
                               "iflag=direct"], stderr=subprocess.DEVNULL, env=prony.environment())
    prony.good("vdisk", "stop", "--abort", vd.dir)
    assert reader.wait(60) != 0
    vd.run.wait(60)
    vd.assert_gone()


@needs_mkfs
def test_what_is_mounted_is_not_torn_away(disks, prony):
    vd = disks("data:size=64M", "other:size=8M")
    vd.mkfs("data")
    point = vd.mount("data")
    result = prony.refused("vdisk", "stop", vd.dir, status=1, says=["mounted on", str(point)])
    assert "unmount it first" in result.err
    assert len(vd.loops()) == 2  # nothing was taken down
    vd.cut("other")
    vd.power("other")
    (point / "file").write_bytes(A)
    vd.umount("data")
    vd.stop()


def test_a_second_daemon_and_other_directories_are_refused(disks, prony):
    vd = disks("data:size=8M")
    prony.refused("vdisk", "serve", vd.dir, "--disk", "data:size=8M", says="empty directory")
    prony.refused("vdisk", "stats", vd.dir, "nosuch", says="there is no disk nosuch")
    prony.refused("vdisk", "cut", vd.dir, "nosuch", says="there is no disk nosuch")
    prony.refused("vdisk", "set", vd.dir, "data", "size=1G", says="only its faults")
    prony.refused("vdisk", "power", vd.dir, "data", says="power of data is on")
    assert len(vd.loops()) == 1
    prony.refused("vdisk", "record", vd.dir, "off", says="no recording")
    vd.stop()
    prony.refused("vdisk", "stats", vd.dir, says="no virtual disks are served")


def registries(prony):
    return [path.read_text(encoding="utf-8") for path in (prony.place.runtime / "prony").glob("*")
            if path.is_file()]


def clean_up(prony):
    """What the guard could not undo in its few seconds, on a busy machine, the next prony does."""
    prony.run("check", "null:", "tpcb")
    return not registries(prony)


@pytest.mark.parametrize("end", sanitized(["kill", "interrupt", "terminate", "stop"], ["kill"]))
def test_cycles_leave_nothing(disks, prony, end):
    signals = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
    for cycle in range(3):
        vd = disks("data:size=16M,model=ssd-sata", "log:size=16M",
                   options=("--log", prony.dir / f"{cycle}.log"))
        with vd.open("data") as device:
            device.write(0, A)
            device.flush()
        if end == "stop":
            vd.stop()
        else:
            vd.run.signal(signals[end])
            result = vd.run.wait(60)
            assert result.status == (-signal.SIGKILL if end == "kill" else 0), result
            vd.assert_gone()
        assert wait_until(lambda: not registries(prony), 30) or clean_up(prony), registries(prony)


def test_disks_that_were_brought_up_stay_until_they_are_taken_down(disks, prony):
    home = Disks(prony)
    try:
        up = prony.good("vdisk", "up", home.dir, "--disk", "data:size=16M")
        first = up.out.strip()  # nothing else, for scripts
        assert re.fullmatch(r"/dev/loop\d+", first), up
        assert "floor of the path" in up.err
        # The second comes to the same daemon, so that one recording has both.
        second = prony.good("vdisk", "up", home.dir, "--disk", "log:size=16M").out.strip()
        assert second != first
        prony.refused("vdisk", "up", home.dir, "--disk", "log:size=16M", says="already")
        prony.good("vdisk", "record", home.dir, prony.dir / "both.log")
        for path, data in ((first, A), (second, B)):
            with Device(path) as device:
                device.write(0, data)
                device.flush()
        prony.refused("vdisk", "down", home.dir, "data", status=1, says="recorded")
        prony.good("vdisk", "record", home.dir, "off")
        for name, data in (("data", A), ("log", B)):
            prony.good("vdisk", "replay", prony.dir / "both.log", name, "-o", prony.dir / name)
            assert (prony.dir / name).read_bytes()[:BLOCK] == data
        assert home.stats("log")["flushes"] >= 1
        prony.good("vdisk", "down", home.dir, "log")
        assert len(home.loops()) == 1
        prony.good("vdisk", "down", home.dir, "log")  # undoing twice is no error
        prony.good("vdisk", "down", home.dir, "data")
        prony.good("vdisk", "down", home.dir, "data")
        home.assert_gone()
    finally:
        if home.dir.exists():
            prony.run("vdisk", "stop", "--abort", home.dir)


def ends_early(prony, home, number):
    """Whether `up` was still at work when the signal came; else its disk is taken down again."""
    run = prony.start("vdisk", "up", home.dir, "--disk", "data:size=8M")
    assert wait_until(home.dir.exists, 60), run.peek()
    run.signal(number)
    result = run.wait(60)
    if result.status == 0:
        prony.good("vdisk", "stop", home.dir)
        return False
    assert result.status == (-number if number == signal.SIGKILL else 1), result
    if number != signal.SIGKILL:
        assert result.err.endswith("prony: interrupted\n"), result
    return True


@pytest.mark.parametrize("number", sanitized([signal.SIGINT, signal.SIGKILL], [signal.SIGINT]))
def test_an_up_that_ends_early_leaves_nothing(disks, prony, number):
    home = Disks(prony)
    assert any(ends_early(prony, home, number) for _ in range(5))
    home.assert_gone()


def test_an_up_that_fails_takes_down_only_its_own_disks(disks, prony):
    vd = disks("data:size=8M")
    for last, says in (("third:size=8M,flush=1ns", "near-floor=yes"), ("data:size=8M", "already")):
        result = prony.run("vdisk", "up", vd.dir, "--disk", "second:size=8M", "--disk", last)
        assert result.status == 2 and says in result.err and result.out == "", result
        assert [disk["name"] for disk in vd.stats()["disks"]] == ["data"]
        assert len(vd.loops()) == 1
    vd.stop()


# ---- wrong set-ups, which need no disks

REFUSED = {
    "no action": ("vdisk", ["ACTION|argument"], 2),
    "unknown action": ("vdisk sevre x", ["sevre", "did you mean serve?"], 2),
    "no disk": ("vdisk serve vd", ["--disk data:size=1G"], 2),
    "a disk without a name": ("vdisk serve vd --disk size=1G", ["NAME:KEY=VALUE"], 2),
    "a disk without a size": ("vdisk serve vd --disk a:model=none", ["size"], 2),
    "a disk of an unknown model": ("vdisk serve vd --disk a:size=1G,model=hdd", ["hdd", "none"], 2),
    "a misspelt key": ("vdisk serve vd --disk a:size=1G,modle=none", ["modle", "model"], 2),
    "a disk twice": ("vdisk serve vd --disk a:size=1G --disk a:size=1G", ["a", "twice"], 2),
    "a name that is a path": ("vdisk serve vd --disk ../a:size=1G", ["letters"], 2),
    "nobody there": ("vdisk stats nosuch", ["nosuch"], 2),
    "too many arguments": ("vdisk stop a b", ["arguments"], 2),
    "no log": ("vdisk replay nosuch a -o x", ["nosuch"], 2),
    "no output": ("vdisk replay nosuch a", ["--output"], 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_usage_is_refused(prony, name):
    line, says, status = REFUSED[name]
    result = prony.refused(*line.split(), status=status)
    for words in says:
        assert re.search(words, result.err), result


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, setpriv")
def test_without_root_it_is_not_run_here(prony):
    if not_built(prony.run("vdisk", "serve", "vd", "--disk", "a:size=1M,lying=no,size=1x").err):
        pytest.skip("virtual disks: built without libfuse3")
    os.chmod(prony.dir, 0o777)
    result = prony.run("vdisk", "serve", "/tmp/nosuch/vd", "--disk", "a:size=1M",
                       prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
    assert result.status == 4, result
    assert "root" in result.err, result


def test_the_keys_are_listed(prony):
    out = prony.good("vdisk", "keys").out
    for key in ("size=", "model=", "cache=", "torn=", "lying=", "eio-after="):
        assert key in out
    assert all(len(line) <= 100 for line in out.splitlines())
