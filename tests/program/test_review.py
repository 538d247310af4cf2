"""Small promises that a review found broken: results listed, shown and written; signals; places."""
import json
import signal
import socket
import time

import pytest


# ---- list

LABELS = ["short", "a label that is far too long for its column", "日本語のとても長いラベルです", "äöü",
          "tab\tand\x1b[31mred"]


def test_a_list_stays_in_its_columns_whatever_the_labels(prony):
    for label in LABELS:
        prony.good("run", "null:", "tpcb", "-t", "1", "-c", "1", "-q", "--label", label)
    lines = prony.good("list", env={"LC_ALL": "C.UTF-8"}).out.splitlines()

    def columns(text):
        import unicodedata
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
