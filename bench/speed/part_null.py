"""What prony itself costs: the load on an engine that answers at once."""
from speed.pairs import Spread
from speed.report import Table, at_most

ABOUT = "CPU of prony itself, on null"
NEEDS = []


def run(bench):
    n = 10**6 if bench.quick else 3 * 10**6
    costs = []
    for _ in range(bench.n_rounds(5)):
        _, doc = bench.prony_run("null:", "select-only", "-c", 1, "-t", n)
        cpu = doc["client_cpu"]
        assert cpu["statements"] == n, cpu
        costs.append({"user": cpu["user_s"] / n * 1e6, "sys": cpu["sys_s"] / n * 1e6})
    bench.raw["null"] = costs
    total = Spread(one["user"] + one["sys"] for one in costs)
    bench.say(f"{total.show(3)} us per transaction")
    table = Table("prony alone: `select-only` on `null:`, 1 client, CPU per transaction (us)",
                  ["user", "system", "total"])
    table.add(Spread(one["user"] for one in costs).show(3),
              Spread(one["sys"] for one in costs).show(3), total.show(3))
    return [table], [at_most("`select-only` on `null:`, 1 client: CPU per transaction", total, 1.5,
                             unit=" us")]
