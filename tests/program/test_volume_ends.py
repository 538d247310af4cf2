"""Volumes are undone whatever happens: steps that fail, signals, kill -9, at every step."""
import os
import random
import signal
import time

import pytest

from harness import volumes
from harness.place import wait_until
# loops_here and name are fixtures
from harness.volumes import (MOUNT_DIR, SMALL, Commands, down, left, loops_here, name, point,
                             sanitized_once, up)  # noqa: F401

STEPS = ["sh", "truncate", "losetup", "mkfs.ext4", "mount"]
ENDS = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def commands(prony):
    return Commands(prony.dir / "commands")


@pytest.mark.parametrize("step", sanitized_once(STEPS, {"losetup", "mount"}))
def test_a_step_that_fails_is_the_last(prony, name, commands, step):
    commands.fail(step)
    result = prony.run("volume", "up", f"{name}=loop:{SMALL}", env=commands.environment())
    assert result.status == 1 and f"{step} was told to fail" in result.err, result
    assert result.err.count("\n") == 1, result
    assert not left(prony) and not point(name).exists()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", sanitized_once(STEPS, {"losetup", "mount"}))
def test_killed_at_any_step_nothing_is_left(prony, name, commands, step, when):
    commands.hold(step, when)
    run = prony.start("volume", "up", f"{name}=loop:{SMALL}", env=commands.environment())
    assert commands.reached(), run.peek()
    run.kill()
    run.wait()
    assert wait_until(lambda: not left(prony) and not point(name).exists(), 30), left(prony)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", ["losetup", "mkfs.ext4"])
def test_stopped_at_a_step_it_ends_behind_it(prony, name, commands, step, number):
    commands.hold(step, "before")
    run = prony.start("volume", "up", f"{name}=loop:{SMALL}", env=commands.environment())
    assert commands.reached(), run.peek()
    run.signal(number)
    commands.release()
    result = run.wait()
    assert result.status == 1 and "interrupted" in result.err, result
    assert not left(prony) and not point(name).exists()


@pytest.mark.parametrize("number", sanitized_once(ENDS, {signal.SIGINT}))
def test_stopped_while_a_device_is_filled_it_ends_at_once(prony, name, commands, number):
    commands.hold("dd", "before")  # for as long as it likes
    run = prony.start("volume", "up", f"{name}=loop:{SMALL},precondition=fill",
                      env=commands.environment())
    assert commands.reached(), run.peek()
    run.signal(number)
    result = run.wait()
    if number != signal.SIGKILL:
        assert result.status == 1 and "interrupted" in result.err, result
    assert wait_until(lambda: not left(prony) and not point(name).exists(), 30), left(prony)


@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("phase", ["load", "run"])
def test_a_run_that_ends_early_takes_its_volume_along(prony, name, phase, number):
    scale = "30" if phase == "load" else "1"
    run = prony.start("run", "sqlite:?data=loop:size=2G", "tpcb", "-s", scale, "-c", "2", "-T",
                      "60s", "-P", "1", env={"COLUMNS": "80"})
    if phase == "load":
        assert wait_until(lambda: list(MOUNT_DIR.glob(f"{run.pid}-data/.prony-*.db")), 60), \
            run.peek()
    else:
        assert wait_until(lambda: "tps" in run.peek(), 60), run.peek()
    run.signal(number)
    result = run.wait()
    if number != signal.SIGKILL and phase == "run":
        assert result.status == 0, result
    where = MOUNT_DIR / f"{run.pid}-data"
    assert wait_until(lambda: not left(prony) and not where.exists(), 30), left(prony)


@pytest.mark.parametrize("number", ENDS)
def test_an_end_in_the_middle_of_down(prony, name, commands, number):
    """The undoing goes on, by this process or by its guard."""
    commands.hold("umount", "before")
    run = prony.start("run", f"sqlite:?data=loop:{SMALL}", "tpcb", "-s", "1", "-c", "1", "-t", "1",
                      env=commands.environment())
    assert commands.reached(), run.peek()
    run.signal(number)
    commands.release()
    run.wait()
    assert wait_until(lambda: not left(prony), 30), left(prony)


def test_killed_in_the_middle_of_down_by_hand(prony, name, commands):
    """It is not undone by itself, for it was kept; down goes on where it was."""
    up(prony, name, f"loop:{SMALL}")
    commands.hold("umount", "after")
    run = prony.start("volume", "down", name, env=commands.environment())
    assert commands.reached(), run.peek()
    run.kill()
    run.wait()
    assert name in prony.good("volume", "list").out
    assert (prony.dir / f"prony-{name}.img").exists()
    down(prony, name)


@pytest.mark.unsanitized
def test_killed_at_random_moments_nothing_is_left(prony, name):
    seed = int(os.environ.get("PRONY_TEST_SEED", random.randrange(1 << 30)))
    print(f"PRONY_TEST_SEED={seed}")
    rng = random.Random(seed)
    for _ in range(6):
        run = prony.start("run", f"sqlite:?data=loop:{SMALL}", "tpcb", "-s", "1", "-c", "1", "-T",
                          "60s")
        time.sleep(rng.uniform(0, 1.0))
        run.kill()
        run.wait()
        assert wait_until(lambda: not left(prony), 30), left(prony)


@pytest.mark.unsanitized
def test_many_cycles_leave_nothing(prony, name):
    for _ in range(10):
        up(prony, name, f"loop:{SMALL},fs=ext2")
        down(prony, name)
    assert not left(prony) and str(point(name)) not in volumes.mounts()


@pytest.mark.unsanitized
def test_the_image_of_another_that_came_first_stays(prony, name, commands):
    commands.hold("sh", "before")
    run = prony.start("volume", "up", f"{name}=loop:{SMALL}", env=commands.environment())
    assert commands.reached(), run.peek()
    image = prony.dir / f"prony-{name}.img"
    image.write_bytes(b"theirs")
    commands.release()
    result = run.wait()
    assert result.status == 1 and str(image) in result.err, result
    assert image.read_bytes() == b"theirs" and not point(name).exists()
    image.unlink()
