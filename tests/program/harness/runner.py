"""Runs prony as a user would, each test in a directory of its own."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import loops
from harness.place import REPO, wait_until

BINARY_NAME = "PRONY_BINARY"

# prony ends with a status of its own; these mean that it fell over.
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
           signal.SIGTRAP}

SANITIZER_STATUS = 99


def find_binary():
    path = Path(os.environ.get(BINARY_NAME) or REPO / "build" / "src" / "cmd" / "prony")
    return path if path.is_absolute() else REPO / path


class Result:
    """What a run of prony came to. json is the document of --json, or None."""

    def __init__(self, argv, status, out, err, seconds):
        self.argv = argv
        self.status = status
        self.out = out
        self.err = err
        self.seconds = seconds
        self.json = None

    def __repr__(self):
        return (f"$ {' '.join(self.argv)}\nstatus {self.status} after {self.seconds:.2f} s\n"
                f"--- stdout\n{self.out}\n--- stderr\n{self.err}")


def document_of(args, directory):
    """The file that `run ARGS` writes, or None."""
    if args[:1] != ["run"] or "--json" not in args[:-1]:
        return None
    return directory / args[args.index("--json") + 1]


def written_ns(path):
    return path.stat().st_mtime_ns if path and path.is_file() else None


class Running:
    """A prony that was started and not yet waited for."""

    def __init__(self, runner, argv, args, process, out, err):
        self.runner = runner
        self.argv = argv
        self.args = args  # of prony itself
        self.process = process
        self.out = out
        self.err = err
        self.start_s = time.monotonic()
        self.document = document_of(args, runner.dir)
        self.older = written_ns(self.document)

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def interrupt(self):
        """As Ctrl-C does."""
        self.signal(signal.SIGINT)

    def kill(self):
        self.process.kill()

    def seen(self, text, timeout_s=120):
        """Waits until text stands in stdout or stderr."""
        def question():
            return any(text in path.read_text(errors="replace") for path in (self.out, self.err))
        assert wait_until(question, timeout_s), f"{text!r} was not seen:\n{self.peek()}"

    def peek(self):
        return self.out.read_text(errors="replace") + self.err.read_text(errors="replace")

    def wait(self, timeout_s=240):
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"did not end within {timeout_s} s: {' '.join(self.argv)}\n"
                                 f"{self.peek()}") from None
        result = Result(self.argv, status, self.out.read_text(errors="surrogateescape"),
                        self.err.read_text(errors="surrogateescape"),
                        time.monotonic() - self.start_s)
        self.runner.judge(result)
        if status in (0, 1):  # else there is no document
            self.runner.judge_loop(self)
        return result


class Prony:
    """The fixture `prony`. Its directory is the working directory of every run."""

    def __init__(self, place, directory):
        self.place = place
        self.binary = find_binary()
        self.dir = directory
        self.store = directory / "store.db"
        self.running = []
        self.n_runs = 0
        self.loop = loops.FORCED  # of loads on servers; None: as prony chooses
        self.other_loop = None    # what must come out of it, where that is another

    @property
    def is_sanitized(self):
        """Built with sanitizers: speed and memory are not what they are."""
        return b"__asan_init" in self.binary.read_bytes()

    def environment(self, extra=None):
        reports = self.place.reports / "report"
        suppressions = REPO / "tools" / "lsan.supp"
        env = {
            **self.place.environment(),
            "PRONY_STORE": str(self.store),
            "ASAN_OPTIONS": f"detect_leaks=1:exitcode={SANITIZER_STATUS}:log_path={reports}:"
                            "detect_stack_use_after_return=1:strict_string_checks=1",
            "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:exitcode={SANITIZER_STATUS}:"
                             f"log_path={reports}",
            "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0",
        }
        for name, value in (extra or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = str(value)
        return env

    def start(self, *args, env=None, cwd=None, stdin=subprocess.DEVNULL, prefix=()):
        """Starts prony in the background; the test must wait for it. prefix runs it under another
        program, such as ("prlimit", "--fsize=1000000")."""
        self.n_runs += 1
        args = loops.with_loop([str(arg) for arg in args], self.loop)
        argv = [*map(str, prefix), str(self.binary), *args]
        out = self.dir / f"run{self.n_runs}.out"
        err = self.dir / f"run{self.n_runs}.err"
        with open(out, "wb") as out_file, open(err, "wb") as err_file:
            process = subprocess.Popen(argv, stdin=stdin, stdout=out_file, stderr=err_file,
                                       cwd=cwd or self.dir, env=self.environment(env))
        running = Running(self, argv, args, process, out, err)
        self.running.append(running)
        return running

    def run(self, *args, timeout_s=240, input_text=None, **kwargs):
        """Runs prony to its end, whatever its status."""
        if input_text is None:
            return self.start(*args, **kwargs).wait(timeout_s)
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "w", encoding="utf-8") as pipe:
            pipe.write(input_text)  # up to a pipe's buffer
        try:
            return self.start(*args, stdin=read_end, **kwargs).wait(timeout_s)
        finally:
            os.close(read_end)

    def good(self, *args, **kwargs):
        """As run; the status must be 0."""
        result = self.run(*args, **kwargs)
        assert result.status == 0, result
        return result

    def measure(self, *args, status=0, **kwargs):
        """`prony run ARGS --json FILE`; the document stands in json of the result."""
        path = self.dir / f"result{self.n_runs + 1}.json"
        result = self.run("run", *args, "--json", path, **kwargs)
        assert result.status == status, result
        if path.exists():
            result.json = json.loads(path.read_text(encoding="utf-8"))
        return result

    def document(self, name):
        """What --json wrote."""
        return json.loads((self.dir / name).read_text(encoding="utf-8"))

    def files(self):
        """What lies in the test's directory, but for what the runs said."""
        own = re.compile(r"run\d+\.(out|err)")
        return sorted(str(path.relative_to(self.dir)) for path in self.dir.rglob("*")
                      if not own.fullmatch(path.name))

    def refused(self, *args, status=2, says=(), **kwargs):
        """The run must end at once with this status, one short line on stderr that holds all the
        words of says, and nothing made."""
        before = self.files()
        result = self.run(*args, **kwargs)
        assert result.status == status, result
        assert result.err.startswith("prony: "), result
        assert result.err.count("\n") == 1 and result.err.endswith("\n"), result
        assert len(result.err) < 500, result
        for word in (says,) if isinstance(says, str) else says:
            assert word in result.err, f"{word!r} is not in:\n{result}"
        made = set(self.files()) - set(before)
        assert not made, f"{made} were made:\n{result}"
        return result

    def judge(self, result):
        """No run of any test may crash or be reported by a sanitizer."""
        reports = self.place.sanitizer_reports()
        assert not reports, f"{result}\n" + "\n".join(reports)
        assert result.status != SANITIZER_STATUS, result
        assert -result.status not in CRASHES, result

    def judge_loop(self, running):
        """Every document tells what drove the clients, and it is what should have."""
        if written_ns(running.document) == running.older:
            return
        was = json.loads(running.document.read_text(encoding="utf-8"))["loop"]
        should = self.other_loop or loops.expected(running.args, self.binary)
        assert was == should, (was, should, running.args)

    def release(self):
        """Ends what the test left running; returns lines about it."""
        lines = []
        for running in self.running:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()
                lines.append(f"not waited for: {' '.join(running.argv)}")
        return lines
