"""The client's own cost, MySQL: prony and sysbench on the stub server."""
from speed import tools, window
from speed.pairs import Rounds, Unavailable
from speed.part_stub import saturated
from speed.report import Table, at_most
from speed.stubs import PinnedStub

ABOUT = "point selects on the stub, MySQL's protocol: prony and sysbench"
NEEDS = ["sysbench"]

RATIOS = {16: 0.45, 128: 0.35}  # aims
LOOPS = {"prony ring-uring": "ring-uring", "prony threads": "threads"}
THREADS_UP_TO = 128


def contest(bench, stub, clients):
    script = tools.point_select_file(bench)
    seconds = bench.window_s() + window.SETTLE_S + window.END_S
    server = stub.server

    def measure(name):
        stub.wait_until_alone()
        if name == "sysbench":
            argv = tools.sysbench(server.mysql_socket, server.user_name, server.database, clients,
                                  tools.FOREVER_S)
            return window.measure(bench, stub, argv, clients, bench.window_s())
        loop = LOOPS[name]
        if not bench.has_loop(loop):
            raise Unavailable(f"this build of prony has no {loop}")
        argv, result = tools.prony(bench, server.url("mysql"), ["-f", script], clients,
                                   "-T", f"{seconds:.1f}s", "-j", 1, "--loop", loop)
        numbers = window.measure(bench, stub, argv, clients, bench.window_s(), ends=True)
        doc = bench.read_json(result)
        assert doc["loop"] == loop and not doc["errors"], (doc["loop"], doc["errors"])
        return numbers

    return measure


def run(bench):
    table = Table("The client's cost: `SELECT c FROM sbtest1 WHERE id=?` on the stub, MySQL's "
                  "protocol, one core each",
                  ["clients", "", "client CPU per statement (us)", "over sysbench's",
                   "statements/s", "saturated", "connected in (s)"])
    claims = []
    with PinnedStub(bench) as stub:
        for clients in bench.counts:
            names = [name for name in LOOPS if name != "prony threads" or clients <= THREADS_UP_TO]
            rounds = Rounds([*names, "sysbench"])
            bench.say(f"{clients} clients")
            rounds.run(bench.n_rounds(4 if clients <= 1000 else 1),
                       contest(bench, stub, clients), bench.say)
            bench.raw[f"sysbench {clients}"] = rounds.measured
            for name in rounds.names:
                if not rounds.has(name):
                    table.add(str(clients), name, rounds.absent[name], *[""] * 4)
                    continue
                ratio = (rounds.ratio(name, "sysbench", "us").show(2)
                         if rounds.has("sysbench") and name != "sysbench" else "")
                table.add(str(clients), name, rounds.value(name, "us").show(2), ratio,
                          f"{rounds.value(name, 'tps').median:,.0f}".replace(",", " "),
                          saturated(rounds, name),
                          rounds.value(name, "connect_s").show(3) if clients > 1 else "")
            if clients in RATIOS and rounds.has("prony ring-uring", "sysbench"):
                claims.append(at_most(f"stub, {clients} clients: client CPU per statement over "
                                      "sysbench's",
                                      rounds.ratio("prony ring-uring", "sysbench", "us"),
                                      RATIOS[clients], is_aim=True))
    return [table], claims
