"""What the kernel says about volumes, fixtures and steps of their tests, and commands that wait in
the middle of making one."""
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.place import wait_until

SMALL = "size=64M"
MOUNT_DIR = Path("/run/prony-volumes")
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', '/usr/bin:/bin')}:{SBIN}")


@functools.cache
def missing():
    """Why no loop volume can be had here; None when one can."""
    if os.geteuid() != 0:
        return "loop devices and mounts need root"
    with tempfile.TemporaryDirectory(prefix="prony-test-loop-") as path:
        image = Path(path, "image")
        image.write_bytes(b"\0" * (4 << 20))
        tool = find_program("losetup")
        if not tool:
            return "losetup is not installed"
        made = subprocess.run([tool, "--find", "--show", "--direct-io=on", image],
                              capture_output=True, text=True, check=False)
        if made.returncode:
            return f"no loop device: {made.stderr.strip()}"
        device = made.stdout.strip()
        try:
            done = subprocess.run([find_program("mkfs.ext4") or "mkfs.ext4", "-q", device],
                                  capture_output=True, text=True, check=False)
            point = Path(path, "mount")
            point.mkdir()
            if done.returncode == 0:
                done = subprocess.run(["mount", device, point], capture_output=True, text=True,
                                      check=False)
                subprocess.run(["umount", point], capture_output=True, check=False)
            return f"no mounts: {done.stderr.strip()}" if done.returncode else None
        finally:
            subprocess.run([tool, "--detach", device], check=True)


def mounts():
    """Mount point -> (type, options of the mount and the file system)."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words = line.split(" ")
        kind = words[words.index("-") + 1]
        options = set(words[5].split(",")) | set(words[-1].split(","))
        found[words[4].replace("\\040", " ")] = (kind, options)
    return found


def loops_on(directory):
    """Loop device -> file, of files in the directory, also removed ones."""
    found = {}
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            backing = path.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if backing.startswith(f"{directory}/"):
            found[f"/dev/{path.parts[3]}"] = backing
    return found


class Commands:
    """Stands in for the commands of a plan, in a directory that goes first in PATH: each is the
    real one, but `hold` lets one wait before or after its work until `release`, and `fail` makes
    it fail."""

    def __init__(self, directory):
        self.dir = directory
        self.dir.mkdir()

    def environment(self):
        return {"PATH": f"{self.dir}:{os.environ['PATH']}"}

    def write(self, name, text):
        path = self.dir / name
        path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        path.chmod(0o755)

    def hold(self, name, when):
        """when is "before" or "after". Only the first call waits, for undoing calls some again."""
        wait = (f"mkdir {self.dir}/reached 2>/dev/null || touch {self.dir}/go\n"
                f"while [ ! -e {self.dir}/go ]; do sleep 0.02; done\n")
        real = find_program(name)
        if when == "before":
            self.write(name, f"{wait}exec {real} \"$@\"\n")
        else:
            self.write(name, f"{real} \"$@\"\nstatus=$?\n{wait}exit $status\n")

    def fail(self, name):
        self.write(name, f"echo {name} was told to fail >&2\nexit 1\n")

    def reached(self, timeout_s=60):
        return wait_until((self.dir / "reached").exists, timeout_s)

    def release(self):
        (self.dir / "go").touch()


# ---- for tests; loops_here and name are fixtures

def sanitized_once(values, once):
    """Parameters of which sanitizers see only some."""
    return [value if value in once else pytest.param(value, marks=pytest.mark.unsanitized)
            for value in values]


@pytest.fixture(autouse=True)
def loops_here(request):
    if not request.node.get_closest_marker("anywhere"):
        why = missing()
        if why:
            pytest.skip(why)


@pytest.fixture
def name(prony):
    """Of a volume of this test. Afterwards nothing of any volume may be left."""
    word = f"t{os.getpid()}-{prony.place.n_tests}"
    before = set(MOUNT_DIR.glob("*"))
    yield word
    assert wait_until(lambda: not left(prony), 20), left(prony)
    mine = {path for path in set(MOUNT_DIR.glob("*")) - before if path.name.startswith(word)}
    assert not mine


def kept(prony):
    return sorted((prony.place.runtime / "prony" / "kept").glob("*"))


def images(directory):
    """Those of loop volumes anywhere below; what goes away meanwhile is no error."""
    return [os.path.join(where, file) for where, _, files in os.walk(directory) for file in files
            if file.startswith("prony-") and file.endswith(".img")]


def left(prony):
    """Whatever a volume of this test may leave, as lines."""
    lines = [f"{device} on {file}" for device, file in loops_on(prony.dir).items()]
    lines += images(prony.dir)
    lines += [str(path) for path in kept(prony)]
    return lines


def point(name):
    return MOUNT_DIR / name


def up(prony, name, text, **kwargs):
    return prony.good("volume", "up", f"{name}={text}", **kwargs)


def down(prony, name):
    return prony.good("volume", "down", name)
