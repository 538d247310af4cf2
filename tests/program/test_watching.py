"""What a run watches, and the sentence that names its limit, on set-ups whose limit is known."""
import json
import re

import pytest

from harness import vdisk
from harness.place import wait_until

SECONDS = "4"


def run(prony, target, *args, **kwargs):
    out = prony.dir / "doc.json"
    prony.good("run", target, *args, "-T", SECONDS, "--warmup", "none", "-q", "--json", out, **kwargs)
    return json.loads(out.read_text())


def watched(doc):
    return {(w["subject"], w["name"]): w["values"] for w in doc["watch"]}


def script(prony, text):
    path = prony.dir / "script.sql"
    path.write_text(text)
    return "-f", path


def test_the_machine_and_the_client_are_watched_once_a_second(prony):
    doc = run(prony, "sqlite:", "tpcb", "-s", "1", "-c", "1")
    seen = watched(doc)
    assert 1 <= len(seen["host", "cpu_idle_share"]) <= int(SECONDS) + 15
    assert any(value is not None for value in seen["host", "cpu_idle_share"])
    assert any(value is not None for value in seen["client", "cpu_cores"])
    rows = json.loads(prony.good("sql", "--json", "SELECT w.subject, w.name, s.value FROM watch w, "
                                 "json_each(w.seconds) s WHERE w.name = 'cpu_user_share'").out)
    assert len(rows) == len(seen["host", "cpu_user_share"])


def test_it_can_be_left_away(prony):
    doc = run(prony, "sqlite:", "tpcb", "-s", "1", "-c", "1", "--watch", "off")
    assert doc["watch"] == [] and doc["limit"] is None


def test_an_engine_that_is_none_has_no_limit(prony):
    assert run(prony, "null:?latency=1ms", "tpcb", "-c", "1")["limit"] is None


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_one_hot_row_is_told(prony, request, engine):
    server = request.getfixturevalue(engine)
    url = server.url(server.new_database())
    prony.good("init", url, "tpcb", "-s", "1")
    sleep = {"postgres": "pg_sleep(0.02)", "mariadb": "sleep(0.02)"}[engine]
    doc = run(prony, url, "-c", "8", *script(
        prony, "BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
        f"SELECT {sleep};\nCOMMIT;\n"))
    assert doc["limit"]["id"] == "lock", doc["limit"]
    assert any(subject == "waits" and "lock" in name.lower() for subject, name in watched(doc))
    text = prony.good("show", "last").out
    assert "  limit         locks: clients waited for one" in text


@pytest.mark.alone
def test_work_of_the_server_is_told(prony, postgres):
    doc = run(prony, postgres.url(postgres.new_database()), "-c", "1", *script(
        prony, "SELECT sum(i) FROM generate_series(1, 300000) i;\n"))
    cores = [value for value in watched(doc)["server", "cpu_cores"] if value is not None]
    if cores and sum(cores) / len(cores) > 0.9:  # else others took the processors away
        assert doc["limit"]["id"] in ("cpu", "device"), doc["limit"]


def test_the_flush_of_a_slow_log_is_told(prony):
    why = vdisk.missing()
    if why:
        pytest.skip(f"virtual disks: {why}")
    result = prony.run("run", "sqlite:?data=vdisk:size=64M,flush=200ms", "tpcb", "-s", "1", "-c", "2",
                       "-T", "6", "--warmup", "none", "--json", prony.dir / "doc.json")
    if vdisk.not_built(result.err):
        pytest.skip("virtual disks: built without libfuse3")
    assert result.status == 0, result
    doc = json.loads((prony.dir / "doc.json").read_text())
    assert doc["limit"]["id"] == "flush", doc["limit"]
    assert "flushes per commit" in doc["limit"]["text"]


def test_a_probe_before_the_load_is_what_flushes_are_held_against(prony):
    doc = run(prony, "sqlite:", "tpcb", "-s", "1", "-c", "1", "--probe", "2s")
    probed = {key: float(value) for key, value in doc["environment"].items()
              if key.startswith("probe.data.")}
    assert len(probed) == 10 and all(value > 0 for value in probed.values())
    assert not any(prony.dir.glob(".prony*")), list(prony.dir.iterdir())
    doc = run(prony, "null:", "tpcb", "-c", "1", "--probe", "2s")  # has no place
    assert not any(key.startswith("probe.") for key in doc["environment"])


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_server_that_goes_away_holds_up_nothing(prony, request, engine):
    """The session that watches is lost, and comes back with the server."""
    server = request.getfixturevalue(engine)
    url = server.url(server.new_database())
    prony.good("init", url, "tpcb", "-s", "1")
    load = prony.start("run", url, "tpcb", "-c", "2", "-T", "120s", "-P", "1", "--json",
                       prony.dir / "doc.json")
    load.seen("tps", 60)
    server.restart()
    seen = len(load.peek().splitlines())
    assert wait_until(lambda: sum("tps" in line and not re.search(r"\b0(\.0)? tps", line)
                                  for line in load.peek().splitlines()[seen:]) >= 4, 100, 0.1), \
        load.peek()
    load.interrupt()
    result = load.wait(120)
    assert result.status == 0, result
    doc = json.loads((prony.dir / "doc.json").read_text())
    assert doc["connections"]["reconnects"] > 0 and watched(doc)["engine", "commits_per_s"]
