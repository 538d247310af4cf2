"""Results are kept, found, asked for, carried to other files; and what happens when they cannot
be."""
import csv
import io
import json
import os
import sqlite3
import subprocess
import time

import pytest

from harness.claims import check_document
from harness.targets import ServerTarget, SqliteTarget, balances

# Root without its right to write everything.
MERE_USER = (() if os.geteuid() != 0 else
             ("setpriv", "--bounding-set", "-dac_override,-dac_read_search"))


def keep(prony, *args, url="null:", workload="tpcb"):
    return prony.measure(url, workload, "-t", 50, "-c", 2, "-q", *args).json


def sql(prony, query, *args):
    return json.loads(prony.good("sql", query, "--json", *args).out)


# ---- finding

def test_a_run_comes_back_as_it_went_in(prony):
    doc = keep(prony, "--label", "first", "--note", "two\nlines", "--seed", "42", "-D", "a=1", "-D",
               "b=2", url="null:?fail=0.05&fail_class=deadlock")
    check_document(doc)
    assert doc["run_id"] == 1
    again = json.loads(prony.good("show", "--format", "json").out)
    assert again == doc
    assert doc["label"] == "first" and doc["note"] == "two\nlines" and doc["seed"] == 42
    assert doc["options"]["define"] == ["a=1", "b=2"]


def test_a_run_is_found_by_number_label_and_uuid(prony):
    docs = [keep(prony, "--label", label) for label in ("before", "after", "before")]
    for which, expected in (("1", 1), ("3", 3), ("last", 3), ("after", 2), ("before", 3),
                            (docs[0]["uuid"][:8], 1), (docs[1]["uuid"], 2)):
        doc = json.loads(prony.good("show", which, "--format", "json").out)
        assert doc["run_id"] == expected, which
    for which in ("4", "0", "-1", "during", "befor", docs[0]["uuid"][:4] + "zzzz", ""):
        prony.refused("show", "--", which, says=["no run", "prony list"])


def test_the_list_has_the_newest_first(prony):
    for label in ("one", "two", "three"):
        keep(prony, "--label", label)
    lines = prony.good("list").out.splitlines()
    assert lines[0].split()[:2] == ["run", "started"]
    assert [line.split()[0] for line in lines[1:]] == ["3", "2", "1"]
    assert "three" in lines[1] and "null" in lines[1] and "tpcb" in lines[1]
    assert len(prony.good("list", "-n", 2).out.splitlines()) == 3
    assert len(prony.good("list", "-n", 0).out.splitlines()) == 4


def test_an_interrupted_and_a_failed_run_are_kept_and_marked(prony):
    run = prony.start("run", "null:?latency=1ms", "tpcb", "-T", 60, "-P", "0.2s")
    run.seen("progress")
    run.interrupt()
    run.wait(10)
    prony.measure("null:?fail=1", "tpcb", "-t", 20, status=1)
    lines = prony.good("list").out.splitlines()
    assert lines[1].endswith("failed") and lines[2].endswith("interrupted")
    doc = json.loads(prony.good("show", "2", "--format", "json").out)
    assert doc["status"] == "failed" and "no transaction succeeded" in doc["failure"] or (
        "gave up" in doc["failure"])


def test_what_a_person_reads_says_the_same_as_the_numbers(prony):
    doc = keep(prony, "--label", "look", url="null:?latency=2ms&fail=0.02&fail_class=constraint")
    run_text = prony.good("run", "null:?latency=2ms", "tpcb", "-t", 20, "-c", 2, "-r").out
    text = prony.good("show", "1").out
    n = doc["transactions"]
    assert f"{doc['throughput']['tps']:.0f}" in text.splitlines()[0].replace(" ", "")
    assert f"{n['done']} done of {n['planned']} planned: {n['failed']} failed" in text
    assert f"constraint {doc['errors']['constraint']}" in text
    for word in ("p50", "p99.9", "max", "doubts", "too-short", str(doc["seed"]),
                 "latency distribution"):
        assert word in text, word
    assert "statements" in run_text and "UPDATE pgbench_accounts" in run_text
    for line in (text + run_text).splitlines():
        assert len(line) <= 100 and line == line.rstrip(), repr(line)


def test_markdown_fits_into_a_ticket(prony, target):
    prony.good("init", target.url(), "tpcb", "-s", "1", "-q")
    doc = prony.measure(target.url(), "tpcb", "-T", 2, "-c", 3, "-q", "--note", "a | b", "--seed",
                        "7").json
    text = prony.good("show", "--format", "md").out
    assert len(text.splitlines()) <= 30
    for word in (f"{doc['throughput']['tps']:.0f}", "tpcb", "3 clients", "seed 7", doc["uuid"][:8],
                 doc["prony_version"], "prony run", "-T 2", doc["environment"]["host.cpu_model"],
                 doc["environment"]["data.filesystem"], "too-short"):
        assert word.replace("_", r"\_") in text.replace(" ", " ") or word in text, (word, text)


# ---- asking

def test_queries_come_as_table_csv_and_json(prony):
    keep(prony, "--label", 'a,"b"\nc')
    keep(prony)
    query = "select id, label, tps, null as empty, x'00ff' as blob from runs order by id"
    rows = sql(prony, query)
    assert [row["id"] for row in rows] == [1, 2]
    assert rows[0]["label"] == 'a,"b"\nc' and rows[1]["label"] is None
    assert isinstance(rows[0]["tps"], float) and rows[0]["empty"] is None
    text = prony.good("sql", query, "--csv").out
    table = list(csv.reader(io.StringIO(text, newline="")))
    assert table[0] == ["id", "label", "tps", "empty", "blob"]
    assert table[1][:2] == ["1", 'a,"b"\nc'] and table[2][:2] == ["2", ""]
    assert float(table[1][2]) == rows[0]["tps"]
    lines = prony.good("sql", query).out.splitlines()
    assert lines[0].split()[:2] == ["id", "label"] and len(lines) == 3
    assert prony.good("sql", "select id from runs where 0", "--csv").out == "id\n"
    assert json.loads(prony.good("sql", "select 1 from runs where 0", "--json").out) == []


def test_the_documented_tables_are_there(prony):
    doc = keep(prony, url="null:?fail=0.05&fail_class=busy")
    assert sql(prony, "select count(*) as n from statements")[0]["n"] == len(doc["statements"])
    assert sql(prony, "select sum(done) as n from clients")[0]["n"] == doc["transactions"]["done"]
    assert sql(prony, "select count as n from errors where class = 'busy'")[0]["n"] == (
        doc["errors"]["busy"])
    assert sql(prony, "select count(*) as n from environment")[0]["n"] > 20
    assert sql(prony, "select count(*) as n from slowest")[0]["n"] == 100
    assert {row["id"] for row in sql(prony, "select id from warnings")} == (
        {warning["id"] for warning in doc["warnings"]})
    run = sql(prony, "select * from runs")[0]
    n = doc["transactions"]
    assert run["planned"] == n["planned"] == run["done"] + run["failed"]
    assert run["uuid"] == doc["uuid"]
    assert sql(prony, "pragma application_id") == [{"application_id": 0x70726f6e}]
    assert sql(prony, "pragma user_version")[0]["user_version"] >= 1


@pytest.mark.parametrize("query", [
    "delete from runs", "update runs set tps = 1e9", "drop table runs", "create table x (a)",
    "insert into runs (uuid) values ('x')", "attach 'x.db' as x", "pragma user_version = 9",
    "vacuum", "select 1; delete from runs", "begin", "", "selec 1", "select * from nosuch",
])
def test_a_query_only_reads(prony, query):
    keep(prony)
    before = prony.store.read_bytes()
    prony.refused("sql", query)
    assert prony.store.read_bytes() == before


# ---- where

def test_the_store_is_named_by_option_then_environment_then_directory(prony):
    keep(prony)
    assert prony.store.exists()
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", "--store", "option.db")
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", env={"PRONY_STORE": None})
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", env={"PRONY_STORE": ""})
    for args, env, n in ((["--store", "option.db"], {}, 1), ([], {"PRONY_STORE": None}, 2),
                         ([], {}, 1)):
        out = prony.good("sql", "select count(*) from runs", "--csv", *args, env=env).out
        assert out.split() == ["count(*)", str(n)]
    assert (prony.dir / "prony.db").exists()


def test_a_run_is_exported_and_imported_whole(prony):
    keep(prony)
    doc = keep(prony, "--label", "travels")
    result = prony.good("export", "travels", "-o", "out.prony")
    assert "out.prony" in result.out
    # The file is itself a store.
    assert json.loads(prony.good("show", "--format", "json", "--store", "out.prony").out) == (
        {**doc, "run_id": 1})
    keep(prony, "--store", "other.db")
    result = prony.good("import", "out.prony", "--store", "other.db")
    assert "as run 2" in result.out
    assert json.loads(prony.good("show", "travels", "--format", "json", "--store",
                                 "other.db").out) == doc
    result = prony.good("import", "out.prony", "--store", "other.db")
    assert "already, as run 2" in result.out
    prony.refused("export", "1", "-o", "out.prony", says=["out.prony", "exists"])
    prony.refused("import", "store.db", "--store", "other.db", says=["store.db", "prony export"])
    assert prony.run("sql", "select count(*) from runs", "--csv", "--store",
                     "other.db").out.split()[1] == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files for another user")
def test_under_sudo_files_belong_to_the_user(prony):
    prony.dir.joinpath("one.sql").write_text("SELECT 1;\n", encoding="utf-8")
    env = {"SUDO_UID": "65534", "SUDO_GID": "65534"}
    prony.good("init", "sqlite:made.db", "tpcb", "-s", "1", "-q", env=env)
    prony.good("run", "sqlite:made.db", "select-only", "-t", 5, "-q", "--json", "out.json", "-l",
               "log", "--trace", "trace.txt", env=env)
    prony.good("export", "1", "-o", "out.prony", env=env)
    made = [path for path in prony.dir.iterdir() if not path.name.startswith(("one.", "run"))]
    assert len(made) == 6, made
    for path in made:
        assert path.stat().st_uid == 65534, path


# ---- several at once, and files that go away

def test_several_runs_at_once_keep_all_their_results(prony):
    """Also into a store that none of them found."""
    runs = [prony.start("run", "null:?latency=1ms", "tpcb", "-T", 1, "-c", 2, "-q", "--label", i)
            for i in range(5)]
    for run in runs:
        assert run.wait().status == 0
    rows = sql(prony, "select id, label from runs order by id")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert {row["label"] for row in rows} == set("01234")


def test_a_refused_run_does_not_take_the_store_from_others(prony):
    run = prony.start("run", "null:?latency=1ms", "tpcb", "-T", 3, "-P", "0.2s")
    run.seen("progress")
    for _ in range(5):
        assert prony.run("run", "null:", "tpcb", "--json", "no/dir").status == 2
    assert not prony.store.exists()  # made with the first result
    assert run.wait().status == 0
    assert sql(prony, "select count(*) as n from runs")[0]["n"] == 1


def start_for_a_while(prony, *args):
    run = prony.start("run", "null:?latency=1ms", "tpcb", "-T", 2, "-P", "0.2s", "--json",
                      "out.json", *args, prefix=MERE_USER)
    run.seen("progress")
    return run


def check_told_but_not_kept(prony, result):
    assert result.status == 1, result
    assert "transactions/s" in result.out
    assert "kept as run" not in result.out
    lines = [line for line in result.err.splitlines() if not line.startswith("progress")]
    assert len(lines) == 1 and lines[0].startswith("prony: results file"), result
    doc = json.loads((prony.dir / "out.json").read_text(encoding="utf-8"))
    check_document(doc)
    assert doc["run_id"] == 0 and doc["status"] == "done"
    assert doc["transactions"]["done"] > 10


def test_a_store_that_cannot_be_written_at_the_end_costs_only_the_store(prony):
    keep(prony)
    run = start_for_a_while(prony)
    prony.store.chmod(0o444)
    prony.dir.chmod(0o555)
    try:
        result = run.wait()
    finally:
        prony.dir.chmod(0o700)
    check_told_but_not_kept(prony, result)
    assert sql(prony, "select count(*) as n from runs")[0]["n"] == 1


def test_a_store_that_others_hold_is_waited_for_and_then_given_up(prony):
    keep(prony)
    run = start_for_a_while(prony)
    db = sqlite3.connect(prony.store, isolation_level=None)
    db.execute("begin exclusive")
    try:
        result = run.wait(30)
    finally:
        db.close()
    assert result.seconds > 8
    check_told_but_not_kept(prony, result)
    assert "locked" in result.err


def test_a_store_that_was_removed_is_made_again(prony):
    keep(prony)
    run = start_for_a_while(prony)
    prony.store.unlink()
    result = run.wait()
    assert result.status == 0, result
    assert sql(prony, "select count(*) as n from runs")[0]["n"] == 1


def test_an_older_json_file_stays_until_there_is_a_newer(prony):
    path = prony.dir / "out.json"
    path.write_text("precious", encoding="utf-8")
    prony.refused("run", "null:", "tpcb", "--json", "out.json", "-l", "no/dir")
    assert path.read_text(encoding="utf-8") == "precious"
    path.write_text("x" * 1000000, encoding="utf-8")
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", "--json", "out.json")
    check_document(json.loads(path.read_text(encoding="utf-8")))


def test_json_on_standard_output_is_nothing_but_json(prony):
    result = prony.good("run", "null:", "tpcb", "-T", 1, "--json", "-", "-P", "0.3s", "-r")
    check_document(json.loads(result.out))
    assert "progress" in result.err


# ---- a full disk

# Without the write-ahead log's limit a few hundred transactions fill what there is.
GROWS = "journal_mode=wal&wal_autocheckpoint=0&synchronous=off"


def check_full(prony, target, result):
    assert result.status == 1, result
    doc = json.loads((prony.dir / "out.json").read_text(encoding="utf-8"))
    check_document(doc)
    assert doc["status"] == "failed" and "full" in doc["failure"], doc["failure"]
    assert doc["errors"]["full"] > 0
    assert doc["duration_s"] < 30
    n = doc["transactions"]
    assert n["done"] > 10
    assert doc["run_id"] > 0  # the store lies elsewhere
    assert result.err.startswith("prony: ") and "full" in result.err
    sums, rows = balances(target)
    assert n["done"] <= rows <= n["done"] + n["unknown"] + n["in_flight"]
    assert len(set(sums)) == 1
    return doc


def test_a_file_that_may_not_grow_ends_the_run_with_a_result(prony):
    """As a quota does, and without root."""
    target = SqliteTarget(prony.dir / "t.db")
    prony.good("init", target.url(), "tpcb", "-s", "1", "-q")
    size = target.path.stat().st_size
    result = prony.run("run", f"sqlite:t.db?{GROWS}", "tpcb", "-T", 60, "-c", 2, "-q", "--json",
                       "out.json", prefix=("prlimit", f"--fsize={size + 2000000}"))
    check_full(prony, target, result)


@pytest.fixture
def small_disk(prony):
    """A tmpfs of 32 MB."""
    where = prony.dir / "small"
    where.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "none", where],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
    yield where
    subprocess.run(["umount", where], check=True)


def test_a_full_disk_ends_the_run_with_a_result(prony, small_disk):
    target = SqliteTarget(small_disk / "t.db")
    prony.good("init", target.url(), "tpcb", "-s", "1", "-q")
    result = prony.run("run", f"sqlite:{target.path}?{GROWS}", "tpcb", "-T", 60, "-c", 2, "-q",
                       "--json", "out.json")
    doc = check_full(prony, target, result)
    assert "data-in-memory" in {warning["id"] for warning in doc["warnings"]}


def test_a_full_tablespace_ends_the_run_with_a_result(prony, small_disk, postgres):
    target = ServerTarget("postgres", postgres)
    prony.good("init", target.url(), "tpcb", "-s", "1", "-q")
    where = small_disk / "space"
    where.mkdir()
    if postgres.user:
        os.chown(where, postgres.user.pw_uid, postgres.user.pw_gid)
        prony.dir.chmod(0o711)
    postgres.rows("postgres", f"create tablespace small location '{where}'")
    try:
        target.rows("alter table pgbench_history set tablespace small")
        fill_up(small_disk, leave=100000)
        result = prony.run("run", target.url(), "tpcb", "-T", 60, "-c", 4, "-q", "--json",
                           "out.json", timeout_s=90)
        check_full(prony, target, result)
    finally:
        small_disk.joinpath("ballast").unlink(missing_ok=True)
        target.rows("drop table pgbench_history")
        postgres.rows("postgres", "drop tablespace small")


def fill_up(disk, leave=0):
    """A file that takes what is free, but for some bytes."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    disk.joinpath("ballast").write_bytes(bytes(free - leave))


def test_a_full_disk_under_the_store_costs_only_the_store(prony, small_disk):
    store = small_disk / "store.db"
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", "--store", store)
    run = start_for_a_while(prony, "--store", store)
    fill_up(small_disk)
    result = run.wait()
    check_told_but_not_kept(prony, result)
    assert "full" in result.err


def test_a_full_disk_under_the_log_ends_the_log_alone(prony, small_disk):
    fill_up(small_disk, leave=100000)
    doc = prony.measure("null:", "select-only", "-T", 2, "-c", 2, "-l", small_disk / "log",
                        "-q").json
    check_document(doc)
    assert doc["status"] == "done"
    assert "transaction-log" in {warning["id"] for warning in doc["warnings"]}


def test_an_init_on_a_full_disk_is_told(prony, small_disk):
    # Room by the estimate, which allows for a factor of two.
    result = prony.run("init", f"sqlite:{small_disk / 't.db'}", "tpcb", "-s", "4", "-q")
    assert result.status == 1, result
    assert "full" in result.err and result.err.count("\n") == 1, result
    refused = prony.run("run", f"sqlite:{small_disk / 't.db'}", "tpcb", "-t", 5)
    assert refused.status == 2 and "prony init" in refused.err, refused


def test_a_run_on_a_full_disk_of_a_temporary_database_leaves_nothing(prony, small_disk):
    before = time.monotonic()
    result = prony.run("run", f"sqlite:?{GROWS}", "tpcb", "-s", "1", "-T", 60, "-q",
                       cwd=small_disk)
    assert result.status == 1 and "full" in result.err, result
    assert time.monotonic() - before < 40
    assert list(small_disk.iterdir()) == []
