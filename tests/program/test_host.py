"""Settings of this machine for a run, on a real sysctl: set, recorded, put back whatever ends the run."""
import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness.place import wait_until

KEY = "vm.dirty_expire_centisecs"  # of no matter to anything that runs a few seconds
FILE = Path("/proc/sys/vm/dirty_expire_centisecs")
CLAIM = Path("/run/prony-host/proc-sys-vm-dirty_expire_centisecs")
SHORT = ["null:", "tpcb", "-c", "1", "-t", "5"]
LONG = ["null:?latency=1ms", "tpcb", "-c", "1", "-T", "60", "-P", "1"]


@pytest.fixture
def sysctl():
    """Its value before, which must be there again; one test at a time on this machine."""
    if os.geteuid() != 0 or not os.access(FILE, os.W_OK):
        pytest.skip(f"{FILE} cannot be written here")
    with open(f"/tmp/prony-test-host-{os.geteuid()}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = FILE.read_text(encoding="utf-8").strip()
        yield before
        assert wait_until(lambda: is_put_back(before), 30)


def is_put_back(before):
    return FILE.read_text(encoding="utf-8").strip() == before and not CLAIM.exists()


def other(value):
    return str(int(value) + 100)


def test_a_setting_holds_for_the_run_and_is_recorded(prony, sysctl):
    wanted = other(sysctl)
    result = prony.measure(*SHORT, "--host-setting", f"{KEY}={wanted}")
    facts = result.json["environment"]
    assert facts[f"host.set.{KEY}"] == wanted and facts[f"host.was.{KEY}"] == sysctl
    assert f"  host   {KEY}={wanted} (was {sysctl})\n" in result.out
    assert is_put_back(sysctl)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT,
                                    pytest.param(signal.SIGTERM, marks=pytest.mark.unsanitized)])
def test_it_is_put_back_whatever_ends_the_run(prony, sysctl, number):
    run = prony.start("run", *LONG, "--host-setting", f"{KEY}={other(sysctl)}")
    run.seen("tps", 60)
    assert FILE.read_text(encoding="utf-8").strip() == other(sysctl)
    run.signal(number)
    run.wait()
    if number == signal.SIGKILL:
        assert wait_until(lambda: is_put_back(sysctl), 30)
    assert is_put_back(sysctl)


def test_a_set_up_that_fails_puts_it_back(prony, sysctl):
    prony.refused("run", "sqlite:missing.db", "tpcb", "--host-setting", f"{KEY}={other(sysctl)}",
                  says="missing.db")
    assert is_put_back(sysctl)


@pytest.mark.unsanitized
def test_what_another_prony_has_set_is_refused(prony, sysctl):
    run = prony.start("run", *LONG, "--host-setting", f"{KEY}={other(sysctl)}")
    run.seen("tps", 60)
    result = prony.run("run", *SHORT, "--host-setting", f"{KEY}={other(other(sysctl))}")
    assert result.status == 2 and f"process {run.pid}" in result.err, result
    assert FILE.read_text(encoding="utf-8").strip() == other(sysctl)
    run.interrupt()
    run.wait()


def test_what_the_kernel_refuses_has_its_reason(prony, sysctl):
    prony.refused("run", *SHORT, "--host-setting", f"{KEY}={other(sysctl)}", "--host-setting",
                  "vm.dirty_ratio=500", says=["vm.dirty_ratio=500", "Invalid argument"])
    assert is_put_back(sysctl)


@pytest.mark.parametrize("item,says", [
    ("vm.dirty_expire_centisec=1", "did you mean dirty_expire_centisecs?"),
    ("vm.dirty_ratio", "must be KEY=VALUE"),
    ("/etc/hostname=x", "must be a sysctl"),
])
def test_what_is_no_setting_is_told(prony, item, says):
    prony.refused("run", *SHORT, "--host-setting", item, says=says)


@pytest.mark.unsanitized
def test_without_root_it_cannot_be(prony):
    """As somebody who is nobody."""
    argv = [prony.binary, "run", *SHORT, "--host-setting", f"{KEY}=1"]
    env = {"PATH": os.environ["PATH"], "PRONY_STORE": "/dev/shm/prony-no-such/x.db"}
    where = prony.dir
    if os.geteuid() == 0:
        argv = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *argv]
        where = "/"
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=where, env=env)
    if "setpriv" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 4 and "only root may" in done.stderr, done
