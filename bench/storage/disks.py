"""Volumes of this bench: prony makes them, in directories that a server's user may enter."""
import contextlib
import os
import re
import subprocess
import time

from speed.bench import ROOT  # noqa: F401  (it also puts the harness of the tests in reach)
from speed.pairs import Unavailable
from speed.process import program

from harness.vdisk import missing as no_vdisk


def missing():
    """Why nothing of this can run here; None when it can."""
    return no_vdisk()


def prony(bench, *args, timeout_s=300, is_good=True):
    """Runs prony to its end in the bench's directory; its output."""
    run = subprocess.run([bench.prony, *map(str, args)], capture_output=True, text=True, check=False,
                         cwd=bench.dir, env=bench.environment(), timeout=timeout_s,
                         stdin=subprocess.DEVNULL)
    if is_good and run.returncode:
        raise RuntimeError(f"prony {' '.join(map(str, args))}\nended with {run.returncode}:\n"
                           f"{run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def let_servers_in(bench):
    """Servers run as another user; what they may read lies below this directory."""
    os.chmod(bench.dir, 0o711)
    os.chmod(bench.place.temp, 0o711)


@contextlib.contextmanager
def volume(bench, name, text):
    """A volume that stays until the end of the block; where it is mounted."""
    name = f"bench{os.getpid()}{name}"
    prony(bench, "volume", "up", f"{name}={text}")
    try:
        yield name
    finally:
        prony(bench, "volume", "down", name)


@contextlib.contextmanager
def served(bench, specs):
    """Virtual disks {name: spec} until the end of the block; (name -> device, what serve said)."""
    where = bench.dir / "vd"
    args = [arg for name, spec in specs.items() for arg in ("--disk", f"{name}:{spec}")]
    with program(bench, [bench.prony, "vdisk", "serve", where, *args]) as serve:
        while "ready:" not in serve.output():
            serve.check_running()
            time.sleep(0.05)
        text = serve.output()
        try:
            yield dict(re.findall(r"^disk (\w+): (/dev/loop\d+)", text, re.M)), text
        finally:
            prony(bench, "vdisk", "stop", where)
            serve.wait()


def floor_us(text):
    """{"read": 91.3, ...} from the line that tells the floor of the path."""
    units = {"ns": 1e-3, "us": 1, "ms": 1e3}
    line = re.search(r"floor of the path: .*", text)
    if not line:
        raise Unavailable("no floor was told")
    return {op: float(value) * units[unit]
            for op, value, unit in re.findall(r"(read|write|flush) ([\d.]+) (ns|us|ms)", line[0])}


def flushes(bench, name):
    """How often a kept virtual disk was flushed so far."""
    return counter(bench, f"/run/prony-vdisk-{name}", "flushes")


def counter(bench, where, name):
    """One of `prony vdisk stats`."""
    return int(re.search(rf"^ *{name} +(\d+)$", prony(bench, "vdisk", "stats", where), re.M)[1])
