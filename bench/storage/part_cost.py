"""What a virtual disk costs that has no speed of its own: pgbench on it and on a plain loop file."""
import os
from pathlib import Path

from harness.place import unprivileged
from speed.bench import Postgres
from speed.pairs import Rounds
from speed.report import Table, at_least
from storage.disks import let_servers_in, volume

ABOUT = "pgbench on a virtual disk without a model against a loop file with direct I/O"
NEEDS = ["pgbench"]

KINDS = {"vdisk": "vdisk:size=2G,model=none", "loop": "loop:size=2G"}
CLIENTS = 8
SCALE = 10
BOUND = 0.80


def server_on(bench, point):
    """A server whose data lies on a volume, with the engine's defaults."""
    user = unprivileged(*Postgres.users)
    where = Path(point, "data")
    os.mkdir(where, 0o700)
    if user:
        os.chown(where, user.pw_uid, user.pw_gid)
    server = Postgres(bench.place, data=where)
    server.settings = {}
    server.initialise(server.data)
    return server


def measure(bench, servers):
    def tps(name):
        server = servers[name]
        server.start()
        try:
            out = server.pgbench("-n", "-c", str(CLIENTS), "-j", "1", "-T",
                                 "3" if bench.quick else "10", "-M", "prepared", "postgres")
        finally:
            server.stop()
        return {"tps": float(out.split("tps = ")[1].split()[0])}

    return tps


def run(bench):
    let_servers_in(bench)
    rounds = Rounds(KINDS)
    with volume(bench, "a", KINDS["vdisk"]) as a, volume(bench, "b", KINDS["loop"]) as b:
        servers = {name: server_on(bench, f"/run/prony-volumes/{v}")
                   for name, v in (("vdisk", a), ("loop", b))}
        for server in servers.values():
            server.start()
            server.pgbench("-i", "-q", "-s", str(SCALE), "postgres")
            server.stop()
        rounds.run(bench.n_rounds(6), measure(bench, servers), bench.say)
        for server in servers.values():
            server.release()
    table = Table(f"`pgbench`, scale {SCALE}, {CLIENTS} clients, durable", ["", "tps"])
    for name, text in KINDS.items():
        table.add(f"`{text}`", rounds.value(name, "tps").show(0))
    return [table], [at_least("pgbench on a virtual disk without a model over a loop file with direct "
                              "I/O: tps", rounds.ratio("vdisk", "loop", "tps"), BOUND)]
