"""Servers whose data and log lie on volumes: made for one run, or kept by name. At the end the server
is stopped first and the volumes go then, however it ends."""
import os
import shutil
import signal

import pytest

from harness import volumes
from harness.place import wait_until
from harness.postgres import find_bindir
from harness.server import Absent
from harness.volumes import MOUNT_DIR, find_program

ONE_SERVER = {
    "postgres": ("loop:size=512M,fs=ext4", "loop:size=256M,fs=ext3,mount={data=writeback}"),
    "mariadb": ("loop:size=512M,fs=xfs", "loop:size=256M,fs=ext4,mkfs={-O ^has_journal}"),
}


def need(kind):
    try:
        found = (find_bindir() if kind == "postgres" else
                 shutil.which("mariadbd", path="/usr/sbin"))
    except Absent:
        found = None
    if found:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"skipped in CI: {kind} is not installed")
    pytest.skip(f"{kind} is not installed")


@pytest.fixture
def here(prony):
    """Where the user of a server can come; afterwards no volume of this test may be left."""
    why = volumes.missing()
    if why:
        pytest.skip(why)
    temp = prony.dir / "tmp"
    temp.mkdir()
    for path in (prony.dir, temp):
        os.chmod(path, 0o711)
    prony.env = {"TMPDIR": temp}
    prony.pids = []
    yield prony
    assert wait_until(lambda: not left(prony), 60), left(prony)


def start(prony, *args):
    run = prony.start(*args, env=prony.env)
    prony.pids.append(run.process.pid)
    return run


def left(prony):
    lines = [f"{device} on {file}" for device, file in volumes.loops_on(prony.dir).items()]
    lines += volumes.images(prony.dir)
    lines += [str(path) for path in (prony.dir / "tmp").iterdir()]
    lines += [str(path) for pid in prony.pids for path in MOUNT_DIR.glob(f"{pid}-*")]
    return lines + [str(path) for path in (prony.place.state / "kept").glob("*")]


def fs_of(text):
    return text.split("fs=")[1].split(",")[0]


@pytest.mark.parametrize("kind", ONE_SERVER)
def test_data_and_log_lie_on_volumes_of_their_own(here, kind):
    need(kind)
    texts = ONE_SERVER[kind]
    for text in texts:
        if not find_program(f"mkfs.{fs_of(text)}"):
            pytest.skip(f"mkfs.{fs_of(text)} is not installed")
    target = f"server:{kind}?data={texts[0]}&log={texts[1]}"
    result = here.measure(target, "tpcb", "-s", "1", "-c", "1", "-t", "20", "--warmup", "none",
                          env=here.env, timeout_s=120)
    facts = result.json["environment"]
    assert result.json["target"] == target
    for key, text in zip(("data", "log"), texts):
        assert facts[f"volume.{key}.text"] == text
        assert facts[f"{key}.filesystem"].split(" ")[0] == fs_of(text)
        assert facts[f"{key}.path"].startswith(facts[f"volume.{key}.path"])
        assert f"making the volume of {key}=, {text}\n" in result.out
    assert "data=writeback" in facts["log.mount_options"] or kind != "postgres"
    assert "removed at the end" in result.out
    assert not left(here)


def test_a_kept_volume_holds_the_data_from_init_to_run(here):
    need("postgres")
    name = f"t{os.getpid()}-kept"
    target = f"server:postgres?data=@{name}"
    here.good("volume", "up", f"{name}=loop:size=512M,fs=ext4", env=here.env)
    try:
        here.good("init", target, "tpcb", "-s", "2", env=here.env, timeout_s=120)
        result = here.measure(target, "tpcb", "-t", "5", "-c", "1", "--warmup", "none",
                              env=here.env, timeout_s=120)
        assert result.json["workload"]["scale"] == 2
        assert "fill" not in result.out
        assert "agree" in here.good("check", target, "tpcb", env=here.env, timeout_s=120).out
        busy = start(here, "run", target, "tpcb", "-T", "60", "-c", "1", "-P", "1")
        busy.seen("tps", 60)
        here.refused("run", target, "tpcb", env=here.env, says=[name, "in use"])
        here.refused("volume", "down", name, env=here.env, says=[name, "in use"])
        busy.interrupt()
        busy.wait(60)
    finally:
        here.good("volume", "down", name, env=here.env)


@pytest.mark.unsanitized
@pytest.mark.parametrize("phase,number", [
    ("  make   ", signal.SIGKILL), ("  fill   ", signal.SIGINT), ("tps", signal.SIGKILL),
    ("tps", signal.SIGTERM), ("kept as run", signal.SIGKILL),
])
def test_the_server_goes_before_its_volumes(here, phase, number):
    need("postgres")
    run = start(here, "run", "server:postgres?data=loop:size=512M&log=loop:size=256M", "tpcb",
                "-s", "5", "-c", "2", "-T", "1" if phase == "kept as run" else "60", "-P", "1")
    run.seen(phase, 120)
    run.signal(number)
    run.wait(120)
    assert wait_until(lambda: not left(here), 60), left(here)


@pytest.mark.parametrize("args,says", [
    (["run", "server:postgres?data=@a&log=@a", "tpcb", "--volume", "a=loop:size=64M"],
     "same volume"),
    (["run", "server:postgres?data=@nowhere", "tpcb"], "no such volume"),
    (["run", "server:postgres?data=loop:size=64M,fs=ext9", "tpcb"], "mkfs.ext9"),
    (["run", "server:postgres?data=loop:size=64M,speed=9", "tpcb"], "speed"),
    (["init", "server:postgres?data=loop:size=64M", "tpcb"], "prony volume up"),
    (["check", "server:postgres?data=loop:size=64M", "tpcb"], "prony volume up"),
    (["run", "server:postgres?data=loop:size=64M", "tpcp"], "tpcb"),
])
def test_what_cannot_be_is_told_before_anything_is_made(here, args, says):
    result = here.refused(*args, env=here.env, says=says)
    assert "making" not in result.out


def test_a_volume_without_room_for_a_server_goes_with_the_words_of_who_failed(here):
    need("postgres")
    result = here.run("run", "server:postgres?data=loop:size=16M", "tpcb", env=here.env)
    assert result.status in (1, 2) and "No space left" in result.err
