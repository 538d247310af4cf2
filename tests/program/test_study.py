"""prony study: set-ups in interleaved blocks, verdicts, failures, the end by a signal. On null:, whose
speed is known."""
import json
import signal

import pytest

from harness.place import wait_until

FAST = ["-c", "2", "-t", "20", "--warmup", "none"]


def study(prony, *args, status=0):
    out = prony.dir / "study.json"
    result = prony.run("study", *args, "--json", out)
    assert result.status == status, result
    return json.loads(out.read_text()), result.out


def test_a_difference_that_is_there_is_found_and_told(prony):
    doc, text = study(prony, "null:", "tpcb", "--vary", "latency=1ms,10ms", "--blocks", "6", "--seed",
                      "7", *FAST)
    slow = doc["cells"][1]
    assert doc["runs"] == 18 and doc["blocks"] == 6 and doc["status"] == "done"
    assert slow["tps"]["comparison"]["verdict"] == "lower"
    assert slow["p99_us"]["comparison"]["ratio"] > 1
    assert 0.05 < slow["tps"]["comparison"]["ratio"] < 0.6
    assert len(doc["cells"][0]["tps"]["values"]) == 12 and len(slow["tps"]["values"]) == 6
    assert "latency=10ms: 0." in text and "times as fast" in text
    assert "two equal cells differ by" in text
    runs = json.loads(prony.good("list", "--json", "-n", "0").out)
    assert len(runs) == 18 and {run["label"] for run in runs} == {doc["name"]}
    assert doc["last_run_id"] - doc["first_run_id"] == 17


def test_runs_of_a_block_share_their_seed_and_come_in_the_seeds_order(prony):
    args = ["null:", "tpcb", "--vary", "protocol=simple,prepared,extended", "--blocks", "3", "--seed",
            "11", *FAST]

    def order():
        doc, _ = study(prony, *args)
        rows = prony.good("sql", "--json", "SELECT seed, protocol FROM runs WHERE label = "
                          f"'{doc['name']}' AND id >= {doc['first_run_id']} ORDER BY id").out
        return [(row["seed"], row["protocol"]) for row in json.loads(rows)]

    first = order()
    assert [seed for seed, _ in first] == ["11"] * 3 + ["12"] * 3 + ["13"] * 3
    assert all({name for _, name in first[i:i + 3]} == {"simple", "prepared", "extended"}
               for i in (0, 3, 6))
    assert order() == first


def test_several_targets_at_several_loads_are_compared_at_each_load(prony):
    doc, _ = study(prony, "null:", "null:?latency=2ms", "tpcb", "-c", "1,2", "-t", "20", "--warmup",
                   "none", "--blocks", "2")
    assert [cell["name"] for cell in doc["cells"]] == [
        "null:, clients=1", "null:, clients=2", "null:?latency=2ms, clients=1",
        "null:?latency=2ms, clients=2"]
    assert [cell["baseline"] for cell in doc["cells"]] == [0, 1, 0, 1]


def test_a_set_up_that_fails_is_told_and_the_others_go_on(prony):
    doc, text = study(prony, "sqlite:", "tpcb", "-s", "1", "--vary", "journal_mode=wal,nosuch,memory",
                      "--blocks", "2", *FAST, status=1)
    assert doc["status"] == "failed" and doc["failed_runs"] == 1
    assert "nosuch" in doc["cells"][1]["failure"] and "failed: sqlite:" in text
    assert doc["cells"][1]["tps"]["comparison"] is None
    assert doc["cells"][2]["tps"]["comparison"]["ratio"] > 0


def test_where_all_fail_it_ends_with_their_words(prony):
    result = prony.refused("study", "sqlite:", "tpcb", "--vary", "journal_mod=wal,delete")
    assert "did you mean journal_mode?" in result.err
    assert not prony.store.exists()


def test_a_set_up_is_compared_with_itself(prony):
    doc, text = study(prony, "null:", "tpcb", "--aa", "--blocks", "3", *FAST)
    assert doc["runs"] == 6 and doc["equal_cells"]["ratio"] > 0
    assert text.splitlines()[3].startswith("a set-up compared with itself")


def test_it_ends_when_intervals_are_narrow(prony):
    doc, text = study(prony, "null:?latency=2ms", "tpcb", "--aa", "--until", "50%", "-c", "1", "-t",
                      "10", "--warmup", "none")
    assert 8 <= doc["blocks"] < 50 and doc["alpha"] == 0.038
    assert "ended when all intervals were narrow enough" in " ".join(text.split())


def test_a_database_that_stays_is_doubted(prony, target):
    prony.good("init", target.url(), "tpcb", "-s", "1")
    doc, text = study(prony, target.url(), "tpcb", "--vary", "think=0ms,1ms", "--blocks", "2", *FAST)
    assert doc["state"] == "carried" and "state-carried: the data stays" in text


def test_a_password_is_not_shown(prony):
    doc, text = study(prony, "null:", "tpcb", "--aa", "--blocks", "1", "--label",
                      "x postgres://u:geheim@h/d", *FAST)
    assert "geheim" not in text and "geheim" not in json.dumps(doc)
    assert json.loads(prony.good("list", "--json").out)[0]["label"] == doc["name"]


def test_a_signal_ends_it_with_what_there_is(prony):
    run = prony.start("study", "null:?latency=1ms", "tpcb", "--vary", "protocol=simple,prepared", "-T",
                      "1s", "--blocks", "30", "--warmup", "none", "--json", prony.dir / "study.json")
    assert wait_until(lambda: prony.store.exists() and len(json.loads(
        prony.run("list", "--json").out or "[]")) >= 3, 120)
    run.signal(signal.SIGINT)
    result = run.wait(60)
    assert result.status == 0, result
    doc = json.loads((prony.dir / "study.json").read_text())
    assert doc["status"] == "interrupted" and 2 <= doc["runs"] < 60


def test_killed_it_leaves_nothing(prony):
    run = prony.start("study", "sqlite:", "tpcb", "-s", "1", "--vary", "journal_mode=wal,delete", "-T",
                      "60s")
    assert wait_until(lambda: any(prony.dir.glob(".prony-*")) or any(
        prony.place.temp.glob("prony-study-*/run.log")), 60), run.peek()
    run.kill()
    run.wait()
    assert wait_until(lambda: not any(prony.place.temp.iterdir()), 30)


@pytest.mark.parametrize("args,says", [
    (["null:", "tpcb"], "nothing to compare"),
    (["tpcb"], "which database"),
    (["null:", "tpcb", "--vary", "latency=1ms"], "at least two values"),
    (["null:", "tpcb", "--vary", "latency"], "NAME=VALUE"),
    (["null:", "tpcb", "--aa", "--vary", "latency=1ms,2ms"], "--aa compares one set-up"),
    (["null:", "null:", "tpcb"], "stands twice"),
    (["null:", "tpcb", "--aa", "--until", "0%"], "between 0.1% and 50%"),
    (["null:", "tpcb", "--aa", "--until", "3%", "--blocks", "5"], "at least 8 blocks"),
    (["null:", "tpcb", "--aa", "--trace", "x"], "--trace is for a single run"),
    (["null:", "tpcb", "--aa", "--seed", "x"], "--seed"),
    (["null:", "tpcb", "--aa", "--nosuch"], "--nosuch"),
    (["postgres", "tpcb", "--vary", "work_mem=1MB,2MB"], "write it as a URL"),
    (["null:", "tpcb", "--aa", "-T", "x"], "--time"),
])
def test_wrong_studies_are_refused_in_one_line(prony, args, says):
    result = prony.refused("study", *args)
    assert says in result.err and result.err.count("\n") == 1, result
