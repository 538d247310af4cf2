"""One database to run against, the same to a test whatever the engine. The fixture `target` runs a
test once for each of ENGINES."""
import contextlib
import sqlite3

ENGINES = ["sqlite", "postgres", "mariadb"]
SERVER_ENGINES = ENGINES[1:]

# Ways of one engine that differ in what they can do: parameters of the target.
KINDS = {
    "sqlite": ("sqlite", {}),
    "sqlite-wal": ("sqlite", {"journal_mode": "wal"}),
    "postgres": ("postgres", {}),
    "innodb": ("mariadb", {}),
    "myisam": ("mariadb", {"engine": "myisam"}),
    "aria": ("mariadb", {"engine": "aria"}),
}
WITH_TRANSACTIONS = ["sqlite", "sqlite-wal", "postgres", "innodb"]


class SqliteTarget:
    engine = "sqlite"

    def __init__(self, path, params=None):
        self.path = path
        self.params = params or {}

    def url(self, **params):
        query = "&".join(f"{k}={v}" for k, v in {**self.params, **params}.items())
        return f"sqlite:{self.path}" + (f"?{query}" if query else "")

    def rows(self, query):
        """All rows as lists of texts; NULL is None."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as db:
            rows = db.execute(query).fetchall()
        return [[None if v is None else str(v) for v in row] for row in rows]


class ServerTarget:
    def __init__(self, engine, server, params=None):
        self.engine = engine
        self.server = server
        self.database = server.new_database()
        self.params = params or {}

    def url(self, **params):
        return self.server.url(self.database, **{**self.params, **params})

    def rows(self, query):
        return self.server.rows(self.database, query)


def value(target, query):
    """The one value of a query, as a number where it is one."""
    text = target.rows(query)[0][0]
    try:
        return int(text)
    except (TypeError, ValueError):
        return text


def balances(target):
    """What must agree after any number of whole tpcb transactions: the sums of the three balances
    and of the history's deltas; and the number of history rows."""
    sums = [value(target, f"select coalesce(sum({column}), 0) from {table}")
            for table, column in (("pgbench_accounts", "abalance"), ("pgbench_tellers", "tbalance"),
                                  ("pgbench_branches", "bbalance"), ("pgbench_history", "delta"))]
    return sums, value(target, "select count(*) from pgbench_history")
