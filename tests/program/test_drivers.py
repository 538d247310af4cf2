"""The drivers on real servers: the suite that all share, and what is one engine's own.

These are unit test programs; here they get the servers that they cannot start themselves.
"""
import subprocess
from urllib.parse import quote

import pytest

from harness.runner import find_binary


def run(prony, name, *targets):
    program = find_binary().parents[2] / "tests" / "unit" / name
    done = subprocess.run([program], env=prony.environment({"PRONY_TEST_TARGETS": " ".join(targets)}),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
                          cwd=prony.dir, check=False)
    assert done.returncode == 0, done.stdout[-20000:]


def postgres_url(server):
    """Without blanks, which separate targets."""
    return f"postgres://{server.user_name}@{quote(str(server.dir), safe='')}/{server.new_database()}"


def test_the_shared_suite_holds_on_postgres(prony, postgres):
    run(prony, "test_driver_suite", postgres_url(postgres))


@pytest.mark.parametrize("engine", ["innodb", "myisam", "aria"])
def test_the_shared_suite_holds_on_mariadb(prony, mariadb, engine):
    """Also the tables that the suite makes by plain CREATE TABLE are of that engine."""
    url = mariadb.url(mariadb.new_database(), engine=engine,
                      init_command=quote(f"SET SESSION default_storage_engine={engine}", safe=""))
    run(prony, "test_driver_suite", url)


def test_the_postgres_driver_holds_on_postgres(prony, postgres):
    run(prony, "test_postgres_server", postgres_url(postgres))


def test_the_postgres_codec_answers_as_the_driver_does(prony, postgres):
    run(prony, "test_postgres_wire_server", postgres_url(postgres))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_the_postgres_codec_answers_as_the_driver_does_over_tls(prony, postgres, version):
    database = postgres.new_database()
    params = postgres.restart_with_tls()
    url = (f"postgres://{postgres.user_name}@{params['host']}:{params['port']}/{database}"
           f"?sslmode={params['sslmode']}&sslrootcert={quote(str(params['sslrootcert']), safe='')}"
           f"&ssl_min_protocol_version={version}&ssl_max_protocol_version={version}")
    run(prony, "test_postgres_wire_server", url)


def test_the_mysql_driver_holds_on_mariadb(prony, mariadb):
    run(prony, "test_mysql_server", mariadb.url(mariadb.new_database(), user="root"))


def test_the_mysql_codec_answers_as_the_driver_does(prony, mariadb):
    run(prony, "test_mysql_wire_server", mariadb.url(mariadb.new_database(), user="root"))
