"""A private PostgreSQL."""
import contextlib
import re
import shutil
import signal
import socket
from pathlib import Path

from harness.server import Absent, Server, make_certificate


def find_bindir():
    """The newest version that is installed; Debian keeps them out of PATH."""
    dirs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"),
                  key=lambda p: int(re.sub(r"\D", "", p.parts[4]) or 0))
    if dirs:
        return dirs[-1].parent
    found = shutil.which("postgres")
    if not found:
        raise Absent("PostgreSQL is not installed (package postgresql)")
    return Path(found).resolve().parent


class Postgres(Server):
    """Role prony is a superuser without a password; role secret needs its password."""

    name = "postgres"
    users = ("postgres",)
    stop_signal = signal.SIGINT  # "fast": does not wait for clients
    user_name = "prony"
    password = "geheim"
    settings = {
        "fsync": "off",  # a kill -9 loses nothing, for the kernel lives on
        "shared_buffers": "64MB",
        "max_connections": "100",
        "max_wal_size": "2GB",
        "log_min_messages": "warning",
    }

    def __init__(self, place, data=None):
        self.bindir = find_bindir()
        super().__init__(place, data)

    def initialise(self, data):
        self.tool([self.bindir / "initdb", "-D", data, "-U", self.user_name, "-E", "UTF8",
                   "--no-locale", "--auth=trust", "--no-sync", "--no-instructions"])
        rules = data / "pg_hba.conf"
        text = rules.read_text(encoding="utf-8")
        with open(rules, "w", encoding="utf-8") as out:  # in place: the owner stays
            out.write("local all secret scram-sha-256\n" + text)

    def command(self, settings):
        settings = {"listen_addresses": "", "unix_socket_directories": self.dir, **settings}
        options = [arg for key, value in settings.items() for arg in ("-c", f"{key}={value}")]
        return [self.bindir / "postgres", "-D", self.data, *options]

    def environment(self):
        """Also for psql, pgbench and the like."""
        return {**super().environment(), "PGPORT": str(self.overrides.get("port", 5432))}

    def start(self, timeout_s=60):
        # A new server would take the old one's file for its own word that it is ready.
        with contextlib.suppress(FileNotFoundError):
            (self.data / "postmaster.pid").unlink()
        super().start(timeout_s)
        if self.data == self.dir / "data" and not self.rows("postgres", "select 1 from pg_roles "
                                                            "where rolname = 'secret'"):
            self.rows("postgres", f"create role secret login superuser password '{self.password}'")

    def is_ready(self):
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() in ("ready", "standby")

    def rows(self, database, query):
        """All rows as lists of texts; NULL is None."""
        out = self.tool([self.bindir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-At", "-F",
                         "\x1f", "-R", "\x1e", "-P", "null=\x1d", "-h", self.dir, "-U",
                         self.user_name, "-d", database, "-c", query], user=False)
        out = out.removesuffix("\n")
        return [[None if v == "\x1d" else v for v in row.split("\x1f")]
                for row in out.split("\x1e")] if out else []

    def create_database(self, name):
        self.rows("postgres", f"create database {name}")

    def drop_database(self, name):
        self.rows("postgres", f"drop database if exists {name} with (force)")

    def url(self, database, user="prony", password=None, **params):
        words = {"host": self.dir, "user": user, "dbname": database, **params}
        if password is not None:
            words["password"] = password
        return "postgres:" + " ".join(f"{k}={v}" for k, v in words.items())

    def restart_with_tls(self):
        """On 127.0.0.1 too, which is where it speaks TLS; the parameters of a URL that checks the
        certificate. Until the test ends."""
        certificate, key = self.dir / "server.crt", self.dir / "server.key"
        make_certificate(self, certificate, key)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.restart(listen_addresses="127.0.0.1", port=port, ssl="on", ssl_cert_file=certificate,
                     ssl_key_file=key)
        return {"host": "127.0.0.1", "port": port, "sslmode": "verify-ca",
                "sslrootcert": certificate}

    def kill_clients(self, database, count=None):
        """Ends connections to the database, at random; returns how many."""
        limit = "" if count is None else f"order by random() limit {count}"
        return len(self.rows("postgres", "select pg_terminate_backend(pid) from (select pid from "
                             f"pg_stat_activity where datname = '{database}' {limit}) x"))

    def pgbench(self, *args):
        """Runs pgbench against this server; its output."""
        return self.tool([self.bindir / "pgbench", "-h", self.dir, "-U", self.user_name, *args],
                         user=False)

    @contextlib.contextmanager
    def standby(self):
        """A replica in recovery, which refuses to write; has all databases of now."""
        replica = Postgres(self.place)
        self.rows("postgres", "checkpoint")
        self.tool([self.bindir / "pg_basebackup", "-h", self.dir, "-U", self.user_name, "-D",
                   self.dir / "standby", "-R", "-c", "fast", "-X", "stream", "--no-sync"])
        replica.data = self.dir / "standby"
        replica.start()
        try:
            yield replica
        finally:
            replica.stop()
            shutil.rmtree(replica.data)
            replica.release()
