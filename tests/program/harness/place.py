"""Where tests leave their traces, and the search for traces they should not have left.

Everything a test process starts inherits TOKEN_NAME in its environment, and every file lies in one
directory; so what stays behind can be found and named.
"""
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
TOKEN_NAME = "PRONY_TEST_TOKEN"
SERVER_NAME = "PRONY_TEST_SERVER"
PREFIX = "prony-test-"


def wait_until(question, timeout_s, pause_s=0.01):
    """The first true answer, or the last false one when the time is over."""
    end = time.monotonic() + timeout_s
    while True:
        answer = question()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(pause_s)


@functools.cache
def ahead_of_others():
    """A prefix to run programs under that must not wait for the processor while other programs run;
    none where we may not."""
    prefix = ("chrt", "--fifo", "1")
    try:
        return prefix if subprocess.run([*prefix, "true"], capture_output=True,
                                        check=False).returncode == 0 else ()
    except FileNotFoundError:
        return ()


def unprivileged(*names):
    """A user to run servers as, for they refuse root; None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in (*names, "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user to run a server as")


def private_dir(parent, name, user=None):
    """A new directory of mode 0700 with a short path: a socket's path may have 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix=name, dir=parent))
    if user:
        os.chown(path, user.pw_uid, user.pw_gid)
    return path


def clean_dead():
    """Removes the directories of test processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        pid = path.name[len(PREFIX):].split("-")[0]
        if path.stat().st_uid == os.geteuid() and pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(path, ignore_errors=True)


class Place:
    """The directory of one test process."""

    def __init__(self):
        clean_dead()
        self.dir = private_dir(tempfile.gettempdir(), f"{PREFIX}{os.getpid()}-")
        os.chmod(self.dir, 0o711)  # servers run as other users; their own directories are private
        self.token = self.dir.name
        self.runtime = self.make("runtime")  # XDG_RUNTIME_DIR, where prony's registry lies
        self.state = self.make("state")      # PRONY_STATE_DIR, where kept volumes are listed
        self.temp = self.make("tmp")         # TMPDIR of prony
        self.home = self.make("home")        # HOME of prony: no password or option files
        self.reports = self.make("reports")  # of the sanitizers
        self.n_tests = 0

    def make(self, name):
        path = self.dir / name
        path.mkdir(mode=0o700)
        return path

    def test_dir(self):
        self.n_tests += 1
        return self.make(f"t{self.n_tests}")

    def remove(self):
        shutil.rmtree(self.dir)

    def processes(self, servers=False):
        """(pid, command line) of what was started from here and still runs."""
        want = f"{TOKEN_NAME}={self.token}".encode()
        found = []
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environ = Path(entry.path, "environ").read_bytes().split(b"\0")
                state = Path(entry.path, "stat").read_text(errors="replace").rpartition(")")[2]
                command = Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(
                    errors="replace").strip()
            except OSError:
                continue
            is_server = any(line.startswith(SERVER_NAME.encode() + b"=") for line in environ)
            if want in environ and is_server == servers and state.split()[0] not in "ZX":
                found.append((int(entry.name), command))
        return found

    def traces_of_test(self, wait_s=60):
        """What a test left, as lines; removed here, so that the next test is not blamed."""
        wait_until(lambda: not self.processes(), wait_s)
        lines = []
        for pid, command in self.processes():
            lines.append(f"process {pid} still runs: {command}")
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for where in (self.runtime, self.state, self.temp):
            for path in sorted(where.rglob("*")):
                if path.is_file() or path.is_symlink():
                    lines.append(f"file {path} stays")
                    path.unlink()
        lines += self.mounts()
        return lines

    def mounts(self):
        """What is mounted or attached here, as lines; taken away, so that it is told once."""
        lines = []
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            point = line.split()[4]
            if point.startswith(str(self.dir) + "/"):
                lines.append(f"{point} is still mounted")
                subprocess.run(["umount", point], capture_output=True, check=False, timeout=60)
        for path in Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                backing = path.read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if backing.startswith(str(self.dir) + "/"):
                device = f"/dev/{path.parts[3]}"
                lines.append(f"{device} is still attached to {backing}")
                subprocess.run(["losetup", "-d", device], capture_output=True, check=False,
                               timeout=60)
        return lines

    def sanitizer_reports(self):
        """Texts of new reports, which are removed."""
        texts = []
        for path in sorted(self.reports.iterdir()):
            texts.append(path.read_text(errors="replace"))
            path.unlink()
        return texts

    def environment(self):
        """For whatever is started from here: nothing of the caller's that steers databases."""
        dropped = ("PG", "MYSQL", "MARIADB", "PRONY_", "XDG_", "ASAN", "UBSAN", "LSAN")
        env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        env.update({
            TOKEN_NAME: self.token,
            "HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "PRONY_STATE_DIR": str(self.state),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        })
        return env


def run_quietly(argv, **kwargs):
    """For the tools of the servers; what they said is in the error."""
    run = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False,
                         stdin=subprocess.DEVNULL, **kwargs)
    if run.returncode:
        raise RuntimeError(f"{argv[0]} failed with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout
