"""prony compare, baseline and history. Runs are copies of one real run with throughputs written into
the results file, so that every answer is known; nothing here measures."""
import json
import sqlite3
import uuid

import pytest


MODEL = {}  # the results file with the one real run, by binary: made once


class Runs:
    """Puts runs into the results file of a test."""

    def __init__(self, prony):
        self.prony = prony
        if prony.binary not in MODEL:
            prony.measure("null:", "tpcb", "-t", 50, "-c", 2, "-q", "--label", "model")
            MODEL[prony.binary] = prony.store.read_bytes()
        prony.store.write_bytes(MODEL[prony.binary])
        self.made = 0

    def add(self, label, tps, block=0, environment=None, path=None, **columns):
        """A run; its id. environment: keys that are replaced, or added."""
        self.made += 1
        db = sqlite3.connect(path or self.prony.store)
        db.execute("pragma synchronous = off")
        names = [row[1] for row in db.execute("pragma table_info(runs)") if row[1] != "id"]
        new = {"uuid": str(uuid.UUID(int=self.made)), "label": label, "tps": tps, "block": block,
               "started_real_ns": 10**18 + self.made * 10**9, **columns}
        shown = ["?" if name in new else name for name in names]
        values = [new[name] for name in names if name in new]
        cursor = db.execute(f"insert into runs ({', '.join(names)}) select {', '.join(shown)} "
                            "from runs where id = 1", values)
        number = cursor.lastrowid
        for table in ("environment", "options", "warnings"):
            rest = [row[1] for row in db.execute(f"pragma table_info({table})")
                    if row[1] != "run_id"]
            db.execute(f"insert into {table} (run_id, {', '.join(rest)}) select ?, "
                       f"{', '.join(rest)} from {table} where run_id = 1", [number])
        for position, (key, value) in enumerate((environment or {}).items()):
            db.execute("delete from environment where run_id = ? and key = ?", [number, key])
            db.execute("insert into environment values (?, ?, ?, ?)",
                       [number, 1000 + position, key, value])
        db.commit()
        db.close()
        return number

    def blocks(self, old, new, labels=("before", "after"), **kwargs):
        """Two sets of runs in turns, one of each in a block."""
        for i, pair in enumerate(zip(old, new)):
            for label, tps in zip(labels, pair):
                self.add(label, tps, block=i + 1, **kwargs)


OLD = [1000, 1012, 991, 1005, 1020, 996, 1003, 1011]
NOISE = [1.01, 0.99, 1.004, 0.995, 1.008, 0.992, 1.002, 1.001]
FASTER = [a * 1.081 * b for a, b in zip(OLD, NOISE)]


@pytest.fixture
def runs(prony):
    return Runs(prony)


def compare(prony, *args, status=0):
    result = prony.run("compare", *args)
    assert result.status == status, result
    return result


def document(prony, *args, status=0):
    return json.loads(compare(prony, *args, "--json", status=status).out)


def main_of(doc):
    return doc["comparisons"][0]


# ---- published figures

JFS, XFS, EXT3 = "JFS=462+-104/17", "XFS=425+-74/17", "ext3=319+-106/17"


def test_published_figures_need_no_results_file(prony):
    text = compare(prony, JFS, XFS, EXT3).out
    words = " ".join(text.split())
    assert "XFS against JFS: no difference shown: it would take about 730 runs of each to see 3 %" \
        in words
    assert "ext3 against JFS: slower by 31 % (" in words
    assert not prony.store.exists()
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.splitlines())
    for one in ("462+-104/17", "462±104/17", "462+/-104/17"):
        assert main_of(document(prony, one, XFS))["verdict"] == "open"
    doc = document(prony, JFS, XFS)
    assert doc["schema"] == "prony.compare/1" and doc["outcome"] == "good"
    assert abs(main_of(doc)["ratio"] - 425 / 462) < 1e-9
    assert 0.22 < main_of(doc)["p"] < 0.25
    assert doc["sides"][0]["published"] == {"mean": 462, "sd": 104, "n": 17}


@pytest.mark.parametrize("wrong", ["462+-104", "462+-104/1", "+-1/5", "0+-1/5", "462+-/17", "a+-b/c",
                                   "462+--4/17", "462+-104/17.5", "a+-b=5/3"])
def test_wrong_figures_are_refused(prony, wrong):
    prony.refused("compare", JFS, wrong, says=["MEAN+-SD/N"])


def test_spreads_that_no_number_can_hold_are_none(prony):
    assert document(prony, "462+-1e-90/17", "425+-1e-90/17")["outcome"] == "good"


def test_figures_that_are_hardly_known_get_no_verdict(prony):
    doc = document(prony, "100+-90/4", "300+-10/4", "--fail-if-worse", "5%", status=5)
    assert main_of(doc)["verdict"] == "too few" and "fifth" in main_of(doc)["words"]


def test_a_published_figure_stands_against_runs(prony, runs):
    for tps in OLD:
        runs.add("mine", tps)
    doc = document(prony, "paper=900+-10/10", "mine")
    assert main_of(doc)["verdict"] == "higher" and main_of(doc)["n_new"] == 8
    assert {w["id"] for w in doc["warnings"]} >= {"published"}


# ---- runs

def test_runs_of_blocks_are_compared_in_pairs(prony, runs):
    runs.blocks(OLD, FASTER)
    doc = document(prony, "before", "after")
    main = main_of(doc)
    assert main["design"] == "paired" and main["n_old"] == 8
    assert main["verdict"] == "higher" and 1.06 < main["low"] < main["ratio"] < main["high"] < 1.1
    assert abs(main["ratio"] - 1.081) < 0.003
    percents = [100 * (main[key] - 1) for key in ("ratio", "low", "high")]
    said = "faster by %.1f %% (%.1f to %.1f)" % tuple(percents)
    assert main["words"] == said
    text = compare(prony, "before", "after").out
    assert text.splitlines()[0] == f"after against before: {said}"
    back = main_of(document(prony, "after", "before"))
    assert back["words"].startswith("slower by 7.") and abs(back["ratio"] * main["ratio"] - 1) < 1e-9
    # A partner that is missing leaves its block out; runs without blocks are piles.
    runs.add("after", 500, block=99)
    assert main_of(document(prony, "before", "after"))["n_new"] == 8
    runs.add("after", 1100)
    assert main_of(document(prony, "before", "after"))["design"] == "unpaired"


def test_equal_runs_are_the_same_and_noisy_ones_are_open(prony, runs):
    runs.blocks(OLD, [a * b for a, b in zip(OLD, NOISE)], labels=("a", "b"))
    assert main_of(document(prony, "a", "b"))["words"] == "the same within 2 %"
    wild = [1.2, 0.8, 1.3, 0.75, 1.1, 0.9, 1.25, 0.8]
    runs.blocks(OLD, [a * b for a, b in zip(OLD, wild)], labels=("c", "d"))
    main = main_of(document(prony, "c", "d"))
    assert main["words"].startswith("no difference shown: it would take about ")
    assert main["words"].endswith(" blocks to see 3 %")
    assert main["needed"] > 50 and main["could_see"] > 0.1


def test_a_single_run_gets_no_verdict(prony, runs):
    a, b = runs.add("a", 1000), runs.add("b", 1500)
    doc = document(prony, a, b)
    assert main_of(doc)["verdict"] == "too few" and "50.0 % more here" in main_of(doc)["words"]
    assert main_of(doc)["low"] is None and doc["outcome"] == "good"
    for ask in (["--fail-if-worse", "5%"], ["--see", "5%"]):
        assert document(prony, a, b, *ask, status=5)["outcome"] == "open"


def test_several_set_ups_are_corrected_for(prony, runs):
    factor = [1.02 * (1 + 3 * (b - 1)) for b in NOISE]
    runs.blocks(OLD, [a * b for a, b in zip(OLD, factor)], labels=("a", "b"))
    for label in "cde":
        for i, tps in enumerate(OLD):
            runs.add(label, tps * NOISE[(i + ord(label)) % 8], block=i + 1)
    alone = main_of(document(prony, "a", "b"))
    doc = document(prony, "a", "b", "c", "d", "e")
    mains = [c for c in doc["comparisons"] if c["measure"] == "tps"]
    assert len(mains) == 4 and all(c["old"] == "a" for c in mains)
    assert mains[0]["ratio"] == alone["ratio"]
    assert mains[0]["p"] > alone["p"] and mains[0]["level"] > alone["level"]
    pairs = document(prony, "a", "b", "c", "--every-pair")["comparisons"]
    assert {(c["old"], c["new"]) for c in pairs} == {("a", "b"), ("a", "c"), ("b", "c")}


def test_runs_that_ended_badly_are_left_out_and_told(prony, runs):
    runs.blocks(OLD, FASTER)
    runs.add("after", 1, block=9, status="interrupted")
    doc = document(prony, "before", "after")
    assert doc["sides"][1]["left_out"] == 1 and len(doc["sides"][1]["runs"]) == 8
    assert "left-out" in {w["id"] for w in doc["warnings"]}
    only = runs.add("bad", 1, status="failed")
    prony.refused("compare", only, "after", says=["no run of it ended well"])


def test_boots_can_be_what_counts(prony, runs):
    for boot in range(4):
        for i in range(3):
            for label, ratio in (("a", 1), ("b", 1.1)):
                runs.add(label, 1000 * ratio * (1 + 0.1 * boot) + i, block=boot * 3 + i + 1,
                         boot_id=f"boot-{boot}")
    assert main_of(document(prony, "a", "b"))["n_old"] == 12
    by_boot = document(prony, "a", "b", "--replicate", "boot")
    assert main_of(by_boot)["n_old"] == 4 and main_of(by_boot)["verdict"] == "higher"
    assert "boots-differ" in {w["id"] for w in document(prony, "a", "b")["warnings"]}
    assert "boots-differ" not in {w["id"] for w in by_boot["warnings"]}


# ---- what is odd

def doubts(doc):
    return {w["id"]: w["text"] for w in doc["warnings"]}


def test_before_and_after_is_told(prony, runs):
    for tps in OLD:
        runs.add("old", tps)
    for tps in FASTER:
        runs.add("new", tps)
    assert "before-after" in doubts(document(prony, "old", "new"))
    for a, b in zip(OLD, FASTER):
        runs.add("x", a)
        runs.add("y", b)
    found = doubts(document(prony, "x", "y"))
    assert "unpaired" in found and "before-after" not in found


def test_far_runs_are_told_and_counted(prony, runs):
    runs.blocks(OLD[:7], FASTER[:7])
    far = runs.add("after", 300, block=8)
    runs.add("before", 1000, block=8)
    doc = document(prony, "before", "after")
    assert f"run {far} of after lies far" in doubts(doc)["outlier"]
    assert main_of(doc)["n_new"] == 8 and main_of(doc)["verdict"] == "open"


def test_a_level_that_changes_within_a_set_is_told(prony, runs):
    for i in range(4):
        runs.add("carried", 2100 + 10 * (i % 3))
    for i in range(14):
        runs.add("carried", 1000 + 10 * (i % 3))
    for tps in OLD:
        runs.add("steady", tps)
    found = doubts(document(prony, "steady", "carried"))
    assert "0.48 times" in found["level-changed"]


def test_what_differs_comes_first(prony, runs):
    old = {"host.kernel": "Linux 2.6.11", "engine.shared_buffers": "128MB", "host.boot_id": "x",
           "data.free_bytes": "1", "data.mount_point": "/run/prony/abc",
           "probe.data.log_flush_1_per_s": "1500"}
    new = {"host.kernel": "Linux 2.6.15", "engine.shared_buffers": "1GB", "host.boot_id": "y",
           "data.free_bytes": "2", "data.mount_point": "/run/prony/def"}
    for tps in OLD:
        runs.add("old", tps, environment=old)
    for tps in FASTER:
        runs.add("new", tps, environment=new, clients=3)
    lines = compare(prony, "old", "new").out.splitlines()
    assert lines[0] == "different: clients 2 -> 3"
    answer = next(i for i, line in enumerate(lines) if line.startswith("new against old: "))
    before = "\n".join(lines[:answer])
    assert "kernel Linux 2.6.11 -> Linux 2.6.15" in before
    assert "shared_buffers 128MB -> 1GB" in before
    assert "boot" not in before and "free" not in before and "mount" not in before
    assert "probe" not in before
    doc = document(prony, "old", "new")
    assert {"name": "kernel", "values": ["Linux 2.6.11", "Linux 2.6.15"]} in doc["different"]
    assert "clients" in doubts(doc)["unlike-load"]
    # Alike: no word of it.
    assert document(prony, "old", "old")["different"] == []


def test_text_from_outside_cannot_steer_the_terminal(prony, runs):
    for label in ("a\x1b[31m", "b\x1b[31m"):
        for tps in OLD[:3]:
            runs.add(label, tps, environment={"host.kernel": f"{label}\x07"})
    out = compare(prony, "a\x1b[31m", "b\x1b[31m").out
    assert "\x1b" not in out and "\x07" not in out and "a\\x1b[31m" in out
    assert "\x1b" not in prony.good("history", "a\x1b[31m").out


# ---- conditions

def scaled(factor, spread=1):
    return [a * factor * (1 + spread * (b - 1)) for a, b in zip(OLD, NOISE)]


@pytest.mark.parametrize("factor, spread, status, words", [
    (1.0, 1, 0, "not worse by 5 %"),
    (1.1, 1, 0, "not worse by 5 %"),
    (0.98, 1, 0, "not worse by 5 %"),
    (0.90, 1, 3, "worse by 5 % or more"),
    (0.94, 1, 3, "worse by 5 % or more"),
    (0.955, 2, 5, "cannot be decided: the smallest change that could be seen is "),
    (1.0, 20, 5, "cannot be decided: the smallest change that could be seen is "),
])
def test_fail_if_worse(prony, runs, factor, spread, status, words):
    runs.blocks(OLD, scaled(factor, spread))
    out = compare(prony, "before", "after", "--fail-if-worse", "5%", status=status).out
    assert f"after against before: {words}" in " ".join(out.split()).replace(
        "whether it is worse by 5 % ", ""), out


def test_worse_of_a_latency_is_more(prony, runs):
    # The latencies of all copies are those of the one real run: equal, so not worse.
    runs.blocks(OLD, scaled(0.5))
    assert main_of(document(prony, "before", "after", "--measure", "mean", "--fail-if-worse",
                            "1%"))["measure"] == "mean"
    compare(prony, "before", "after", "--fail-if-worse", "1%", status=3)


def test_a_change_that_was_asked_for_must_have_been_visible(prony, runs):
    runs.blocks(OLD, scaled(1.0, 8))
    out = compare(prony, "before", "after", "--see", "3%", status=5).out
    assert "a change of 3 % could not have been seen" in " ".join(out.split())
    compare(prony, "before", "after", "--see", "60%")
    compare(prony, "before", "after")


@pytest.mark.parametrize("condition, status", [
    ("tps<1", 0), ("tps>1", 3), ("tps<1006", 5), ("tps<1100", 3), ("errors>0", 0), ("errors<1", 3),
    ("mean>1h", 0), ("mean>1ns", 3), ("max<1ns", 0), ("p99.9>1s", 5),
])
def test_objectives(prony, runs, condition, status):
    runs.blocks(OLD, OLD[::-1])
    compare(prony, "before", "after", "--fail-if", condition, status=status)


def test_the_worst_condition_decides(prony, runs):
    runs.blocks(OLD, scaled(1.0, 20))
    compare(prony, "before", "after", "--fail-if-worse", "1%", "--fail-if", "tps>1", status=3)


@pytest.mark.parametrize("wrong", ["p98>1ms", "p99", "p99>", "p99>20", "tps>x", "tps=5", ">5",
                                   "errors>-1"])
def test_wrong_objectives_are_refused(prony, wrong):
    prony.refused("compare", JFS, XFS, "--fail-if", wrong, says=["p99>20ms"])


@pytest.mark.parametrize("wrong", ["0%", "-5%", "100%", "x", "5%%", "%"])
def test_wrong_percentages_are_refused(prony, wrong):
    prony.refused("compare", JFS, XFS, f"--fail-if-worse={wrong}", says=["--fail-if-worse",
                                                                        "percentage"])


# ---- where runs come from

def test_runs_come_by_number_label_baseline_and_from_other_files(prony, runs):
    runs.blocks(OLD, FASTER)
    # Run 1 is the model; then before and after in turns.
    even, odd = ",".join(map(str, range(2, 18, 2))), ",".join(map(str, range(3, 18, 2)))
    expected = main_of(document(prony, "before", "after"))["ratio"]
    assert main_of(document(prony, even, odd))["ratio"] == expected
    prony.good("baseline", "save", "ref", "before")
    assert main_of(document(prony, "baseline:ref", "after"))["ratio"] == expected
    moved = prony.dir / "old.db"
    moved.write_bytes(prony.store.read_bytes())
    other = main_of(document(prony, f"{moved}:before", "after"))
    # Blocks of two files have nothing in common.
    assert abs(other["ratio"] - expected) < 1e-9 and other["design"] == "unpaired"
    exported = prony.dir / "one.prony"
    prony.good("export", "2", "-o", exported)
    assert document(prony, exported, "after")["sides"][0]["runs"][0]["tps"] == OLD[0]
    prony.refused("compare", moved, "after", says=["several runs"])
    prony.refused("compare", "nothing", "after", says=["no run nothing"])
    prony.refused("compare", "before", says=["compare"])


def test_a_block_given_to_run_is_kept(prony):
    doc = prony.measure("null:", "tpcb", "-t", 50, "-q", "--block", "7").json
    assert doc["block"] == 7
    assert "block 7" in prony.good("show").out
    prony.refused("run", "null:", "tpcb", "--block", "0", says=["--block", "1"])


# ---- baselines

def test_baselines_are_saved_listed_and_removed(prony, runs):
    prony.refused("baseline", "save", "x", says=["RUNS"])
    assert "no baselines" in prony.good("baseline", "list").out
    runs.blocks(OLD, FASTER)
    assert "baseline ref is 8 runs" in prony.good("baseline", "save", "ref", "before").out
    assert "(before: 8)" in prony.good("baseline", "save", "ref", "before", "after", "3").out
    assert prony.good("baseline", "list").out.splitlines()[1].split()[:2] == ["ref", "16"]
    prony.refused("baseline", "save", "a:b", "before", says=["`:`"])
    prony.refused("baseline", "save", "ref", "nothing", says=["no run nothing"])
    prony.refused("baseline", "drop", "ref", says=["save, list or remove"])
    assert "its runs stay" in prony.good("baseline", "remove", "ref").out
    prony.refused("baseline", "remove", "ref", says=["no baseline ref"])
    prony.refused("compare", "baseline:ref", "after", says=["no baseline ref"])
    assert len(document(prony, "before", "after")["sides"][0]["runs"]) == 8


# ---- history

def test_history_finds_when_it_became_slower(prony, runs):
    for i in range(12):
        runs.add("nightly", 1000 * NOISE[i % 8], environment={"host.kernel": "Linux 5.10"})
    first = runs.add("nightly", 850, environment={"host.kernel": "Linux 6.1"})
    for i in range(7):
        runs.add("nightly", 850 * NOISE[i], environment={"host.kernel": "Linux 6.1"})
    runs.add("nightly", 5, status="failed")
    out = prony.good("history", "nightly").out
    assert out.splitlines()[0] == f"nightly: slower by 15.0 % since run {first}"
    assert "kernel Linux 5.10 -> Linux 6.1" in " ".join(out.split())
    assert "1 run did not end well" in out
    doc = json.loads(prony.good("history", "nightly", "--json").out)
    assert doc["schema"] == "prony.history/1" and len(doc["runs"]) == 20
    assert [c["run_id"] for c in doc["changes"]] == [first]
    assert abs(doc["changes"][0]["ratio"] - 0.85) < 0.01 and doc["left_out"] == 1


def test_history_without_a_change_says_so(prony, runs):
    for i in range(8):
        runs.add("short", 1000 * NOISE[i])
    assert prony.good("history", "short").out.splitlines()[0] == \
        "short: no change of level seen in 8 runs, of which ten are needed to see one"
    prony.refused("history", JFS, says=["no history"])
    prony.refused("history", "nothing", says=["no run nothing"])
