"""The client's own cost, PostgreSQL: prony, pgbench and the bare loops on the stub server."""
from speed import tools, window
from speed.pairs import Rounds, Unavailable
from speed.report import Claim, Table, at_least, at_most
from speed.stubs import PinnedStub

ABOUT = "prepared select-only on the stub: prony, pgbench, the bare loops"
NEEDS = ["pgbench"]

LOOPS = {"prony ring-uring": "ring-uring", "prony ring-epoll": "ring-epoll",
         "prony threads": "threads"}
BARE = {"bare io_uring": "uring", "bare epoll": "epoll"}
THREADS_UP_TO = 128  # a thread per client: more only shows the same
MANY = 5000
RATIOS_TO_PGBENCH = {16: 0.80, 128: 0.75, 1000: 0.60}
RATIO_TO_BARE = 1.25
RATES_TO_PGBENCH = {128: 1.2, 1000: 1.5}
SESSION_KIB = 64
CONNECT_S = 5
FAIRNESS = 0.8  # least over most transactions of a client


class Contest:
    """Measures one contestant with so many clients."""

    def __init__(self, bench, stub, clients):
        self.bench = bench
        self.stub = stub
        self.clients = clients

    def window_s(self):
        """Long enough for each client to do some."""
        return self.bench.window_s() * (3 if self.clients >= MANY else 1)

    def names(self):
        names = [*LOOPS, "pgbench", *BARE]
        if self.clients > THREADS_UP_TO:
            names.remove("prony threads")
        return names

    def prony(self, loop):
        if not self.bench.has_loop(loop):
            raise Unavailable(f"this build of prony has no {loop}")
        seconds = self.window_s() + window.SETTLE_S + window.END_S
        argv, result = tools.prony(self.bench, self.stub.server.url("postgres"),
                                   ["select-only", "-s", 1], self.clients, "-T",
                                   f"{seconds:.1f}s", "-j", 1, "--loop", loop)
        numbers = window.measure(self.bench, self.stub, argv, self.clients, self.window_s(),
                                 ends=True)
        doc = self.bench.read_json(result)
        assert doc["loop"] == loop, doc["loop"]
        assert doc["transactions"]["done"] > 0 and not doc["errors"], doc["errors"]
        numbers["fairness"] = min(doc["done_by_client"]) / max(doc["done_by_client"])
        return numbers

    def __call__(self, name):
        self.stub.wait_until_alone()
        if name in LOOPS:
            return self.prony(LOOPS[name])
        if name in BARE:
            argv = [self.bench.program("bare"), "--loop", BARE[name], "-c", self.clients, "-T",
                    tools.FOREVER_S, self.stub.server.postgres_socket]
        else:
            server = self.stub.server
            argv = tools.pgbench(server.dir, server.user_name, server.database, "select-only",
                                 self.clients, "-j", 1, "-T", tools.FOREVER_S)
        return window.measure(self.bench, self.stub, argv, self.clients, self.window_s())


def saturated(rounds, name):
    """Which side had no time left."""
    sides = [side for side in ("client", "stub")
             if rounds.value(name, f"{side}_busy").median > 0.95]
    return " and ".join(sides) or "neither"


def add_rows(table, clients, rounds):
    for name in rounds.names:
        if not rounds.has(name):
            table.add(str(clients), name, rounds.absent.get(name, "not measured"), *[""] * 6)
            continue
        ratio = (rounds.ratio(name, "pgbench", "us").show(2)
                 if rounds.has("pgbench") and name != "pgbench" else "")
        table.add(str(clients), name, rounds.value(name, "us").show(2), ratio,
                  f"{rounds.value(name, 'tps').median:,.0f}".replace(",", " "),
                  saturated(rounds, name),
                  f"{rounds.value(name, 'client_busy').median:.2f}",
                  rounds.value(name, "connect_s").show(3) if clients > 1 else "",
                  f"{rounds.value(name, 'rss_kib').median / 1024:.1f}")


def best_ring(rounds):
    return next((name for name in ("prony ring-uring", "prony ring-epoll") if rounds.has(name)),
                None)


def missing(text, bound):
    return Claim(text, "not measured", bound, False)


def claims_of(clients, rounds):
    prony = best_ring(rounds)
    claims = []
    text = f"stub, {clients} clients: client CPU per statement over the better bare loop's"
    if clients in RATIOS_TO_PGBENCH:
        if not prony or not rounds.has(*BARE):
            return [missing(text, f"at most {RATIO_TO_BARE}")]
        claims.append(at_most(text, rounds.ratio_to_best(prony, BARE, "us"), RATIO_TO_BARE))
        claims.append(at_most(f"stub, {clients} clients: client CPU per statement over pgbench's",
                              rounds.ratio(prony, "pgbench", "us"), RATIOS_TO_PGBENCH[clients]))
    if clients in RATES_TO_PGBENCH:
        claims.append(at_least(f"stub, {clients} clients, one core: statements per second over "
                               "pgbench's", rounds.ratio(prony, "pgbench", "tps"),
                               RATES_TO_PGBENCH[clients]))
    return claims


def session_kib(few, many, name, extra_clients):
    """Memory of one session: what a run with many has more than one with few."""
    return (many.value(name, "rss_kib").median - few.value(name, "rss_kib").median) / extra_clients


def claims_of_many(counts, all_rounds):
    few, many = min(counts), max(counts)
    rounds = all_rounds[many]
    prony = best_ring(rounds)
    if many < MANY or few == many:
        return [], None
    if not prony:
        return [missing(f"{many} connections", "")], None
    table = Table(f"Memory per session: {many} clients against {few} client"
                  f"{'' if few == 1 else 's'}", ["", "KiB per session"])
    for name in rounds.names:
        if rounds.has(name) and all_rounds[few].has(name):
            kib = session_kib(all_rounds[few], rounds, name, many - few)
            table.add(name, f"{kib:.1f}")
    kib = session_kib(all_rounds[few], rounds, prony, many - few)
    connect = rounds.value(prony, "connect_s")
    return [
        Claim(f"{many} connections in one process: memory of each", f"{kib:.1f} KiB",
              f"under {SESSION_KIB} KiB", kib < SESSION_KIB),
        at_most(f"{many} connections: time until all are there", connect, CONNECT_S, unit=" s"),
        at_least(f"{many} clients: least over most transactions of a client",
                 rounds.value(prony, "fairness"), FAIRNESS),
    ], table


def run(bench):
    table = Table(
        "The client's cost: prepared `select-only` on the stub, one core each, one worker thread",
        ["clients", "", "client CPU per statement (us)", "over pgbench's", "statements/s",
         "saturated", "client's core", "connected in (s)", "resident (MiB)"],
        ["`saturated`: which side used more than 95 % of its core."])
    claims, all_rounds = [], {}
    with PinnedStub(bench) as stub:
        for clients in bench.counts:
            contest = Contest(bench, stub, clients)
            rounds = Rounds(contest.names())
            bench.say(f"{clients} clients")
            rounds.run(bench.n_rounds(5 if clients < MANY else 2), contest, bench.say)
            all_rounds[clients] = rounds
            bench.raw[f"stub {clients}"] = rounds.measured
            add_rows(table, clients, rounds)
            claims += claims_of(clients, rounds)
    more, memory = claims_of_many(bench.counts, all_rounds)
    return [table, memory] if memory else [table], claims + more
