"""Volumes made and killed over and over: does anything stay behind?"""
import os
import random
import signal
import subprocess
import time

from harness.place import wait_until
from harness.volumes import MOUNT_DIR, loops_on
from speed.report import Claim, Table
from storage.disks import let_servers_in

ABOUT = "30 cycles of up, run, kill, down of servers on volumes; what stays behind"
NEEDS = []

CYCLES = 30
LONGEST_S = 8.0  # format, mount, initdb, load, run and the way down all lie within
SETUPS = [
    "postgres?data=vdisk:size=512M,model=none&log=vdisk:size=256M,model=none",
    "postgres?data=loop:size=512M,fs=ext3&log=loop:size=256M,fs=ext3,mount={data=writeback}",
    "mariadb?data=loop:size=512M,fs=xfs&log=loop:size=256M,fs=ext4",
    "mariadb?data=vdisk:size=512M,fs=btrfs",
]
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]


def left(bench, pid):
    """What is still there of a run, as lines."""
    lines = [f"process {p}: {command}" for p, command in bench.place.processes()]
    lines += [f"{device} on {file}" for device, file in loops_on(bench.dir).items()]
    lines += [f"{device} on {file}" for device, file in loops_on("/run").items()
              if f"prony-vdisk-{pid}-" in file]
    lines += [str(path) for path in MOUNT_DIR.glob(f"{pid}-*")]
    for where in (bench.place.temp, bench.place.runtime, bench.dir):
        lines += [str(path) for path in where.rglob("*")
                  if path.is_file() and path.name != "store.db" and path.suffix not in (".log",)]
    return lines


def cycle(bench, setup, number, after_s):
    """The words that say how far it had come, and what it left."""
    log = bench.new_file(".log")
    with open(log, "wb") as out:
        run = subprocess.Popen([bench.prony, "run", f"server:{setup}", "tpcb", "-s", "5", "-c", "4",
                                "-T", "60"], stdout=out, stderr=out, cwd=bench.dir,
                               env={**bench.environment(), "TMPDIR": str(bench.place.temp)})
    time.sleep(after_s)
    run.send_signal(number)
    run.wait(120)
    wait_until(lambda: not left(bench, run.pid), 60, pause_s=0.1)
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return (said[-1].strip() if said else "nothing said yet"), left(bench, run.pid)


def run(bench):
    let_servers_in(bench)
    seed = int(os.environ.get("PRONY_TEST_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    n = 4 if bench.quick else CYCLES
    table = Table(f"{n} runs ended at random moments, seed {seed}",
                  ["server", "signal", "after (s)", "last words", "left"])
    stayed = 0
    for i in range(n):
        setup, number = SETUPS[i % len(SETUPS)], rng.choice(SIGNALS)
        after_s = rng.uniform(0, LONGEST_S)
        words, lines = cycle(bench, setup, number, after_s)
        stayed += bool(lines)
        table.add(f"`{setup.replace('&', ' ')}`", signal.Signals(number).name, f"{after_s:.1f}",
                  words[:60].replace("|", "/"), "; ".join(lines) or "nothing")
        bench.say(f"cycle {i + 1}: {lines or 'nothing left'}")
    return [table], [Claim(f"{n} cycles of up, run, end at a random moment: that left a process, mount, "
                           "device or file", str(stayed), "0", stayed == 0)]
