"""ZFS as a test finds it: the kernel's, or Debian's zfs-fuse, which prony starts and stops."""
import contextlib
import fcntl
import functools
import os
import subprocess
from pathlib import Path

import pytest

from harness import volumes
from harness.place import wait_until
from harness.volumes import find_program

FUSE_DIR = Path("/run/prony-zfs-fuse")
LOCK = Path(f"/tmp/prony-test-zfs-{os.geteuid()}.lock")

DISKS = "size=64M"  # the least that ZFS takes


@functools.cache
def missing():
    """Why there can be no pool here; None when there can."""
    why = volumes.missing()
    if why:
        return why
    if not find_program("zpool"):
        return "zpool is not installed (package zfs-fuse)"
    if Path("/dev/zfs").exists():
        return None
    if not find_program("zfs-fuse"):
        return "neither the kernel nor zfs-fuse has ZFS here"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "zfs-fuse needs /dev/fuse"
    return None


def tool(*words):
    return subprocess.run([find_program(words[0]), *map(str, words[1:])], capture_output=True,
                          text=True, check=False, env={**os.environ, "LC_ALL": "C"})


def daemons():
    """Of zfs-fuse, without dead ones that nobody has waited for."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if path.joinpath("comm").read_text(encoding="ascii") == "zfs-fuse\n":
                os.readlink(path / "exe")
                found.append(int(path.name))
    return found


def pools():
    """Those of prony, when somebody can be asked."""
    listed = tool("zpool", "list", "-H", "-o", "name").stdout.split("\n")
    return [name for name in listed if name.startswith("prony-")]


def dataset_value(name, key):
    return tool("zfs", "get", "-H", "-o", "value", key, f"prony-{name}/data").stdout.strip()


def left(prony):
    """Whatever a volume of ZFS may leave, as lines."""
    lines = volumes.left(prony)
    # Directories that come and go meanwhile: what pathlib lists of them raises.
    lines += [f"{where}/{entry}" for where, dirs, _ in os.walk(prony.dir) for entry in dirs
              if entry.startswith("prony-") and entry.endswith(".zfs")]
    with contextlib.suppress(FileNotFoundError):
        lines += [entry for entry in os.listdir(FUSE_DIR) if entry.startswith("user-")]
    if daemons():
        lines += [f"pool {name}" for name in pools()]
    return lines


@pytest.fixture
def zfs(prony, name):
    """Alone with ZFS: the daemon is one for the machine. Afterwards it is as before."""
    why = missing()
    if why:
        pytest.skip(why)
    with open(LOCK, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = daemons()
        yield name
        assert wait_until(lambda: not left(prony), 60), left(prony)
        assert wait_until(lambda: daemons() == before, 30), daemons()
