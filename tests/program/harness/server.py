"""What private PostgreSQL and MariaDB servers have in common: one data directory per test process,
a UNIX socket in a directory of mode 0700, started and ended by pid."""
import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from harness.place import SERVER_NAME, private_dir, run_quietly, unprivileged, wait_until

# A directory with a data directory per engine, made once for several test processes.
TEMPLATES_NAME = "PRONY_TEST_TEMPLATES"


class Absent(Exception):
    """The server is not installed."""


class Server:
    name = ""          # also of the template
    users = ()         # to run as, when we are root
    stop_signal = signal.SIGTERM
    settings = {}      # for speed; a test may override them

    def __init__(self, place, data=None):
        self.place = place
        self.user = unprivileged(*self.users)
        self.dir = private_dir(place.dir, self.name + "-", self.user)
        self.data = data or self.dir / "data"
        self.log = self.dir / "log"
        self.process = None
        self.overrides = {}
        self.databases = []
        self.n_databases = 0

    # For the engines:

    def initialise(self, data):
        raise NotImplementedError

    def command(self, settings):
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def create_database(self, name):
        raise NotImplementedError

    def drop_database(self, name):
        raise NotImplementedError

    # Life.

    def as_user(self, argv, die_with_us=False):
        """The command line that runs argv as the server's user."""
        prefix = ["setpriv"]
        if self.user:
            prefix += ["--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid),
                       "--clear-groups"]
        if die_with_us:
            prefix += ["--pdeathsig", "KILL"]
        return [*(prefix if len(prefix) > 1 else []), *map(str, argv)]

    def environment(self):
        return {**self.place.environment(), SERVER_NAME: self.name, "HOME": str(self.dir),
                "TMPDIR": str(self.dir)}

    def tool(self, argv, user=True):
        """Runs one of the server's programs to its end."""
        return run_quietly(self.as_user(argv) if user else argv, env=self.environment(),
                           cwd=self.dir)

    def prepare(self):
        templates = os.environ.get(TEMPLATES_NAME)
        if not templates:
            try:
                self.initialise(self.data)
            except RuntimeError:
                shutil.rmtree(self.data, ignore_errors=True)
                raise
            return
        # The template belongs to the user of the servers, as the copy must.
        run_quietly(["cp", "-a", "--reflink=auto", Path(templates, self.name), self.data])

    def start(self, timeout_s=60):
        assert not self.process, f"{self.name} runs already"
        if not self.data.exists():
            self.prepare()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.as_user(self.command({**self.settings, **self.overrides}), die_with_us=True),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir,
                env=self.environment(), start_new_session=True)
        wait_until(lambda: self.is_ready() or self.process.poll() is not None, timeout_s)
        if self.process.poll() is not None or not self.is_ready():
            self.kill()
            raise RuntimeError(f"{self.name} did not start:\n{self.log_tail()}")

    def log_tail(self):
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self, signal_number=None, timeout_s=60):
        """In order, or as the signal tells."""
        if not self.process:
            return
        self.process.send_signal(signal_number or self.stop_signal)
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.name} did not stop:\n{self.log_tail()}") from None
        self.process = None

    def kill(self):
        """kill -9 of the server and its children, at once."""
        if not self.process:
            return
        for pid in self.own_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not self.own_pids(), 5)
        self.process = None

    def own_pids(self):
        """The server and its children. PostgreSQL's have sessions of their own and write their
        titles over their environment, but keep the working directory."""
        pids = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if Path(os.readlink(path / "cwd")) in (self.data, self.dir):
                    pids.append(int(path.name))
        return pids

    def restart(self, **overrides):
        """Again, with these settings instead of the usual ones; until the test ends."""
        self.stop()
        self.overrides = overrides
        self.start()

    @property
    def pid(self):
        return self.process.pid

    # For one test.

    def new_database(self):
        self.n_databases += 1
        name = f"t{self.n_databases}"
        self.create_database(name)
        self.databases.append(name)
        return name

    def begin_test(self):
        if not self.process:
            self.start()

    def end_test(self):
        if self.overrides:
            self.stop()
            self.overrides = {}
        if not self.process:
            self.start()
        while self.databases:
            self.drop_database(self.databases.pop())

    def release(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


def make_certificate(server, certificate, key):
    """One that its server has signed itself, for the name prony-test."""
    if not certificate.exists():
        server.tool(["openssl", "req", "-new", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                     "/CN=prony-test", "-out", certificate, "-keyout", key])
        key.chmod(0o600)
