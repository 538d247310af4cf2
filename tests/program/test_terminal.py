"""What a person at a terminal sees: one line that is drawn over and over and then goes; and nothing
of it in a file."""
import re

import pytest

from harness.terminal import Terminal


@pytest.fixture
def terminal():
    made = Terminal(columns=80)
    yield made
    made.close()


def run_on(prony, terminal, *args, **env):
    """Runs prony with standard error on the terminal; what was drawn, as lines."""
    import subprocess
    process = subprocess.Popen([prony.binary, *map(str, args)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=terminal.side, text=True,
                               cwd=prony.dir,
                               env=prony.environment({"TERM": "xterm", **env}))
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    return terminal.read(0.2), out


def drawn(text):
    """The states of the line, without the erasures."""
    assert "\n" not in text, text
    return [line.removesuffix("\033[K") for line in text.split("\r") if line != "\033[K" and line]


def test_a_run_shows_how_it_goes(prony, terminal):
    text, out = run_on(prony, terminal, "run", "null:?latency=1ms&fail=0.01", "tpcb", "-T", 3, "-c",
                       4)
    lines = drawn(text)
    assert len(lines) in (2, 3), lines
    for line in lines:
        assert re.match(r"\[[#.]{20}\] \ds left, [\d .]+ tps", line), line
        assert len(line) < 80
    assert "errors" in lines[-1]
    assert lines[0].count("#") < lines[-1].count("#")
    assert text.endswith("\r\033[K"), text  # it is wiped before the result comes
    assert "\r" not in out and "[#" not in out


def test_an_init_shows_how_it_goes(prony, terminal):
    text, out = run_on(prony, terminal, "init", "sqlite:t.db", "tpcb", "-s", 8)
    lines = drawn(text)
    assert lines, text
    assert any(re.match(r"\[[#.]{20}\] [\d .]+k? of 800 088 rows, [\d .]+k? rows/s", line)
               for line in lines), lines
    assert text.endswith("\r\033[K"), text
    assert "done: 800 088 rows" in out


@pytest.mark.parametrize("args, env", [(["-q"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": None})])
def test_nothing_is_drawn_when_nobody_wants_it(prony, terminal, args, env):
    text, _ = run_on(prony, terminal, "run", "null:", "tpcb", "-T", 2, *args, **env)
    assert text == ""


def test_lines_for_a_log_replace_the_drawing(prony, terminal):
    text, _ = run_on(prony, terminal, "run", "null:", "tpcb", "-T", 3, "-P", 1)
    lines = text.splitlines()
    assert len(lines) in (2, 3) and all(line.startswith("progress: ") for line in lines), text
    assert "\033" not in text


def test_a_result_in_a_file_has_no_colours_and_no_drawing(prony):
    result = prony.good("run", "null:?latency=1ms", "tpcb", "-T", 2)
    assert "\033" not in result.out + result.err
    assert result.err == ""


def test_what_servers_and_users_write_cannot_steer_the_terminal(prony):
    prony.good("run", "null:", "tpcb", "-t", 5, "-q", "--label", "a\033[31mb\rc", "--note",
               "x\033]0;title\007")
    for args in (["list"], ["show"], ["show", "--format", "md"], ["sql", "select label from runs"]):
        out = prony.good(*args).out
        assert "\033" not in out and "\007" not in out and "\r" not in out, repr(out)
    result = prony.run("run", "null:\033[31m", "tpcb")
    assert "\033" not in result.err, repr(result.err)
    result = prony.run("run", "null:", "tp\033[31mcb")
    assert "\033" not in result.err, repr(result.err)
