"""The null engine knows what it did: what prony reports must be that. Delays, stalls, failures and
losses are told in the target, and come out in the result."""
import re
import signal
import time

import pytest

from harness.claims import check_document, near, share_above, tps_at, warning_ids

ONE = "SELECT 1;\n"


@pytest.fixture
def one(prony):
    """One statement per transaction, so a transaction's latency is the statement's."""
    prony.dir.joinpath("one.sql").write_text(ONE, encoding="utf-8")
    return prony


def script(prony, name, text):
    prony.dir.joinpath(name).write_text(text, encoding="utf-8")
    return name


# ---- latency

@pytest.mark.alone
@pytest.mark.release_only
@pytest.mark.parametrize("delay", ["latency=500us", "latency=3ms",
                                   "latency=2ms&distribution=exponential"])
@pytest.mark.parametrize("clients", [1, 16])
def test_latency_is_the_delay_that_was_given(one, delay, clients):
    doc = one.measure(f"null:?{delay}", "-f", "one.sql", "-T", 4, "-c", clients, "--warmup",
                      "none", "-q").json
    check_document(doc)
    told, given = doc["latency_us"], doc["given_delay_us"]
    for key in ("mean", "p50", "p99"):
        assert near(told[key], given[key], 0.01, 30), (key, told[key], given[key])
    assert told["min"] >= given["min"]
    # A closed loop of one delay: Little's law.
    assert near(doc["throughput"]["tps"] * told["mean"] / 1e6, clients, 0.05)


def test_statements_have_their_own_latency(prony):
    script(prony, "two.sql", "BEGIN;\nSELECT 1;\nCOMMIT;\n")
    doc = prony.measure("null:?latency=4ms&latency_per=transaction", "-f", "two.sql", "-T", 2, "-c",
                        2, "-q").json
    begin, select, commit = doc["statements"]
    assert (begin["sql"], select["sql"], commit["sql"]) == ("BEGIN", "SELECT 1", "COMMIT")
    assert commit["mean_us"] > 3900 > 2000 > begin["mean_us"] and select["mean_us"] < 2000
    total = begin["mean_us"] + select["mean_us"] + commit["mean_us"]
    assert near(doc["latency_us"]["mean"], total, 0.05, 200)


@pytest.mark.alone
def test_a_stall_under_a_rate_hits_all_who_would_have_come(one):
    """200 a second for 6 s, nothing answered from 2 s to 3 s: of those due in the stall, the
    first waited a second and the last hardly; a closed loop would show one slow transaction per
    client."""
    doc = one.measure("null:?latency=1ms&stall_at=2s&stall_for=1s", "-f", "one.sql", "-T", 6, "-R",
                      200, "--arrival", "even", "-c", 10, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert n["planned"] == n["done"] and near(n["done"], 1200, 0, 1)
    told, service = doc["latency_us"], doc["service_us"]
    for limit_ms in (100, 250, 500, 750, 900):
        expected = 200 * (1000 - limit_ms) / 1000
        assert near(share_above(told, 1000 * limit_ms), expected, 0.02, 3), limit_ms
    assert near(told["max"], 1e6, 0.02)
    # Ten clients were caught in the stall; for the others service was as ever.
    assert share_above(service, 100000) <= 10
    assert told["p99"] > 900000 > 100000 > service["p90"]
    assert tps_at(doc, 2) < 20 and near(tps_at(doc, 3), 400, 0.05)


def test_a_stall_in_a_closed_loop_raises_a_doubt(one):
    doc = one.measure("null:?latency=1ms&stall_at=1s&stall_for=1s", "-f", "one.sql", "-T", 4, "-c",
                      4, "-q").json
    assert share_above(doc["latency_us"], 500000) == 4
    assert tps_at(doc, 1) < 20
    assert "closed-loop" in warning_ids(doc)


# ---- rate

@pytest.mark.parametrize("arrival", ["even", "poisson"])
def test_a_rate_is_kept(one, arrival):
    doc = one.measure("null:?latency=1ms", "-f", "one.sql", "-T", 4, "-R", 300, "--arrival",
                      arrival, "-c", 8, "-q").json
    check_document(doc)
    n = doc["transactions"]
    spread = 1 if arrival == "even" else 5 * 1200 ** 0.5
    assert near(n["planned"], 1200, 0, spread)
    assert n["done"] + n["backlog"] + n["in_flight"] == n["planned"]
    assert n["backlog"] <= 8
    assert near(doc["throughput"]["tps"], n["planned"] / 4, 0.02)


def test_a_rate_beyond_what_can_be_had_is_measured_and_doubted(one):
    doc = one.measure("null:?latency=10ms", "-f", "one.sql", "-T", 3, "-R", 1000, "--arrival",
                      "even", "-c", 4, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert near(n["planned"], 3000, 0, 1)
    assert n["done"] < 1300 and n["backlog"] > 1500
    assert "saturated" in warning_ids(doc)
    # The queue grows all the time, so the last wait about as long as the backlog takes.
    assert doc["latency_us"]["p50"] > 500000 > 50000 > doc["service_us"]["p50"]


# ---- counts

def test_injected_failures_are_counted_exactly(prony):
    doc = prony.measure("null:?fail=0.02&fail_class=constraint", "tpcb", "-t", 2000, "-c", 4,
                        "-q").json
    check_document(doc)
    n, counters = doc["transactions"], doc["counters"]
    assert n["planned"] == 8000 == n["done"] + n["failed"]
    assert doc["errors"] == {"constraint": n["failed"]}
    assert counters["failures"] == n["failed"]
    assert counters["commits"] == n["done"]
    # A failed COMMIT ends its transaction by itself.
    commit = doc["statements"][-1]
    assert counters["rollbacks"] == n["failed"] - commit["failed"]
    assert n["retried"] == n["retries"] == 0
    assert 700 < n["failed"] < 1300  # six in seven of 8000 * 6 / 50
    assert sum(item["failed"] for item in doc["statements"]) == n["failed"]
    assert "errors" in warning_ids(doc)


@pytest.mark.parametrize("kind", ["deadlock", "serialization", "busy"])
def test_retries_are_counted_exactly(prony, kind):
    doc = prony.measure(f"null:?fail=0.05&fail_class={kind}", "tpcb", "-t", 500, "-c", 4,
                        "--max-tries", 3, "-q").json
    check_document(doc)
    n = doc["transactions"]
    assert n["planned"] == 2000 == n["done"] + n["failed"]
    # Every error ends a try: there is another one, or the transaction has failed.
    assert doc["errors"] == {kind: n["retries"] + n["failed"]}
    assert doc["counters"]["failures"] == n["retries"] + n["failed"]
    assert doc["counters"]["commits"] == n["done"]
    assert 0 < n["failed"] < n["retried"] <= n["retries"] <= 2 * n["retried"]


def test_all_tries_used_up_is_a_failure(prony):
    doc = prony.measure("null:?fail=1&fail_class=deadlock", "tpcb", "-t", 10, "-c", 2,
                        "--max-tries", 4, status=1).json
    check_document(doc)
    assert doc["status"] == "failed" and "deadlock" in doc["failure"]
    n = doc["transactions"]
    assert (n["done"], n["failed"], n["retried"], n["retries"]) == (0, 20, 20, 60)
    assert doc["errors"] == {"deadlock": 80}


def test_nothing_but_errors_ends_soon_and_names_the_statement(prony):
    result = prony.measure("null:?fail=1&fail_class=undefined", "tpcb", "-T", 60, "-q", status=1)
    assert result.seconds < 20
    assert "every client gave up" in result.err and "undefined" in result.err
    assert "UPDATE pgbench_accounts" in result.err or "tpcb" in result.err, result
    check_document(result.json)


@pytest.mark.parametrize("when", ["before", "after", "either"])
def test_injected_losses_are_counted_exactly(prony, when):
    doc = prony.measure(f"null:?lose=0.01&lose_when={when}", "tpcb", "-t", 1000, "-c", 4,
                        "-q").json
    check_document(doc)
    n, counters = doc["transactions"], doc["counters"]
    assert n["planned"] == 4000
    assert doc["errors"] == {"lost": counters["losses"]}
    assert n["failed"] + n["unknown"] == counters["losses"]
    assert doc["connections"]["reconnects"] == counters["losses"]
    # A seventh of the statements are COMMITs, after which nobody knows.
    assert 0 < n["unknown"] < n["failed"]
    assert n["done"] <= counters["commits"] <= n["done"] + n["unknown"]
    if when == "before":
        assert counters["commits"] == n["done"]
    if when == "after":
        assert counters["commits"] == n["done"] + n["unknown"]


def test_losses_at_the_commit_alone_are_all_unknown(prony):
    doc = prony.measure("null:?lose=0.05&lose_at=commit", "tpcb", "-t", 500, "-c", 2, "-q").json
    n = doc["transactions"]
    assert n["failed"] == 0 and n["unknown"] == doc["errors"]["lost"] > 10


def test_an_outage_is_seen(prony):
    doc = prony.measure("null:?latency=1ms&down_at=2s&down_for=2s", "tpcb", "-T", 7, "-c", 4,
                        "-q").json
    check_document(doc)
    connections = doc["connections"]
    assert 1.9 < connections["outage_s"] < 3.2, connections
    assert len(connections["outages"]) == 1
    assert near(connections["outages"][0]["from_s"], 2, 0, 0.3)
    assert connections["reconnects"] == 4
    assert doc["errors"]["lost"] == 4 and doc["errors"]["unavailable"] > 4
    assert connections["attempts"] == doc["errors"]["unavailable"] + 4
    assert tps_at(doc, 1) > 0 and tps_at(doc, 3) == 0 and tps_at(doc, 5) > 0
    assert "outage" in warning_ids(doc)


def test_clients_that_come_back_too_late_give_up(prony):
    result = prony.measure("null:?down_at=1s&down_for=60s&latency=1ms", "tpcb", "-T", 30, "-c", 2,
                           "--reconnect-for", "1s", "-q", status=1)
    assert 1.5 < result.json["duration_s"] < 10
    assert "gave up" in result.json["failure"] and "unavailable" in result.json["failure"]
    assert result.json["transactions"]["done"] > 0
    check_document(result.json)


# ---- choices

def test_a_seed_repeats_a_run(prony):
    script(prony, "a.sql", "\\set x random(1, 100)\n\\if :x > 50\nSELECT :x;\n\\else\n"
           "INSERT INTO t VALUES (:x);\n\\endif\n")
    script(prony, "b.sql", "SELECT 2;\n")

    def measure(seed):
        doc = prony.measure("null:?fail=0.1&fail_class=deadlock", "-f", "a.sql@3", "-f", "b.sql",
                            "-t", 2000, "-c", 1, "--seed", seed, "-q").json
        assert doc["seed"] == seed
        return [doc["transactions"], doc["errors"],
                [[item["sql"], item["count"], item["failed"]] for item in doc["statements"]]]

    first = measure(1)
    assert measure(1) == first
    assert measure(2) != first


def test_a_seed_of_each_run_differs_and_is_recorded(prony):
    seeds = {prony.measure("null:", "tpcb", "-t", 1, "-q").json["seed"] for _ in range(3)}
    assert len(seeds) == 3


def test_weights_choose_the_scripts(prony):
    for name, weight in (("a", 7), ("b", 2), ("c", 1), ("d", 0)):
        script(prony, f"{name}.sql", f"SELECT '{name}';\n")
    doc = prony.measure("null:", "-f", "a.sql@7", "-f", "b.sql@2", "-f", "c.sql", "-f", "d.sql@0",
                        "-t", 5000, "-c", 4, "-q").json
    counts = {item["script"]: item["count"] for item in doc["statements"]}
    assert sum(counts.values()) == 20000
    for name, expected in (("a.sql", 14000), ("b.sql", 4000), ("c.sql", 2000)):
        assert near(counts[name], expected, 0, 5 * expected ** 0.5), counts
    assert counts["d.sql"] == 0


def test_think_time_is_thought(one):
    doc = one.measure("null:?latency=2ms", "-f", "one.sql", "-T", 4, "-c", 4, "--think", "18ms",
                      "-q").json
    check_document(doc)
    assert 0.6 * 4 / 0.020 < doc["throughput"]["tps"] < 1.15 * 4 / 0.020
    assert doc["latency_us"]["p50"] < 10000  # without the thinking


def test_sleep_in_a_script_is_latency(prony):
    script(prony, "sleep.sql", "SELECT 1;\n\\sleep 20 ms\n")
    doc = prony.measure("null:", "-f", "sleep.sql", "-t", 50, "-c", 2, "-q").json
    assert 20000 <= doc["latency_us"]["min"] and doc["latency_us"]["p50"] < 40000
    assert doc["statements"][0]["mean_us"] < 5000


# ---- the end

def test_transactions_end_a_run(prony):
    doc = prony.measure("null:", "tpcb", "-t", 77, "-c", 3, "-q").json
    assert doc["transactions"]["done"] == 231
    assert doc["done_by_client"] == [77, 77, 77]


def test_time_ends_a_run(prony):
    result = prony.measure("null:?latency=1ms", "tpcb", "-T", "2500ms", "-q")
    assert near(result.json["duration_s"], 2.5, 0, 0.01)
    assert 2.5 <= result.seconds < 8


def test_running_transactions_may_finish_after_the_end(one):
    doc = one.measure("null:?latency=700ms", "-f", "one.sql", "-T", 1, "-c", 2, "-q").json
    n = doc["transactions"]
    assert n["in_flight"] == 0 and n["done"] == 4  # the second of each ends at 1.4 s
    assert doc["latency_us"]["count"] == 2
    check_document(doc)


def start_long(prony, url, *args):
    run = prony.start("run", url, *args, "-T", "60", "-P", "0.2s", "--json", "result.json")
    run.seen("progress:")
    return run


def load(prony):
    import json
    return json.loads((prony.dir / "result.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_in_a_full_result(prony, number):
    run = start_long(prony, "null:?latency=1ms", "tpcb", "-c", "4")
    time.sleep(1)
    run.signal(number)
    result = run.wait(10)
    assert result.status == 0, result
    doc = load(prony)
    check_document(doc)
    assert doc["status"] == "interrupted"
    assert doc["run_id"] == 1
    assert 1 < doc["duration_s"] < 8
    n = doc["transactions"]
    assert n["done"] > 10 and n["failed"] == n["unknown"] == 0
    assert doc["counters"]["commits"] == n["done"]
    assert "interrupted" in result.out
    assert "tps" in result.out or "transactions/s" in result.out


def test_a_signal_lets_running_transactions_finish(one):
    run = start_long(one, "null:?latency=2s", "-f", "one.sql", "-c", "2")
    time.sleep(2.2)  # each has done one
    run.interrupt()
    result = run.wait(10)
    assert result.status == 0, result
    n = load(one)["transactions"]
    assert n["done"] == 4 and n["in_flight"] == 0


def test_a_second_signal_stops_at_once(one):
    run = start_long(one, "null:?latency=8s", "-f", "one.sql", "-c", "2")
    run.interrupt()
    time.sleep(0.5)
    assert run.process.poll() is None
    at = time.monotonic()
    run.interrupt()
    result = run.wait(10)
    assert time.monotonic() - at < 4
    assert result.status == 1  # nothing succeeded
    n = load(one)["transactions"]
    assert n["in_flight"] == n["planned"] == 2
    assert "still running" in result.err


def test_a_signal_before_the_load_begins_keeps_nothing(prony):
    run = prony.start("run", "sqlite:", "tpcb", "-s", "200", "-T", "60")
    run.seen("load")
    time.sleep(0.3)
    run.interrupt()
    result = run.wait(10)
    assert result.status == 1, result
    assert result.err.count("\n") == 1 and "interrupted" in result.err, result
    assert prony.files() == []


# ---- lines

def test_progress_lines_come_as_asked(prony):
    result = prony.good("run", "null:?latency=1ms", "tpcb", "-c", 4, "-T", 3, "-P", "500ms")
    lines = [line for line in result.err.splitlines() if line]
    assert 5 <= len(lines) <= 6, result
    for i, line in enumerate(lines):
        # Percentiles are those of the last whole second.
        found = re.fullmatch(r"progress: (\d+\.\d) s, ([\d ]+|\d+\.\d+) tps" +
                             (r", p50 [\d.]+ [mu]?s, p99 [\d.]+ [mu]?s" if i > 2 else ".*"), line)
        assert found, line
        assert near(float(found[1]), 0.5 * (i + 1), 0, 0.24), line
        assert 1 < float(found[2].replace(" ", "")) < 600, line
    assert prony.good("run", "null:", "tpcb", "-T", 1, "-q").err == ""


def log_lines(prony, pattern):
    files = list(prony.dir.glob("log.*"))
    assert len(files) == 1, files
    found = []
    for line in files[0].read_text(encoding="ascii").splitlines():
        match = re.fullmatch(pattern, line)
        assert match, line
        found.append(match)
    return found


def test_the_log_has_a_line_per_transaction(prony):
    """pgbench's layout: client, number, time, script, epoch, microseconds, retries."""
    before = time.time()
    doc = prony.measure("null:?fail=0.03&fail_class=deadlock&lose=0.003", "tpcb", "-t", 400, "-c",
                        5, "--max-tries", 2, "-l", "log", "-q").json
    n = doc["transactions"]
    lines = log_lines(prony, r"(\d+) (\d+) (\d+|failed|unknown) 0 (\d+) (\d{1,6}) (\d+)")
    assert len(lines) == n["done"] + n["failed"] + n["unknown"] == 2000
    words = [line[3] for line in lines]
    assert words.count("failed") == n["failed"] > 0
    assert words.count("unknown") == n["unknown"] > 0
    assert sum(int(line[6]) for line in lines) == n["retries"]
    assert sum(int(line[6]) > 0 for line in lines) == n["retried"]
    for client in range(5):
        own = [line for line in lines if int(line[1]) == client]
        assert [int(line[2]) for line in own] == list(range(1, 401))
        ends = [int(line[4]) * 1000000 + int(line[5]) for line in own]
        assert ends == sorted(ends)
    assert before - 1 < int(lines[0][4]) <= int(lines[-1][4]) <= time.time() + 1
    latencies = sorted(int(word) for word in words if word.isdigit())
    assert near(latencies[-1], doc["latency_us"]["max"], 0, 1)


def test_the_log_has_the_lag_under_a_rate(one):
    doc = one.measure("null:?latency=1ms", "-f", "one.sql", "-T", 2, "-R", 200, "-c", 2,
                      "--max-tries", 1, "-l", "log", "-q").json
    lines = log_lines(one, r"(\d+) (\d+) (\d+) 0 (\d+) (\d{1,6}) (\d+)")
    assert len(lines) == doc["transactions"]["done"]
    for line in lines:  # from the planned start: the lag is part of the time
        assert int(line[6]) + 900 <= int(line[3])


def test_a_transaction_that_ends_early_is_in_the_log(prony):
    script(prony, "a.sql", "SELECT 1;\n")
    script(prony, "b.sql", "SELECT 2;\n")
    prony.measure("null:", "-f", "a.sql", "-f", "b.sql", "-t", 200, "-c", 1, "--max-tries", 1,
                  "-l", "log", "-q")
    lines = log_lines(prony, r"(\d+) (\d+) (\d+) ([01]) (\d+) (\d{1,6})")
    assert {line[4] for line in lines} == {"0", "1"}


def test_the_trace_shows_every_call(prony):
    prony.good("run", "null:", "tpcb", "-t", 3, "-c", 2, "--trace", "trace.txt", "-q")
    text = prony.dir.joinpath("trace.txt").read_text(encoding="utf-8")
    assert text.count("COMMIT") >= 6
    assert text.count("INSERT INTO pgbench_history") >= 6
    assert "connect" in text


# ---- the warm-up

def test_a_warm_up_that_was_asked_for_is_left_out(one):
    doc = one.measure("null:?latency=1ms&stall_at=0s&stall_for=1s", "-f", "one.sql", "-T", 4, "-c",
                      2, "--warmup", "2s", "-q").json
    check_document(doc)
    assert doc["warmup_s"] == 2 and near(doc["window_s"], 2, 0, 0.01)
    assert doc["latency_us"]["max"] < 500000
    assert doc["transactions"]["done"] > doc["throughput"]["transactions"]


def test_a_slow_start_is_found_and_left_out(one):
    doc = one.measure("null:?latency=2ms&stall_at=1ms&stall_for=1900ms", "-f", "one.sql", "-T", 10,
                      "-c", 4, "-q").json
    assert 2 <= doc["warmup_s"] <= 4, doc["series"]
    assert doc["latency_us"]["max"] < 1000000
