"""Small promises that a review found broken: results listed, shown and written; signals; places."""
import json
import re
import shlex
import signal
import socket
import sqlite3
import time
import unicodedata

import pytest

from harness.place import REPO


# ---- list

LABELS = ["short", "a label that is far too long for its column", "日本語のとても長いラベルです", "äöü",
          "tab\tand\x1b[31mred"]


def test_a_list_stays_in_its_columns_whatever_the_labels(prony):
    for label in LABELS:
        prony.good("run", "null:", "tpcb", "-t", "1", "-c", "1", "-q", "--label", label)
    lines = prony.good("list", env={"LC_ALL": "C.UTF-8"}).out.splitlines()

    def columns(text):
        return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)

    head = columns(lines[0][:lines[0].index("target")])
    assert len(lines) == 1 + len(LABELS)
    for line in lines[1:]:
        assert "\x1b" not in line and "\t" not in line
        assert columns(line[:line.index("null")]) == head, line
    assert "a label that.." in lines[-2]


def test_a_list_can_be_read_by_a_script(prony):
    prony.good("run", "null:", "tpcb", "-t", "5", "-c", "2", "-q", "--label", "x")
    prony.run("run", "null:?fail=1&fail_class=constraint", "tpcb", "-t", "20", "-c", "1", "-q")
    failed, good = json.loads(prony.good("list", "--json").out)
    assert (good["run_id"], good["label"], good["status"], good["clients"]) == (1, "x", "done", 2)
    assert good["p99_us"] > 0 and good["tps"] > 0 and good["started_utc"].endswith("Z")
    assert (failed["status"], failed["label"], failed["p99_us"]) == ("failed", None, None)
    assert json.loads(prony.good("list", "--json", "-n", "1").out)[0]["run_id"] == 2


# ---- signals

def test_the_third_signal_ends_the_program_whatever_it_hangs_on(prony):
    """A server that takes the connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        running = prony.start("run", f"postgres://me@127.0.0.1:{port}/d", "tpcb")
        server.settimeout(20)
        connection, _ = server.accept()
        for _ in range(3):
            running.interrupt()
            time.sleep(0.2)
        result = running.wait(5)
        connection.close()
    assert result.status == -signal.SIGINT, result


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_was_ignored_stays_ignored(prony, number):
    """As nohup and shells do for what runs in the background."""
    running = prony.start("run", "null:?latency=5ms", "tpcb", "-T", "2", "-c", "1",
                          prefix=("bash", "-c", f"trap '' {number.name[3:]}; exec \"$@\"", "x"))
    running.seen("load ")
    time.sleep(0.3)
    running.signal(number)
    result = running.wait()
    assert result.status == 0, result
    assert "(interrupted)" not in result.out, result


# ---- what is kept

def test_no_password_is_kept_with_a_run(prony):
    prony.good("run", "null:", "tpcb", "-t", "1", "-c", "1", "-q", "--label", "password=Geh31m",
               "--note", "tuned like postgres://me:Geh31m@h/d")
    assert b"Geh31m" not in prony.store.read_bytes()
    shown = prony.good("show", "--format", "json").out
    assert "Geh31m" not in shown and "postgres://me:xxx@h/d" in shown


def test_a_seed_is_the_same_number_everywhere(prony):
    seed = 2 ** 63 - 1
    result = prony.measure("null:", "tpcb", "-t", "1", "-c", "1", "--seed", seed)
    assert result.json["seed"] == seed
    prony.refused("run", "null:", "tpcb", "-t", "1", "--seed", seed + 1,
                  says=[f"--seed {seed + 1}", str(seed)])


def test_scripts_have_a_scale_only_where_it_means_something(prony):
    prony.dir.joinpath("one.sql").write_text("SELECT 1;\n", encoding="utf-8")
    line = ["null:", "-f", "one.sql", "-t", "1", "-c", "1"]
    assert prony.measure(*line).json["workload"]["scale"] is None
    assert prony.measure(*line, "-s", "7").json["workload"]["scale"] == 7
    assert prony.measure("null:", "tpcb", "-t", "1", "-c", "1").json["workload"]["scale"] == 10


def test_half_a_document_is_taken_away(prony):
    """No file may grow beyond 110 KiB."""
    prony.good("run", "null:", "tpcb", "-t", "1", "-c", "1", "-q")
    limit = "trap '' XFSZ; ulimit -f 110; exec \"$@\""
    result = prony.run("run", "null:", "tpcb", "-t", "2000", "-c", "2", "--json", "half.json",
                       prefix=("bash", "-c", limit, "x"))
    assert result.status == 1, result
    assert "half.json" in result.err
    assert "half.json" not in prony.files()
    assert "transactions/s" in result.out


# ---- doubts

def doubts(result):
    return {warning["id"] for warning in result.json["warnings"]}


@pytest.fixture
def counter(prony):
    """A database of one row and a script that writes it: nothing has to be filled."""
    with sqlite3.connect(prony.dir / "c.db") as db:
        db.execute("create table c as select 0 as n")
    db.close()
    prony.dir.joinpath("count.sql").write_text("UPDATE c SET n = n + 1;\n", encoding="utf-8")
    return ["-f", "count.sql", "-t", "5", "-c", "1"]


def test_what_is_written_beside_the_data_is_doubted(prony, counter):
    line = ["sqlite:c.db", *counter]
    assert "store-on-volume" not in doubts(prony.measure(*line))
    assert "store-on-volume" in doubts(prony.measure(*line, "-l", "tx"))
    assert "store-on-volume" in doubts(prony.measure(*line, "--trace", "calls"))


@pytest.mark.parametrize("url", ["null:", "sqlite:"])
def test_rows_are_not_blamed_where_none_are_locked(prony, url):
    result = prony.measure(url, "tpcb", "-s", "1", "-t", "2", "-c", "4")
    assert "few-rows" not in doubts(result)


def test_wal_that_flushes_at_checkpoints_only_is_not_durable(prony, counter):
    relaxed = prony.measure("sqlite:c.db?journal_mode=wal&synchronous=normal", *counter)
    assert "not-durable" in doubts(relaxed)
    strict = prony.measure("sqlite:c.db?journal_mode=wal&synchronous=full", *counter)
    assert "not-durable" not in doubts(strict)


# ---- check

def test_books_that_do_not_balance_are_a_bad_verdict(prony):
    url = f"sqlite:{prony.dir / 'b.db'}"
    made = json.loads(prony.good("init", url, "tpcb", "-s", "1", "--json").out)
    assert made["seconds"] > 0
    assert (made["scale"], made["rows"], made["jobs"]) == (1, 100011, 1)
    assert (made["target"], made["workload"]) == (url, "tpcb")
    good = json.loads(prony.good("check", url, "tpcb", "--json").out)
    assert good["agree"] is True and set(good["balances"].values()) == {0}
    assert (good["workload"], good["scale"], good["target"]) == ("tpcb", 1, url)
    with sqlite3.connect(prony.dir / "b.db") as db:
        db.execute("update pgbench_tellers set tbalance = 5 where tid = 3")
    db.close()
    bad = prony.run("check", url, "tpcb", "--json")
    assert bad.status == 3, bad
    assert json.loads(bad.out)["agree"] is False
    assert "differ" in bad.err
    assert prony.run("check", url, "tpcb", "-q").out == ""


# ---- files that are something else already

@pytest.mark.parametrize("name", ["store.db", "c.db"])
def test_a_document_does_not_replace_results_or_database(prony, counter, name):
    prony.good("run", "sqlite:c.db", *counter, "-q")
    prony.refused("run", "sqlite:c.db", *counter, "--json", name, says=["--json", name])
    prony.good("run", "sqlite:c.db", *counter, "-q")
    assert len(json.loads(prony.good("list", "--json").out)) == 2


def test_bytes_are_not_shown_as_text(prony):
    prony.good("run", "null:", "tpcb", "-t", "9", "-c", "1", "-q")
    query = "SELECT id, latency_histogram AS h, note FROM runs"
    assert prony.good("sql", query).out.split() == ["id", "h", "note", "1", "(blob)"]
    assert prony.good("sql", query, "--csv").out == "id,h,note\n1,(blob),\n"
    assert json.loads(prony.good("sql", query, "--json").out) == [{"id": 1, "h": None, "note": None}]


# ---- documents

def test_every_doubt_is_explained():
    source = "".join(path.read_text(encoding="utf-8") for path in (REPO / "src").rglob("*.c"))
    ids = set(re.findall(r'result_add_warning\(\s*\w+,\s*"([a-z-]+)"', source))
    ids |= set(re.findall(r'comparison_add_doubt\(\s*\w+,\s*"([a-z-]+)"', source))
    assert len(ids) > 30 and {"before-after", "outlier"} <= ids
    text = (REPO / "docs" / "doubts.md").read_text(encoding="utf-8")
    explained = {word for line in text.splitlines() if line.startswith("| ")
                 for word in line.split("|")[1].replace(",", " ").split()}
    assert ids - explained == set()


def test_the_init_that_is_advised_can_be_typed(prony):
    name = "it's & mine.db"
    sqlite3.connect(prony.dir / name).execute("create table t (a int)").connection.close()
    said = prony.refused("run", f"sqlite:{name}", "tpcb", "-s", "1", says="missing").err
    prony.good(*shlex.split(re.search("`prony (init .*)`", said).group(1)), "-q")
    prony.good("run", f"sqlite:{name}", "tpcb", "-t", "1", "-q")


def test_what_others_wrote_cannot_steer_the_terminal(prony):
    prony.good("init", "sqlite:b.db", "tpcb", "-s", "1", "-q")
    with sqlite3.connect(prony.dir / "b.db") as db:
        columns = [row[1] for row in db.execute("pragma table_info(prony_init)")]
        for column in columns:
            db.execute(f"update prony_init set {column} = '\x1b[31m' || {column}")
    db.close()
    for args in (["init", "sqlite:b.db", "tpcb", "-s", "1", "--dry-run", "--replace"],
                 ["run", "sqlite:b.db", "tpcb", "-t", "1"]):
        result = prony.run(*args)
        assert "\x1b" not in result.out + result.err, result
