"""`prony probe`: what it says about a storage, beside fio; and that it leaves nothing there."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import loops
from harness.place import REPO, run_quietly, wait_until
from harness.terminal import Terminal

KINDS = ["log_flush_1", "log_flush_8", "log_append_1", "random_read_1", "random_read_32",
         "random_write_1", "random_write_32", "sequential_read", "sequential_write", "file_create"]
BLOCKS = set(KINDS[3:9])

# The shortest there is.
SHORT = ("--time", "2s", "--size", "16M")

# Root without its right to write everything.
MERE_USER = (() if os.geteuid() != 0 else
             ("setpriv", "--bounding-set", "-dac_override,-dac_read_search"))
NO_URING = (sys.executable, str(REPO / "tests" / "program" / "harness" / "no_uring.py"))


@pytest.fixture
def disk(prony):
    """A directory to probe; nothing may be left in it."""
    path = prony.dir / "disk"
    path.mkdir()
    yield path
    assert not list(path.iterdir())


@pytest.fixture
def mounted(prony):
    """mounted(TYPE, OPTIONS): a file system at a directory."""
    where = []

    def mount(kind, options):
        path = prony.dir / kind
        path.mkdir()
        done = subprocess.run(["mount", "-t", kind, "-o", options, "none", path],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a {kind}: {done.stderr.strip()}")
        where.append(path)
        return path

    yield mount
    for path in where:
        left = list(path.iterdir())
        subprocess.run(["umount", path], check=True)
        assert not left


def probe(prony, path, *args, **kwargs):
    """The document."""
    result = prony.good("probe", path, *SHORT, "--json", "-", *args, **kwargs)
    return json.loads(result.out)


def by_id(doc):
    return {measure["id"]: measure for measure in doc["measures"]}


# ---- what it says

def test_the_answer_comes_first(prony, disk):
    out = prony.good("probe", disk, *SHORT).out
    first, second = out.splitlines()[:2]
    assert "flushes/s" in first and "\x1b" not in out and "\r" not in out
    assert second.startswith(f"{disk}: ")
    assert re.search(r" [1-9][0-9.]* [KM]iB laid out, 8 rounds of 10 measurements", out)
    assert max(map(len, out.splitlines())) <= 80


def test_the_document_has_every_measurement_with_its_interval(prony, disk):
    doc = probe(prony, disk)
    assert doc["schema"] == "prony.probe/1" and doc["status"] == "done"
    assert doc["path"] == str(disk) and 0 < doc["file_bytes"] <= doc["asked_bytes"] == 16 << 20
    assert doc["rounds"] == 8 and doc["layout_seconds"] < doc["seconds"]
    assert doc["environment"]["place.filesystem"]
    assert [measure["id"] for measure in doc["measures"]] == KINDS
    for measure in doc["measures"]:
        slices = measure["slices_per_s"]
        latency = measure["latency_us"]
        assert len(slices) == 8 and min(slices) > 0, measure
        assert measure["per_s"] == pytest.approx(sum(slices) / 8, rel=1e-6)
        assert measure["low_per_s"] < measure["per_s"] < measure["high_per_s"]
        assert measure["operations"] == latency["count"] > 0
        assert latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"]
        assert measure["how"]
    assert by_id(doc)["file_create"]["bytes_per_s"] is None


def test_flushes_are_shared_as_defined(prony, disk):
    """One writer: one flush each. Eight: each write has a flush, and no flush is for nothing."""
    measures = by_id(probe(prony, disk))
    for name in ("log_flush_1", "log_append_1"):
        assert measures[name]["flushes"] == measures[name]["operations"]
    eight = measures["log_flush_8"]
    assert eight["operations"] / 8 <= eight["flushes"] <= eight["operations"]
    assert measures["random_write_1"]["flushes"] == 8  # one at the end of each slice
    assert measures["random_read_1"]["flushes"] == 0


def test_memory_is_no_storage(prony):
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    path = Path(tempfile.mkdtemp(prefix="prony-test-", dir="/dev/shm"))
    try:
        out = prony.good("probe", path, *SHORT).out
        left = list(path.iterdir())
    finally:
        shutil.rmtree(path)
    assert not left
    assert out.startswith("tmpfs is memory, no storage: "), out
    assert "data-in-memory: " in out and "commits/s" not in out
    assert "random read, 1 at a time*" in out and "through the page cache" in out


def test_a_file_system_without_o_direct_is_told(prony, mounted):
    path = mounted("ramfs", "mode=755")
    doc = probe(prony, path)
    assert doc["through_cache"] == "the file system refuses O_DIRECT"
    assert by_id(doc)["sequential_read"]["through_cache"]
    out = prony.good("probe", path, *SHORT).out
    assert "ramfs is memory" in out and "sequential read*" in out


def test_what_the_page_cache_holds_all_the_same_is_told(prony, mounted):
    """tmpfs takes O_DIRECT since Linux 6.6 and refuses it before; it is the cache either way."""
    doc = probe(prony, mounted("tmpfs", "size=200m,mode=755"))
    assert "O_DIRECT" in doc["through_cache"]
    for name, measure in by_id(doc).items():
        assert measure["through_cache"] == (name in BLOCKS)


# ---- how blocks are moved

def test_threads_do_the_blocks_where_io_uring_is_forbidden(prony, disk):
    doc = probe(prony, disk, prefix=NO_URING)
    assert doc["io"] == "threads" and "io_uring" in doc["io_why"]
    assert all(measure["operations"] > 0 for measure in doc["measures"])
    prony.refused("probe", disk, *SHORT, "--io", "io_uring", status=4, says="io_uring",
                  prefix=NO_URING)


@pytest.mark.parametrize("io", ["io_uring", "threads"])
def test_the_choice_is_obeyed(prony, disk, io):
    why = loops.missing("ring-uring", prony.binary) if io == "io_uring" else None
    if why:
        pytest.skip(why)
    doc = probe(prony, disk, "--io", io)
    assert (doc["io"], doc["io_why"]) == (io, None)


# ---- what is refused

def test_a_place_that_is_none_is_refused(prony, disk):
    prony.refused("probe", prony.dir / "nowhere", says=["nowhere", "directory"])
    (prony.dir / "file").write_text("x", encoding="ascii")
    prony.refused("probe", prony.dir / "file", says=["file is not a directory"])
    prony.refused("probe", "", says=["empty"])
    disk.chmod(0o555)
    try:
        prony.refused("probe", disk, says=[str(disk), "Permission denied"], prefix=MERE_USER)
    finally:
        disk.chmod(0o755)
    prony.refused("probe", "/proc", says="/proc")


def test_too_little_room_is_refused(prony, disk, mounted):
    prony.refused("probe", disk, "--size", "100000GB", says=["free", "--size"])
    prony.refused("probe", disk, "--size", "4M", says=["--size 4MB", "16MB"])
    small = mounted("tmpfs", "size=40m,mode=755")
    prony.refused("probe", small, says=["40 MiB are free", "--size"])


def test_options_out_of_range_are_refused(prony, disk):
    prony.refused("probe", disk, "--time", "1s", says=["--time 1s", "2s"])
    prony.refused("probe", disk, "--runtime", "5", says="did you mean --time?")
    prony.refused("probe", disk, "--bs", "4k", says=["--bs", "8 KiB"])
    prony.refused("probe", disk, "--json", prony.dir / "nodir" / "x", says="nodir")


# ---- what is left

def private(path):
    return list(path.glob(".prony-probe-*"))


def start(prony, disk, seconds="60s"):
    run = prony.start("probe", disk, "--time", seconds, "--size", "64M", "--json", "probe.json")
    assert wait_until(lambda: private(disk), 20), run.peek()
    return run


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", ["lay out", "measure"])
def test_nothing_is_left_however_it_ends(prony, disk, number, phase):
    run = start(prony, disk)
    if phase == "measure":
        assert wait_until(lambda: any(d.joinpath("grow").exists() and
                                      d.joinpath("grow").stat().st_size > 0
                                      for d in private(disk)), 30), run.peek()
    run.signal(number)
    result = run.wait(60)
    assert wait_until(lambda: not private(disk), 30), list(disk.rglob("*"))
    if number == signal.SIGKILL:
        return
    assert result.status == 1 and "interrupted" in result.err, result
    assert not (prony.dir / "probe.json").exists()


def test_two_rounds_are_enough_for_an_answer(prony, disk):
    # A round is an eighth of the time; a storage that stalls has a second chance.
    for seconds, wait_s in ((16, 7), (120, 60)):
        run = prony.start("probe", disk, "--time", f"{seconds}s", "--size", "16M", "--json",
                          "probe.json")
        assert not wait_until(lambda run=run: run.process.poll() is not None, wait_s), run.peek()
        run.interrupt()
        result = run.wait(60)
        if result.status == 0:
            break
    assert result.status == 0 and "(interrupted)" in result.out.splitlines()[0], result
    doc = prony.document("probe.json")
    assert doc["status"] == "interrupted" and 2 <= doc["rounds"] < 8
    assert all(len(m["slices_per_s"]) == doc["rounds"] for m in doc["measures"])


def test_a_terminal_sees_how_it_goes(prony, disk):
    terminal = Terminal(columns=80)
    process = subprocess.Popen([prony.binary, "probe", disk, *SHORT, "-q"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=terminal.side, cwd=prony.dir,
                               env=prony.environment({"TERM": "xterm"}))
    quiet, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and quiet == b"" and terminal.read(0.2) == ""
    process = subprocess.Popen([prony.binary, "probe", disk, *SHORT], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=terminal.side, cwd=prony.dir,
                               env=prony.environment({"TERM": "xterm"}))
    process.communicate(timeout=60)
    text = terminal.read(0.2)
    terminal.close()
    assert process.returncode == 0
    assert "] laying out" in text and "] random read, 32 at once" in text
    assert "\n" not in text and text.endswith("\r\033[K"), text


# ---- beside fio

FIO_JOBS = {
    "log_flush_1": ["--rw=write", "--bs=8k", "--size=16m", "--overwrite=1", "--fdatasync=1",
                    "--ioengine=psync"],
    "random_read_1": ["--rw=randread", "--bs=8k", "--size=64m", "--direct=1", "--iodepth=1"],
    "random_read_32": ["--rw=randread", "--bs=8k", "--size=64m", "--direct=1", "--iodepth=32"],
    "random_write_32": ["--rw=randwrite", "--bs=8k", "--size=64m", "--direct=1", "--iodepth=32",
                        "--overwrite=1"],
    "sequential_read": ["--rw=read", "--bs=1m", "--size=64m", "--direct=1", "--iodepth=4"],
}


def fio(disk, name):
    """Operations/s by the other tool."""
    job = FIO_JOBS[name]
    engine = [] if any("ioengine" in option for option in job) else ["--ioengine=io_uring"]
    said = run_quietly(["fio", f"--name={name}", f"--directory={disk}", "--time_based",
                        "--runtime=1", "--randrepeat=0", "--output-format=json", "--unlink=1",
                        *engine, *job], cwd=disk)
    found = json.loads(said[said.index("{"):])["jobs"][0]
    return found["read" if "read" in name else "write"]["iops"]


PAIRS_MAX = 6
FACTOR = 4


@pytest.mark.alone
@pytest.mark.release_only
def test_fio_finds_the_same_order_of_magnitude(prony, disk):
    """A disk shared with others changes its mind between the two tools, so they take turns until
    each figure has been found once by both. One that is counted wrongly, in blocks of another size
    or out of the page cache, is far off in every pair."""
    assert shutil.which("fio"), "install fio (tools/packages.txt)"
    why = loops.missing("ring-uring", prony.binary)
    if why:
        pytest.skip(why)
    ratios = {name: [] for name in FIO_JOBS}
    open_yet = list(FIO_JOBS)
    for _ in range(PAIRS_MAX):
        doc = json.loads(prony.good("probe", disk, "--time", "4s", "--size", "64M", "--json",
                                    "-").out)
        for name in open_yet:
            ratios[name].append(by_id(doc)[name]["per_s"] / fio(disk, name))
        open_yet = [name for name in open_yet if not 1 / FACTOR < ratios[name][-1] < FACTOR]
        if not open_yet:
            return
    assert not open_yet, ratios
