"""Do databases on virtual disks behave as on the disks they stand for? tpcb on PostgreSQL."""
import json
import re

from speed.pairs import Spread
from speed.report import Claim, Table, at_least
from storage.disks import flushes, let_servers_in, prony, volume

ABOUT = "tpcb on hard disk, log on SSD, SSD; commits against flushes and the probe"
NEEDS = []

SIZE = "size=1G"
HDD, SSD = f"vdisk:{SIZE},model=hdd-7200", f"vdisk:{SIZE},model=ssd-sata"
SETUPS = {"hard disk": f"data={HDD}", "log on SSD": f"data={HDD}&log={SSD}", "SSD": f"data={SSD}"}
CLIENTS = [1, 8]
SCALE = 8
BUFFERS = "shared_buffers=32MB"  # less than the data: pages are read, and written out
WITHIN = 0.15


def tpcb(bench, target, clients, seconds):
    """The whole document of a run."""
    _, doc = bench.prony_run(f"server:postgres?{target}", "tpcb", "-s", SCALE, "-c", clients, "-T",
                             seconds, "--warmup", "2s")
    return doc


def setups(bench):
    """tps of each set-up in rounds, and that they stand in the order of their hardware."""
    seconds = 5 if bench.quick else 20
    tps = {(name, clients): [] for name in SETUPS for clients in CLIENTS}
    for i in range(bench.n_rounds(3)):
        for name, places in SETUPS.items():
            for clients in CLIENTS:
                doc = tpcb(bench, f"{places}&{BUFFERS}", clients, seconds)
                tps[name, clients].append(doc["throughput"]["tps"])
        bench.say(f"round {i + 1}")
    table = Table(f"`tpcb`, scale {SCALE}, {BUFFERS}, on virtual disks: tps",
                  ["", *(f"{n} clients" for n in CLIENTS)])
    for name in SETUPS:
        table.add(name, *(Spread(tps[name, n]).show(0) for n in CLIENTS))
    claims = []
    for clients in CLIENTS:
        for slow, fast in (("hard disk", "log on SSD"), ("log on SSD", "SSD")):
            ratio = Spread(b / a for a, b in zip(tps[slow, clients], tps[fast, clients]))
            claims.append(Claim(f"`tpcb`, {clients} clients: tps of *{fast}* over *{slow}*",
                                ratio.show(2), "every round above 1", ratio.least > 1))
    return table, claims


def commits(bench):
    """The log on a hard disk of its own: a commit is a flush, and eight share one."""
    seconds = 5 if bench.quick else 20
    found = {}
    with volume(bench, "log", f"vdisk:{SIZE},model=hdd-7200") as log:
        said = prony(bench, "probe", f"@{log}")
        probe = float(re.search(r"^([\d ]+) flushes/s", said, re.M)[1].replace(" ", ""))
        bench.say(f"the probe says {probe:.0f} flushes/s")
        for clients in CLIENTS:
            before = flushes(bench, log)
            doc = tpcb(bench, f"data={SSD}&log=@{log}", clients, seconds)
            # All of the run, the filling of tables too, which flushes seldom.
            done = doc["transactions"]["done"]
            found[clients] = (doc["throughput"]["tps"], (flushes(bench, log) - before) / done)
            bench.say(f"{clients} clients: {found[clients][0]:.0f} tps, "
                      f"{found[clients][1]:.2f} flushes per commit")
    table = Table("The log on a hard disk of its own", ["clients", "tps", "flushes per commit"],
                  [f"`prony probe` of the disk before: {probe:.0f} flushes/s."])
    for clients, (tps, ratio) in found.items():
        table.add(clients, f"{tps:.0f}", f"{ratio:.2f}")
    alone, shared = found[1], found[8]
    return table, [
        Claim("log on a hard disk, 1 client: flushes per commit", f"{alone[1]:.2f}",
              f"1 within {WITHIN:.0%}", abs(alone[1] - 1) <= WITHIN),
        Claim("log on a hard disk, 1 client: tps over the probe's flushes/s",
              f"{alone[0] / probe:.2f}", f"1 within {WITHIN:.0%}",
              abs(alone[0] / probe - 1) <= WITHIN),
        at_least("log on a hard disk: tps of 8 clients over 1 (group commit)",
                 Spread([shared[0] / alone[0]]), 2.0),
    ]


def run(bench):
    let_servers_in(bench)
    tables, claims = zip(setups(bench), commits(bench))
    bench.raw["physics"] = json.loads(json.dumps([t.rows for t in tables]))
    return list(tables), [claim for some in claims for claim in some]
