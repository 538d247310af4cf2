"""Are virtual disks as fast as they say? fio on disks of known numbers."""
import json
import os
import re
import shutil
import subprocess

from speed.pairs import Spread
from speed.report import Claim, Table
from storage.disks import counter, floor_us, served

ABOUT = "virtual disks against fio: flush, random and sequential, seeks"
NEEDS = ["fio"]

BOUND = 0.10
TIMES_FLOOR = 5
DISKS = {
    "flush2": "size=256M,flush=2ms,near-floor=yes",
    "flush10": "size=256M,flush=10ms",
    "read1": "size=256M,read=1ms,channels=1,near-floor=yes",
    "read4": "size=256M,read=1ms,channels=4,near-floor=yes",
    "read16": "size=256M,read=2ms,channels=16,near-floor=yes",
    "rate": "size=1G,rate=100M,cache=16M",
    "hdd": "size=4G,model=hdd-7200",
}
# hdd-7200 says: a seek takes 0.6 ms and up to 15.4 ms more by the root of its share of the full
# stroke, of which 8/15 is the mean over uniform pairs; then half a turn.
SEEK_TRACK_US, SEEK_MORE_US, HALF_TURN_US = 600, 15400 * 8 / 15, 4167

# fio's own wait for the processor would count as the disk's.
FIRST = ["chrt", "--fifo", "1"] if shutil.which("chrt") and os.geteuid() == 0 else []


def fio(device, seconds, *args):
    run = subprocess.run([*FIRST, "fio", "--name=x", f"--filename={device}", "--direct=1",
                          "--time_based", f"--runtime={seconds}", "--output-format=json", *args],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]


class Truth:
    def __init__(self, bench, devices, floor):
        self.bench = bench
        self.seconds = 1 if bench.quick else 3
        self.devices = devices
        self.floor = floor
        self.table = Table("Virtual disks against fio",
                           ["", "configured", "measured", "unit", "off by", ""])
        self.worst = 0.0

    def line(self, what, configured, measure, unit, floor=None):
        value = Spread(measure() for _ in range(self.bench.n_rounds(3)))
        off = value.median / configured - 1
        counts = floor is None or configured >= TIMES_FLOOR * floor
        if counts:
            self.worst = max(self.worst, abs(off))
        self.table.add(what, f"{configured:.0f}", value.show(0), unit, f"{off:+.1%}",
                       "" if counts else "below 5 times the floor")
        self.bench.say(f"{what}: {off:+.1%}")

    def flush_us(self, disk):
        job = fio(self.devices[disk], self.seconds, "--rw=write", "--bs=4k", "--fsync=1",
                  "--ioengine=psync")
        return job["sync"]["lat_ns"]["mean"] / 1e3

    def reads(self, disk, depth, *args):
        return fio(self.devices[disk], self.seconds, "--rw=randread", "--bs=4k",
                   "--ioengine=libaio", f"--iodepth={depth}", *args)["read"]

    def read_us(self, disk, *args):
        return self.reads(disk, 1, *args)["lat_ns"]["mean"] / 1e3

    def rate_mib(self, disk, kind, *args):
        job = fio(self.devices[disk], self.seconds, f"--rw={kind}", "--bs=1M",
                  "--ioengine=libaio", "--iodepth=4", *args)
        return job[kind]["bw"] / 1024

    def run(self):
        for ms in (2, 10):
            self.line(f"flush, {ms} ms", ms * 1000, lambda m=ms: self.flush_us(f"flush{m}"), "us",
                      self.floor["flush"])
        for ms, channels in ((1, 1), (1, 4), (2, 16)):
            disk = f"read{channels}"
            self.line(f"random read at depth 1, {channels} channels", ms * 1000,
                      lambda d=disk: self.read_us(d), "us", self.floor["read"])
            self.line(f"random reads at depth {channels}, {channels} channels",
                      channels * 1000 / ms,
                      lambda d=disk, c=channels: self.reads(d, c)["iops"], "reads/s",
                      self.floor["read"] * 1e-6 / (ms * 1e-3) * channels * 1000 / ms)
        for kind in ("read", "write"):
            self.line(f"sequential {kind}, 100 MiB/s", 100,
                      lambda k=kind: self.rate_mib("rate", k), "MiB/s")
        self.line("hard disk, sequential read, outside", 200,
                  lambda: self.rate_mib("hdd", "read", "--size=512M"), "MiB/s")
        for words, size, share in (("full stroke", "4G", 1), ("1/64 of it", "64M", 1 / 64)):
            self.line(f"hard disk, random read, {words}",
                      SEEK_TRACK_US + SEEK_MORE_US * share ** 0.5 + HALF_TURN_US,
                      lambda s=size: self.read_us("hdd", f"--size={s}"), "us", self.floor["read"])


def run(bench):
    with served(bench, DISKS) as (devices, said):
        truth = Truth(bench, devices, floor_us(said))
        truth.run()
        late_us = counter(bench, bench.dir / "vd", "late_mean_ns") / 1000
    truth.table.notes.append(re.search("floor of the path.*", said)[0] +
                             f"; replies came {late_us:.0f} us late on average.")
    return [truth.table], [Claim("virtual disks: off from the configured value, where that is at "
                                 "least 5 times the floor", f"at most {truth.worst:.1%}",
                                 f"at most {BOUND:.0%}", truth.worst <= BOUND)]
