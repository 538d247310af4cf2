"""A private MariaDB."""
import contextlib
import re
import shutil
import socket

from harness.server import Absent, Server, make_certificate


class MariaDB(Server):
    """User prony may do all but write to a read-only server, without a password; user secret needs
    its password."""

    name = "mariadb"
    users = ("mysql",)
    user_name = "prony"
    password = "geheim"
    settings = {
        "debug-no-sync": "1",  # a kill -9 loses nothing, for the kernel lives on
        "innodb-flush-log-at-trx-commit": "2",
        "innodb-buffer-pool-size": "64M",
        "innodb-log-file-size": "64M",
        "innodb-fast-shutdown": "1",
        "max-connections": "151",
        "character-set-server": "utf8mb4",
    }

    def __init__(self, place, data=None):
        self.program = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if not self.program:
            raise Absent("MariaDB is not installed (package mariadb-server)")
        super().__init__(place, data)
        self.socket = self.dir / "socket"
        self.certificate = self.dir / "server.crt"
        self.init_file = self.dir / "init.sql"
        self.init_file.write_text(
            "CREATE USER IF NOT EXISTS prony@localhost;\n"
            "GRANT ALL ON *.* TO prony@localhost;\n"
            "REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM prony@localhost;\n"
            f"CREATE USER IF NOT EXISTS secret@localhost IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO secret@localhost;\n", encoding="utf-8")
        self.init_file.chmod(0o644)

    def initialise(self, data):
        self.tool(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db",
                   "--auth-root-authentication-method=normal", "--innodb-log-file-size=4M",
                   "--debug-no-sync"])
        if not (data / "mysql" / "db.frm").exists():
            raise RuntimeError("mariadb-install-db made no system tables")

    def command(self, settings):
        options = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
        return [self.program, "--no-defaults", f"--datadir={self.data}",
                f"--socket={self.socket}", f"--pid-file={self.dir}/pid", "--skip-networking",
                f"--init-file={self.init_file}", *options]

    def start(self, timeout_s=60):
        with contextlib.suppress(FileNotFoundError):
            self.socket.unlink()
        super().start(timeout_s)

    def is_ready(self):
        """The server greets only when it takes connections."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            try:
                sock.connect(str(self.socket))
                return len(sock.recv(5)) > 4
            except OSError:
                return False

    def restart_with_tls(self):
        """Its own certificate stands in certificate. Until the test ends."""
        make_certificate(self, self.certificate, self.dir / "server.key")
        self.restart(ssl_cert=self.certificate, ssl_key=self.dir / "server.key")

    def rows(self, database, query, user="root"):
        """All rows as lists of texts; NULL is None, also where the text is NULL."""
        argv = ["mariadb", "--no-defaults", "--default-character-set=utf8mb4",
                f"--socket={self.socket}", f"--user={user}", "--batch", "--skip-column-names",
                "--execute", query]
        out = self.tool([*argv, database] if database else argv, user=False)
        return [[None if v == "NULL" else unescape(v) for v in line.split("\t")]
                for line in out.splitlines()]

    def create_database(self, name):
        self.rows(None, f"CREATE DATABASE {name}")

    def drop_database(self, name):
        self.rows(None, f"DROP DATABASE IF EXISTS {name}")

    def url(self, database, user="prony", password=None, **params):
        login = user if password is None else f"{user}:{password}"
        query = "&".join(f"{k}={v}" for k, v in {"socket": self.socket, **params}.items())
        return f"mysql://{login}@localhost/{database}?{query}"

    def kill_clients(self, database, count=None):
        """Ends connections to the database, at random; returns how many."""
        limit = "" if count is None else f"ORDER BY RAND() LIMIT {count}"
        ids = self.rows(None, "SELECT id FROM information_schema.processlist "
                        f"WHERE db = '{database}' AND id <> connection_id() {limit}")
        killed = 0
        for (number,) in ids:
            with contextlib.suppress(RuntimeError):  # it has just gone by itself
                self.rows(None, f"KILL CONNECTION {number}")
                killed += 1
        return killed

    @contextlib.contextmanager
    def variable(self, name, value):
        """SET GLOBAL for a while."""
        before = self.rows(None, f"SELECT @@GLOBAL.{name}")[0][0]
        self.rows(None, f"SET GLOBAL {name} = {value}")
        try:
            yield
        finally:
            self.rows(None, f"SET GLOBAL {name} = {before}")


def unescape(value):
    """The client's batch mode writes tab, newline, NUL and backslash as \\t, \\n, \\0, \\\\."""
    return re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n", "0": "\0"}.get(m[1], m[1]), value)
