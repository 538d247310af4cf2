"""What prony makes for itself goes away again, however it ends."""
import os
import signal

import pytest

from harness.place import wait_until


def temporary_files(prony):
    """Of the target `sqlite:`, which lie in the working directory."""
    return sorted(p.name for p in prony.dir.iterdir()
                  if p.name.startswith(".prony-") or "sqlite" in p.name)


def registries(prony):
    return [path for path in (prony.place.runtime / "prony").glob("*") if path.is_file()]


def start_on_temporary(prony):
    run = prony.start("run", "sqlite:", "tpcb", "-T", "60s", "-c", "2")
    run.seen("  load ")  # not while it tries whether the results file can be made
    assert wait_until(lambda: temporary_files(prony) and registries(prony), 20), run.peek()
    return run


def guard_of(run):
    """The guard is the child that leads a session of its own."""
    def question():
        with open(f"/proc/{run.pid}/task/{run.pid}/children", encoding="ascii") as children:
            for pid in map(int, children.read().split()):
                if os.getsid(pid) == pid:
                    return pid
        return None
    return wait_until(question, 5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_temporary_database_goes_within_two_seconds(prony, number):
    run = start_on_temporary(prony)
    run.signal(number)
    run.wait(20)
    assert wait_until(lambda: not temporary_files(prony), 2), temporary_files(prony)
    assert wait_until(lambda: not registries(prony), 2)


def test_the_next_command_cleans_when_the_guard_was_killed_too(prony):
    run = start_on_temporary(prony)
    os.kill(guard_of(run), signal.SIGKILL)
    run.kill()
    run.wait(20)
    assert temporary_files(prony)
    result = prony.good("run", "null:", "select-only", "-t", "10", "-c", "1")
    assert temporary_files(prony) == [], result
    assert registries(prony) == []


def test_a_living_owner_is_not_disturbed(prony):
    run = start_on_temporary(prony)
    before = [name for name in temporary_files(prony) if name.endswith(".db")]  # journals come and go
    prony.good("run", "null:", "select-only", "-t", "10", "-c", "1")
    assert set(before) <= set(temporary_files(prony))
    run.interrupt()
    run.wait(20)
    assert temporary_files(prony) == []


def test_the_reader_of_a_pipe_sees_the_end_although_the_guard_lives(prony):
    run = start_on_temporary(prony)
    guard = guard_of(run)
    ours = {str(run.out), str(run.err)}

    def inherited():  # the guard closes what it was born with a moment after it is there
        links = set()
        for n in os.listdir(f"/proc/{guard}/fd"):
            try:
                links.add(os.readlink(f"/proc/{guard}/fd/{n}"))
            except FileNotFoundError:
                pass
        return [link for link in links if link in ours or link.startswith(str(prony.dir))]

    wait_until(lambda: not inherited(), 10)
    assert not inherited()
    run.interrupt()
    run.wait(20)
