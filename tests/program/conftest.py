"""Fixtures of the program tests.

    prony      runs the binary ($PRONY_BINARY, else build/src/cmd/prony); prony.dir is the test's
    postgres   a private server; postgres.url(postgres.new_database())
    mariadb    likewise
    target     an empty database, once per engine; target.url(), target.rows(query)
    subject    likewise, once per kind of it (journals, storage engines); subject.kind
    stub       starts a server without a database: stub("--delay", "fixed:2ms").url("mysql")
    killable   an empty database of an engine with a server, which may be hurt
    loop       what drives the clients of this test, see harness/loops.py

Servers start once per test process and go on between tests; whatever a test does to them (settings,
stop, kill) is mended after it. After every test nothing of it may be left: no process, mount,
attached loop device, temporary file or line in prony's registry.
"""
import os
import shutil
import signal

import pytest

from harness import loops
from harness.mariadb import MariaDB
from harness.place import Place
from harness.postgres import Postgres
from harness.runner import Prony, find_binary
from harness.server import Absent
from harness.stub import Stub
from harness.targets import ENGINES, KINDS, SERVER_ENGINES, ServerTarget, SqliteTarget

SERVERS = {"postgres": Postgres, "mariadb": MariaDB}
NEED_SERVER = {"postgres", "mariadb", "target", "subject", "killable"}


def pytest_configure(config):
    # Where the tests were started in the background, these are ignored; prony would leave them so.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                          else signal.SIG_DFL)
    config.place = Place()
    if not config.option.basetemp:
        config.option.basetemp = str(config.place.dir / "pytest")


def pytest_unconfigure(config):
    place = getattr(config, "place", None)
    if place:
        place.remove()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Where everything must be there, a database test that is skipped has failed."""
    outcome = yield
    report = outcome.get_result()
    needs_server = NEED_SERVER & set(getattr(item, "fixturenames", ()))
    if (report.skipped and needs_server and os.environ.get("CI") == "true" and
            not getattr(item, "lacks_loop", False)):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"


@pytest.fixture(scope="session")
def place(request):
    """The directory of this test process; at the end nothing of ours may run or be mounted."""
    yield request.config.place
    here = request.config.place
    lines = [f"process {pid} still runs: {command}"
             for pid, command in here.processes() + here.processes(servers=True)] + here.mounts()
    assert not lines, "\n".join(lines)


@pytest.fixture(scope="session")
def servers(place):
    """Makes servers on first use; all are stopped at the end."""
    made = {}

    def get(name):
        if name not in made:
            try:
                made[name] = SERVERS[name](place)
            except Absent as reason:
                pytest.skip(str(reason))
        return made[name]

    yield get
    for server in made.values():
        server.release()


@pytest.fixture(autouse=True)
def nothing_stays_behind(request, place):
    if request.node.get_closest_marker("without_prony"):
        yield
        return
    yield
    reports = place.sanitizer_reports()  # of processes that nobody waited for, such as the guard
    assert not reports, "\n".join(reports)
    lines = place.traces_of_test()
    assert not lines, "the test left: " + "\n".join(lines)


@pytest.fixture
def prony(place, nothing_stays_behind):
    if not find_binary().exists():
        pytest.fail(f"there is no {find_binary()}: build it first", pytrace=False)
    runner = Prony(place, place.test_dir())
    yield runner
    lines = runner.release()
    shutil.rmtree(runner.dir, ignore_errors=True)
    assert not lines, "\n".join(lines)


def server_fixture(servers, name):
    server = servers(name)
    server.begin_test()
    yield server
    server.end_test()


@pytest.fixture
def postgres(servers):
    yield from server_fixture(servers, "postgres")


@pytest.fixture
def mariadb(servers):
    yield from server_fixture(servers, "mariadb")


@pytest.fixture
def stub(place):
    started = []

    def start(*options, **kwargs):
        started.append(Stub(place, *options, **kwargs).start())
        return started[-1]

    yield start
    for server in started:
        server.release()


def make_target(request, prony, engine, params=None):
    if engine == "sqlite":
        return SqliteTarget(prony.dir / "target.db", params)
    return ServerTarget(engine, request.getfixturevalue(engine), params)


@pytest.fixture(params=ENGINES)
def target(request, prony):
    return make_target(request, prony, request.param)


@pytest.fixture(params=SERVER_ENGINES)
def killable(request, prony):
    return make_target(request, prony, request.param)


@pytest.fixture(params=loops.LOOPS)
def loop(request, prony):
    why = loops.missing(request.param, prony.binary)
    if why:
        request.node.lacks_loop = True
        pytest.skip(f"--loop {request.param}: {why}")
    prony.loop = request.param
    return request.param


@pytest.fixture(params=KINDS)
def subject(request, prony):
    made = make_target(request, prony, *KINDS[request.param])
    made.kind = request.param
    return made
