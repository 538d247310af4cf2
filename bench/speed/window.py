"""A look at a client and the stub while both are at work: between two moments in the middle of the
load, so that neither the start of a program, nor its connecting, nor its report counts."""
import time

from speed.pairs import Unavailable
from speed.process import program

SETTLE_S = 0.3
CONNECT_S = 60  # the longest that may take
END_S = 0.5     # of a load that ends by itself: how much longer than the window


class Sample:
    def __init__(self, client, stub):
        self.time_s = time.monotonic()
        self.client_s = client.cpu_s()
        self.stub_s = stub.cpu_s()
        self.statements = stub.server.counters()["statements"]


def wait_for_load(client, stub, clients):
    """All sessions are there, and the load has begun. What came before does not count."""
    end_s = time.monotonic() + CONNECT_S
    while stub.server.counters()["sessions"] < clients:
        client.check_running()
        if time.monotonic() > end_s:
            raise Unavailable(f"{clients} sessions were not open within {CONNECT_S} s")
        time.sleep(0.01)
    before = stub.server.counters()["statements"]
    while stub.server.counters()["statements"] - before < clients:
        client.check_running()
        if time.monotonic() > end_s:
            raise Unavailable("no load was seen")
        time.sleep(0.01)


def measure(bench, stub, argv, clients, window_s, ends=False):
    """What one client program does per statement, as a dictionary. ends: it ends by itself soon
    after the window and must do so well."""
    with program(bench, argv, core=bench.client_core) as client:
        wait_for_load(client, stub, clients)
        counters = stub.server.counters()
        time.sleep(SETTLE_S)
        a = Sample(client, stub)
        time.sleep(window_s)
        b = Sample(client, stub)
        rss_kib = client.rss_kib()
        client.check_running()
        if ends and client.wait() != 0:
            raise Unavailable(client.last_words())
    seconds = b.time_s - a.time_s
    statements = b.statements - a.statements
    if statements == 0:
        raise Unavailable("it did nothing")
    return {
        "us": (b.client_s - a.client_s) / statements * 1e6,
        "tps": statements / seconds,
        "client_busy": (b.client_s - a.client_s) / seconds,
        "stub_busy": (b.stub_s - a.stub_s) / seconds,
        "rss_kib": rss_kib,
        "connect_s": (counters["ready_ns"] - counters["rise_ns"]) / 1e9,
    }
