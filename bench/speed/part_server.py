"""The same host, real servers: how much the client's cost takes from what is measured."""
import json
import re

from speed import tools
from speed.bench import MariaDB, Postgres
from speed.pairs import Rounds, Spread, Unavailable
from speed.report import Table, at_least, at_most

ABOUT = "real PostgreSQL and MariaDB on the same cores: tps, CPU per transaction"
NEEDS = ["pgbench", "sysbench"]

CLIENTS = 16
SCALE = 1
BARE = "bare io_uring"
BARE_KEYS = 99999  # of the 100000 rows of scale 1: what it can write
PIPELINE_RATIO = 0.4
SELECT_RATIO = 1.2
SAME = 0.97  # "not lower", as far as these rounds can tell


class Contest:
    """One workload on one server. Client CPU is that of the whole program less that of a run of one
    transaction per client; all contestants alike."""

    def __init__(self, bench):
        self.bench = bench
        self.start_cpu = {}

    def seconds(self):
        return 1 if self.bench.quick else 4

    def command(self, name, length):
        """length: ("-T", seconds) or ("-t", 1). Gives the command line and where to read it."""
        raise NotImplementedError

    def transactions(self, name, cost, result):
        """(number, tps) from what the contestant said."""
        raise NotImplementedError

    def prony_transactions(self, result):
        doc = self.bench.read_json(result)
        assert not doc["errors"], doc["errors"]
        return doc["transactions"]["done"], doc["throughput"]["tps"]

    def cost(self, name, length):
        argv, result = self.command(name, length)
        try:
            return self.bench.cost(argv), result
        except RuntimeError as error:
            raise Unavailable(str(error).strip().splitlines()[-1]) from error

    def __call__(self, name):
        if name not in self.start_cpu:
            cost, _ = self.cost(name, ("-t", 1))
            self.start_cpu[name] = cost["user_s"] + cost["sys_s"]
        cost, result = self.cost(name, ("-T", self.seconds()))
        n, tps = self.transactions(name, cost, result)
        cpu_s = cost["user_s"] + cost["sys_s"] - self.start_cpu[name]
        return {"tps": tps, "us": cpu_s / n * 1e6}


class PostgresContest(Contest):
    def __init__(self, bench, server, database, workload, names):
        super().__init__(bench)
        self.server = server
        self.database = database
        self.workload = workload
        self.names = names

    def command(self, name, length):
        if name == BARE:
            argv = [self.bench.program("bare"), "--loop", "uring", "-c", CLIENTS,
                    "--keys", BARE_KEYS, "-U", self.server.user_name, "-d", self.database,
                    "-T", length[1] if length[0] == "-T" else "1ms",
                    self.server.dir / ".s.PGSQL.5432"]
            return argv, None
        if name.startswith("pgbench"):
            workload = "tpcb-like" if self.workload == "tpcb" else self.workload
            argv = tools.pgbench(self.server.dir, self.server.user_name, self.database, workload,
                                 CLIENTS, *length, *self.names[name])
            return argv, None
        argv, result = tools.prony(self.bench, self.server.url(self.database),
                                   [self.workload, "-s", SCALE], CLIENTS, *length,
                                   *self.names[name])
        return argv, result

    def transactions(self, name, cost, result):
        if result:
            return self.prony_transactions(result)
        if name == BARE:
            doc = json.loads(cost["out"])
            return doc["statements"], doc["statements"] / doc["seconds"]
        n = re.search(r"actually processed: (\d+)", cost["out"])
        tps = re.search(r"tps = ([\d.]+) \(without", cost["out"])
        return int(n[1]), float(tps[1])


class MariaContest(Contest):
    def __init__(self, bench, server, database):
        super().__init__(bench)
        self.server = server
        self.database = database
        self.script = tools.point_select_file(bench)

    def command(self, name, length):
        if name == "sysbench":
            argv = tools.sysbench(self.server.socket, self.server.user_name, self.database, CLIENTS,
                                  length[1] if length[0] == "-T" else 0)
            return (argv if length[0] == "-T" else [*argv[:-1], f"--events={CLIENTS}", "run"]), None
        return tools.prony(self.bench, self.server.url(self.database), ["-f", self.script], CLIENTS,
                           *length)

    def transactions(self, name, cost, result):
        if result:
            return self.prony_transactions(result)
        match = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", cost["out"])
        return int(match[1]), float(match[2])


def table_of(title, rounds, notes=()):
    table = Table(title, ["", "tps", "client CPU per transaction (us)"], notes)
    for name in rounds.names:
        if rounds.has(name):
            table.add(name, rounds.value(name, "tps").show(0), rounds.value(name, "us").show(1))
        else:
            table.add(name, rounds.absent.get(name, "not measured"), "")
    return table


def over_best(rounds, name, peers):
    """tps over the better of the peer's ways, within rounds."""
    return Spread(one["tps"] / max(rounds.measured[peer][i]["tps"] for peer in peers)
                  for i, one in enumerate(rounds.measured[name]))


def run_postgres(bench):
    server = bench.server(Postgres)
    database = server.new_database()
    # What is compared is the client; a disk's flushes would hide it in noise.
    server.rows("postgres", f"alter database {database} set synchronous_commit = off")
    server.pgbench("-i", "-q", "-s", str(SCALE), database)
    jobs = {"pgbench -j 1": ["-j", "1"], "pgbench -j 2": ["-j", "2"]}
    tables, claims = [], []
    for workload, bound in (("select-only", SELECT_RATIO), ("tpcb", SAME)):
        names = {"prony": [], "prony -j 2": ["-j", "2"], **jobs}
        if workload == "select-only":
            names[BARE] = []
        if workload == "tpcb" and bench.has_loop("--pipeline"):
            names["prony --pipeline auto"] = ["--pipeline", "auto"]
        rounds = Rounds(names)
        rounds.run(bench.n_rounds(6), PostgresContest(bench, server, database, workload, names),
                   lambda text, w=workload: bench.say(f"{w}: {text}"))
        bench.raw[f"postgres {workload}"] = rounds.measured
        tables.append(table_of(f"PostgreSQL on the same cores: `{workload}`, prepared, scale "
                               f"{SCALE}, {CLIENTS} clients", rounds))
        if rounds.has("prony", *jobs):
            # The default number of threads is meant to leave a server on the same machine the rest.
            tables[-1].notes.append(f"prony with 2 threads over its default: tps "
                                    f"{rounds.ratio('prony -j 2', 'prony', 'tps').show(2)}, CPU "
                                    f"{rounds.ratio('prony -j 2', 'prony', 'us').show(2)}.")
            claims.append(at_least(f"PostgreSQL, `{workload}`, {CLIENTS} clients: tps over "
                                   "pgbench's (its better -j)", over_best(rounds, "prony", jobs),
                                   bound))
        if rounds.has("prony", BARE, *jobs):
            # What the rest of the processors can do at all for a client of this kind.
            tables[-1].notes.append(f"The floor, {BARE} with random keys: tps over pgbench's better -j "
                                    f"{over_best(rounds, BARE, jobs).show(2)}, prony's over the floor's "
                                    f"{rounds.ratio('prony', BARE, 'tps').show(2)}.")
        if rounds.has("prony --pipeline auto", "pgbench -j 1"):
            claims.append(at_most("PostgreSQL, `tpcb --pipeline auto`: client CPU per transaction "
                                  "over pgbench's plain one",
                                  rounds.ratio_to_best("prony --pipeline auto", jobs, "us"),
                                  PIPELINE_RATIO))
    return tables, claims


def run_mariadb(bench):
    server = bench.server(MariaDB)
    database = server.new_database()
    bench.cost(tools.sysbench(server.socket, server.user_name, database, 1, 0, "prepare"))
    rounds = Rounds(["prony", "sysbench"])
    rounds.run(bench.n_rounds(4), MariaContest(bench, server, database), bench.say)
    bench.raw["mariadb"] = rounds.measured
    claims = []
    if rounds.has("prony", "sysbench"):
        claims.append(at_least(f"MariaDB, point select, {CLIENTS} clients: tps over sysbench's",
                               rounds.ratio("prony", "sysbench", "tps"), SAME))
    return [table_of(f"MariaDB on the same cores: point select, prepared, {CLIENTS} clients",
                     rounds)], claims


def run(bench):
    tables, claims = run_postgres(bench)
    more_tables, more_claims = run_mariadb(bench)
    return tables + more_tables, claims + more_claims
