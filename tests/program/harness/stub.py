"""The stub server of bench/: answers like PostgreSQL and MariaDB without a database, and does wrong
when told to. It is built beside prony.

    with Stub(place, "--delay", "fixed:2ms") as stub:
        ... stub.url("postgres") ...
    stub.record["delay_us"]["p99"]   what it really did
"""
import json
import shutil
import signal
import struct
import subprocess
from pathlib import Path

from harness.place import SERVER_NAME, private_dir, wait_until
from harness.runner import find_binary

COUNTERS = ("statements", "sessions", "sessions_total", "rise_ns", "ready_ns")


class Stub:
    user_name = "prony"
    database = "prony"

    def __init__(self, place, *options, prefix=(), binary=None):
        self.place = place
        self.options = [str(option) for option in options]
        self.prefix = [str(word) for word in prefix]
        self.binary = Path(binary) if binary else find_binary().parents[2] / "bench" / "stub"
        self.dir = private_dir(place.dir, "stub-")
        self.postgres_socket = self.dir / ".s.PGSQL.5432"
        self.mysql_socket = self.dir / "mysql"
        self.process = None
        self.record = None  # after the end

    def start(self):
        """May be called again after stop or kill."""
        assert not self.process
        with open(self.dir / "log", "wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, str(self.binary), "--postgres", str(self.postgres_socket),
                 "--mysql", str(self.mysql_socket), "--record", str(self.dir / "record"),
                 "--counters", str(self.dir / "counters"), *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**self.place.environment(), SERVER_NAME: "stub"})
        wait_until(lambda: self.log().startswith("ready") or self.process.poll() is not None, 20)
        if not self.log().startswith("ready"):
            log = self.log()
            self.kill()
            raise RuntimeError(f"the stub did not start: {log}")
        return self

    def log(self):
        return (self.dir / "log").read_text(errors="replace")

    def stop(self):
        """Ends it and reads what it has done."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(20)
            self.process = None
            assert status == 0, f"the stub ended with {status}: {self.log()}"
            self.record = json.loads((self.dir / "record").read_text(encoding="utf-8"))
        return self.record

    def release(self):
        self.stop()
        shutil.rmtree(self.dir)

    def kill(self):
        """As kill -9 of a server: sessions are gone, and there is no record."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind:
            self.kill()
        else:
            self.stop()

    @property
    def pid(self):
        return self.process.pid

    def counters(self):
        """What it counts while it runs; times are CLOCK_MONOTONIC."""
        data = (self.dir / "counters").read_bytes()
        return dict(zip(COUNTERS, struct.unpack(f"={len(COUNTERS)}Q", data)))

    def url(self, engine):
        if engine == "postgres":
            return f"postgres:host={self.dir} user={self.user_name} dbname={self.database}"
        return f"mysql://{self.user_name}@localhost/{self.database}?socket={self.mysql_socket}"
