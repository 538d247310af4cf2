"""What every result must keep to, whatever was measured, and how tests read one."""

LATENCY = ["count", "mean", "sd", "min", "p50", "p90", "p95", "p99", "p999", "p9999", "max"]
QUANTILES = LATENCY[4:10]
COUNTS = ["planned", "done", "failed", "skipped", "unknown", "backlog", "in_flight", "retried",
          "retries"]

# Keys of the document and of its parts, with the types that are allowed.
NUMBER = (int, float)
TOP = {
    "schema": str, "status": str, "failure": (str, type(None)), "run_id": int, "uuid": str,
    "label": (str, type(None)), "note": (str, type(None)),
    "block": (int, type(None)), "prony_version": str, "command": str,
    "started_utc": str, "target": str, "engine": dict, "workload": dict, "clients": int,
    "threads": int, "loop": str, "protocol": str, "pipeline": str,
    "seed": int,
    "rate_tps": (int, float, type(None)), "options": dict, "duration_s": NUMBER,
    "warmup_s": NUMBER, "window_s": NUMBER, "steady": bool, "steady_why": (str, type(None)),
    "transactions": dict, "errors": dict, "throughput": dict, "latency_us": dict,
    "lock_wait_s": NUMBER, "statements": list, "series": list, "slowest": list,
    "events": list, "done_by_client": list, "connections": dict, "client_cpu": dict,
    "limit": (dict, type(None)), "watch": list, "counters": dict, "warnings": list,
    "environment": dict,
}
PARTS = {
    "engine": ["name", "version"], "workload": ["name", "hash", "scale"], "transactions": COUNTS,
    "throughput": ["tps", "transactions"], "latency_us": [*LATENCY, "histogram"],
    "connections": ["reconnects", "attempts", "outage_s", "outages"],
    "client_cpu": ["user_s", "sys_s", "us_per_statement", "statements"],
}
ITEMS = {
    "statements": ["script", "sql", "count", "failed", "rows", "mean_us", "p50_us", "p99_us",
                   "max_us"],
    "series": ["t_s", "tps", "p50_us", "p99_us", "max_us", "errors"],
    "slowest": ["client", "number", "end_s", "latency_us", "script"],
    "events": ["what", "outcome", "at_s", "from_s", "to_s", "tps_before", "tps_during",
               "tps_after"],
    "warnings": ["id", "text"], "watch": ["subject", "name", "values"],
}
ENVIRONMENT = ["host.kernel", "host.os", "host.cpu_model", "host.cpus", "host.memory_bytes",
               "host.clocksource", "data.path", "store.path", "store.filesystem",
               "store.mount_options"]


def check_document(doc):
    """Complete, of the right types, and its numbers agree with each other."""
    for key, kind in TOP.items():
        assert key in doc, key
        assert isinstance(doc[key], kind), f"{key}: {doc[key]!r}"
    unknown = set(doc) - set(TOP) - {"service_us", "given_delay_us"}
    assert not unknown, f"not in docs/json.md: {unknown}"
    for key, names in PARTS.items():
        assert set(doc[key]) == set(names), key
    for key, names in ITEMS.items():
        for item in doc[key]:
            assert set(item) == set(names), f"{key}: {item}"
    assert doc["schema"] == "prony.run/1"
    assert doc["status"] in ("done", "interrupted", "failed")
    assert (doc["failure"] is not None) == (doc["status"] == "failed")
    assert ("service_us" in doc) == (doc["rate_tps"] is not None)
    check_counts(doc)
    for key in ("latency_us", "service_us", "given_delay_us"):
        if key in doc:
            check_latency(doc[key])
    check_series(doc)
    check_environment(doc)


def check_counts(doc):
    n = doc["transactions"]
    assert all(isinstance(n[key], int) and n[key] >= 0 for key in COUNTS), n
    assert n["planned"] == (n["done"] + n["failed"] + n["skipped"] + n["unknown"] + n["backlog"] +
                            n["in_flight"]), n
    assert n["retried"] <= n["retries"]
    assert n["retried"] <= n["planned"] - n["backlog"]
    assert len(doc["done_by_client"]) == doc["clients"]
    assert sum(doc["done_by_client"]) == n["done"]
    assert all(isinstance(k, int) and k > 0 for k in doc["errors"].values()), doc["errors"]
    assert doc["throughput"]["transactions"] == doc["latency_us"]["count"] <= n["done"]
    tps = doc["throughput"]["tps"]
    assert near(tps * doc["window_s"], doc["throughput"]["transactions"], 1e-4, tps * 1e-6 + 0.01)
    assert near(doc["window_s"], doc["duration_s"] - doc["warmup_s"], 0, 1e-5)
    in_window = sum(item["count"] for item in doc["statements"])
    assert in_window <= doc["client_cpu"]["statements"]
    assert len(doc["slowest"]) == min(1000, n["done"])
    latencies = [item["latency_us"] for item in doc["slowest"]]
    assert latencies == sorted(latencies, reverse=True)


def check_latency(latency):
    assert sum(count for _, _, count in latency["histogram"]) == latency["count"]
    if latency["count"] == 0:
        assert all(latency[key] is None for key in LATENCY[1:])
        return
    values = [latency[key] for key in ("min", *QUANTILES, "max")]
    assert values == sorted(values), values
    assert latency["min"] <= latency["mean"] <= latency["max"]
    for low, high, count in latency["histogram"]:
        assert count > 0 and low <= high  # both ends belong to it
        assert low < 1 or high / low <= 1.01


def check_series(doc):
    seconds = [item["t_s"] for item in doc["series"]]
    assert seconds == sorted(set(seconds))
    assert not seconds or seconds[-1] < doc["duration_s"]
    done = sum(item["tps"] * min(1, doc["duration_s"] - item["t_s"]) for item in doc["series"]
               if item["t_s"] >= doc["warmup_s"])
    assert near(done, doc["throughput"]["transactions"], 1e-3, 1)


def check_environment(doc):
    for key, value in doc["environment"].items():
        for text in value if isinstance(value, list) else [value]:
            assert text, f"{key} is empty"
            assert text != "unknown: ", f"{key} has no reason"
    for key in ENVIRONMENT:
        assert key in doc["environment"], key
    for place in ("data", "store"):  # the stack under it, or why it is not known
        if ("unknown" not in doc["environment"][f"{place}.path"] and
                doc["environment"][f"{place}.filesystem"] not in ("tmpfs", "ramfs")):
            assert (f"{place}.device" in doc["environment"] or
                    f"{place}.device.0.name" in doc["environment"]), place
    for warning in doc["warnings"]:
        assert warning["id"] and len(warning["text"]) > 20, warning


def near(a, b, share, more=0.0):
    """a is b, give or take a share of b and something more."""
    return abs(a - b) <= abs(b) * share + more


def tps_at(doc, second):
    """Throughput of a second; seconds without events have no row."""
    return next((item["tps"] for item in doc["series"] if item["t_s"] == second), 0)


def share_above(latency, limit_us):
    """How many lie above the limit, by the histogram."""
    return sum(count for low, _, count in latency["histogram"] if low >= limit_us)


def warning_ids(doc):
    return {warning["id"] for warning in doc["warnings"]}
