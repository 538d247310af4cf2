"""Statements sent without waiting for the answers before: the books balance, errors are counted once,
what was lost is said to be, and the result says that it is another protocol."""
import contextlib
import json
import time

import pytest

from harness.claims import check_document
from harness.place import wait_until
from harness.targets import ServerTarget, balances, value

RINGS = ["ring-uring", "ring-epoll"]
SECTION = """\\set aid random(1, 100000 * :scale)
\\set delta random(-5000, 5000)
\\startpipeline
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = 1;
\\syncpipeline
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 1, :aid, :delta);
COMMIT;
\\endpipeline
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""


@pytest.fixture
def bank(prony, postgres):
    target = ServerTarget("postgres", postgres)
    prony.good("init", target.url(), "tpcb", "-s", 1, "-q")
    return target


def write(prony, text, name="script.sql"):
    (prony.dir / name).write_text(text, encoding="utf-8")
    return name


def check_books(target, doc):
    n = doc["transactions"]
    sums, rows = balances(target)
    assert n["done"] <= rows <= n["done"] + n["unknown"] + n["in_flight"], n
    assert len(set(sums)) == 1, sums


# ---- on a real server

@pytest.mark.parametrize("loop, protocol", zip(RINGS, ["extended", "prepared"]))
def test_the_books_balance(prony, bank, loop, protocol):
    doc = prony.measure(bank.url(), "tpcb", "--pipeline", "auto", "-M", protocol, "--loop", loop,
                        "-c", 8, "-t", 50, "-q").json
    check_document(doc)
    assert doc["pipeline"] == "auto" == doc["options"]["pipeline"]
    assert doc["loop"] == loop and doc["protocol"] == protocol
    assert doc["transactions"]["done"] == 400 and not doc["errors"]
    assert {item["count"] for item in doc["statements"]} == {400}
    assert doc["client_cpu"]["statements"] == 400 * 7
    assert balances(bank)[1] == 400
    check_books(bank, doc)


@pytest.mark.parametrize("options", [["--pipeline", "none"], ["--pipeline", "auto"]])
def test_sections_of_a_script_go_together(prony, bank, options):
    name = write(prony, SECTION)
    doc = prony.measure(bank.url(), "-f", name, *options, "-c", 4, "-t", 50, "-q").json
    check_document(doc)
    assert doc["pipeline"] == ("auto" if "auto" in options else "script")
    assert doc["loop"].startswith("ring")
    assert doc["transactions"]["done"] == 200 and not doc["errors"]
    assert balances(bank)[1] == 200
    check_books(bank, doc)


def test_a_section_without_a_transaction_is_one_by_itself(prony, bank):
    bank.rows("create table t (a int primary key, b int check (b < 100))")
    name = write(prony, "\\startpipeline\nINSERT INTO t VALUES (:client_id, 1);\n"
                        "INSERT INTO t VALUES (1000 + :client_id, :b);\n\\endpipeline\n")
    prony.good("run", bank.url(), "-f", name, "-c", 3, "-t", 1, "-D", "b=5", "-q")
    assert value(bank, "select count(*) from t") == 6
    bank.rows("delete from t")
    doc = prony.measure(bank.url(), "-f", name, "-c", 3, "-t", 1, "-D", "b=500", "-q",
                        status=1).json
    assert doc["errors"] == {"constraint": 3}
    assert value(bank, "select count(*) from t") == 0


def test_variables_conditions_pauses_and_rows_are_as_without(prony, bank):
    """Each pass checks what the one statement says against what the script knows."""
    bank.rows("create table t (client int, step int, v bigint)")
    name = write(prony, """\\set n random(1000, 1000000)
BEGIN;
INSERT INTO t VALUES (:client_id, 1, :n);
\\if :n % 2 = 0
INSERT INTO t VALUES (:client_id, 2, :n);
\\else
INSERT INTO t VALUES (:client_id, 3, :n);
\\endif
\\set n :n + 1
INSERT INTO t VALUES (:client_id, 4, :n);
SELECT count(*) AS rows, max(v) AS most FROM t WHERE client = :client_id \\gset got_
\\sleep 1 ms
INSERT INTO t VALUES (:client_id, 5, :got_rows);
DELETE FROM t WHERE client = :client_id AND step < 5;
COMMIT;
SELECT 1 / (:got_most::bigint = :n::bigint)::int AS fails_if_not_equal;
""")
    doc = prony.measure(bank.url(), "-f", name, "--pipeline", "auto", "-c", 4, "-t", 20, "-q").json
    check_document(doc)
    assert doc["transactions"]["done"] == 80 and not doc["errors"], doc["errors"]
    assert value(bank, "select count(*) from t where step = 5") == 80
    # The rows that were there: one of every pass before, and the three of this one.
    assert bank.rows("select v, count(*) from t group by 1 order by 1") == [
        [str(3 + i), "4"] for i in range(20)]


@pytest.mark.parametrize("script", [False, True])
def test_what_cannot_be_serialized_is_tried_again(prony, bank, script):
    url = bank.url(options="'-c default_transaction_isolation=serializable'")
    what = ["-f", write(prony, SECTION)] if script else ["tpcb", "--pipeline", "auto"]
    doc = prony.measure(url, *what, "-c", 6, "-t", 30, "--max-tries", 1000, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert n["done"] == 180
    # What the server left out after an error is no error, nor is the next batch that it refused.
    assert set(doc["errors"]) == {"serialization"}, doc["errors"]
    assert doc["errors"]["serialization"] == n["retries"] > 0
    assert balances(bank)[1] == 180
    check_books(bank, doc)


def test_an_error_in_the_middle_fails_the_transaction_once(prony, bank):
    name = write(prony, """BEGIN;
INSERT INTO pgbench_history (tid) VALUES (1);
INSERT INTO pgbench_branches (bid) VALUES (1);
INSERT INTO pgbench_history (tid) VALUES (2);
COMMIT;
""")
    doc = prony.measure(bank.url(), "-f", name, "-f", write(prony, SECTION, "other.sql"),
                        "--pipeline", "auto", "-c", 4, "-t", 40, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert n["done"] > 0 and n["failed"] > 0 and n["done"] + n["failed"] == 160
    assert doc["errors"] == {"constraint": n["failed"]}
    failed = {item["sql"]: item for item in doc["statements"] if item["script"] == "script.sql"}
    counts = [item["count"] for item in failed.values()]
    assert counts[0] == counts[1] == counts[2] and counts[3] == counts[4] == 0
    check_books(bank, doc)


@pytest.mark.parametrize("loop", RINGS)
def test_killed_sessions_leave_the_books_balanced(prony, bank, loop):
    run = prony.start("run", bank.url(), "tpcb", "--pipeline", "auto", "-T", 4, "-c", 8, "--loop",
                      loop, "-q", "--json", "result.json")
    count = f"select count(*) from pg_stat_activity where datname = '{bank.database}'"
    assert wait_until(lambda: int(bank.server.rows("postgres", count)[0][0]) >= 8, 20)
    time.sleep(0.3)
    killed = 0
    while run.process.poll() is None and killed < 20:
        killed += bank.server.kill_clients(bank.database, 3)
        time.sleep(0.2)
    result = run.wait()
    assert result.status == 0, result
    doc = json.loads((prony.dir / "result.json").read_text(encoding="utf-8"))
    check_document(doc)
    n = doc["transactions"]
    assert 0 < doc["errors"]["lost"] <= killed
    assert n["unknown"] + n["failed"] <= killed and n["done"] > 100
    assert min(doc["done_by_client"]) > 0
    check_books(bank, doc)
    prony.good("check", bank.url(), "tpcb")


def test_what_hangs_is_cancelled_at_the_end(prony, bank):
    name = write(prony, "BEGIN;\nSELECT 1;\nSELECT pg_sleep(60);\nCOMMIT;\n")
    run = prony.start("run", bank.url(), "-f", name, "--pipeline", "auto", "-T", 30, "-c", 3, "-q",
                      "--json", "result.json")
    sleeping = ("select count(*) from pg_stat_activity where query like 'SELECT pg_sleep%' and "
                f"state = 'active' and datname = '{bank.database}'")
    assert wait_until(lambda: int(bank.server.rows("postgres", sleeping)[0][0]) == 3, 20)
    run.interrupt()
    time.sleep(0.3)
    run.interrupt()
    result = run.wait(20)
    doc = json.loads((prony.dir / "result.json").read_text(encoding="utf-8"))
    assert doc["transactions"]["in_flight"] == 3 and not doc["errors"], result
    assert result.seconds < 15


def test_it_goes_through_tls(prony, postgres):
    database = postgres.new_database()
    params = postgres.restart_with_tls()
    url = f"postgres:{' '.join(f'{k}={v}' for k, v in params.items())} " \
          f"user={postgres.user_name} dbname={database}"
    prony.good("init", url, "tpcb", "-s", 1, "-q")
    doc = prony.measure(url, "tpcb", "--pipeline", "auto", "-c", 4, "-t", 50, "-q").json
    assert doc["transactions"]["done"] == 200 and not doc["errors"]
    assert doc["loop"].startswith("ring")
    prony.good("check", url, "tpcb")


# ---- on the stub

def test_a_transaction_leaves_in_one_piece(prony, stub):
    reads = {}
    for pipeline in ("none", "auto"):
        with contextlib.ExitStack() as stack:
            server = stub()
            stack.callback(server.stop)
            doc = prony.measure(server.url("postgres"), "tpcb", "-s", 1, "-c", 1, "-t", 200,
                                "--pipeline", pipeline, "-q").json
            assert doc["transactions"]["done"] == 200
            reads[pipeline] = server.stop()["reads"]
    # Set-up, and looks at the server before and after, are the same in both.
    assert reads["none"] - reads["auto"] == 200 * 6, reads


@pytest.mark.parametrize("loop", RINGS)
def test_torn_messages_change_nothing(prony, stub, loop):
    server = stub("--tear")
    doc = prony.measure(server.url("postgres"), "tpcb", "-s", 1, "-c", 2, "-t", 20, "--pipeline",
                        "auto", "--loop", loop, "-q").json
    assert doc["transactions"]["done"] == 40 and not doc["errors"]


def test_each_error_of_the_server_is_counted_once(prony, stub):
    server = stub("--error", "0.05/40001")
    doc = prony.measure(server.url("postgres"), "tpcb", "-s", 1, "-c", 4, "-t", 100, "--pipeline",
                        "auto", "--max-tries", 100, "-q").json
    assert doc["transactions"]["done"] == 400
    assert doc["errors"] == {"serialization": server.stop()["errors"]}
    assert doc["transactions"]["retries"] == doc["errors"]["serialization"] > 0


def test_each_lost_session_loses_one_transaction(prony, stub):
    server = stub("--drop", 0.02)
    doc = prony.measure(server.url("postgres"), "tpcb", "-s", 1, "-c", 4, "-t", 100, "--pipeline",
                        "auto", "-q").json
    counts = doc["transactions"]
    drops = server.stop()["drops"]
    assert drops > 0 and doc["errors"] == {"lost": drops}
    assert counts["done"] + counts["unknown"] == 400
    assert counts["unknown"] == drops  # the COMMIT was sent with all the rest


@pytest.mark.alone
def test_a_statement_has_the_time_to_its_own_answer(prony, stub):
    """The stub answers one statement after the other, each after 2 ms, and sends answers at once."""
    server = stub("--delay", "fixed:2ms")
    doc = prony.measure(server.url("postgres"), "tpcb", "-s", 1, "-c", 2, "-t", 100, "--pipeline",
                        "auto", "-q").json
    assert 14_000 <= doc["latency_us"]["p50"] < 20_000
    times = [item["p50_us"] for item in doc["statements"] if item["count"]]
    assert times == sorted(times) and times[-1] >= 13_900, times


# ---- what is said

def test_the_result_says_that_it_is_another_protocol(prony, stub):
    server = stub()
    url = server.url("postgres")
    script = write(prony, "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n")
    for args, pipeline in ((["tpcb", "-s", 1, "--pipeline", "auto"], "auto"),
                           (["-f", script], "script"), (["tpcb", "-s", 1], "none")):
        doc = prony.measure(url, *args, "-c", 2, "-t", 20, "-q").json
        check_document(doc)
        assert doc["pipeline"] == pipeline == doc["environment"]["load.pipeline"]
        run = str(doc["run_id"])
        assert json.loads(prony.good("show", run, "--format", "json").out) == doc
        text, ticket = prony.good("show", run).out, prony.good("show", run, "--format", "md").out
        for page in (text, ticket):
            assert ("were sent together" in " ".join(page.split())) == (pipeline != "none"), page
        prony.good("export", run, "-o", f"{pipeline}.prony")
        prony.good("import", f"{pipeline}.prony", "--store", "other.db")
        again = json.loads(prony.good("show", "last", "--format", "json", "--store",
                                      "other.db").out)
        assert again["pipeline"] == pipeline


SECTION_FILE = "\\startpipeline\nSELECT 1;\n\\endpipeline\n"
REFUSED = {
    "the simple protocol": (["tpcb", "--pipeline", "auto", "-M", "simple"],
                            ["--pipeline auto", "--protocol simple"]),
    "threads": (["tpcb", "--pipeline", "auto", "--loop", "threads"],
                ["--pipeline auto", "--loop threads"]),
    "tracing": (["tpcb", "--pipeline", "auto", "--trace", "x"], ["--pipeline auto", "--trace"]),
    "a section in the simple protocol": (["-f", "script.sql", "-M", "simple"],
                                         ["script.sql:1:1", "--protocol simple"]),
    "a section with threads": (["-f", "script.sql", "--loop", "threads"],
                               ["\\startpipeline", "--loop threads"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_waits_for_answers_is_refused(prony, stub, case):
    args, says = REFUSED[case]
    write(prony, SECTION_FILE)
    prony.refused("run", stub().url("postgres"), *args, "-t", 5, says=says)


def test_a_section_cannot_be_traced(prony, stub):
    """What the script is like shows when the target is open, and traced."""
    write(prony, SECTION_FILE)
    result = prony.run("run", stub().url("postgres"), "-f", "script.sql", "--trace", "x", "-t", 5)
    assert result.status == 2 and "--trace" in result.err and "\\startpipeline" in result.err


@pytest.mark.parametrize("what", [["tpcb", "--pipeline", "auto"], ["-f", "script.sql"]])
@pytest.mark.parametrize("url", ["null:", "sqlite:x.db", "mysql"])
def test_engines_that_cannot_are_refused(prony, stub, url, what):
    write(prony, SECTION_FILE)
    if url == "mysql":
        url = stub().url("mysql")
    elif url.startswith("sqlite"):
        prony.good("init", url, "tpcb", "-s", 1, "-q")
    prony.refused("run", url, *what, "-t", 5, says=["engine", "leave", "away"])
