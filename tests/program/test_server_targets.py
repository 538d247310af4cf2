"""Servers that prony makes itself: server:postgres, server:mariadb. Whatever happens, no process,
directory, socket or line of the registry stays but what the user named with data=."""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness.place import wait_until
from harness.postgres import find_bindir
from harness.runner import Prony
from harness.server import Absent

PACKAGES = {"postgres": find_bindir, "mariadb": lambda: shutil.which("mariadbd", path="/usr/sbin")}
KINDS = list(PACKAGES)
MARKS = {"postgres": "PG_VERSION", "mariadb": "ibdata1"}


class Here:
    """Runs prony where the user of a server can come: the test's directory and TMPDIR are open."""

    def __init__(self, prony):
        self.prony = prony
        self.dir = prony.dir
        self.temp = prony.dir / "tmp"
        self.temp.mkdir()
        os.chmod(self.dir, 0o711)
        os.chmod(self.temp, 0o711)
        self.env = {"TMPDIR": self.temp}

    def run(self, *args, **kwargs):
        return self.prony.run(*args, env=self.env, timeout_s=120, **kwargs)

    def good(self, *args, **kwargs):
        return self.prony.good(*args, env=self.env, timeout_s=120, **kwargs)

    def measure(self, *args, **kwargs):
        return self.prony.measure(*args, env=self.env, timeout_s=120, **kwargs)

    def start(self, *args, **kwargs):
        return self.prony.start(*args, env=self.env, **kwargs)

    def refused(self, *args, **kwargs):
        result = self.prony.refused(*args, env=self.env, timeout_s=120, **kwargs)
        self.nothing_left()
        return result

    def servers(self):
        """Processes that work in the test's directory; a server's title hides its environment."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                where = os.readlink(path / "cwd")
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if where.startswith(f"{self.dir}/") and "prony" not in command.split(" ")[0]:
                found.append(f"{path.name} in {where}: {command}")
        return found

    def leftovers(self):
        registry = self.prony.place.runtime / "prony"
        return (self.servers() + [str(p) for p in self.temp.iterdir()] +
                [str(p) for p in self.dir.glob(".prony-server-*")] +
                [str(p) for p in registry.glob("*") if p.is_file()])

    def nothing_left(self, timeout_s=0):
        wait_until(lambda: not self.leftovers(), timeout_s)
        assert not self.leftovers()


@pytest.fixture
def here(prony):
    made = Here(prony)
    yield made
    made.nothing_left(10)


class Sources:
    """Data directories to start copies of, made once: that is most of what a server costs."""

    CHEAP = {"postgres": "initdb={--no-sync}", "mariadb": "innodb_log_file_size=8M"}

    def __init__(self, place):
        self.dir = place.make("sources")
        os.chmod(self.dir, 0o711)
        self.here = Here(Prony(place, self.dir))
        self.here.prony.loop = None
        self.made = set()

    def make(self, name, *args):
        if name not in self.made:
            self.here.good(*args)
            self.made.add(name)
        return self.dir / name

    def bare(self, kind):
        """Without tables."""
        script = self.dir / "one.sql"
        script.write_text("SELECT 1;\n", encoding="ascii")
        return self.make(f"bare-{kind}", "run", f"server:{kind}?data=bare-{kind}&{self.CHEAP[kind]}",
                         "-f", script, "-t", "1", "-c", "1", "-q")

    def filled(self, kind):
        """With the tables of tpcb at scale 2."""
        more = "" if kind == "postgres" else f"&{self.CHEAP[kind]}"
        return self.make(f"filled-{kind}", "init",
                         f"server:{kind}?from={self.bare(kind)}&data=filled-{kind}{more}", "tpcb",
                         "-s", "2", "-q")


@pytest.fixture(scope="session")
def sources(place):
    return Sources(place)


@pytest.fixture(params=KINDS)
def kind(request):
    return need(request.param)


def need(name):
    """Skips visibly where the package is not there; where all must be, that is a failure."""
    try:
        if PACKAGES[name]():
            return name
        reason = f"{name} is not installed"
    except Absent as absent:
        reason = str(absent)
    if os.environ.get("CI") == "true":
        pytest.fail(f"skipped in CI: {reason}")
    return pytest.skip(reason)


def environment(result):
    return result.json["environment"]


# ---- a result from the package alone


def test_one_command_makes_fills_runs_and_takes_down(here, kind):
    result = here.measure(f"server:{kind}?log=logs", "tpcb", "-t", "20", "-c", "3", "--warmup",
                          "none")
    assert result.json["transactions"]["done"] == 60
    assert result.json["workload"]["scale"] == 10  # max(10, clients)
    assert result.json["target"] == f"server:{kind}?log=logs"
    facts = environment(result)
    assert facts["server.kind"] == kind
    assert facts["server.made"] == "new"
    assert facts["data.path"].startswith(f"{here.dir}/.prony-server-")
    assert facts["server.log"] == facts["log.path"] == str(here.dir / "logs")
    for said in ("starting server:", "  make   ", "removed at the end", "  ready  ", "  fill   "):
        assert said in result.out, result
    here.nothing_left()
    assert not (here.dir / "logs").exists()


@pytest.mark.unsanitized
def test_the_servers_are_private(here, kind, sources):
    run = here.start("run", f"server:{kind}?from={sources.filled(kind)}", "select-only", "-T", "60",
                     "-c", "1")
    run.seen("  load   ", 120)
    sockets = [p for p in here.temp.rglob("*") if p.is_socket()]
    assert len(sockets) == 1, sockets
    assert sockets[0].parent.stat().st_mode & 0o7777 == 0o700
    pids = [int(line.split()[0]) for line in here.servers()]
    assert pids
    inodes = set()
    for pid in pids:
        if os.geteuid() == 0:
            assert Path(f"/proc/{pid}").stat().st_uid != 0
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(table):
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
            assert not {line.split()[9] for line in lines if line.split()[3] == "0A"} & inodes
    run.interrupt()
    run.wait()


# Setting, value, and a query that fails unless it arrived.
HOSTILE = {
    "postgres": ("cluster_name", r"""a'b\c "d" # $x""",
                 r"""SELECT 1 / (current_setting('cluster_name') = 'a''b\c "d" # $x')::int;"""),
    "mariadb": ("init_connect", r"""set @x = 'a"b # c\\d'""",
                r"""SELECT (SELECT 1 UNION ALL SELECT 2 FROM (SELECT 1 AS a) t WHERE
                @@global.init_connect <> 'set @x = ''a"b # c\\\\d''');"""),
}


@pytest.mark.unsanitized
def test_settings_arrive_as_they_are_and_are_recorded(here, kind, sources):
    name, value, query = HOSTILE[kind]
    memory = {"postgres": "work_mem=7MB", "mariadb": "sort_buffer_size=7M"}[kind]
    script = here.dir / "ask.sql"
    script.write_text(query + "\n", encoding="utf-8")
    result = here.measure(f"server:{kind}?{memory}&from={sources.bare(kind)}&{name}={{{value}}}",
                          "-f", script, "-t", "1", "-c", "160", "-M", "simple")
    assert result.json["transactions"]["done"] == 160, result
    assert f"  set    max_connections=180, {memory}" in result.out  # more than the default
    facts = environment(result)
    assert facts[f"server.setting.{name}"] == value
    assert facts["server.setting.max_connections"] == "180"


@pytest.mark.unsanitized
@pytest.mark.parametrize("stop", ["fast", "immediate", "kill"])
def test_ways_to_stop(here, stop, sources):
    need("postgres")
    result = here.measure(f"server:postgres?stop={stop}&from={sources.bare('postgres')}", "-f",
                          sources.dir / "one.sql", "-t", "1", "-c", "1")
    assert environment(result)["server.stop"] == stop
    here.nothing_left()


@pytest.mark.unsanitized
def test_a_checkpoint_that_hangs_ends_with_the_load(here, sources):
    need("postgres")
    run = here.start("run", f"server:postgres?from={sources.bare('postgres')}", "-f",
                     sources.dir / "one.sql", "-T", "10", "-c", "1", "-R", "20", "--at", "8s",
                     "checkpoint")
    run.seen("  ready  ", 120)
    begin = time.monotonic()
    pids = [int(line.split(" ")[0]) for line in here.servers() if "checkpointer" in line]
    assert pids, here.servers()
    os.kill(pids[0], signal.SIGSTOP)
    if time.monotonic() - begin > 5:
        run.interrupt()
        run.wait(120)
        pytest.skip("the machine is too slow to stop a process in time")
    result = run.wait(120)
    said = [line for line in result.out.splitlines() if "checkpoint" in line]
    assert any("cut off by the end" in line for line in said), said
    assert result.status == 0, result


def test_tuning_is_shown_recorded_and_overruled(here, sources):
    need("postgres")
    result = here.measure(f"server:postgres?from={sources.filled('postgres')}&wal-buffers=4MB&"
                          "max_wal_size=1GB&shared_buffers=64MB", "select-only", "-t", "5", "-c",
                          "1", "--tune", "oltp")
    facts = environment(result)
    assert facts["server.tune"] == "oltp"
    assert facts["server.setting.checkpoint_completion_target"] == "0.9"
    assert facts["server.setting.max_wal_size"] == "1GB"
    assert facts["server.setting.wal-buffers"] == "4MB"
    assert "server.setting.wal_buffers" not in facts
    assert "  tune   max_connections=" in result.out
    assert "  set    wal-buffers=4MB" in result.out


# ---- data that stays


@pytest.mark.unsanitized
def test_a_data_directory_stays_and_is_found_again(here, kind):
    """In an existing place, as a volume is, it is a directory of its own."""
    volume = here.dir / "volume"
    (volume / "lost+found").mkdir(parents=True)
    os.chmod(volume, 0o777)
    places = f"data=dir:{volume}&log={volume}"
    made = here.good("init", f"server:{kind}?{places}&{Sources.CHEAP[kind]}", "tpcb", "-s", "2")
    assert "removed at the end" not in made.out
    assert (volume / kind / MARKS[kind]).exists()
    assert (volume / f"{kind}-log").exists()
    here.nothing_left()
    result = here.measure(f"server:{kind}?{places}", "tpcb", "-t", "50", "-c", "2")
    assert result.json["workload"]["scale"] == 2
    assert environment(result)["server.made"] == "was there"
    assert environment(result)["server.stop"] == "fast"
    here.nothing_left()
    assert "agree" in here.good("check", f"server:{kind}?{places}", "tpcb").out


@pytest.mark.unsanitized
def test_a_run_fills_a_new_directory_and_leaves_it(here, sources):
    need("postgres")
    source = sources.bare("postgres")
    result = here.good("run", f"server:postgres?from={source}&data=new", "tpcb", "-t", "5", "-c",
                       "1", "-s", "1")
    assert "stays there" in result.out
    assert (here.dir / "new" / "PG_VERSION").exists()
    again = here.measure("server:postgres?data=new", "tpcb", "-t", "5", "-c", "1")
    assert again.json["workload"]["scale"] == 1
    here.refused("run", f"server:postgres?from={source}&data=new", "tpcb",
                 says="data directory already")


def tree(path):
    """Names, sizes and times of all that lies there."""
    return {str(p): (p.lstat().st_size, p.lstat().st_mtime_ns, p.lstat().st_uid)
            for p in Path(path).rglob("*")}


def check_copy(here, kind, source, log):
    result = here.measure(f"server:{kind}?from={source}{log}", "tpcb", "-t", "20", "-c", "1")
    assert environment(result)["server.made"] == f"a copy of {source}"
    assert result.json["transactions"]["done"] == 20
    here.nothing_left()
    assert not (here.dir / "otherlog").exists()


@pytest.mark.parametrize("log", ["", "&log=otherlog"])
def test_a_copy_leaves_its_source_as_it_is(here, kind, log, sources):
    source = sources.filled(kind)
    before = tree(source)
    check_copy(here, kind, source, log)
    assert before == tree(source)


@pytest.mark.unsanitized
def test_a_copy_has_a_log_of_its_own(here, sources):
    need("postgres")
    here.good("init", f"server:postgres?from={sources.bare('postgres')}&data=source&log=wal", "tpcb",
              "-s", "1")
    before = tree(here.dir / "source"), tree(here.dir / "wal")
    for log in ("", "&log=otherlog"):
        check_copy(here, "postgres", here.dir / "source", log)
    assert before == (tree(here.dir / "source"), tree(here.dir / "wal"))


# ---- refused, in one line, with nothing left


def test_targets_that_cannot_be(here):
    need("postgres")
    (here.dir / "other").mkdir()
    (here.dir / "other" / "thesis.txt").write_text("mine", encoding="ascii")
    (here.dir / "file").write_text("mine", encoding="ascii")
    nobody = "server:postgres?user=nobody-of-that-name"
    cases = [
        ("server:", "which server?"),
        ("server", "which server?"),
        ("server:postgre", "did you mean postgres"),
        ("server:oracle", "must be postgres, mariadb or mysql"),
        ("server://postgres", "write server:KIND"),
        ("server:postgres?stop=gently", "must be fast, immediate or kill"),
        ("server:postgres?wait=0", "must be more than 0"),
        ("server:postgres?wait=soon", "wait="),
        ("server:postgres?data=", "data= is empty"),
        ("server:postgres?data=a&data=b", "stands twice"),
        ("server:postgres?work_mem=1MB&work-mem=2MB", "stands twice"),
        ("server:postgres?port=5433", "is prony's to set"),
        ("server:postgres?Listen_Addresses=*", "is prony's to set"),
        ("server:mariadb?skip-networking=0", "is prony's to set"),
        ("server:postgres?a%20b=1", "can be no setting"),
        ("server:postgres?engine=innodb", "engine="),
        ("server:postgres?initdb={--locale='C}", "quote is not closed"),
        ("server:postgres?data={tape:size=7}", "directory"),
        ("server:postgres?data=other", "other files are there"),
        ("server:postgres?data=file", "no directory"),
        ("server:postgres?data=missing/deeper", "missing"),
        ("server:postgres?from=other", "no data directory"),
        ("server:postgres?from=missing", "no data directory"),
        (nobody, "user="),
    ]
    for target, says in cases:
        here.refused("run", target, "select-only", says=says)
    assert (here.dir / "other" / "thesis.txt").exists()
    here.refused("run", "server:postgres", "tpbc", says="did you mean tpcb")
    here.refused("run", "sqlite:", "tpcb", "--tune", "oltp", says="--tune")
    here.refused("init", "server:postgres", "tpcb", says="data=DIR")
    here.refused("check", "server:postgres", "tpcb", says="data=DIR")
    here.refused("check", "server:postgres?data=new", "tpcb", says="no data directory")


def test_what_is_not_installed_is_named_with_its_package(here):
    here.refused("run", "server:postgres?bin=/nowhere", "tpcb", status=4, says="package postgresql")
    here.refused("run", "server:mariadb?bin=/nowhere", "tpcb", status=4,
                 says="package mariadb-server")
    program = shutil.which("mysqld", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if not program or "mariadb" in os.path.realpath(program):
        here.refused("run", "server:mysql", "tpcb", status=4, says="mysql-server")


def test_a_directory_of_another_version_is_named(here):
    need("postgres")
    data = here.dir / "old"
    data.mkdir()
    (data / "PG_VERSION").write_text("9.1\n", encoding="ascii")
    here.refused("run", f"server:postgres?data={data}", "tpcb", status=4,
                 says=("9.1", "postgresql-9.1"))


def test_a_wrong_setting_ends_with_the_servers_words(here, kind, sources):
    source = sources.bare(kind)
    before = here.prony.files()
    result = here.run("run", f"server:{kind}?no_such_setting=17&data=new&log=newlog&from={source}",
                      "tpcb")
    assert result.status == 2, result
    words = {"postgres": 'unrecognized configuration parameter "no_such_setting"',
             "mariadb": "unknown variable 'no_such_setting=17'"}[kind]
    assert words in result.err.splitlines()[-1], result
    assert result.err.splitlines()[-1].startswith("prony: server:"), result
    here.nothing_left()
    assert here.prony.files() == before


def test_wrong_arguments_of_initdb_are_told_whole(here):
    need("postgres")
    before = here.prony.files()
    result = here.run("run", "server:postgres?initdb={--no-such-thing}", "tpcb")
    assert result.status == 2, result
    assert "unrecognized option '--no-such-thing'" in result.err.splitlines()[-1], result
    assert 'hint: Try "initdb --help"' in result.err, result
    here.nothing_left()
    assert here.prony.files() == before


@pytest.mark.unsanitized
def test_a_directory_in_use_is_refused(here, kind, sources):
    data = here.dir / "data"
    run = here.start("run", f"server:{kind}?from={sources.filled(kind)}&data={data}", "tpcb", "-T",
                     "300", "-c", "1", "-R", "20")
    run.seen("  load   ", 120)
    for place in ("data", "from"):
        result = here.run("run", f"server:{kind}?{place}={data}", "tpcb", "-t", "5")
        assert result.status == 2, result
        assert "a server runs on" in result.err and "process" in result.err, result
    assert run.process.poll() is None
    run.interrupt()
    run.wait(120)


@pytest.mark.unsanitized
def test_links_out_of_a_source_are_refused(here, sources):
    need("postgres")
    shutil.copytree(sources.bare("postgres"), here.dir / "source", symlinks=True)
    (here.dir / "space").mkdir()
    (here.dir / "source" / "pg_tblspc" / "16384").symlink_to(here.dir / "space")
    here.refused("run", "server:postgres?from=source", "tpcb", says="pg_tblspc/16384")


@pytest.mark.parametrize("server, name", [
    ("postgres", "base/5/16384"),
    ("postgres", "global/extra.conf"),
    ("postgres", "dangling"),
    ("mariadb", "shop/orders.MYD"),
    ("mariadb", "my.conf"),
    ("mariadb", "shop/orders.isl"),
])
def test_files_of_a_source_that_lie_elsewhere_are_refused(here, server, name):
    need(server)
    path = here.dir / "source" / name
    path.parent.mkdir(parents=True)
    for mark in MARKS[server], "ib_logfile0":
        (here.dir / "source" / mark).write_text("15\n", encoding="ascii")
    (here.dir / "elsewhere").write_text("x", encoding="ascii")
    if name.endswith(".isl"):
        path.write_text(f"{here.dir}/elsewhere", encoding="ascii")
    else:
        path.symlink_to(here.dir / ("missing" if name == "dangling" else "elsewhere"))
    here.refused("run", f"server:{server}?from=source", "tpcb", says=f"{name} leads to another")


@pytest.mark.unsanitized
def test_settings_of_a_source_may_lie_elsewhere(here, sources):
    need("postgres")
    source = here.dir / "source"
    subprocess.run(["cp", "-a", sources.bare("postgres"), source], check=True)
    settings = here.dir / "pg_ident.conf"
    (source / "pg_ident.conf").rename(settings)
    settings.chmod(0o644)
    (source / "pg_ident.conf").symlink_to(settings)
    here.measure(f"server:postgres?from={source}", "-f", sources.dir / "one.sql", "-t", "1", "-c",
                 "1")
    assert settings.read_text(encoding="utf-8")


@pytest.mark.unsanitized
def test_a_redo_log_outside_is_asked_for(here, sources):
    need("mariadb")
    source = sources.bare("mariadb")
    here.good("init", f"server:mariadb?from={source}&data=data&log=wal", "tpcb", "-s", "1")
    here.refused("run", "server:mariadb?data=data", "tpcb", says="log=")
    here.refused("run", "server:mariadb?from=data", "tpcb", says="redo log")
    here.refused("run", "server:mariadb?data=data&log=elsewhere", "tpcb", says="not there")


# ---- however it ends


PHASES = {  # what is seen when it begins
    "make": "  make   ",
    "copy": "  copy   ",
    "start": "  set    ",
    "fill": "  fill   ",
    "run": "tps",
    "down": "kept as run",
}


def start_until(here, sources, kind, phase, more=""):
    setting = {"postgres": "work_mem=5MB", "mariadb": "sort_buffer_size=1M"}[kind]
    source = "" if phase == "make" else f"&from={sources.bare(kind)}"
    # Long enough for whatever must be met in the middle.
    scale = "1" if phase in ("run", "down") else "50"
    seconds = "2" if phase == "down" else "300"
    run = here.start("run", f"server:{kind}?{setting}{source}{more}", "tpcb", "-c", "2", "-P", "1",
                     "-s", scale, "-T", seconds)
    run.seen(PHASES[phase], 120)
    return run


SIGNALS = ([(signal.SIGKILL, phase) for phase in PHASES] + [(signal.SIGINT, phase) for phase in PHASES]
           + [(signal.SIGTERM, "make"), (signal.SIGTERM, "fill")])


@pytest.mark.unsanitized
@pytest.mark.parametrize("number,phase", SIGNALS, ids=lambda v: getattr(v, "name", v))
def test_nothing_stays_after_a_signal(here, sources, number, phase):
    need("postgres")
    run = start_until(here, sources, "postgres", phase)
    run.signal(number)
    run.wait(120)
    here.nothing_left(60)
    assert not list(here.dir.glob("prony-server-*.log"))


def test_nothing_stays_after_an_interrupt_sanitized(here, sources):
    need("postgres")
    run = start_until(here, sources, "postgres", "run")
    run.interrupt()
    run.wait(120)
    here.nothing_left()


@pytest.mark.unsanitized
@pytest.mark.parametrize("phase", ["make", "start", "fill", "run"])
def test_nothing_stays_of_mariadb_after_kill(here, sources, phase):
    need("mariadb")
    run = start_until(here, sources, "mariadb", phase)
    run.kill()
    run.wait(120)
    here.nothing_left(60)


@pytest.mark.unsanitized
@pytest.mark.parametrize("phase", ["copy", "fill", "run"])
def test_a_new_data_directory_stays_only_when_it_is_whole(here, sources, phase):
    need("postgres")
    run = start_until(here, sources, "postgres", phase, "&data=new&log=newlog")
    run.kill()
    run.wait(120)
    here.nothing_left(60)
    stays = phase == "run"
    for name in ("new", "newlog"):
        path = here.dir / name
        wait_until(lambda path=path: path.exists() == stays, 60)
        assert path.exists() == stays, name
    if stays:  # kill -9 of prony is no crash of the data
        assert "agree" in here.good("check", "server:postgres?data=new", "tpcb").out


@pytest.mark.unsanitized
def test_nothing_stays_whatever_the_moment(here):
    need("postgres")
    seed = int(os.environ.get("PRONY_TEST_SEED", time.time_ns() % 1000000))
    print(f"PRONY_TEST_SEED={seed}")
    choice = random.Random(seed)
    for _ in range(3):
        run = here.start("run", "server:postgres", "tpcb", "-c", "2", "-s", "1", "-T", "2")
        time.sleep(choice.uniform(0, 4))
        if run.process.poll() is None:
            run.signal(choice.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        run.wait(120)
        here.nothing_left(60)


@pytest.mark.unsanitized
def test_a_server_that_dies_leaves_its_log(here, kind, sources):
    run = here.start("run", f"server:{kind}?from={sources.filled(kind)}", "tpcb", "-c", "2", "-T",
                     "60", "-P", "1", "--reconnect-for", "1s")
    run.seen("tps", 120)
    for line in here.servers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)
    result = run.wait(120)
    kept = list(here.dir.glob("prony-server-*.log"))
    assert len(kept) == 1, result
    assert kept[0].name in result.err, result
    assert kept[0].stat().st_size > 0
    here.nothing_left(10)


# ---- events


@pytest.mark.unsanitized
def test_a_restart_is_an_outage_with_marks(here, kind, sources):
    told = here.dir / "told"
    result = here.measure(f"server:{kind}?from={sources.filled(kind)}", "tpcb", "-c", "2", "-T", "15",
                          "-R", "50", "--at", "1s",
                          f"ls $PRONY_SERVER_SOCKET $PRONY_SERVER_DATA > {told}",
                          "--at", "3s", "restart")
    command, restart = result.json["events"]
    assert command["outcome"] == "done", command
    assert MARKS[kind] in told.read_text("utf-8")
    assert restart["outcome"] == "done", restart
    assert result.json["connections"]["attempts"] >= 1  # clients noticed
    assert restart["tps_before"] > 0
    here.nothing_left()
