"""What drives prony's clients (--loop), and how tests are run with each.

    @each_loop("killable", ["postgres", "mariadb"])
    def test_...(prony, killable, loop):

runs once for every engine and every loop that it has. Whatever such a test runs on a server has that
loop, without saying so; a load of any other test has prony's own choice. Either way the runner looks
into the document of every `--json` whether it was so. $PRONY_TEST_LOOP names one loop for all loads
on servers:

    PRONY_TEST_LOOP=ring-epoll python3 -m pytest
"""
import ctypes
import errno
import functools
import os
import re
import subprocess

import pytest

NAME = "PRONY_TEST_LOOP"
ALL = ["ring-uring", "ring-epoll", "threads"]
FORCED = os.environ.get(NAME)
LOOPS = [FORCED] if FORCED else ALL
RINGS = [loop for loop in LOOPS if loop.startswith("ring")]
SYS_IO_URING_SETUP = 425

# Kinds of a target that differ from another one in nothing that a loop could notice have one loop
# each; those without a codec have threads.
OF_KIND = {"sqlite": ["threads"], "sqlite-wal": ["threads"], "myisam": LOOPS[:1],
           "aria": LOOPS[-2:-1] or LOOPS}


def each_loop(name, values, sanitize_all=True):
    """Marks a test that takes the fixtures `name` and `loop`. Without sanitize_all sanitizers see
    each value with one loop only, the next value with the next loop."""
    pairs = []
    turn = 0
    for value in values:
        loops = OF_KIND.get(value, LOOPS)
        chosen = loops[turn % len(loops)]
        turn += len(loops) > 1
        pairs += [pytest.param(value, loop, id=f"{value}-{loop}",
                               marks=[] if sanitize_all or loop == chosen
                               else [pytest.mark.unsanitized]) for loop in loops]
    return pytest.mark.parametrize(f"{name},loop", pairs, indirect=True)


@functools.cache
def missing(loop, binary):
    """Why there is no such loop here; None when there is."""
    if loop != "ring-uring":
        return None
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    if not re.search(r"^loops: .*\bring-uring\b", said, re.M):
        return "built without liburing"
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(SYS_IO_URING_SETUP, 0, None)
    if ctypes.get_errno() in (errno.ENOSYS, errno.EPERM):
        return "io_uring is forbidden here"
    return None


def has_server(args):
    """Whether `run ARGS` is on an engine with a codec."""
    return args[1].split(":")[0] in ("postgres", "postgresql", "mysql", "mariadb", "server")


def told(args):
    """The loop that the command line names."""
    return args[args.index("--loop") + 1] if "--loop" in args else "auto"


def with_loop(args, loop):
    """The arguments, with --loop where the test has one and they leave it open."""
    if (not loop or args[:1] != ["run"] or len(args) < 2 or not has_server(args) or
            "--loop" in args or "--trace" in args):
        return args
    return [*args, "--loop", loop]


def expected(args, binary):
    """What must stand in the document of `run ARGS`."""
    if told(args) != "auto":
        return told(args)
    if not has_server(args) or "--trace" in args:
        return "threads"
    return "ring-epoll" if missing("ring-uring", binary) else "ring-uring"
