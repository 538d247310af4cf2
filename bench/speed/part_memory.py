"""Memory does not grow with the number of transactions."""
from speed.pairs import Spread
from speed.report import Table, at_most

ABOUT = "peak memory after many transactions on null"
NEEDS = []


def run(bench):
    few, many = (10**5, 10**7) if bench.quick else (10**6, 10**8)
    table = Table("Peak resident memory on `null:`, `select-only`, 1 client",
                  ["transactions", "peak (MiB)", "duration (s)"])
    peaks = []
    for n in (few, many):
        cost, doc = bench.prony_run("null:", "select-only", "-c", 1, "-t", n)
        assert doc["transactions"]["done"] == n, doc["transactions"]
        peaks.append(cost["max_rss_kib"] / 1024)
        table.add(f"{n:,}".replace(",", " "), f"{peaks[-1]:.2f}", f"{doc['duration_s']:.1f}")
        bench.say(f"{n} transactions: {peaks[-1]:.2f} MiB")
    bench.raw["memory"] = dict(zip(("few_mib", "many_mib"), peaks))
    return [table], [at_most(f"peak memory after {many:.0e} transactions, over that after "
                             f"{few:.0e}".replace("e+0", "e"), Spread([peaks[1] - peaks[0]]), 1.0,
                             unit=" MiB")]
