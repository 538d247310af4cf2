"""--at: what happens while the load runs, and the marks it leaves."""
import os
import signal

import pytest

from harness.place import wait_until


def events(result):
    return result.json["events"]


def test_commands_are_marked_with_the_rates_around_them(prony):
    mark = prony.dir / "mark"
    result = prony.measure("null:?latency=5ms", "select-only", "-c", "2", "-T", "9", "--at", "4s",
                           "echo no >&2; exit 3", "--at", "2s", f"touch {mark}; sleep 0.2",
                           "--at", "5500ms", "sleep 60")  # seconds before the end
    first, second, third = events(result)
    assert mark.exists()
    assert (first["what"], first["outcome"], first["at_s"]) == (
        f"touch {mark}; sleep 0.2", "done", 2.0)
    assert first["to_s"] - first["from_s"] >= 0.2
    assert first["from_s"] >= 2.0
    assert first["tps_before"] > 0 and first["tps_during"] > 0
    assert second["outcome"] == "failed: status 3: no"
    assert third["outcome"] == "cut off by the end of the load"
    assert result.json["environment"]["event.2.what"] == "echo no >&2; exit 3"
    assert "  events 2s touch" in result.out
    assert "  events        1: touch" in result.out
    kept = prony.good("sql", "SELECT value FROM environment WHERE key = 'event.1.outcome'").out
    assert "done" in kept
    shown = prony.good("show", "last", "--format", "md").out
    assert "events: 1: touch" in shown


def test_what_the_load_does_not_reach_never_begins(prony):
    result = prony.measure("null:", "select-only", "-t", "100", "-c", "1", "--at", "1h", "echo x")
    assert events(result)[0]["outcome"] == "not begun: the load was over"
    assert events(result)[0]["from_s"] is None


def test_a_password_in_a_command_is_not_shown(prony):
    result = prony.measure("null:", "select-only", "-t", "1", "-c", "1", "--at", "1h",
                           "psql postgres://me:hush@host/db")
    assert "  events 1h psql postgres://me:" in result.out
    assert "hush" not in result.out + result.err


def test_events_that_cannot_be_are_refused(prony):
    run = ("run", "null:", "select-only", "-T", "5")
    for at, says in [
        (["--at", "2s"], "two arguments"),
        (["--at", "2x", "checkpoint"], "--at"),
        (["--at", "2s", "checkpont"], "did you mean checkpoint"),
        (["--at", "2s", "checkpoint"], "has no statement"),
        (["--at", "2s", "restart"], "not prony's to stop"),
        (["--at", "5s", "echo x"], "the load ends before that"),
        (["--at", "1s", "echo x"] * 17, "at most 16"),
    ]:
        prony.refused(*run, *at, says=says)


def test_checkpoint_of_sqlite(prony):
    prony.good("init", "sqlite:x.db?journal_mode=wal", "tpcb", "-s", "1")
    result = prony.measure("sqlite:x.db", "tpcb", "-T", "5", "-c", "1", "--at", "1s", "checkpoint")
    assert events(result)[0]["outcome"] == "done", events(result)


@pytest.mark.unsanitized
def test_checkpoint_of_postgres(prony, postgres):
    url = postgres.url(postgres.new_database())
    result = prony.measure(url, "-f", write(prony, "SELECT 1;"), "-T", "5", "-c", "1", "-R", "50",
                           "--at", "1s", "checkpoint")
    assert events(result)[0]["outcome"] == "done", events(result)
    checkpoints = result.json["counters"].get("checkpoints_requested")
    assert checkpoints is None or checkpoints >= 1


def write(prony, text):
    path = prony.dir / "script.sql"
    path.write_text(text + "\n", encoding="ascii")
    return path


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda n: n.name)
def test_a_command_ends_with_prony(prony, number):
    pid_file = prony.dir / "pid"
    run = prony.start("run", "null:?latency=1ms", "select-only", "-c", "1", "-T", "60", "--at", "0s",
                      f"setsid sleep 100 & echo $! > {pid_file}; wait")
    assert wait_until(lambda: pid_file.exists() and pid_file.read_text("ascii").strip(), 30)
    pid = int(pid_file.read_text("ascii"))
    run.signal(number)
    run.wait()
    assert wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30)
