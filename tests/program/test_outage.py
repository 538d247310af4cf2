"""A server that goes away in the middle of a run and comes back: the run goes on, and the result
shows the hole and what became of the transactions that were in it."""
import json
import signal
import time

from harness.claims import check_document, tps_at, warning_ids
from harness.loops import each_loop
from harness.place import wait_until
from harness.targets import SERVER_ENGINES, balances

DOWN_S = 5


def end_server(target, loop):
    """kill -9; PostgreSQL also by its shutdown "immediate", which tells its clients."""
    if target.engine == "postgres" and loop == "ring-uring":
        target.server.stop(signal.SIGQUIT)
    else:
        target.server.kill()


def wait_for_service(run):
    """Until all clients have been back for three lines of progress, however slow the server is."""
    before = len(run.err.read_text(encoding="utf-8").splitlines())

    def is_back():
        lines = run.err.read_text(encoding="utf-8").splitlines()[before:]
        return sum("connected" not in line and ", 0 tps" not in line for line in lines) >= 3
    assert wait_until(is_back, 40, 0.1), run.peek()


@each_loop("killable", SERVER_ENGINES)
def test_a_run_survives_five_seconds_without_a_server(prony, killable, loop):
    target = killable
    prony.good("init", target.url(), "tpcb", "-s", 4, "-q")
    run = prony.start("run", target.url(), "tpcb", "-T", 60, "-c", 6, "-P", 1, "--json",
                      "result.json")
    run.seen("progress: 2.")
    down_at = time.monotonic()
    end_server(target, loop)
    ended = time.monotonic()
    time.sleep(max(0, DOWN_S - (time.monotonic() - down_at)))
    target.server.start()
    down_s = time.monotonic() - down_at
    wait_for_service(run)
    run.interrupt()
    result = run.wait(40)
    assert result.status == 0, result
    doc = json.loads((prony.dir / "result.json").read_text(encoding="utf-8"))
    check_document(doc)
    assert doc["status"] == "interrupted"

    # Rows that were acknowledged are there, however the server ended; and no others.
    n = doc["transactions"]
    sums, rows = balances(target)
    assert n["done"] <= rows <= n["done"] + n["unknown"] + n["in_flight"], n
    assert len(set(sums)) == 1, sums
    prony.good("check", target.url(), "tpcb")

    # Each client lost its connection once, and what it ran has failed or is unknown.
    errors = doc["errors"]
    assert errors["lost"] == 6, errors
    assert errors["unavailable"] > 0, errors
    assert set(errors) <= {"lost", "unavailable", "deadlock"}, errors
    assert n["failed"] + n["unknown"] <= 6 + errors.get("deadlock", 0)
    connections = doc["connections"]
    assert connections["reconnects"] == 6
    assert connections["attempts"] >= errors["unavailable"]

    # The hole: some two seconds from the start, as long as the server was away.
    assert len(connections["outages"]) == 1, connections
    assert abs(connections["outages"][0]["from_s"] - 2) < 1.5, connections
    stopped = ended - down_at  # a stop in order serves some clients until its end
    assert 0.8 * (down_s - stopped) - 0.5 < connections["outage_s"] < down_s + 2.5, (connections,
                                                                                     down_s)
    seconds = int(doc["duration_s"])
    zeros = [t for t in range(seconds) if tps_at(doc, t) == 0]
    assert len(zeros) >= DOWN_S - 2 - int(stopped), doc["series"]
    assert zeros == list(range(zeros[0], zeros[-1] + 1)), zeros
    assert tps_at(doc, 0) > 0 and tps_at(doc, seconds - 1) > 0
    assert sum(item["errors"] for item in doc["series"]) == sum(errors.values())
    assert {"outage", "errors"} <= warning_ids(doc)
    assert "0 of 6 connected" in result.err, result
    assert "connections" in result.out
