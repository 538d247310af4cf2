"""Where the numbers come from: the machine, and the versions of everything that took part."""
import os
import platform
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path


def first_line(argv):
    """What a program says of its version, or that it is not there."""
    path = shutil.which(str(argv[0])) or (argv[0] if Path(argv[0]).exists() else None)
    if not path:
        return "not installed"
    run = subprocess.run([path, *argv[1:]], capture_output=True, text=True, check=False)
    lines = (run.stdout or run.stderr).strip().splitlines()
    return lines[0] if lines else "unknown: it says nothing"


def read(path, pattern, default):
    try:
        match = re.search(pattern, Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return default
    return match[1] if match else default


def package_version(name):
    run = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True,
                         text=True, check=False) if shutil.which("dpkg-query") else None
    return run.stdout if run and run.returncode == 0 else "unknown: not a package here"


def file_system(path):
    run = subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True,
                         check=False)
    return run.stdout.strip() or "unknown"


def description(prony, temp):
    """(what, how it is) for the head of the results."""
    memory_kib = int(read("/proc/meminfo", r"MemTotal:\s+(\d+)", "0"))
    return [
        ("date", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ("processor", f"{read('/proc/cpuinfo', r'model name.*: (.*)', 'unknown')}, "
                      f"{os.cpu_count()} seen by the kernel"),
        ("memory", f"{memory_kib / 2**20:.1f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("system", read("/etc/os-release", r'PRETTY_NAME="(.*)"', "unknown")),
        ("load at the start", "{:.2f} {:.2f} {:.2f}".format(*os.getloadavg())),
        ("servers' data on", file_system(temp)),
        ("prony", first_line([prony, "--version"])),
        ("pgbench", first_line(["pgbench", "--version"])),
        ("sysbench", first_line(["sysbench", "--version"])),
        ("PostgreSQL", package_version("postgresql-15")
         if shutil.which("dpkg-query") else first_line(["postgres", "--version"])),
        ("MariaDB", first_line(["/usr/sbin/mariadbd", "--version"])),
        ("libpq, libmariadb, liburing", ", ".join(
            package_version(name) for name in ("libpq5", "libmariadb3", "liburing2"))),
    ]


def raise_open_files(wanted):
    """Sessions are descriptors; the limit of what is started is raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if hard != resource.RLIM_INFINITY and hard < wanted and os.geteuid() == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        except (OSError, ValueError):
            pass
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def cores():
    """Where the server and the client go when each gets a core: (server, client)."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (allowed[0], allowed[0])
