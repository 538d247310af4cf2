"""Memory grows with seconds of measuring, never with transactions."""
import os
import subprocess

import pytest

from harness.loops import RINGS

pytestmark = pytest.mark.release_only


def peak_kib(prony, *args):
    """Most of the memory that prony ever had."""
    with open(prony.dir / "run.err", "wb") as err:
        process = subprocess.Popen([prony.binary, "run", *map(str, args), "-q"],
                                   env=prony.environment(), cwd=prony.dir,
                                   stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (prony.dir / "run.err").read_text()
    return usage.ru_maxrss


def test_twenty_million_transactions_take_the_memory_of_one_million(prony):
    few = peak_kib(prony, "null:", "select-only", "-c", 1, "-t", 1000000)
    many = peak_kib(prony, "null:", "select-only", "-c", 1, "-t", 20000000)
    assert many - few < 1024, (few, many)
    assert few < 64 * 1024


@pytest.mark.parametrize("engine,loop", zip(["postgres", "mysql"], RINGS), indirect=["loop"])
def test_transactions_of_the_ring_take_no_memory(prony, stub, engine, loop):
    server = stub()
    line = [server.url(engine), "select-only", "-s", 1, "-c", 16, "--loop", loop]
    few = peak_kib(prony, *line, "-t", 1000)
    many = peak_kib(prony, *line, "-t", 10000)
    assert many - few < 1024, (few, many)


def test_a_client_takes_little_memory(prony):
    few = peak_kib(prony, "null:?latency=1ms", "select-only", "-c", 10, "-t", 5)
    many = peak_kib(prony, "null:?latency=1ms", "select-only", "-c", 510, "-t", 5)
    assert (many - few) / 500 < 200, (few, many)
