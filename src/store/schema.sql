-- Version 1 of the results file. docs/store.md says what each column means; a change here is a new
-- migration step in store.c, a test that migrates the old version, and a line there.

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    failure TEXT,
    started_utc TEXT NOT NULL,
    started_real_ns INTEGER NOT NULL,
    ended_real_ns INTEGER NOT NULL,
    started_mono_ns INTEGER NOT NULL,
    ended_mono_ns INTEGER NOT NULL,
    boot_id TEXT,
    prony_version TEXT NOT NULL,
    command TEXT,
    label TEXT,
    note TEXT,
    target TEXT NOT NULL,
    engine TEXT NOT NULL,
    engine_version TEXT,
    workload TEXT NOT NULL,
    workload_hash TEXT,
    scale INTEGER,
    clients INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    loop TEXT NOT NULL,
    protocol TEXT NOT NULL,
    seed TEXT NOT NULL,
    rate_tps REAL NOT NULL,
    duration_s REAL NOT NULL,
    warmup_s REAL NOT NULL,
    steady INTEGER NOT NULL,
    steady_why TEXT,
    planned INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    backlog INTEGER NOT NULL,
    in_flight INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    window_s REAL NOT NULL,
    window_done INTEGER NOT NULL,
    tps REAL NOT NULL,
    latency_mean_us REAL,
    latency_sd_us REAL,
    latency_p50_us REAL,
    latency_p90_us REAL,
    latency_p99_us REAL,
    latency_p999_us REAL,
    latency_max_us REAL,
    latency_histogram BLOB,
    service_histogram BLOB,
    given_histogram BLOB,
    lock_wait_ns INTEGER NOT NULL,
    reconnects INTEGER NOT NULL,
    reconnect_attempts INTEGER NOT NULL,
    outage_s REAL NOT NULL,
    cpu_user_s REAL NOT NULL,
    cpu_sys_s REAL NOT NULL,
    cpu_us_per_statement REAL NOT NULL,
    statements_sent INTEGER NOT NULL
);
CREATE INDEX runs_label ON runs (label, id) WHERE label IS NOT NULL;

CREATE TABLE series (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    t_s INTEGER NOT NULL,
    done INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    p50_us REAL,
    p99_us REAL,
    max_us REAL,
    latency_histogram BLOB,
    PRIMARY KEY (run_id, t_s)
) WITHOUT ROWID;

CREATE TABLE statements (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    script TEXT NOT NULL,
    sql TEXT NOT NULL,
    count INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    mean_us REAL,
    sd_us REAL,
    min_us REAL,
    p50_us REAL,
    p99_us REAL,
    max_us REAL,
    sum_ns REAL NOT NULL,
    sum_sq REAL NOT NULL,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

CREATE TABLE slowest (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    client INTEGER NOT NULL,
    number INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    script INTEGER NOT NULL,
    PRIMARY KEY (run_id, rank)
) WITHOUT ROWID;

CREATE TABLE clients (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    client INTEGER NOT NULL,
    done INTEGER NOT NULL,
    PRIMARY KEY (run_id, client)
) WITHOUT ROWID;

CREATE TABLE outages (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    from_s REAL NOT NULL,
    to_s REAL NOT NULL
);
CREATE INDEX outages_run ON outages (run_id);

CREATE TABLE errors (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    class TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (run_id, class)
) WITHOUT ROWID;

CREATE TABLE warnings (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

CREATE TABLE options (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

CREATE TABLE counters (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;

CREATE TABLE environment (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (run_id, position)
) WITHOUT ROWID;
