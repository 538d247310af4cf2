"""The stub server on a core of its own."""
import time

from harness.place import wait_until
from harness.stub import Stub

from speed.process import cpu_clock


class PinnedStub:
    def __init__(self, bench, *options):
        self.server = Stub(bench.place, *options, prefix=["taskset", "-c", bench.server_core],
                           binary=bench.program("stub"))

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, kind, value, trace):
        self.server.__exit__(kind, value, trace)

    def cpu_s(self):
        return time.clock_gettime_ns(cpu_clock(self.server.pid)) / 1e9

    def wait_until_alone(self):
        assert wait_until(lambda: self.server.counters()["sessions"] == 0, 20), \
            "a client that has ended still has sessions"
