"""The command lines of the contestants, so that all are asked for the same work."""
POINT_SELECT_ROWS = 100000
FOREVER_S = 600  # of those that are ended from outside

# What sysbench's oltp_point_select sends, as a script of prony.
POINT_SELECT = f"""\
\\set id random(1, {POINT_SELECT_ROWS})
SELECT c FROM sbtest1 WHERE id=:id;
"""


def point_select_file(bench):
    path = bench.dir / "point_select.sql"
    path.write_text(POINT_SELECT, encoding="utf-8")
    return path


def prony(bench, url, what, clients, *options):
    """A run's command line, and the file where its result will stand. what: the words that name the
    workload."""
    result = bench.new_file(".json")
    return [bench.prony, "run", url, *what, "-c", clients, "--warmup", "none", "-q", "--json",
            result, *options], result


def pgbench(directory, user, database, workload, clients, *options):
    """Prepared statements, as prony's default."""
    return ["pgbench", "-h", directory, "-U", user, "-n", "-M", "prepared", "-b", workload, "-c",
            clients, *options, database]


def sysbench(socket, user, database, clients, seconds, command="run"):
    """Uniform random numbers, as prony's random(); the default of 1.0 is another distribution."""
    return ["sysbench", "oltp_point_select", "--db-driver=mysql", f"--mysql-socket={socket}",
            f"--mysql-user={user}", f"--mysql-db={database}", f"--threads={clients}",
            f"--time={seconds}", "--tables=1", f"--table-size={POINT_SELECT_ROWS}",
            "--rand-type=uniform", command]
