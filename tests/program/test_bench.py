"""The comparison with peers (bench/run) works: not how fast anything is."""
import subprocess
import sys

import pytest

from harness.place import REPO
from harness.runner import find_binary

sys.path.insert(0, str(REPO / "bench"))

from speed.pairs import Rounds, Unavailable
from speed.report import at_least, at_most


def measured(**values):
    """Rounds of contestants whose numbers are given."""
    rounds = Rounds(values)
    turns = {name: iter(numbers) for name, numbers in values.items()}
    rounds.run(len(next(iter(values.values()))), lambda name: {"us": next(turns[name])},
               lambda text: None)
    return rounds


@pytest.mark.without_prony
def test_ratios_are_taken_within_rounds():
    """The machine became three times slower in the second round; the ratio did not change."""
    rounds = measured(ours=[1.0, 3.0, 1.1], peer=[2.0, 6.0, 2.0])
    assert rounds.ratio("ours", "peer", "us").values == [0.5, 0.5, 0.55]
    assert rounds.ratio("ours", "peer", "us").show(2) == "0.50 (0.50..0.55)"


@pytest.mark.without_prony
def test_the_better_of_several_is_the_base():
    rounds = measured(ours=[4.0, 4.0], slow=[9.0, 9.0], fast=[2.0, 2.0])
    assert rounds.ratio_to_best("ours", ["slow", "fast"], "us").median == 2.0


@pytest.mark.without_prony
def test_a_contestant_that_cannot_run_is_left_out_with_its_reason():
    def measure(name):
        if name == "theirs":
            raise Unavailable("not installed")
        return {"us": 1}

    rounds = Rounds(["ours", "theirs"])
    rounds.run(2, measure, lambda text: None)
    assert rounds.absent == {"theirs": "not installed"}
    assert rounds.has("ours") and not rounds.has("ours", "theirs")


@pytest.mark.without_prony
@pytest.mark.parametrize("claim,bound,holds", [
    (at_most, 1.9, False), (at_most, 2.0, True), (at_least, 2.0, True), (at_least, 2.1, False)])
def test_a_bound_is_judged_by_the_median(claim, bound, holds):
    spread = measured(ours=[1.0, 2.0, 9.0]).value("ours", "us")
    made = claim("it is so", spread, bound)
    assert made.holds == holds and ("does not hold" in made.verdict()) != holds
    assert made.measured == "2.00 (1.00..9.00)"


@pytest.mark.release_only
def test_a_quick_run_fills_all_tables(prony, place):
    done = subprocess.run([REPO / "bench" / "run", "--quick", "--only", "null,stub", "--clients",
                           "1,4", "--build", find_binary().parents[2]],
                          capture_output=True, text=True, timeout=240, check=False, cwd=prony.dir,
                          env=place.environment())
    assert done.returncode in (0, 3), done.stderr  # a bound may be missed here
    for words in ("prony alone", "| 4       | prony ring-epoll ", "| 4       | prony threads ",
                  "| 4       | pgbench ", "Machine and versions"):
        assert words in done.stdout, done.stdout + done.stderr


@pytest.mark.without_prony
def test_every_part_of_both_sets_can_be_loaded():
    run = subprocess.run([REPO / "bench" / "run", "--help"], capture_output=True, text=True,
                         check=False)
    assert run.returncode == 0 and all(f"\n  {name} " in run.stdout for name in ("null", "cycles"))
