"""tools/demo, the second half of `make demo`: a result for SQLite without a server, without root, and
well within the two minutes that `make demo` may take."""
import os
import shutil
import subprocess
import time

import pytest

from harness.place import REPO, unprivileged


@pytest.mark.alone
@pytest.mark.release_only
def test_the_demo_gives_a_result_without_root(prony):
    demo = prony.dir / "demo"  # copies, for the user may not see ours
    demo.mkdir()
    shutil.copy(prony.binary, demo / "prony")
    shutil.copy(REPO / "tools" / "demo", demo / "run")
    runtime = demo / "runtime"
    runtime.mkdir()
    user = unprivileged()
    argv = [str(demo / "run"), str(demo / "prony")]
    if user:
        for path in (prony.dir, demo, runtime, demo / "prony", demo / "run"):
            os.chown(path, user.pw_uid, user.pw_gid)
        argv = ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid),
                "--clear-groups", *argv]
    start_s = time.monotonic()
    run = subprocess.run(argv, cwd=demo,
                         env=prony.environment({"PRONY_STORE": None, "XDG_RUNTIME_DIR": runtime,
                                            "TMPDIR": runtime}),
                         capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert time.monotonic() - start_s < 400  # two minutes on a machine that does nothing else
    assert "transactions/s" in run.stdout
    assert "journal_mode=wal: " in run.stdout and "two equal cells differ by" in run.stdout
    assert (demo / "prony.db").exists()
    assert [p.name for p in demo.iterdir() if p.name.startswith(".prony-")] == []
