"""Programs under measurement, looked at from outside: every contestant in the same way, whatever it
says of itself."""
import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from speed.pairs import Unavailable


def cpu_clock(pid):
    """The clock that counts a process's CPU time, all its threads', ended ones too, in user and in
    system mode (clock_getcpuclockid(3))."""
    return (~pid << 3) | 2


class Program:
    """A program on one core, or on all."""

    def __init__(self, bench, argv, core=None):
        prefix = [] if core is None else ["taskset", "-c", str(core)]
        self.argv = [*prefix, *map(str, argv)]
        self.log = bench.new_file(".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=bench.dir, env=bench.environment())

    @property
    def pid(self):
        return self.process.pid

    def cpu_s(self):
        return time.clock_gettime_ns(cpu_clock(self.pid)) / 1e9

    def rss_kib(self):
        text = Path("/proc", str(self.pid), "status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1])

    def output(self):
        return self.log.read_text(errors="replace")

    def is_running(self):
        return self.process.poll() is None

    def check_running(self):
        if not self.is_running():
            raise Unavailable(self.last_words())

    def last_words(self):
        lines = [line for line in self.output().splitlines() if line.strip()]
        return lines[-1] if lines else f"ended with status {self.process.returncode}"

    def wait(self, timeout_s=60):
        """The status, once it has ended by itself."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise RuntimeError(f"did not end: {' '.join(self.argv)}\n{self.output()}") from None

    def end(self, number=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def program(bench, argv, core=None):
    """A program that is ended at the end of the block, if it has not by itself."""
    running = Program(bench, argv, core)
    try:
        yield running
    finally:
        if running.is_running():
            running.end()


