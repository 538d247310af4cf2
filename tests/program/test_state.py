"""States of data sets: made once, restored before each run, identical; nothing half made, whatever
ends it."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from harness import vdisk, volumes
from harness.place import wait_until
from harness.volumes import MOUNT_DIR, Commands, find_program, sanitized_once

QUICK = ["tpcb", "-s", "1", "-c", "1", "-t", "5", "--warmup", "none"]
SQLITE = "sqlite:"
LOOP = "sqlite:?data=loop:size=64M,fs=ext4"


@pytest.fixture
def here(prony):
    """Where the user of a server can come. Afterwards only what was kept may be left."""
    temp = prony.dir / "tmp"
    temp.mkdir()
    for path in (prony.dir, temp):
        os.chmod(path, 0o711)
    prony.env = {"TMPDIR": temp}
    prony.states = prony.dir / "prony-states"
    yield prony
    assert wait_until(lambda: not left(prony), 60), left(prony)


def left(prony):
    """What a state half made, or half restored, would leave."""
    lines = [f"{device} on {file}" for device, file in volumes.loops_on(prony.dir).items()]
    # Directories that come and go meanwhile: what pathlib lists of them raises.
    for where in (prony.dir, *(entry.path for entry in os.scandir(prony.dir)
                               if entry.is_dir(follow_symlinks=False))):
        with contextlib.suppress(FileNotFoundError):
            lines += [f"{where}/{entry}" for entry in os.listdir(where)
                      if entry.startswith((".prony-state-", ".new-", ".gone-")) or
                      (entry.startswith("prony-") and entry.endswith(".img"))]
    return lines + os.listdir(prony.dir / "tmp")


def names(prony):
    """Those that are whole; what is being made, or is on its way out, has a name with a dot."""
    return sorted(path.name for path in prony.states.glob("[!.]*"))


def need_loops():
    why = volumes.missing()
    if why:
        pytest.skip(why)


def need(kind):
    found = {"postgres": shutil.which("initdb", path=":".join(
        str(path) for path in Path("/usr/lib/postgresql").glob("*/bin"))),
             "mariadb": shutil.which("mariadbd", path="/usr/sbin"), "sqlite": True}[kind]
    if not found and os.environ.get("CI") == "true":
        pytest.fail(f"skipped in CI: {kind} is not installed")
    if not found:
        pytest.skip(f"{kind} is not installed")


def use(prony, target, state="auto"):
    return prony.measure(target, *QUICK, "--state", state, env=prony.env, timeout_s=180)


# ---- saved and restored are the same

@pytest.mark.parametrize("target", [
    SQLITE, "sqlite:?data=vdisk:size=64M,fs=ext4",
    *(pytest.param(text, marks=pytest.mark.unsanitized) for text in (
        "server:postgres?data=loop:size=512M,fs=xfs&log=loop:size=256M,fs=ext3",
        "server:mariadb?data=loop:size=512M,fs=ext4&log=loop:size=256M,fs=ext4",
        "sqlite:?data=loop:size=256M,fs=btrfs",
    )),
])
def test_each_run_begins_from_the_same_files(here, target):
    """The cleanly stopped files, by checksums: as saved, and after two restores."""
    need(re.sub("^server:|[:?].*", "", target))
    if "loop:" in target:
        need_loops()
    if "vdisk:" in target and vdisk.missing():
        pytest.skip(vdisk.missing())
    for fs in re.findall("fs=([a-z0-9]+)", target):
        if not find_program(f"mkfs.{fs}"):
            pytest.skip(f"mkfs.{fs} is not installed")
    first = use(here, target, "auto,verify")
    assert first.json["environment"]["state.made"] == "by this run"
    name = first.json["environment"]["state.name"]
    assert names(here) == [name]
    second = use(here, target, "auto,verify")
    facts = second.json["environment"]
    assert facts["state.made"] == "before" and facts["state.verified"] == "yes"
    assert facts["state.name"] == name and facts["state.restore"] == "copy"
    assert facts["state.cache"] == "dropped" or facts["state.cache"].startswith("as restored: ")
    assert second.json["target"] == target and second.json["workload"]["scale"] == 1
    here.good("state", "check", name)
    if "fs=" in target:
        assert "mkfs" not in " ".join(v for k, v in facts.items() if ".command." in k)


def damage(path):
    with open(path, "r+b") as file:
        data = file.read()
        where = data.rfind(b"prony_init")  # in the file's own text, which checksums alone protect
        assert where > 0
        file.seek(where)
        file.write(b"PRONY")


def test_files_that_differ_are_told_before_the_run(here):
    name = use(here, SQLITE).json["environment"]["state.name"]
    damage(here.states / name / "data.files" / "prony.db")
    result = here.run("run", SQLITE, *QUICK, "--state", "auto,verify")
    assert result.status == 1 and "data/prony.db differs" in result.err, result
    result = here.run("state", "check", name)
    assert result.status == 1 and "data/prony.db" in result.err, result


def test_files_that_are_gone_are_told_and_strangers_stay(here):
    name = use(here, SQLITE).json["environment"]["state.name"]
    (here.states / name / "data.files").rename(here.dir / "elsewhere")
    result = here.run("state", "check", name)
    assert result.status == 1 and "its data is missing" in result.err, result
    (here.states / "keys").mkdir()
    (here.states / "keys" / "key").write_text("of somebody")
    result = here.refused("state", "forget", "keys")
    assert "no state that prony saved" in result.err and (here.states / "keys" / "key").exists()


@pytest.mark.unsanitized
def test_an_image_that_differs_is_told(here):
    need_loops()
    name = use(here, LOOP).json["environment"]["state.name"]
    damage(here.states / name / "data.image")
    result = here.run("state", "check", name)
    assert result.status == 1 and "damaged: data.image" in result.err, result


def test_what_runs_do_is_gone_with_the_next(here):
    first = use(here, SQLITE)
    again = use(here, SQLITE)
    assert first.json["transactions"]["done"] == again.json["transactions"]["done"] == 5
    name = names(here)[0]
    done = subprocess.run(["/usr/bin/python3", "-c",
                           "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("
                           "'select count(*) from pgbench_history').fetchone()[0])",
                           here.states / name / "data.files" / "prony.db"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


# ---- which state

@pytest.mark.unsanitized
def test_settings_that_shape_nothing_share_a_state(here):
    use(here, SQLITE)
    use(here, "sqlite:?journal_mode=wal&synchronous=normal")
    assert len(names(here)) == 1
    result = use(here, "sqlite:?page_size=8192")
    assert len(names(here)) == 2
    assert result.json["environment"]["state.of.engine.page_size"] == "8192"
    assert result.json["environment"]["engine.page_size"] == "8192"


def test_a_named_state_is_of_one_set_up(here):
    first = here.good("run", SQLITE, *QUICK, "--state", "kept/mine")
    assert "making the state mine in kept" in first.out
    again = here.good("run", SQLITE, *QUICK, "--state", "kept/mine")
    assert "making" not in again.out and "restoring the state mine in kept" in again.out
    refused = here.refused("run", SQLITE, "tpcb", "-s", "2", "--state", "kept/mine",
                           says=["mine", "scale 1, not"])
    assert "forget mine" in refused.err
    assert "tpcb version 1, scale 1" in here.good("state", "list", "--state-dir", "kept").out
    shown = here.good("state", "show", "mine", "--state-dir", "kept").out
    assert re.search("state.of.engine +sqlite", shown)
    here.good("state", "forget", "mine", "--state-dir", "kept")
    assert "no state" in here.good("state", "list", "--state-dir", "kept").out


@pytest.mark.unsanitized
def test_one_in_use_is_not_forgotten(here):
    name = use(here, SQLITE).json["environment"]["state.name"]
    run = here.start("run", SQLITE, "tpcb", "-s", "1", "-c", "1", "-T", "60", "-P", "1", "--state",
                     "auto")
    run.seen("tps", 60)
    result = here.run("state", "forget", name)  # the other makes files meanwhile
    assert result.status == 2 and f"{name} is in use" in result.err, result
    run.interrupt()
    run.wait()
    here.good("state", "forget", name)


@pytest.mark.parametrize("args,says", [
    (["null:", "tpcb", "--state", "auto"], "databases that prony makes itself"),
    (["sqlite:mine.db", "tpcb", "--state", "auto"], "without a file's name"),
    (["sqlite:", "-f", "x.sql", "--state", "auto"], "built-in workload"),
    (["sqlite:", "tpcb", "--state", "auto,slow"], "then ,fast or ,verify"),
    (["sqlite:", "tpcb", "--state", "auto,"], "then ,fast or ,verify"),
    (["sqlite:", "tpcb", "--state", "x/"], "a state's name is auto, or"),
    (["sqlite:", "tpcb", "--state", "a b"], "a state's name is auto, or"),
    (["sqlite:", "tpcb", "--state", "no/such/auto"], "no/such"),
    (["server:postgres?from=/srv/x", "tpcb", "--state", "auto"], "from="),
    (["server:postgres?data=no-such-dir", "tpcb", "--state", "auto"], "no-such-dir"),
])
def test_what_cannot_be_is_told(here, args, says):
    if "postgres" in args[0]:
        need("postgres")
    here.refused("run", *args, says=says)
    assert not names(here)


@pytest.mark.unsanitized
def test_a_data_directory_of_the_users_is_left_alone(here):
    need("postgres")
    data = here.dir / "pg"
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    here.refused("run", f"server:postgres?data={data}", "tpcb", "--state", "auto",
                 says="holds a data directory already")
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


def test_a_servers_settings_reach_the_run_and_where_it_lies_is_no_matter(here):
    """The directory that is named holds what is restored, beside what is there, while it lasts."""
    need("postgres")
    data = here.dir / "data"
    data.mkdir(mode=0o755)
    (data / "theirs").write_text("theirs")
    use(here, "server:postgres", "auto,verify")
    facts = use(here, f"server:postgres?data={data}&log={data}&work_mem=5MB").json["environment"]
    assert len(names(here)) == 2  # the log has a place of its own
    assert facts["server.data"].startswith(f"{data}/.prony-state-")
    assert facts["server.setting.work_mem"] == "5MB" and facts["server.made"] == "a saved state"
    use(here, f"server:postgres?data={data}", "auto,verify")
    assert len(names(here)) == 2
    assert [path.name for path in data.iterdir()] == ["theirs"]


# ---- fast, or an error

@pytest.mark.unsanitized
def test_blocks_are_shared_where_they_can_be(here):
    """On an xfs of the test's own: state and place lie on it."""
    need_loops()
    name = f"t{os.getpid()}-fast"
    if not find_program("mkfs.xfs"):
        pytest.skip("mkfs.xfs is not installed")
    here.good("volume", "up", f"{name}=loop:size=512M,fs=xfs")
    try:
        where = MOUNT_DIR / name
        options = ["--state", f"{where}/states/auto,fast,verify"]
        for target in (f"sqlite:?data=loop:size=64M,mkfs={{-b 4096}},in={where}", f"sqlite:?data=dir:{where}"):
            for _ in range(2):
                result = here.measure(target, *QUICK, *options, env=here.env)
                assert result.json["environment"]["state.restore"] == "fast"
        assert "blocks shared" in result.out
    finally:
        here.good("volume", "down", name)


@pytest.mark.unsanitized
def test_fast_is_an_error_where_blocks_cannot_be_shared(here):
    """Nothing falls back in silence. /dev/shm is no place where blocks can be shared."""
    target = "sqlite:?data=dir:/dev/shm"
    use(here, target)
    result = here.run("run", target, *QUICK, "--state", "auto,fast")
    assert result.status == 1 and "a fast restore shares blocks" in result.err, result
    assert not list(Path("/dev/shm").glob(".prony-state-*"))


# ---- however it ends

@pytest.fixture
def commands(here):
    return Commands(here.dir / "commands")


ENDS = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", sanitized_once(ENDS, {signal.SIGINT}))
@pytest.mark.parametrize("phase", ["save", "restore"])
@pytest.mark.parametrize("target", [SQLITE, pytest.param(LOOP, marks=pytest.mark.unsanitized)])
def test_an_end_leaves_nothing_half_made(here, commands, target, phase, number):
    """cp does both; it waits before its work, or, in the second half of them, behind it."""
    if target == LOOP:
        need_loops()
    if phase == "restore":
        use(here, target)
    before = names(here)
    commands.hold("cp", "after" if number == signal.SIGTERM else "before")
    run = here.start("run", target, *QUICK, "--state", "auto",
                     env={**here.env, **commands.environment()})
    assert commands.reached(), run.peek()
    assert ("saving" if phase == "save" else "restoring") in run.peek()
    run.signal(number)
    if number == signal.SIGKILL:
        run.wait()
    else:  # cp still waits: it is ended
        result = run.wait()
        assert result.status == 1 and "interrupted" in result.err, result
    assert wait_until(lambda: not left(here), 30), left(here)
    assert names(here) == before
    commands.release()
    use(here, target, "auto,verify")  # as if nothing had been


@pytest.mark.unsanitized
def test_killed_while_it_is_renamed_it_is_whole_or_not_there(here, commands):
    """Behind the copies: killed at moments from the words seen."""
    run = here.start("run", SQLITE, *QUICK, "--state", "auto")
    run.seen("saving")
    run.kill()
    run.wait()
    assert wait_until(lambda: not left(here), 30), left(here)
    for name in names(here):
        here.good("state", "check", name)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_end_while_the_tables_are_made_saves_nothing(here, number):
    run = here.start("run", SQLITE, "tpcb", "-s", "50", "-c", "1", "-t", "1", "--state", "auto")
    assert wait_until(lambda: list(here.dir.glob(".prony-state-*/prony.db")), 60), run.peek()
    run.signal(number)
    result = run.wait()
    assert result.status != 0 and not names(here)
    assert wait_until(lambda: not left(here), 30), left(here)


def test_a_command_that_fails_saves_nothing(here, commands):
    commands.fail("cp")
    result = here.run("run", SQLITE, *QUICK, "--state", "auto",
                      env={**here.env, **commands.environment()})
    assert result.status == 1 and "cp was told to fail" in result.err, result
    assert not names(here)
