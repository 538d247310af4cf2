"""Virtual disks as volumes: planned, brought up, run on, and gone whatever happens."""
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from harness.place import wait_until
from harness.vdisk import missing, not_built

pytestmark = pytest.mark.skipif(missing() is not None or not shutil.which("mkfs.ext4"),
                                reason=f"virtual disks: {missing() or 'needs mkfs.ext4'}")
RUN = Path("/run")


@pytest.fixture
def name(prony):
    """Of a volume of this test. Afterwards nothing of it may be left."""
    if not_built(prony.run("vdisk", "serve", prony.dir / "probe", "--disk", "a:size=1x").err):
        pytest.skip("virtual disks: built without libfuse3")
    word = f"v{os.getpid()}-{prony.place.n_tests}"
    yield word
    assert wait_until(lambda: not left(word), 30), left(word)


def left(name):
    """Directories, mounts and loop devices of volumes whose name begins so."""
    lines = [str(path) for path in RUN.glob(f"prony-vdisk-{name}*")]
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    lines += [line for line in table.splitlines() if f"/prony-vdisk-{name}" in line or
              f"/prony-volumes/{name}" in line]
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if f"/prony-vdisk-{name}" in path.read_text(encoding="utf-8"):
                lines.append(str(path))
        except OSError:
            pass
    return lines


def test_up_does_what_plan_says_and_tells_the_floor(prony, name):
    text = f"{name}=vdisk:size=64M,model=ssd-sata,mount={{noatime}}"
    plan = prony.good("volume", "plan", text).out.split("# down\n")[0]
    assert f"vdisk up /run/prony-vdisk-{name} --disk {name}:size=64MB,model=ssd-sata" in plan
    up = prony.good("volume", "up", text)
    try:
        assert up.out.startswith(plan), up
        assert re.search(r"^# floor of the path: read .* \(subtracted\)$", up.out, re.M), up
        stats = prony.good("vdisk", "stats", f"/run/prony-vdisk-{name}", name).out
        assert re.search(r"^ +floor_flush_ns +[1-9]", stats, re.M), stats
        assert re.search(r"^ +spec +size=64MB,model=ssd-sata$", stats, re.M), stats
    finally:
        prony.good("volume", "down", name)


def test_a_run_lives_on_it_and_its_flushes_take_their_time(prony, name):
    target = f"sqlite:?data=@{name}&journal_mode=wal&synchronous=full"
    result = prony.measure(target, "tpcb", "-t", "30", "-c", "1", "-s", "1", "--volume",
                           f"{name}=vdisk:size=64M,flush=20ms,near-floor=yes")
    assert result.json["transactions"]["done"] == 30
    assert result.seconds > 30 * 0.02  # a flush each, at least
    environment = result.json["environment"]
    assert environment["volume.data.floor"].startswith("floor of the path: read ")


def test_volumes_that_say_with_share_a_daemon(prony, name):
    first, second = f"{name}-data", f"{name}-log"
    for one in (first, second):
        prony.good("volume", "up", f"{one}=vdisk:size=64M,with={name}")
    stats = prony.good("vdisk", "stats", f"/run/prony-vdisk-{name}").out
    assert re.findall(r"^disk (.*)$", stats, re.M) == [first, second]
    prony.good("volume", "down", first)
    assert Path(f"/run/prony-vdisk-{name}").exists()
    prony.good("volume", "down", second)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_ends_early_takes_it_along(prony, name, number):
    run = prony.start("run", f"sqlite:?data=vdisk:size=64M,with={name}", "tpcb", "-T", "60", "-c",
                      "1", "-s", "1", "-P", "1")
    run.seen("tps", 60)
    assert left(name)
    run.signal(number)
    run.wait(60)
    assert wait_until(lambda: not left(name), 60), left(name)
    assert wait_until(lambda: not list((prony.place.runtime / "prony").glob("*-*")), 30)


@pytest.mark.parametrize("text, says", [
    ("vdisk:size=1000", ["size", "4096"]),
    ("vdisk:model=hdd", ["model", "hdd-7200"]),
    ("vdisk:modle=none", ["modle", "model"]),
    ("vdisk:rpm=7200", ["rate"]),
    ("vdisk:with=../x", ["name"]),
    ("vdisk:fs=nosuch", ["nosuch"]),
])
def test_wrong_ones_are_refused(prony, name, text, says):
    result = prony.run("volume", "up", f"{name}={text}")
    assert result.status in (2, 4), result
    for word in says:
        assert word in result.err, result
