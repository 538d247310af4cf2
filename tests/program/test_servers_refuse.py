"""PostgreSQL and MariaDB that will not, or cannot: each is one short line with the remedy, exit 2,
and nothing made."""
import contextlib
import subprocess

import pytest

from harness.loops import each_loop
from harness.targets import SERVER_ENGINES, ServerTarget


@pytest.fixture(params=SERVER_ENGINES)
def target(request, prony):
    return ServerTarget(request.param, request.getfixturevalue(request.param))


on_each_server = each_loop("target", SERVER_ENGINES, sanitize_all=False)


COMMANDS = [["run", "URL", "tpcb", "-T", "30"], ["init", "URL", "tpcb", "-s", "1"],
            ["check", "URL", "tpcb"], ["run", "URL", "-f", "one.sql", "-T", "30"]]


def refused_by_all(prony, url, says):
    """Every command that connects says the same."""
    prony.dir.joinpath("one.sql").write_text("SELECT 1;\n", encoding="utf-8")
    results = []
    for command in COMMANDS:
        results.append(prony.refused(*[url if word == "URL" else word for word in command],
                                     says=says))
        assert results[-1].err == results[0].err
    return results[0]


def test_no_server(prony, target):
    url = target.url()
    target.server.stop()
    result = refused_by_all(prony, url, ["is the server running", str(target.server.dir)])
    assert result.seconds < 15


def test_nobody_at_the_port(prony):
    for url in ("postgres://127.0.0.1:1/d", "mysql://127.0.0.1:1/d"):
        refused_by_all(prony, url, ["127.0.0.1", "is the server running"])


def test_a_host_that_is_none(prony):
    for url in ("postgres://no.such.host.invalid/d", "mysql://no.such.host.invalid/d"):
        prony.refused("run", url, "tpcb", says=["no.such.host.invalid"], timeout_s=90)


def test_a_login_that_is_refused(prony, target):
    url = target.server.url(target.database, user="secret", password="wr0ng")
    result = refused_by_all(prony, url, ["secret", "password", "password file"])
    assert "wr0ng" not in result.out + result.err
    refused_by_all(prony, target.server.url(target.database, user="secret"),
                   ["secret", "password"])
    refused_by_all(prony, target.server.url(target.database, user="nobody_here"), ["nobody_here"])


def test_a_missing_database(prony, target):
    refused_by_all(prony, target.server.url("nosuchdb"), ["nosuchdb", "create it first"])


def test_the_right_password_is_not_told_anywhere(prony, target):
    url = target.server.url(target.database, user="secret", password=target.server.password)
    secret = target.server.password
    lines = [["init", url, "tpcb", "-s", "1"], ["run", url, "tpcb", "-t", "5", "-r"],
             ["run", url, "tpcb", "-t", "5", "--json", "-"], ["check", url, "tpcb"],
             ["run", url, "select-only", "-t", "1", "--trace", "trace.txt", "-q"], ["list"],
             ["show"], ["show", "--format", "json"], ["show", "--format", "md"],
             ["sql", "select * from runs", "--json"], ["export", "1", "-o", "out.prony"]]
    results = [prony.good(*args) for args in lines]
    results.append(prony.refused("run", url, "tpcb", "-s", "5", "-t", "5"))
    for result in results:
        assert secret not in result.out + result.err, result
    for path in prony.dir.iterdir():
        assert secret.encode() not in path.read_bytes(), path


def test_a_password_file_is_used(prony, target):
    secret = target.server.password
    if target.engine == "postgres":
        secrets = prony.dir / "pgpass"
        secrets.write_text(f"*:*:*:secret:{secret}\n", encoding="utf-8")
        env, more = {"PGPASSFILE": secrets}, {}
    else:
        secrets = prony.dir / "options.cnf"
        secrets.write_text(f"[client]\npassword={secret}\n", encoding="utf-8")
        env, more = {}, {"defaults_file": secrets}
    secrets.chmod(0o600)
    url = target.server.url(target.database, user="secret", **more)
    prony.good("init", url, "tpcb", "-s", "1", "-q", env=env)
    prony.good("run", url, "tpcb", "-t", "5", "-q", env=env)


def test_missing_tables_say_which_init(prony, target):
    result = prony.refused("run", target.url(), "tpcb", "-c", "24", says=["missing", "prony init"])
    # The default scale has a branch for every client; the command can be typed as it stands.
    assert "tpcb -s 24`" in result.err, result
    typed = result.err.split("`")[1].replace("prony init", f"{prony.binary} init").replace(
        "-s 24", "-s 1 -q")
    done = subprocess.run(["bash", "-c", typed], env=prony.environment(), capture_output=True,
                          text=True, cwd=prony.dir, check=False)
    assert done.returncode == 0, done
    prony.good("run", target.url(), "tpcb", "-t", "2", "-q")


def test_tables_that_do_not_fit(prony, target):
    target_tables(prony, target)
    prony.refused("run", target.url(), "tpcb", "-s", "3",
                  says=["--scale 3", "scale 1", "prony init"])
    target.rows("delete from pgbench_tellers")
    prony.refused("run", target.url(), "tpcb", says=["pgbench_tellers", "empty", "prony init"])
    for table in ("tellers", "history"):
        target.rows(f"drop table pgbench_{table}")
        prony.refused("run", target.url(), "tpcb", says=[f"pgbench_{table}", "prony init"])


def target_tables(prony, target):
    prony.good("init", target.url(), "tpcb", "-s", "1", "-q")


# ---- too many

@on_each_server
def test_more_clients_than_connections_name_the_setting(prony, target, loop):
    target_tables(prony, target)
    limit = {"postgres": 100, "mariadb": 151}[target.engine]
    result = prony.refused("run", target.url(), "tpcb", "-c", str(limit + 1),
                           says=[f"--clients {limit + 1}", "max_connections", "at most"])
    most = int(result.err.split("at most ")[1].split()[0])
    assert limit - 10 <= most <= limit, result  # some are reserved
    # What it says is true.
    prony.good("run", target.url(), "select-only", "-c", str(most), "-t", "2", "-q")


def test_others_connections_count(prony, target):
    target_tables(prony, target)
    target.server.restart(max_connections=30)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(idle_client(target))
        wait_for_clients(target, 20)
        prony.refused("run", target.url(), "tpcb", "-c", "20",
                      says=["--clients 20", "max_connections"])
        prony.good("run", target.url(), "select-only", "-c", "4", "-t", "2", "-q")


def wait_for_clients(target, count):
    from harness.place import wait_until
    query = ("select count(*) from pg_stat_activity where datname = current_database()"
             if target.engine == "postgres" else
             "select count(*) from information_schema.processlist where db = database()")
    assert wait_until(lambda: int(target.rows(query)[0][0]) > count, 20, 0.2)


@contextlib.contextmanager
def idle_client(target):
    server = target.server
    argv = ([server.bindir / "psql", "-X", "-q", "-h", server.dir, "-U", server.user_name, "-d",
             target.database] if target.engine == "postgres" else
            ["mariadb", "--no-defaults", "--unbuffered", f"--socket={server.socket}", "-u",
             "prony", target.database])
    client = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=server.environment())
    try:
        yield client
    finally:
        client.stdin.close()
        client.wait(10)


@on_each_server
def test_a_limit_of_the_role_or_user_is_told(prony, target, loop):
    """Not to be seen in max_connections: it shows when the clients connect."""
    target_tables(prony, target)
    if target.engine == "postgres":
        target.rows("drop role if exists narrow")
        target.rows("create role narrow login connection limit 3")
        target.rows("grant all on all tables in schema public to narrow")
    else:
        target.rows("create or replace user narrow@localhost with max_user_connections 3")
        target.rows("grant all on *.* to narrow@localhost")
    url = target.server.url(target.database, user="narrow")
    try:
        prony.refused("run", url, "tpcb", "-c", "8", says=["--clients 8", "narrow"])
        prony.good("run", url, "tpcb", "-c", "2", "-t", "5", "-q")
    finally:
        if target.engine == "postgres":
            target.rows("drop owned by narrow; drop role narrow")
        else:
            target.rows("drop user narrow@localhost")


# ---- read-only

def test_a_standby_reads_but_does_not_write(prony, postgres):
    target = ServerTarget("postgres", postgres)
    target_tables(prony, target)
    with postgres.standby() as replica:
        url = replica.url(target.database)
        prony.refused("run", url, "tpcb", "-t", "5",
                      says=["read-only", "recovery", "select-only"])
        prony.refused("init", url, "tpcb", "-s", "1", says=["read-only"])
        prony.good("run", url, "select-only", "-t", "20", "-q")
        prony.good("check", url, "tpcb")


def test_a_read_only_default_of_the_database(prony, postgres):
    target = ServerTarget("postgres", postgres)
    target_tables(prony, target)
    target.rows(f"alter database {target.database} set default_transaction_read_only = on")
    prony.refused("run", target.url(), "tpcb", "-t", "5",
                  says=["read-only", "default_transaction_read_only"])
    prony.good("run", target.url(), "select-only", "-t", "20", "-q")


def test_a_read_only_mariadb(prony, mariadb):
    target = ServerTarget("mariadb", mariadb)
    target_tables(prony, target)
    with mariadb.variable("read_only", 1):
        prony.refused("run", target.url(), "tpcb", "-t", "5", says=["read-only", "read_only"])
        prony.refused("init", target.url(), "tpcb", "-s", "1", says=["read-only"])
        prony.good("run", target.url(), "select-only", "-t", "20", "-q")
        prony.good("check", target.url(), "tpcb")
    prony.good("run", target.url(), "tpcb", "-t", "5", "-q")


@on_each_server
def test_missing_privileges_are_told(prony, target, loop):
    target_tables(prony, target)
    if target.engine == "postgres":
        target.rows("drop role if exists reader")
        target.rows("create role reader login")
        target.rows("grant select on all tables in schema public to reader")
    else:
        target.rows("create or replace user reader@localhost")
        target.rows(f"grant select on {target.database}.* to reader@localhost")
    url = target.server.url(target.database, user="reader")
    try:
        prony.good("run", url, "select-only", "-t", "20", "-q")
        result = prony.measure(url, "tpcb", "-T", 30, "-q", status=1)
        assert result.seconds < 15
        assert "denied" in result.err and "pgbench_accounts" in result.err, result
    finally:
        if target.engine == "postgres":
            target.rows("drop owned by reader; drop role reader")
        else:
            target.rows("drop user reader@localhost")
