"""The stub server: real clients find it a server, it does wrong as it is told, and its record says
what it did. Whatever is measured against it later rests on that."""
import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest

from harness.claims import near
from harness.place import wait_until
from harness.stub import Stub

ENGINES = ["postgres", "mysql"]
PROTOCOLS = ["simple", "extended", "prepared"]


def run(argv, **kwargs):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60,
                          check=False, stdin=subprocess.DEVNULL, **kwargs)
    assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
    return done.stdout


def psql(server, *queries):
    words = [word for query in queries for word in ("-c", query)]
    return run(["psql", "-X", "-At", "-h", server.dir, "-U", "prony", "prony", *words])


def mariadb(server, query):
    return run(["mariadb", "--no-defaults", f"--socket={server.mysql_socket}", "--user=prony",
                "--batch", "--execute", query])


# ---- real clients

@pytest.mark.skipif(not shutil.which("psql"), reason="psql is not installed")
def test_psql_gets_rows_and_tags(stub):
    server = stub("--scale", 3)
    assert psql(server, "select 1 as a, abalance from t", "select count(*) from pgbench_branches",
                "begin; update t set a = 1; commit") == "1|1\n3\nBEGIN\nUPDATE 1\nCOMMIT\n"


@pytest.mark.skipif(not shutil.which("mariadb"), reason="mariadb is not installed")
def test_the_mariadb_client_gets_rows_of_several_statements(stub):
    out = mariadb(stub(), "select 1 as a, b from t; set names utf8mb4; select c from sbtest1")
    lines = out.splitlines()
    assert lines[:3] == ["a\tb", "1\t1", "c"], out
    assert re.fullmatch(r"(\d{11}-){9}\d{11} ?", lines[3]), out


@pytest.mark.skipif(not shutil.which("pgbench"), reason="pgbench is not installed")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("script", ["select-only", "tpcb-like"])
def test_pgbench_runs_its_own_scripts(stub, protocol, script):
    server = stub()
    out = run(["pgbench", "-h", server.dir, "-U", "prony", "-M", protocol, "-b", script, "-c", 3,
               "-t", 20, "prony"])
    assert "actually processed: 60/60" in out, out
    statements = server.counters()["statements"]
    assert statements == 60 * (1 if script == "select-only" else 7)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_prony_runs_and_both_count_the_same(prony, stub, engine, protocol):
    server = stub()
    doc = prony.measure(server.url(engine), "tpcb", "-s", 1, "-c", 3, "-t", 20, "-M", protocol,
                        "-q").json
    assert doc["transactions"]["done"] == 60 and not doc["errors"]
    assert server.stop()["statements"] == 60 * 7


def test_both_protocols_are_served_at_once_on_ports(prony, stub):
    server = stub()
    assert server.log().count("=") == 2
    with contextlib.ExitStack() as stack:
        for path in (server.postgres_socket, server.mysql_socket):
            stack.enter_context(connected(path))


# ---- faults

# Quantiles that each law has, in us. A busy machine adds to them, and nothing takes from them.
LAWS = {
    "fixed:2ms": {"min": 2000, "p50": 2000, "p90": 2000},
    "exponential:2ms": {"min": 0, "p50": 1386, "p90": 4605, "p99": 9210},
    "bimodal:0.05,40ms,1ms": {"min": 1000, "p50": 1000, "p90": 1000, "p99": 40000},
}
LATE_US = 5000


@pytest.mark.alone
@pytest.mark.release_only
@pytest.mark.parametrize("law", LAWS)
def test_delays_follow_their_law_and_are_recorded(prony, stub, law):
    server = stub("--delay", law)
    doc = prony.measure(server.url("postgres"), "select-only", "-s", 1, "-c", 8, "-T", 3,
                        "--warmup", "none", "-q").json
    given = server.stop()["delay_us"]
    assert given["count"] >= doc["transactions"]["done"] > 1000
    for key, us in LAWS[law].items():
        assert us * 0.9 <= given[key] <= us * 1.1 + LATE_US, (key, given)
    for key in ("mean", "p50", "p99"):  # the client cannot have seen less
        assert doc["latency_us"][key] >= given[key] * 0.98


@pytest.mark.parametrize("engine,class_name", [("postgres", "serialization"), ("mysql", "deadlock")])
def test_errors_are_those_that_were_asked_for(prony, stub, engine, class_name):
    server = stub("--error", "0.05/40001")
    doc = prony.measure(server.url(engine), "tpcb", "-s", 1, "-c", 2, "-t", 100, "--max-tries", 100,
                        "-q").json
    assert doc["transactions"]["done"] == 200
    assert doc["errors"] == {class_name: server.stop()["errors"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_dropped_sessions_are_lost_and_come_again(prony, stub, engine):
    server = stub("--drop", 0.02)
    doc = prony.measure(server.url(engine), "tpcb", "-s", 1, "-c", 4, "-t", 100, "-q").json
    counts = doc["transactions"]
    drops = server.stop()["drops"]
    assert drops > 0 and doc["errors"] == {"lost": drops}
    assert counts["done"] + counts["failed"] + counts["unknown"] == 400
    assert counts["failed"] + counts["unknown"] == drops


@pytest.mark.parametrize("engine", ENGINES)
def test_torn_messages_arrive_byte_by_byte(stub, engine):
    server = stub("--tear")
    path = server.postgres_socket if engine == "postgres" else server.mysql_socket
    with connected(path) as sock:
        if engine == "postgres":
            sock.sendall(startup_message())
        pieces = [sock.recv(100) for _ in range(40)]
    assert all(len(piece) == 1 for piece in pieces), pieces


@pytest.mark.parametrize("engine", ENGINES)
def test_torn_messages_change_nothing(prony, stub, engine):
    server = stub("--tear")
    doc = prony.measure(server.url(engine), "tpcb", "-s", 1, "-c", 2, "-t", 5, "-q").json
    assert doc["transactions"]["done"] == 10 and not doc["errors"]


@pytest.mark.alone
def test_a_stall_comes_once_when_it_was_told(prony, stub):
    server = stub("--stall", "1s,700ms")
    doc = prony.measure(server.url("postgres"), "select-only", "-s", 1, "-c", 4, "-T", 3,
                        "--warmup", "none", "-q").json
    stall = server.stop()["stall"]
    assert near(stall["at_s"], 1, 0.05, 0.1) and near(stall["for_s"], 0.7, 0.05, 0.1), stall
    stalled = [item for item in doc["slowest"] if item["latency_us"] > 600_000]
    assert len(stalled) == 4, doc["slowest"][:8]


# ---- clients that behave badly

@contextlib.contextmanager
def connected(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(path))
        yield sock


def startup_message():
    body = struct.pack("!I", 196608) + b"user\0prony\0database\0prony\0\0"
    return struct.pack("!I", len(body) + 4) + body


def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


def read_until(sock, end):
    data = b""
    while not data.endswith(end):
        piece = sock.recv(4096)
        assert piece, data
        data += piece
    return data


READY = b"Z\0\0\0\5I"


def test_clients_that_vanish_leave_no_session(stub):
    server = stub("--delay", "fixed:50ms")
    for cut in (b"", b"\0", startup_message()[:9], startup_message(),
                startup_message() + message(b"Q", b"select 1\0"),
                startup_message() + message(b"Q", b"select 1\0")[:7], b"\0\0\0\2", b"\xff" * 100):
        with connected(server.postgres_socket) as sock:
            sock.sendall(cut)
    for cut in (b"", b"\1", b"\0\0\0\1", b"\xff\xff\xff\1" + b"x" * 100, b"\5\0\0\1abcde"):
        with connected(server.mysql_socket) as sock:
            sock.sendall(cut)
    assert wait_until(lambda: server.counters()["sessions"] == 0, 10), server.counters()
    fds = f"/proc/{server.pid}/fd"
    assert wait_until(lambda: len(os.listdir(fds)) < 10, 10), os.listdir(fds)
    with connected(server.postgres_socket) as sock:
        sock.sendall(startup_message())
        assert read_until(sock, READY)


def test_a_request_for_tls_is_refused_and_the_session_goes_on(stub):
    with connected(stub().postgres_socket) as sock:
        sock.sendall(struct.pack("!II", 8, 80877103))
        assert sock.recv(1) == b"N"
        sock.sendall(startup_message())
        assert read_until(sock, READY)


def test_a_delayed_statement_can_be_cancelled(stub):
    server = stub("--delay", "fixed:30s")
    with connected(server.postgres_socket) as sock, connected(server.postgres_socket) as other:
        sock.sendall(startup_message())
        welcome = read_until(sock, READY)
        key = welcome[welcome.index(b"K\0\0\0\x0c") + 5:][:8]
        sock.sendall(message(b"Q", b"select 1\0"))
        time.sleep(0.1)
        other.sendall(struct.pack("!II", 16, 80877102) + key)
        assert b"C57014" in read_until(sock, READY)


@pytest.mark.skipif(not shutil.which("mariadb"), reason="mariadb is not installed")
def test_a_delayed_statement_can_be_killed(stub):
    server = stub("--delay", "fixed:30s")
    with subprocess.Popen(["mariadb", "--no-defaults", f"--socket={server.mysql_socket}", "-u",
                           "prony", "-e", "select a from t"], stderr=subprocess.PIPE, text=True,
                          stdout=subprocess.DEVNULL) as client:
        assert wait_until(lambda: server.counters()["statements"] == 1, 10)
        mariadb(server, "kill query 1")
        _, said = client.communicate(timeout=10)
    assert "ERROR 1317 (70100)" in said


def test_an_error_in_a_pipeline_skips_to_its_sync(stub):
    """Parse, Bind and Execute of an unknown statement, then a good one: one error, two Syncs."""
    bad = message(b"B", b"\0none\0" + bytes(6)) + message(b"E", bytes(5)) + message(b"S", b"")
    good = (message(b"P", b"\0select 7\0\0\0") + message(b"B", bytes(8)) + message(b"E", bytes(5)) +
            message(b"S", b""))
    with connected(stub().postgres_socket) as sock:
        sock.sendall(startup_message())
        read_until(sock, READY)
        sock.sendall(bad + good)
        answer = read_until(sock, b"SELECT 1\0" + READY)
    assert answer.count(READY) == 2 and answer.count(b"C26000") == 1
    assert answer.index(READY) < answer.index(b"1\0\0\0\4")  # the good one's ParseComplete


def test_statements_of_a_failed_transaction_are_refused(stub):
    with connected(stub("--error", "0.5/23505").postgres_socket) as sock:
        sock.sendall(startup_message())
        read_until(sock, READY)
        failed = None
        for _ in range(200):
            sock.sendall(message(b"Q", b"begin; update t set a = 1\0"))
            answer = sock.recv(4096)
            if b"C23505" in answer and answer.endswith(b"E"):
                failed = answer
                break
            sock.sendall(message(b"Q", b"rollback\0"))
            read_until(sock, READY)
        assert failed
        sock.sendall(message(b"Q", b"select 1\0"))
        assert b"C25P02" in read_until(sock, b"Z\0\0\0\5E")
        sock.sendall(message(b"Q", b"rollback\0"))
        assert b"ROLLBACK" in read_until(sock, READY)


# ---- its own command line

@pytest.mark.parametrize("option,value,says", [
    ("--delay", "2ms", "fixed:2ms"), ("--delay", "fixed:fast", "fixed:2ms"),
    ("--delay", "bimodal:2,1ms,2ms", "bimodal"), ("--error", "0.1", "RATE/SQLSTATE"),
    ("--error", "0.1/4000", "RATE/SQLSTATE"), ("--stall", "3s", "AT,FOR"),
    ("--drop", "1.5", "between"), ("--postgres", "/nowhere/at/all/socket", "/nowhere"),
])
def test_bad_options_are_named(place, option, value, says):
    server = Stub(place)
    done = subprocess.run([server.binary, "--mysql", server.mysql_socket, option, value],
                          capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2 and says in done.stderr, done


# ---- many sessions

def test_the_limit_of_open_files_is_raised_or_told(prony, stub):
    url = stub().url("postgres")
    few = ("prlimit", "--nofile=128:400")
    doc = prony.measure(url, "select-only", "-s", 1, "-c", 300, "-t", 2, "-q", prefix=few).json
    assert doc["transactions"]["done"] == 600
    result = prony.refused("run", url, "select-only", "-s", 1, "-c", 350, "-t", 2, prefix=few,
                           says=["--clients 350", "open 400 files", "ulimit -n 414",
                                 "at most 336 clients"])
    assert result.err.count("\n") == 1
