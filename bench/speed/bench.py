"""What every part is given: the programs, a place to work in, and how much to do."""
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "program"))

# The private servers are those of the program tests.
from harness.mariadb import MariaDB
from harness.place import Place
from harness.postgres import Postgres

from speed import machine

__all__ = ["Bench", "MariaDB", "Postgres", "ROOT"]

# Else the engines' defaults, durability above all.
SETTINGS = {
    Postgres: {"max_connections": "200"},
    MariaDB: {"max-connections": "200"},
}


class Bench:
    def __init__(self, build, quick, counts, rounds):
        self.build = Path(build).resolve()
        self.prony = self.build / "src" / "cmd" / "prony"
        self.quick = quick
        self.counts = counts  # numbers of clients to try
        self.rounds = rounds  # None: what the part thinks right
        self.server_core, self.client_core = machine.cores()
        self.place = Place()
        self.dir = self.place.make("bench")
        self.start_s = time.monotonic()
        self.part = ""
        self.n_files = 0
        self.raw = {}  # name -> numbers, for --json
        self.servers = {}
        self.help = ""

    def seconds(self):
        return time.monotonic() - self.start_s

    def say(self, text):
        print(f"[{self.seconds():4.0f} s] {self.part}: {text}", file=sys.stderr, flush=True)

    def n_rounds(self, full, quick=1):
        return self.rounds or (quick if self.quick else full)

    def window_s(self):
        return 0.5 if self.quick else 1.2

    def has_loop(self, name):
        """Whether this prony knows the loop at all; the kernel may still refuse it."""
        if not self.help:
            self.help = subprocess.run([self.prony, "run", "--help"], capture_output=True,
                                       text=True, check=True).stdout
        return name in self.help

    def program(self, name):
        return self.build / "bench" / name

    def environment(self):
        return {**self.place.environment(), "PRONY_STORE": str(self.dir / "store.db")}

    def new_file(self, suffix):
        self.n_files += 1
        return self.dir / f"{self.n_files}{suffix}"

    def cost(self, argv, timeout_s=300):
        """Runs a program to its end: what it cost, and its output in out."""
        file = self.new_file(".cost")
        run = subprocess.run([str(self.program("cost")), str(file), *map(str, argv)],
                             capture_output=True, text=True, check=False, cwd=self.dir,
                             env=self.environment(), timeout=timeout_s)
        if run.returncode:
            raise RuntimeError(f"{' '.join(map(str, argv))}\nended with {run.returncode}:\n"
                               f"{run.stdout}{run.stderr}")
        return {**self.read_json(file), "out": run.stdout + run.stderr}

    @staticmethod
    def read_json(path):
        return json.loads(path.read_text(encoding="utf-8"))

    def prony_run(self, *args, timeout_s=300):
        """A whole `prony run`: (what it cost, its JSON document)."""
        file = self.new_file(".json")
        cost = self.cost([self.prony, "run", *args, "-q", "--json", file], timeout_s)
        return cost, self.read_json(file)

    def server(self, kind):
        """A private server with the engine's own defaults, made at the first call and kept to the
        end."""
        if kind not in self.servers:
            self.say(f"starting {kind.__name__}")
            made = kind(self.place)
            made.settings = SETTINGS[kind]
            made.start()
            self.servers[kind] = made
        return self.servers[kind]

    def release(self):
        for server in self.servers.values():
            server.release()
        self.place.remove()
