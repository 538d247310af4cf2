"""Whatever is asked for wrongly: one short line that names the thing and the remedy, exit 2,
nothing made. And what the program says about itself."""
import os
import re

import pytest

OK_SQL = "SELECT 1;\n"
COMMANDS = ["init", "run", "check", "list", "show", "sql", "export", "import",
            "probe"]

# Each: the command line, and words that the line of error must hold.
OPTIONS = {
    "near miss of an option": ("run null: tpcb --client 3", ["--client", "--clients"]),
    "near miss by one letter": ("run null: tpcb --protocl simple", ["--protocl", "--protocol"]),
    "unknown option": ("run null: tpcb --nosuch", ["--nosuch", "prony run --help"]),
    "unknown letter": ("run null: tpcb -Z", ["-Z", "prony run --help"]),
    "option of pgbench": ("run null: tpcb -S", ["-S", "select-only"]),
    "option of sysbench": ("run null: tpcb --report-interval=1", ["--report-interval", "--progress"]),
    "option of pgbench -i": ("init sqlite:x.db tpcb --force", ["--force", "--replace"]),
    "missing value": ("run null: tpcb -c", ["--clients", "argument"]),
    "empty value": ("run null: tpcb --clients=", ["--clients", "between 1 and"]),
    "value for a flag": ("run null: tpcb --quiet=yes", ["--quiet", "no argument"]),
    "unknown choice": ("run null: tpcb -M prepard", ["prepard", "prepared"]),
    "unknown loop": ("run null: tpcb --loop rings", ["rings", "threads"]),
    "unknown format": ("show --format html", ["html", "text, md or json"]),
    "no clients": ("run null: tpcb -c 0", ["--clients 0", "1"]),
    "negative clients": ("run null: tpcb -c -1", ["--clients -1"]),
    "absurdly many clients": ("run null: tpcb -c 99999999999999999999", ["--clients", "100000"]),
    "clients as a fraction": ("run null: tpcb -c 1.5", ["--clients 1.5", "whole number"]),
    "clients in hexadecimal": ("run null: tpcb -c 0x10", ["--clients 0x10"]),
    "no time": ("run null: tpcb -T 0", ["--time", "1s"]),
    "unknown unit": ("run null: tpcb -T 10x", ["--time 10x", "60s"]),
    "negative time": ("run null: tpcb -T -5", ["--time -5"]),
    "time beyond all numbers": ("run null: tpcb -T 1e400", ["--time 1e400"]),
    "time not a number": ("run null: tpcb -T nan", ["--time nan"]),
    "a million years": ("run null: tpcb -T 8766000000h", ["--time 8766000000h"]),
    "negative transactions": ("run null: tpcb -t -5", ["--transactions -5"]),
    "time and transactions": ("run null: tpcb -T 5 -t 5", ["--time", "--transactions"]),
    "infinite rate": ("run null: tpcb -R inf", ["--rate inf"]),
    "rate not a number": ("run null: tpcb -R nan", ["--rate nan"]),
    "negative rate": ("run null: tpcb -R -5", ["--rate -5"]),
    "arrival without a rate": ("run null: tpcb --arrival even", ["--arrival", "--rate"]),
    "a warm-up as long as the run": ("run null: tpcb -T 10 --warmup 10s", ["--warmup", "--time"]),
    "seed in words": ("run null: tpcb --seed abc", ["--seed abc"]),
    "seed of 65 bits": ("run null: tpcb --seed 99999999999999999999", ["--seed", "19 digits"]),
    "no tries": ("run null: tpcb --max-tries 0", ["--max-tries 0"]),
    "a define without a value": ("run null: tpcb -D x", ["--define x", "NAME=VALUE"]),
    "a define without a name": ("run null: tpcb -D =5", ["--define =5", "NAME=VALUE"]),
    "scale in words": ("run null: tpcb -s big", ["--scale big"]),
    "scale beyond all numbers": ("run null: tpcb -s 1e99", ["--scale 1e99"]),
    "no scale": ("init sqlite:x.db tpcb -s 0", ["--scale 0", "at least 1"]),
    "absurd scale": ("init sqlite:x.db tpcb -s 99999999999", ["--scale", "21474"]),
    "more than the disk holds": ("init sqlite:x.db tpcb -s 9999xRAM", ["--scale", "free"]),
    "more than the disk holds, for a while": ("run sqlite: tpcb -s 1000000", ["--scale", "free"]),
    "size of no unit": ("init sqlite:x.db tpcb -s 2xRAMM", ["--scale 2xRAMM", "2xRAM"]),
    "too many jobs": ("init sqlite:x.db tpcb -j 100", ["--jobs 100", "64"]),
    "limit in words": ("list -n x", ["--limit x"]),
    "CSV and JSON": ("sql 'select 1' --csv --json", ["--csv", "--json"]),
}

ARGUMENTS = {
    "unknown command": ("frob", ["frob", "run"]),
    "near miss of a command": ("rnu null: tpcb", ["rnu", "did you mean run?"]),
    "unknown option instead of a command": ("--frob", ["--frob"]),
    "help on an unknown command": ("help frob", ["frob"]),
    "run of nothing": ("run", ["prony run TARGET {WORKLOAD"]),
    "no workload": ("run null:", ["workload", "tpcb", "-f FILE"]),
    "near miss of a workload": ("run null: tcpb", ["tcpb", "did you mean tpcb?"]),
    "unknown workload": ("run null: oltp", ["oltp", "select-only"]),
    "a script as a workload": ("run null: ok.sql", ["ok.sql", "-f"]),
    "workload and script": ("run null: tpcb -f ok.sql", ["tpcb", "-f ok.sql"]),
    "one argument too many": ("run null: tpcb more", ["more", "prony run"]),
    "probe of nothing": ("probe", ["prony probe PATH"]),
    "init of nothing": ("init sqlite:x.db", ["prony init TARGET WORKLOAD"]),
    "init of an unknown workload": ("init sqlite:x.db tpcbb", ["tpcbb", "tpcb"]),
    "init of null": ("init null: tpcb", ["null", "no data"]),
    "init of a temporary file": ("init sqlite: tpcb", ["sqlite:", "name a file"]),
    "check of null": ("check null: tpcb", ["null"]),
    "check of an unknown workload": ("check sqlite:ok.db tpcbb", ["tpcbb", "tpcb"]),
    "show of two": ("show 1 2", ["2", "prony show"]),
    "list of something": ("list 5", ["5", "prony list"]),
    "no question": ("sql", ["prony sql QUERY"]),
    "export of nothing": ("export", ["prony export RUN"]),
    "import of nothing": ("import", ["prony import FILE"]),
    "import of what is not there": ("import nope.prony", ["nope.prony"]),
    "import of a text": ("import text.db", ["text.db"]),
}

TARGETS = {
    "nothing": ("run '' tpcb", ["target", "sqlite:"]),
    "colon": ("run : tpcb", ["target", "sqlite:"]),
    "a path": ("run /tmp/x.db tpcb", ["/tmp/x.db"]),
    "near miss of an engine": ("run nul: tpcb", ["nul", "did you mean null?"]),
    "engine by another name": ("run postgre://h/x tpcb", ["postgre", "did you mean postgres?"]),
    "engine of later": ("run odbc:DSN=x tpcb", ["odbc", "sqlite"]),
    "unknown parameter of null": ("run 'null:?latncy=2ms' tpcb", ["latncy", "latency"]),
    "wrong duration of null": ("run 'null:?latency=fast' tpcb", ["latency", "fast"]),
    "probability above one": ("run 'null:?fail=2' tpcb", ["fail", "between 0 and 1"]),
    "parameter twice": ("run 'null:?fail=.1&fail=.2' tpcb", ["fail", "twice"]),
    "parameter without a value": ("run 'null:?latency' tpcb", ["latency=VALUE"]),
    "unknown class of failure": ("run 'null:?fail_class=deadlok' tpcb", ["deadlok", "deadlock"]),
    "null with a path": ("run null:/path tpcb", ["null", "null:?latency=2ms"]),
    "null with a host": ("run null://host tpcb", ["null", "null:?latency=2ms"]),
    "more clients than connections": ("run 'null:?max_connections=4' tpcb -c 5",
                                      ["--clients 5", "max_connections"]),
    "read-only": ("run 'null:?read_only=1' tpcb", ["read-only", "tpcb", "select-only"]),
    "missing file": ("run sqlite:x.db tpcb", ["x.db", "prony init sqlite:x.db"]),
    "missing file to check": ("check sqlite:x.db tpcb", ["x.db", "prony init sqlite:x.db"]),
    "missing directory": ("init sqlite:nodir/x.db tpcb", ["nodir/x.db", "directory"]),
    "a text as a database": ("run sqlite:text.db tpcb", ["text.db", "not an SQLite database"]),
    "a text to fill": ("init sqlite:text.db tpcb", ["text.db", "not an SQLite database"]),
    "a directory": ("run sqlite:. tpcb", ["."]),
    "sqlite with a host": ("run sqlite://host/x tpcb", ["sqlite", "sqlite:bench.db"]),
    "misspelt pragma": ("run 'sqlite:ok.db?synchronus=off' tpcb", ["synchronus", "synchronous"]),
    "misspelt pragma of a temporary file": ("run 'sqlite:?synchronus=off' tpcb",
                                            ["synchronus", "synchronous"]),
    "misspelt pragma value": ("run 'sqlite:ok.db?journal_mode=wall' tpcb", ["journal_mode=wall"]),
    "misspelt pragma value of a temporary file": ("run 'sqlite:?synchronous=fulll' tpcb",
                                                  ["synchronous=fulll"]),
    "pragma twice": ("run 'sqlite:ok.db?journal_mode=wal&journal_mode=delete' tpcb",
                     ["journal_mode", "twice"]),
    "port of letters": ("run postgres://h:x/d tpcb", ["port"]),
    "port too high": ("run postgres://h:99999/d tpcb", ["port"]),
    "unknown parameter of libpq": ("run 'postgres://h/d?nosuch=5' tpcb", ["nosuch"]),
    "near miss of a parameter of libpq": ("run 'postgres:hst=/tmp' tpcb", ["hst", "host"]),
    "unknown parameter of mysql": ("run 'mysql://h/d?engin=innodb' tpcb", ["engin", "engine"]),
    "unknown storage engine": ("run 'mysql://h/d?engine=inodb' tpcb", ["inodb", "innodb"]),
    "port of mysql too high": ("run mysql://h:99999/d tpcb", ["port"]),
}

# Text of a script and where the error lies: FILE:LINE:COLUMN.
SCRIPTS = {
    "expression that ends early": ("\\set a random(1,10)\nSELECT :a;\n\\set b random(1,\n", "3:17"),
    "unknown command": ("SELECT 1;\n\\foo 3\n", "2:1"),
    "if without an end": ("\\if 1\nSELECT 1;\n", "1:1"),
    "end without an if": ("SELECT 1;\n  \\endif\n", "2:3"),
    "else after else": ("\\if 1\n\\else\n\\else\nSELECT 1;\n\\endif\n", "3:1"),
    "unknown function": ("\\set a nosuch(3)\nSELECT :a;\n", "1:8"),
    "too few arguments": ("\\set a random(3)\nSELECT :a;\n", "1:8"),
    "nothing at all": ("", "1:1"),
    "only a comment": ("-- nothing\n", "1:1"),
    "variable that is never set": ("SELECT 1;\nSELECT :nope;\n", "2:8"),
    "character that means nothing": ("\\set a 1 ? 2\nSELECT :a;\n", "1:10"),
    "sleep without a time": ("SELECT 1;\n\\sleep\n", "2:"),
    "gset before any statement": ("\\gset\n", "1:1"),
}


def words(line):
    import shlex
    return shlex.split(line)


@pytest.fixture
def place_with_files(prony):
    prony.dir.joinpath("ok.sql").write_text(OK_SQL, encoding="utf-8")
    prony.dir.joinpath("text.db").write_text("this is no database\n" * 100, encoding="utf-8")
    import sqlite3
    with sqlite3.connect(prony.dir / "ok.db") as db:
        db.execute("create table t (a int)")
    db.close()
    return prony


@pytest.mark.parametrize("name", OPTIONS)
def test_a_wrong_option_is_refused(place_with_files, name):
    line, says = OPTIONS[name]
    place_with_files.refused(*words(line), says=says)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_wrong_argument_is_refused(place_with_files, name):
    line, says = ARGUMENTS[name]
    place_with_files.refused(*words(line), says=says)


@pytest.mark.parametrize("name", TARGETS)
def test_a_wrong_target_is_refused(place_with_files, name):
    line, says = TARGETS[name]
    place_with_files.refused(*words(line), says=says)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_wrong_script_is_refused_with_its_place(prony, name):
    text, where = SCRIPTS[name]
    prony.dir.joinpath("wrong.sql").write_text(text, encoding="utf-8")
    prony.refused("run", "null:", "-f", "wrong.sql", says=f"wrong.sql:{where}")


@pytest.mark.parametrize("weight", ["x", "-1", "nan", "1e99"])
def test_a_wrong_weight_is_refused(place_with_files, weight):
    place_with_files.refused("run", "null:", "-f", f"ok.sql@{weight}", says=["ok.sql", "weight"])


def test_weights_of_nothing_but_zero_are_refused(place_with_files):
    place_with_files.refused("run", "null:", "-f", "ok.sql@0", says="weight")


@pytest.mark.parametrize("script", ["nofile.sql", "."])
def test_a_script_that_cannot_be_read_is_refused(prony, script):
    prony.refused("run", "null:", "-f", script, says=script)


# ---- places to write

@pytest.mark.parametrize("option", ["--store", "--json", "--trace", "--log-transactions"])
@pytest.mark.parametrize("where", ["nodir/x", "/proc/x"])
def test_a_file_that_cannot_be_made_is_refused_before_the_load(prony, option, where):
    result = prony.refused("run", "null:", "tpcb", "-T", "30", option, where, says=where)
    assert result.seconds < 10


@pytest.mark.parametrize("option", ["--store", "--json", "--trace"])
def test_a_directory_as_a_file_is_refused(prony, option):
    prony.dir.joinpath("d").mkdir()
    prony.refused("run", "null:", "tpcb", "-T", "30", option, "d", says="d")


def test_a_store_that_is_something_else_is_refused_and_stays_as_it_was(place_with_files):
    text = (place_with_files.dir / "text.db").read_bytes()
    other = (place_with_files.dir / "ok.db").read_bytes()
    for name in ("text.db", "ok.db"):
        place_with_files.refused("run", "null:", "tpcb", "-T", "30", "--store", name,
                                 says=[name, "--store"])
    assert (place_with_files.dir / "text.db").read_bytes() == text
    assert (place_with_files.dir / "ok.db").read_bytes() == other


# Root without its right to write everything.
MERE_USER = (() if os.geteuid() != 0 else
             ("setpriv", "--bounding-set", "-dac_override,-dac_read_search"))


def test_a_store_without_write_permission_is_refused(prony):
    prony.good("run", "null:", "tpcb", "-t", "10", "-q")
    prony.store.chmod(0o444)
    prony.refused("run", "null:", "tpcb", "-t", "10", says=[str(prony.store), "--store"],
                  prefix=MERE_USER)
    prony.store.chmod(0o644)
    prony.dir.chmod(0o555)  # no journal can be made beside it
    try:
        prony.refused("run", "null:", "tpcb", "-t", "10", says=[str(prony.store), "--store"],
                      prefix=MERE_USER)
    finally:
        prony.dir.chmod(0o700)


@pytest.mark.parametrize("line", ["list", "show", "sql 'select 1'", "export 1 -o x"])
def test_results_that_are_not_there_are_not_made(prony, line):
    prony.refused(*words(line), says=[str(prony.store), "prony run"])


# ---- tables

def test_missing_tables_name_the_init(place_with_files):
    result = place_with_files.refused("run", "sqlite:ok.db", "tpcb", "-s", "7",
                                      says=["ok.db", "missing", "prony init"])
    assert "tpcb -s 7" in result.err
    place_with_files.refused("check", "sqlite:ok.db", "tpcb", says=["missing", "prony init"])


def test_tables_of_another_scale_are_refused(prony):
    prony.good("init", "sqlite:b.db", "tpcb", "-s", "1", "-q")
    prony.refused("run", "sqlite:b.db", "tpcb", "-s", "2", says=["--scale 2", "scale 1", "b.db"])
    prony.good("run", "sqlite:b.db", "tpcb", "-s", "1", "-t", "2", "-q")


def test_a_file_that_cannot_be_written_is_refused(prony):
    prony.good("init", "sqlite:b.db", "tpcb", "-s", "1", "-q")
    prony.dir.joinpath("b.db").chmod(0o444)
    prony.refused("run", "sqlite:b.db", "tpcb", "-t", "2", says=["b.db", "read-only", "tpcb"],
                  prefix=MERE_USER)
    prony.good("run", "sqlite:b.db", "select-only", "-t", "2", "-q", prefix=MERE_USER)
    prony.dir.joinpath("b.db").chmod(0o000)
    prony.refused("run", "sqlite:b.db", "select-only", "-t", "2", says=["b.db", "read"],
                  prefix=MERE_USER)


# ---- secrets

SECRET = "Geh31m!"

@pytest.mark.parametrize("url", [
    "postgres://me:{}@127.0.0.1:1/d",
    "postgres://me:{}@127.0.0.1:x/d",
    "postgres://127.0.0.1:1/d?password={}&user=me",
    "postgres:host=127.0.0.1 port=1 password={}",
    "postgres:host=127.0.0.1 prt=1 password={}",
    "postgres:host=127.0.0.1 port=1 password='{}'",
    "postgresql://me:{}@/d?host=/nodir",
    "postgre://me:{}@h/d",
    "mysql://me:{}@127.0.0.1:1/d",
    "mysql://me:{}@127.0.0.1:x/d",
    "mysql://me@127.0.0.1:1/d?password={}",
    "mysql://me:{}@localhost/d?socket=/nodir/socket",
    "mysql://me:{}@localhost/d?nosuch=1",
    "mariadb://me:{}@localhost/d?socket=/nodir/socket",
    "//me:{}@h/d",
])
def test_a_password_is_never_said(prony, url):
    for args in (["run", url.format(SECRET), "tpcb"], ["run", url.format(SECRET)],
                 ["init", url.format(SECRET), "tpcb"], ["check", url.format(SECRET), "tpcb"],
                 ["run", "null:", url.format(SECRET)], [url.format(SECRET)]):
        result = prony.refused(*args)
        assert "Geh31m" not in result.out + result.err, result


# ---- what the program says about itself

def test_nothing_at_all_gives_the_help_and_status_2(prony):
    result = prony.run()
    assert result.status == 2
    assert result.out == ""
    assert "Usage: prony COMMAND" in result.err


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["help"]])
def test_help_lists_all_commands_and_an_example(prony, args):
    result = prony.good(*args)
    assert result.err == ""
    for command in COMMANDS:
        assert re.search(rf"^  {command}  +\w", result.out, re.M), command
    assert "prony run sqlite: tpcb" in result.out
    check_page(result.out, 34, "prony")


def check_page(text, lines, name):
    assert text.count("\n") <= lines, f"{name}: {text.count(chr(10))} lines"
    wide = [line for line in text.splitlines() if len(line) > 80]
    assert not wide, f"{name}: {wide}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_helps_on_one_page_with_an_example(prony, command):
    result = prony.good(command, "--help")
    assert result.err == ""
    check_page(result.out, 45, command)
    assert result.out.startswith(f"Usage: prony {command} ")
    assert "Example:\n  prony " + command in result.out
    assert prony.good("help", command).out == result.out
    assert prony.files() == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_wins_over_other_options(prony, command):
    result = prony.good(command, "--store", "/nodir/x", "--help") if command in (
        "run", "list", "show", "sql", "export", "import") else prony.good(command, "--help")
    assert result.out.startswith("Usage: ")


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_lists_what_is_in(prony, option):
    result = prony.good(option)
    assert re.match(r"prony \d+\.\d+\.\d+\n", result.out)
    engines = re.search(r"^engines: (.*)$", result.out, re.M).group(1).split()
    assert engines == ["sqlite", "postgres", "mysql", "null"]
    assert re.search(r"^loops: .*\bthreads\b", result.out, re.M)


def test_a_closed_output_is_no_drama(prony):
    """As in `prony list | head -1`."""
    prony.good("run", "null:", "tpcb", "-t", "10", "-q")
    result = prony.run("-c", f"{prony.binary} show --format json | true; echo ${{PIPESTATUS[0]}}",
                       prefix=("bash", "-c", 'shift; exec bash "$@"', "x"))
    assert result.out.strip() in ("0", "1", "141"), result
    assert result.err == "", result
    assert "Traceback" not in result.err


def test_a_full_output_is_told(prony):
    result = prony.run("-c", f"{prony.binary} run null: tpcb -t 10 >/dev/full; echo $?",
                       prefix=("bash", "-c", 'shift; exec bash "$@"', "x"))
    assert result.out == "1\n", result
    assert "No space left" in result.err, result
