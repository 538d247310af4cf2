"""One suite over all engines and their kinds: tables are made and recognised, every workload runs by
every protocol, and the books balance, also when connections are killed."""
import itertools
import os
import random
import signal
import threading
import time

import pytest

from harness.claims import check_document, near
from harness.loops import each_loop
from harness.place import wait_until
from harness.targets import (ENGINES, KINDS, SERVER_ENGINES, WITH_TRANSACTIONS, ServerTarget,
                             SqliteTarget, balances, value)

PROTOCOLS = ["simple", "extended", "prepared"]


def make_tables(prony, target, *args, scale=1):
    return prony.good("init", target.url(), "tpcb", "-s", scale, *args)


def check_books(target, doc, before=0):
    """Rows of history lie between what was acknowledged and what may have been committed; all
    balances agree."""
    n = doc["transactions"]
    sums, rows = balances(target)
    assert before + n["done"] <= rows <= before + n["done"] + n["unknown"] + n["in_flight"], n
    assert len(set(sums)) == 1, sums
    return rows


# ---- running

@each_loop("subject", KINDS)
def test_every_workload_runs_by_every_protocol_and_the_books_balance(prony, subject, loop):
    make_tables(prony, subject, "-q")
    url = subject.url()
    result = prony.good("check", url, "tpcb")
    assert "the balances agree" in result.out
    rows = 0
    for workload, protocol in itertools.product(["tpcb", "select-only"], PROTOCOLS):
        doc = prony.measure(url, workload, "-M", protocol, "-t", 20, "-c", 4, "-q").json
        check_document(doc)
        assert doc["status"] == "done"
        assert doc["transactions"]["done"] == 80 == doc["transactions"]["planned"], doc["errors"]
        assert (doc["protocol"], doc["loop"]) == (protocol, loop)
        assert doc["workload"]["name"] == workload
        assert doc["workload"]["scale"] == 1
        assert doc["engine"]["name"] == subject.engine
        assert doc["engine"]["version"][0].isdigit()
        if workload == "tpcb":
            rows = check_books(subject, doc, rows)
    assert rows == 240
    prony.good("check", url, "tpcb")

    for protocol in PROTOCOLS:
        doc = prony.measure(url, "simple-update", "-M", protocol, "-t", 20, "-c", 4, "-q").json
        check_document(doc)
        assert doc["transactions"]["done"] == 80
    sums, rows = balances(subject)
    assert rows == 480
    assert sums[0] == sums[3] and sums[1] == sums[2] == sums[0] - simple_update_part(subject)
    result = prony.run("check", url, "tpcb")
    assert result.status == 3
    assert "differ" in result.err


def simple_update_part(subject):
    """What the last 240 transactions added; history has no order, so by difference."""
    sums, _ = balances(subject)
    return sums[3] - sums[1]


@each_loop("subject", KINDS)
def test_the_statements_are_those_of_pgbench(prony, subject, loop):
    make_tables(prony, subject, "-q")
    doc = prony.measure(subject.url(), "tpcb", "-t", 30, "-c", 1, "-q").json
    texts = [item["sql"].split()[0] for item in doc["statements"] if item["count"]]
    middle = ["UPDATE", "SELECT", "UPDATE", "UPDATE", "INSERT"]
    if subject.kind in WITH_TRANSACTIONS:
        assert texts == ["BEGIN", *middle, "COMMIT"]
    else:
        assert texts == ["LOCK", *middle, "UNLOCK"]
    assert {item["count"] for item in doc["statements"] if item["count"]} == {30}
    assert all(item["rows"] == 30 for item in doc["statements"] if item["sql"].startswith("SELECT"))


def test_the_environment_is_recorded(prony, target):
    make_tables(prony, target, "-q")
    doc = prony.measure(target.url(), "tpcb", "-t", 5, "-q").json
    environment = doc["environment"]
    engine = {key[7:]: text for key, text in environment.items() if key.startswith("engine.")}
    if target.engine == "postgres":
        assert environment["data.path"] == str(target.server.data)
        assert engine["fsync"] == "off" and engine["max_connections"] == "100"
        assert engine["shared_buffers"] == "64MB"
        assert doc["counters"]["wal_bytes"] > 0
        assert "checkpoints" in doc["counters"]
    elif target.engine == "mariadb":
        assert environment["data.path"] == str(target.server.data)
        assert engine["innodb_flush_log_at_trx_commit"] == "2"
        assert engine["table_engine"] == "InnoDB"
        assert doc["counters"]["commits"] >= 40
    else:
        assert environment["data.path"] == str(target.path)
        assert engine["journal_mode"] == "delete" and engine["synchronous"] == "full"
        assert doc["counters"]["blocks_written"] > 0
    assert environment["data.filesystem"] == environment["store.filesystem"]
    assert str(target.url()).split(":")[0] in doc["target"]


@each_loop("subject", KINDS)
def test_clients_wait_for_each_other_fairly(prony, subject, loop):
    """All write the one branch."""
    make_tables(prony, subject, "-q")
    doc = prony.measure(subject.url(), "tpcb", "-T", 2, "-c", 6, "-q").json
    check_books(subject, doc)
    assert min(doc["done_by_client"]) > 0, doc["done_by_client"]
    if subject.engine == "sqlite":
        assert doc["lock_wait_s"] > 0.1


@each_loop("target", ENGINES)
def test_a_rate_is_kept(prony, target, loop):
    make_tables(prony, target, "-q")
    doc = prony.measure(target.url(), "select-only", "-T", 2, "-R", 75, "--arrival", "even", "-c",
                        4, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert n["planned"] in (150, 151)
    assert n["done"] + n["backlog"] + n["in_flight"] == n["planned"]
    assert doc["rate_tps"] == 75


def test_a_target_of_the_wrong_storage_engine_is_refused(prony, mariadb):
    """Tables of InnoDB measured under the name of MyISAM would be a lie."""
    target = ServerTarget("mariadb", mariadb)
    make_tables(prony, target, "-q")
    prony.refused("run", target.url(engine="myisam"), "tpcb", "-t", 5,
                  says=["myisam", "InnoDB", "prony init"])
    make_tables(prony, ServerTargetView(target, "myisam"), "-q")
    prony.refused("run", target.url(), "tpcb", "-t", 5, says=["innodb", "MyISAM"])
    prony.good("run", target.url(engine="myisam"), "tpcb", "-t", 5, "-q")


class ServerTargetView:
    def __init__(self, target, engine):
        self.target = target
        self.engine = engine

    def url(self):
        return self.target.url(engine=self.engine)


# ---- init

def test_init_says_what_it_makes_and_makes_it(prony, subject):
    subject.rows("create table mine (a int)")
    subject.rows("insert into mine values (42)")
    result = make_tables(prony, subject, scale=2)
    for table, rows in (("branches", "2"), ("tellers", "20"), ("accounts", "200 000"),
                        ("history", "0")):
        assert f"table  pgbench_{table}, {rows} rows" in result.out
    assert "done: 200 022 rows in" in result.out
    assert "drops" not in result.out
    assert value(subject, "select count(*) from pgbench_branches where bbalance = 0") == 2
    assert value(subject, "select count(*) from pgbench_tellers where tbalance = 0") == 20
    assert value(subject, "select count(*) from pgbench_accounts where abalance = 0") == 200000
    assert value(subject, "select sum(aid) from pgbench_accounts") == 200000 * 200001 // 2
    assert value(subject, "select count(*) from pgbench_accounts where bid = 2") == 100000
    assert value(subject, "select max(bid) from pgbench_tellers where tid <= 10") == 1
    assert value(subject, "select count(*) from pgbench_history") == 0
    if subject.engine == "sqlite":  # which does not pad by itself
        assert value(subject, "select min(length(filler)) from pgbench_accounts") == 84
        assert subject.path.stat().st_size > 2 * 100000 * 95
    for column, table in (("bid", "branches"), ("tid", "tellers"), ("aid", "accounts")):
        with pytest.raises(Exception, match="(?i)unique|duplicate"):
            subject.rows(f"insert into pgbench_{table} ({column}) values (1)")

    # Again: it drops its own tables, and says so, and leaves others alone.
    prony.good("run", subject.url(), "tpcb", "-t", "5", "-q")
    result = make_tables(prony, subject)
    assert "drops  the same tables, which prony made on 20" in result.out
    assert value(subject, "select count(*) from pgbench_branches") == 1
    assert value(subject, "select count(*) from pgbench_history") == 0
    assert value(subject, "select a from mine") == 42


def test_a_dry_run_makes_nothing(prony, target):
    before = prony.files()
    result = prony.good("init", target.url(), "tpcb", "-s", "3", "--dry-run")
    assert "pgbench_accounts, 300 000 rows" in result.out
    assert prony.files() == before
    with pytest.raises(Exception, match="(?i)exist|no such table"):
        target.rows("select count(*) from pgbench_accounts")
    with pytest.raises(Exception, match="(?i)exist|no such table"):
        target.rows("select count(*) from prony_init")


def test_a_size_becomes_a_scale(prony, target):
    result = prony.good("init", target.url(), "tpcb", "-s", "120MB", "--dry-run")
    assert "scale 8," in result.out
    result = prony.good("init", target.url(), "tpcb", "-s", "0.001xRAM", "--dry-run")
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    scale = int(result.out.split("scale ")[1].split(",")[0])
    assert near(scale * 15.7e6, ram / 1000, 0.1, 16e6)


def test_tables_that_prony_did_not_make_are_dropped_only_when_told(prony, target):
    target.rows("create table pgbench_accounts (aid int primary key, precious int)")
    target.rows("insert into pgbench_accounts values (1, 42)")
    prony.refused("init", target.url(), "tpcb", "-s", "1", says=["did not make", "--replace"])
    assert value(target, "select precious from pgbench_accounts") == 42
    result = make_tables(prony, target, "--replace")
    assert "drops  the same tables, which prony did not make" in result.out
    assert value(target, "select count(*) from pgbench_accounts") == 100000
    make_tables(prony, target, "-q")  # now they are its own


def test_an_interrupted_init_is_recognised(prony, subject):
    check_interruption(prony, subject, signal.SIGINT)


def test_a_killed_init_is_recognised(prony, subject):
    check_interruption(prony, subject, signal.SIGKILL)


def test_a_second_init_waits_for_the_first(prony, mariadb):
    """Without transactions a statement of the one would reach the tables of the other."""
    target = ServerTarget("mariadb", mariadb)
    first = prony.start("init", target.url(engine="myisam"), "tpcb", "-s", "10")
    first.seen("pgbench_history, 0 rows")
    time.sleep(0.2)
    result = make_tables(prony, ServerTargetView(target, "myisam"), scale=1)
    assert first.wait().status == 0
    assert "drops  the same tables" in result.out
    assert value(target, "select count(*) from pgbench_accounts") == 100000


def check_interruption(prony, subject, number):
    init = prony.start("init", subject.url(), "tpcb", "-s", "40")
    init.seen("pgbench_history, 0 rows")
    time.sleep(0.4)
    assert init.process.poll() is None, "done too soon for this test"
    init.signal(number)
    result = init.wait()
    if number == signal.SIGKILL:
        assert result.status == -signal.SIGKILL
    else:
        assert result.status == 1, result
        assert "interrupted" in result.err, result
        assert result.err.count("\n") == 1
        assert result.seconds < 10
    refused = prony.refused("run", subject.url(), "tpcb", "-t", "5", says="prony init")
    assert "interrupted" in refused.err or "missing" in refused.err, refused
    # It is its own half, so nothing needs to be told.
    result = make_tables(prony, subject)
    doc = prony.measure(subject.url(), "tpcb", "-t", "5", "-q").json
    check_books(subject, doc)


def test_several_sessions_load_what_one_loads(prony, target):
    make_tables(prony, target, "-q", "-j", "1")
    query = "select count(*), min(aid), max(aid), sum(aid), sum(bid) from pgbench_accounts"
    one = target.rows(query)
    make_tables(prony, target, "-q", "-j", "4")
    assert target.rows(query) == one


def test_init_of_a_sqlite_file_makes_it(prony):
    result = prony.good("init", "sqlite:new.db?journal_mode=wal", "tpcb", "-s", "1")
    assert "tpcb in sqlite:new.db" in result.out
    target = SqliteTarget(prony.dir / "new.db")
    assert value(target, "select count(*) from pgbench_accounts") == 100000
    prony.good("run", "sqlite:new.db?journal_mode=wal", "tpcb", "-t", "5", "-q")


def test_a_temporary_database_is_filled_unasked(prony):
    doc = prony.measure("sqlite:", "tpcb", "-s", "1", "-t", "20", "-c", "2", "-q").json
    check_document(doc)
    assert doc["transactions"]["done"] == 40
    assert doc["workload"]["scale"] == 1
    assert prony.files() == ["result1.json", "store.db"]


# ---- beside pgbench

def test_pgbench_runs_on_tables_of_prony(prony, postgres):
    target = ServerTarget("postgres", postgres)
    make_tables(prony, target, "-q")
    for args in (["-t", "50", "-c", "2"], ["-S", "-M", "prepared", "-t", "50"], ["-N", "-t", "5"]):
        out = postgres.pgbench("-n", *args, target.database)
        assert "number of failed transactions: 0" in out
        assert "scaling factor: 1" in out
    sums, rows = balances(target)
    assert rows == 105
    assert sums[0] == sums[3]
    postgres.pgbench("-t", "5", target.database)  # vacuums, and empties history
    assert balances(target)[1] == 5


def test_prony_runs_on_tables_of_pgbench(prony, postgres):
    target = ServerTarget("postgres", postgres)
    postgres.pgbench("-i", "-s", "2", "-q", target.database)
    for workload in ("tpcb", "select-only"):
        doc = prony.measure(target.url(), workload, "-t", 20, "-c", 2, "-q").json
        assert doc["workload"]["scale"] == 2
        assert doc["transactions"]["done"] == 40
    check_books(target, prony.measure(target.url(), "tpcb", "-t", 20, "-q").json, 40)
    prony.good("check", target.url(), "tpcb")
    prony.refused("init", target.url(), "tpcb", "-s", "2", says=["did not make", "--replace"])
    assert balances(target)[1] == 200


def test_both_make_the_same_tables(prony, postgres):
    ours, theirs = ServerTarget("postgres", postgres), ServerTarget("postgres", postgres)
    make_tables(prony, ours, "-q", scale=2)
    postgres.pgbench("-i", "-s", 2, "-q", theirs.database)
    columns = ("select table_name, column_name, ordinal_position, data_type, is_nullable, "
               "character_maximum_length from information_schema.columns "
               "where table_name like 'pgbench%' order by 1, 3")
    assert ours.rows(columns) == theirs.rows(columns)
    keys = ("select indexrelid::regclass::text, indisprimary, indisunique from pg_index "
            "where indrelid::regclass::text like 'pgbench%' order by 1")
    assert ours.rows(keys) == theirs.rows(keys)
    options = ("select relname, coalesce(reloptions::text, ''), relpersistence from pg_class "
               "where relname like 'pgbench%' order by 1")
    assert ours.rows(options) == theirs.rows(options)
    for table, order in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")):
        rows = f"select md5(string_agg(t::text, ',' order by {order})) from pgbench_{table} t"
        assert ours.rows(rows) == theirs.rows(rows), table


# ---- killed connections

class Killer(threading.Thread):
    """Ends some connections now and then."""

    def __init__(self, server, database, seed):
        super().__init__()
        self.server = server
        self.database = database
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.killed = 0
        self.start()

    def run(self):
        while not self.over.wait(self.random.uniform(0.1, 0.5)):
            self.killed += self.server.kill_clients(self.database, self.random.randint(1, 4))

    def stop(self):
        self.over.set()
        self.join()


@each_loop("killable", SERVER_ENGINES)
def test_killed_connections_are_counted_and_the_books_balance(prony, killable, loop):
    make_tables(prony, killable, "-q", scale=2)
    protocol = {"ring-uring": "prepared", "ring-epoll": "extended", "threads": "simple"}[loop]
    run = prony.start("run", killable.url(), "tpcb", "-T", 4, "-c", 8, "-M", protocol, "-q",
                      "--json", "result.json")
    # Its sessions must be up: what is killed before the load is another matter.
    assert wait_until(lambda: count_sessions(killable) >= 8, 20)
    time.sleep(0.3)
    killer = Killer(killable.server, killable.database, protocol)
    try:
        result = run.wait()
    finally:
        killer.stop()
    assert result.status == 0, result
    doc = load(prony)
    check_document(doc)
    assert killer.killed >= 4
    assert doc["errors"]["lost"] > 0
    assert doc["connections"]["reconnects"] > 0
    assert doc["connections"]["attempts"] >= doc["connections"]["reconnects"]
    assert doc["errors"]["lost"] <= killer.killed
    # A session may be killed while it is being opened anew: then the attempt is refused.
    assert set(doc["errors"]) <= {"lost", "unavailable", "deadlock", "serialization", "busy"}, doc
    n = doc["transactions"]
    assert n["done"] > 20
    assert n["unknown"] + n["failed"] <= killer.killed + doc["errors"].get("deadlock", 0)
    check_books(killable, doc)
    assert min(doc["done_by_client"]) > 0
    prony.good("check", killable.url(), "tpcb")


def count_sessions(target):
    if target.engine == "postgres":
        return int(target.server.rows("postgres", "select count(*) from pg_stat_activity where "
                                      f"datname = '{target.database}'")[0][0])
    return int(target.server.rows(None, "select count(*) from information_schema.processlist "
                                  f"where db = '{target.database}'")[0][0])


def load(prony, name="result.json"):
    import json
    return json.loads((prony.dir / name).read_text(encoding="utf-8"))


@each_loop("killable", SERVER_ENGINES)
def test_without_reconnection_a_client_gives_up(prony, killable, loop):
    make_tables(prony, killable, "-q")
    run = prony.start("run", killable.url(), "tpcb", "-T", 30, "-c", 4, "-q", "--reconnect-for",
                      "0", "--json", "result.json")
    assert wait_until(lambda: count_sessions(killable) >= 4, 20)
    time.sleep(0.5)
    assert killable.server.kill_clients(killable.database) >= 4
    result = run.wait(20)
    assert result.status == 1, result
    doc = load(prony)
    assert doc["status"] == "failed"
    assert "every client gave up" in doc["failure"] and "lost" in doc["failure"]
    assert doc["duration_s"] < 20
    check_document(doc)
    check_books(killable, doc)


@each_loop("killable", SERVER_ENGINES)
def test_cancelled_statements_are_counted(prony, killable, loop):
    make_tables(prony, killable, "-q")
    # Eight clients queue for the one row of branches: most are in a statement when they are looked at.
    run = prony.start("run", killable.url(), "tpcb", "-T", 4, "-c", 8, "-q", "--json",
                      "result.json")
    assert wait_until(lambda: count_sessions(killable) >= 8, 20)
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        cancel_all(killable)
        time.sleep(0.02)
    result = run.wait()
    assert result.status == 0, result
    doc = load(prony)
    check_document(doc)
    assert doc["errors"]["cancelled"] > 0
    assert "lost" not in doc["errors"]
    assert doc["transactions"]["unknown"] == 0
    check_books(killable, doc)


def cancel_all(target):
    if target.engine == "postgres":
        target.server.rows("postgres", "select pg_cancel_backend(pid) from pg_stat_activity where "
                           f"datname = '{target.database}'")
        return
    for (number,) in target.server.rows(None, "select id from information_schema.processlist "
                                        f"where db = '{target.database}' and command <> 'Sleep'"):
        try:
            target.server.rows(None, f"kill query {number}")
        except RuntimeError:
            pass  # it has just gone by itself
