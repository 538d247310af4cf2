"""Filling the tables of tpcb on PostgreSQL: prony init against pgbench -i, wall time."""
from speed.bench import Postgres
from speed.pairs import Rounds
from speed.report import Table, at_most

ABOUT = "filling tables: prony init and pgbench -i on PostgreSQL"
NEEDS = ["pgbench"]
SCALE = 20


def run(bench):
    scale = 2 if bench.quick else SCALE
    server = bench.server(Postgres)
    rounds = Rounds(["prony", "pgbench"])

    def measure(name):
        database = server.new_database()
        server.rows("postgres", "checkpoint")
        argv = ([bench.prony, "init", server.url(database), "tpcb", "--scale", scale]
                if name == "prony" else
                [server.bindir / "pgbench", "-h", server.dir, "-U", server.user_name, "-i", "-q",
                 "-s", scale, database])
        cost = bench.cost(argv)
        rows = int(server.rows(database, "select count(*) from pgbench_accounts")[0][0])
        assert rows == 100000 * scale, rows
        server.databases.remove(database)
        server.drop_database(database)
        return {"wall_s": cost["wall_s"], "cpu_s": cost["user_s"] + cost["sys_s"]}

    measure("pgbench")  # a new server has yet to make the files of its log
    rounds.run(bench.n_rounds(5), measure, bench.say)
    bench.raw["init"] = rounds.measured
    table = Table(f"Filling `tpcb`, scale {scale}, on PostgreSQL",
                  ["", "wall time (s)", "client CPU (s)"])
    for name in rounds.names:
        table.add(name, rounds.value(name, "wall_s").show(2), rounds.value(name, "cpu_s").show(2))
    ratio = rounds.ratio("prony", "pgbench", "wall_s")
    table.add("prony / pgbench", ratio.show(2), rounds.ratio("prony", "pgbench", "cpu_s").show(2))
    return [table], [at_most(f"`prony init`, scale {scale}: wall time over `pgbench -i`'s", ratio,
                             1.0)]
