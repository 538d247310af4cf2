"""The harness itself: its servers do what tests ask of them, and it finds what stays behind."""
import os
import signal
import subprocess
import time

import pytest

from harness.place import Place, wait_until
from harness.targets import value

pytestmark = pytest.mark.without_prony


@pytest.fixture(params=["postgres", "mariadb"])
def server(request):
    return request.getfixturevalue(request.param)


def test_a_new_database_is_empty_and_takes_rows(server):
    name = server.new_database()
    server.rows(name, "create table t (a int, b varchar(20))")
    server.rows(name, "insert into t values (1, 'x y'), (2, null)")
    assert server.rows(name, "select a, b from t order by a") == [["1", "x y"], ["2", None]]
    other = server.new_database()
    with pytest.raises(RuntimeError):
        server.rows(other, "select * from t")


def test_the_socket_lies_in_a_private_directory(server):
    assert server.dir.stat().st_mode & 0o777 == 0o700
    sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=False).stdout
    assert f"pid={server.pid}," not in sockets
    if os.geteuid() == 0:
        assert os.stat(f"/proc/{server.pid}").st_uid != 0


@pytest.mark.parametrize("how", ["stop", "immediate", "kill"])
def test_data_survive_an_end_of_the_server(server, how):
    name = server.new_database()
    server.rows(name, "create table t (a int)")
    server.rows(name, "insert into t values (7)")
    pid = server.pid
    if how == "kill":
        server.kill()
    else:
        server.stop(signal.SIGQUIT if how == "immediate" and server.name == "postgres" else None)
    assert server.own_pids() == []
    assert not os.path.exists(f"/proc/{pid}")
    server.start()
    assert server.rows(name, "select a from t") == [["7"]]


def test_a_setting_holds_for_one_test(server):
    name = server.new_database()
    server.restart(max_connections=20)
    query = ("show max_connections" if server.name == "postgres" else
             "select @@global.max_connections")
    assert server.rows(name, query) == [["20"]]
    server.end_test()
    assert server.rows("postgres" if server.name == "postgres" else None, query) != [["20"]]


def test_clients_can_be_killed(server):
    name = server.new_database()
    sleep = {"postgres": "select pg_sleep(60)", "mariadb": "select sleep(60)"}[server.name]
    argv = {
        "postgres": lambda: [server.bindir / "psql", "-X", "-h", server.dir, "-U", "prony", "-d",
                             name, "-c", sleep],
        "mariadb": lambda: ["mariadb", "--no-defaults", f"--socket={server.socket}", "-u", "root",
                            name, "-e", sleep],
    }[server.name]()
    client = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: server.kill_clients(name, 1), 10) == 1
        client.wait(10)
    finally:
        client.kill()
        client.wait()


def test_a_standby_refuses_to_write(postgres):
    name = postgres.new_database()
    postgres.rows(name, "create table t (a int)")
    with postgres.standby() as replica:
        assert replica.rows(name, "select count(*) from t") == [["0"]]
        with pytest.raises(RuntimeError, match="read-only"):
            replica.rows(name, "insert into t values (1)")


def test_a_read_only_mariadb_refuses_prony(mariadb):
    name = mariadb.new_database()
    mariadb.rows(name, "create table t (a int)")
    with mariadb.variable("read_only", 1):
        with pytest.raises(RuntimeError, match="read-only"):
            mariadb.rows(name, "insert into t values (1)", user="prony")
    mariadb.rows(name, "insert into t values (1)", user="prony")


def test_a_sqlite_target_gives_texts(tmp_path):
    from harness.targets import SqliteTarget
    target = SqliteTarget(tmp_path / "x.db")
    target.rows("create table t (a int)")
    target.rows("insert into t values (3), (null)")
    assert target.rows("select a from t order by a") == [[None], ["3"]]
    assert value(target, "select count(*) from t") == 2


def test_what_stays_behind_is_found():
    place = Place()
    try:
        sleeper = subprocess.Popen(["sleep", "60"], env=place.environment())
        time.sleep(0.05)
        (place.temp / "forgotten").write_text("x", encoding="utf-8")
        assert [pid for pid, _ in place.processes()] == [sleeper.pid]
        lines = "\n".join(place.traces_of_test(wait_s=0.1))
        assert f"process {sleeper.pid} still runs: sleep 60" in lines
        assert "forgotten stays" in lines
        sleeper.wait()
        assert place.traces_of_test() == []
    finally:
        place.remove()


def test_a_directory_of_a_killed_test_process_is_removed():
    place = Place()
    dead = subprocess.Popen(["true"])
    dead.wait()
    stale = place.dir.with_name(f"prony-test-{dead.pid}-x")
    stale.mkdir()
    living = place.dir
    Place().remove()
    assert not stale.exists()
    assert living.exists()
    place.remove()
