"""Encrypted sessions: those of PostgreSQL run through the ring, those of MariaDB by threads."""
import pytest

from harness.claims import check_document
from harness.loops import LOOPS, RINGS
from harness.place import wait_until
from harness.targets import ServerTarget, balances


@pytest.fixture
def encrypted(prony, postgres):
    """A database with tables, a server that speaks TLS, and the parameters of a URL for it."""
    target = ServerTarget("postgres", postgres)
    prony.good("init", target.url(), "tpcb", "-s", 1, "-q")
    params = postgres.restart_with_tls()
    # The certificate's name is none that resolves.
    params.update(hostaddr=params.pop("host"), host="prony-test")
    return target, params


def sessions(target):
    """Process by process, how it is encrypted."""
    rows = target.server.rows("postgres", "select pid, coalesce(version, 'not') from pg_stat_ssl "
                              "join pg_stat_activity using (pid) "
                              f"where datname = '{target.database}'")
    return dict(rows)


def has_new_sessions(target, old):
    new = sessions(target)
    return len(new) >= len(old) and not set(new) & set(old)


@pytest.mark.parametrize("mode,version", [("verify-full", "TLSv1.3"), ("require", "TLSv1.2")])
@pytest.mark.parametrize("loop", LOOPS, indirect=True)
def test_postgres_over_tls(prony, encrypted, mode, version, loop):
    target, params = encrypted
    params["sslmode"] = mode
    if mode == "require":
        params.pop("sslrootcert")
    url = target.url(**params, ssl_min_protocol_version=version, ssl_max_protocol_version=version)
    run = prony.start("run", url, "tpcb", "-T", 60, "-c", 5, "-P", 1, "--json", "result.json")
    run.seen("progress: 1.")
    seen = sessions(target)
    # They come anew, again encrypted.
    target.server.kill_clients(target.database)
    assert wait_until(lambda: has_new_sessions(target, seen), 20), (seen, sessions(target))
    again = sessions(target)
    run.interrupt()
    result = run.wait()
    assert result.status == 0, result
    doc = prony.document("result.json")
    check_document(doc)
    assert len(seen) >= 5 and set(seen.values()) == {version}, seen
    assert set(again.values()) == {version}, again
    # One may be killed while it is being opened anew.
    assert doc["errors"]["lost"] >= 5 and set(doc["errors"]) <= {"lost", "unavailable"}
    assert doc["connections"]["reconnects"] >= 5
    n = doc["transactions"]
    sums, rows = balances(target)
    assert n["done"] > 20 and n["done"] <= rows <= n["done"] + n["unknown"] + n["in_flight"]
    assert len(set(sums)) == 1, sums


def test_rows_longer_than_a_record_of_tls(prony, encrypted):
    """16 KiB; each answer comes in several, and in more than one read."""
    target, params = encrypted
    prony.dir.joinpath("long.sql").write_text(
        "SELECT length(repeat('x', 300000)) AS n, repeat('x', 300000) AS text \\gset\n"
        "SELECT 1 / (CASE WHEN :n = length(:text) THEN 1 ELSE 0 END);\n", encoding="utf-8")
    doc = prony.measure(target.url(**params), "-f", "long.sql", "-c", 3, "-t", 10, "-q").json
    check_document(doc)
    assert doc["transactions"]["done"] == 30 and not doc["errors"]


def test_a_certificate_of_another_name_is_refused(prony, encrypted):
    target, params = encrypted
    params.update(host="another", sslmode="verify-full")
    prony.refused("run", target.url(**params), "tpcb", says=["certificate", "another"])


# ---- MariaDB

@pytest.fixture
def encrypted_mariadb(prony, mariadb):
    """A user that is let in by TLS only."""
    target = ServerTarget("mariadb", mariadb)
    prony.good("init", target.url(), "tpcb", "-s", 1, "-q")
    mariadb.restart_with_tls()
    target.rows("create or replace user locked@localhost require ssl")
    target.rows(f"grant all on {target.database}.* to locked@localhost")
    yield target
    target.rows("drop user locked@localhost")


def test_mariadb_over_tls_goes_to_threads(prony, encrypted_mariadb):
    target = encrypted_mariadb
    url = target.server.url(target.database, user="locked", ssl_ca=target.server.certificate,
                            ssl_verify_server_cert=0)
    prony.other_loop = "threads"
    doc = prony.measure(url, "tpcb", "-c", 4, "-t", 20, "--loop", "auto", "-q").json
    check_document(doc)
    assert doc["transactions"]["done"] == 80 and doc["loop"] == "threads"
    assert "TLS" in doc["environment"]["load.loop_why"], doc["environment"]
    shown = prony.good("show").out
    assert "loop          threads, as a better one could not be had (" in shown, shown
    assert doc["environment"]["engine.tls"].startswith("TLS"), doc["environment"]["engine.tls"]
    for loop in RINGS:
        prony.refused("run", url, "tpcb", "-t", 5, "--loop", loop, status=4,
                      says=[f"--loop {loop}", "TLS"])
