"""Virtual disks served by `prony vdisk`, and requests to them past the page cache."""
import ctypes
import fcntl
import functools
import json
import mmap
import os
import re
import shutil
import signal
import subprocess

from harness.place import run_quietly, wait_until

BLOCK = 4096
BLKDISCARD = 0x1277
LOOP_CTL_GET_FREE = 0x4C82
MIB = 1 << 20


@functools.cache
def missing():
    """Why there can be no virtual disks here, or None. Devices may be there and forbidden."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
        control = os.open("/dev/loop-control", os.O_RDWR)
        try:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        finally:
            os.close(control)
        os.close(os.open(f"/dev/loop{number}", os.O_RDWR))
    except OSError as error:
        return f"needs FUSE and loop devices: {error}"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True,
                      check=False).returncode != 0:
        return "needs the right to mount"
    return None


def not_built(text):
    return "built without libfuse3" in text


class Device:
    """A block device read and written directly."""

    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def write(self, offset, data):
        with mmap.mmap(-1, len(data)) as memory:  # aligned, as direct I/O wants it
            memory.write(data)
            assert os.pwritev(self.fd, [memory], offset) == len(data)

    def read(self, offset, n):
        with mmap.mmap(-1, n) as memory:
            assert os.preadv(self.fd, [memory], offset) == n
            return memory[:n]

    def flush(self):
        os.fsync(self.fd)

    def discard(self, offset, n):
        fcntl.ioctl(self.fd, BLKDISCARD, bytes((ctypes.c_uint64 * 2)(offset, n)))


class Disks:
    """One `prony vdisk serve`."""

    def __init__(self, prony, *disks, options=(), name="vd", env=None):
        self.prony = prony
        self.dir = prony.dir / name
        self.args = [arg for disk in disks for arg in ("--disk", disk)]
        self.options = options
        self.env = env
        self.run = None
        self.mounts = []

    def start(self):
        self.run = self.prony.start("vdisk", "serve", self.dir, *self.args, *self.options,
                                    env=self.env)
        self.run.seen("ready:", 60)
        return self

    def device(self, name):
        found = re.findall(rf"^disk {name}: (/dev/loop\d+)", self.run.peek(), re.M)
        assert found, self.run.peek()
        return found[0]

    def open(self, name):
        return Device(self.device(name))

    def stats(self, name=None):
        result = self.prony.good("vdisk", "stats", self.dir, "--json")
        whole = json.loads(result.out)
        return next(d for d in whole["disks"] if d["name"] == name) if name else whole

    def set(self, name, text):
        self.prony.good("vdisk", "set", self.dir, name, text)

    def cut(self, name, *options):
        out = self.prony.good("vdisk", "cut", self.dir, name, *options).out
        return {k: int(v) for k, v in re.findall(r"^ +(\w+) +(\d+)$", out, re.M)}

    def power(self, name):
        """The device may be another one afterwards."""
        out = self.prony.good("vdisk", "power", self.dir, name).out
        return re.search(r"^disk \S+: (/dev/loop\d+)$", out, re.M).group(1)

    def mkfs(self, name, kind="ext4"):
        options = {"ext4": ["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"]}
        run_quietly([f"mkfs.{kind}", *options.get(kind, []), self.device(name)])

    def mount(self, name, device=None):
        point = self.prony.dir / f"mnt-{name}"
        point.mkdir(exist_ok=True)
        run_quietly(["mount", device or self.device(name), point])
        self.mounts.append(point)
        return point

    def umount(self, name):
        point = self.prony.dir / f"mnt-{name}"
        run_quietly(["umount", point])
        self.mounts.remove(point)

    def stop(self):
        """Everything must go well."""
        self.prony.good("vdisk", "stop", self.dir)
        result = self.run.wait(60)
        assert result.status == 0, result
        self.assert_gone()
        return result

    def loops(self):
        found = []
        for entry in os.scandir("/sys/block"):
            try:
                with open(f"{entry.path}/loop/backing_file", encoding="utf-8") as file:
                    if file.read().startswith(str(self.dir) + "/"):
                        found.append(entry.name)
            except OSError:
                pass
        return found

    def is_mounted(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            return any(str(self.dir) in line for line in table)

    def assert_gone(self):
        """No process, mount, loop device or file of it is left (processes: the fixture prony)."""
        assert wait_until(lambda: not self.loops() and not self.is_mounted() and
                          not self.dir.exists(), 30), (self.loops(), self.is_mounted())

    def release(self):
        """Whatever a failed test left; lines about what had to be taken away."""
        for point in list(self.mounts):
            subprocess.run(["umount", point], check=False, capture_output=True)
        if self.run and self.run.process.poll() is None:
            self.prony.run("vdisk", "stop", "--abort", self.dir)
            self.run.signal(signal.SIGINT)
            self.run.process.wait(60)
        shutil.rmtree(self.dir, ignore_errors=True)
